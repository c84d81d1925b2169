"""What the daemon answers over HTTP: is it alive, is it ready, what did it count.

``/healthz`` answers as long as the event loop turns and some work got done lately; ``/readyz`` once the
caches hold the cluster; ``/metrics`` in Prometheus' text format. Nothing here can be asked to
do anything; Git servers that report a push have a port of their own (``push_server.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from kubectl_reconcile.engine.telemetry.metrics import Metrics


class ListenError(Exception):
    """The address can't be listened on; the message says which and why."""


@asynccontextmanager
async def serving(
    address: str,
    metrics: Metrics,
    *,
    alive: Callable[[], str],
    ready: Callable[[], str],
) -> AsyncIterator[str]:
    """Serve on *address* (``host:port``, port 0 chooses one) and yield the resulting address.

    *alive* and *ready* return what is wrong, or nothing.

    Raises:
        ListenError: the address is malformed or taken.
    """
    app = web.Application()
    app.router.add_get("/healthz", _answering(alive))
    app.router.add_get("/readyz", _answering(ready))
    app.router.add_get("/metrics", _metrics(metrics))
    async with running(web.AppRunner(app, access_log=None), address, "--listen") as chosen:
        yield chosen


@asynccontextmanager
async def running(runner: web.AppRunner, address: str, flag: str) -> AsyncIterator[str]:
    """Have *runner* serve on *address* in the block and yield the resulting address; *flag* is what gives the address.

    Raises:
        ListenError: the address is malformed or taken.
    """
    await runner.setup()
    try:
        async with listened_on(address, flag) as (host, port):
            await web.TCPSite(runner, host, port).start()
        chosen = runner.addresses[0]
        yield f"{chosen[0]}:{chosen[1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def listened_on(address: str, flag: str) -> AsyncIterator[tuple[str, int]]:
    """Yield host and port of *address*, to be listened on in the block; *flag* is what gives the address.

    Raises:
        ListenError: the address is malformed or taken.
    """
    try:
        yield _split(address)
    except OSError as error:
        raise ListenError(f"can't listen on {address}: {error.strerror}; choose another with {flag}") from error


def _split(address: str) -> tuple[str, int]:
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ListenError(f"{address!r} isn't an address to listen on; write it as 127.0.0.1:8080")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - as in Go, no host means all of them


def _answering(wrong: Callable[[], str]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_request: web.Request) -> web.Response:
        fault = wrong()
        return web.Response(status=503 if fault else 200, text=f"{fault or 'ok'}\n")

    return answer


def _metrics(metrics: Metrics) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return answer
