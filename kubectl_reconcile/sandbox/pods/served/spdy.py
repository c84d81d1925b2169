"""SPDY/3.1 frames, as far as ``kubectl port-forward`` speaks it: bytes in, events out, and frames to be sent.

Pure. There are no windows and no priorities, which its other end doesn't have either. Headers are compressed with a dictionary that the
protocol prescribes, in one stream for the whole connection and direction.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING = 1, 2, 3, 6
_VERSION = 0x8003
_HEADER = 8
_MOST_HEADERS = 1 << 14
_FIN = 1
_WORDS = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|"
    "accept-ranges|age|allow|authorization|cache-control|connection|content-base|content-encoding|"
    "content-language|content-length|content-location|content-md5|content-range|content-type|date|etag|"
    "expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|if-unmodified-since|"
    "last-modified|location|max-forwards|pragma|proxy-authenticate|proxy-authorization|range|referer|"
    "retry-after|server|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|warning|www-authenticate|"
    "method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-alive|origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Au"
    "thoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidd"
    "en404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr Ma"
    "y Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,imag"
    "e/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicpri"
    "vatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
_DICTIONARY = b"".join(len(word).to_bytes(4) + word.encode() for word in _WORDS.split("|")) + _REST.encode()
"""What headers are compressed with."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The other side has opened a stream."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Received:
    """Data came on a stream; *ended* if it is the last."""

    stream: int
    data: bytes = b""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pinged:
    """The other side wants *reply* to be sent."""

    reply: bytes = field(repr=False)


Event = Opened | Received | Pinged


class SpdyConnection:
    """One side's view of a connection, that of whom streams are opened to."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=_DICTIONARY)
        self._deflate = zlib.compressobj(zdict=_DICTIONARY)

    def receive(self, data: bytes) -> Iterator[Event]:
        """Yield what *data*, together with what came before, says.

        Raises:
            ValueError, zlib.error: it isn't SPDY.
        """
        self._buffer += data
        while len(self._buffer) >= _HEADER:
            size = int.from_bytes(self._buffer[5:8])
            if len(self._buffer) < _HEADER + size:
                return
            head, body = bytes(self._buffer[:5]), bytes(self._buffer[_HEADER : _HEADER + size])
            del self._buffer[: _HEADER + size]
            yield from self._frame(head, body)

    def _frame(self, head: bytes, body: bytes) -> Iterator[Event]:
        flags = head[4]
        if not head[0] & 0x80:
            yield Received(int.from_bytes(head[:4]), body, ended=bool(flags & _FIN))
            return
        version, kind = struct.unpack(">HH", head[:4])
        if version != _VERSION:
            raise ValueError(f"SPDY of version {version & 0x7FFF}, not 3")
        if kind == _SYN_STREAM:
            stream = int.from_bytes(body[:4]) & 0x7FFFFFFF
            block = self._inflate.decompress(body[10:], _MOST_HEADERS)
            if self._inflate.unconsumed_tail:
                raise ValueError(f"the headers of a stream have more than {_MOST_HEADERS} bytes")
            yield Opened(stream, _headers(block))
            if flags & _FIN:
                yield Received(stream, ended=True)
        elif kind == _RST_STREAM:
            yield Received(int.from_bytes(body[:4]) & 0x7FFFFFFF, ended=True)
        elif kind == _PING:
            yield Pinged(_control(_PING, body))

    def accept(self, stream: int) -> bytes:
        """Return the frame that accepts *stream*."""
        block = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, stream.to_bytes(4) + block)

    @staticmethod
    def data(stream: int, data: bytes = b"", *, ended: bool = False) -> bytes:
        """Return the frame that carries *data*; *ended* says that no more will come."""
        return stream.to_bytes(4) + bytes([_FIN if ended else 0]) + len(data).to_bytes(3) + data


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack(">HH", _VERSION, kind) + b"\0" + len(body).to_bytes(3) + body


def _headers(block: bytes) -> dict[str, str]:
    values: list[str] = []
    at = 4
    for _ in range(2 * int.from_bytes(block[:4])):
        size = int.from_bytes(block[at : at + 4])
        if at + 4 + size > len(block):
            raise ValueError("the headers of a stream end early")
        values.append(block[at + 4 : at + 4 + size].decode())
        at += 4 + size
    return dict(zip(values[::2], values[1::2], strict=True))
