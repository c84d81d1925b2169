"""Live objects in memory: compact, indexed, and looked at through views that never change.

Vocabulary: a *stored* object is its bytes plus the few fields that are looked up; a *table* holds the objects of one
feed and is written by the cache alone; a *snapshot* shows all tables as they were at one moment.

Rules: a snapshot costs the same for ten objects and for ten thousand. A table is a large *base* that is never changed
once somebody has seen it, and a few *recent* changes beside it; when these grow, both are merged into a new base.
Indexes belong to a base and are built when first asked for. StoredObject objects are complete: the merge needs every field.

Pure: no I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, Self, TypeVar

import orjson

from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, controller_of

_MOST_RECENT = 64


@dataclass(frozen=True, slots=True, eq=False)
class StoredObject:
    """One live object: what is looked up of it, and all of it as *raw* JSON."""

    ref: ObjectRef
    gvk: GroupVersionKind
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    controller_uid: str
    raw: bytes

    @classmethod
    def of(cls, manifest: Manifest, gvk: GroupVersionKind) -> Self:
        """Return *manifest*, an object of kind *gvk* as the server sent it, for keeping."""
        metadata = manifest["metadata"]
        owner = controller_of(manifest) if "ownerReferences" in metadata else None
        labels = metadata.get("labels")
        return cls(
            ref=ObjectRef(gvk.group, gvk.kind, metadata.get("namespace") or "", metadata["name"]),
            gvk=gvk,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
            labels=_shared(tuple(labels.items())) if labels else _NO_LABELS,
            controller_uid=(owner or {}).get("uid") or "",
            raw=_compact(orjson.dumps(manifest)),
        )

    def manifest(self) -> dict[str, Any]:
        """Return the whole object, parsed afresh."""
        found: dict[str, Any] = orjson.loads(self.raw)
        return found


def _compact(text: bytes) -> bytes:
    """Return a copy of no more room than its length: orjson's own keep the kilobytes that they were written into."""
    return bytes(memoryview(text))


_NO_LABELS: Mapping[str, str] = {}


