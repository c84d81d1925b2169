"""How the fields of a kind merge, from the server's OpenAPI v3 or from a CRD.

Vocabulary is structured-merge-diff's: a *type* may be a *scalar*, a *list* and a *map* at once
(a schema without ``type`` allows all three). A list is *atomic* (one value, replaced whole), a
*set* (its items are their own keys) or a *list map* (items are found by their keys, which may
have defaults). A map is *granular* (every key has its owners) or *atomic*. What no schema
describes is *deduced* from the value: granular maps, atomic lists.

Rules: the translation is kube-openapi's ``schemaconv``, so that a field merges here as it does
in the server. Types are read from the document when they are first asked for: ``api/v1`` is
1.6 MB and a sync meets a handful of its kinds.

Pure: no I/O; a document, once handed in, is never mutated and must not be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import GroupVersionKind, Manifest
from kubectl_reconcile.core.ssa.values import Form

_NO_DEFAULT: Final = object()


class ListType:
    """How a list merges: *atomic*, or by *keys*, or as a set (neither)."""

    __slots__ = ("_item", "_resolver", "_spec", "atomic", "keys")

    def __init__(self, spec: Mapping[str, Any], resolver: _Resolver) -> None:
        """Read the ``x-kubernetes-list-*`` (or, failing those, patch merge) extensions of *spec*."""
        self._spec, self._resolver = spec, resolver
        self._item: Type | None = None
        kind = spec.get("x-kubernetes-list-type")
        self.keys: tuple[str, ...] = ()
        if kind == "map":
            self.keys = tuple(spec.get("x-kubernetes-list-map-keys") or ())
        elif kind is None and str(spec.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
            key = spec.get("x-kubernetes-patch-merge-key")
            self.keys = (key,) if key else ()
            kind = "map" if key else "set"
        self.atomic: bool = kind not in {"map", "set"}

    @property
    def item(self) -> Type:
        """The type of the items."""
        if self._item is None:
            items = self._spec.get("items")
            self._item = self._resolver.type_of(items) if items is not None else UNTYPED
        return self._item

    def key_default(self, name: str) -> Any:
        """Return the default of the key field *name*, None where it has none."""
        record = self.item.map.field(name) if self.item.map else None
        return record.default if record and record.has_default else None


class SchemaField(Struct):
    """A declared field of a map: its path element, its type, its default and whether it may be null."""

    name: str
    element: str
    type: Type
    spec: Mapping[str, Any]
    required: bool

    @property
    def has_default(self) -> bool:
        """Whether the schema declares a default."""
        return self.spec.get("default") is not None

    @property
    def default(self) -> Any:
        """The declared default; None if there is none."""
        return self.spec.get("default")


class _Fields(dict[str, SchemaField]):
    """The declared fields of a map, each read when it is first looked up."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[str], SchemaField]) -> None:
        """Remember how a field is read."""
        super().__init__()
        self._read = read

    def __missing__(self, name: str) -> SchemaField:
        found = self[name] = self._read(name)
        return found


class MapType:
    """How a map merges: its declared fields, the type of all other keys, and whether it is one value."""

    __slots__ = ("_other", "_resolver", "_spec", "atomic", "is_struct", "known", "names")

    def __init__(self, spec: Mapping[str, Any], resolver: _Resolver, *, relationship: str | None) -> None:
        """Read the properties of *spec*; a *relationship* given by the reference wins."""
        self._spec, self._resolver = spec, resolver
        self.known: _Fields = _Fields(self._read)
        self._other: Type | object | None = _NO_DEFAULT
        self.names: Mapping[str, Any] = spec.get("properties") or {}
        self.atomic: bool = (relationship or spec.get("x-kubernetes-map-type")) == "atomic"
        self.is_struct: bool = "additionalProperties" not in spec

    def field(self, name: str) -> SchemaField | None:
        """Return the declared field *name*, or None."""
        return self.known[name] if name in self.names else None

    def _read(self, name: str) -> SchemaField:
        spec = self.names[name]
        required = name in (self._spec.get("required") or ())
        return SchemaField(name, f"f:{name}", self._resolver.type_of(spec), spec, required)

    def fields(self) -> Iterator[SchemaField]:
        """Yield all declared fields."""
        for name in self.names:
            yield self.known[name]

    @property
    def other(self) -> Type | None:
        """The type of keys that aren't declared; None where only declared ones are allowed."""
        if self._other is _NO_DEFAULT:
            self._other = self._type_of_other()
        return self._other  # type: ignore[return-value]  # the sentinel is gone by now

    def _type_of_other(self) -> Type | None:
        more = self._spec.get("additionalProperties")
        if more is None:
            return DEDUCED if self._resolver.preserve or not self.names else None
        if isinstance(more, Mapping):
            return self._resolver.type_of(more)
        return DEDUCED if more else None

    def type_at(self, name: str) -> Type | None:
        """Return the type of the key *name*; None where it isn't allowed."""
        found = self.field(name)
        return found.type if found is not None else self.other


