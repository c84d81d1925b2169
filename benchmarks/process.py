"""The daemon as a process, looked at from outside: by what it logs, by its metrics, by the operating system."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psutil

# ruff: noqa: T201 - its figures are printed

PROGRAM = Path(sys.executable).with_name("kubectl-reconcile")


def end_when_told() -> None:
    """Let SIGTERM end this program as an error does, so that it stops what it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))


@dataclass
class Daemon:
    """The daemon as a process."""

    kubeconfig: Path
    log: Path
    home: Path
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None
    facts: psutil.Process = field(init=False)

    def start(self) -> None:
        """Start it; its log goes on."""
        environ = {**os.environ, "XDG_CACHE_HOME": str(self.home)}
        listen = ["--listen=127.0.0.1:0", "--listen-hooks=127.0.0.1:0"]
        command = [str(PROGRAM), "daemon", *listen, f"--kubeconfig={self.kubeconfig}", *self.options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
        self.facts = psutil.Process(self.process.pid)

    def check(self) -> None:
        """Look whether it still runs.

        Raises:
            RuntimeError: it ended by itself.
        """
        if self.process is not None and self.process.poll() is not None:
            raise RuntimeError(f"the daemon ended by itself with status {self.process.returncode}")

    def stop(self) -> None:
        """End it in good order."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def text(self, since: int = 0) -> str:
        """Return what it said."""
        return self.log.read_text(errors="replace")[since:] if self.log.exists() else ""

    async def ready(self) -> bool:
        """Tell whether it says that it is."""
        self.check()
        if " started " not in self.text():
            return False
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.address}/readyz") as answer:
            return answer.status == 200

    @property
    def address(self) -> str:
        """Where it listens."""
        found: str = re.findall(r" started .*listen=([\w.:]+)", self.text())[-1]
        return found

    @property
    def hooks(self) -> str:
        """Where Git servers may tell it of pushes."""
        found: str = re.findall(r" started .*hooks=([\w.:]+)", self.text())[-1]
        return found

    @property
    def rss_mb(self) -> float:
        """Resident memory."""
        return self.facts.memory_info().rss / 1e6

    @property
    def cpu_s(self) -> float:
        """CPU time spent, without that of git."""
        spent = self.facts.cpu_times()
        return spent.user + spent.system

    async def requests(self) -> int:
        """Return how many requests it has made, by its own count; watches are left out."""
        async with aiohttp.ClientSession() as session, session.get(f"http://{self.address}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        counts = (line for line in lines if line.startswith("reconcile_api_requests_total"))
        return int(sum(float(line.rpartition(" ")[2]) for line in counts if 'verb="watch"' not in line))


async def until(
    look: Callable[[], Awaitable[Any]], what: str, *, within_s: float = 600.0, pause_s: float = 0.005
) -> Any:
    """Return what *look* finds as soon as that is something.

    Raises:
        TimeoutError: it finds nothing in time.
    """
    deadline_s = time.monotonic() + within_s
    while not (found := await look()):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        await asyncio.sleep(pause_s)
    return found


@dataclass
class Figures:
    """What was measured, by name and unit; printed as it comes, beside its budget where it has one."""

    exceeded: int = 0
    values: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float, unit: str, budget: float | None = None) -> None:
        """Print one more."""
        over = budget is not None and value > budget
        self.exceeded += over
        self.values[f"{name}, {unit}"] = value
        limit = f"  (budget {budget:g} {unit}{', EXCEEDED' if over else ''})" if budget is not None else ""
        print(f"{name:<52} {value:10.3f} {unit}{limit}", flush=True)
