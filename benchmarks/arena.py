"""A fresh control plane for one benchmark, and how a contestant's command fares on it.

What is measured of a command: seconds, CPU seconds of its whole process tree and of the API server meanwhile, its peak
memory, and the requests that the API server counted, by verb. The server's own figures come from its ``/metrics``,
so they include what controllers do at the same time; the floor's run shows how much that is.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import secrets
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from benchmarks import workloads
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import NotFound
from kubectl_reconcile.engine.commands import install
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.source.policy import SourcePolicy

_VERBS = ("GET", "LIST", "APPLY", "PATCH", "POST", "PUT", "DELETE", "WATCH")
_MEMORY_INTERVAL_S = 0.05


class BenchmarkError(Exception):
    """A contestant failed, so its time means nothing; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one command took."""

    seconds: float
    cpu_s: float
    server_cpu_s: float
    memory_mib: float
    requests: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Arena:
    """A sandbox of its own, gone with the benchmark."""

    sandbox: Sandbox
    client: Client
    folder: Path

    @classmethod
    async def open(cls, folder: Path) -> Self:
        """Start a control plane and install our CRDs. What was started is stopped again where that fails or is interrupted."""
        sandbox = Sandbox(f"bench-{secrets.token_hex(3)}")
        try:
            sandbox.up()
            client = await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig)))
            await client.__aenter__()
            await install.ensure_crds(await Session.over(client, SourcePolicy.of_person(), folder / "cache"))
        except BaseException:
            sandbox.down()
            raise
        return cls(sandbox, client, folder)

    async def close(self) -> None:
        """Take the control plane down, with all its data."""
        await self.client.__aexit__(None, None, None)
        self.sandbox.down()

    async def ready(self, workload: str, namespace: str) -> None:
        """Make the kinds of *workload* and an empty namespace."""
        await self.client.apply(
            f"/api/v1/namespaces/{namespace}",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            force=True,
        )
        for crd in workloads.crds(workload):
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}"
            await self.client.apply(path, crd, force=True)
            names = crd["spec"]["names"]
            await self._served(f"/apis/{workloads.GROUP}/v1/namespaces/{namespace}/{names['plural']}")

    async def _served(self, path: str) -> None:
        deadline_s = time.monotonic() + 60
        while True:
            try:
                await self.client.get(path, limit="1")
            except NotFound:
                if time.monotonic() > deadline_s:
                    raise
            else:
                return

    async def clear(self, workload: str, namespace: str) -> None:
        """Delete everything that *workload* makes in *namespace*, and the sets that it belonged to."""
        plurals = {
            f"/apis/{crd['spec']['group']}/v1/namespaces/{namespace}/{crd['spec']['names']['plural']}"
            for crd in workloads.crds(workload)
        }
        built_in = {
            "mixed": ("api/v1/{}/configmaps",),
            "built-in": (
                "api/v1/{}/configmaps",
                "api/v1/{}/services",
                "apis/apps/v1/{}/deployments",
                "apis/rbac.authorization.k8s.io/v1/{}/roles",
            ),
            "modules": (
                "apis/cache.example.com/v1alpha1/{}/memcacheds",
                "api/v1/{}/services",
                "apis/apps/v1/{}/deployments",
            ),
        }
        plurals |= {"/" + each.format(f"namespaces/{namespace}") for each in built_in.get(workload, ())}
        plurals |= {
            f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs",
            f"/api/v1/namespaces/{namespace}/secrets",
        }
        for path in sorted(plurals):
            while (await self.client.list(path, limit="1"))[0]:
                await self.client.request("DELETE", path)

    async def let_go(self, namespace: str) -> None:
        """Have the Syncs of *namespace* delete whatever they are told to, without asking a person."""
        path = f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs"
        for sync in (await self.client.list(path))[0]:
            await self.client.patch(f"{path}/{sync['metadata']['name']}", {"spec": {"maxDeletes": "100%"}})

    async def drift(self, path: str) -> None:
        """Change the object at *path* by hand."""
        labels = {"metadata": {"labels": {"tier": f"drifted-{secrets.token_hex(2)}", "bench-changed": "by-hand"}}}
        await self.client.patch(path, labels, manager="by-hand")

    # --- a contestant's command -----------------------------------------------------------------------

    async def run(self, command: str) -> Run:
        """Run *command* and return what it took.

        Raises:
            BenchmarkError: it failed.
        """
        before = await self._server()
        seconds, cpu_s, memory_mib = await asyncio.to_thread(self._raced, command)
        after = await self._server()
        requests = {verb: int(after[verb] - before[verb]) for verb in _VERBS if after[verb] > before[verb]}
        return Run(seconds, cpu_s, after["cpu"] - before["cpu"], memory_mib, requests)

    def _raced(self, command: str) -> tuple[float, float, float]:
        started = resource.getrusage(resource.RUSAGE_CHILDREN)
        began_s = time.perf_counter()
        process = subprocess.Popen(
            shlex.split(command), env=self._environ(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        peak = _Peak(process.pid)
        said, _ = process.communicate()
        seconds = time.perf_counter() - began_s
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode not in (0, 1):
            raise BenchmarkError(f"{command}: exit status {process.returncode}\n{said[-2000:]}")
        cpu_s = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
        return seconds, cpu_s, peak.mib()

    def _environ(self) -> dict[str, str]:
        path = os.pathsep.join([str(self.sandbox.programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        root = str(Path(__file__).parents[1])
        cache = str(self.folder / "cache")
        given = {"PATH": path, "KUBECONFIG": str(self.sandbox.kubeconfig), "PYTHONPATH": root, "XDG_CACHE_HOME": cache}
        environ = {**os.environ, **given}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody measures a program that is compiled at each start
        return environ

    async def _server(self) -> Counter[str]:
        """Return the API server's CPU seconds and its requests by verb, so far."""
        found: Counter[str] = Counter()
        for line in (await self.client.get_bytes("/metrics")).decode().splitlines():
            if line.startswith("process_cpu_seconds_total "):
                found["cpu"] = float(line.split()[1])  # type: ignore[assignment]  # a Counter of seconds
            elif line.startswith("apiserver_request_total{") and (verb := re.search(r'verb="(\w+)"', line)):
                found[verb[1]] += int(float(line.rpartition(" ")[2]))
        return found


class _Peak:
    """The largest memory that a process and its children had together, in MiB, looked at again and again."""

    def __init__(self, pid: int) -> None:
        self._most = 0
        self._pid = pid
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        try:
            root = psutil.Process(self._pid)
            while True:
                tree = [root, *root.children(recursive=True)]
                self._most = max(self._most, sum(each.memory_info().rss for each in tree))
                time.sleep(_MEMORY_INTERVAL_S)
        except psutil.Error:
            return

    def mib(self) -> float:
        """Return it, once the process has ended."""
        self._thread.join()
        return self._most / 2**20
