"""What many Syncs of one repository cost a daemon, on a control plane of its own: ``python -m benchmarks.fleet 1000 [4] [1] [1]``.

So many Syncs, each with so many ConfigMaps in a folder of its own, over so many repositories that a Git server has over HTTP,
followed by so many replicas of the daemon. What they spend is added up; what each of them holds in memory is a row of its own.
Looks from outside, through the API server and the operating system; the time of every git that the daemon starts is counted.
Prints one line per figure with its budget for a thousand Syncs, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.process import Daemon, Figures, end_when_told, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository

MANY_OBJECTS = 100_000
LOOKED = re.compile(r" sync=(\S+) .*unchanged=")
SETTLED = re.compile(r" share settled .*members=(\d+)")
CRDS = Path(__file__).parents[1] / "crds"
IDLE_S = 60.0
BUSY_S = 30.0
AT_ONCE = 32
"""How many requests the bare client has under way, as many as ``floor``."""
SELDOM = 2.0
"""So many times as long as a look at all Syncs takes, the next one isn't taken."""
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


@dataclass(frozen=True)
class Shape:
    """So many *syncs* of so many *objects* each, over so many *repositories*, looked after by so many *replicas*; *pushes* and *drifts* a second while it is busy."""

    syncs: int
    objects: int = 4
    repositories: int = 1
    replicas: int = 1
    pushes: float = 1.0
    drifts: float = 5.0

    def __str__(self) -> str:
        places = "one repository" if self.repositories == 1 else f"{self.repositories} repositories"
        shared = "" if self.replicas == 1 else f", {self.replicas} replicas"
        return f"{self.syncs} Syncs of {self.objects} objects, {places}{shared}"


