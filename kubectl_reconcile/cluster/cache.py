"""Live objects followed: one list and one watch per feed, and snapshots of them all.

Vocabulary: a *feed* is what is asked of the server (``feed.py``); it is *filled* once, or *followed*. It is *synced*
while what it holds is a complete list that is being kept up to date. *Own writes* are told to the cache by whoever
made them.

Rules:
- A feed begins with a streaming list (LIST in pages where the server has none) and goes on by watch, from the same
  position for as long as the server remembers it. When it doesn't (410), the feed is listed again and compared with
  what was known: what vanished meanwhile is reported as deleted, what stayed isn't.
- Read your writes: nothing older than an own write, or than a deletion of our own, is ever shown again.
- Every failure is data (``failure``) and is tried again with growing pauses; one feed's failure never touches others.
  A watch that brings neither events nor bookmarks for too long counts as broken.
- A kind that disappears takes its objects along, and its feed isn't synced until the kind is back.
- Subscribers are called in the event loop and must not block.

Absent from a label-selected feed is not absent from the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubectl_reconcile.cluster.feed import Event, EventKind, Feed, FeedContents
from kubectl_reconcile.cluster.selector import Selector
from kubectl_reconcile.cluster.store import CacheSnapshot, FeedView, StoredObject
from kubectl_reconcile.cluster.transport import Param
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef

__all__ = ["Cache", "CacheSnapshot", "Event", "EventKind", "Feed", "StoredObject"]

_LOG = logging.getLogger(__name__)

_FILLS_AT_ONCE = 8
_INITIAL_S = 60.0
_WATCH_S = (240, 480)
_SILENCE_S = 150.0  # two bookmarks missed: the server sends one a minute
_SHORTEST_WATCH_S = 1.0
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_LONGEST_OUTAGE_PAUSE_S = 3.0
_LONG_OUTAGE = 5  # failures in a row
_LASTING = (NotFound, Forbidden, Unauthorized)
_INITIAL_END = "k8s.io/initial-events-end"


@dataclass(slots=True, eq=False)
class _State:
    """A feed, and how following it goes. *asked*: the failure is from before somebody asked to try again."""

    contents: FeedContents
    failure: ApiError | None = None
    asked: bool = False
    streams: bool = True
    task: asyncio.Task[None] | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def synced(self) -> bool:
        return self.contents.loaded and self.failure is None

    @property
    def settled(self) -> bool:
        """Whether waiting any longer is pointless: it is synced, or can't be for a lasting reason."""
        return self.synced or (isinstance(self.failure, _LASTING) and not self.asked)

    @property
    def feed(self) -> Feed:
        return self.contents.feed

    @property
    def gvk(self) -> GroupVersionKind:
        return self.contents.gvk

    @property
    def path(self) -> str:
        return self.feed.resource.collection(self.feed.namespace)

    @property
    def query(self) -> dict[str, Param]:
        return {"labelSelector": self.feed.label_selector or None}


