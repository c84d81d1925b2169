"""What a daemon costs and how fast it is, on a control plane of its own: ``python -m benchmarks.daemon 10000 [36000]``.

So many members, seven of ten custom resources and the others ConfigMaps, in one Sync with one file each; a second
number makes each custom resource so many bytes larger. Looks from outside, through the API server and the operating
system. Prints one line per figure with its budget for ten thousand members, and exits 1 if one is exceeded.
"""

# ruff: noqa: T201, S311 - a script that prints; what is random here needs no secrecy

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.process import Daemon, Figures, end_when_told, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.annotations import SYNC_REQUESTED_AT
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository

CRDS = Path(__file__).parents[1] / "crds"
EDITS = 200
IDLE_S = 30.0
STORM_S, STATUSES_A_SECOND, BURST = 20, 200, 20
TOKEN = "bench"  # noqa: S105 - nobody else's
TEXT = {"type": "string"}
SPEC = {"type": "object", "properties": {"size": {"type": "integer"}, "owner": TEXT, "options": {
    "type": "object", "additionalProperties": TEXT}}}  # fmt: skip
STATUS = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.bench.example.com"},
    "spec": {
        "group": "bench.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
        "versions": [
            {
                "name": "v1", "served": True, "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
            }
        ],
    },
}  # fmt: skip
SYNC_PATH = "/apis/reconcile.dev/v1alpha1/namespaces/default/syncs/bench"


def is_gadget(number: int) -> bool:
    """Tell which members are custom resources: seven of ten."""
    return number % 10 < 7


def manifest(number: int, version: int = 0, size: int = 0) -> str:
    """Return the file of one member; a custom resource is *size* bytes larger than it need be."""
    name = f"member-{number:05}"
    if is_gadget(number):
        ballast = {f"ballast-{at:03}": f"{number:x}".zfill(320) for at in range(size // 340)}
        options = {"color": "red", "version": str(version), **ballast}
        spec = {"size": 3, "owner": f"team-{number % 20}", "options": options}
        body: dict[str, Any] = {"apiVersion": "bench.example.com/v1", "kind": "Gadget", "spec": spec}
    else:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"color": "red", "version": str(version)}}
    return json.dumps({**body, "metadata": {"name": name, "labels": {"team": f"team-{number % 20}"}}}, indent=2)


def path_of(number: int) -> str:
    """Return where one member lives."""
    root, plural = ("/apis/bench.example.com/v1", "gadgets") if is_gadget(number) else ("/api/v1", "configmaps")
    return f"{root}/namespaces/default/{plural}/member-{number:05}"


def value_of(live: dict[str, Any], key: str) -> str:
    """Return one of the texts that edits change."""
    found: str = (live["spec"]["options"] if live["kind"] == "Gadget" else live["data"])[key]
    return found


def edit_of(number: int, color: str) -> dict[str, Any]:
    """Return a patch that drifts one member."""
    return {"spec": {"options": {"color": color}}} if is_gadget(number) else {"data": {"color": color}}


