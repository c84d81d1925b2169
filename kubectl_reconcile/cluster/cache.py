"""Live objects followed: one list and one watch per feed, and snapshots of them all.

Vocabulary: a *feed* is what is asked of the server (``feed.py``); it is *filled* once, or *followed*. It is *synced*
while what it holds is a complete list that is being kept up to date. *Own writes* are told to the cache by whoever
made them.

Rules:
- Read your writes: nothing older than an own write, or than a deletion of our own, is ever shown again.
- How each feed is listed and watched is its reflector's business (``reflector.py``); one feed's failure never touches others.
- What vanished while a feed was away is reported as deleted, what stayed isn't.
- A kind that disappears takes its objects along, and its feed isn't synced until the kind is back.
- Subscribers are called in the event loop and must not block.

Absent from a label-selected feed is not absent from the cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import (
    ApiError,
    Unauthorized,
    Unreachable,
)
from kubectl_reconcile.cluster.feed import Event, EventKind, Feed, FeedContents
from kubectl_reconcile.cluster.reflector import Reflector, fails_by_itself
from kubectl_reconcile.cluster.selector import Selector
from kubectl_reconcile.cluster.store import CacheSnapshot, FeedView, StoredObject
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef

__all__ = ["Cache", "CacheSnapshot", "Event", "EventKind", "Feed", "StoredObject"]

_LOG = logging.getLogger(__name__)

_FILLS_AT_ONCE = 8


class Cache:
    """Live objects of one cluster, read through *client*, as itself or as a feed's user. Close it before the client.

    *keeps* tells which objects of a feed are held whole. Where its answer changes, ``slim`` releases what it keeps no more, and
    ``complete`` reads again what it keeps from now on.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.keeps: Callable[[Feed, StoredObject], bool] = lambda _feed, _stored: True
        self._reflectors: dict[Feed, Reflector] = {}
        self._snapshot: CacheSnapshot | None = None
        self._subscribers: list[Callable[[Event], None]] = []
        self._turn = asyncio.Event()

    async def close(self) -> None:
        """Stop following. Snapshots stay as they are."""
        await asyncio.gather(*(self.unfollow(feed) for feed in tuple(self._reflectors)))

    # --- what is held -------------------------------------------------------------------------------------------------

    def snapshot(self) -> CacheSnapshot:
        """Return all objects as they are now. Costs no request, and next to nothing."""
        if self._snapshot is None:
            views: dict[GroupKind, tuple[FeedView, ...]] = {}
            for reflector in self._reflectors.values():
                kind = reflector.contents.gvk.group_kind
                views[kind] = (*views.get(kind, ()), reflector.contents.table.view())
            unsynced = frozenset(
                reflector.contents.gvk.group_kind for reflector in self._reflectors.values() if not reflector.synced
            )
            self._snapshot = CacheSnapshot(views, unsynced)
        return self._snapshot

    def snapshot_of(self, feeds: Iterable[Feed]) -> CacheSnapshot:
        """Return the objects of these *feeds* alone, as they are now; what isn't followed shows nothing."""
        views: dict[GroupKind, tuple[FeedView, ...]] = {}
        reflectors = [self._reflectors[feed] for feed in dict.fromkeys(feeds) if feed in self._reflectors]
        for reflector in reflectors:
            kind = reflector.contents.gvk.group_kind
            views[kind] = (*views.get(kind, ()), reflector.contents.table.view())
        return CacheSnapshot(views, frozenset(each.contents.gvk.group_kind for each in reflectors if not each.synced))

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """The feeds that are filled or followed."""
        return tuple(self._reflectors)

    def synced(self, feed: Feed) -> bool:
        """Tell whether the feed's objects are complete and (if followed) being kept up to date."""
        reflector = self._reflectors.get(feed)
        return reflector is not None and reflector.synced

    def failure(self, feed: Feed) -> ApiError | None:
        """Return why the feed isn't synced, None if it is or nothing has gone wrong so far."""
        reflector = self._reflectors.get(feed)
        return reflector.failure if reflector else None

    async def wait_synced(self, feeds: Iterable[Feed] | None = None, *, timeout_s: float | None = None) -> bool:
        """Wait until each of *feeds* (default: all) is synced or can't be for a lasting reason; tell if all are.

        Lasting reasons are missing rights, a kind that doesn't exist, and one that nobody serves or converts while other kinds are
        served. After *timeout_s* the answer is no.

        Raises:
            KeyError: one of *feeds* is neither filled nor followed.
        """
        chosen = tuple(self._reflectors.values() if feeds is None else (self._reflectors[feed] for feed in feeds))
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not all(
                    reflector.settled or _fails_alone(reflector, self._reflectors.values()) for reflector in chosen
                ):
                    await self._turn.wait()
        return all(reflector.synced for reflector in chosen)

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call *callback* with every change of an object from now on; return what ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    # --- filling and following ----------------------------------------------------------------------------------------

    async def fill(self, feeds: Iterable[Feed]) -> None:
        """List *feeds* once, several at a time. What fails for one feed is that feed's ``failure``.

        Raises:
            Unreachable: the server doesn't answer.
            Unauthorized: it doesn't know us. No feed can succeed then.
            ValueError: a label selector can't be read.
        """
        limit = asyncio.Semaphore(_FILLS_AT_ONCE)

        async def one(reflector: Reflector) -> None:
            async with limit:
                await reflector.fill()

        reflectors = [self._reflector(feed) for feed in dict.fromkeys(feeds)]
        await asyncio.gather(*(one(each) for each in reflectors if each.task is None))
        for each in reflectors:
            if isinstance(each.failure, Unreachable | Unauthorized):
                raise each.failure

    def follow(self, feed: Feed) -> None:
        """Keep *feed* up to date from now on. Following it again tries it at once, should it wait after a failure.

        Raises:
            ValueError: the label selector can't be read.
        """
        self._reflector(feed).follow()

    async def unfollow(self, feed: Feed) -> None:
        """Stop following *feed* and release its objects, without events. An unknown feed is fine."""
        reflector = self._reflectors.pop(feed, None)
        self._snapshot = None
        if reflector is not None:
            await reflector.stop()

    # --- what is held whole -------------------------------------------------------------------------------------------

    async def complete(self, feed: Feed) -> None:
        """Read *feed* once more, for what is to be held whole and isn't. Its watch goes on meanwhile.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        if reflector := self._reflectors.get(feed):
            found, _ = await reflector.listed()
            self._publish(reflector.contents.complete(found))
            self._snapshot = None

    def slim(self) -> None:
        """Release what needn't be held whole any more, without events."""
        for reflector in self._reflectors.values():
            reflector.contents.slim()
        self._snapshot = None

    # --- own writes ---------------------------------------------------------------------------------------------------

    def wrote(self, manifest: Manifest) -> None:
        """Take over an object as the server returned it from a write of ours, so that no snapshot is older."""
        stored = StoredObject.of(manifest, GroupVersionKind.of(manifest))
        for reflector in self._holding(stored.ref):
            self._publish(reflector.contents.wrote(stored))
            if reflector.contents.selector.matches(stored.labels):
                reflector.expect(stored.resource_version)

    def deleted(self, ref: ObjectRef, uid: str = "") -> None:
        """Take over that a delete of ours is done (the server said Success): the object never comes back.

        Of an object that is only terminating, ``wrote`` what the server returned instead.
        """
        for reflector in self._holding(ref):
            self._publish(reflector.contents.deleted(ref, uid))

    # --- telling ------------------------------------------------------------------------------------------------------

    def _publish(self, changes: Iterable[Event]) -> None:
        for change in changes:
            self._snapshot = None
            for callback in tuple(self._subscribers):
                _call(callback, change)

    def _turned(self) -> None:
        """Wake whoever waits for feeds: one has become synced, or failed."""
        self._snapshot = None
        self._turn.set()
        self._turn = asyncio.Event()

    def _reflector(self, feed: Feed) -> Reflector:
        found = self._reflectors.get(feed)
        if found is None:
            selector = Selector.parse(feed.label_selector)
            contents = FeedContents(feed, selector, keeps=lambda stored: self.keeps(feed, stored))
            client = self.client.impersonate(feed.user) if feed.user else self.client
            found = self._reflectors[feed] = Reflector(client, contents, self._publish, self._turned)
            self._snapshot = None
        return found

    def _holding(self, ref: ObjectRef) -> list[Reflector]:
        return [each for each in self._reflectors.values() if each.contents.may_hold(ref)]


def _call(callback: Callable[..., None], *arguments: Any) -> None:
    """Call a subscriber; its exceptions are its own trouble, not the feed's."""
    try:
        callback(*arguments)
    except Exception:  # noqa: BLE001 - it may be any, and the feed must go on
        _LOG.exception("subscriber failed")


def _fails_alone(reflector: Reflector, others: Iterable[Reflector]) -> bool:
    """Tell whether a feed fails for a reason that isn't the server's as a whole: those of other kinds are kept up to date."""
    return fails_by_itself(reflector) and any(
        other.synced and other.contents.gvk != reflector.contents.gvk for other in others
    )
