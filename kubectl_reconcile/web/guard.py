"""What every request passes, and every answer has.

No page of another site may ask anything; nobody who isn't known is answered; nobody asks faster than a person does, nor sends more than
a page of ours would. Answers tell browsers to run no script and to load nothing but what comes from here.
"""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubectl_reconcile.web.asking import Asker, Door
from kubectl_reconcile.web.errors import answer_of, refused

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
_ASKER: ContextVar[Asker] = ContextVar("asker")
_PUBLIC = ("/assets/", "/start", "/favicon.ico")
"""What is answered to whoever may reach us: the page itself, which tells nothing."""


@dataclass(slots=True)
class RateLimit:
    """So many requests at once, and so many a second from then on."""

    burst: float = 300.0
    per_s: float = 60.0
    _left: float = 300.0
    _seen_s: float = 0.0

    def admits(self, now_s: float) -> bool:
        """Tell whether one more request may be made now, and count it."""
        self._left = min(self.burst, self._left + (now_s - self._seen_s) * self.per_s)
        self._seen_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True


async def with_headers(_request: web.Request, answer: web.StreamResponse) -> None:
    """Give an answer what tells browsers how to treat it."""
    answer.headers.update(_HEADERS)
    answer.headers.setdefault("Cache-Control", "no-store")


def guarded(door: Door, limit: RateLimit) -> Middleware:
    """Return the middleware that admits requests by *door* and *limit*, and turns what goes wrong into answers."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if reason := door.refusal(request):
            return refused(403, reason)
        if not limit.admits(time.monotonic()):
            return refused(429, "too many requests", "wait for a second")
        who = await door.asker(request)
        if who is None and not request.path.startswith(_PUBLIC):
            hint = "use the address that kubectl reconcile ui has printed; it works once, so start the command again if need be"
            return refused(401, "this page doesn't know you", hint)
        if who is not None:
            _ASKER.set(who)
        try:
            return await handler(request)
        except web.HTTPException as error:
            return refused(error.status, error.reason)
        except (asyncio.CancelledError, ConnectionResetError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
            return answer_of(error)

    return guard


def asker() -> Asker:
    """Return who asks the request that is being answered, which was admitted."""
    return _ASKER.get()
