"""The door of a page that the daemon serves: whoever comes is known by a bearer token of the cluster.

The token comes with each request (``Authorization``, which a proxy that signs people in adds), or once, by the form at ``/start``. Of the
form a browser keeps a random key and not the token: the key is worth nothing at the API server, nor here once the daemon has ended or
somebody has signed out, while a token in a cookie would lie on the disk of the browser for as long as it counts, and might be too long for one.
The cookie is sent by no script and by no page of another site.

No other header says who somebody is: ``X-Remote-User``, ``Impersonate-User`` and their kind are what anybody can send.

Requests count only where their Host is one of the addresses that the page is served under, or this machine's own (``kubectl port-forward``),
and their Origin, where there is one, is that address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import web

from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import Refused, refused
from kubectl_reconcile.web.origins import LOOPBACK, foreign
from kubectl_reconcile.web.people import sign_in
from kubectl_reconcile.web.people.people import People

_BEARER = "bearer "


@dataclass(slots=True)
class TokenDoor:
    """Lets in whom the API server knows; *origins* are the addresses of the page (``https://sync.example.com``) besides this machine's own."""

    people: People
    origins: Sequence[str] = ()
    page_is_public: bool = True

    def refusal(self, request: web.Request) -> str:
        """Return why a request is none that a page of ours makes; empty where it may be one."""
        origin = self._origin(request)
        if not origin:
            return f"this page is served at {', '.join(self.origins) or 'localhost'}, under no other name"
        return foreign(request, origin)

    async def asker(self, request: web.Request) -> Asker | None:
        """Return whose token or cookie came along; a token that isn't accepted makes the cookie void.

        Raises:
            Refused: too many wrong tokens.
            ApiError: the API server refuses to name the user, or doesn't answer.
        """
        shown = request.headers.get("Authorization", "")
        if shown[: len(_BEARER)].lower() == _BEARER:
            person = await self.people.of_token(shown[len(_BEARER) :].strip(), request.remote or "")
        else:
            person = self.people.of_key(request.cookies.get(self._cookie(request), ""))
        return person.asker if person else None

    def unknown(self) -> web.Response:
        """Return what somebody is answered whom nobody knows."""
        return refused(
            401,
            "you aren't signed in, or your session has ended",
            "sign in with a token of the cluster",
            enter="/start",
        )

    async def enter(self, request: web.Request) -> web.StreamResponse | None:
        """Show the form where people sign in, or take what they put into it.

        Raises:
            Refused: too many wrong tokens.
            ApiError: the API server refuses to name the user, or doesn't answer.
        """
        if request.method != "POST":
            who = await self.asker(request)
            return sign_in.form(sign_in.onward(request.query.get("next", "")), who.name if who else "")
        try:
            filled = await request.post()
        except (ValueError, LookupError):  # text that isn't in its encoding, or in one that nobody knows
            raise Refused(400, "the request doesn't come from the form") from None
        texts = {name: value for name, value in filled.items() if isinstance(value, str)}
        if "leave" in texts:
            return self._left(request)
        token, onward = texts.get("token", "").strip(), sign_in.onward(texts.get("next", ""))
        try:
            person = await self.people.of_token(token, request.remote or "") if token else None
        except Refused as error:
            return sign_in.form(onward, wrong=f"{error}: {error.hint}.", status=error.status)
        if person is None:
            return sign_in.form(onward, wrong="The cluster doesn't accept this token.", status=401)
        answer = web.Response(status=303, headers={"Location": onward})
        secure = self._origin(request).startswith("https:")
        key = self.people.new_key(person)
        answer.set_cookie(self._cookie(request), key, httponly=True, samesite="Strict", secure=secure, path="/")
        return answer

    def _left(self, request: web.Request) -> web.Response:
        cookie = self._cookie(request)
        self.people.leave(request.cookies.get(cookie, ""))
        answer = web.Response(status=303, headers={"Location": "/start"})
        answer.del_cookie(cookie, path="/", secure=cookie.startswith("__Host-"), httponly=True, samesite="Strict")
        return answer

    def _origin(self, request: web.Request) -> str:
        """Return under which address somebody asks; empty if it isn't one of ours."""
        host = request.headers.get("Host", "")
        if _is_loopback(host):
            return f"http://{host}"
        return next((each for each in self.origins if urlsplit(each).netloc == host), "")

    def _cookie(self, request: web.Request) -> str:
        """Return the name of the cookie: the prefix binds it to the very host; of this machine's own, ports share cookies."""
        origin = self._origin(request)
        return "__Host-reconcile" if origin.startswith("https:") else f"kubectl-reconcile-{urlsplit(origin).port or 80}"


def _is_loopback(host: str) -> bool:
    """Tell whether a Host is this machine's own, at whatever port."""
    try:
        parts = urlsplit(f"//{host}")
        port = parts.port
    except ValueError:  # no host, or no port
        return False
    return parts.netloc == host and parts.hostname in LOOPBACK and port != 0