class Type:
    """What a value may be: scalar, list and map, each or none of them."""

    __slots__ = ("definition", "form", "is_resource", "list", "map", "nullable", "preserve", "scalar", "spec")

    def __init__(self, spec: Mapping[str, Any], resolver: _Resolver, *, relationship: str | None = None) -> None:
        """Read one schema, shallowly: what lies below is read when asked for."""
        self.spec = spec
        self.definition: str = ""
        """What the document calls it, without its package: ``Container``; empty where it has no name."""
        self.scalar: str = ""
        self.list: ListType | None = None
        self.map: MapType | None = None
        self.form: Form | None = None
        self.nullable: bool = bool(spec.get("nullable"))
        self.is_resource: bool = bool(spec.get("x-kubernetes-embedded-resource"))
        self.preserve: bool = bool(spec.get("x-kubernetes-preserve-unknown-fields"))
        if self.preserve:
            resolver = resolver.preserving()
        kind = spec.get("type", "")
        if kind == "":
            self.scalar = "untyped"
            self.list = ListType(spec, resolver)
            self.map = MapType(spec, resolver, relationship=relationship)
        elif kind == "object":
            self.map = MapType(spec, resolver, relationship=relationship)
        elif kind == "array":
            self.list = ListType(spec, resolver)
        else:
            self.scalar = _scalar(kind, spec.get("format", ""))
            self.form = _form(kind, spec.get("format", "")) if resolver.respells else None

    def __repr__(self) -> str:
        kinds = [self.scalar, "list" if self.list else "", "map" if self.map else ""]
        return f"Type({'|'.join(kind for kind in kinds if kind)})"


def _scalar(kind: str, form: str) -> str:
    if kind in {"integer", "number"}:
        return "numeric"
    if kind == "string" and form in {"", "byte"}:
        return "string"
    return "boolean" if kind == "boolean" else "untyped"


def _form(kind: str, form: str) -> Form | None:
    if kind == "string" and form == "date-time":
        return Form.TIME
    return Form.BYTES if kind == "string" and form == "byte" else None


class _Resolver:
    """Turns schemas into types, following ``$ref`` (also inside a lone ``allOf``) within one document."""

    __slots__ = ("_definitions", "_named", "preserve", "respells")

    def __init__(self, definitions: Mapping[str, Any], *, respells: bool, preserve: bool = False) -> None:
        self._definitions = definitions
        self._named: dict[tuple[str, str | None], Type] = {}
        self.respells = respells
        self.preserve = preserve

    def preserving(self) -> _Resolver:
        """Return the same resolver below ``x-kubernetes-preserve-unknown-fields``."""
        return self if self.preserve else _Resolver(self._definitions, respells=self.respells, preserve=True)

    def type_of(self, spec: Mapping[str, Any]) -> Type:
        """Return the type that *spec* describes or refers to."""
        reference = spec.get("$ref")
        if reference is None and len(spec.get("allOf") or ()) == 1:
            reference = spec["allOf"][0].get("$ref")
        if reference is None:
            return Type(_with_embedded_metadata(spec), self)
        return self.named(reference.rpartition("/")[2], spec.get("x-kubernetes-map-type"))

    def named(self, name: str, relationship: str | None = None) -> Type:
        """Return the type of the definition *name*; what is missing is deduced."""
        found = self._named.get((name, relationship))
        if found is None:
            found = self._read(name, relationship)
            self._named[name, relationship] = found
        return found

    def _read(self, name: str, relationship: str | None) -> Type:
        if name.endswith("apimachinery.pkg.apis.meta.v1.ObjectMeta") and not self.respells:
            return _OBJECT_META
        for suffix, well_known in _WELL_KNOWN.items():
            if name.endswith(suffix):
                return well_known
        spec = self._definitions.get(name)
        if spec is None:
            return DEDUCED
        found = Type(spec, _Resolver.plain(self), relationship=relationship)
        found.definition = name.rpartition(".")[2]
        return found

    @staticmethod
    def plain(resolver: _Resolver) -> _Resolver:
        """Return the resolver for a definition: preservation is not inherited through a reference."""
        if not resolver.preserve:
            return resolver
        return _Resolver(resolver._definitions, respells=resolver.respells)


