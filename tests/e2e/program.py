"""The whole program as processes: a daemon, and the plugin as kubectl runs it."""

from __future__ import annotations

import os
import re
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import forked
from tests.e2e.cluster import Cluster
from tests.forked import PROGRAM
from tests.waiting import PATIENCE_S, patiently


@dataclass
class Daemon:
    """The real daemon as a process. Its log goes on over restarts."""

    kubeconfig: str
    namespace: str
    log_file: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    process: forked.Process | None = None
    address: str = ""
    hooks: str = ""
    """Where it answers, and where Git servers may tell it of pushes."""

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def start(self, *, ready: bool = True) -> Daemon:
        """Start it, and wait until it answers; if *ready*, until its caches are filled."""
        said = len(self.log)
        command = [
            "daemon",
            "--listen=127.0.0.1:0",
            "--listen-hooks=127.0.0.1:0",
            f"--kubeconfig={self.kubeconfig}",
            *self.options,
        ]
        if self.namespace:
            command.append(f"--namespace={self.namespace}")
        with self.log_file.open("ab") as log:
            environ = {**os.environ, **self.environ}
            self.process = forked.start(command, env=environ, stdout=log.fileno(), stderr=log.fileno())

        def listening() -> re.Match[str] | None:
            alive = self.alive  # before its log is read, so that what has ended has written all of it
            found = re.search(r" started .*listen=([\w.:]+) hooks=([\w.:]+)", self.log[said:])
            assert found or alive, f"the daemon ended by itself:\n{self.log[said:]}"
            return found

        _, self.address, self.hooks = patiently(listening, "the daemon listens").group(0, 1, 2)
        if ready:
            patiently(self._is_ready, "the daemon is ready")
        return self

    def _is_ready(self) -> bool:
        """Whether it says that it is ready. One that says nothing at all writes to its log where it hangs."""
        try:
            return self.answer("/readyz")[0] == 200
        except TimeoutError:
            assert self.process is not None
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(PATIENCE_S)
            raise

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text of what it says over HTTP."""
        try:
            with urllib.request.urlopen(f"http://{self.address}{path}", timeout=120) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def count(self, metric: str, **labels: str) -> float:
        """Sum of a metric's samples that carry these labels."""
        total = 0.0
        for line in self.answer("/metrics")[1].splitlines():
            name, _, rest = line.partition("{" if "{" in line else " ")
            if name == metric and all(f'{key}="{value}"' in rest for key, value in labels.items()):
                total += float(line.rpartition(" ")[2])
        return total

    def stop(self, *, within_s: float = PATIENCE_S) -> int:
        """End it as an orderly shutdown does (SIGTERM); return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(within_s)

    def kill(self) -> None:
        """End it as a crash or the OOM killer does (SIGKILL)."""
        self.process.kill()
        self.process.wait(PATIENCE_S)


@dataclass(frozen=True)
class Answer:
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


@dataclass(frozen=True)
class Plugin:
    """``kubectl reconcile``, as kubectl runs it, in the test's namespace."""

    kubectl: Any
    namespace: str

    def __call__(self, *arguments: str) -> Answer:
        path = os.pathsep.join([str(self.kubectl.folder), str(PROGRAM.parent), os.environ["PATH"]])
        environ = {**os.environ, "KUBECONFIG": self.kubectl.kubeconfig, "PATH": path}
        words = [*arguments, *(("-n", self.namespace) if self.namespace else ())]
        done = forked.run(words, env=environ, timeout=PATIENCE_S)
        said = f"{done.stdout}{done.stderr}({done.returncode})"
        sys.stdout.write(f"$ kubectl reconcile {' '.join(arguments)} -n {self.namespace}\n{said}\n")
        return Answer(done.returncode, done.stdout, done.stderr)

    def on(self, cluster: Cluster) -> Plugin:
        """The same on another cluster."""
        return Plugin(cluster.kubectl, cluster.namespace)
