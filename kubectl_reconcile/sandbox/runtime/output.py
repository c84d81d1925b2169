"""What containers print, kept in the format of container runtimes: ``time stream F text``, ``P`` for part of a line."""

from __future__ import annotations

import asyncio
import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 14
_LARGEST_FILE = 16 << 20


class OutputFile:
    """The file that one run of a container prints into; one that is full is kept beside it until the next is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd = self._open()
        self._open_pipes = 0

    def pipe(self, stream: str) -> int:
        """Return the writing end of a new pipe into the file; the caller closes it."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        self._open_pipes += 1
        rest = bytearray()
        asyncio.get_running_loop().add_reader(reading, self._read, reading, stream, rest)
        return writing

    def _read(self, reading: int, stream: str, rest: bytearray) -> None:
        with contextlib.suppress(BlockingIOError):
            data = os.read(reading, _CHUNK)
            rest += data
            self._write(stream, rest, ended=not data)
            if not data:
                self._close(reading)

    def _write(self, stream: str, rest: bytearray, *, ended: bool) -> None:
        prefix = f"{datetime.now(UTC).strftime('%Y-%m-%dT%H:%M:%S.%f')}000Z {stream}".encode()
        lines = []
        while (end := rest.find(b"\n", 0, _LONGEST_LINE)) >= 0 or len(rest) >= _LONGEST_LINE:
            line, tag = (rest[:end], b"F") if end >= 0 else (rest[:_LONGEST_LINE], b"P")
            lines.append(b"%b %b %b\n" % (prefix, tag, bytes(line)))
            del rest[: end + 1 if end >= 0 else _LONGEST_LINE]
        if ended and rest:
            lines.append(b"%b P %b\n" % (prefix, bytes(rest)))
        with contextlib.suppress(OSError):  # a full disk mustn't stop a container
            os.write(self._fd, b"".join(lines))
            if os.fstat(self._fd).st_size > _LARGEST_FILE:
                self._path.replace(self._path.with_suffix(".old"))
                full, self._fd = self._fd, self._open()  # in this order: a number that was closed may be another file's
                os.close(full)

    def _open(self) -> int:
        return os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def _close(self, reading: int) -> None:
        asyncio.get_running_loop().remove_reader(reading)
        os.close(reading)
        self._open_pipes -= 1
        if not self._open_pipes:
            os.close(self._fd)
