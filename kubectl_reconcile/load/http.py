"""Requests by HTTP: GETs of one URL over connections that are kept, the answers read to their end and thrown away.

Redirections aren't followed, proxies of the environment aren't asked: nothing but the server of the URL is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from kubectl_reconcile import __version__
from kubectl_reconcile.load.arrivals import Send

_PIECE = 64 * 1024


@asynccontextmanager
async def requests_to(url: str, connections: int) -> AsyncIterator[Send]:
    """Give what sends one request to *url*, over at most so many *connections*."""
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, ttl_dns_cache=None),
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
