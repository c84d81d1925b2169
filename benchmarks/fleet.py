"""What many Syncs of one repository cost a daemon, on a control plane of its own: ``python -m benchmarks.fleet 1000 [4] [1]``.

So many Syncs, each with so many ConfigMaps in a folder of its own, over so many repositories that a Git server has over HTTP.
Looks from outside, through the API server and the operating system; the time of every git that the daemon starts is counted.
Prints one line per figure with its budget for a thousand Syncs, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.process import Daemon, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository

CRDS = Path(__file__).parents[1] / "crds"
IDLE_S = 60.0
SYNCS = "/apis/reconcile.dev/v1alpha1/namespaces/default/syncs"


def manifest(sync: int, number: int, version: int = 0) -> str:
    """Return the file of one ConfigMap."""
    name = f"team-{sync:05}-{number}"
    data = {"color": "red", "version": str(version)}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}, indent=2)


def file_of(sync: int, number: int) -> str:
    """Return where that file is in its repository."""
    return f"teams/{sync:05}/{number}.yaml"


@dataclass
class Spent:
    """What a daemon and its gits have spent up to a moment."""

    cpu_s: float
    requests: int
    statuses: int


@dataclass
class Fleet:
    """One run over *syncs* Syncs of *objects* each."""

    client: Client
    daemon: Daemon
    repositories: Sequence[ServedRepository]
    syncs: int
    objects: int
    exceeded: int = 0
    shas: dict[int, str] = field(default_factory=dict)

    def figure(self, name: str, value: float, unit: str, budget: float | None = None) -> None:
        """Print one figure; budgets are for a thousand Syncs of four objects."""
        over = budget is not None and value > budget
        self.exceeded += over
        limit = f"  (budget {budget:g} {unit}{', EXCEEDED' if over else ''})" if budget is not None else ""
        print(f"{name:<52} {value:10.3f} {unit}{limit}", flush=True)

    async def spent(self) -> Spent:
        """Return what was spent up to now."""
        times = self.daemon.facts.cpu_times()
        cpu_s = times.user + times.system + times.children_user + times.children_system
        return Spent(cpu_s, await self.daemon.requests(), await self.status_writes())

    async def status_writes(self) -> int:
        """Return how many statuses of Syncs the server has written: their resource versions move with each."""
        live = await self.client.get(SYNCS)
        return sum(int(item["metadata"]["resourceVersion"]) for item in live["items"])

    async def settled(self) -> bool:
        """Tell whether all Syncs are Ready at what their repositories hold."""
        self.daemon.check()
        live = await self.client.get(SYNCS)
        return len(live["items"]) == self.syncs and all(map(_is_ready, live["items"]))

    def push(self, sync: int, version: int) -> None:
        """Change one file of a Sync's folder."""
        repository = self.repositories[sync % len(self.repositories)]
        repository.push({file_of(sync, 0): manifest(sync, 0, version)})

    async def first(self) -> None:
        """Apply all of it for the first time."""
        for at, repository in enumerate(self.repositories):
            mine = range(at, self.syncs, len(self.repositories))
            repository.push(
                {file_of(each, number): manifest(each, number) for each in mine for number in range(self.objects)}
            )
        began_s = time.monotonic()
        self.daemon.start()
        await until(self.daemon.ready, "the daemon is ready", pause_s=0.05)
        await until(self.settled, "all are Ready", within_s=3600, pause_s=0.5)
        self.figure("cold start, all Ready", time.monotonic() - began_s, "s", 25.0)
        spent = await self.spent()
        self.figure("CPU of it", spent.cpu_s, "s")
        self.figure("requests per object", spent.requests / (self.syncs * self.objects), "", 1.3 + 4 / self.objects)
        self.figure("resident memory", self.daemon.rss_mb, "MB", 120.0)

    async def rest(self) -> None:
        """Do nothing for a while, and see what that costs."""
        await asyncio.sleep(10)
        before = await self.spent()
        await asyncio.sleep(IDLE_S)
        after = await self.spent()
        self.figure("CPU at rest", (after.cpu_s - before.cpu_s) / IDLE_S * 100, "%", 1.0)
        self.figure("requests at rest", (after.requests - before.requests) / IDLE_S, "/s", 0.3)

    async def restart(self) -> None:
        """Start again, and wait until all have been looked at."""
        self.daemon.stop()
        said, began_s = len(self.daemon.text()), time.monotonic()
        self.daemon.start()

        async def looked() -> bool:
            self.daemon.check()
            return self.daemon.text(said).count("unchanged=") >= self.syncs

        await until(looked, "all were looked at", pause_s=0.1)
        self.figure("restart until all were looked at", time.monotonic() - began_s, "s", 8.0)
        spent = self.daemon.facts.cpu_times()
        self.figure("CPU of it", spent.user + spent.system + spent.children_user + spent.children_system, "s")

    async def pushed(self) -> None:
        """Change one folder, and see who is concerned."""
        before, began_s, version = await self.spent(), time.monotonic(), int(time.time())
        self.push(7, version)
        url = f"{SYNCS}/team-{7:05}"
        await self.client.patch(
            url, {"metadata": {"annotations": {"reconcile.dev/pushed-at": str(version)}}}, manager="b"
        )

        async def applied() -> bool:
            live = await self.client.get(f"/api/v1/namespaces/default/configmaps/team-{7:05}-0")
            return bool(live["data"]["version"] == str(version))

        await until(applied, "the change", within_s=300)
        self.figure("a pushed folder, wake-up to applied", time.monotonic() - began_s, "s", 0.3)
        await asyncio.sleep(75)  # by then everybody's interval has passed
        after = await self.spent()
        self.figure("CPU of the push, all Syncs, with 75 s of rest", after.cpu_s - before.cpu_s, "s", 2.0 + 0.75)
        self.figure("requests of it", after.requests - before.requests, "")

    async def run(self) -> None:
        """Measure everything."""
        await self.first()
        await self.rest()
        await self.pushed()
        await self.restart()
        await self.rest()


