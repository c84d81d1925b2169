"""What is packed by zstd, unpacked as it is read: in bounded memory and bounded time.

Vocabulary: a *frame* is what can be unpacked by itself; an archive may be many in a row, of which some hold nothing. Its *window* is how much of what was unpacked
must be held to unpack the rest.

A frame says itself how large its window is, and a frame of nothing takes eight bytes and longer to begin than many others to unpack: so both are bounded.
"""

from __future__ import annotations

import io
import sys
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC: Final = b"\x28\xb5\x2f\xfd"
"""What a frame begins with."""
MOST_FRAMES: Final = 20_000
"""How many frames there may be: two for each entry that an archive may have, as those make them who pack each file by itself."""

ZstdError: Final = zstd.ZstdError

_MOST_WINDOW_LOG: Final = 26
"""The window may be as large as all that an archive may unpack to, 64 MiB."""
_PIECE: Final = 64 * 1024


class ZstdReader(io.RawIOBase):
    """What *packed* unpacks to.

    Reading raises ``ZstdError`` where it isn't what zstd has packed, and ``EOFError`` where it is cut off.
    """

    def __init__(self, packed: bytes) -> None:
        self._packed = io.BytesIO(packed)
        self._frame, self._frames = self._begun(), 1

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most *size* bytes, and none at the end alone."""
        while True:
            given = self._packed.read(_PIECE) if self._frame.needs_input else b""
            if self._frame.eof and not (given := self._frame.unused_data or self._packed.read(_PIECE)):
                return b""
            if self._frame.eof:
                self._next()
            elif self._frame.needs_input and not given:
                raise EOFError("it is cut off")
            if data := self._frame.decompress(given, size):
                return data

    def _next(self) -> None:
        if self._frames >= MOST_FRAMES:
            raise ZstdError(f"it has more than {MOST_FRAMES:,} frames")
        self._frame, self._frames = self._begun(), self._frames + 1

    @staticmethod
    def _begun() -> zstd.ZstdDecompressor:
        return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _MOST_WINDOW_LOG})
