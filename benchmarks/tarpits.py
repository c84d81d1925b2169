"""How much Git servers that hang hold up those who follow others: ``python -m benchmarks.tarpits [40 [60]]``.

One Sync is changed by pushes and by hand, so many times (60), alone and then beside so many Syncs (40) whose servers take every
connection and never answer, half of them on one server and half on one each. Prints how long commits took to be applied
and drift to be put back, and exits 1 if the 99th percentile of either is more than twice what it was alone. A minute and a half.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.process import Daemon, end_when_told, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository

CRDS = Path(__file__).parents[1] / "crds"
TOKEN = "bench"  # noqa: S105 - nobody else's
MEMBERS = 100
"""So many that no field is put back so often that it counts as contended."""
MOST = 2.0
"""How many times as long the others may wait."""
SETTLE_S = 15.0
"""How long Syncs that hang are given to take what they get."""


def member(number: int, version: int = 0) -> dict[str, Any]:
    """Return one object that is followed."""
    data = {"color": "red", "version": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"member-{number}"}, "data": data}


def sync(name: str, url: str, **git: Any) -> dict[str, Any]:
    """Return a Sync."""
    metadata = {"name": name, "namespace": "default"}
    spec = {"source": {"git": {"url": url, **git}}}
    return {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": spec}


@contextlib.asynccontextmanager
async def tarpits(count: int) -> AsyncIterator[list[str]]:
    """Serve so many repositories that never answer, half of them by one server, and yield their URLs."""

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()  # until the other side hangs up
        writer.close()

    async with contextlib.AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(await asyncio.start_server(hang, "127.0.0.1", 0, backlog=128))
            for _ in range(1 + count // 2)
        ]
        ports = [server.sockets[0].getsockname()[1] for server in servers]
        yield [f"http://127.0.0.1:{ports[max(0, at - count // 2)]}/{at}.git" for at in range(count)]


@dataclass
class Bench:
    """One run: *times* changes of each kind, alone and beside *hanging* Syncs."""

    client: Client
    daemon: Daemon
    repository: ServedRepository
    hanging: int
    times: int
    version: int = 0

    async def committed_s(self, session: aiohttp.ClientSession) -> float:
        """Push a commit, tell of it, and return how long it took to be applied."""
        self.version += 1
        number = self.version % MEMBERS
        self.repository.push({f"{number}.yaml": json.dumps(member(number, self.version))})
        proof = hmac.new(TOKEN.encode(), b"{}", hashlib.sha256).hexdigest()
        headers = {"X-Signature-256": proof}
        began_s = time.monotonic()
        async with session.post(
            f"http://{self.daemon.hooks}/hooks/default/bench", data=b"{}", headers=headers
        ) as answer:
            assert answer.status == 202, answer.status
        await self._until(number, "version", str(self.version))
        return time.monotonic() - began_s

    async def drifted_s(self) -> float:
        """Change an object by hand, and return how long it took to be put back."""
        number = self.version % MEMBERS
        await self.client.patch(_path(number), {"data": {"color": "blue"}}, manager="by-hand")
        began_s = time.monotonic()
        await self._until(number, "color", "red")
        return time.monotonic() - began_s

    async def _until(self, number: int, key: str, value: str) -> None:
        async def reached() -> bool:
            self.daemon.check()
            return bool((await self.client.get(_path(number)))["data"][key] == value)

        await until(reached, f"{key} of member {number} is {value}", within_s=300)

    async def changed(self) -> tuple[list[float], list[float]]:
        """Return how long so many commits and drifts took, after a few that don't count."""
        async with aiohttp.ClientSession() as session:
            found = [(await self.committed_s(session), await self.drifted_s()) for _ in range(self.times + 5)]
        commits, drifts = zip(*found[5:], strict=True)
        return list(commits), list(drifts)

    async def run(self) -> int:
        """Measure and print; return 1 if others were held up."""
        sha = self.repository.push({f"{number}.yaml": json.dumps(member(number)) for number in range(MEMBERS)})
        self.daemon.start()

        async def synced() -> bool:
            live = await self.client.get("/apis/reconcile.dev/v1alpha1/namespaces/default/syncs/bench")
            return bool((live.get("status") or {}).get("lastAppliedRevision") == sha)

        await until(synced, "the first sync")
        alone = await self.changed()
        async with tarpits(self.hanging) as urls:
            for at, url in enumerate(urls):
                path = "/apis/reconcile.dev/v1alpha1/namespaces/default/syncs"
                await self.client.create(path, sync(f"hangs-{at}", url, interval="1s"))
            await asyncio.sleep(SETTLE_S)
            beside = await self.changed()
        print(
            f"beside {self.hanging} Syncs that hang, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; milliseconds:"
        )
        ratios = [_compared(*each) for each in zip(("commit to applied", "drift to fixed"), alone, beside, strict=True)]
        return int(max(ratios) > MOST)


def _path(number: int) -> str:
    return f"/api/v1/namespaces/default/configmaps/member-{number}"


def _compared(name: str, alone: list[float], beside: list[float]) -> float:
    """Print how long something took, and return by how much its 99th percentile grew."""
    (p50, p99), (p50_beside, p99_beside) = (
        (statistics.median(each) * 1000, statistics.quantiles(each, n=100)[98] * 1000) for each in (alone, beside)
    )
    ratio = p99_beside / p99
    print(f"{name:<20} p50 {p50:6.0f} -> {p50_beside:6.0f}   p99 {p99:6.0f} -> {p99_beside:6.0f}   ratio {ratio:.2f}")
    return ratio


def _prepare(sandbox: Sandbox, url: str) -> None:
    """Bring in our CRDs, the Sync and its secret."""
    environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    hook = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook"}, "stringData": {"token": TOKEN}}
    followed = sync("bench", url, interval="1h", webhookSecretRef={"name": "hook"})
    texts = f"{json.dumps(hook)}\n---\n{json.dumps(followed)}"
    for arguments, text in (
        (["apply", "--server-side", "-f", str(CRDS)], ""),
        (["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], ""),
        (["apply", "--server-side", "-f", "-"], texts),
    ):
        command = [str(sandbox.programs / "kubectl"), *arguments]
        subprocess.run(command, check=True, env=environ, stdout=subprocess.DEVNULL, input=text, text=True, timeout=120)


async def measured(hanging: int, times: int) -> int:
    """Measure on a control plane that is gone afterwards; return 1 if others were held up."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        sandbox = Sandbox("bench-tarpits", root=root / "sandbox")
        try:
            sandbox.up(Options(components=("etcd", "kube-apiserver")))
            with GitServer(root / "git") as server:
                repository = server.create("bench")
                _prepare(sandbox, repository.url)
                trust_accounts(sandbox)
                daemon = Daemon(sandbox.kubeconfig, root / "daemon.log", root / "cache")
                async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
                    try:
                        return await Bench(client, daemon, repository, hanging, times).run()
                    finally:
                        daemon.stop()
        finally:
            sandbox.down()


def main(hanging: int = 40, times: int = 60) -> int:
    """Measure, and tell whether others were held up."""
    end_when_told()
    return asyncio.run(measured(hanging, times))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
