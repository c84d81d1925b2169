"""Which objects belong to a Sync: an ApplySet, after KEP-3659.

Membership travels with the object: members carry ``applyset.kubernetes.io/part-of: <id>``, applied
in the same request that creates them, so no crash can separate an object from its set. The
parent (our Sync) says which kinds and namespaces members may have, and says so *before* the
first object of a new kind is written. ``kubectl`` reads the same labels.

Pure: names and digests only.
"""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import MEMBER_NAMESPACES, SOURCE
from kubectl_reconcile.core.objects import (
    GroupKind,
    Manifest,
    ObjectRef,
    annotations_of,
    labels_of,
    mapping_of,
    maps_in,
    metadata_of,
)
from kubectl_reconcile.core.ssa.managed_fields import BEFORE_FIRST_APPLY

PART_OF = "applyset.kubernetes.io/part-of"
"""Label on every member: the id of its set."""

ID = "applyset.kubernetes.io/id"
"""Label on the parent: the id of its set."""

_TOOLING = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
_NAMESPACES = "applyset.kubernetes.io/additional-namespaces"
_STATUS: Final = "contents"

MOST_PLACES: Final = 200
"""In so many namespaces members of one set are looked for: who may write a Sync may name any number of them."""
_MOST_KINDS: Final = 500
_MOST_OF_PLACES = 64 * 1024
"""So long a list of places is left out: all annotations of an object have 256 KiB."""


@lru_cache(maxsize=4096)
def applyset_id(parent: ObjectRef) -> str:
    """Return the id of the set whose parent is *parent*, by the KEP's formula."""
    text = f"{parent.name}.{parent.namespace}.{parent.kind}.{parent.group}"
    digest = hashlib.sha256(text.encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def set_of(sync: ObjectRef) -> str:
    """Return the id of a Sync's set; of a Sync of which only that is known it is its name, in no namespace."""
    return applyset_id(sync) if sync.namespace else sync.name


class Contents(Struct, frozen=True):
    """Kinds and namespaces that members of a set may have.

    *where* has the kinds that aren't in all of the *namespaces*, each with its own, and none for what is in no namespace. *is_detailed* is False where a parent that was written before says
    nothing of that: then some of the namespaces may never have had members of some kinds. *hints* are those of the namespaces that annotations alone
    tell, which whoever may write the parent may write.
    """

    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    where: Mapping[GroupKind, frozenset[str]] = field(default_factory=dict)
    is_detailed: bool = True
    hints: frozenset[str] = frozenset()

    def places_of(self, kind: GroupKind) -> frozenset[str]:
        """Return the namespaces in which members of *kind* may be."""
        return self.where.get(kind, self.namespaces)

    def __or__(self, other: Contents) -> Contents:
        kinds, namespaces = self.kinds | other.kinds, self.namespaces | other.namespaces
        places = {kind: self._has(kind) | other._has(kind) for kind in kinds}
        where = {kind: found for kind, found in places.items() if found != namespaces}
        sure = (self.namespaces - self.hints) | (other.namespaces - other.hints)
        hints = (self.hints | other.hints) - sure
        return Contents(kinds, namespaces, where, self.is_detailed and other.is_detailed, hints)

    def __le__(self, other: Contents) -> bool:
        is_within = self.kinds <= other.kinds and self.namespaces <= other.namespaces
        return is_within and all(self._has(kind) <= other._has(kind) for kind in self.kinds)

    def _has(self, kind: GroupKind) -> frozenset[str]:
        return self.places_of(kind) if kind in self.kinds else frozenset()

    @classmethod
    def of(cls, refs: Iterable[ObjectRef]) -> Contents:
        """Return the kinds and namespaces of *refs*."""
        places: dict[GroupKind, set[str]] = defaultdict(set)
        for group, kind, namespace in {(ref.group, ref.kind, ref.namespace) for ref in refs}:
            places[GroupKind(group, kind)] |= {namespace} - {""}
        namespaces = frozenset(chain.from_iterable(places.values()))
        where = {kind: frozenset(found) for kind, found in places.items() if found != namespaces}
        return cls(frozenset(places), namespaces, where)

    @classmethod
    def recorded(cls, parent: Manifest) -> Contents:
        """Return what a live parent says of its members, by the KEP's annotations and by its status; malformed entries are passed over.

        Of annotations no more is read than may be looked at: whoever may write the parent may write them.
        """
        noted, told = annotations_of(parent), cls.told(parent)
        kinds = frozenset(map(_kind, _entries(noted.get(_KINDS, ""))[:_MOST_KINDS]))
        listed = frozenset(_entries(noted.get(_NAMESPACES, ""))[:MOST_PLACES])
        home = str((parent.get("metadata") or {}).get("namespace") or "")
        namespaces = listed | ({home} - {""})
        where = dict(_places(noted.get(MEMBER_NAMESPACES, ""), namespaces))
        is_detailed = MEMBER_NAMESPACES in noted or len(namespaces) < 2
        found = cls(kinds, namespaces, where, is_detailed)
        if not (told.kinds <= kinds and told.namespaces <= namespaces):
            found |= told
        return found

    @classmethod
    def looked_for(cls, parent: Manifest) -> Contents:
        """Return the same for whoever looks for members: with those namespaces as *hints* that annotations alone tell."""
        found = cls.recorded(parent)
        return replace(found, hints=found.namespaces - cls.told(parent).namespaces)

    @classmethod
    def told(cls, parent: Manifest) -> Contents:
        """Return what the status of a live parent says of its members, which nobody but a daemon writes, and where it is itself."""
        contents = mapping_of(mapping_of(parent.get("status")).get(_STATUS))
        kinds, namespaces = (contents.get(name) for name in ("groupKinds", "namespaces"))
        home = str((parent.get("metadata") or {}).get("namespace") or "")
        return cls(frozenset(map(_kind, _texts(kinds))), frozenset({*_texts(namespaces), home} - {""}))

    def noted(self, status: Manifest, home: str) -> dict[str, Any]:
        """Return a status of the parent in the namespace *home* that says this of its members, as far as there is room."""
        kinds, namespaces = sorted(map(str, self.kinds)), sorted(self.namespaces - {home})
        contents = {"groupKinds": kinds[:_MOST_KINDS], "namespaces": namespaces[:MOST_PLACES]}
        return {**status, _STATUS: {name: texts for name, texts in contents.items() if texts}}

    def metadata(self, parent: ObjectRef, tooling: str) -> dict[str, Any]:
        """Return the labels and annotations that make *parent* the parent of a set with these contents.

        The parent's own namespace isn't listed: the KEP counts it in by itself.
        """
        namespaces = self.namespaces | {parent.namespace}
        places = {
            kind: found for kind in self.kinds if (found := self.places_of(kind)) not in (frozenset(), namespaces)
        }
        told = ";".join(f"{kind}={','.join(sorted(found))}" for kind, found in sorted(places.items()))
        detail = {MEMBER_NAMESPACES: told if len(told) <= _MOST_OF_PLACES else ""} if len(namespaces) > 1 else {}
        return {
            "labels": {ID: applyset_id(parent)},
            "annotations": {
                _TOOLING: tooling,
                _KINDS: ",".join(sorted(map(str, self.kinds))),
                _NAMESPACES: ",".join(sorted(self.namespaces - {parent.namespace})),
                **detail,
            },
        }


def may_be_member(ref: ObjectRef, places: Collection[str] | None) -> bool:
    """Tell whether what carries a set's label may be a member, by where it is."""
    return may_be_in(ref.namespace, places)


def may_be_in(namespace: str, places: Collection[str] | None) -> bool:
    """Tell whether what carries a set's label in a *namespace* may be a member: it is cluster-scoped, or the set may have some there.

    An object that carries the label where the set has never been isn't one: anybody can write a label. The parent says
    where members may be before any is written (KEP-3659, "applyset.kubernetes.io/additional-namespaces"). *places* is
    None where that isn't known, and they may be anywhere.
    """
    return places is None or not namespace or namespace in places


def _places(text: str, known: Collection[str]) -> Iterator[tuple[GroupKind, frozenset[str]]]:
    """Yield the namespaces of kinds as a parent lists them; one that it doesn't count among its own is none."""
    for entry in text.split(";"):
        name, sign, places = entry.partition("=")
        kind, _, group = name.strip().partition(".")
        found = frozenset(_entries(places)).intersection(known)
        if kind and sign and found:
            yield GroupKind(group, kind), found


def places_beyond(parent: Manifest) -> int:
    """Return how many namespaces the annotation of a live parent names beyond those that are read of it."""
    return max(len(_entries(annotations_of(parent).get(_NAMESPACES, ""))) - MOST_PLACES, 0)


def _kind(entry: str) -> GroupKind:
    kind, _, group = entry.partition(".")
    return GroupKind(group, kind)


def _texts(listed: object) -> list[str]:
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list | tuple) else []


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def member(manifest: Manifest, *, set_id: str, source: str) -> dict[str, Any]:
    """Return *manifest* with the marks of a member; the input stays as it is."""
    metadata = dict(manifest.get("metadata") or {})
    metadata["labels"] = {**labels_of(manifest), PART_OF: set_id}
    metadata["annotations"] = {**annotations_of(manifest), SOURCE: source}
    return {**manifest, "metadata": metadata}


