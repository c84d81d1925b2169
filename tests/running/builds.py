"""Programs that are built while tests already run: each is a target of make, by its name.

``sandbox,render s3-server``: what is parted by a space is built at the same time, what is parted by a comma one after the other.
What make says goes to a file; the terminal gets a line a minute, and one at the end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TELL_S = 60.0
"""How often somebody who waits hears how far a build is."""


@dataclass
class Build:
    """A target of make, and how far it is."""

    target: str
    log: Path
    status: int | None = None
    """Exit status of make; None while it hasn't ended."""
    seconds: float = 0.0

    @property
    def kept(self) -> bool:
        """Tell whether it was built before, and nothing was left to do."""
        return self.status == 0 and "building" not in self.said

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace").strip() if self.log.exists() else ""

    @property
    def sentence(self) -> str:
        """How far it is, in a line; nothing where nothing was to be done."""
        if self.kept:
            return ""
        last = self.said.rpartition("\n")[2].strip()
        if self.status is None:
            return f"==> make {self.target}: {last}"
        return f"==> make {self.target}: {'built' if self.status == 0 else 'failed'} after {minutes(self.seconds)}"


class Builds:
    """All builds of a run; *changed* is called, in some thread, when there is something to tell or one has ended."""

    def __init__(self, wanted: str, folder: Path, logs: Path, changed: Callable[[], None]) -> None:
        self.folder, self.changed = folder, changed
        self._lines = [[Build(target, logs / f"{target}.log") for target in line.split(",")] for line in wanted.split()]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._threads = [threading.Thread(target=self._build, args=(line,), daemon=True) for line in self._lines]
        self._ending = threading.Event()
        self.lock = threading.Lock()

    @property
    def all(self) -> list[Build]:
        return [build for line in self._lines for build in line]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Return once all have ended."""
        for thread in self._threads:
            thread.join()

    def end(self) -> None:
        """Stop what is still being built, as Ctrl-C does."""
        with self.lock:
            self._ending.set()
            for process in self._running.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGINT)
        self.wait()

    def _build(self, line: list[Build]) -> None:
        for build in line:
            begun = time.monotonic()
            build.log.parent.mkdir(parents=True, exist_ok=True)
            with self.lock, build.log.open("wb") as log:
                if self._ending.is_set():
                    return
                process = self._running[build.target] = subprocess.Popen(
                    ["make", "--no-print-directory", build.target],
                    cwd=self.folder,
                    env=plain(os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            while build.status is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = process.wait(TELL_S)
                    build.seconds = time.monotonic() - begun
                    build.status = status
                self.changed()
            with self.lock:
                del self._running[build.target]


def plain(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables without those by which a make tells those below it what it was told."""
    return {name: value for name, value in environ.items() if name not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}}


def minutes(of_s: float) -> str:
    whole, seconds = divmod(round(of_s), 60)
    return f"{whole}:{seconds:02}"
