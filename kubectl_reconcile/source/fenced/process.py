"""A fenced program as a process: frames go in and come out, and it is killed where it takes too much.

A *frame* is four bytes of length, the most significant first, and so many bytes of JSON. We send an order; it may ask for files,
one at a time; at last it says the result of the order. What it works on is hostile, so it has an empty environment, limits of
memory and time, and a bound on what it may say; on Linux it has given up the right to open anything itself.
"""

from __future__ import annotations

import base64
import contextlib
import os
import resource
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from kubectl_reconcile.source.errors import one_line
from kubectl_reconcile.source.fenced.program import FencedProgram
from kubectl_reconcile.source.running.memory import LEAST_BYTES, MEMORY, Memory

LARGEST_FRAME: Final = 96 * 1024 * 1024
_BLOCK: Final = 256 * 1024
_START_S: Final = 10.0
_SAID_BYTES: Final = 64 * 1024
_NO_MEMORY: Final = ("out of memory", "cannot allocate memory", "failed to reserve")

Answer = Callable[[str, str], Mapping[str, Any]]
"""Answers a question, ``look``, ``read`` or ``list``, about a path."""


class ProgramEndedError(Exception):
    """The process ended, or was ended, before it had done what it was to do; the message says why."""


class ProgramLateError(ProgramEndedError):
    """It took longer than it may."""


class ProgramLargeError(ProgramEndedError):
    """It took more memory than it may."""


class FencedProcess:
    """One running process of a *program*, which lies at *place*; it carries out one order at a time. Close it, or it ends with us.

    It may write *memory_bytes* of data, which are set aside of *all_bytes* of *memory* for as long as it is there. One that *rests* has nothing to do, and
    is ended when others need them.

    Raises:
        ProgramEndedError: it doesn't start, or is of another version.
        SourceError: nobody waits any more.
    """

    def __init__(
        self,
        program: FencedProgram,
        place: Path,
        memory_bytes: int,
        all_bytes: int = LEAST_BYTES,
        memory: Memory = MEMORY,
    ) -> None:
        self._what = program.what
        self._memory_bytes, self._memory = memory_bytes, memory
        self._held = memory.take(memory_bytes, all_bytes)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close
        try:
            self._process = subprocess.Popen(
                [place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, env={}, cwd="/",
                start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            self._said.close()
            self._memory.give_back(self._held)
            raise ProgramEndedError(f"{place}: {error.strerror}") from None
        self._limit()
        self._seconds, self._deadline_s = _START_S, time.monotonic() + _START_S
        for stream in (self._process.stdin, self._process.stdout):
            os.set_blocking(_number(stream), False)
        try:
            hello = self._receive().get("hello")
        except ProgramEndedError:
            self.close()
            raise
        if hello != program.version():
            self.close()
            raise ProgramEndedError(f"{place} is of another version ({one_line(str(hello))})")

    def rests(self) -> None:
        """Have it wait for another order, as long as nobody needs its memory."""
        self._memory.spare(self._held, self.close)

    def wakes(self) -> bool:
        """Tell whether it can be given another order after it has rested."""
        return self._memory.claim(self._held) and self.is_alive

    @property
    def is_alive(self) -> bool:
        """Whether it can be given another order."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def carry_out(self, order: Mapping[str, Any], answer: Answer, seconds: float) -> Mapping[str, Any]:
        """Carry out an *order*, letting *answer* answer what is asked, and return the result.

        Raises:
            ProgramEndedError: it ended, took too long, or didn't keep to the protocol; it is gone then.
        """
        self._seconds, self._deadline_s = seconds, time.monotonic() + seconds
        try:
            self._send(order)
            while True:
                frame = self._receive()
                if isinstance(done := frame.get("done"), dict):
                    return done
                self._send({"found": _found(frame, answer)})
        except BaseException:
            self.close()  # it is in the middle of something
            raise

    def kill(self) -> None:
        """Kill it; whoever waits for it notices."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        """Kill it, and release its pipes."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()
        self._memory.give_back(self._held)

    def _limit(self) -> None:
        """Limit memory, files and core dumps, where the kernel can do that to another process."""
        if sys.platform != "linux":
            return
        for kind, most in (
            (resource.RLIMIT_DATA, self._memory_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _SAID_BYTES)
        ):  # fmt: skip
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self._process.pid, kind, (most, most))

    def _send(self, frame: Mapping[str, Any]) -> None:
        data = orjson.dumps(frame)
        left = memoryview(struct.pack(">I", len(data)) + data)
        number = _number(self._process.stdin)
        while left:
            self._wait(number, select.POLLOUT)
            try:
                left = left[os.write(number, left) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._end() from None

    def _receive(self) -> Mapping[str, Any]:
        (size,) = struct.unpack(">I", self._exactly(4))
        if size > LARGEST_FRAME:
            raise self._broken("says more than is read")
        try:
            frame = orjson.loads(self._exactly(size))
        except orjson.JSONDecodeError:
            raise self._broken("says what isn't JSON") from None
        if not isinstance(frame, dict):
            raise self._broken("says what isn't known")
        return frame

    def _exactly(self, size: int) -> bytes:
        number, data = _number(self._process.stdout), bytearray()
        while len(data) < size:
            self._wait(number, select.POLLIN)
            try:
                block = os.read(number, min(_BLOCK, size - len(data)))
            except BlockingIOError:
                continue
            if not block:
                raise self._end()
            data += block
        return bytes(data)

    def _wait(self, number: int, events: int) -> None:
        waited = select.poll()
        waited.register(number, events)
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0 or not waited.poll(left_s * 1000):
            self.kill()
            raise ProgramLateError(f"it took longer than {self._seconds:.0f} s and was stopped")

    def _end(self) -> ProgramEndedError:
        """Return why it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._said.seek(0)
        said = self._said.read(_SAID_BYTES).decode(errors="replace")
        if any(words in said for words in _NO_MEMORY):
            return ProgramLargeError(f"it took more than {self._memory_bytes // 1024**2} MiB of memory and was stopped")
        if "stack overflow" in said or "goroutine stack exceeds" in said:
            return ProgramEndedError("it calls itself endlessly")
        first = next((line for line in said.splitlines() if line.strip()), f"exit {self._process.returncode}")
        return ProgramEndedError(f"{self._what} has ended: {one_line(first)}")

    def _broken(self, what: str) -> ProgramEndedError:
        self.kill()
        return ProgramEndedError(f"{self._what} {what}")


def _found(frame: Mapping[str, Any], answer: Answer) -> Mapping[str, Any]:
    for question in ("look", "read", "list"):
        if isinstance(path := frame.get(question), str):
            found = answer(question, path)
            data = found.get("data")
            return {**found, "data": base64.b64encode(data).decode()} if data is not None else found
    raise ProgramEndedError("it sent an unknown request")


def _number(stream: Any) -> int:
    number: int = stream.fileno()
    return number
