"""Requests by HTTP: GETs of one URL over connections that are kept, the answers read to their end and thrown away.

Redirections aren't followed, proxies of the environment aren't asked: nothing but the server of the URL is.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from kubectl_reconcile import __version__
from kubectl_reconcile.load.arrivals import Send

_PIECE = 64 * 1024


class _OneAddress(AbstractResolver):
    """Has every host at one IP address."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        return [
            ResolveResult(
                hostname=host, host=self._address, port=port, family=family, proto=0, flags=socket.AI_NUMERICHOST
            )
        ]

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def requests_to(url: str, connections: int, address: str = "") -> AsyncIterator[Send]:
    """Give what sends one request to *url*, over at most so many *connections*; to the IP *address* where one is given."""
    resolver = _OneAddress(address) if address else None
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, ttl_dns_cache=None, resolver=resolver),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": f"kubectl-reconcile-load/{__version__}"},
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
        trust_env=False,
    )

    async def send() -> int:
        async with session.get(url, allow_redirects=False) as answer:
            async for _ in answer.content.iter_chunked(_PIECE):
                pass
            return answer.status

    async with session:
        yield send