@lru_cache(maxsize=4096)
def _shared(labels: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """Return one mapping for all objects with the same labels: there are far fewer of these than objects."""
    return dict(labels)


def newer(version: str, than: str) -> bool:
    """Tell whether a resourceVersion is later than another one of the same kind of object.

    They compare as numbers where both are (all of Kubernetes' own are); otherwise any other one counts as newer.
    """
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than


def older(version: str, than: str) -> bool:
    """Tell whether a resourceVersion is certainly earlier than another one: both are numbers, and it is the smaller."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


_Key = TypeVar("_Key")


class _Grouped(Generic[_Key]):
    """Objects by some key of theirs, sorted by reference."""

    def __init__(self, objects: Iterable[StoredObject], key: Callable[[StoredObject], _Key | None]) -> None:
        found: dict[_Key, list[StoredObject]] = {}
        for stored in objects:
            value = key(stored)
            if value:
                found.setdefault(value, []).append(stored)
        self._found = {value: tuple(sorted(group, key=_by_ref)) for value, group in found.items()}

    def get(self, value: _Key) -> tuple[StoredObject, ...]:
        return self._found.get(value, ())


def _by_ref(stored: StoredObject) -> ObjectRef:
    return stored.ref


class _Base:
    """Objects that don't change any more, and indexes over them that are built on first use."""

    __slots__ = ("_labels", "_owners", "objects")

    def __init__(self, objects: dict[ObjectRef, StoredObject]) -> None:
        self.objects = objects
        self._owners: _Grouped[str] | None = None
        self._labels: dict[str, _Grouped[str]] = {}

    def owned_by(self, uid: str) -> tuple[StoredObject, ...]:
        if self._owners is None:
            self._owners = _Grouped(self.objects.values(), lambda stored: stored.controller_uid)
        return self._owners.get(uid)

    def labelled(self, key: str, value: str) -> tuple[StoredObject, ...]:
        if key not in self._labels:
            self._labels[key] = _Grouped(self.objects.values(), lambda stored: stored.labels.get(key))
        return self._labels[key].get(value)


class FeedView:
    """The objects of one feed at one moment."""

    __slots__ = ("_base", "_recent")

    def __init__(self, base: _Base, recent: Mapping[ObjectRef, StoredObject | None]) -> None:
        self._base = base
        self._recent = recent

    def get(self, ref: ObjectRef) -> StoredObject | None:
        """Return the object *ref*, or None."""
        return self._recent[ref] if ref in self._recent else self._base.objects.get(ref)

    def __iter__(self) -> Iterator[StoredObject]:
        return self._with_recent(self._base.objects.values(), lambda _: True)

    def owned_by(self, uid: str) -> Iterator[StoredObject]:
        """Yield the objects whose controller has this *uid*."""
        return self._with_recent(self._base.owned_by(uid), lambda stored: stored.controller_uid == uid)

    def labelled(self, key: str, value: str) -> Iterator[StoredObject]:
        """Yield the objects with this label."""
        return self._with_recent(self._base.labelled(key, value), lambda stored: stored.labels.get(key) == value)

    def _with_recent(
        self, old: Iterable[StoredObject], wanted: Callable[[StoredObject], bool]
    ) -> Iterator[StoredObject]:
        if not self._recent:
            yield from old
            return
        for stored in old:
            if stored.ref not in self._recent:
                yield stored
        for recent in self._recent.values():
            if recent is not None and wanted(recent):
                yield recent


class Table:
    """The objects of one feed. Writing is cheap, and so is taking a view."""

    def __init__(self) -> None:
        self._base = _Base({})
        self._recent: dict[ObjectRef, StoredObject | None] = {}
        self._view: FeedView | None = None

    def get(self, ref: ObjectRef) -> StoredObject | None:
        """Return the object *ref*, or None."""
        return self._recent[ref] if ref in self._recent else self._base.objects.get(ref)

    def __iter__(self) -> Iterator[StoredObject]:
        return iter(self.view())

    def put(self, stored: StoredObject) -> None:
        """Add an object, or replace the one of its name."""
        self._change(stored.ref, stored)

    def drop(self, ref: ObjectRef) -> None:
        """Remove an object; that it isn't there is fine."""
        self._change(ref, None)

    def replace(self, objects: dict[ObjectRef, StoredObject]) -> None:
        """Hold exactly *objects* from now on; the dictionary is taken over."""
        self._base, self._recent, self._view = _Base(objects), {}, None

    def view(self) -> FeedView:
        """Return the objects as they are now."""
        if self._view is None:
            self._view = FeedView(self._base, dict(self._recent))
        return self._view

    def _change(self, ref: ObjectRef, stored: StoredObject | None) -> None:
        self._view = None
        self._recent[ref] = stored
        if len(self._recent) > max(_MOST_RECENT, len(self._base.objects) // 64):
            merged = {**self._base.objects, **self._recent}
            self.replace({key: value for key, value in merged.items() if value is not None})


@dataclass(frozen=True, slots=True)
class CacheSnapshot:
    """All cached objects at one moment. Asking it costs no request, and it never changes.

    Where feeds overlap, the newest state of an object counts. Results are sorted by reference.
    *unsynced* are the kinds of which this may not be all: nothing may be concluded from an absence there.
    """

    _views: Mapping[GroupKind, tuple[FeedView, ...]] = field(default_factory=dict)
    unsynced: frozenset[GroupKind] = frozenset()

    def stored(self, ref: ObjectRef) -> StoredObject | None:
        """Return the object *ref* as stored, None if no feed has it."""
        found: StoredObject | None = None
        for view in self._views.get(ref.group_kind, ()):
            other = view.get(ref)
            if other is not None and (found is None or newer(other.resource_version, found.resource_version)):
                found = other
        return found

    def get(self, ref: ObjectRef) -> Manifest | None:
        """Return the object *ref* parsed, None if no feed has it."""
        stored = self.stored(ref)
        return None if stored is None else stored.manifest()

    def owned_by(self, uid: str) -> tuple[StoredObject, ...]:
        """Return the objects whose controller (owner reference) has this *uid*."""
        return self._collect(self._views, lambda view: view.owned_by(uid))

    def labelled(self, key: str, value: str) -> tuple[StoredObject, ...]:
        """Return the objects with this label."""
        return self._collect(self._views, lambda view: view.labelled(key, value))

    def of_kind(self, kind: GroupKind, namespace: str = "") -> tuple[StoredObject, ...]:
        """Return the objects of *kind*, in one *namespace* or in all."""
        found = self._collect((kind,), iter)
        return tuple(stored for stored in found if stored.ref.namespace == namespace) if namespace else found

    def refs(self) -> tuple[ObjectRef, ...]:
        """Return the references of all objects."""
        return tuple(stored.ref for stored in self._collect(self._views, iter))

    def _collect(
        self, kinds: Iterable[GroupKind], select: Callable[[FeedView], Iterator[StoredObject]]
    ) -> tuple[StoredObject, ...]:
        found: list[StoredObject] = []
        for kind in kinds:
            views = self._views.get(kind, ())
            if len(views) == 1:
                found.extend(select(views[0]))
            else:
                candidates = {id(stored): stored for view in views for stored in select(view)}
                newest = (stored for stored in candidates.values() if self.stored(stored.ref) is stored)
                found.extend(newest)
        found.sort(key=_by_ref)
        return tuple(found)
