"""What the API server asks of a kubelet: how it is, and what containers print, and commands in them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web

from kubectl_reconcile.sandbox.pods.decisions.resolve import Container, containers
from kubectl_reconcile.sandbox.pods.nodelet import Nodelet
from kubectl_reconcile.sandbox.pods.served import portforward
from kubectl_reconcile.sandbox.pods.served.logs import LogOptions, printed
from kubectl_reconcile.sandbox.pods.served.peers import own_user_only
from kubectl_reconcile.sandbox.pods.served.streams import PROTOCOLS, execute
from kubectl_reconcile.sandbox.pods.worker import PodWorker

_DIAL_S = 5.0
_LARGEST_MESSAGE = 64 << 20
"""Bytes that are held of one message before it counts as a fault of the other side."""


@contextlib.asynccontextmanager
async def serve(nodelet: Nodelet, port: int, certificate: Path) -> AsyncIterator[None]:
    """Answer at *port* of the loopback, with the API server's own certificate, whoever runs processes of this user."""

    async def health(_: web.Request) -> web.Response:
        if nodelet.ready:
            return web.Response(text="ok")
        return web.Response(status=503, text="pods aren't sent to this node yet")

    app = web.Application(middlewares=[own_user_only])
    app.router.add_get("/healthz", health)
    requests = _Requests(nodelet)
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", requests.logs)
    for path in ("/exec/{namespace}/{pod}/{container}", "/exec/{namespace}/{pod}/{uid}/{container}"):
        app.router.add_route("*", path, requests.exec)
    for path in ("/portForward/{namespace}/{pod}", "/portForward/{namespace}/{pod}/{uid}"):
        app.router.add_route("*", path, requests.port_forward)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port, ssl_context=context).start()
        yield
    finally:
        await runner.cleanup()


class _Requests:
    """What is asked of the containers of *nodelet*."""

    def __init__(self, nodelet: Nodelet) -> None:
        self._nodelet = nodelet

    def _worker(self, request: web.Request) -> PodWorker:
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        worker = self._nodelet.worker(namespace, name)
        if worker is None:
            raise web.HTTPNotFound(text=f"pod {namespace}/{name} isn't on this node")
        return worker

    async def logs(self, request: web.Request) -> web.StreamResponse:
        """Send what a container has printed."""
        worker = self._worker(request)
        container = _container(worker, request)["name"]
        try:
            options = LogOptions.parse(request.query)
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        found = worker.folder.logs(container)
        place = -2 if options.previous else -1
        if len(found) < -place:
            which = "previous terminated " if options.previous else ""
            raise web.HTTPBadRequest(text=f"{which}container {container} of the pod has no log: it wasn't started")
        path = found[place]

        def runs() -> bool:
            run = worker.containers.runs.get(container)
            return run is not None and run["exitCode"] is None and worker.folder.log(container, run["attempt"]) == path

        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        async for text in printed(path, options, runs):
            await answer.write(text)
        return answer

    async def exec(self, request: web.Request) -> web.StreamResponse:
        """Run a command in a container."""
        worker = self._worker(request)
        container = _container(worker, request)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise web.HTTPBadRequest(text="commands run only over WebSocket (hint: kubectl 1.31 or newer)")
        socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=_LARGEST_MESSAGE)
        await socket.prepare(request)

        async def run(streams: list[int], tty: bool) -> int:  # noqa: FBT001 - called by position
            return await worker.containers.enter(container, request.query.getall("command"), streams, tty=tty)

        asked = {name for name in ("input", "tty") if request.query.get(name) in {"1", "true"}}
        await execute(socket, run, tty="tty" in asked, stdin="input" in asked)
        return socket

    async def port_forward(self, request: web.Request) -> web.StreamResponse:
        """Carry connections to ports of a pod."""
        worker = self._worker(request)
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise web.HTTPBadRequest(text="ports are forwarded only over WebSocket (hint: kubectl 1.31 or newer)")
        try:
            ports = portforward.ports_of(request.query.getall("port", []))
        except ValueError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        socket = web.WebSocketResponse(protocols=portforward.PROTOCOLS, max_msg_size=_LARGEST_MESSAGE)
        await socket.prepare(request)

        async def dial(port: int) -> portforward.Streams:
            found = await self._nodelet.runtime.dial(worker.containers.ip, port, _DIAL_S)
            return await asyncio.open_connection(sock=found)

        if socket.ws_protocol == portforward.CHANNELS:
            await portforward.ChannelForward(socket, dial, ports).serve()
        else:
            await portforward.PortForward(socket, dial).serve()
        return socket


def _container(worker: PodWorker, request: web.Request) -> Container:
    """Return the container that is asked for.

    Raises:
        HTTPNotFound: the pod has none of that name.
    """
    name = request.match_info["container"]
    for one in containers(worker.pod):
        if one["name"] == name:
            return one
    raise web.HTTPNotFound(text=f"the pod has no container {name}")
