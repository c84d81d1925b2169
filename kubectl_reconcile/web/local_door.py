"""The door of a page that one person serves to themself, on this machine.

They come in once with a *ticket*, which stands in the URL that their terminal prints, and have a cookie from then on. The ticket counts
once. The cookie is sent to this host alone, by no script and by no page of another site; its name holds the port, since browsers share
cookies among the ports of a host.

Requests count only where their Host is the address that is served, which a name that somebody points at it isn't (DNS rebinding), and
their Origin, where there is one, is that host.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from aiohttp import web

from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import refused
from kubectl_reconcile.web.origins import LOOPBACK, foreign

_ONWARD = '<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>kubectl reconcile</title>'
"""Whom it leads on shows the cookie at once: they come from a page of ours then, which whoever is redirected doesn't."""


@dataclass(slots=True)
class LocalDoor:
    """Lets one person in, to be answered as *owner*; *port* is where they are served."""

    owner: Asker
    port: int = 0
    ticket: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    page_is_public: bool = False
    _used: bool = False

    @property
    def url(self) -> str:
        """Where the person is to go first."""
        return f"http://127.0.0.1:{self.port}/start?ticket={self.ticket}"

    @property
    def cookie(self) -> str:
        """The name of the cookie."""
        return f"kubectl-reconcile-{self.port}"

    def refusal(self, request: web.Request) -> str:
        """Return why a request is none that a page of ours makes; empty where it may be one."""
        host = request.headers.get("Host", "")
        if host.replace("[::1]", "::1") not in {f"{name}:{self.port}" for name in LOOPBACK}:
            return f"this page is served at 127.0.0.1:{self.port}, under no other name"
        return foreign(request, f"http://{host}")

    def unknown(self) -> web.Response:
        """Return what somebody is answered whom nobody knows."""
        hint = "use the address that kubectl reconcile ui has printed; it works once, so run the command again if necessary"
        return refused(401, "you aren't signed in to this page", hint)

    async def asker(self, request: web.Request) -> Asker | None:
        """Return the owner where the cookie is theirs."""
        shown = request.cookies.get(self.cookie, "")
        return self.owner if _same(shown, self._key) else None

    async def enter(self, request: web.Request) -> web.Response | None:
        """Give whoever has the ticket a cookie, once; whoever has that already just goes on."""
        is_first = not self._used and _same(request.query.get("ticket", ""), self.ticket)
        if not is_first and await self.asker(request) is None:
            return None
        answer = web.Response(text=_ONWARD, content_type="text/html")
        if is_first:
            self._used = True
            answer.set_cookie(self.cookie, self._key, httponly=True, samesite="Strict", path="/")
        return answer


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
