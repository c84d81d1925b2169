"""One feed, listed and watched for as long as it is followed.

Rules:

- It begins with a streaming list (LIST in pages where the server has none) and goes on by watch, from the same position for
  as long as the server remembers it. When it doesn't (410), it is listed again and compared with what was known.
- Every failure is data (``failure``) and is tried again with growing pauses.
- The server is asked to end each watch soon, and the next goes on from there along the same connection. So one that stays open and
  tells nothing is known by its end that doesn't come. That is no failure: the next goes on where it was. If that is silent too, all
  is listed as often instead.
- What is being deleted for long is looked for by a list now and then: should a watch miss its end, nobody waits for it forever.
- A watch that doesn't bring a write of our own is known to be dead sooner: then all connections of so far are suspect, and given up.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import Any

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    GivenUp,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    SilentWatch,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubectl_reconcile.cluster.feed import Event, Feed, FeedContents
from kubectl_reconcile.cluster.messages import Param
from kubectl_reconcile.cluster.store import StoredObject, older
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.retry import OUTAGE, WATCH

_LOG = logging.getLogger(__name__)

_INITIAL_S = 60.0
_WATCH_S = (13, 16)
"""How long the server lets a watch live. At rest that costs three requests a second for 45 feeds, and 0.3 to 0.4 % of a core; it is the
longest with which a silent one is found out in less than twenty seconds. Bookmarks tell less: a server at rest leaves out some."""
_ECHO_S = 8.0
"""How long after an own write the watch may take to tell the same: it takes milliseconds."""
_SHORTEST_WATCH_S = 1.0
_LONG_OUTAGE = 5  # failures in a row
_LASTING = (NotFound, Forbidden, Unauthorized)
_INITIAL_END = "k8s.io/initial-events-end"


class Reflector(Struct, eq=False):
    """A feed, and how following it goes. *asked*: the failure is from before somebody asked to try again.

    *expected* is the version of an own write that the watch has yet to tell, *is_silent* that the last watch told nothing, not even its end. *changed* is called with what happened to its objects, *turned* whenever it becomes synced or fails.
    """

    client: Client
    contents: FeedContents
    changed: Callable[[Iterable[Event]], None]
    turned: Callable[[], None]
    failure: ApiError | None = None
    asked: bool = False
    streams: bool = True
    task: asyncio.Task[None] | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    expected: str = ""
    is_silent: bool = False

    @property
    def synced(self) -> bool:
        """Whether its objects are complete and (if followed) being kept up to date."""
        return self.contents.loaded and self.failure is None

    @property
    def settled(self) -> bool:
        """Whether waiting any longer is pointless: it is synced, or can't be for a lasting reason."""
        return self.synced or (isinstance(self.failure, _LASTING) and not self.asked)

    @property
    def feed(self) -> Feed:
        """What it holds."""
        return self.contents.feed

    @property
    def _path(self) -> str:
        return self.feed.resource.collection(self.feed.namespace)

    @property
    def _query(self) -> dict[str, Param]:
        name = f"metadata.name={self.feed.name}" if self.feed.name else None
        return {"labelSelector": self.feed.label_selector or None, "fieldSelector": name}

    # --- from outside -------------------------------------------------------------------------------------------------

    async def fill(self) -> None:
        """List it once; what fails is its ``failure``."""
        try:
            await self._fill()
        except ApiError as error:
            self._failed(error)

    def follow(self) -> None:
        """Keep it up to date from now on; one that waits after a failure is tried at once."""
        if self.task is None or self.task.done():
            self.task = asyncio.create_task(self._keep(), name=f"follow {self.feed}")
        self.asked = True
        self.wake.set()

    async def listed(self) -> tuple[dict[ObjectRef, StoredObject], str]:
        """Return the whole feed, read in pages, and its version; in one go where it changes too fast for that.

        Raises:
            ApiError: it can't be listed.
        """
        found: dict[ObjectRef, StoredObject] = {}
        version = ""
        try:
            async for page, version in self.client.pages(self._path, **self._query):  # noqa: B007 - the last one's counts
                found.update(_by_ref(page, self.contents))
        except Gone:
            items, version = await self.client.list(self._path, **self._query)
            found = _by_ref(items, self.contents)
        return found, version

    async def stop(self) -> None:
        """Follow it no longer."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)

    def expect(self, version: str) -> None:
        """Note that the watch should soon report *version*, an own write; should it not, it is dead."""
        if not self.expected and self.task is not None and self.synced and older(self.contents.position, version):
            self.expected = version
            asyncio.get_running_loop().call_later(_ECHO_S, self._missed)

    def _missed(self) -> None:
        """Give the connections up if the watch still hasn't told what it should have."""
        expected, self.expected = self.expected, ""
        if self.synced and older(self.contents.position, expected):
            _LOG.warning('watch is dead feed="%s" expected=%s', self.feed, expected)
            self.client.give_up_connections()

    # --- the loop -----------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Follow it forever: whatever fails is recorded and tried again."""
        failures = 0
        error: ApiError | None = None
        loop = asyncio.get_running_loop()
        while True:
            started_s, was_away = loop.time(), _is_outage(error)
            self.wake.clear()
            try:
                await self._watch()
                error = None
            except Gone as gone:
                self.contents.unload()
                self.turned()
                error = None if failures == 0 else gone
            except GivenUp:
                error = None
            except ApiError as other:
                error = other
            except Exception as unforeseen:  # noqa: BLE001 - a feed never dies silently
                _LOG.exception('feed broke feed="%s"', self.feed)
                error = ServerError(f"{self.feed} can't be watched: {unforeseen!r}", reason="BadAnswer")
            if error is None and loop.time() - started_s >= _SHORTEST_WATCH_S:
                failures = 0
                continue
            if was_away and not _is_outage(error) and failures >= _LONG_OUTAGE:
                # What comes with the end of one, a forgotten position or rights not loaded yet, will soon be over.
                failures = 0
            failures += 1
            if error is not None:
                self._failed(error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_pause_s(error, failures)):
                    await self.wake.wait()

    async def _fill(self) -> None:
        """List it: small ones by one request on a shared connection, large ones as events on their own.

        Events take a third of the time of pages, but a TLS handshake; that is more than a small list takes.
        """
        page, version, complete = await self.client.first_page(self._path, **self._query)
        if complete:
            self._adopt(_by_ref(page, self.contents), version)
            return
        with suppress(ServerError, TooManyRequests, Unreachable):
            if self.streams and await self._stream({"timeoutSeconds": int(_INITIAL_S)}):
                return
        self._adopt(*await self.listed())

    async def _watch(self) -> None:
        """List the feed if need be, then absorb what the server tells until it ends the watch, or should have."""
        lasts_s = random.randint(*_WATCH_S)  # noqa: S311 - spreads load
        if not self.contents.position and self.streams:
            await self._stream({"timeoutSeconds": int(_INITIAL_S) + lasts_s}, follows_s=lasts_s)
            return
        if not self.contents.position:
            self._adopt(*await self.listed())
        query: dict[str, Param] = {"timeoutSeconds": lasts_s, "resourceVersion": self.contents.position}
        try:
            async with aclosing(self._events(query, on_open=self._recovered)) as events:
                async for type_, manifest in events:
                    self.is_silent = False
                    self.changed(self.contents.absorb(type_, manifest))
            self.is_silent = False
        except SilentWatch:
            await self._fell_silent()
        else:
            if self.contents.doubts():
                await self._look_for_missed()

    async def _look_for_missed(self) -> None:
        """Find out by a list whether what is being deleted is still there."""
        going = {stored.ref: stored for stored in self.contents.table if stored.is_going}
        self._adopt(*await self.listed())
        for ref, stored in going.items():
            if self.contents.table.get(ref) is None:
                _LOG.warning(
                    'watch missed a deletion feed="%s" object="%s" version=%s', self.feed, ref, stored.resource_version
                )

    async def _fell_silent(self) -> None:
        """Note that a watch told nothing more; if the one before told nothing at all, find out by a list what they should have."""
        if self.is_silent:
            self._adopt(*await self.listed())
            return
        self.is_silent = True
        _LOG.warning('watch went silent feed="%s" position=%s', self.feed, self.contents.position)

    async def _stream(self, query: Mapping[str, Param], *, follows_s: float = 0.0) -> bool:
        """List the feed as events and go on in the same watch for *follows_s*; tell whether that worked.

        An older server refuses that, or has never heard of the list's end. That is remembered.
        """
        asked: dict[str, Param] = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
        # What the user says of requests counts while somebody waits for the list.
        lists_s = _INITIAL_S if follows_s else min(_INITIAL_S, self.client.request_timeout_s or _INITIAL_S)
        watch = self._events({**asked, **query})
        is_listed = False
        try:
            async with asyncio.timeout(lists_s) as deadline, aclosing(watch) as events:
                self._adopt(*await _initial(events, self.contents))
                is_listed = True
                if follows_s:
                    deadline.reschedule(asyncio.get_running_loop().time() + follows_s)
                    async for type_, manifest in events:
                        self.changed(self.contents.absorb(type_, manifest))
        except TimeoutError:
            self.streams = is_listed  # what is over then is only the watch's time
        except (Invalid, BadRequest):
            if is_listed:
                raise
            self.streams = False
        return self.streams

    def _events(
        self, query: Mapping[str, Param], *, on_open: Callable[[], None] | None = None
    ) -> AsyncGenerator[tuple[str, dict[str, Any]], None]:
        whole = {**self._query, "allowWatchBookmarks": True, **query}
        return self.client.watch(self._path, on_open=on_open, **whole)

    def _adopt(self, found: dict[ObjectRef, StoredObject], version: str) -> None:
        self.changed(self.contents.adopt(found, version))
        self._recovered(always=True)

    def _failed(self, error: ApiError) -> None:
        news = type(self.failure) is not type(error)
        self.failure, self.asked = error, False
        if isinstance(error, NotFound):
            self.changed(self.contents.clear())
        if news:
            _LOG.warning('feed failed feed="%s" reason=%s error="%s"', self.feed, error.reason, error)
        self.turned()

    def _recovered(self, *, always: bool = False) -> None:
        if always or self.failure is not None:
            self.failure = None
            self.turned()


