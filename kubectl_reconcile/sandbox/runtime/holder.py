"""The process that a runtime lives and dies with; run as a program in the runtime's folder.

It stays outside, where the machine's loopback is, and its child is the first process of namespaces of its own: user, processes,
network, mounts. So when this process ends, however it does, the kernel ends all that runs inside. It ends by itself when its folder
is gone, so nothing outlives a sandbox whose record was lost.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
from pathlib import Path

from kubectl_reconcile.sandbox.processes import ProcessId
from kubectl_reconcile.sandbox.runtime import kernel
from kubectl_reconcile.sandbox.runtime.outside import give_connection

RECORD = "holder.json"
"""File in its folder: process id and birth of the holder, and of the runtime, which is there until all that ran in it has ended."""

_LOCK = "holder.lock"
_WATCH_S = 0.5
_MOST_FILES = 1 << 16


def main() -> None:
    """Hold the runtime of the working folder, unless somebody does already; with ``--check``, only try whether that works."""
    if sys.argv[1:] == ["--check"]:
        _check()
    folder = Path.cwd()
    lock = (folder / _LOCK).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("another process holds this runtime")
    _allow_many_files()
    outside, inside = socket.socketpair()
    child = _fork_inside()
    if child == 0:
        outside.close()
        _be_runtime(folder, inside)
    inside.close()
    processes = [ProcessId.of(pid) for pid in (os.getpid(), child)]
    fresh = folder / f".{RECORD}"
    fresh.write_text(json.dumps([[one.pid, one.born] for one in processes if one]), encoding="ascii")
    fresh.replace(folder / RECORD)
    _watch(folder, child, outside)


def _allow_many_files() -> None:
    """Let the runtime open as many files as it may: each pod, each port of a Service and each connection to one takes some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


def _watch(folder: Path, child: int, outside: socket.socket) -> None:
    """Connect the runtime to the machine's loopback until it has ended, or the folder is gone. Never returns.

    All of it in one thread: a process whose children have process ids of their own can't have more.
    """
    own = folder.stat()
    process = os.pidfd_open(child)
    while _is_same(own, folder):
        ready = select.select([outside.fileno(), process], [], [], _WATCH_S)[0]
        if process in ready:
            _, status = os.waitpid(child, 0)
            sys.exit(f"the runtime has ended with status {os.waitstatus_to_exitcode(status)}")
        if ready:
            give_connection(outside)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    sys.exit("the runtime's folder is gone")


def _is_same(own: os.stat_result, folder: Path) -> bool:
    try:
        return os.path.samestat(own, folder.stat())
    except FileNotFoundError:
        return False


def _fork_inside() -> int:
    """Return 0 in a new process that is the first of its namespaces, and its pid in the calling one."""
    kernel.become(0, 0)
    kernel.unshare(kernel.CLONE_NEWPID)
    return os.fork()


def _check() -> None:
    """Make all that a runtime needs, and end with status 0 if that worked."""
    child = _fork_inside()
    if child == 0:
        _enter_namespaces()
        from kubectl_reconcile.sandbox.runtime.network import Network  # noqa: PLC0415 - not before threads may exist

        network = Network()
        network.set_up()
        network.add("check")
        os._exit(0)
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


def _enter_namespaces() -> None:
    kernel.die_with_parent()
    kernel.unshare(kernel.CLONE_NEWNET | kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS)
    kernel.make_private()
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)


def _be_runtime(folder: Path, inside: socket.socket) -> None:
    """Be the first process of the new namespaces. Never returns."""
    _enter_namespaces()
    import asyncio  # noqa: PLC0415 - threads mustn't exist when namespaces are made, nor need the holder know it

    from kubectl_reconcile.sandbox.runtime.server import Runtime  # noqa: PLC0415 - the same

    async def serve() -> None:
        await Runtime(folder, inside).run()

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve())


if __name__ == "__main__":
    main()
