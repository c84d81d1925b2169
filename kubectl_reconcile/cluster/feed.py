"""What one feed holds, and what happens to it when the server, or we ourselves, say something new.

Vocabulary: a *feed* is what is asked of the server: one resource, narrowed by label selector or namespace. Its
*position* is the resourceVersion up to which the server has told us everything about it; *loaded* says that it has told
us a complete list. *Own writes* are told by whoever made them, often before the server's watch tells the same.

*Kept* is what is held whole; of anything else the feed knows only that it is there.

Rules: nothing older than an own write, or than a deletion of our own, replaces it. A list that is compared with what
was known reports what vanished as deleted, and nothing of what stayed. What the watch has already told, an own write
that is reported late can't undo. Of what is being deleted for long, and of which nothing is told, a list is asked now and then: whoever missed its end would wait for it forever.

Pure: lists, events and writes in, changes out; asking the server is the cache's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum

from msgspec import Struct, field

from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.store import StoredObject, Table, newer, older
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.selector import Selector

_MOST_GONE = 10_000
_SELDOM = 32


class Feed(Struct, frozen=True):
    """What to hold: the objects of a resource, narrowed by label selector, namespace and name (empty: all).

    They are asked for as *user* (empty: as whoever the cache's client is).
    """

    resource: Resource
    label_selector: str = ""
    namespace: str = ""
    user: str = ""
    name: str = ""

    def __str__(self) -> str:
        place = f"{f' {self.name}' if self.name else ''}{f' in {self.namespace}' if self.namespace else ''}"
        labels = f" with {self.label_selector}" if self.label_selector else ""
        return f"{self.resource}{place}{labels}{f' as {self.user}' if self.user else ''}"


class EventKind(StrEnum):
    """What happened to an object as a feed sees it."""

    ADDED = "added"
    """It is new, or has come to match the feed's selector."""
    MODIFIED = "modified"
    """It is another version of the object, or another object of the same name."""
    DELETED = "deleted"
    """It is gone, or no longer matches the feed's selector."""


class Event(Struct, frozen=True):
    """One change of a feed; *own* tells changes that we wrote ourselves from those the server told us.

    *after_gap* says that a list has shown it, so that what came before it may never have been told.
    """

    kind: EventKind
    ref: ObjectRef
    old: StoredObject | None
    new: StoredObject | None
    feed: Feed
    own: bool = False
    after_gap: bool = False


class FeedContents(Struct, eq=False):
    """What is known of one feed. Each method takes one piece of news and returns the resulting changes.

    *gone* maps the uid of what we removed to the version up to which news of it is stale (empty: forever). *silent* counts the watches that told
    nothing more of an object that is being deleted, by its version. *keeps* tells which objects are held whole; its answer may change, and then ``slim`` and ``complete`` bring about what it says.
    """

    feed: Feed
    selector: Selector
    table: Table = field(default_factory=Table)
    position: str = ""
    loaded: bool = False
    gone: dict[str, str] = field(default_factory=dict)
    silent: dict[str, int] = field(default_factory=dict)
    keeps: Callable[[StoredObject], bool] = lambda _: True

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of all the feed's objects."""
        return self.feed.resource.gvk

    def may_hold(self, ref: ObjectRef) -> bool:
        """Tell whether an object of this reference is the feed's business, labels aside."""
        is_there = self.feed.namespace in {"", ref.namespace} and self.feed.name in {"", ref.name}
        return self.gvk.group_kind == ref.group_kind and is_there

    def adopt(self, found: dict[ObjectRef, StoredObject], version: str) -> list[Event]:
        """Take *found*, a complete list as of *version*, for what is there; own writes since then stay."""
        before = {stored.ref: stored for stored in self.table}
        now = {ref: stored for ref, stored in found.items() if not self._is_stale(stored)}
        for ref, known in before.items():
            listed = now.get(ref)
            if older(version, known.resource_version) if listed is None else not _replaces(listed, known):
                now[ref] = listed if listed is not None and _completes(listed, known) else known
        self.table.replace(now)
        self.position, self.loaded = version, True
        vanished = [self._event(known, None, after_gap=True) for ref, known in before.items() if ref not in now]
        return vanished + [
            self._event(before.get(ref), new) for ref, new in now.items() if _replaces(new, before.get(ref))
        ]

    def doubts(self) -> bool:
        """Take in that a watch has ended; tell whether a list should say if what is being deleted is still there: after two watches that told nothing of it, and ever more seldom."""
        going = (f"{stored.uid}/{stored.resource_version}" for stored in self.table if stored.is_going)
        self.silent = {each: self.silent.get(each, 0) + 1 for each in going}
        return any(times > 1 and (times.bit_count() == 1 or times % _SELDOM == 0) for times in self.silent.values())

    def held(self, stored: StoredObject) -> StoredObject:
        """Return an object as it is to be held: whole or bare."""
        return stored if self.keeps(stored) else stored.bare(self.selector.keys)

    def complete(self, found: Mapping[ObjectRef, StoredObject]) -> list[Event]:
        """Take over of *found*, a list made beside the watch, what is held bare and to be held whole. The rest is the watch's to tell."""
        changes: list[Event] = []
        for ref, listed in found.items():
            known = self.table.get(ref)
            if known is None or known.is_whole or self._is_stale(listed):
                continue
            if _completes(listed, known):
                self.table.put(listed)
            elif listed.is_whole and _replaces(listed, known):
                changes += self._put(listed)
        return changes

    def slim(self) -> None:
        """Hold bare what is kept no more."""
        self.table.replace({stored.ref: self.held(stored) if stored.is_whole else stored for stored in self.table})

    def absorb(self, type_: str, manifest: Manifest) -> list[Event]:
        """Take over one event of the watch, unless we know better from a write of our own."""
        changes: list[Event] = []
        version = manifest["metadata"].get("resourceVersion") or self.position
        if type_ != "BOOKMARK":
            stored = self.held(StoredObject.of(manifest, self.gvk))
            known = self.table.get(stored.ref)
            if type_ == "DELETED":
                if known is not None and not older(stored.resource_version, known.resource_version):
                    changes = self._drop(known)
            elif not self._is_stale(stored) and _replaces(stored, known):
                changes = self._put(stored)
        self.position = version
        return changes

    def wrote(self, stored: StoredObject) -> list[Event]:
        """Take over an own write, unless the watch has told what came after it."""
        known = self.table.get(stored.ref)
        told = self.loaded and not newer(stored.resource_version, self.position)
        if self.gvk != stored.gvk or told or self._is_stale(stored) or not _replaces(stored, known):
            return []
        if self.selector.matches(stored.labels):
            return self._put(self.held(stored), own=True)
        self._forget(stored.uid, stored.resource_version)
        return self._drop(known, own=True)

    def deleted(self, ref: ObjectRef, uid: str) -> list[Event]:
        """Take over an own delete: the object of this *uid* (empty: the one that is known) never comes back."""
        known = self.table.get(ref)
        removed = uid or (known.uid if known else "")
        if removed:
            self._forget(removed, "")
        return self._drop(known, own=True) if known and known.uid == removed else []

    def clear(self) -> list[Event]:
        """Release everything: the kind itself is gone."""
        known = tuple(self.table)
        self.table.replace({})
        self.unload()
        return [self._event(stored, None, after_gap=True) for stored in known]

    def unload(self) -> None:
        """Forget the position: what is held may have gaps until the next list is adopted."""
        self.position, self.loaded = "", False

    def _is_stale(self, stored: StoredObject) -> bool:
        until = self.gone.get(stored.uid)
        return until is not None and (until == "" or not newer(stored.resource_version, until))

    def _forget(self, uid: str, until: str) -> None:
        self.gone[uid] = until
        if len(self.gone) > _MOST_GONE:
            del self.gone[next(iter(self.gone))]

    def _put(self, stored: StoredObject, *, own: bool = False) -> list[Event]:
        known = self.table.get(stored.ref)
        self.table.put(stored)
        return [self._event(known, stored, own=own)]

    def _drop(self, known: StoredObject | None, *, own: bool = False) -> list[Event]:
        if known is None:
            return []
        self.table.drop(known.ref)
        return [self._event(known, None, own=own)]

    def _event(
        self, old: StoredObject | None, new: StoredObject | None, *, own: bool = False, after_gap: bool = False
    ) -> Event:
        kind = EventKind.ADDED if old is None else EventKind.DELETED if new is None else EventKind.MODIFIED
        return Event(kind, _any(old, new).ref, old, new, self.feed, own, after_gap)


def _replaces(stored: StoredObject, known: StoredObject | None) -> bool:
    return known is None or newer(stored.resource_version, known.resource_version)


def _completes(stored: StoredObject, known: StoredObject) -> bool:
    """Tell whether one is the whole of what is known bare, and nothing newer."""
    return stored.is_whole and not known.is_whole and stored.resource_version == known.resource_version


def _any(*candidates: StoredObject | None) -> StoredObject:
    return next(stored for stored in candidates if stored is not None)