@dataclass
class Bench:
    """One run over *count* members."""

    client: Client
    daemon: Daemon
    repository: ServedRepository
    count: int
    size: int = 0
    dice: random.Random = field(default_factory=lambda: random.Random(7))
    figures: Figures = field(default_factory=Figures)
    """Their budgets are for ten thousand members."""

    async def synced(self, revision: str) -> bool:
        """Tell whether the Sync is applied at *revision*."""
        self.daemon.check()
        live = await self.client.get(SYNC_PATH)
        return bool((live.get("status") or {}).get("lastAppliedRevision") == revision)

    async def first_sync(self) -> None:
        """Apply all of it for the first time."""
        sha = self.repository.push(
            {f"{at // 100:03}/{at}.yaml": manifest(at, size=self.size) for at in range(self.count)}
        )
        began_s = time.monotonic()
        self.daemon.start()
        await until(lambda: self.synced(sha), "the first sync", within_s=1800, pause_s=0.05)
        self.figures.add("first sync", time.monotonic() - began_s, "s")

    async def restart(self) -> None:
        """Start again and wait for the first plan over all of it."""
        self.daemon.stop()
        said = len(self.daemon.text())
        began_s = time.monotonic()
        self.daemon.start()

        async def planned() -> bool:
            self.daemon.check()
            return f"unchanged={self.count}" in self.daemon.text(said)

        await until(planned, "the first plan", pause_s=0.02)
        self.figures.add("restart to first correct plan", time.monotonic() - began_s, "s", 6.0)

    async def idle(self) -> None:
        """Do nothing for a while, and see what that costs."""
        await asyncio.sleep(5)
        before, cpu_s = await self.daemon.requests(), self.daemon.cpu_s
        await asyncio.sleep(IDLE_S)
        after, spent_s = await self.daemon.requests(), self.daemon.cpu_s - cpu_s
        self.figures.add("idle CPU", spent_s / IDLE_S * 100, "%", 1.0)
        self.figures.add("requests while idle, the Lease's 0.25/s included", (after - before) / IDLE_S, "/s", 0.3)
        self.figures.add("resident memory", self.daemon.rss_mb, "MB", 200.0)

    async def forced(self) -> None:
        """Ask for a sync where nothing is to be done."""
        took_s = []
        for number in range(5):
            token, began_s = f"bench-{number}-{time.time_ns()}", time.monotonic()
            await self.client.patch(
                SYNC_PATH, {"metadata": {"annotations": {SYNC_REQUESTED_AT: token}}}, manager="bench"
            )

            async def handled(token: str = token) -> bool:
                live = await self.client.get(SYNC_PATH)
                return bool((live.get("status") or {}).get("lastHandledSyncAt") == token)

            await until(handled, "the answer")
            took_s.append(time.monotonic() - began_s)
        self.figures.add("forced sync without changes", statistics.median(took_s), "s", 0.3)

    async def pushed(self) -> None:
        """Change one file, and tell of the push."""
        took_s = []
        async with aiohttp.ClientSession() as session:
            for version in range(1, 6):
                number = self.dice.randrange(self.count)
                self.repository.push({f"{number // 100:03}/{number}.yaml": manifest(number, version, self.size)})
                proof = hmac.new(TOKEN.encode(), b"{}", hashlib.sha256).hexdigest()
                began_s = time.monotonic()
                url = f"http://{self.daemon.hooks}/hooks/default/bench"
                async with session.post(url, data=b"{}", headers={"X-Signature-256": proof}) as answer:
                    assert answer.status == 202, answer.status

                async def applied(number: int = number, version: int = version) -> bool:
                    return value_of(await self.client.get(path_of(number)), "version") == str(version)

                await until(applied, "the change")
                took_s.append(time.monotonic() - began_s)
                await asyncio.sleep(1)
        self.figures.add("one changed file, wake-up to applied", statistics.median(took_s), "s", 0.7)

    async def drift(self) -> None:
        """Change members by hand, one after the other, and see how soon they are put back."""
        took_ms = []
        for number in (self.dice.randrange(self.count) for _ in range(EDITS)):
            await self.client.patch(path_of(number), edit_of(number, "blue"), manager="by-hand")
            began_s = time.monotonic()

            async def put_back(number: int = number) -> bool:
                return value_of(await self.client.get(path_of(number)), "color") == "red"

            await until(put_back, f"member {number} is put back", within_s=60)
            took_ms.append((time.monotonic() - began_s) * 1000)
        self.figures.add("drift put back, p50", statistics.median(took_ms), "ms", 150.0)
        self.figures.add("drift put back, p99", statistics.quantiles(took_ms, n=100)[98], "ms", 1000.0)

    async def storm(self) -> None:
        """Have the statuses of custom resources move all the time, and see what judging them costs."""
        gadgets = [at for at in range(self.count) if is_gadget(at)]

        async def move(number: int, state: str) -> None:
            ready = {"type": "Ready", "status": state, "reason": "Storm", "message": f"{state} for now"}
            await self.client.patch(f"{path_of(number)}/status", {"status": {"conditions": [ready]}}, manager="storm")

        before, cpu_s, began_s = await self.daemon.requests(), self.daemon.cpu_s, time.monotonic()
        for burst in range(STORM_S * STATUSES_A_SECOND // BURST):
            chosen = self.dice.sample(gadgets, min(BURST, len(gadgets)))
            state = "False" if burst % 2 else "True"
            await asyncio.gather(*(move(number, state) for number in chosen))
            await asyncio.sleep(max(began_s + (burst + 1) * BURST / STATUSES_A_SECOND - time.monotonic(), 0))
        lasted_s = time.monotonic() - began_s
        spent_s, asked = self.daemon.cpu_s - cpu_s, await self.daemon.requests() - before
        self.figures.add("statuses that move", STORM_S * STATUSES_A_SECOND / lasted_s, "/s")
        self.figures.add("CPU while statuses move", spent_s / lasted_s * 100, "%", 20.0)
        self.figures.add("requests meanwhile, the Lease's 0.25/s included", asked / lasted_s, "/s", 1.5)

    async def run(self) -> None:
        """Measure everything."""
        await self.first_sync()
        self.figures.add("resident memory after the first sync", self.daemon.rss_mb, "MB")
        await self.restart()
        await self.idle()
        await self.forced()
        await self.pushed()
        await self.drift()
        await self.storm()
        await self.idle()


def prepare(sandbox: Sandbox, url: str) -> None:
    """Bring in our CRDs, the kind, the Sync and its secret."""
    environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    kubectl = sandbox.programs / "kubectl"

    def run(*arguments: str, stdin: str = "") -> None:
        subprocess.run(
            [kubectl, *arguments], check=True, env=environ, stdout=subprocess.DEVNULL, input=stdin, text=True
        )

    run("apply", "--server-side", "-f", str(CRDS))
    run("apply", "--server-side", "-f", "-", stdin=json.dumps(GADGETS))
    run("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    hook = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "stringData": {"token": TOKEN}}
    git = {"url": url, "interval": "1h", "webhookSecretRef": {"name": "hook"}}
    sync = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "bench"},
            "spec": {"source": {"git": git}, "timeout": "30m"}}  # fmt: skip
    run("apply", "--server-side", "-f", "-", stdin=f"{json.dumps(hook)}\n---\n{json.dumps(sync)}")