def _scalar_type(form: Form | None) -> Type:
    made = Type({"type": "string", "format": "any"}, _EMPTY)
    made.form = form
    return made


def _with_embedded_metadata(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *spec* with the fields that every embedded resource has, as the server adds them."""
    if not spec.get("x-kubernetes-embedded-resource"):
        return spec
    metadata = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    implied = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata}
    return {**spec, "properties": {**(spec.get("properties") or {}), **implied}}


class Schema(Struct, frozen=True, eq=False):
    """How one kind at one version merges.

    *known* is false for kinds that nothing describes; *is_custom* tells custom resources, which are stored
    as written, from Go types, which respell values and have defaults that no schema shows.
    *has_status* says that ``status`` is a subresource, so an apply ignores it.
    *same_versions* are the ``apiVersion``s that convert into this one by changing the name
    alone, under the same schema; the field sets of all others can't be compared with ours.
    """

    gvk: GroupVersionKind
    root: Type
    known: bool = True
    is_custom: bool = False
    has_status: bool = False
    same_versions: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"schema of {self.gvk}" if self.known else "unknown schema"


class _Schemas(Mapping[GroupVersionKind, Schema]):
    """The kinds of an OpenAPI v3 document; each is read when it is first looked up."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._definitions: Mapping[str, Any] = (document.get("components") or {}).get("schemas") or {}
        self._names: dict[GroupVersionKind, str] = {}
        for name, spec in self._definitions.items():
            for kind in spec.get("x-kubernetes-group-version-kind") or ():
                gvk = GroupVersionKind(kind.get("group", ""), kind.get("version", ""), kind.get("kind", ""))
                self._names.setdefault(gvk, name)
        self._with_status = frozenset(_kinds_with_status(document.get("paths") or {}))
        self._found: dict[GroupVersionKind, Schema] = {}
        self._go = _Resolver(self._definitions, respells=True)
        self._custom = _Resolver(self._definitions, respells=False)

    def __getitem__(self, gvk: GroupVersionKind) -> Schema:
        found = self._found.get(gvk)
        if found is None:
            name = self._names[gvk]
            is_custom = self._is_custom(name)
            found = Schema(
                gvk,
                _root_of_custom(self._definitions[name], self._custom) if is_custom else self._go.named(name),
                is_custom=is_custom,
                has_status=gvk in self._with_status,
                same_versions=frozenset({gvk.api_version}),
            )
            self._found[gvk] = found
        return found

    def __iter__(self) -> Iterator[GroupVersionKind]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _is_custom(self, name: str) -> bool:
        """Custom resources are written inline: their only reference is to ObjectMeta."""
        if name.startswith(_GO_PREFIXES):
            return False
        properties = self._definitions[name].get("properties") or {}
        return all(not _refers(spec) for field_name, spec in properties.items() if field_name != "metadata")


_GO_PREFIXES = ("io.k8s.api.", "io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.", "io.k8s.apimachinery.")


def _refers(spec: Mapping[str, Any]) -> bool:
    parts = [spec, *(spec.get("allOf") or ()), spec.get("items") or {}]
    return any("$ref" in part for part in parts if isinstance(part, Mapping))


def _kinds_with_status(paths: Mapping[str, Any]) -> Iterator[GroupVersionKind]:
    for path, operations in paths.items():
        if path.endswith("/{name}/status"):
            for operation in ("patch", "put", "get"):
                kind = (operations.get(operation) or {}).get("x-kubernetes-group-version-kind")
                if kind:
                    yield GroupVersionKind(kind.get("group", ""), kind["version"], kind["kind"])


def schemas_of_document(openapi_v3: Mapping[str, Any]) -> Mapping[GroupVersionKind, Schema]:
    """Return the schemas in one of the server's ``/openapi/v3`` documents, each read on first use."""
    return _Schemas(openapi_v3)


def schema_of_crd(crd: Manifest, version: str) -> Schema:
    """Return the schema of the kind that *crd* defines, at *version*.

    Raises:
        KeyError: the CRD has no such version.
    """
    spec = crd["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    found = next((entry for entry in spec["versions"] if entry["name"] == version), None)
    if found is None:
        raise KeyError(f"CustomResourceDefinition {crd['metadata']['name']} has no version {version}")
    gvk = GroupVersionKind(group, version, kind)
    openapi = (found.get("schema") or {}).get("openAPIV3Schema")
    return Schema(
        gvk,
        _root_of_crd(openapi, preserve=bool(spec.get("preserveUnknownFields"))),
        is_custom=True,
        has_status="status" in (found.get("subresources") or {}),
        same_versions=frozenset({gvk.api_version, *_alike_versions(spec, openapi)}),
    )


def _root_of_crd(openapi: Mapping[str, Any] | None, *, preserve: bool) -> Type:
    resolver = _Resolver({}, respells=False, preserve=preserve)
    if openapi is None:
        return Type({"type": "object"}, resolver)
    return _root_of_custom(openapi, resolver)


def _root_of_custom(openapi: Mapping[str, Any], resolver: _Resolver) -> Type:
    """Return the type of a whole custom resource: a resource like an embedded one, whose metadata is a Go type."""
    return resolver.type_of({**openapi, "x-kubernetes-embedded-resource": True})


def _alike_versions(spec: Mapping[str, Any], openapi: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the versions whose conversion changes nothing: strategy None and the same schema."""
    if ((spec.get("conversion") or {}).get("strategy") or "None") != "None":
        return
    for entry in spec["versions"]:
        if (entry.get("schema") or {}).get("openAPIV3Schema") == openapi:
            yield f"{spec['group']}/{entry['name']}"


_EMPTY = _Resolver({}, respells=False)

UNTYPED: Final = Type({"x-kubernetes-map-type": "atomic"}, _EMPTY)
"""Any value, as one: ``RawExtension`` and the items of lists that nothing describes."""

DEDUCED: Final = Type({}, _EMPTY)
"""Any value, its structure taken from what it is: maps are granular, lists atomic."""

_WELL_KNOWN: Final = {
    "apimachinery.pkg.runtime.RawExtension": UNTYPED,
    "apimachinery.pkg.api.resource.Quantity": _scalar_type(Form.QUANTITY),
    "apimachinery.pkg.util.intstr.IntOrString": _scalar_type(None),
    "apimachinery.pkg.apis.meta.v1.MicroTime": _scalar_type(Form.MICRO_TIME),
}
"""Definitions whose schema doesn't say how Go writes them."""

_OBJECT_META: Final = Type(
    {
        "type": "object",
        "properties": {
            **{
                name: {"type": "string"}
                for name in ("generateName", "name", "namespace", "resourceVersion", "selfLink", "uid")
            },
            **{name: {"type": "integer"} for name in ("deletionGracePeriodSeconds", "generation")},
            **{name: {"type": "string", "format": "date-time"} for name in ("creationTimestamp", "deletionTimestamp")},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "managedFields": {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "atomic"},
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "required": ["apiVersion", "kind", "name", "uid"],
                    "properties": {
                        **{name: {"type": "string"} for name in ("apiVersion", "kind", "name", "uid")},
                        **{name: {"type": "boolean"} for name in ("blockOwnerDeletion", "controller")},
                    },
                },
            },
        },
    },
    _EMPTY,
)
"""Metadata of a custom resource: a Go type also there, and the same for every one."""

UNKNOWN: Final = Schema(GroupVersionKind("", "", ""), DEDUCED, known=False)
"""The schema of a kind that nothing describes: deduced from the values, so every verdict on it is unsure."""
