"""The daemon as a process that can be killed, and waiting for what becomes of that."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).parent / "kubectl-reconcile"
PATIENCE_S = 400.0


def until(condition: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.1) -> Any:
    """Return what *condition* returns once that is true.

    Raises:
        TimeoutError: it isn't within *timeout_s*.
    """
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(pause_s)
    return found


@dataclass
class Daemon:
    """The daemon of one namespace; its log goes on over restarts."""

    kubeconfig: str
    namespace: str
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "daemon.log"

    def start(self) -> None:
        """Start it, and wait until it follows."""
        command = [PROGRAM, "daemon", f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}"]
        said = len(self.log.read_bytes()) if self.log.exists() else 0
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [*command, "--listen=127.0.0.1:0"], stdout=out, stderr=out, env={**os.environ, **self.environ}
            )
        until(lambda: b" following " in self.log.read_bytes()[said:], "the daemon follows")

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(300)
