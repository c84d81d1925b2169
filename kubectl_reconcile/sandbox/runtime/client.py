"""Talks to a runtime, and starts one where none runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.processes import ProcessId, spawn, stop
from kubectl_reconcile.sandbox.runtime.channel import CallError, call
from kubectl_reconcile.sandbox.runtime.holder import RECORD
from kubectl_reconcile.sandbox.runtime.server import SOCKET

_HOLDER = "kubectl_reconcile.sandbox.runtime.holder"
_START_S = 20.0
_POLL_S = 0.02


def python(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a *module* of this package as a program."""
    return [sys.executable, "-P", "-m", module, *arguments]


def python_environ() -> dict[str, str]:
    """Return the variables that such a program needs, wherever this package was found."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.defpath}


def unavailable() -> str:
    """Return why pods can't run as processes here, in a sentence; empty if they can."""
    if sys.platform != "linux":
        return "pods can't run as processes here: that needs the namespaces of Linux"
    answer = subprocess.run(
        python(_HOLDER, "--check"),
        env=python_environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        cwd="/",
    )
    if answer.returncode == 0:
        return ""
    last = (answer.stderr.strip().splitlines() or ["no more is known"])[-1]
    return (
        f"pods can't run as processes here, which needs user namespaces, bridges and iproute2: {last} "
        "(hint: sysctl kernel.apparmor_restrict_unprivileged_userns=0 where AppArmor forbids them; "
        "in a container, a seccomp profile that allows unshare and mount)"
    )


@dataclass(frozen=True, slots=True)
class RuntimeClient:
    """The runtime in *folder*."""

    folder: Path

    async def call(self, do: str, *, files: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Ask the runtime; return what it answers.

        Raises:
            CallError: it could not be done.
            OSError: it doesn't run.
        """
        answer, _ = await call(self.folder / SOCKET, {"do": do, **arguments}, files)
        return answer

    async def dial(self, ip: str, port: int, timeout_s: float) -> socket.socket:
        """Return a connection to *port* of a pod.

        Raises:
            CallError: nobody listens there, or it took longer.
            OSError: the runtime doesn't run.
        """
        _, (fd,) = await call(self.folder / SOCKET, {"do": "dial", "ip": ip, "port": port, "timeout_s": timeout_s})
        connection = socket.socket(fileno=fd)
        connection.setblocking(False)
        return connection

    async def ensure(self, log: Path) -> None:
        """Start the runtime unless it runs; it prints to *log*.

        Raises:
            SandboxError: it doesn't start.
        """
        deadline = time.monotonic() + _START_S
        if await self._answers():
            return
        process = spawn(python(_HOLDER), log=log, environ=python_environ(), folder=self.folder)
        while not await self._answers():
            if process is None or not process.alive or time.monotonic() > deadline:
                raise SandboxError("the runtime of process pods doesn't start", f"its log is {log}")
            await asyncio.sleep(_POLL_S)

    async def _answers(self) -> bool:
        with contextlib.suppress(OSError, CallError):
            await self.call("state")
            return True
        return False

    def end(self) -> None:
        """End the runtime, and with it all that runs in it. Returns when that is gone."""
        stop(self.processes(), grace_s=0)

    def processes(self) -> list[ProcessId]:
        """Return the processes that it lives and dies with, so far as they run."""
        try:
            found = [ProcessId(*one) for one in json.loads((self.folder / RECORD).read_text(encoding="ascii"))]
        except (FileNotFoundError, ValueError):
            return []
        return [one for one in found if one.alive]


def spec(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    folder: str = "/",
    mounts: Sequence[Mapping[str, Any]] = (),
    files: Mapping[str, str] | None = None,
    empty: Sequence[str] = (),
    user: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """Return what is to run in a container: a command, its variables, its folder, what it sees, and as whom (uid, gid).

    A mount is ``{"source", "target", "readOnly"}``, with ``part`` where only that of the source is mounted; *files* are entries of /etc and the files that stand in for them;
    *empty* are folders that are there besides.
    """
    whole: dict[str, Any] = {
        "argv": list(argv),
        "environ": dict(environ),
        "folder": folder,
        "mounts": sorted((dict(mount) for mount in mounts), key=lambda mount: str(mount["target"])),
        "files": dict(files or {}),
        "empty": list(empty),
    }
    return whole if user is None else {**whole, "user": list(user)}
