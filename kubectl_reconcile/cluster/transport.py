"""Bytes to one API server and back: connections, TLS, credentials, broken lines.

Vocabulary: a *request* says what to send, an *answer* is what came back; the *route* says where to and who we are
(``access/route.py``). Several clients with different identities share one transport.

Rules:
- Reads are repeated a few times when the connection breaks, the server is busy (429, its Retry-After honoured) or
  has trouble (5xx). Writes are never repeated here: whoever writes knows whether that is safe.
- Credentials that ran out, or that the server no longer accepts (401), are resolved afresh once.
- A refusal of a server that starts is no refusal but its own trouble (503), as long as it isn't ready (``readiness.py``).
- Watches have connections of their own, so that many of them never starve the requests.
- Connections may die silently: a machine goes away, or a proxy drops them. The system asks each idle one for a
  sign of life (TCP keepalive). What that can't tell, since a proxy in between answers, is found out by whoever misses something:
  ``give_up`` ends all that goes along the connections of so far, and the next request makes new ones.
- Compression is asked for where the server is far away; on this machine or network it costs more than it saves.
- ``ApiError`` is all that is raised.
- Each request is logged at the level DEBUG: what was asked and how it ended, never headers or bodies.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import random
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import aiohttp
import orjson

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.access.cluster import Route, resolve
from kubectl_reconcile.cluster.access.tokens import expiry_of
from kubectl_reconcile.cluster.errors import (
    ApiError,
    GivenUp,
    KubeconfigError,
    ServerError,
    SilentWatch,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    error_of,
    printable,
)
from kubectl_reconcile.cluster.messages import Request, Response
from kubectl_reconcile.cluster.readiness import Readiness
from kubectl_reconcile.cluster.sockets import Connections, hang_up
from kubectl_reconcile.core.retry import READ

_LOG = logging.getLogger(__name__)

_CONNECT_S = 10.0
_SILENCE_S = 65.0  # an API server ends a request itself after 60 s
_READ_ATTEMPTS = 4
_READY = aiohttp.ClientTimeout(total=5)
_BOTH_S = 0.5
_LATE_S = 1.0
"""How long a watch whose time is over is looked at once more: we may have been stopped, or busy, ourselves."""

_LOST = (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, ConnectionResetError, BrokenPipeError)


class Transport:
    """The way to one API server, kept open. Sends requests with the credentials of the moment.

    *on_answer* is called with the verb (``watch``, or the method) and the status of each answer, 0 where none came.
    *resolved* makes a route of *access* afresh, where credentials ran out.
    """

    def __init__(
        self, access: Access, route: Route, resolved: Callable[[Access], Awaitable[Route]] | None = None
    ) -> None:
        self._access, self._resolved = access, resolved or resolve
        self._lock = asyncio.Lock()
        self._retired: list[Connections] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._session = Connections(route)
        self._readiness = Readiness(self._asked_ready)
        self.on_answer: Callable[[str, int], None] = lambda _verb, _status: None

    @property
    def route(self) -> Route:
        """The route of the moment; another one after credentials were renewed."""
        return self._session.route

    @property
    def request_timeout_s(self) -> float | None:
        """How long the user lets a request take; None: no limit of theirs."""
        return self._access.request_timeout_s or None

    def nameless(self) -> Transport:
        """Return a way of its own to the same server, by which nobody is us: each request says itself who asks."""

        async def resolved(access: Access) -> Route:
            return (await resolve(access)).nameless()

        return Transport(self._access, self.route.nameless(), resolved)

    async def close(self) -> None:
        """Close all connections."""
        for session in (*self._retired, self._session):
            await session.close()
        await asyncio.gather(*self._closing)

    def give_up(self) -> None:
        """End all requests and watches that are under way, and use their connections no more: they are dead, as far as is known.

        Reads are made again at once, and feeds go on where they were; what happened to a write nobody knows.
        """
        self._succeed(Connections(self.route))

    def _succeed(self, fresh: Connections) -> None:
        self._session.give_up()
        self._close_soon(self._session)
        self._session = fresh

    def _close_soon(self, session: Connections) -> None:
        closing = asyncio.create_task(session.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def send_twice(self, request: Request, after_s: float) -> Response:
        """Send a *request* that may be sent twice; where no answer comes within *after_s*, along a new connection too.

        If only that one is answered, the connections of so far are dead, and given up.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        first = asyncio.create_task(self.send(request))
        second: asyncio.Task[Response] | None = None
        fresh: Connections | None = None
        try:
            if (await asyncio.wait({first}, timeout=after_s))[0]:
                return first.result()
            fresh = Connections(self.route)
            second = asyncio.create_task(self.send(request, fresh))
            await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
            if first.done() or not _is_answered(second) or (await asyncio.wait({first}, timeout=_BOTH_S))[0]:
                return (first if first.done() else second).result()
            _LOG.warning("dead connections closed: new ones are answered server=%s", self.route.server)
            self._succeed(fresh)
            return second.result()
        finally:
            for task in (first, second):
                if task is not None and not task.cancel() and not task.cancelled():
                    task.exception()  # it was looked at, or it doesn't matter
            if fresh not in (None, self._session):
                self._close_soon(fresh)

    async def send(self, request: Request, session: Connections | None = None) -> Response:
        """Send *request* (along *session*, if given) and return the successful answer.

        Reads are repeated where that may help, writes aren't.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        timeout = aiohttp.ClientTimeout(total=self.request_timeout_s, sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
        attempt = 1
        while True:
            try:
                response, along = await self._answering(request, timeout, session)
                async with along.bound(), self._translated():
                    return Response(response.status, response.headers, await response.read())
            except ApiError as error:
                pause_s = _pause_s(error, attempt)
                if request.method != "GET" or attempt >= _READ_ATTEMPTS or pause_s is None:
                    raise
            await asyncio.sleep(pause_s)
            attempt += 1

    async def lines(
        self, request: Request, *, longest_s: float, on_open: Callable[[], None] | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Send *request* and yield the lines of the answer as they come, whatever their length.

        *on_open* is called when the answer has begun. It should end within *longest_s* from then on.

        Raises:
            SilentWatch: it goes on for longer, and nothing more comes.
            ServerError: the answer ended in the middle of a line.
            Unreachable: no answer began about as soon, or the connection broke.
            ApiError: the server refuses.
        """
        begins_within_s = longest_s + 2 * _LATE_S  # what follows is bound more closely
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=begins_within_s)
        response, session = await self._answering(request, timeout, watch=True)
        ends_at_s = asyncio.get_running_loop().time() + longest_s
        pending: list[bytes] = []
        try:
            if on_open is not None:
                on_open()
            while True:
                async with session.bound(), self._translated():
                    chunk = await self._heard(response, ends_at_s)
                if not chunk:
                    break
                first, *rest = chunk.split(b"\n")
                pending.append(first)
                for following in rest:
                    line = b"".join(pending)
                    pending = [following]
                    if line:
                        yield line
        finally:
            hang_up(response)
        if any(pending):
            raise ServerError(f"the answer to {request} ended in the middle of a line", reason="BadAnswer")

    async def web_socket(self, request: Request, protocol: str) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket that speaks *protocol*, along a connection of its own; whoever opens it closes it.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        session = await self._current()
        route = session.route
        async with session.bound(), self._translated(request), asyncio.timeout(_CONNECT_S):
            try:
                return await session.watches.ws_connect(
                    request.url(route.server), protocols=(protocol,), headers=request.headers(route), max_msg_size=0,
                    proxy=route.proxy or None, server_hostname=route.tls_server_name or None,
                )  # fmt: skip
            except aiohttp.WSServerHandshakeError as error:
                message = f"{request} was answered {error.status}, and no connection was made"
                raise error_of({"message": message}, http_status=error.status, request=str(request)) from error

    async def _heard(self, response: aiohttp.ClientResponse, ends_at_s: float) -> bytes:
        """Return what comes next of an answer that should be over at *ends_at_s* of the loop's clock; nothing at its end.

        Raises:
            SilentWatch: it is over, and nothing comes.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends_at_s):
                return await response.content.readany()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LATE_S):
                return await response.content.readany()
        raise SilentWatch(self.route.server)

    async def _answering(
        self,
        request: Request,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own, with its parts
        along: Connections | None = None,
        *,
        watch: bool = False,
    ) -> tuple[aiohttp.ClientResponse, Connections]:
        """Send, renewing refused credentials once; return a response whose head says success, and what it comes along.

        Its body is unread.
        """
        renewed = False
        while True:
            session = along or await self._current()
            route, began_s = session.route, time.perf_counter()
            async with session.bound(), self._translated(request, watch=watch):
                response = await _sent(session.watches if watch else session.requests, request, route, timeout)
            took_ms = (time.perf_counter() - began_s) * 1000
            _LOG.debug("%s %s answered %d in %.0f ms", request.method, response.url, response.status, took_ms)
            self._count(request, response.status, watch=watch)
            if response.status < 300 or response.status == 304:
                return response, session
            async with session.bound(), self._translated():
                error = _refusal(request, response, await response.read(), route.server)
            if response.status == 403 and not error.is_of_webhook and await self._readiness.is_starting():
                raise _starting(error, route.server) from error
            if not isinstance(error, Unauthorized) or renewed or along or not await self._renew(route):
                raise _with_expiry(error, route)
            renewed = True

    async def _asked_ready(self) -> int:
        """Return the status of the server's ``/readyz``, 0 where no answer came. It is asked as ourselves, whoever is impersonated."""
        session = await self._current()
        request = Request("GET", "/readyz", accept="text/plain")
        with suppress(ApiError):
            async with session.bound(), self._translated():
                response = await _sent(session.requests, request, session.route, _READY)
                response.release()
                return response.status
        return 0

    def _count(self, request: Request, status: int, *, watch: bool) -> None:
        self.on_answer("watch" if watch else request.method.lower(), status)

    async def _current(self) -> Connections:
        if time.monotonic() >= self.route.expires_at_s:
            await self._renew(self.route)
        return self._session

    async def _renew(self, refused: Route) -> bool:
        """Resolve the access afresh, unless somebody did since *refused* was in use; tell whether credentials changed."""
        async with self._lock:
            if self.route is refused:
                try:
                    route = await self._resolved(self._access)
                except KubeconfigError as error:
                    raise Unauthorized(f"the credentials can't be renewed: {error}", status=401) from error
                if (route.server, route.tls) == (refused.server, refused.tls):
                    self._session.route = route
                else:
                    self._retired.append(self._session)
                    self._session = Connections(route)
        return (self.route.headers, self.route.tls) != (refused.headers, refused.tls)

    @asynccontextmanager
    async def _translated(self, asked: Request | None = None, *, watch: bool = False) -> AsyncIterator[None]:
        """Turn what the HTTP library raises into ``Unreachable``; count *asked* as not answered then."""
        try:
            yield
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            if asked is not None:
                self._count(asked, 0, watch=watch)
            raise _unreachable(self.route.server, error) from error


