"""What the server does to a merged object before it stores it.

Vocabulary: *settling* an object is to write it as the server will hold it. A Go type (built-in
kinds, and the metadata of every object) drops nulls and empty containers and respells
quantities, times and bytes. A custom resource keeps what was written, drops nulls that its
schema forbids and takes the schema's defaults. A few fields of built-in kinds are folded into
others: `FOLDED` is all of them.

Never: the defaults that the server's Go code sets on built-in kinds. No schema shows them;
`softly_same` says which differences they may explain, `go_defaults` which of them are known to.

Pure: inputs are never mutated.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.ssa.schema import MapType, Schema, SchemaField, Type
from kubectl_reconcile.core.ssa.values import is_zero, number, same, stored


def settled(obj: Manifest, schema: Schema) -> dict[str, Any]:
    """Return *obj* as the server will hold it, but for defaults that only its Go code knows."""
    if not schema.known:
        return dict(obj)
    if schema.is_custom:
        out: dict[str, Any] = _defaulted(_without_forbidden_nulls(obj, schema.root), schema.root)
        return out
    fold = FOLDED.get((schema.gvk.group, schema.gvk.kind), dict)
    return fold(_as_go(obj, schema.root))


# --- Go types -----------------------------------------------------------------------------------


def _as_go(value: Any, of: Type) -> Any:
    if isinstance(value, dict):
        if of.map is None:
            return value
        names = value.items()
        return {name: below for name, item in names if (below := _go_field(name, item, of.map)) is not _DROPPED}
    if isinstance(value, list):
        return [_as_go(item, of.list.item) for item in value] if of.list is not None else value
    if of.form is not None and value is not None:
        return stored(value, of.form)
    return number(value) if isinstance(value, float) else value


_DROPPED = object()


def _go_field(name: str, value: Any, of: MapType) -> Any:
    """Return what a field of a Go struct, or an entry of a Go map, is stored as."""
    declared = of.field(name)
    if declared is None:
        return ("" if value is None and _holds_strings(of) else _as_go(value, of.other)) if of.other else value
    if not declared.required and (value is None or (not _is_any(declared.type) and _is_empty(value, declared.type))):
        return _DROPPED
    return _as_go(value, declared.type)


def _is_empty(value: Any, of: Type) -> bool:
    return value == [] or (value == {} and _is_go_map(of))


def _is_any(of: Type) -> bool:
    """Return whether a value of this type is kept as raw JSON (a CRD's defaults), emptiness and all."""
    return bool(of.scalar) and of.list is not None and of.map is not None


def _holds_strings(of: MapType) -> bool:
    return of.other is not None and of.other.scalar == "string"


def _is_go_map(of: Type) -> bool:
    return of.map is not None and not of.map.is_struct


# --- custom resources -------------------------------------------------------------------------------


def _without_forbidden_nulls(value: Any, of: Type | None) -> Any:
    if of is None:
        return value
    if isinstance(value, Mapping):
        out = {}
        for name, below in value.items():
            if of.is_resource and name == "metadata":
                out[name] = below or {}
                continue
            declared, kind = _described(name, of)
            if below is None and kind is not None and not kind.nullable and not (declared and declared.has_default):
                continue
            out[name] = _without_forbidden_nulls(below, kind)
        return out
    if isinstance(value, list):
        item = of.list.item if of.list is not None else None
        return [_without_forbidden_nulls(below, item) for below in value]
    return value


def _described(name: str, of: Type) -> tuple[SchemaField | None, Type | None]:
    """Return the field *name* and its type; no type where the schema says nothing about it."""
    if of.map is None:
        return None, None
    declared = of.map.field(name)
    if declared is not None:
        return declared, declared.type
    return None, None if of.map.is_struct else of.map.other


def _defaulted(value: Any, of: Type | None) -> Any:
    """Return *value* with the schema's defaults for what is absent, or null where null isn't allowed."""
    if of is None:
        return value
    if isinstance(value, Mapping):
        out = dict(value)
        metadata = of.map.type_at("metadata") if of.is_resource and of.map is not None else None
        if metadata is not None and "metadata" in out:
            out["metadata"] = _as_go(out["metadata"], metadata)
        for name, below in value.items():
            declared, kind = _described(name, of)
            if metadata is not None and name == "metadata":
                continue
            if below is None and declared is not None and declared.has_default and not declared.type.nullable:
                out[name] = declared.default
            out[name] = _defaulted(out[name], kind)
        for declared in of.map.fields() if of.map is not None else ():
            if declared.has_default and declared.name not in out:
                out[declared.name] = _defaulted(declared.default, declared.type)
        return out
    if isinstance(value, list):
        return [_defaulted(item, of.list.item if of.list is not None else None) for item in value]
    return number(value) if isinstance(value, float) else value


# --- fields that are folded into others -----------------------------------------------------------------


def _fold_string_data(secret: dict[str, Any]) -> dict[str, Any]:
    """Fold ``stringData`` of a Secret into ``data``, where it wins."""
    text = secret.get("stringData")
    if not isinstance(text, dict):
        return secret
    data = {name: base64.b64encode(str(value or "").encode()).decode() for name, value in text.items()}
    out = {name: value for name, value in secret.items() if name != "stringData"}
    if data or out.get("data"):
        out["data"] = {**(out.get("data") or {}), **data}
    return out


def _fold_service_account(at: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a fold of the deprecated ``serviceAccount`` of the PodSpec *at* into ``serviceAccountName``."""

    def fold(obj: dict[str, Any]) -> dict[str, Any]:
        return _replaced(obj, at, _both_service_accounts)

    return fold


def _both_service_accounts(spec: dict[str, Any]) -> dict[str, Any]:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {**spec, "serviceAccountName": name, "serviceAccount": name} if name else spec


def _replaced(
    tree: dict[str, Any], at: tuple[str, ...], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    if not at:
        return change(tree)
    below = tree.get(at[0])
    return {**tree, at[0]: _replaced(below, at[1:], change)} if isinstance(below, dict) else tree


_IN_TEMPLATE = _fold_service_account(("spec", "template", "spec"))

FOLDED: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("", "Secret"): _fold_string_data,
    ("", "Pod"): _fold_service_account(("spec",)),
    ("", "PodTemplate"): _fold_service_account(("template", "spec")),
    ("", "ReplicationController"): _IN_TEMPLATE,
    ("apps", "Deployment"): _IN_TEMPLATE,
    ("apps", "ReplicaSet"): _IN_TEMPLATE,
    ("apps", "StatefulSet"): _IN_TEMPLATE,
    ("apps", "DaemonSet"): _IN_TEMPLATE,
    ("batch", "Job"): _IN_TEMPLATE,
    ("batch", "CronJob"): _fold_service_account(("spec", "jobTemplate", "spec", "template", "spec")),
}
"""Built-in kinds whose conversion moves a field's value into another field."""


# --- the empty object ------------------------------------------------------------------------------------


def zero_value(of: Type, like: Any) -> Any:
    """Return what an empty Go struct of this type looks like: the fields that it never omits, at zero.

    Those are the required ones, structs held by value, and what *like*, an object of that type, shows as null.
    """
    if of.map is None:
        return {"numeric": 0, "string": "", "boolean": False}.get(of.scalar)
    values = like if isinstance(like, dict) else {}
    return {
        declared.name: zero_value(declared.type, values.get(declared.name))
        for declared in of.map.fields()
        if declared.required or declared.default == {} or (declared.name in values and values[declared.name] is None)
    }


# --- what defaults may explain --------------------------------------------------------------------------


def softly_same(wanted: Any, live: Any, of: Type | None) -> bool:
    """Return whether defaults of the server's Go code may have made *live* out of *wanted*.

    They fill what is absent in a struct and replace its zero values; they never change a value that
    says something, nor the entries of a Go map.
    """
    if isinstance(wanted, dict) and isinstance(live, dict) and wanted:
        if of is None or of.map is None or not of.map.is_struct:
            return same(wanted, live)
        return all(
            softly_same(value, live[name], of.map.type_at(name)) if name in live else is_zero(value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list) and wanted:
        item = of.list.item if of is not None and of.list is not None else None
        return len(wanted) == len(live) and all(
            softly_same(one, other, item) for one, other in zip(wanted, live, strict=True)
        )
    return is_zero(wanted) or same(wanted, live)
