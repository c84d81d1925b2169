"""The connections along one route: made, kept alive, given up.

Connections may die silently: a machine goes away, or a proxy drops them. The system asks each idle one for a
sign of life (TCP keepalive). What that can't tell, since something in between answers, is found out by whoever misses something.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import WeakSet

import aiohttp
from aiohttp.connector import AddrInfoType

from kubectl_reconcile.cluster.access.cluster import Route
from kubectl_reconcile.cluster.errors import GivenUp

_CONNECTIONS = 192
"""As many as are under way at a time, late ones among them, and as many for reading."""
_READ_BUFFER = 2**20
_TLS_BUFFER = 32 * 1024
_IDLE_S = 55.0
_IDLE_WATCH_S = 1.0
"""How long a watch's connection waits for the next watch, which comes at once: one that waits longer may have died by then."""
_CLOSING_S = 1.0
"""How long closing may take at most: a turn or two of the loop."""
_KEEPALIVE = {"TCP_KEEPIDLE": 6, "TCP_KEEPINTVL": 3, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}
"""A dead peer is known after fifteen seconds, be the connection idle or not. By the system's names; it may lack some."""


# asyncio fills a buffer of 256 KiB with zeros for each TLS connection, dozens of which are open after a first sync.
SSLProtocol.max_size = _TLS_BUFFER


class Connections:
    """The connections along one route: a bounded pool for requests, and one each per watch."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self._waiting: set[asyncio.Timeout] = set()
        self._is_given_up = False
        self._sockets: WeakSet[socket.socket] = WeakSet()
        context = route.tls.context() if route.server.startswith("https:") else None
        self.requests = self._open(context, limit=_CONNECTIONS, idle_s=_IDLE_S)
        self.watches = self._open(context, limit=0, idle_s=_IDLE_WATCH_S)

    def _open(self, context: ssl.SSLContext | None, *, limit: int, idle_s: float) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=limit, ssl=context or True, keepalive_timeout=idle_s, socket_factory=self._made
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
        )

    @asynccontextmanager
    async def bound(self) -> AsyncIterator[None]:
        """Wait for something along these connections; no longer once they are given up.

        Raises:
            GivenUp: they are.
        """
        if self._is_given_up:
            raise GivenUp(self.route.server)
        try:
            async with asyncio.timeout(None) as limit:
                self._waiting.add(limit)
                try:
                    yield
                finally:
                    self._waiting.discard(limit)
        except TimeoutError:
            if limit.expired():
                raise GivenUp(self.route.server) from None
            raise

    def give_up(self) -> None:
        """End whatever waits for something along these connections."""
        self._is_given_up = True
        for limit in self._waiting:
            limit.reschedule(asyncio.get_running_loop().time())

    async def close(self) -> None:
        """Close them all at once: a TLS farewell isn't waited for, nor a connection that is being made for nobody any more."""
        await self.requests.close()
        await self.watches.close()
        until_s = time.monotonic() + _CLOSING_S
        while (left := [each for each in self._sockets if each.fileno() >= 0]) and time.monotonic() < until_s:
            for each in left:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)

    def _made(self, address: AddrInfoType) -> socket.socket:
        made = _kept_alive(address)
        self._sockets.add(made)
        return made


def _kept_alive(address: AddrInfoType) -> socket.socket:
    """Return a socket whose peer the system asks for signs of life."""
    family, type_, proto, *_ = address
    made = socket.socket(family, type_, proto)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if (option := getattr(socket, name, None)) is not None:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


async def end_web_socket(web_socket: aiohttp.ClientWebSocketResponse) -> None:
    """Close a WebSocket, and its connection at once: a TLS farewell never comes where what the far side sends isn't read any more."""
    connection = web_socket._response.connection  # noqa: SLF001 - aiohttp offers no other way to it
    transport = connection.transport if connection is not None else None
    try:
        await web_socket.close()
    finally:
        if transport is not None:
            transport.abort()


def hang_up(response: aiohttp.ClientResponse) -> None:
    """Release an answer that may go on for minutes; waiting for a TLS farewell would keep its socket as long."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()
