"""A connection to a port of a pod, carried by the API server: what ``kubectl port-forward`` does, for one connection.

The API server and the kubelet speak ``v4.channel.k8s.io``: the first byte of each message of a WebSocket names a *channel*, 0 for data,
1 for what went wrong. On each the kubelet first repeats the port, in two bytes. It takes the rights get and create on ``pods/portforward``.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import aiohttp

from kubectl_reconcile.cluster.connection import ApiConnection
from kubectl_reconcile.cluster.errors import printable
from kubectl_reconcile.cluster.sockets import end_web_socket

PROTOCOL = "v4.channel.k8s.io"

_DATA, _FAULT = 0, 1
_PORT_BYTES = 2
_BLOCK = 1 << 15
_FAULT_MAX = 300


class PodTunnel:
    """One connection into a pod. *socket* is its near end, *fault* what the far side said went wrong, if it did."""

    def __init__(self, carrier: aiohttp.ClientWebSocketResponse) -> None:
        self._carrier = carrier
        self.socket, self._end = socket.socketpair()
        for end in (self.socket, self._end):
            end.setblocking(False)
        self.fault = ""
        self._carrying = asyncio.create_task(self._carry())

    @classmethod
    async def open(cls, client: ApiConnection, namespace: str, pod: str, port: int) -> PodTunnel:
        """Return a connection to *port* of *pod*. Whether somebody listens there shows when it is used.

        Raises:
            Forbidden: the client may not forward ports of pods there.
            ApiError: there is no such pod, or the server doesn't answer.
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward"
        return cls(await client.web_socket(path, PROTOCOL, ports=port))

    async def close(self) -> None:
        """End the connection, and forget what was under way."""
        self._carrying.cancel()
        with suppress(asyncio.CancelledError):
            await self._carrying
        self.socket.close()

    async def _carry(self) -> None:
        """Carry data both ways until either side has none any more."""
        ways = [asyncio.create_task(self._out()), asyncio.create_task(self._in())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            with suppress(OSError):
                self._end.shutdown(socket.SHUT_RDWR)
            try:
                await asyncio.gather(*ways, return_exceptions=True)
                await end_web_socket(self._carrier)
            finally:
                self._end.close()

    async def _out(self) -> None:
        loop = asyncio.get_running_loop()
        while block := await loop.sock_recv(self._end, _BLOCK):
            await self._carrier.send_bytes(bytes([_DATA]) + block)

    async def _in(self) -> None:
        loop, to_skip = asyncio.get_running_loop(), {_DATA: _PORT_BYTES, _FAULT: _PORT_BYTES}
        async for message in self._carrier:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data or message.data[0] not in to_skip:
                continue
            channel, data = message.data[0], message.data[1:]
            skipped = min(to_skip[channel], len(data))
            to_skip[channel] -= skipped
            if channel == _FAULT:
                self.fault = printable(self.fault + data[skipped:].decode(errors="replace"))[:_FAULT_MAX]
            elif len(data) > skipped:
                await loop.sock_sendall(self._end, data[skipped:])
