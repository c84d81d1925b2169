"""What changes, pushed to browsers as it happens: server-sent events, one stream for each browser.

A browser that comes back says which event it saw last, and is sent what it has missed; where that isn't known any more, it is told to
look again. What happens in quick succession is sent as one event. Nobody is asked anything while nothing changes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import NoReturn

from aiohttp import web

from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.fleet_feed import FleetFeed
from kubectl_reconcile.web.guard import asker
from kubectl_reconcile.web.spelling import as_json

_MOST = 100
_ALIVE_S = 25.0
_TOGETHER_S = 0.1
"""How long changes are gathered before they are sent."""


@dataclass(slots=True)
class Streams:
    """The streams that are open, of which there may be *most*."""

    most: int = _MOST
    open: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send what changes until the browser goes.

        Raises:
            Refused: there are too many streams.
            ApiError: the Syncs can't be listed.
        """
        if self.open >= self.most:
            raise Refused(503, f"{self.most} pages are open already", "close some")
        feed = asker().fleet
        await feed.rows()
        self.open += 1
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        try:
            await answer.prepare(request)
            await _send(request, answer, feed)
        except ConnectionResetError:
            return answer  # the browser has gone
        finally:
            self.open -= 1


async def _send(request: web.Request, answer: web.StreamResponse, feed: FleetFeed) -> NoReturn:
    seen = _seen(request.headers.get("Last-Event-ID") or request.query.get("at", ""), feed)
    if seen is None:
        seen = feed.number
        await answer.write(_event("again", seen, feed, {}))
    else:
        await answer.write(_event("hello", seen, feed, {}))
    while True:
        await feed.wait(seen, _ALIVE_S)
        if feed.number == seen:
            await answer.write(b": alive\n\n")
            continue
        await asyncio.sleep(_TOGETHER_S)
        changes, seen = feed.since(seen), feed.number
        kind, told = ("again", {}) if changes is None else ("syncs", feed.told(changes))
        await answer.write(_event(kind, seen, feed, told))


def _seen(text: str, feed: FleetFeed) -> int | None:
    """Return the change that a browser saw last; None where it has to look at everything again."""
    era, _, number = text.partition(".")
    if era != feed.era or not (number.isascii() and number.isdecimal() and len(number) < 16):
        return None
    return int(number) if feed.since(int(number)) is not None else None


def _event(kind: str, number: int, feed: FleetFeed, data: object) -> bytes:
    return b"id: %s.%d\nevent: %s\ndata: %s\n\n" % (feed.era.encode(), number, kind.encode(), as_json(data).encode())