async def _sent(
    way: aiohttp.ClientSession,
    request: Request,
    route: Route,
    timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own, with its parts
) -> aiohttp.ClientResponse:
    """Send *request* as the identity of *route*, and return the answer, whose body is unread."""
    return await way.request(
        request.method,
        request.url(route.server),
        data=request.body,
        headers=request.headers(route),
        timeout=timeout,
        allow_redirects=False,
        proxy=route.proxy or None,
        server_hostname=route.tls_server_name or None,
    )


def _is_answered(task: asyncio.Task[Response]) -> bool:
    """Tell whether the server has answered, even by a refusal."""
    error = task.exception()
    return error is None or (isinstance(error, ApiError) and error.status != 0)


def _refusal(request: Request, response: aiohttp.ClientResponse, body: bytes, server: str) -> ApiError:
    """Return the error in the server's words, or in ours where a proxy or a panic answered in its place."""
    try:
        status = orjson.loads(body)
    except ValueError:
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        excerpt = printable(body[:200].decode(errors="replace"))
        text = f"{request} was answered {response.status} {response.reason}" + (f": {excerpt}" if excerpt else "")
        status = {"message": text, "reason": (response.reason or "").title().replace(" ", "")}
    if response.status == 404 and body.startswith(b"404 page not found"):
        status = {"message": f"the server has nothing at {request.path}", "reason": "NotFound"}
    if status.get("message") == "Unauthorized":
        status["message"] = f"the API server {server} doesn't accept the credentials"
    retry_after_s = _seconds(response.headers.get("Retry-After"))
    return error_of(status, http_status=response.status, retry_after_s=retry_after_s, request=str(request))


