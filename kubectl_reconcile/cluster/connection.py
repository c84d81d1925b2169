"""One identity at one API server: any request, and what surrounds it.

A *fence* around a piece of work (``FENCE``) surrounds each of its writes, however deep below that happens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, Self

import orjson

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.access.cluster import resolve
from kubectl_reconcile.cluster.access.credentials import authorization, impersonation
from kubectl_reconcile.cluster.errors import Forbidden
from kubectl_reconcile.cluster.messages import JSON, Headers, Param, Request, Response
from kubectl_reconcile.cluster.transport import Transport
from kubectl_reconcile.core.objects import Manifest

if TYPE_CHECKING:
    import aiohttp


class Fence(Protocol):
    """What stands around a piece of work that may stop being ours."""

    def is_shut(self) -> bool:
        """Tell whether nothing of it may be written any more; if so, that stays."""

    def around(self, what: str) -> AbstractAsyncContextManager[None]:
        """Return what surrounds one write, or anything else that must end before the work is another's.

        Raises:
            Fenced: it may not be made, or took longer than it may.
        """


FENCE: ContextVar[Fence | None] = ContextVar("fence", default=None)
"""The fence around whatever is done in this context, and in the tasks that it starts."""


class ApiConnection:
    """One identity at one API server. Use as an async context manager.

    *on_warning*, if set, is called with the path and the text of each warning that the server attaches to an answer.
    """

    def __init__(self, transport: Transport, impersonating: Headers | None = None, advice: str = "") -> None:
        self._transport = transport
        self._impersonating = impersonating
        self._advice = advice
        self.on_warning: Callable[[str, str], None] | None = None

    @classmethod
    async def connect(cls, access: Access | None = None) -> Self:
        """Return a client for the cluster that *access* (kubectl's flags) leads to. No request is made yet.

        Raises:
            KubeconfigError: the kubeconfig can't be read, lacks what was asked for, or its credential plugin fails.
        """
        access = access or Access()
        return cls(Transport(access, await resolve(access)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, also those of clients made by ``impersonate``."""
        await self._transport.close()

    def impersonate(self, user: str, groups: tuple[str, ...] = (), uid: str = "", advice: str = "") -> Self:
        """Return a client that acts as *user* over the same connections. What is refused to it is told with *advice*.

        Raises:
            KubeconfigError: *user* is empty, which would silently mean ourselves.
        """
        own = tuple(header for header in self._impersonating or () if header[0] == "Authorization")
        other = type(self)(self._transport, (*own, *impersonation(user, groups, uid)), advice)
        other.on_warning = self.on_warning
        return other

    @property
    def user(self) -> str:
        """As whom this client was made to act; empty where it is whoever connected."""
        return next((value for name, value in self._impersonating or () if name == "Impersonate-User"), "")

    def nameless(self) -> Self:
        """Return a client of the same server, with connections of its own, that has no identity; close it as any other."""
        return type(self)(self._transport.nameless())

    def bearing(self, token: str) -> Self:
        """Return a client that is whoever *token* says, over the connections of one that has no identity.

        Raises:
            KubeconfigError: the token has control characters in it.
        """
        return type(self)(self._transport, authorization(f"Bearer {token}"))

    def give_up_connections(self) -> None:
        """End all that is under way and go on along new connections: those of so far are dead, as far as the caller knows."""
        self._transport.give_up()

    def count_answers(self, count: Callable[[str, int], None]) -> None:
        """Call *count* with the verb and the status of each answer from now on, 0 where none came."""
        self._transport.on_answer = count

    @property
    def server(self) -> str:
        """The server's URL, for messages and cache keys."""
        return self._transport.route.server

    @property
    def context(self) -> str:
        """What the kubeconfig calls the server and who asks it; empty where none does."""
        return self._transport.route.context

    @property
    def namespace(self) -> str:
        """The namespace of objects that don't say: from the flag, the context, the pod, else ``default``."""
        return self._transport.route.namespace

    @property
    def request_timeout_s(self) -> float | None:
        """How long the user lets a request take, None without a limit of theirs. Watches aren't bound by it."""
        return self._transport.request_timeout_s

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Param] | None = None,
        body: Manifest | list[dict[str, Any]] | bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        etag: str = "",
        twice_after_s: float | None = None,
    ) -> Response:
        """Make any other request; return the successful answer (304 where *etag* still holds) as it came.

        With *twice_after_s* it may be sent twice: again if no answer comes for so long, along a new connection.

        Raises:
            Fenced: a write, and it is no longer ours to make, or had no answer for as long as it was.
            ApiError: the server refuses, or doesn't answer.
        """
        fence = FENCE.get() if method != "GET" else None
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        request = Request(method, path, params or {}, data, content_type, accept, etag, self._impersonating)
        try:
            async with fence.around(str(request)) if fence else nullcontext():
                if twice_after_s is None:
                    answer = await self._transport.send(request)
                else:
                    answer = await self._transport.send_twice(request, twice_after_s)
        except Forbidden as error:
            error.advice = self._advice
            raise
        if self.on_warning is not None:
            for text in answer.warnings:
                self.on_warning(path, text)
        return answer

    async def web_socket(self, path: str, protocol: str, **params: Param) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket at *path* that speaks *protocol*; whoever opens it closes it.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        request = Request("GET", path, params, impersonation=self._impersonating)
        try:
            return await self._transport.web_socket(request, protocol)
        except Forbidden as error:
            error.advice = self._advice
            raise
