"""What changes, pushed to browsers as it happens: server-sent events, one stream for each browser.

An open page of an object has another stream besides, by a watch of that object with the person's own rights.

A browser that comes back says which event it saw last, and is sent what it has missed; where that isn't known any more, it is told to
look again. What happens in quick succession is sent as one event. Nobody is asked anything while nothing changes.

Streams are a person's for as long as they like, so where there are no more, one of those ends who have most (``core.fair.giving_way``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web
from msgspec import Struct

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.fair.giving_way import gives_way
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.engine.api import access_reviews
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.web.asking import Asker, FleetSeen, tenant_of
from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.guard import asker
from kubectl_reconcile.web.spelling import as_json

_MOST = 100
_MOST_OF_ONE = 20
_MOST_OF_TENANT = 50
_ALIVE_S = 25
_TOGETHER_S = 0.1
"""How long changes are gathered before they are sent."""


class OpenStream(Struct, eq=False):
    """A stream that somebody of that *name* has, until it *is over*."""

    name: str
    is_over: bool = False
    patience: asyncio.Timeout | None = None

    def end(self) -> None:
        """Have it end, whatever it waits for."""
        self.is_over = True
        if self.patience is not None:
            self.patience.reschedule(asyncio.get_running_loop().time())


@dataclass(slots=True)
class Streams:
    """The streams that are open, of which there may be *most*, so many of one person, and of all ServiceAccounts of a namespace."""

    most: int = _MOST
    open: list[OpenStream] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send what changes until the browser goes.

        Raises:
            Refused: there are too many streams.
            ApiError: the Syncs can't be listed.
        """
        who = asker()
        with self._one_of(who) as stream:
            await who.fleet.rows()
            return await _stream(request, who, stream)

    async def of_object(self, request: web.Request, session: Session, live: Manifest) -> web.StreamResponse:
        """Say whenever an object changes until the browser goes.

        Raises:
            Refused: there are too many streams, the kind is served no more, or who asks may not watch it.
            ApiError: the server refuses to say, or doesn't answer.
        """
        who, gvk = asker(), GroupVersionKind.of(live)
        resource = session.discovery.find(gvk.api_version, gvk.kind)
        if resource is None:
            raise Refused(404, f"the cluster serves no kind {gvk.kind} any more")
        right = Right(gvk.group, resource.plural, "watch", live["metadata"]["name"])
        if not await access_reviews.may(session.client, live["metadata"].get("namespace", ""), right):
            raise Refused(403, f"you may not watch {ObjectRef.of(live)}")
        with self._one_of(who) as stream:
            return await _stream(request, who, stream, _Watched(session.client, resource, live))

    @contextmanager
    def _one_of(self, who: Asker) -> Iterator[OpenStream]:
        of_one = sum(each.name == who.name for each in self.open)
        held = Counter(tenant_of(each.name) for each in self.open)
        if of_one >= _MOST_OF_ONE:
            raise Refused(503, f"you already have {_MOST_OF_ONE} open pages", "close some")
        if held[tenant_of(who.name)] >= _MOST_OF_TENANT:
            raise Refused(
                503, f"the accounts of your namespace already have {_MOST_OF_TENANT} open pages", "close some"
            )
        if len(self.open) >= self.most:
            self._make_way(gives_way(held, tenant_of(who.name)))
        stream = OpenStream(who.name)
        self.open.append(stream)
        try:
            yield stream
        finally:
            if not stream.is_over:
                self.open.remove(stream)

    def _make_way(self, tenant: str | None) -> None:
        """Have the stream of a *tenant* end that is the oldest.

        Raises:
            Refused: no tenant has to.
        """
        if tenant is None:
            raise Refused(503, f"{self.most} pages are already open", "close some")
        oldest = next(each for each in self.open if tenant_of(each.name) == tenant)
        self.open.remove(oldest)
        oldest.end()


@dataclass(frozen=True, slots=True)
class _Watched:
    """An object, as it was when it was looked at."""

    client: Client
    resource: Resource
    live: Manifest

    async def send(self, answer: web.StreamResponse, who: Asker) -> None:
        """Send whenever it changes, until the browser goes, or *who* is known no more."""
        metadata = self.live["metadata"]
        path, version = self.resource.collection(metadata.get("namespace", "")), metadata["resourceVersion"]
        only = f"metadata.name={metadata['name']}"
        while not who.gone:
            await answer.write(b": alive\n\n")
            watch = self.client.watch(
                path, resourceVersion=version, fieldSelector=only, timeoutSeconds=_ALIVE_S, allowWatchBookmarks=True
            )
            async with aclosing(watch) as changes:
                async for kind, changed in changes:
                    if who.gone:
                        return
                    version = changed["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        await answer.write(b"data: %s\n\n" % as_json({"type": kind}).encode())


async def _stream(
    request: web.Request, who: Asker, stream: OpenStream, watched: _Watched | None = None
) -> web.StreamResponse:
    """Answer with what changes, until the browser goes or the *stream* ends."""
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    with suppress(
        ConnectionResetError, ApiError, TimeoutError
    ):  # the browser has gone, or asks again, and is told then what is wrong
        async with asyncio.timeout(0 if stream.is_over else None) as stream.patience:
            await answer.prepare(request)
            await (watched.send(answer, who) if watched else _send(request, answer, who))
    return answer


async def _send(request: web.Request, answer: web.StreamResponse, who: Asker) -> None:
    """Send what changes until the browser goes, or *who* is known no more."""
    feed = who.fleet
    seen = _seen(request.headers.get("Last-Event-ID") or request.query.get("at", ""), feed)
    if seen is None:
        seen = feed.number
        await answer.write(_event("again", seen, feed, {}))
    else:
        await answer.write(_event("hello", seen, feed, {}))
    while not who.gone:
        await feed.wait(seen, _ALIVE_S)
        if who.gone:
            return
        if feed.number == seen:
            await answer.write(b": alive\n\n")
            continue
        await asyncio.sleep(_TOGETHER_S)
        changes, seen = feed.since(seen), feed.number
        if changes is None:
            await answer.write(_event("again", seen, feed, {}))
        elif ((told := await feed.told(changes)).rows or told.gone) and not who.gone:
            await answer.write(_event("syncs", seen, feed, told))


def _seen(text: str, feed: FleetSeen) -> int | None:
    """Return the change that a browser saw last; None where it has to look at everything again."""
    era, _, number = text.partition(".")
    if era != feed.era or not (number.isascii() and number.isdecimal() and len(number) < 16):
        return None
    return int(number) if feed.since(int(number)) is not None else None


def _event(kind: str, number: int, feed: FleetSeen, data: object) -> bytes:
    return b"id: %s.%d\nevent: %s\ndata: %s\n\n" % (feed.era.encode(), number, kind.encode(), as_json(data).encode())
