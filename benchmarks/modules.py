"""How fast modules are: many Memcacheds made at once, a deleted child coming back, and what rest costs.

    python -m benchmarks.modules [--crs 1000] [--deletions 100]

Runs a daemon on a control plane of its own. The *floor* is what a bare client takes, right after, to apply the very
same children to another namespace, until the cluster's own controllers have seen them too: on a shared machine only
the ratio says something.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.process import Daemon, end_when_told, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import NotFound
from kubectl_reconcile.engine.commands import install
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.sandbox.controlplane import Sandbox
from kubectl_reconcile.source.policy import SourcePolicy

CRS = "/apis/cache.example.com/v1alpha1/namespaces/{}/memcacheds"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
SERVICES = "/api/v1/namespaces/{}/services"
AT_ONCE = 24
REST_S = 30


async def measure(client: Client, namespace: str, daemon: Daemon, crs: int, deletions: int) -> dict[str, float]:
    """Print what was measured, and return it."""
    places, cpu_s = [path.format(namespace) for path in (CRS, DEPLOYMENTS, SERVICES)], daemon.cpu_s
    manifests = [
        {
            "apiVersion": "cache.example.com/v1alpha1",
            "kind": "Memcached",
            "metadata": {"name": f"c{number}"},
            "spec": {"size": 0},
        }
        for number in range(crs)
    ]
    started_s = time.monotonic()
    await at_once(client.create(places[0], manifest) for manifest in manifests)
    created_s = time.monotonic() - started_s
    await until_all_observed(client, places[0], crs)
    all_s = time.monotonic() - started_s
    children = [(await client.list(place))[0] for place in places[1:]]
    print(
        f"{crs} CRs: created in {created_s:.1f} s, all reconciled after {all_s:.1f} s, children "
        f"{[len(found) for found in children]}, daemon {daemon.cpu_s - cpu_s:.1f} CPU-s, load {os.getloadavg()[0]:.1f}"
    )
    floor_s = await floor(client, f"{namespace}-floor", children)
    print(f"floor: {floor_s:.1f} s, load {os.getloadavg()[0]:.1f}; ratio {all_s / floor_s:.2f}")
    before = await daemon.requests()
    await asyncio.sleep(REST_S)
    resting = await daemon.requests() - before
    print(f"at rest: {resting} requests in {REST_S} s, those for its Lease included")
    back_ms = [await deletion(client, places[2], f"c{number % crs}") for number in range(deletions)]
    p50_ms, p90_ms = statistics.median(back_ms), sorted(back_ms)[int(len(back_ms) * 0.9)]
    print(f"deleted child back: p50 {p50_ms:.0f} ms, p90 {p90_ms:.0f} ms, load {os.getloadavg()[0]:.1f}")
    return {
        "all reconciled, s": all_s,
        "the same children by a bare client, s": floor_s,
        "CRs reconciled, /s": crs / all_s,
        f"its requests in {REST_S} s at rest, one in 4 s for its Lease": resting,
        "deleted child back, p50, ms": p50_ms,
        "deleted child back, p90, ms": p90_ms,
    }


async def at_once(calls: Any) -> None:
    """Await all *calls*, so many at once."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(call: Any) -> None:
        async with slots:
            await call

    await asyncio.gather(*map(one, calls))


async def until_all_observed(client: Client, place: str, count: int) -> None:
    """Wait until so many objects are there and each status speaks of the newest spec."""

    async def observed() -> bool:
        items, _ = await client.list(place)
        return len([one for one in items if (one.get("status") or {}).get("observedGeneration") == 1]) >= count

    await until(observed, f"the statuses of {count} objects", within_s=1800, pause_s=0.25)


async def floor(client: Client, namespace: str, children: list[list[dict[str, Any]]]) -> float:
    """Return how long a bare client takes for the same objects, in seconds."""
    await client.create("/api/v1/namespaces", named("v1", "Namespace", namespace))
    deployments, services = DEPLOYMENTS.format(namespace), SERVICES.format(namespace)
    bodies = [
        (place, copied(child, version, kind))
        for pair in zip(*children, strict=True)
        for child, (place, version, kind) in zip(
            pair, ((deployments, "apps/v1", "Deployment"), (services, "v1", "Service")), strict=True
        )
    ]
    started_s = time.monotonic()
    await at_once(
        client.apply(f"{place}/{body['metadata']['name']}", body, manager="floor", force=True) for place, body in bodies
    )
    await until_all_observed(client, deployments, len(children[0]))
    took_s = time.monotonic() - started_s
    await client.delete(f"/api/v1/namespaces/{namespace}")
    with suppress(NotFound):
        while True:
            await client.get(f"/api/v1/namespaces/{namespace}")
            await asyncio.sleep(0.5)
    return took_s


def named(version: str, kind: str, name: str) -> dict[str, Any]:
    """Return a manifest that is nothing but its name."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}


def copied(live: dict[str, Any], version: str, kind: str) -> dict[str, Any]:
    """Return a live child as a manifest for another namespace."""
    body = named(version, kind, live["metadata"]["name"])
    body["metadata"]["labels"] = live["metadata"]["labels"]
    return body | {
        "spec": {key: value for key, value in live["spec"].items() if key not in {"clusterIP", "clusterIPs"}}
    }


async def deletion(client: Client, place: str, name: str) -> float:
    """Return how long a deleted child stays away, in milliseconds, as a watch sees it."""
    (before,), version = await client.list(place, fieldSelector=f"metadata.name={name}")
    gone_s = 0.0
    task = asyncio.create_task(client.delete(f"{place}/{name}"))
    async for kind, live in client.watch(place, resourceVersion=version, fieldSelector=f"metadata.name={name}"):
        if kind == "DELETED":
            gone_s = time.monotonic()
        elif gone_s and live["metadata"]["uid"] != before["metadata"]["uid"]:
            break
    back_s = time.monotonic()
    await task
    return (back_s - gone_s) * 1000


async def measured(crs: int = 1000, deletions: int = 100) -> dict[str, float]:
    """Measure on a control plane that is gone afterwards, and return what was found."""
    namespace, sandbox = "bench", Sandbox(f"bench-{secrets.token_hex(3)}")
    sandbox.up()
    try:
        async with await Client.connect(Access(kubeconfig=str(sandbox.kubeconfig))) as client:
            with tempfile.TemporaryDirectory() as name:
                root = Path(name)
                await install.ensure_crds(await Session.over(client, SourcePolicy.of_person(), root))
                await client.create("/api/v1/namespaces", named("v1", "Namespace", namespace))
                daemon = Daemon(sandbox.kubeconfig, root / "log", root / "cache", ("-n", namespace))
                daemon.start()
                try:
                    await until(daemon.ready, "the daemon is ready")
                    return await measure(client, namespace, daemon, crs, deletions)
                finally:
                    daemon.stop()
    finally:
        sandbox.down()


def main() -> None:
    """Run it all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crs", type=int, default=1000)
    parser.add_argument("--deletions", type=int, default=100)
    options = parser.parse_args()
    end_when_told()
    asyncio.run(measured(**vars(options)))


if __name__ == "__main__":
    main()
