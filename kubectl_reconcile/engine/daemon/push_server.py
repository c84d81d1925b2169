"""The little of HTTP that Git servers need to report a push, for anybody who may reach the port.

One request a connection, its headers within a deadline and a bound, its body read in pieces by whoever answers, as far as they want to. At most
so many connections at once: beyond that the oldest goes, since who is genuine is done in a moment. So what strangers can
make us hold is a few pages for each connection, whatever they send and however slowly.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

from msgspec import Struct

from kubectl_reconcile.engine.daemon.http import listened_on
from kubectl_reconcile.engine.telemetry.logs import event

MOST_CONNECTIONS = 64
HEADERS_S = 5.0
"""Until the headers are there; the body and the answer have BODY_S."""
BODY_S = 20.0

_HEADERS_MAX = 16 * 1024
_PIECE = 16 * 1024
_LEFT_MAX = 256 * 1024  # what is read of a refused body, so that the answer isn't lost with the connection
_LEFT_S = 0.5

log = logging.getLogger(__name__)


class HookRequest(Struct, frozen=True):
    """The head of a request, and its body to be read."""

    method: str
    path: str
    headers: Mapping[str, str]
    length: int
    body: asyncio.StreamReader

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces.

        Raises:
            asyncio.IncompleteReadError: it ended too early.
        """
        left = self.length
        while left:
            piece = await self.body.read(min(left, _PIECE))
            if not piece:
                raise asyncio.IncompleteReadError(b"", left)
            left -= len(piece)
            yield piece


class HookAnswer(Struct, frozen=True):
    """What is said to a request."""

    status: int
    text: str


class BadRequestError(Exception):
    """What came isn't a request that is understood here; *answer* says why."""

    def __init__(self, status: int, text: str) -> None:
        self.answer = HookAnswer(status, text)
        super().__init__(text)


@asynccontextmanager
async def serving_pushes(address: str, answer: Callable[[HookRequest], Awaitable[HookAnswer]]) -> AsyncIterator[str]:
    """Serve on *address* (``host:port``, port 0 chooses one) and yield the resulting address; no address, no server.

    Raises:
        ListenError: the address is malformed or taken.
    """
    if not address:
        yield ""
        return
    async with listened_on(address, "--listen-hooks") as (host, port):
        server = await asyncio.start_server(_Connections(answer).serve, host, port, limit=_HEADERS_MAX)
    try:
        chosen = server.sockets[0].getsockname()
        yield f"{chosen[0]}:{chosen[1]}"
    finally:
        server.close()


class _Connections:
    """The connections that are open, oldest first."""

    def __init__(self, answer: Callable[[HookRequest], Awaitable[HookAnswer]]) -> None:
        self._answer = answer
        self._open: dict[asyncio.StreamWriter, None] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one request of a connection."""
        while len(self._open) >= MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                await self._one(reader, writer)
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = await self._answered(reader)
        body = f"{answer.text}\n".encode()
        phrase = HTTPStatus(answer.status).phrase
        head = f"HTTP/1.1 {answer.status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        async with asyncio.timeout(HEADERS_S):
            await writer.drain()
            writer.write_eof()
        left = _LEFT_MAX
        async with asyncio.timeout(_LEFT_S):
            while left > 0 and (piece := await reader.read(_PIECE)):
                left -= len(piece)

    async def _answered(self, reader: asyncio.StreamReader) -> HookAnswer:
        try:
            async with asyncio.timeout(HEADERS_S):
                request = _request(await reader.readuntil(b"\r\n\r\n"), reader)
            async with asyncio.timeout(BODY_S):
                return await self._answer(request)
        except BadRequestError as error:
            return error.answer
        except asyncio.LimitOverrunError:
            return HookAnswer(431, f"more than {_HEADERS_MAX} bytes of headers")
        except TimeoutError:
            return HookAnswer(408, "too slow")
        except (OSError, asyncio.IncompleteReadError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends on this request
            event(log, logging.ERROR, "request not answered", error=repr(error))
            return HookAnswer(500, "internal error; the next poll finds the push")


def _request(head: bytes, body: asyncio.StreamReader) -> HookRequest:
    """Return the request that begins with *head*.

    Raises:
        BadRequestError: it isn't HTTP, or its length isn't told.
    """
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    words = first.split(" ")
    if len(words) != 3 or words[2] not in {"HTTP/1.0", "HTTP/1.1"}:
        raise BadRequestError(400, "no HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in headers:
            raise BadRequestError(400, "a header is malformed or repeated")
        headers[name.lower()] = value.strip()
    length = headers.get("content-length", "0" if words[0] == "GET" else "")
    if "transfer-encoding" in headers or not (length.isascii() and length.isdigit() and len(length) < 16):
        raise BadRequestError(411, "the header Content-Length is required")
    return HookRequest(words[0], words[1], headers, int(length), body)
