"""Requests over a Unix socket that can carry open files: one connection, one request, one answer, each a line of JSON.

A socket is named by the folder it is in, since the whole path may be longer than the 107 bytes that an address has room for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Answer = tuple[dict[str, Any], Sequence[int]]
Handler = Callable[[dict[str, Any], list[int]], Awaitable[Answer]]
"""Answers a request and the files that came with it, by a reply and files of which it gives its own away."""

_MOST_FILES = 8
_CHUNK = 1 << 16
_AGAIN_S = 0.1


class CallError(Exception):
    """What was asked could not be done; the text says why."""


async def call(path: Path, request: dict[str, Any], files: Sequence[int] = ()) -> tuple[dict[str, Any], list[int]]:
    """Send *request* with open *files* to whoever listens at *path*; return the reply and the files that came with it.

    Raises:
        CallError: it could not be done.
        OSError: nobody listens, or whoever did has ended.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        with _short(path) as address:
            connection.connect(address)  # local: it is there at once, or refused
        connection.setblocking(False)
        await _send(connection, request, files)
        answer, received = await _receive(connection)
    if "error" in answer:
        for fd in received:
            os.close(fd)
        raise CallError(answer["error"])
    return answer, received


async def serve(path: Path, handler: Handler) -> None:
    """Answer whoever connects to *path*, forever, also where no more files can be opened for a while.

    An answer that nobody waits for any more is given up.
    """
    listener = _listen(path)
    loop = asyncio.get_running_loop()
    running: set[asyncio.Task[None]] = set()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError:  # no file is left to be opened: whoever waits is heard once one is
            await asyncio.sleep(_AGAIN_S)
            continue
        task = asyncio.create_task(_serve_one(connection, handler))
        running.add(task)
        task.add_done_callback(running.discard)


def _listen(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    with _short(path) as address:
        listener.bind(address)
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    listener.listen(128)
    listener.setblocking(False)
    return listener


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield an address of *path* that is never too long."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


async def _serve_one(connection: socket.socket, handler: Handler) -> None:
    connection.setblocking(False)
    with connection, contextlib.suppress(OSError):
        request, files = await _receive(connection)
        work = asyncio.ensure_future(_answered(handler, request, files))
        gone = asyncio.ensure_future(readable(connection))  # nothing more is sent, so that is the end
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        await asyncio.wait({gone})  # while the connection is open: what is closed can't be looked at any more
        if not work.done():
            work.cancel()
            return
        answer, given = work.result()
        try:
            await _send(connection, answer, given)
        finally:
            for fd in given:
                os.close(fd)


async def _answered(handler: Handler, request: dict[str, Any], files: list[int]) -> Answer:
    try:
        return await handler(request, files)
    except (CallError, OSError) as error:
        return {"error": str(error)}, ()
    finally:
        for fd in files:  # what is kept of them was duplicated
            os.close(fd)


async def _send(connection: socket.socket, message: dict[str, Any], files: Sequence[int]) -> None:
    data = json.dumps(message).encode() + b"\n"
    sent = socket.send_fds(connection, [data[:1024]], list(files))
    if rest := data[sent:]:  # nothing may be sent to whom has heard all and answered
        await asyncio.get_running_loop().sock_sendall(connection, rest)


async def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    await readable(connection)
    data, files, _, _ = socket.recv_fds(connection, _CHUNK, _MOST_FILES)
    loop = asyncio.get_running_loop()
    while not data.endswith(b"\n"):
        more = await loop.sock_recv(connection, _CHUNK)
        if not more:
            raise ConnectionResetError("the other side has ended")
        data += more
    message: dict[str, Any] = json.loads(data)
    return message, list(files)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def readable(connection: socket.socket) -> None:
    """Return once there is something to be read from *connection*, or it has ended."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    fd = connection.fileno()
    loop.add_reader(fd, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
