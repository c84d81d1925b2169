"""What every request passes, and every answer has.

No page of another site may ask anything; nobody who isn't known is answered; nobody asks faster than a person does, nor sends more than
a page of ours would. Answers tell browsers to run no script and to load nothing but what comes from here.
"""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubectl_reconcile.cluster.errors import Unauthorized
from kubectl_reconcile.web.asking import Asker, Door
from kubectl_reconcile.web.errors import Refused, answer_of, refused
from kubectl_reconcile.web.rate_limit import RateLimit

LARGEST_BODY_BYTES = 16 * 1024

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
_ASKER: ContextVar[Asker] = ContextVar("asker")
_PUBLIC = ("/assets/", "/start", "/favicon.ico")
"""What is answered to whoever may reach us: the page itself, which tells nothing."""


async def with_headers(_request: web.Request, answer: web.StreamResponse) -> None:
    """Give an answer what tells browsers how to treat it."""
    for name, value in {**_HEADERS, "Cache-Control": "no-store"}.items():
        answer.headers.setdefault(name, value)


def guarded(door: Door, limit: RateLimit) -> Middleware:
    """Return the middleware that admits requests by *door* and *limit*, and turns what goes wrong into answers."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        who: Asker | None = None
        try:
            who = await _admitted(door, limit, request)
            if who is None and not _is_public(door, request.path):
                return door.unknown()
            return await handler(request)
        except web.HTTPException as error:
            return refused(error.status, error.reason)
        except (asyncio.CancelledError, ConnectionResetError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
            return _told(error, door, who)

    return guard


async def _admitted(door: Door, limit: RateLimit, request: web.Request) -> Asker | None:
    """Return who asks, None where nobody knows them.

    Raises:
        Refused: another site has them ask, or they ask too fast.
        ApiError: the API server refuses to name the user, or doesn't answer.
    """
    if reason := door.refusal(request):
        raise Refused(403, reason)
    if not limit.admits(time.monotonic()):
        raise Refused(429, _TOO_FAST, "wait for a second")
    who = await door.asker(request)
    if who is not None:
        if not who.limit.admits(time.monotonic()):
            raise Refused(429, _TOO_FAST, "wait for a second")
        _ASKER.set(who)
    return who


def _is_public(door: Door, path: str) -> bool:
    return path.startswith(_PUBLIC) or (door.page_is_public and not path.startswith("/api/"))


def _told(error: Exception, door: Door, who: Asker | None) -> web.Response:
    """Return what is answered where *error* came up: whom the cluster knows no more, the door knows no more."""
    if isinstance(error, Unauthorized) and who is not None and who.guest:
        who.gone = True
        return door.unknown()
    return answer_of(error)


def asker() -> Asker:
    """Return who asks the request that is being answered, which was admitted."""
    return _ASKER.get()