class Cache:
    """Live objects of one cluster, read through *client*. Close it before the client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._states: dict[Feed, _State] = {}
        self._snapshot: CacheSnapshot | None = None
        self._subscribers: list[Callable[[Event], None]] = []
        self._feed_subscribers: list[Callable[[Feed, ApiError | None], None]] = []
        self._turn = asyncio.Event()

    async def close(self) -> None:
        """Stop following. Snapshots stay as they are."""
        await asyncio.gather(*(self.unfollow(feed) for feed in tuple(self._states)))

    # --- what is held -------------------------------------------------------------------------------------------------

    def snapshot(self) -> CacheSnapshot:
        """Return all objects as they are now. Costs no request, and next to nothing."""
        if self._snapshot is None:
            views: dict[GroupKind, tuple[FeedView, ...]] = {}
            for state in self._states.values():
                kind = state.gvk.group_kind
                views[kind] = (*views.get(kind, ()), state.contents.table.view())
            unsynced = frozenset(state.gvk.group_kind for state in self._states.values() if not state.synced)
            self._snapshot = CacheSnapshot(views, unsynced)
        return self._snapshot

    @property
    def feeds(self) -> tuple[Feed, ...]:
        """The feeds that are filled or followed."""
        return tuple(self._states)

    def synced(self, feed: Feed) -> bool:
        """Tell whether the feed's objects are complete and (if followed) being kept up to date."""
        state = self._states.get(feed)
        return state is not None and state.synced

    def failure(self, feed: Feed) -> ApiError | None:
        """Return why the feed isn't synced, None if it is or nothing has gone wrong so far."""
        state = self._states.get(feed)
        return state.failure if state else None

    async def wait_synced(self, feeds: Iterable[Feed] | None = None, *, timeout_s: float | None = None) -> bool:
        """Wait until each of *feeds* (default: all) is synced or can't be for a lasting reason; tell if all are.

        Lasting reasons are missing rights and a kind that doesn't exist. After *timeout_s* the answer is no.

        Raises:
            KeyError: one of *feeds* is neither filled nor followed.
        """
        chosen = tuple(self._states.values() if feeds is None else (self._states[feed] for feed in feeds))
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not all(state.settled for state in chosen):
                    await self._turn.wait()
        return all(state.synced for state in chosen)

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        """Call *callback* with every change of an object from now on; return what ends that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def subscribe_feeds(self, callback: Callable[[Feed, ApiError | None], None]) -> Callable[[], None]:
        """Call *callback* when a feed becomes synced (None) or fails (why); return what ends that."""
        self._feed_subscribers.append(callback)
        return lambda: self._feed_subscribers.remove(callback)

    # --- filling and following ----------------------------------------------------------------------------------------

    async def fill(self, feeds: Iterable[Feed]) -> None:
        """List *feeds* once, several at a time. What fails for one feed is that feed's ``failure``.

        Raises:
            Unreachable: the server doesn't answer.
            Unauthorized: it doesn't know us. No feed can succeed then.
            ValueError: a label selector can't be read.
        """
        limit = asyncio.Semaphore(_FILLS_AT_ONCE)

        async def one(state: _State) -> None:
            async with limit:
                try:
                    await self._fill(state)
                except ApiError as error:
                    self._failed(state, error)

        states = [self._state(feed) for feed in dict.fromkeys(feeds)]
        await asyncio.gather(*(one(state) for state in states if state.task is None))
        for state in states:
            if isinstance(state.failure, Unreachable | Unauthorized):
                raise state.failure

    def follow(self, feed: Feed) -> None:
        """Keep *feed* up to date from now on. Following it again tries it at once, should it wait after a failure.

        Raises:
            ValueError: the label selector can't be read.
        """
        state = self._state(feed)
        if state.task is None or state.task.done():
            state.task = asyncio.create_task(self._keep(state), name=f"follow {feed}")
        state.asked = True
        state.wake.set()

    async def unfollow(self, feed: Feed) -> None:
        """Stop following *feed* and let go of its objects, without events. An unknown feed is fine."""
        state = self._states.pop(feed, None)
        self._snapshot = None
        if state is not None and state.task is not None:
            state.task.cancel()
            await asyncio.gather(state.task, return_exceptions=True)

    # --- own writes ---------------------------------------------------------------------------------------------------

    def wrote(self, manifest: Manifest) -> None:
        """Take over an object as the server returned it from a write of ours, so that no snapshot is older."""
        stored = StoredObject.of(manifest, GroupVersionKind.of(manifest))
        for contents in self._holding(stored.ref):
            self._publish(contents.wrote(stored))

    def deleted(self, ref: ObjectRef, uid: str = "") -> None:
        """Take over that a delete of ours is done (the server said Success): the object never comes back.

        Of an object that is only terminating, ``wrote`` what the server returned instead.
        """
        for contents in self._holding(ref):
            self._publish(contents.deleted(ref, uid))

    # --- one feed -----------------------------------------------------------------------------------------------------

    async def _keep(self, state: _State) -> None:
        """Follow one feed for ever: whatever fails is recorded and tried again."""
        failures = 0
        error: ApiError | None = None
        loop = asyncio.get_running_loop()
        while True:
            started_s, was_away = loop.time(), _is_outage(error)
            state.wake.clear()
            try:
                await self._watch(state)
                error = None
            except Gone as gone:
                state.contents.unload()
                self._snapshot = None
                error = None if failures == 0 else gone
            except ApiError as other:
                error = other
            except Exception as unforeseen:  # noqa: BLE001 - a feed never dies silently
                _LOG.exception('feed broke feed="%s"', state.feed)
                error = ServerError(f"{state.feed} can't be followed: {unforeseen!r}", reason="BadAnswer")
            if error is None and loop.time() - started_s >= _SHORTEST_WATCH_S:
                failures = 0
                continue
            if was_away and not _is_outage(error) and failures >= _LONG_OUTAGE:
                # What comes with the end of one, a forgotten position or rights not loaded yet, will soon be over.
                failures = 0
            failures += 1
            if error is not None:
                self._failed(state, error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_pause_s(error, failures)):
                    await state.wake.wait()

    async def _fill(self, state: _State) -> None:
        """List the feed: small ones by one request on a shared connection, large ones as events on their own.

        Events take a third of the time of pages, but a TLS handshake; that is more than a small list takes.
        """
        page, version, complete = await self._client.first_page(state.path, **state.query)
        if complete:
            self._adopt(state, _by_ref(page, state.gvk), version)
            return
        with suppress(ServerError, TooManyRequests, Unreachable):
            if state.streams and await self._stream(state, {"timeoutSeconds": int(_INITIAL_S)}, follow=False):
                return
        await self._list(state)

    async def _watch(self, state: _State) -> None:
        """List the feed if need be, then absorb what the server tells until it ends the watch."""
        query: dict[str, Param] = {"timeoutSeconds": random.randint(*_WATCH_S)}  # noqa: S311 - spreads load
        if not state.contents.position and state.streams:
            await self._stream(state, query, follow=True)
            return
        if not state.contents.position:
            await self._list(state)
        query["resourceVersion"] = state.contents.position
        watch = self._events(state, query, on_open=lambda: self._recovered(state))
        async with aclosing(watch) as events:
            async for type_, manifest in events:
                self._publish(state.contents.absorb(type_, manifest))

    async def _stream(self, state: _State, query: Mapping[str, Param], *, follow: bool) -> bool:
        """List the feed as events and, to *follow* it, go on in the same watch; tell whether that worked.

        An older server refuses that, or has never heard of the list's end. That is remembered.
        """
        initial: dict[ObjectRef, StoredObject] | None = {}
        asked: dict[str, Param] = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
        watch = self._events(state, {**asked, **query})
        try:
            async with asyncio.timeout(self._initial_s(follow=follow)) as deadline, aclosing(watch) as events:
                async for type_, manifest in events:
                    if initial is None:
                        self._publish(state.contents.absorb(type_, manifest))
                    elif type_ != "BOOKMARK":
                        _collect(initial, type_, StoredObject.of(manifest, state.gvk))
                    elif _is_initial_end(manifest):
                        self._adopt(state, initial, manifest["metadata"]["resourceVersion"])
                        if not follow:
                            return True
                        initial = None
                        deadline.reschedule(None)
        except (Invalid, BadRequest, TimeoutError):
            if initial is None:
                raise
            state.streams = False
            return False
        if initial is not None:
            raise ServerError(f"the list of {state.feed} ended before it was complete", reason="BadAnswer")
        return True

    def _initial_s(self, *, follow: bool) -> float:
        """Return how long a list may take; what the user says of requests counts while somebody waits for it."""
        asked_s = self._client.request_timeout_s
        return min(_INITIAL_S, asked_s) if asked_s and not follow else _INITIAL_S

    def _events(
        self, state: _State, query: Mapping[str, Param], *, on_open: Callable[[], None] | None = None
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        whole = {**state.query, "allowWatchBookmarks": True, **query}
        return self._client.watch(state.path, silence_s=_SILENCE_S, on_open=on_open, **whole)

    async def _list(self, state: _State) -> None:
        """Read the whole feed in pages; in one go where it changes too fast for that."""
        found: dict[ObjectRef, StoredObject] = {}
        version = ""
        try:
            async for page, version in self._client.pages(state.path, **state.query):  # noqa: B007 - the last one's counts
                found.update(_by_ref(page, state.gvk))
        except Gone:
            items, version = await self._client.list(state.path, **state.query)
            found = _by_ref(items, state.gvk)
        self._adopt(state, found, version)

    def _adopt(self, state: _State, found: dict[ObjectRef, StoredObject], version: str) -> None:
        self._snapshot = None
        self._publish(state.contents.adopt(found, version))
        self._recovered(state, always=True)

    def _publish(self, changes: Iterable[Event]) -> None:
        for change in changes:
            self._snapshot = None
            for callback in tuple(self._subscribers):
                _call(callback, change)

    def _failed(self, state: _State, error: ApiError) -> None:
        news = type(state.failure) is not type(error)
        state.failure, state.asked = error, False
        if isinstance(error, NotFound):
            self._publish(state.contents.clear())
        if news:
            _LOG.warning('feed failed feed="%s" reason=%s error="%s"', state.feed, error.reason, error)
            self._tell(state)
        self._wake_waiting()

    def _recovered(self, state: _State, *, always: bool = False) -> None:
        if always or state.failure is not None:
            state.failure = None
            self._tell(state)
            self._wake_waiting()

    def _wake_waiting(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()

    def _tell(self, state: _State) -> None:
        self._snapshot = None
        for callback in tuple(self._feed_subscribers):
            _call(callback, state.feed, state.failure)

    def _state(self, feed: Feed) -> _State:
        state = self._states.get(feed)
        if state is None:
            state = self._states[feed] = _State(FeedContents(feed, Selector.parse(feed.label_selector)))
            self._snapshot = None
        return state

    def _holding(self, ref: ObjectRef) -> list[FeedContents]:
        return [state.contents for state in self._states.values() if state.contents.may_hold(ref)]


def _by_ref(page: Iterable[Manifest], gvk: GroupVersionKind) -> dict[ObjectRef, StoredObject]:
    return {stored.ref: stored for stored in (StoredObject.of(manifest, gvk) for manifest in page)}


def _collect(objects: dict[ObjectRef, StoredObject], type_: str, stored: StoredObject) -> None:
    """Apply one event to a list that is still coming in."""
    if type_ == "DELETED":
        objects.pop(stored.ref, None)
    else:
        objects[stored.ref] = stored


def _is_initial_end(bookmark: Manifest) -> bool:
    return (bookmark["metadata"].get("annotations") or {}).get(_INITIAL_END) == "true"


def _is_outage(error: ApiError | None) -> bool:
    """Tell whether the server is away, and not merely unwilling."""
    return isinstance(error, Unreachable | ServerError)


def _pause_s(error: ApiError | None, failures: int) -> float:
    """Return how long to wait after so many failures in a row: short in an outage, since its end matters."""
    cap_s = _LONGEST_OUTAGE_PAUSE_S if _is_outage(error) else _LONGEST_PAUSE_S
    pause_s = min(cap_s, _FIRST_PAUSE_S * 2.0 ** min(failures - 1, 16)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter is no secret
    return max(pause_s, (error.retry_after_s or 0.0) if error else 0.0)


def _call(callback: Callable[..., None], *arguments: Any) -> None:
    """Call a subscriber; its exceptions are its own trouble, not the feed's."""
    try:
        callback(*arguments)
    except Exception:  # noqa: BLE001 - it may be any, and the feed must go on
        _LOG.exception("subscriber failed")
