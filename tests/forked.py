"""Processes of our program without the half second of imports that a new one begins with.

Two processes that have imported all of the program, and run nothing of it, fork for each order; so every command
is a process of its own, with its own environment, folder, files and signals, as one that the shell starts. Orders go to
the two in turn: like processes of different starts, they don't have the order of sets in common.

What starting itself is about (imports, start scripts, terminals) is for real starts: subprocess and ``PROGRAM``. So is
what comes with other variables of Python's, and :func:`start` sees to that.

Any of them that gets SIGABRT writes what its threads were doing to its standard error.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import gc
import importlib
import itertools
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).parent / "kubectl-reconcile"
_LONGEST_ORDER = 2**20


# -- whoever wants a process -------------------------------------------------------------------------------------------


class Process:
    """A process that somebody else is the parent of; what subprocess.Popen promises of the same methods holds here."""

    def __init__(self, report: socket.socket) -> None:
        self._report, self._hearing = report, threading.Lock()
        self.pid = int(self._report.recv(64))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        while self.returncode is None:
            try:
                heard = select.select([self._report], [], [], timeout)[0]
            except (OSError, ValueError):  # another thread has heard it, and closed this
                continue
            if not heard:
                raise subprocess.TimeoutExpired([PROGRAM], timeout or 0)
            with self._hearing:
                if self.returncode is None:
                    self.returncode = int(self._report.recv(64) or -signal.SIGKILL)
                    self._report.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start(arguments: Sequence[Any], *, env: Mapping[str, str], stdout: int, stderr: int, stdin: int = -1) -> Any:
    """Run ``kubectl-reconcile`` with these arguments, variables and open files, no input unless given; return the process."""
    words = [str(PROGRAM), *map(str, arguments)]
    if _pythons(env) != _PYTHONS:
        given = subprocess.DEVNULL if stdin < 0 else stdin
        env = {**env, "PYTHONFAULTHANDLER": "1"}
        return subprocess.Popen(words, env=env, stdin=given, stdout=stdout, stderr=stderr)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, Path(os.devnull).open() as nothing:
        stdin = nothing.fileno() if stdin < 0 else stdin
        order = json.dumps([words, dict(env), str(Path.cwd())]).encode()
        socket.send_fds(_next_parent(), [order], [stdin, stdout, stderr, theirs.fileno()])
    return Process(ours)


def run(
    arguments: Sequence[Any], *, env: Mapping[str, str] | None = None, text: str = "", timeout: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``kubectl-reconcile`` to its end, with *text* as its input; return its exit status and what it printed.

    Raises:
        subprocess.TimeoutExpired: it took longer than *timeout*, in seconds, and was killed.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(text.encode())
        given.seek(0)
        files = {"stdin": given.fileno(), "stdout": out.fileno(), "stderr": err.fileno()}
        process = start(arguments, env=os.environ if env is None else env, **files)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        for each in (out, err):
            each.seek(0)
        return subprocess.CompletedProcess([PROGRAM, *arguments], status, out.read().decode(), err.read().decode())


def _pythons(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith("PYTHON")}


_PYTHONS = _pythons(os.environ)
_turn = itertools.cycle((0, 1))
_choosing = threading.Lock()


def _next_parent() -> socket.socket:
    with _choosing:
        return _parent(next(_turn))


@functools.cache
def _parent(_number: int) -> socket.socket:
    """Start a process that forks what it is told to; it ends, with all that it has forked, once this one has."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LONGEST_ORDER)
        command = [sys.executable, __file__, str(theirs.fileno())]
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | _PYTHONS
        parent = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environ)
    atexit.register(parent.wait)
    atexit.register(ours.close)
    return ours


# -- the parent --------------------------------------------------------------------------------------------------------


@dataclass
class Order:
    """A process to be: its command line, its variables, its folder, its open files, and where its end is reported."""

    words: list[str]
    environ: dict[str, str]
    folder: str
    files: list[int]
    report: socket.socket


@dataclass
class Parent:
    """Takes orders along a socket and forks what they ask for."""

    orders: socket.socket
    children: dict[int, socket.socket] = field(default_factory=dict)
    wakeup: tuple[int, int] = field(default_factory=os.pipe)

    def serve(self) -> Order | None:
        """Fork until there is nobody who could order; in each child, return what it is to be."""
        for end in self.wakeup:
            os.set_blocking(end, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all of its processes
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wakeup[1], warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self.orders, self.wakeup[0]], [], [])
            if self.wakeup[0] in ready:
                self._report_ended()
            if self.orders in ready:
                order = self._taken()
                if order is None:
                    break
                if (pid := os.fork()) == 0:
                    self._forget()
                    return order
                self.children[pid] = order.report
                order.report.send(str(pid).encode())
                for file in order.files:
                    os.close(file)
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)
        return None

    def _taken(self) -> Order | None:
        data, files, _, _ = socket.recv_fds(self.orders, _LONGEST_ORDER, 4)
        return Order(*json.loads(data), files[:3], socket.socket(fileno=files[3])) if data else None

    def _report_ended(self) -> None:
        os.read(self.wakeup[0], 4096)
        while self.children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            with self.children.pop(pid) as report, contextlib.suppress(OSError):  # nobody may wait for it any more
                report.send(str(os.waitstatus_to_exitcode(status)).encode())

    def _forget(self) -> None:
        """Be a process like any other: as the interpreter starts one, without anything of the parent's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (self.orders, *self.children.values()):
            each.detach()


def become(order: Order) -> None:
    """Run the program as *order* says, in this process."""
    order.report.detach()
    for number, file in enumerate(order.files):
        os.dup2(file, number)
    os.closerange(3, 65536)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environ)
    time.tzset()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - these three are open for all its life
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    faulthandler.enable(sys.stderr)
    sys.argv = order.words
    status = 0
    try:
        importlib.import_module("kubectl_reconcile.cli.main").main()
    except SystemExit as end:
        status = end.code or 0
    end_at_once(status)


def end_at_once(status: int) -> None:
    """End as the interpreter does, but leave memory to the system: taking apart what was imported takes longer than most commands."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for each in (sys.stdout, sys.stderr):
        each.flush()
    os._exit(status)


def import_all() -> None:
    """Import all that commands and daemons are made of."""
    for name in ("kubectl_reconcile", "kubectl_reconcile_operators"):
        for each in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if not each.name.endswith("__main__"):
                importlib.import_module(each.name)
    gc.collect()
    gc.freeze()


def main() -> None:
    sys.path[0] = str(PROGRAM.parent)  # as with the program itself
    orders = socket.socket(fileno=int(sys.argv[1]))
    import_all()
    order = Parent(orders).serve()
    if order:
        become(order)


if __name__ == "__main__":
    main()
