"""Live objects in memory: compact, indexed, and looked at through views that never change.

Vocabulary: a *stored* object is its bytes plus the few fields that are looked up; a *table* holds the objects of one
feed and is written by the cache alone; a *snapshot* shows all tables as they were at one moment.

Rules: a snapshot costs the same for ten objects and for ten thousand. A table is a large *base* that is never changed
once somebody has seen it, and a few *recent* changes beside it; when these grow, both are merged into a new base.
Indexes belong to a base and are built when first asked for. A *whole* object has every field, for the merge needs them all; a *bare*
one, of which nothing but its existence matters here, has none: where some feed has it whole, that is what is shown.

Pure: no I/O, no clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from sys import intern
from typing import Any, Generic, Self, TypeVar

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import NotHeld
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, controller_of

_MOST_RECENT = 64
_MOST_NOTED = 2048
"""How many changes of a table are known at least, one by one."""


class StoredObject(Struct, frozen=True, eq=False):
    """One live object: what is looked up of it, and all of it as *raw* JSON, empty for a bare one. *is_going* tells that it is being deleted."""

    ref: ObjectRef
    gvk: GroupVersionKind
    uid: str
    resource_version: str
    labels: Mapping[str, str]
    controller_uid: str
    raw: bytes
    is_going: bool = False

    @classmethod
    def of(cls, manifest: Manifest, gvk: GroupVersionKind) -> Self:
        """Return *manifest*, an object of kind *gvk* as the server sent it, for keeping."""
        metadata = manifest["metadata"]
        owner = controller_of(manifest) if "ownerReferences" in metadata else None
        labels = metadata.get("labels")
        return cls(
            ref=ObjectRef(gvk.group, gvk.kind, intern(metadata.get("namespace") or ""), intern(metadata["name"])),
            gvk=gvk,
            uid=metadata.get("uid") or "",
            resource_version=metadata.get("resourceVersion") or "",
            labels=_shared(tuple(labels.items())) if labels else _NO_LABELS,
            controller_uid=(owner or {}).get("uid") or "",
            raw=_compact(orjson.dumps(manifest)),
            is_going=bool(metadata.get("deletionTimestamp")),
        )

    @property
    def is_whole(self) -> bool:
        """Whether all of it is held."""
        return bool(self.raw)

    @property
    def version(self) -> str:
        """What tells this very state of it from all others; empty where nothing does."""
        return f"{self.uid}/{self.resource_version}" if self.is_whole and self.uid and self.resource_version else ""

    def is_version_of(self, manifest: Manifest) -> bool:
        """Tell whether *manifest*, which the server sent, is this very state of this very object."""
        metadata = manifest["metadata"]
        return bool(self.version) and self.version == f"{metadata.get('uid')}/{metadata.get('resourceVersion')}"

    def bare(self, labels: Collection[str]) -> Self:
        """Return what tells that it is there, with those of its labels that have these keys."""
        kept = tuple((key, value) for key, value in self.labels.items() if key in labels)
        return replace(self, labels=_shared(kept) if kept else _NO_LABELS, raw=b"")

    def manifest(self) -> dict[str, Any]:
        """Return the whole object, parsed afresh.

        Raises:
            NotHeld: it is bare.
        """
        if not self.raw:
            raise NotHeld(f"{self.ref} isn't cached here: another replica works on its Sync")
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


def _outranks(stored: StoredObject, other: StoredObject) -> bool:
    """Tell whether of two states of one object the first is shown: whole before bare, then the newer one."""
    if stored.is_whole != other.is_whole:
        return stored.is_whole
    return newer(stored.resource_version, other.resource_version)


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


def sorted_by_ref(stored: Iterable[StoredObject]) -> list[StoredObject]:
    """Return objects in the order of their references."""
    return sorted(stored, key=_by_ref)


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


class Journal:
    """Which objects of a table changed, one after the other; of the last ones it is known which."""

    __slots__ = ("_dropped", "_refs")

    def __init__(self) -> None:
        self._refs: list[ObjectRef] = []
        self._dropped = 0

    @property
    def length(self) -> int:
        """How many changes there were up to now."""
        return self._dropped + len(self._refs)

    def note(self, ref: ObjectRef) -> None:
        """Write down that an object has changed."""
        self._refs.append(ref)
        if len(self._refs) > 2 * _MOST_NOTED:
            del self._refs[:_MOST_NOTED]
            self._dropped += _MOST_NOTED

    def between(self, first: int, last: int) -> Sequence[ObjectRef] | None:
        """Return what changed from one length to another, None where that isn't known any more."""
        return None if not self._dropped <= first <= last else self._refs[first - self._dropped : last - self._dropped]