async def measure(sandbox: Sandbox, repository: ServedRepository, root: Path, count: int, size: int = 0) -> Bench:
    """Run the bench, and return it with what it found."""
    daemon = Daemon(sandbox.kubeconfig, root / "daemon.log", root / "cache")
    async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
        bench = Bench(client, daemon, repository, count, size)
        try:
            await bench.run()
        except BaseException:
            print(daemon.text()[-3000:])
            raise
        finally:
            daemon.stop()
    return bench


async def measured(count: int, size: int = 0) -> Bench:
    """Measure with so many members on a control plane that is gone afterwards, and return what was found."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        sandbox = Sandbox("bench-daemon", root=root / "sandbox")
        try:
            sandbox.up(Options(components=("etcd", "kube-apiserver")))
            trust_accounts(sandbox)
            with GitServer(root / "git") as server:
                repository = server.create("bench")
                prepare(sandbox, repository.url)
                larger = f" and {size} bytes more in each custom resource" if size else ""
                print(f"{count} members{larger}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
                return await measure(sandbox, repository, root, count, size)
        finally:
            sandbox.down()


def main(count: int = 10_000, size: int = 0) -> int:
    """Measure, and tell whether a budget was exceeded."""
    end_when_told()
    return 1 if asyncio.run(measured(count, size)).figures.exceeded else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
