"""Random CRDs: every way in which a custom resource's fields can merge, each with the shape of its values."""

from __future__ import annotations

from random import Random
from typing import Any

from oracle.shapes import Choice, Either, Items, Obj, Shape, Table, keyed

GROUP = "oracle.example.com"
WORDS = ("a", "b", "c")
TEXTS = ("x", "y", "z", "", "a<b>&c", "0.5", "1000m")
INTS = (0, 1, 2, 80, -5, 1000)
NUMBERS = (0, 1, 1.0, 1.5, 2.25, -3)
FREE = ("p", "q", "r/s", "t.u", "")


def text() -> Shape:
    return Choice(TEXTS)


def random_crd(rng: Random, name: str) -> tuple[dict[str, Any], Shape]:
    """Return a CRD of the kind *name* and the shape of its manifests (without metadata)."""
    spec, shape = _object(rng, 3, most=6)
    properties: dict[str, Any] = {"spec": spec}
    fields: dict[str, Any] = {"spec": (shape, 0.95)}
    if rng.random() < 0.2:
        properties["extra"], fields["extra"] = _any(rng, 2)
    versions: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    if rng.random() < 0.6:
        versions["subresources"] = {"status": {}}
    properties["status"] = {"type": "object", "properties": {"phase": {"type": "string"}, "count": {"type": "integer"}}}
    fields["status"] = (Obj({"phase": text(), "count": Choice(INTS)}), 0.15)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if rng.random() < 0.1:
        schema["x-kubernetes-preserve-unknown-fields"] = True
        fields["unknown"] = (free(2), 0.4)
    versions["schema"] = {"openAPIV3Schema": schema}
    served = [versions]
    if rng.random() < 0.4:
        served.append({**versions, "name": "v2", "storage": False})
    plural = name.lower() + "s"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": name, "plural": plural, "singular": name.lower(), "listKind": f"{name}List"},
            "versions": served,
        },
    }
    return crd, Obj(fields)


def free(depth: int) -> Shape:
    """Values that no schema describes."""
    scalars = Choice((*TEXTS, *INTS, *NUMBERS, True, False))
    if depth == 0:
        return scalars
    return Either((scalars, Table(FREE, free(depth - 1)), Items(free(depth - 1))))


def _scalar(rng: Random) -> tuple[dict[str, Any], Shape]:
    return rng.choice(
        [
            lambda: ({"type": "string"}, text()),
            lambda: ({"type": "integer"}, Choice(INTS)),
            lambda: ({"type": "integer", "format": "int32"}, Choice(INTS)),
            lambda: ({"type": "number"}, Choice(NUMBERS)),
            lambda: ({"type": "boolean"}, Choice((True, False))),
            lambda: ({"x-kubernetes-int-or-string": True}, Choice((*INTS, *TEXTS))),
            lambda: (
                {"type": "string", "format": "date-time"},
                Choice(("2024-01-01T00:00:00Z", "2024-01-01T02:00:00+02:00")),
            ),
            lambda: ({"type": "string", "format": "byte"}, Choice(("YQ==", "Yg==", ""))),
        ]
    )()


def _any(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    if depth == 0 or rng.random() < 0.35:
        spec, shape = _scalar(rng)
    else:
        spec, shape = rng.choice((_object, _object, _table, _list, _set, _list_map, _list_map, _opaque, _embedded))(
            rng, depth - 1
        )
    if rng.random() < 0.12:
        spec = {**spec, "nullable": True}
    return spec, shape


def _with_default(rng: Random, spec: dict[str, Any], shape: Shape) -> dict[str, Any]:
    """Give *spec* a default now and then; only plain values, which prune to themselves."""
    if "default" in spec or rng.random() > 0.25:
        return spec
    default = shape.make(rng)
    if isinstance(default, dict | list) and (default or spec.get("x-kubernetes-embedded-resource")):
        return spec
    return {**spec, "default": default}


def _object(rng: Random, depth: int, most: int = 4) -> tuple[dict[str, Any], Shape]:
    properties, fields = {}, {}
    for index in range(rng.randint(1, most)):
        spec, shape = _any(rng, depth)
        name = f"f{index}"
        properties[name] = _with_default(rng, spec, shape)
        fields[name] = (shape, rng.choice((0.3, 0.6, 0.9)))
    spec: dict[str, Any] = {"type": "object", "properties": properties}
    if rng.random() < 0.15:
        spec["x-kubernetes-map-type"] = rng.choice(("atomic", "granular"))
    if rng.random() < 0.1:
        spec["x-kubernetes-preserve-unknown-fields"] = True
        fields["unknown"] = (free(2), 0.4)
    return spec, Obj(fields)


def _table(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    spec, shape = _any(rng, depth)
    out: dict[str, Any] = {"type": "object", "additionalProperties": spec}
    if rng.random() < 0.2:
        out["x-kubernetes-map-type"] = rng.choice(("atomic", "granular"))
    return out, Table(FREE[:4], shape)


def _list(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    spec, shape = _any(rng, depth)
    out: dict[str, Any] = {"type": "array", "items": spec}
    if rng.random() < 0.5:
        out["x-kubernetes-list-type"] = "atomic"
    return out, Items(shape)


def _set(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    spec, shape = _scalar(rng)
    return {"type": "array", "items": spec, "x-kubernetes-list-type": "set"}, Items(shape, key=_by_value)


def _by_value(item: Any) -> Any:
    return float(item) if isinstance(item, int | float) and not isinstance(item, bool) else item


def _list_map(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    spec, shape = _object(rng, depth)
    spec.pop("x-kubernetes-map-type", None)
    properties, fields = dict(spec["properties"]), dict(shape.fields)
    keys, required, defaults = [], [], {}
    for index in range(rng.choice((1, 1, 1, 2, 3))):
        name = f"k{index}"
        kind, values = rng.choice(
            (("string", WORDS), ("string", WORDS), ("integer", (1, 2, 80)), ("boolean", (True, False)))
        )
        properties[name], keys = {"type": kind}, [*keys, name]
        if index and rng.random() < 0.6:
            defaults[name] = rng.choice(values)
            properties[name]["default"] = defaults[name]
            fields[name] = (Choice(values), 0.5)
        else:
            required.append(name)
            fields[name] = (Choice(values), 1)
    items = {**spec, "properties": properties, "required": required}
    if rng.random() < 0.1:
        items["x-kubernetes-map-type"] = "atomic"
    out = {"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys}
    plain = [name for name in keys if name not in defaults]
    return out, Items(Obj(fields), most=4, key=keyed(*plain, **defaults))


def _opaque(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    if rng.random() < 0.5:
        return {"x-kubernetes-preserve-unknown-fields": True}, free(2)
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, Table(FREE[:4], free(2))


def _embedded(rng: Random, depth: int) -> tuple[dict[str, Any], Shape]:
    spec, shape = _object(rng, depth)
    spec.pop("x-kubernetes-map-type", None)
    fields = {
        **shape.fields,
        "apiVersion": (Choice(("v1", "g/v1")), 1),
        "kind": (Choice(("Thing", "Other")), 1),
        "metadata": (Obj({"name": Choice(WORDS), "labels": Table(WORDS, Choice(WORDS))}), 0.8),
    }
    return {**spec, "x-kubernetes-embedded-resource": True}, Obj(fields)