@dataclass
class Fleet:
    """One run over *syncs* Syncs of *objects* each."""

    client: Client
    daemons: Sequence[Daemon]
    repositories: Sequence[ServedRepository]
    shape: Shape
    figures: Figures = field(default_factory=Figures)
    """Their budgets are for a thousand Syncs of four objects."""
    floor_s: float = 0.0
    dice: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311 - it picks what is changed
    turns: Iterator[int] = field(default_factory=itertools.count)
    pushing: asyncio.Lock = field(default_factory=asyncio.Lock)
    look_at_s: float = 0.0
    """Not before then are all Syncs listed again: ten thousand of them take the API server a second."""

    async def spent(self) -> Spent:
        """Return what was spent up to now."""
        times = [each.facts.cpu_times() for each in self.daemons]
        cpu_s = sum(each.user + each.system + each.children_user + each.children_system for each in times)
        return Spent(cpu_s, sum([await each.requests() for each in self.daemons]))

    async def start(self) -> None:
        """Start all replicas, and wait until they have shared the Syncs out."""
        said = [len(each.text()) for each in self.daemons]
        for each in self.daemons:
            each.start()

        async def shared() -> bool:
            told = [SETTLED.findall(each.text(since)) for each, since in zip(self.daemons, said, strict=True)]
            return all(each and int(each[-1]) == len(self.daemons) for each in told)

        await until(shared, "the work is shared out", pause_s=0.05)
        for each in self.daemons:
            await until(each.ready, "the daemon is ready", pause_s=0.05)

    def stop(self) -> None:
        """End all replicas."""
        for each in self.daemons:
            each.stop()

    def note_memory(self, when: str = "") -> None:
        """Add a row for what each replica holds."""
        many = 1000.0 if len(self.daemons) == 1 else 450.0
        budget = many if self.shape.syncs * self.shape.objects >= MANY_OBJECTS else 120.0
        for number, each in enumerate(self.daemons, 1):
            which = f" of replica {number}" if len(self.daemons) > 1 else ""
            self.figures.add(f"resident memory{which}{when}", each.rss_mb, "MB", budget)

    async def settled(self) -> bool:
        """Tell whether all Syncs are Ready at what their repositories hold."""
        for each in self.daemons:
            each.check()
        if (began_s := time.monotonic()) < self.look_at_s:
            return False
        live = await self.client.get(SYNCS)
        self.look_at_s = began_s + SELDOM * (time.monotonic() - began_s)
        return len(live["items"]) == self.shape.syncs and all(map(is_ready, live["items"]))

    def push(self, sync: int, version: int) -> None:
        """Change one file of a Sync's folder."""
        repository = self.repositories[sync % len(self.repositories)]
        repository.push({file_of(sync, 0): manifest(sync, 0, version)})

    async def floor(self) -> None:
        """Apply the same objects to another namespace with a bare client."""
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": "floor"}}, manager="bench")
        slots = asyncio.Semaphore(AT_ONCE)

        async def apply(sync: int, number: int) -> None:
            body = json.loads(manifest(sync, number))
            async with slots:
                url = f"/api/v1/namespaces/floor/configmaps/{body['metadata']['name']}"
                await self.client.apply(url, body, manager="floor", force=True)

        began_s = time.monotonic()
        await asyncio.gather(
            *(apply(each, number) for each in range(self.shape.syncs) for number in range(self.shape.objects))
        )
        self.floor_s = time.monotonic() - began_s
        self.figures.add("floor: a bare client applies the same objects", self.floor_s, "s")

    async def first(self) -> None:
        """Apply all of it for the first time."""
        for at, repository in enumerate(self.repositories):
            mine = range(at, self.shape.syncs, len(self.repositories))
            repository.push(
                {file_of(each, number): manifest(each, number) for each in mine for number in range(self.shape.objects)}
            )
        began_s = time.monotonic()
        await self.start()
        await until(self.settled, "all are Ready", within_s=3600, pause_s=0.5)
        took_s = time.monotonic() - began_s
        self.figures.add("cold start, all Ready", took_s, "s", 25.0)
        self.figures.add("cold start against the floor", took_s / self.floor_s, "times")
        spent = await self.spent()
        self.figures.add("CPU of the cold start", spent.cpu_s, "s")
        self.figures.add(
            "requests per object",
            spent.requests / (self.shape.syncs * self.shape.objects),
            "",
            1.3 + 4 / self.shape.objects,
        )
        self.note_memory()

    async def rest(self, when: str = "") -> None:
        """Do nothing for a while, and see what that costs."""
        await asyncio.sleep(10)
        before = await self.spent()
        await asyncio.sleep(IDLE_S)
        after = await self.spent()
        self.figures.add(f"CPU at rest{when}", (after.cpu_s - before.cpu_s) / IDLE_S * 100, "%", 1.0)
        self.figures.add(f"requests at rest{when}", (after.requests - before.requests) / IDLE_S, "/s", 0.3)

    async def restart(self) -> None:
        """Start again, and wait until all have been looked at."""
        self.stop()
        said, began_s = [len(each.text()) for each in self.daemons], time.monotonic()
        await self.start()

        async def looked() -> bool:
            told = [each.text(since) for each, since in zip(self.daemons, said, strict=True)]
            return len({name for each in told for name in LOOKED.findall(each)}) >= self.shape.syncs

        await until(looked, "all were looked at", pause_s=0.1)
        self.figures.add("restart until all were looked at", time.monotonic() - began_s, "s", 8.0)
        self.figures.add("CPU of the restart", (await self.spent()).cpu_s, "s")
        self.note_memory(", started again")

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
        self.figures.add("a pushed folder, wake-up to applied", time.monotonic() - began_s, "s", 0.3)
        await asyncio.sleep(75)  # by then everybody's interval has passed
        after = await self.spent()
        self.figures.add("CPU of the push, all Syncs, with 75 s of rest", after.cpu_s - before.cpu_s, "s", 2.0 + 0.75)
        self.figures.add("requests of the push", after.requests - before.requests, "")

    async def busy(self) -> None:
        """Change objects by hand and files in Git at a steady rate, and see what that costs and how soon each is as it should be."""
        before = await self.spent()
        put_back_s: list[float] = []
        applied_s: list[float] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(_steadily(self.shape.drifts, self._drifted, put_back_s))
            group.create_task(_steadily(self.shape.pushes, self._applied, applied_s))
        after = await self.spent()
        self.figures.add("CPU while busy", (after.cpu_s - before.cpu_s) / BUSY_S * 100, "%")
        self.figures.add("drift put back, p50", statistics.median(put_back_s) * 1000, "ms")
        self.figures.add("drift put back, p99", statistics.quantiles(put_back_s, n=100)[98] * 1000, "ms")
        self.figures.add("pushed folder applied while busy, p50", statistics.median(applied_s), "s")

    async def _drifted(self) -> None:
        """Change an object by hand, and wait until it is put back."""
        turn = next(self.turns)  # one after the other: whoever changes the same again and again is given way
        sync, number = turn % self.shape.syncs, turn // self.shape.syncs % self.shape.objects
        name = f"team-{sync:05}-{number}"
        path = f"/api/v1/namespaces/default/configmaps/{name}"
        await self.client.patch(path, {"data": {"color": "blue"}}, manager="by-hand")

        async def put_back() -> bool:
            return bool((await self.client.get(path))["data"]["color"] == "red")

        await until(put_back, f"{name} is put back", within_s=300, pause_s=0.02)

    async def _applied(self) -> None:
        """Change one file of a Sync, tell the daemon of it, and wait until it is applied."""
        sync = self.dice.randrange(self.shape.syncs)
        async with self.pushing:  # a push builds on the one before it
            version = time.monotonic_ns()
            await asyncio.to_thread(self.push, sync, version)
        woken = {"metadata": {"annotations": {"reconcile.dev/pushed-at": str(version)}}}
        await self.client.patch(f"{SYNCS}/team-{sync:05}", woken, manager="b")

        async def applied() -> bool:
            live = await self.client.get(f"/api/v1/namespaces/default/configmaps/team-{sync:05}-0")
            return int(live["data"]["version"]) >= version

        await until(applied, "the change", within_s=300, pause_s=0.02)

    async def run(self) -> None:
        """Measure everything."""
        await self.floor()
        await self.first()
        await self.rest()
        await self.pushed()
        await self.busy()
        await self.restart()
        await self.rest(", started again")


