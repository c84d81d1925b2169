"""Keep a daemon busy with random edits, pushes and restarts: ``python -m tests.soak 15``.

A thousand objects on a control plane of its own: ConfigMaps, and custom resources whose module makes children. All the time
people edit and delete objects (no field so often that it would look like a quarrel) and push commits; in the first third the daemon (orderly, and by SIGKILL) and the API server are restarted
now and then. Every twenty seconds everybody pauses, and the cluster must come to hold just what Git asks for.

Verdict, and exit status 1 if it isn't good: every drift was put back; after the restarts memory stayed within five percent; the
log has no warning that an outage of ours doesn't explain.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import ApiError, Client, NotFound
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository

PROGRAM = Path(sys.executable).parent / "kubectl-reconcile"
CRDS = Path(__file__).parents[2] / "crds"
MAPS, CACHES = 820, 60
PAUSE_EVERY_S = 20.0
SETTLED_WITHIN_S = 60.0
WARM_UP_S = 30.0
NAMESPACE = "default"
ROOTS = {
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "Memcached": "/apis/cache.example.com/v1alpha1/namespaces/default/memcacheds",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Service": "/api/v1/namespaces/default/services",
}
EXPLAINED = re.compile(
    r"feed failed|lease not renewed|group not kept|pass failed|not applied|problem |waiting for the server|kinds not refreshed"
    r"|status not written|source not read|took over|expelled|module pass failed"
)
"""What a daemon may say while the API server is away, or since it was killed."""


def config_map(name: str, version: int) -> dict[str, Any]:
    """Return the ConfigMap that Git asks for."""
    data = {"color": "red", "version": str(version), "text": "x" * 400}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def cache_name(number: int) -> str:
    """Return what a Memcached is called."""
    return f"cache-{number}"


def cache(name: str, size: int) -> dict[str, Any]:
    """Return the Memcached that Git asks for."""
    api = "cache.example.com/v1alpha1"
    return {"apiVersion": api, "kind": "Memcached", "metadata": {"name": name}, "spec": {"size": size}}


@dataclass
class Daemon:
    """The daemon as a process; its log goes on over restarts."""

    kubeconfig: Path
    log: Path
    home: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        command = [PROGRAM, "daemon", "--listen=127.0.0.1:0", f"--kubeconfig={self.kubeconfig}"]
        with self.log.open("ab") as log:
            environ = {**os.environ, "XDG_CACHE_HOME": str(self.home)}
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it one way or the other; return its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    @property
    def rss_mb(self) -> float:
        """Resident memory."""
        assert self.process is not None
        return psutil.Process(self.process.pid).memory_info().rss / 1e6


@dataclass
class Soak:
    """One run."""

    sandbox: Sandbox
    client: Client
    daemon: Daemon
    repository: ServedRepository
    dice: random.Random
    turns: list[Iterator[str]] = field(
        default_factory=lambda: [cycle(map(cache_name, range(CACHES))) for _ in range(7)]
    )
    maps: dict[str, int] = field(default_factory=dict)
    caches: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    outages: list[tuple[float, float]] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    edits: int = 0
    pushes: int = 0
    restarts: int = 0

    def fault(self, text: str) -> None:
        """Note something that must not be."""
        self.faults.append(text)
        print(f"FAULT {text}", flush=True)

    # What happens all the time ----------------------------------------------------------------

    def push(self, names: list[str]) -> None:
        """Commit the files of these objects as they are wanted now."""
        changes: dict[str, str | bytes | None] = {}
        for name in names:
            if name in self.maps:
                changes[f"maps/{name}.json"] = json.dumps(config_map(name, self.maps[name]))
            elif name in self.caches:
                changes[f"caches/{name}.json"] = json.dumps(cache(name, self.caches[name]))
            else:
                changes[f"maps/{name}.json"] = None
        self.repository.push(changes)
        self.pushes += 1

    def commit(self) -> None:
        """Change some files, let one go and bring a new one."""
        changed = self.dice.sample(sorted(self.maps), 5)
        for name in changed:
            self.maps[name] += 1
        sized = self.dice.choice(sorted(self.caches))
        self.caches[sized] = 1 + self.caches[sized] % 3
        gone, new = self.dice.choice(sorted(self.maps)), f"map-{len(self.maps)}-{self.pushes}"
        del self.maps[gone]
        self.maps[new] = 0
        self.push([*changed, sized, gone, new])

    async def edit(self) -> None:
        """Do what people do by hand, to one object."""
        name, what = self.dice.choice(sorted(self.maps)), self.dice.randrange(7)
        sized = next(self.turns[what])
        with suppress(NotFound):
            if what < 3:
                await self.patch("ConfigMap", name, {"data": {self.dice.choice(["color", "text"]): "by hand"}})
            elif what == 3:
                await self.client.delete(f"{ROOTS['ConfigMap']}/{name}")
            elif what == 4:
                await self.patch("Memcached", sized, {"spec": {"size": 7}})
            elif what == 5:
                await self.patch("Deployment", sized, {"spec": {"replicas": 0}})
            else:
                await self.client.delete(f"{ROOTS['Service']}/{sized}")
        self.edits += 1

    async def patch(self, kind: str, name: str, body: dict[str, Any]) -> None:
        """Change an object by hand."""
        await self.client.patch(f"{ROOTS[kind]}/{name}", body, manager="by-hand")

    async def restart(self) -> None:
        """Restart the daemon, one way or the other, or the API server."""
        self.restarts += 1
        how, began = self.dice.choice(["TERM", "KILL", "server"]), time.time()
        print(f"restart: {how}", flush=True)
        if how == "server":
            await asyncio.to_thread(self.sandbox.stop, "kube-apiserver", grace_s=1)
            await asyncio.sleep(self.dice.uniform(0, 5))
            await asyncio.to_thread(self.sandbox.start, "kube-apiserver")
        else:
            status = await asyncio.to_thread(self.daemon.stop, getattr(signal, f"SIG{how}"))
            if how == "TERM" and status:
                self.fault(f"told to end, the daemon exited {status}")
            self.daemon.start()
        self.outages.append((began - 1, time.time() + 40))

    # What must be -----------------------------------------------------------------------------

    async def wrong(self) -> str:
        """Return the first thing in the cluster that isn't in sync, or nothing."""
        found = {
            kind: {each["metadata"]["name"]: each for each in (await self.client.list(root))[0]}
            for kind, root in ROOTS.items()
        }
        maps = {name: each for name, each in found["ConfigMap"].items() if name.startswith("map-")}
        if odd := maps.keys() ^ self.maps.keys():
            return f"{len(odd)} ConfigMaps are missing or left over, such as {min(odd)}"
        for name, version in self.maps.items():
            if maps[name].get("data") != config_map(name, version)["data"]:
                return f"ConfigMap {name} isn't as at version {version}"
        for name, size in self.caches.items():
            live, child = found["Memcached"].get(name), found["Deployment"].get(name)
            if live is None or live["spec"].get("size") != size:
                return f"Memcached {name} isn't of size {size}"
            if child is None or child["spec"]["replicas"] != size or name not in found["Service"]:
                return f"a child of Memcached {name} isn't as it should be"
        return ""

    async def settle(self) -> None:
        """Wait until everything is in sync."""
        deadline_s, why = time.monotonic() + SETTLED_WITHIN_S, "never looked"
        while why and time.monotonic() < deadline_s:
            try:
                why = await self.wrong()
            except ApiError as error:
                why = str(error)
            await asyncio.sleep(0.2)
        if why:
            self.fault(f"not put right within {SETTLED_WITHIN_S:.0f} s: {why}")

    def read_log(self) -> None:
        """Look for what the daemon said and nothing explains."""
        for line in self.daemon.log.read_text(errors="replace").splitlines():
            at = re.match(r"(\S+)Z (WARNING|ERROR) (.*)", line)
            if "Traceback" in line:
                self.fault("a traceback in the log")
            if not at or at[3].startswith("event loop blocked"):  # which a busy machine does, and a metric counts
                continue
            when = time.mktime(time.strptime(at[1], "%Y-%m-%dT%H:%M:%S")) - time.timezone
            ours = any(begin <= when <= end for begin, end in self.outages)
            if at[2] == "ERROR" or not (ours and EXPLAINED.match(at[3])):
                self.fault(f"the log says {line[:300]}")

    async def run(self, minutes: float) -> None:
        """Keep it busy."""
        self.maps = {f"map-{number}": 0 for number in range(MAPS)}
        self.caches = {cache_name(number): 1 + number % 3 for number in range(CACHES)}
        self.push([*self.maps, *self.caches])
        self.daemon.start()
        self.outages.append((time.time() - 1, time.time() + 20))
        await self.settle()
        began_s = time.monotonic()
        end_s, restarts_end_s = began_s + minutes * 60, began_s + minutes * 20
        next_restart_s, warm_s = began_s + 10, restarts_end_s + WARM_UP_S
        while time.monotonic() < end_s:
            round_end_s = min(time.monotonic() + PAUSE_EVERY_S, end_s)
            while time.monotonic() < round_end_s:
                with suppress(ApiError):
                    await self.edit()
                if self.dice.random() < 0.02:
                    await asyncio.to_thread(self.commit)
                if next_restart_s < time.monotonic() < restarts_end_s:
                    await self.restart()
                    next_restart_s = time.monotonic() + self.dice.uniform(20, 60)
                await asyncio.sleep(self.dice.expovariate(5))
            await self.settle()
            if time.monotonic() > warm_s:
                self.memory_mb.append(self.daemon.rss_mb)
            left_s = end_s - time.monotonic()
            print(
                f"{max(left_s, 0):4.0f} s to go: {self.edits} edits, {self.pushes} pushes, {self.restarts} restarts, "
                f"{self.daemon.rss_mb:.1f} MB, {len(self.faults)} faults", flush=True,
            )  # fmt: skip

    def verdict(self) -> int:
        """Print how it went; return the exit status."""
        self.read_log()
        if len(self.memory_mb) >= 4:
            quarter = len(self.memory_mb) // 4
            before, after = (statistics.mean(part) for part in (self.memory_mb[:quarter], self.memory_mb[-quarter:]))
            change = (after / before - 1) * 100
            print(f"memory: {before:.1f} MB, then {after:.1f} MB ({change:+.1f} %)")
            if change > 5:
                self.fault(f"memory grew by {change:.1f} %")
        else:
            print("memory: too short a run to tell")
        print(
            f"{'GOOD' if not self.faults else 'BAD'}: {self.edits} edits, {self.pushes} pushes, {self.restarts} restarts, {len(self.faults)} faults"
        )
        return 1 if self.faults else 0


