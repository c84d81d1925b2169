"""What every request passes, and every answer has.

No page of another site may ask anything; nobody who isn't known is answered; nobody asks faster than a person does, nor sends more than
a page of ours would. Answers tell browsers to run no script and to load nothing but what comes from here.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubectl_reconcile.cluster.errors import Unauthorized
from kubectl_reconcile.web.asking import Asker, Door
from kubectl_reconcile.web.errors import HttpLog, Refused, answer_of, as_page, refused
from kubectl_reconcile.web.rate_limit import RateLimit

LARGEST_BODY_BYTES = 16 * 1024
_LONGEST_SHOWN = 200

_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_TOO_FAST = "too many requests"
_GRACE_S = 1.0
_ASKER: ContextVar[Asker] = ContextVar("asker")
_STREAMS = ("/stream", "/changes")
"""What is answered for as long as a page is open, and has shares of its own."""
_UNDER_WAY = 24
"""How many requests of one person may be under way, streams left out: more than browsers make. What they wait for, as for a node that hangs, others needn't."""
_PUBLIC = ("/assets/", "/start", "/favicon.ico")
"""What is answered to whoever may reach us: the page itself, which tells nothing."""


async def with_headers(_request: web.BaseRequest, answer: web.StreamResponse) -> None:
    """Give an answer what tells browsers how to treat it."""
    _give_headers(answer)


def _give_headers(answer: web.StreamResponse) -> None:
    for name, value in {**_HEADERS, "Cache-Control": "no-store"}.items():
        answer.headers.setdefault(name, value)


def guarded(door: Door, limit: RateLimit) -> Middleware:
    """Return the middleware that admits requests by *door*, and turns what goes wrong into answers.

    People ask as fast as *limit* together, and so do those whom nobody knows, who take nothing of it.
    """
    strangers, under_way = RateLimit(limit.burst, limit.per_s), Counter[str]()

    async def answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        who: Asker | None = None
        try:
            who = await _admitted(door, limit, strangers, request)
            if who is None and not _is_public(door, request.path):
                return door.unknown()
            with _counted(under_way, who, request):
                return await handler(request)
        except web.HTTPNotFound:
            return refused(404, f"there is no page {request.path[:_LONGEST_SHOWN]}", "the address may be incomplete")
        except web.HTTPException as error:
            return refused(error.status, error.reason)
        except (asyncio.CancelledError, ConnectionResetError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
            return _told(error, door, who)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        return as_page(request, await answer(request, handler))

    return guard


async def _admitted(door: Door, limit: RateLimit, strangers: RateLimit, request: web.Request) -> Asker | None:
    """Return who asks, None where nobody knows them.

    Raises:
        Refused: another site has them ask, or they ask too fast.
        ApiError: the API server refuses to name the user, or doesn't answer.
    """
    if reason := door.refusal(request):
        raise Refused(403, reason)
    who = await door.asker(request)
    now_s = time.monotonic()
    if not all(each.admits(now_s) for each in ((who.limit, limit) if who is not None else (strangers,))):
        raise Refused(429, _TOO_FAST, "wait for a second")
    if who is not None:
        _ASKER.set(who)
    return who


@contextmanager
def _counted(under_way: Counter[str], who: Asker | None, request: web.Request) -> Iterator[None]:
    """Count a request of a guest while it is answered.

    Raises:
        Refused: many of theirs are.
    """
    resource = request.match_info.route.resource
    if who is None or not who.guest or (resource is not None and resource.canonical.endswith(_STREAMS)):
        yield
        return
    if under_way[who.tenant] >= _UNDER_WAY:
        raise Refused(429, f"{_UNDER_WAY} requests of yours are running", "wait until they are answered, and try again")
    under_way[who.tenant] += 1
    try:
        yield
    finally:
        under_way[who.tenant] -= 1
        if not under_way[who.tenant]:
            del under_way[who.tenant]


def _is_public(door: Door, path: str) -> bool:
    return path.startswith(_PUBLIC) or (door.page_is_public and not path.startswith("/api/"))


def _told(error: Exception, door: Door, who: Asker | None) -> web.Response:
    """Return what is answered where *error* came up: whom the cluster knows no more, the door knows no more."""
    if isinstance(error, Unauthorized) and who is not None and who.guest:
        who.left = True
        return door.unknown()
    return answer_of(error)


def asker() -> Asker:
    """Return who asks the request that is being answered, which was admitted."""
    return _ASKER.get()


class PageRunner(web.AppRunner):
    """Runs the application: what browsers don't wait for any more is ended, and what can't be read isn't repeated to anybody."""

    def __init__(self, app: web.Application, **options: Any) -> None:
        super().__init__(
            app, access_log=None, logger=HttpLog(), shutdown_timeout=_GRACE_S, handler_cancellation=True, **options
        )

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _PageServer(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            **{name: value for name, value in self._kwargs.items() if name != "handler_cancellation"},
        )


class _PageServer(web.Server):
    """Answers requests over connections of ours."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    """One connection of a browser, or of whoever sends something else."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it has what was sent
    ) -> web.StreamResponse:
        """Return what is answered to a request that can't be read, which ends the connection.

        Raises:
            ConnectionError: something of another answer has been sent.
        """
        super().handle_error(request, status, exc, "")
        answer = refused(status, "this request can't be read" if status < 500 else "this request can't be answered")
        _give_headers(answer)
        answer.force_close()
        return answer
