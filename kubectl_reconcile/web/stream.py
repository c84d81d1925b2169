"""What changes, pushed to browsers as it happens: server-sent events, one stream for each browser.

A browser that comes back says which event it saw last, and is sent what it has missed; where that isn't known any more, it is told to
look again. What happens in quick succession is sent as one event. Nobody is asked anything while nothing changes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.web.asking import Asker, FleetSeen
from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.guard import asker
from kubectl_reconcile.web.spelling import as_json

_MOST = 100
_MOST_OF_ONE = 20
_ALIVE_S = 25.0
_TOGETHER_S = 0.1
"""How long changes are gathered before they are sent."""


@dataclass(slots=True)
class Streams:
    """The streams that are open, of which there may be *most*, and so many of one person."""

    most: int = _MOST
    open: Counter[int] = field(default_factory=Counter)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send what changes until the browser goes.

        Raises:
            Refused: there are too many streams.
            ApiError: the Syncs can't be listed.
        """
        if self.open.total() >= self.most:
            raise Refused(503, f"{self.most} pages are open already", "close some")
        who = asker()
        if self.open[id(who)] >= _MOST_OF_ONE:
            raise Refused(503, f"you have {_MOST_OF_ONE} pages open already", "close some")
        await who.fleet.rows()
        self.open[id(who)] += 1
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        try:
            await answer.prepare(request)
            await _send(request, answer, who)
        except (ConnectionResetError, ApiError):
            pass  # the browser has gone, or asks again, and is told then what is wrong
        finally:
            self.open[id(who)] -= 1
            self.open += Counter()  # forgets who has none
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
        if feed.number == seen:
            await answer.write(b": alive\n\n")
            continue
        await asyncio.sleep(_TOGETHER_S)
        changes, seen = feed.since(seen), feed.number
        if changes is None:
            await answer.write(_event("again", seen, feed, {}))
        elif any((told := await feed.told(changes)).values()):
            await answer.write(_event("syncs", seen, feed, told))


def _seen(text: str, feed: FleetSeen) -> int | None:
    """Return the change that a browser saw last; None where it has to look at everything again."""
    era, _, number = text.partition(".")
    if era != feed.era or not (number.isascii() and number.isdecimal() and len(number) < 16):
        return None
    return int(number) if feed.since(int(number)) is not None else None


def _event(kind: str, number: int, feed: FleetSeen, data: object) -> bytes:
    return b"id: %s.%d\nevent: %s\ndata: %s\n\n" % (feed.era.encode(), number, kind.encode(), as_json(data).encode())