class FeedView:
    """The objects of one feed at one moment, when its table's *journal* had that *length*, and so many were *bare*."""

    __slots__ = ("_base", "_recent", "bare", "journal", "length")

    def __init__(
        self, base: _Base, recent: Mapping[ObjectRef, StoredObject | None], journal: Journal, bare: int
    ) -> None:
        self._base = base
        self._recent = recent
        self.journal, self.length, self.bare = journal, journal.length, bare

    def get(self, ref: ObjectRef) -> StoredObject | None:
        """Return the object *ref*, or None."""
        return self._recent[ref] if ref in self._recent else self._base.objects.get(ref)

    def __iter__(self) -> Iterator[StoredObject]:
        if not self._recent:
            return iter(self._base.objects.values())
        old = (stored for ref, stored in self._base.objects.items() if ref not in self._recent)
        return chain(old, (stored for stored in self._recent.values() if stored is not None))

    @property
    def size(self) -> int:
        """How many objects there are."""
        old = self._base.objects
        return len(old) + sum((stored is not None) - (ref in old) for ref, stored in self._recent.items())

    def owned_by(self, uid: str) -> Sequence[StoredObject]:
        """Return the objects whose controller has this *uid*, sorted by reference."""
        return self._with_recent(self._base.owned_by(uid), lambda stored: stored.controller_uid == uid)

    def labelled(self, key: str, value: str) -> Sequence[StoredObject]:
        """Return the objects with this label, sorted by reference."""
        return self._with_recent(self._base.labelled(key, value), lambda stored: stored.labels.get(key) == value)

    def _with_recent(
        self, old: Sequence[StoredObject], wanted: Callable[[StoredObject], bool]
    ) -> Sequence[StoredObject]:
        recent = self._recent
        if not recent:
            return old
        found = list(old)
        for ref, stored in recent.items():
            now = stored if stored is not None and wanted(stored) else None
            before = self._base.objects.get(ref)
            if now is None and (before is None or not wanted(before)):
                continue  # most of what changed lately is of other sets, and needn't be searched for in this one
            at = bisect_left(found, ref, key=_by_ref)
            was_there = at < len(found) and found[at].ref == ref
            found[at : at + was_there] = [] if now is None else [now]
        return found


def _is_bare(stored: StoredObject | None) -> bool:
    return stored is not None and not stored.raw


