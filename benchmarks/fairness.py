"""What the first sync of a large Sync costs the drift of a small one, on a control plane of its own: ``python -m benchmarks.fairness 20000``.

A Sync of a few ConfigMaps is drifted at a steady rate, first alone, then beside a bare client that applies as many objects as
the large Sync has, then beside the first sync of that. Looks from outside, through the API server. Prints one line per figure with
its budget, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from benchmarks.fleet import AT_ONCE, SYNCS, control_plane, is_ready
from benchmarks.process import Daemon, Figures, end_when_told, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.sandbox.gitserver import ServedRepository

FEW = 1_000
"""Enough that none is changed so often that it counts as contended."""
RATE = 5.0
"""Drifts a second."""
ALONE = 200
"""How many drifts are measured where nothing else is done."""


def manifest(name: str) -> str:
    """Return the file of one ConfigMap."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"color": "red"}}
    return json.dumps(body)


@dataclass
class Fairness:
    """One run with *many* objects in the large Sync."""

    client: Client
    daemon: Daemon
    repositories: dict[str, ServedRepository]
    many: int
    figures: Figures = field(default_factory=Figures)
    turns: Iterator[int] = field(default_factory=itertools.count)

    async def follow(self, name: str, count: int) -> None:
        """Have a Sync of so many objects followed."""
        repository = self.repositories[name]
        repository.push({f"{at // 100:03}/{at}.yaml": manifest(f"{name}-{at:05}") for at in range(count)})
        spec = {"source": {"git": {"url": repository.url, "interval": "1h"}}, "timeout": "30m"}
        body = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name}, "spec": spec}
        await self.client.create(SYNCS, body, manager="bench")

    async def ready(self, name: str) -> bool:
        """Tell whether a Sync is Ready."""
        self.daemon.check()
        return is_ready(await self.client.get(f"{SYNCS}/{name}"))

    async def drifted(self) -> float:
        """Change an object of the small Sync by hand; return how long it took to be put back, in seconds."""
        name = f"few-{next(self.turns) % FEW:05}"
        path = f"/api/v1/namespaces/default/configmaps/{name}"
        await self.client.patch(path, {"data": {"color": "blue"}}, manager="by-hand")
        began_s = time.monotonic()

        async def put_back() -> bool:
            return bool((await self.client.get(path))["data"]["color"] == "red")

        await until(put_back, f"{name} is put back", within_s=300, pause_s=0.02)
        return time.monotonic() - began_s

    async def beside(self, what: str, work: Callable[[], Awaitable[object]], budget: float | None = None) -> float:
        """Drift objects at a steady rate while *work* is done; note how long that took, and return it at the 99th percentile, in ms."""
        doing, took = asyncio.ensure_future(work()), []
        while not doing.done():
            took.append(asyncio.create_task(self.drifted()))
            await asyncio.sleep(1 / RATE)
        await doing
        times_ms = [each * 1000 for each in await asyncio.gather(*took)]
        found = statistics.quantiles(times_ms, n=100)[98]
        self.figures.add(f"drift put back {what}, p50", statistics.median(times_ms), "ms")
        self.figures.add(f"drift put back {what}, p99", found, "ms", budget)
        return found

    async def floor(self) -> None:
        """Apply as many objects to another namespace with a bare client."""
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": "floor"}}, manager="bench")
        slots = asyncio.Semaphore(AT_ONCE)

        async def apply(number: int) -> None:
            body = json.loads(manifest(f"many-{number:05}"))
            async with slots:
                url = f"/api/v1/namespaces/floor/configmaps/{body['metadata']['name']}"
                await self.client.apply(url, body, manager="floor", force=True)

        await asyncio.gather(*map(apply, range(self.many)))

    async def first(self) -> None:
        """Have the large Sync applied for the first time."""
        began_s = time.monotonic()
        await self.follow("many", self.many)
        await until(lambda: self.ready("many"), "the large Sync is Ready", within_s=3600, pause_s=0.5)
        self.figures.add("first sync of the large Sync", time.monotonic() - began_s, "s")

    async def run(self) -> None:
        """Measure everything."""
        self.daemon.start()
        await self.follow("few", FEW)
        await until(lambda: self.ready("few"), "the small Sync is Ready", within_s=300, pause_s=0.2)
        await asyncio.sleep(3)
        alone_ms = await self.beside("alone", lambda: asyncio.sleep(ALONE / RATE))
        await self.beside("beside a bare client", self.floor)
        await asyncio.sleep(3)
        await self.beside("beside a first sync", self.first, 2 * alone_ms)


async def measured(many: int) -> Figures:
    """Measure on a control plane that is gone afterwards, and return what was found."""
    with control_plane("bench-fairness") as (sandbox, server, root):
        served = {each: server.create(each) for each in ("few", "many")}
        print(f"{many} objects beside {FEW}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        daemon = Daemon(sandbox.kubeconfig, root / "daemon.log", root / "cache")
        async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
            fairness = Fairness(client, daemon, served, many)
            try:
                await fairness.run()
            except BaseException:
                print(daemon.text()[-3000:])
                raise
            finally:
                daemon.stop()
        return fairness.figures


def main(many: int = 20_000) -> int:
    """Measure, and tell whether a budget was exceeded."""
    end_when_told()
    return 1 if asyncio.run(measured(many)).exceeded else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