def _is_ready(sync: dict[str, Any]) -> bool:
    conditions = (sync.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def prepare(client: Client, repositories: Sequence[ServedRepository], syncs: int) -> None:
    """Create the Syncs."""
    turns = asyncio.Semaphore(16)

    async def create(number: int) -> None:
        git = {"url": repositories[number % len(repositories)].url, "interval": "1m", "path": f"teams/{number:05}"}
        body = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": f"team-{number:05}"},
                "spec": {"source": {"git": git}}}  # fmt: skip
        async with turns:
            await client.create(SYNCS, body, manager="bench")

    await asyncio.gather(*map(create, range(syncs)))


def _install_kinds(sandbox: Sandbox) -> None:
    """Bring in our CRDs."""
    environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]
    for arguments in (["apply", "--server-side", "-f", str(CRDS)], established):
        command = [str(sandbox.programs / "kubectl"), *arguments]
        subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)


async def measured(syncs: int, objects: int, repositories: int) -> int:
    """Measure on a control plane that is gone afterwards; return how many budgets were exceeded."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        sandbox = Sandbox("bench-fleet", root=root / "sandbox")
        try:
            sandbox.up(Options(components=("etcd", "kube-apiserver")))
            trust_accounts(sandbox)
            _install_kinds(sandbox)
            with GitServer(root / "git") as server:
                served = [server.create(f"fleet-{each}") for each in range(repositories)]
                print(
                    f"{syncs} Syncs of {objects}, {repositories} repositories, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
                daemon = Daemon(sandbox.kubeconfig, root / "daemon.log", root / "cache")
                async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
                    await prepare(client, served, syncs)
                    fleet = Fleet(client, daemon, served, syncs, objects)
                    try:
                        await fleet.run()
                    except BaseException:
                        print(daemon.text()[-3000:])
                        raise
                    finally:
                        daemon.stop()
                return fleet.exceeded
        finally:
            sandbox.down()


def main(syncs: int = 1000, objects: int = 4, repositories: int = 1) -> int:
    """Measure, and tell whether a budget was exceeded."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # and clean up
    return 1 if asyncio.run(measured(syncs, objects, repositories)) else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
