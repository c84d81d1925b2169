"""Commands in containers, as ``kubectl exec`` runs them: over WebSocket, in the protocol v5.channel.k8s.io.

The first byte of each message is a channel: 0 input, 1 output, 2 errors, 3 how it ended (a Status), 4 the size of the terminal; channel
255 closes the one that follows.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import struct
import termios
from collections.abc import Callable, Coroutine
from typing import Any

from aiohttp import WSMsgType, web

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")

_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_BLOCK = 1 << 16
_LAST_OUTPUT_S = 2.0

Run = Callable[[list[int], bool], Coroutine[Any, Any, int]]
"""Runs the command on three open files, on a terminal or not; returns its exit status."""


class Ends:
    """Both ends of a command's streams: pipes, or a terminal."""

    def __init__(self, *, tty: bool) -> None:
        if tty:
            self.writing, terminal = os.openpty()
            self.theirs, self.reading = [terminal] * 3, {_STDOUT: self.writing}
        else:
            (stdin, self.writing), (out, stdout), (err, stderr) = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
            self.theirs, self.reading = [stdin, stdout, stderr], {_STDOUT: out, _STDERR: err}
        self._open = {*self.theirs, self.writing, *self.reading.values()}
        for fd in self._open - set(self.theirs):
            os.set_blocking(fd, False)

    def close(self, *fds: int) -> None:
        """Close those of *fds* that are open; all without any."""
        for fd in self._open & set(fds or self._open):
            self._open.discard(fd)
            os.close(fd)

    def is_open(self, fd: int) -> bool:
        """Tell whether *fd* wasn't closed yet."""
        return fd in self._open


async def execute(socket: web.WebSocketResponse, run: Run, *, tty: bool, stdin: bool) -> None:
    """Run a command, with its streams on *socket*; ends when both have."""
    ends = Ends(tty=tty)
    if not stdin and not tty:
        ends.close(ends.writing)
    hearing = asyncio.create_task(_hear(socket, ends, tty=tty))
    telling = [asyncio.create_task(_tell(socket, channel, fd)) for channel, fd in ends.reading.items()]
    running = asyncio.ensure_future(run(ends.theirs, tty))
    try:
        await asyncio.wait({running, hearing}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():  # the client has gone
            return
        ends.close(*ends.theirs)
        await asyncio.wait(telling, timeout=_LAST_OUTPUT_S)  # what it left in the background may go on forever
        await socket.send_bytes(bytes([_ERROR]) + json.dumps(_status(running)).encode())
    finally:
        for task in (running, hearing, *telling):
            task.cancel()
        await asyncio.wait({running, hearing, *telling})
        ends.close()
        await socket.close()


def _status(running: asyncio.Future[int]) -> dict[str, Any]:
    """Return how a command has ended, as an API Status."""
    error = running.exception()
    if error is not None:
        return {"metadata": {}, "status": "Failure", "reason": "InternalError", "message": str(error), "code": 500}
    code = running.result()
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


async def _hear(socket: web.WebSocketResponse, ends: Ends, *, tty: bool) -> None:
    """Pass on what the client sends, until it goes."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == _STDIN and ends.is_open(ends.writing):
            with contextlib.suppress(OSError):  # it doesn't want to hear more
                await _write(ends.writing, data)
        elif channel == _CLOSE and data[:1] == bytes([_STDIN]) and not tty:
            ends.close(ends.writing)
        elif channel == _RESIZE and tty:
            size = json.loads(data)
            fcntl.ioctl(ends.writing, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))


async def _tell(socket: web.WebSocketResponse, channel: int, fd: int) -> None:
    """Send what can be read from *fd*, to its end."""
    while data := await _read(fd):
        await socket.send_bytes(bytes([channel]) + data)


async def _read(fd: int) -> bytes:
    while True:
        await _ready(fd, writing=False)
        try:
            return os.read(fd, _BLOCK)
        except BlockingIOError:
            continue
        except OSError:  # how a terminal ends
            return b""


async def _write(fd: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            await _ready(fd, writing=True)


async def _ready(fd: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not ready.done():
            ready.set_result(None)

    (loop.add_writer if writing else loop.add_reader)(fd, settle)
    try:
        await ready
    finally:
        (loop.remove_writer if writing else loop.remove_reader)(fd)