def _with_expiry(error: ApiError, route: Route) -> ApiError:
    """Return *error*, saying that the token has expired where that is why it was refused."""
    expiry = next((expiry_of(value) for name, value in route.headers if name == "Authorization"), None)
    if not isinstance(error, Unauthorized) or expiry is None or expiry > dt.datetime.now(dt.UTC):
        return error
    when = expiry.strftime("%Y-%m-%dT%H:%M:%SZ")
    message = f"the API server {route.server} doesn't accept the credentials: the token expired at {when}"
    return Unauthorized(message, status=error.status, reason=error.reason)


def _starting(error: ApiError, server: str) -> ServerError:
    """Return the refusal of a server that isn't ready as what it is."""
    message = f"the API server {server} isn't ready yet, and may refuse requests that it allows later: {error.message}"
    return ServerError(message, status=503, reason="ServiceUnavailable")


def _pause_s(error: ApiError, attempt: int) -> float | None:
    """Return how long to wait before reading again, None if that is pointless (or the server wants a long rest)."""
    lost = isinstance(error, GivenUp) or (isinstance(error, Unreachable) and isinstance(error.__cause__, _LOST))
    if not lost and not isinstance(error, ServerError | TooManyRequests):
        return None
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= READ.cap_s else None
    return READ.pause_s(attempt, random.random())  # noqa: S311 - no secret


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def _unreachable(server: str, error: BaseException) -> Unreachable:
    """Say in a user's words what went wrong on the way to the server."""
    cause: BaseException = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError):
        hint = "check the kubeconfig's certificate-authority, and that the certificate was issued for the server's name"
        return Unreachable(server, f"its certificate isn't trusted: {cause.verify_message}", hint)
    for kinds, message, hint in _TROUBLES:
        if isinstance(cause, kinds):
            return Unreachable(server, message, hint)
    return Unreachable(server, getattr(cause, "strerror", None) or str(cause) or type(cause).__name__)


_TROUBLES: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    (
        (ssl.SSLError,),
        "no TLS connection could be made",
        "is this an https port, and does it require a client certificate?",
    ),
    ((socket.gaierror,), "its name can't be resolved", "check the server's name and the DNS"),
    ((TimeoutError,), "timed out", "is it overloaded, or a firewall in between?"),
    ((ConnectionRefusedError,), "connection refused", "is it running, and is this its port?"),
    (_LOST, "the connection was lost", ""),
)
