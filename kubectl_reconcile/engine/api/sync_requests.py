"""How a person asks a running daemon for something, and how to see that it answered.

The request is an annotation on the Sync (its value a fresh token), the answer the same token in
``status.lastHandledSyncAt``: nothing listens on a port, and whoever may patch a Sync may ask.
A daemon shows that it lives by renewing a Lease in its own namespace. Anybody may write Leases somewhere, so those of other
namespaces don't count; but a daemon that follows one namespace alone may keep its Lease there, and speaks for that.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import time
from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from kubectl_reconcile.cluster.client import SHORT_WATCH_S, Client
from kubectl_reconcile.cluster.errors import Forbidden, Gone, NotFound, Unreachable
from kubectl_reconcile.core import installation
from kubectl_reconcile.core.annotations import APPROVED_PLAN, COMPONENT, FOLLOWS, SYNC_REQUESTED_AT
from kubectl_reconcile.core.objects import Manifest, labels_of, map_at
from kubectl_reconcile.core.resources.sync import Sync

DAEMON_LABEL = f"{COMPONENT}=daemon"
"""Label selector of the Leases that daemons renew."""

SYNCS = "/apis/reconcile.dev/v1alpha1"
_LEASES = "/apis/coordination.k8s.io/v1"
_AGAIN_S = 0.5


def sync_path(sync: Sync) -> str:
    """Return the URL path of a Sync."""
    return f"{SYNCS}/namespaces/{sync.namespace}/syncs/{sync.name}"


def now_text() -> str:
    """Return the time as Kubernetes writes it, to the second, in UTC."""
    return _text_of(int(time.time()))


@lru_cache(maxsize=2)
def _text_of(second: int) -> str:
    return dt.datetime.fromtimestamp(second, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def daemon_alive(client: Client, namespace: str) -> bool | None:
    """Tell whether some daemon that follows the Syncs of *namespace* renewed its Lease within the time it promised.

    None is for those who may not look at Leases: nobody knows then.
    """
    try:
        alive = await living_daemons(client, [namespace])
    except Forbidden:
        return None
    except NotFound:
        return False
    return any(daemon.follows in {"", namespace} for daemon in alive)


def daemon_namespace() -> str:
    """Return where daemons live that follow all namespaces."""
    return os.environ.get(installation.NAMESPACE_VARIABLE) or installation.NAMESPACE


class Living(Struct, frozen=True):
    """A running daemon: its name, and the only namespace that it follows; empty for all."""

    name: str
    follows: str


async def living_daemons(client: Client, namespaces: Iterable[str]) -> list[Living]:
    """Return the daemons that renewed their Leases within the time they promised, also those of one of *namespaces* alone.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    home = daemon_namespace()
    found = await _living_in(client, home)
    for namespace in sorted({*namespaces} - {home}):
        found += [each for each in await _living_in(client, namespace) if each.follows == namespace]
    return found


async def _living_in(client: Client, namespace: str) -> list[Living]:
    leases, _ = await client.list(f"{_LEASES}/namespaces/{namespace}/leases", labelSelector=DAEMON_LABEL)
    fresh = (lease for lease in leases if _is_fresh(map_at(lease, "spec")))
    return [Living(str(lease["spec"].get("holderIdentity", "")), labels_of(lease).get(FOLLOWS, "")) for lease in fresh]


def _is_fresh(spec: Manifest) -> bool:
    try:
        renewed = dt.datetime.fromisoformat(spec["renewTime"])
    except (KeyError, ValueError, TypeError):
        return False
    age_s = (dt.datetime.now(dt.UTC) - renewed).total_seconds()
    return bool(age_s < spec.get("leaseDurationSeconds", 15))


async def request_sync(client: Client, sync: Sync) -> str:
    """Ask the daemon to sync now; return the token by which its answer is known.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    token = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    await _annotate(client, sync, {SYNC_REQUESTED_AT: token})
    return token


async def approve(client: Client, sync: Sync, approval: str) -> None:
    """Let what is held with this approval hash through, and ask for a sync.

    What was approved before stays so until a sync has carried all out: what waits now may wait because that goes.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    token = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    known = [each for each in sync.approved_plan.split(",") if each]
    approved = list(dict.fromkeys([*known, *approval.split(",")]))[-_APPROVALS:]
    await _annotate(client, sync, {APPROVED_PLAN: ",".join(approved), SYNC_REQUESTED_AT: token})


_APPROVALS = 16
"""How many approvals a Sync keeps."""


async def _annotate(client: Client, sync: Sync, annotations: dict[str, str]) -> dict[str, Any]:
    return await client.patch(
        sync_path(sync), {"metadata": {"annotations": annotations}}, manager="kubectl-reconcile-cli"
    )


async def versions(client: Client, namespace: str, name: str) -> AsyncIterator[Manifest | None]:
    """Yield a Sync as it is and each time it changes, forever; None, and no more, once it is gone or another has its name.

    Raises:
        ApiError: the server refuses.
    """
    uid = ""
    while True:
        try:
            live = await client.get(f"{SYNCS}/namespaces/{namespace}/syncs/{name}")
        except NotFound:
            live = None
        except Unreachable:
            await asyncio.sleep(_AGAIN_S)
            continue
        if live is None or live["metadata"]["uid"] != (uid or live["metadata"]["uid"]):
            yield None
            return
        uid = live["metadata"]["uid"]
        yield live
        try:
            async for changed in _changes(client, live):
                yield changed
        except (Gone, Unreachable):
            await asyncio.sleep(_AGAIN_S)


async def _changes(client: Client, live: Manifest) -> AsyncIterator[Manifest]:
    """Yield what happens to a Sync, until the watch ends or the Sync is gone."""
    metadata = live["metadata"]
    collection, version = f"{SYNCS}/namespaces/{metadata['namespace']}/syncs", metadata["resourceVersion"]
    async for kind, changed in client.watch(
        collection,
        fieldSelector=f"metadata.name={metadata['name']}",
        resourceVersion=version,
        timeoutSeconds=SHORT_WATCH_S,
    ):
        if kind == "DELETED":
            return
        yield changed


def is_handled(live: Manifest, token: str) -> bool:
    """Tell whether the daemon has done what it was asked for by *token*."""
    return map_at(live, "status").get("lastHandledSyncAt") == token