def is_marked_by_us(manifest: Manifest, manager: str = "") -> bool:
    """Tell whether we put the membership label on, and not a controller that copies labels about.

    The server copies a Service's labels to its Endpoints and EndpointSlices; those aren't members. *manager* is the
    field manager of the Sync; unless it is known, whoever applied both our label and our annotation passes for it.
    """
    for entry in maps_in(metadata_of(manifest).get("managedFields")):
        fields = mapping_of(mapping_of(entry.get("fieldsV1")).get("f:metadata"))
        if f"f:{PART_OF}" not in mapping_of(fields.get("f:labels")):
            continue
        applied = entry.get("operation") == "Apply" and f"f:{SOURCE}" in mapping_of(fields.get("f:annotations"))
        if entry.get("manager") == manager if manager else applied:
            return True
    return False


def has_lost_its_writer(manifest: Manifest) -> bool:
    """Tell whether an object carries all marks of a member, and nobody is recorded to have written them: its managedFields were wiped.

    Somebody replaced it without them, or the server failed to convert it and forgot all owners. Whoever makes an object with these marks, or
    copies them, is recorded.
    """
    if PART_OF not in labels_of(manifest) or SOURCE not in annotations_of(manifest):
        return False
    for entry in maps_in(metadata_of(manifest).get("managedFields")):
        metadata = mapping_of(mapping_of(entry.get("fieldsV1")).get("f:metadata"))
        if entry.get("manager") != BEFORE_FIRST_APPLY and f"f:{PART_OF}" in mapping_of(metadata.get("f:labels")):
            return False
    return True