async def _steadily(rate: float, work: Callable[[], Awaitable[None]], took_s: list[float]) -> None:
    """Begin *work* so often a second for a while, one beside the other, and note how long each took."""

    async def timed(after_s: float) -> None:
        await asyncio.sleep(after_s)
        began_s = time.monotonic()
        await work()
        took_s.append(time.monotonic() - began_s)

    await asyncio.gather(*(timed(number / rate) for number in range(int(BUSY_S * rate))))


def is_ready(sync: dict[str, Any]) -> bool:
    """Tell whether a live Sync is Ready."""
    conditions = (sync.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def prepare(client: Client, repositories: Sequence[ServedRepository], syncs: int) -> None:
    """Create the Syncs."""
    turns = asyncio.Semaphore(16)

    async def create(number: int) -> None:
        git = {"url": repositories[number % len(repositories)].url, "interval": "1m"}
        body = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": f"team-{number:05}"},
                "spec": {"source": {"git": git, "path": f"teams/{number:05}"}}}  # fmt: skip
        async with turns:
            await client.create(SYNCS, body, manager="bench")

    await asyncio.gather(*map(create, range(syncs)))


def install_kinds(sandbox: Sandbox) -> None:
    """Bring in our CRDs."""
    environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]
    for arguments in (["apply", "--server-side", "-f", str(CRDS)], established):
        command = [str(sandbox.programs / "kubectl"), *arguments]
        subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL)


@contextmanager
def control_plane(name: str) -> Iterator[tuple[Sandbox, GitServer, Path]]:
    """A control plane with our kinds, where accounts are trusted, a Git server and a folder, for the time of a block."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sandbox = Sandbox(name, root=root / "sandbox")
        try:
            sandbox.up(Options(components=("etcd", "kube-apiserver")))
            trust_accounts(sandbox)
            install_kinds(sandbox)
            with GitServer(root / "git") as server:
                yield sandbox, server, root
        finally:
            sandbox.down()


async def measured(shape: Shape) -> Figures:
    """Measure on a control plane that is gone afterwards, and return what was found."""
    with control_plane("bench-fleet") as (sandbox, server, root):
        served = [server.create(f"fleet-{each}") for each in range(shape.repositories)]
        print(f"{shape}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        daemons = [
            Daemon(sandbox.kubeconfig, root / f"daemon-{each}.log", root / f"cache-{each}")
            for each in range(shape.replicas)
        ]
        async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
            await prepare(client, served, shape.syncs)
            fleet = Fleet(client, daemons, served, shape)
            try:
                await fleet.run()
            except BaseException:
                for each in daemons:
                    print(each.text()[-3000:])
                raise
            finally:
                fleet.stop()
        return fleet.figures


def main(syncs: int = 1000, objects: int = 4, repositories: int = 1, replicas: int = 1) -> int:
    """Measure, and tell whether a budget was exceeded."""
    end_when_told()
    return 1 if asyncio.run(measured(Shape(syncs, objects, repositories, replicas))).exceeded else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