class Table:
    """The objects of one feed. Writing is cheap, and so is taking a view."""

    def __init__(self) -> None:
        self._base = _Base({})
        self._recent: dict[ObjectRef, StoredObject | None] = {}
        self._view: FeedView | None = None
        self._journal = Journal()
        self._bare = 0

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
        """Hold exactly *objects* from now on; the dictionary is taken over. Any of them may be another than before."""
        self._rebase(objects)
        self._journal = Journal()
        self._bare = sum(map(_is_bare, objects.values()))

    def view(self) -> FeedView:
        """Return the objects as they are now."""
        if self._view is None:
            self._view = FeedView(self._base, dict(self._recent), self._journal, self._bare)
        return self._view

    def _change(self, ref: ObjectRef, stored: StoredObject | None) -> None:
        self._view = None
        self._journal.note(ref)
        self._bare += _is_bare(stored) - _is_bare(self.get(ref))
        self._recent[ref] = stored
        if len(self._recent) > max(_MOST_RECENT, len(self._base.objects) // 64):
            merged = {**self._base.objects, **self._recent}
            self._rebase({key: value for key, value in merged.items() if value is not None})

    def _rebase(self, objects: dict[ObjectRef, StoredObject]) -> None:
        self._base, self._recent, self._view = _Base(objects), {}, None


class CacheMoment(Struct, frozen=True, eq=False):
    """How long the journals of some kinds were when a snapshot was taken."""

    lengths: Mapping[GroupKind, tuple[tuple[Journal, int], ...]]


class CacheSnapshot(Struct, frozen=True):
    """All cached objects at one moment. Asking it costs no request, and it never changes.

    Where feeds overlap, the newest state of an object counts that is whole. Results are sorted by reference.
    *unsynced* are the kinds of which this may not be all: nothing may be concluded from an absence there.
    """

    _views: Mapping[GroupKind, tuple[FeedView, ...]] = field(default_factory=dict)
    unsynced: frozenset[GroupKind] = frozenset()

    def stored(self, ref: ObjectRef) -> StoredObject | None:
        """Return the object *ref* as stored, None if no feed has it."""
        found: StoredObject | None = None
        for view in self._views.get(ref.group_kind, ()):
            other = view.get(ref)
            if other is not None and (found is None or _outranks(other, found)):
                found = other
        return found

    @property
    def has_bare(self) -> bool:
        """Whether some object is held bare in some feed."""
        return any(view.bare for views in self._views.values() for view in views)

    def get(self, ref: ObjectRef) -> Manifest | None:
        """Return the object *ref* parsed, None if no feed has it."""
        stored = self.stored(ref)
        return None if stored is None else stored.manifest()

    def owned_by(self, uid: str) -> tuple[StoredObject, ...]:
        """Return the objects whose controller (owner reference) has this *uid*."""
        return self._collect(sorted(self._views), lambda view: view.owned_by(uid))

    def labelled(self, key: str, value: str) -> tuple[StoredObject, ...]:
        """Return the objects with this label."""
        return self._collect(sorted(self._views), lambda view: view.labelled(key, value))

    def moment(self, kinds: Iterable[GroupKind]) -> CacheMoment:
        """Return what a later snapshot of the same cache is compared with, as far as objects of *kinds* go."""
        return CacheMoment({kind: self._lengths(kind) for kind in kinds})

    def changed_since(self, moment: object) -> Collection[ObjectRef] | None:
        """Return the objects of the moment's kinds that may not be as they were; None where any may be.

        That is where others feeds show a kind than did, where one was listed again, and where too much has changed since.
        """
        if not isinstance(moment, CacheMoment):
            return None
        changed: set[ObjectRef] = set()
        for kind, before in moment.lengths.items():
            now = self._lengths(kind)
            if [journal for journal, _ in before] != [journal for journal, _ in now]:
                return None
            for (journal, first), (_, last) in zip(before, now, strict=True):
                if (refs := journal.between(first, last)) is None:
                    return None
                changed.update(refs)
        return changed

    def _lengths(self, kind: GroupKind) -> tuple[tuple[Journal, int], ...]:
        return tuple((view.journal, view.length) for view in self._views.get(kind, ()))

    def of_kind(self, kind: GroupKind, namespace: str = "") -> tuple[StoredObject, ...]:
        """Return the objects of *kind*, in one *namespace* or in all."""
        found = self._collect((kind,), sorted_by_ref)
        return tuple(stored for stored in found if stored.ref.namespace == namespace) if namespace else found

    def refs(self) -> tuple[ObjectRef, ...]:
        """Return the references of all objects."""
        return tuple(stored.ref for stored in self._collect(sorted(self._views), sorted_by_ref))

    def count(self, *, whole: bool) -> int:
        """Return how many objects are held whole, or how many bare; where no feeds overlap without looking at any."""
        return sum(self._count(views, whole=whole) for views in self._views.values())

    def _count(self, views: Sequence[FeedView], *, whole: bool) -> int:
        if len(views) == 1:
            (view,) = views
            return view.size - view.bare if whole else view.bare
        candidates = {id(stored): stored for view in views for stored in view}
        return sum(stored.is_whole is whole and self.stored(stored.ref) is stored for stored in candidates.values())

    def _collect(
        self, kinds: Iterable[GroupKind], select: Callable[[FeedView], Sequence[StoredObject]]
    ) -> tuple[StoredObject, ...]:
        """Return what *select* finds, which is sorted, in the views of *kinds*, which are sorted as well: nothing else has to be."""
        found: list[StoredObject] = []
        for kind in kinds:
            views = self._views.get(kind, ())
            if len(views) == 1:
                found.extend(select(views[0]))
            else:
                candidates = {id(stored): stored for view in views for stored in select(view)}
                newest = (stored for stored in candidates.values() if self.stored(stored.ref) is stored)
                found.extend(sorted(newest, key=_by_ref))
        return tuple(found)