def fails_by_itself(reflector: Reflector) -> bool:
    """Tell whether the server answered, since somebody asked last, and said that it can't serve this feed."""
    return isinstance(reflector.failure, ServerError) and not reflector.asked


def _by_ref(page: Iterable[Manifest], contents: FeedContents) -> dict[ObjectRef, StoredObject]:
    return {stored.ref: stored for stored in (contents.held(StoredObject.of(each, contents.gvk)) for each in page)}


async def _initial(
    events: AsyncIterator[tuple[str, Manifest]], contents: FeedContents
) -> tuple[dict[ObjectRef, StoredObject], str]:
    """Return the list that a watch of a feed begins with, and its version.

    Raises:
        ServerError: the watch ended in the middle of it.
    """
    found: dict[ObjectRef, StoredObject] = {}
    async for type_, manifest in events:
        if type_ != "BOOKMARK":
            _collect(found, type_, contents.held(StoredObject.of(manifest, contents.gvk)))
        elif _is_initial_end(manifest):
            return found, manifest["metadata"]["resourceVersion"]
    raise ServerError(f"the list of {contents.feed} ended before it was complete", reason="BadAnswer")


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
    pause_s = (OUTAGE if _is_outage(error) else WATCH).pause_s(failures, random.random())  # noqa: S311 - no secret
    return max(pause_s, (error.retry_after_s or 0.0) if error else 0.0)
