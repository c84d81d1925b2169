"""Processes of containers: started in the namespaces of their pod, watched to their end, entered, stopped and continued."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.runtime.channel import CallError
from kubectl_reconcile.sandbox.runtime.output import OutputFile

_NOT_STARTED = 128
_LAUNCHER = Path(__file__).with_name("container.py")


@dataclass(slots=True)
class Run:
    """One run of a container, from its start."""

    name: str
    attempt: int
    """How many times it was started before."""
    pid: int = 0
    """Of its first process, as the runtime sees it."""
    started_at: str = ""
    finished_at: str = ""
    started_s: float = 0.0
    finished_s: float = 0.0
    exit_code: int | None = None
    error: str = ""
    """Why its command could not be run."""
    paused: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def to_json(self) -> dict[str, Any]:
        """Return what is known of it as JSON."""
        return {
            "name": self.name,
            "attempt": self.attempt,
            "startedAt": self.started_at,
            "finishedAt": self.finished_at,
            "startedS": self.started_s,
            "finishedS": self.finished_s,
            "exitCode": self.exit_code,
            "error": self.error,
            "paused": self.paused,
        }

    @property
    def running(self) -> bool:
        """Whether it hasn't ended."""
        return self.exit_code is None


async def start(run: Run, spec: dict[str, Any], log: Path, changed: Callable[[], None]) -> None:
    """Start what *spec* says (see ``container.py``), printing to *log*; *changed* is called when it ends.

    A command that can't be run isn't an error: that run has failed, and says why.
    """
    run.started_s, run.started_at = time.time(), _now()
    streams: list[int] = []
    try:
        output = OutputFile(log)
        streams.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        streams.extend(output.pipe(each) for each in ("stdout", "stderr"))
        launcher, run.pid, run.error = await _launch(spec, streams, spec["namespaces"])
        run.started_s, run.started_at = time.time(), _now()
        _when_over(launcher, lambda code: _finish(run, code, changed))
    except OSError as error:  # no file or process is left
        run.error = str(error)
        _finish(run, _NOT_STARTED, changed)
    finally:
        for fd in streams:
            os.close(fd)


async def enter(run: Run, spec: dict[str, Any], streams: Sequence[int]) -> int:
    """Run a command in a container that runs, on three open files; return its exit status. Cancelled, the command is killed.

    Raises:
        CallError: the container doesn't run, or the command could not be run.
    """
    if not run.running or not run.pid:
        raise CallError(f"container {run.name} doesn't run")
    launcher, entered, error = await _launch({**spec, "pid": run.pid}, streams, ())
    ended = asyncio.get_running_loop().create_future()

    def settle(code: int) -> None:
        if not ended.done():
            ended.set_result(code)

    _when_over(launcher, settle)
    try:
        code: int = await ended
    except asyncio.CancelledError:
        if entered:  # the launcher sees it end. Without one nobody would, and the container couldn't end before
            with contextlib.suppress(ProcessLookupError):
                os.kill(entered, signal.SIGKILL)
        raise
    if error:
        raise CallError(error)
    return code


def send(run: Run, signum: int) -> None:
    """Send a signal to the first process of *run*; does nothing if it has ended."""
    if run.running and run.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(run.pid, signum)


def pause(run: Run, *, paused: bool) -> None:
    """Stop all processes of *run*, or have them go on."""
    run.paused = paused
    for pid in _processes(run.pid) if run.running and run.pid else ():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if paused else signal.SIGCONT)


def _processes(first: int) -> list[int]:
    """Return the processes that are in the process namespace of *first*."""

    def namespace(pid: int) -> int:
        try:
            return Path(f"/proc/{pid}/ns/pid").stat().st_ino
        except OSError:
            return 0

    wanted = namespace(first)
    return [int(one) for one in os.listdir("/proc") if one.isdigit() and namespace(int(one)) == wanted != 0]  # noqa: PTH208


async def _launch(
    spec: dict[str, Any], streams: Sequence[int], namespaces: Sequence[int]
) -> tuple[subprocess.Popen[bytes], int, str]:
    """Start the launcher; return it, the container's first process, and what went wrong."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(writing, True)
    paper = -1
    try:
        paper = os.memfd_create("specification")
        os.write(paper, json.dumps(spec).encode())
        os.lseek(paper, 0, os.SEEK_SET)
        stdin, stdout, stderr = streams
        launcher = subprocess.Popen(  # noqa: ASYNC220 - it returns at once
            [sys.executable, "-I", "-S", str(_LAUNCHER), str(paper), str(writing)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=[paper, writing, *namespaces],
            env={"PATH": os.defpath},
        )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
        if paper >= 0:
            os.close(paper)
    said = await _read_all(reading)
    lines = dict(line.partition(" ")[::2] for line in said.splitlines())
    if "pid" not in lines and "error" not in lines:
        lines["error"] = "the process that was to start it has ended"
    return launcher, int(lines.get("pid", 0)), lines.get("error", "")


async def _read_all(reading: int) -> str:
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    data = bytearray()

    def read() -> None:
        with contextlib.suppress(BlockingIOError):
            more = os.read(reading, 4096)
            data.extend(more)
            if not more and not ended.done():
                ended.set_result(None)

    loop.add_reader(reading, read)
    try:
        await ended
    finally:
        loop.remove_reader(reading)
        os.close(reading)
    return data.decode(errors="replace")


def _when_over(launcher: subprocess.Popen[bytes], tell: Callable[[int], object]) -> None:
    loop = asyncio.get_running_loop()
    process = os.pidfd_open(launcher.pid)

    def reap() -> None:
        loop.remove_reader(process)
        os.close(process)
        code = launcher.wait()
        tell(code if code >= 0 else 128 - code)

    loop.add_reader(process, reap)


def _finish(run: Run, code: int, changed: Callable[[], None]) -> None:
    run.exit_code, run.finished_s, run.finished_at = code, time.time(), _now()
    run.over.set()
    changed()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
