"""What a sandbox takes of the machine: processes that outlive the command that started them, and loopback ports.

A *process id* here is the pid together with the moment of birth, because the system gives a pid to somebody else once
its owner has died, and after a reboot all of them. Each process leads a life of its own: its own session and process
group, no terminal, output to a file, and init as its parent, so that it never becomes a zombie of ours.

Never done: signalling a process whose moment of birth differs from the one recorded, or finding one by its name.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_POLL_S = 0.02
# Below what Linux and macOS give to outgoing connections, which else could take the port of a component while it is down.
_PORTS = range(20_000, 30_000)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One process, forever: no other process of this machine will be equal to it."""

    pid: int
    born: str
    """Opaque. Where there is a /proc: the boot and the tick of it at which the process started."""

    @classmethod
    def of(cls, pid: int) -> ProcessId | None:
        """Return the process that has *pid* now; None if none has, or if nothing but the pid is left of it."""
        try:
            process = psutil.Process(pid)
            # A process of several threads may look dead while one of them still holds its files and ports.
            if process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1:
                return None
            return cls(pid, _birth(process))
        except (psutil.Error, OSError):
            return None

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return ProcessId.of(self.pid) == self

    def rss_bytes(self) -> int:
        """Return its resident memory in bytes, 0 if it has ended."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss) if self.alive else 0
        except psutil.Error:
            return 0

    def signal_group(self, signum: int) -> bool:
        """Send a signal to the process and those that it started; return False if it has ended."""
        if not self.alive:
            return False
        with contextlib.suppress(ProcessLookupError):
            group = os.getpgid(self.pid)
            if group != os.getpgrp():
                os.killpg(group, signum)
                return True
            os.kill(self.pid, signum)
            return True
        return False


def spawn(command: Sequence[str], *, log: Path, environ: Mapping[str, str], folder: Path) -> ProcessId | None:
    """Start *command* with its output appended to *log*; return None if it has ended already.

    It runs in *folder* with exactly *environ*.

    Raises:
        OSError: there is no POSIX shell, or no room for another process.
    """
    # The shell leads the new session, starts the command in the background, says its pid and ends: so the command is
    # init's child, and has no terminal to take its interrupts from.
    script = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
    answer = subprocess.run(
        ["/bin/sh", "-c", script, "sh", str(log), *command],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env=dict(environ),
        cwd=folder,
    )
    return ProcessId.of(int(answer.stdout))


def stop(processes: Iterable[ProcessId], *, grace_s: float) -> None:
    """End all *processes* and what they started: asked first, killed after *grace_s* seconds. Returns when they are gone."""
    waiting = [process for process in processes if process.signal_group(signal.SIGTERM)]
    if not _gone(waiting, grace_s):
        for process in waiting:
            process.signal_group(signal.SIGKILL)
        _gone(waiting, 10.0)


def _gone(processes: Iterable[ProcessId], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while any(process.alive for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _birth(process: psutil.Process) -> str:
    # psutil's create_time() is a wall-clock time and moves when the clock is set; the kernel's own count does not.
    try:
        after_name = Path(f"/proc/{process.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return f"{_BOOT_ID.read_text(encoding='ascii').strip()}:{after_name[19].decode('ascii')}"
    except FileNotFoundError:
        return str(process.create_time())


def free_ports(*, but: Iterable[int] = ()) -> Iterator[int]:
    """Yield loopback ports that nobody uses now, none of them twice and none of *but*."""
    used = set(but)
    for port in random.sample(_PORTS, len(_PORTS)):  # scattered, so that two sandboxes at once rarely want the same
        if port not in used and port_is_free(port):
            yield port


def port_is_free(port: int) -> bool:
    """Whether a program could listen on *port* of the loopback interface now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Go's listeners do
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True
