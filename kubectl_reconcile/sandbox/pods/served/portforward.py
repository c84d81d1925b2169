"""Ports of pods, as clients ask for them: by channels of a WebSocket, or, as ``kubectl port-forward`` does, by SPDY in its messages.

With SPDY, the client opens two streams for each connection: one for data, one on which it hears what went wrong. With channels, a WebSocket is
one connection to each port: the first byte of a message names the channel, two for each port, on which the port is told first.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from aiohttp import WSMsgType, web

from kubectl_reconcile.sandbox.pods.served.spdy import Opened, Pinged, Received, SpdyConnection
from kubectl_reconcile.sandbox.runtime.channel import CallError

CHANNELS = "v4.channel.k8s.io"
PROTOCOLS = ("SPDY/3.1+portforward.k8s.io", CHANNELS)

_BLOCK = 1 << 15
_MOST_WAITING = 64
"""Messages of a client that wait for a pod that doesn't read; the next one, and with it all of that client, waits too."""
_MOST_PORTS = 128

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[int], Awaitable[Streams]]
"""Connects to a port of the pod."""


def ports_of(asked: Sequence[str]) -> list[int]:
    """Return the ports that are *asked* for, each in a word of its own or with others in one.

    Raises:
        ValueError: one is none, or they are more than channels can be numbered for.
    """
    words = [word for text in asked for word in text.split(",")]
    if len(words) > _MOST_PORTS:
        raise ValueError(f"{len(words)} ports: at most {_MOST_PORTS} are forwarded at once")
    return [port_of(word) for word in words]


def port_of(word: str) -> int:
    """Return the port that *word* is.

    Raises:
        ValueError: it is none.
    """
    if not (word.isascii() and word.isdigit() and 0 < int(word[:6]) < 1 << 16):
        raise ValueError(f"{word[:40]!r} isn't a port")
    return int(word)


class _Inbox:
    """What a client has sent to one connection; ``b""`` is its end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._closed = False

    async def put(self, data: bytes) -> None:
        """Add *data*, once there is room; what comes after the end of the connection is lost."""
        if not self._closed:
            await self._queue.put(data)

    def close(self) -> None:
        """Take no more, and release who waits to add something."""
        self._closed = True
        while not self._queue.empty():
            self._queue.get_nowait()

    async def send(self, writer: asyncio.StreamWriter) -> None:
        """Write what comes in until it ends."""
        try:
            while data := await self._queue.get():
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except OSError:  # whoever reads from there sees it too
            pass
        finally:
            self.close()


class PortForward:
    """One client and the connections that it has."""

    def __init__(self, socket: web.WebSocketResponse, dial: Dial) -> None:
        self._socket = socket
        self._dial = dial
        self._spdy = SpdyConnection()
        self._errors: dict[str, int] = {}
        self._incoming: dict[int, _Inbox] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Carry data until the client goes."""
        try:
            async for message in self._socket:
                if message.type is WSMsgType.BINARY:
                    for event in self._spdy.receive(message.data):
                        await self._handle(event)
        except (ValueError, zlib.error):
            await self._socket.close()
        finally:
            for task in self._tasks:
                task.cancel()

    async def _handle(self, event: Opened | Received | Pinged) -> None:
        if isinstance(event, Pinged):
            await self._socket.send_bytes(event.reply)
        elif isinstance(event, Received):
            inbox = self._incoming.get(event.stream)
            if inbox is not None:
                if event.data:
                    await inbox.put(event.data)
                if event.ended:
                    await inbox.put(b"")
        else:
            await self._socket.send_bytes(self._spdy.accept(event.stream))
            request = event.headers.get("requestid", "")
            if event.headers.get("streamtype") == "error":
                self._errors[request] = event.stream
            else:
                port = port_of(event.headers.get("port", ""))
                self._incoming[event.stream] = _Inbox()
                task = asyncio.create_task(self._carry(event.stream, request, port))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _carry(self, stream: int, request: str, port: int) -> None:
        problem = ""
        try:
            reader, writer = await self._dial(port)
        except (CallError, OSError) as error:
            problem = f"port {port} of the pod can't be reached: {error}"
        else:
            sending = asyncio.create_task(self._incoming[stream].send(writer))
            try:
                while data := await reader.read(_BLOCK):
                    await self._socket.send_bytes(self._spdy.data(stream, data))
            except OSError as error:
                problem = f"port {port} of the pod: {error}"
            finally:
                sending.cancel()
                writer.close()
        self._incoming.pop(stream).close()
        await self._socket.send_bytes(self._spdy.data(stream, ended=True))
        if request in self._errors:
            await self._socket.send_bytes(self._spdy.data(self._errors.pop(request), problem.encode(), ended=True))


class ChannelForward:
    """One client that has one connection to each of *ports*."""

    def __init__(self, socket: web.WebSocketResponse, dial: Dial, ports: Sequence[int]) -> None:
        self._socket = socket
        self._dial = dial
        self._ports = ports

    async def serve(self) -> None:
        """Carry data until the client goes, or no connection is left."""
        incoming: dict[int, _Inbox] = {}
        tasks = []
        for at, port in enumerate(self._ports):
            for channel in (2 * at, 2 * at + 1):
                await self._socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
            incoming[2 * at] = _Inbox()
            tasks.append(asyncio.create_task(self._carry(2 * at, port, incoming[2 * at])))
        hearing = asyncio.create_task(self._hear(incoming))
        working = [hearing, asyncio.create_task(_all_of(tasks))]
        try:
            await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (*working, *tasks):
                task.cancel()
            await asyncio.gather(*working, *tasks, return_exceptions=True)
            await self._socket.close()

    async def _hear(self, incoming: Mapping[int, _Inbox]) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY and len(message.data) > 1 and (inbox := incoming.get(message.data[0])):
                await inbox.put(message.data[1:])

    async def _carry(self, channel: int, port: int, incoming: _Inbox) -> None:
        try:
            reader, writer = await self._dial(port)
        except (CallError, OSError) as error:
            problem = f"port {port} of the pod can't be reached: {error}"
            incoming.close()
            await self._socket.send_bytes(bytes([channel + 1]) + problem.encode())
            return
        sending = asyncio.create_task(incoming.send(writer))
        try:
            while data := await reader.read(_BLOCK):
                await self._socket.send_bytes(bytes([channel]) + data)
        except OSError as error:
            await self._socket.send_bytes(bytes([channel + 1]) + f"port {port} of the pod: {error}".encode())
        finally:
            sending.cancel()
            writer.close()


async def _all_of(tasks: Sequence[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks)
