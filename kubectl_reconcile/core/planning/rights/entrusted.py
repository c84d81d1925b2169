"""Fields of custom resources by which a module acts for whoever writes them: it runs their image, or hands out the Secret that they name.

The daemon doesn't know who wrote a custom resource, and acts by its module's rights. The API server does know. So it is the one that
refuses, by policies that are installed with the daemon: to set such a field takes the right to do the same by hand.

Vocabulary: a field is *entrusted* where its description in the CRD ends in one of two sentences. ``Setting it takes the right to create
pods.`` ``Setting it takes the right to get that Secret.`` Policies, grants and previews are all made of these, so a new field is respected by
all three once it says so, and people read it in ``kubectl explain``. With ``Setting it or what is beside it takes …``, so does
changing what stands beside it: where the Secret is used.

Rules:

- Asked only where the field is set and changes: who may do less may still suspend what others have set up.
- A value that is the field's default isn't set by anybody.
- What a module makes was judged where somebody wrote it: at the parent. So the modules that own a kind are let through.

Pure: CRDs in, rights out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

from kubectl_reconcile.core.objects import GroupKind, Manifest, map_at, mapping_of
from kubectl_reconcile.core.planning.rights.rules import Right

_MARK: Final = re.compile(
    r"Setting it(?P<beside> or what is beside it)? takes the right to (?P<what>create pods|get that Secret)\."
)
EACH: Final = "[]"
"""The step of a path that stands for each item of a list."""


class EntrustedField(Struct, frozen=True):
    """A field of a kind: its *path* of names, ``[]`` for the items of a list. *default* is what the server fills in, as JSON."""

    path: tuple[str, ...]
    names_secret: bool
    beside: bool = False
    default: str = ""

    def __str__(self) -> str:
        return "." + ".".join(self.path).replace(f".{EACH}", EACH)

    @property
    def compared(self) -> tuple[str, ...]:
        """What must be another so that somebody is asked."""
        return self.path[:-1] if self.beside else self.path


EntrustedFields: TypeAlias = Mapping[GroupKind, tuple[EntrustedField, ...]]
"""The entrusted fields of kinds that have some."""


def entrusted_fields(crds: Iterable[Manifest]) -> dict[GroupKind, tuple[EntrustedField, ...]]:
    """Return the entrusted fields of the kinds that *crds* define, of all their versions; what isn't a CRD defines none."""
    found: dict[GroupKind, tuple[EntrustedField, ...]] = {}
    for crd in crds:
        spec = map_at(crd, "spec")
        versions = (mapping_of(each) for each in spec.get("versions") or ())
        fields = (one for each in versions for one in _marked(map_at(each, "schema", "openAPIV3Schema"), ()))
        if known := tuple(dict.fromkeys(fields)):
            found[_kind_of(crd)] = known
    return found


def _kind_of(crd: Manifest) -> GroupKind:
    spec = map_at(crd, "spec")
    return GroupKind(str(spec.get("group")), str(map_at(spec, "names").get("kind")))


def _marked(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[EntrustedField]:
    if mark := _MARK.search(" ".join(str(schema.get("description") or "").split())):
        default = json.dumps(schema["default"]) if "default" in schema else ""
        yield EntrustedField(path, mark["what"] != "create pods", bool(mark["beside"]), default)
    for name, below in mapping_of(schema.get("properties")).items():
        yield from _marked(mapping_of(below), (*path, name))
    if items := mapping_of(schema.get("items")):
        yield from _marked(items, (*path, EACH))


# --- which rights an object takes --------------------------------------------------------------------------------


def rights_to_set(
    fields: Iterable[EntrustedField], after: Manifest, before: Manifest | None = None
) -> frozenset[Right]:
    """Return the rights in its namespace that somebody needs who makes an object, or changes it from *before* to *after*."""
    found: set[Right] = set()
    for each in fields:
        known = list(_values(before or {}, each.compared))
        values = [
            value
            for compared in _values(after, each.compared)
            if compared not in known
            for value in _values(compared, each.path[len(each.compared) :])
            if value not in ("", None) and json.dumps(value) != each.default
        ]
        if each.names_secret:
            found |= {Right("", "secrets", "get", str(value)) for value in values}
        elif values:
            found.add(Right("", "pods", "create"))
    return frozenset(found)


def _values(tree: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if not path:
        yield tree
    elif path[0] == EACH:
        for each in tree if isinstance(tree, list) else ():
            yield from _values(each, path[1:])
    elif isinstance(tree, Mapping) and path[0] in tree:
        yield from _values(tree[path[0]], path[1:])