def prepare(sandbox: Sandbox, url: str) -> None:
    """Bring in our CRDs and the Sync."""
    environ = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig)}
    kubectl = [sandbox.programs / "kubectl"]
    apply = [*kubectl, "apply", "--server-side", "-f"]
    subprocess.run([*apply, str(CRDS)], check=True, env=environ, stdout=subprocess.DEVNULL)
    wait = [*kubectl, "wait", "--for=condition=Established", "--timeout=60s", "-f", str(CRDS)]
    subprocess.run(wait, check=True, env=environ, stdout=subprocess.DEVNULL)
    spec = {"source": {"git": {"url": url, "interval": "2s"}}}
    sync = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "soak"}, "spec": spec}
    subprocess.run([*apply, "-"], check=True, env=environ, stdout=subprocess.DEVNULL, input=json.dumps(sync), text=True)


async def soak(sandbox: Sandbox, repository: ServedRepository, root: Path, minutes: float, seed: int) -> int:
    """Run it and judge."""
    daemon = Daemon(sandbox.kubeconfig, root / "daemon.log", root / "cache")
    async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
        run = Soak(sandbox, client, daemon, repository, random.Random(seed))
        try:
            await run.run(minutes)
        finally:
            daemon.stop()
        return run.verdict()


def main(minutes: float, seed: int) -> int:
    """Soak for so many minutes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # and clean up
    print(f"soaking for {minutes:g} minutes, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        sandbox = Sandbox("soak", root=root / "sandbox")
        try:
            sandbox.up(Options(components=("etcd", "kube-apiserver")))
            trust_accounts(sandbox)
            with GitServer(root / "git") as server:
                repository = server.create("soak")
                prepare(sandbox, repository.url)
                return asyncio.run(soak(sandbox, repository, root, minutes, seed))
        finally:
            sandbox.down()


if __name__ == "__main__":
    MINUTES = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
    sys.exit(main(MINUTES, int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)))
