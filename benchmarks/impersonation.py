"""What acting as an account costs: ``python -m benchmarks.impersonation [OBJECTS] [ROUNDS]``.

Writes so many ConfigMaps (1,000) to fresh namespaces, in turn as ourselves and as a ServiceAccount whose rights are a Role of
that namespace, and prints the ratio of the times over all rounds (7). The budget is 1.05.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.apply.writer import Writer
from kubectl_reconcile.engine.sync.perform import perform
from kubectl_reconcile.engine.sync.reconcile import plan
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.targets import folder_target
from kubectl_reconcile.sandbox.controlplane import Sandbox

BUDGET = 1.05
_RBAC = "rbac.authorization.k8s.io"


def rights(namespace: str) -> list[dict[str, Any]]:
    """Return the Role that lets the account of a Sync write ConfigMaps in *namespace*, and its binding."""
    metadata = {"name": "kubectl-reconcile", "namespace": namespace}
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", **metadata}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        },
    ]


async def sync_s(session: Session, folder: Path, namespace: str, *, as_account: bool) -> float:
    """Write all of *folder* to a fresh *namespace*, and return the seconds from the plan on."""
    api = "/apis/rbac.authorization.k8s.io/v1"
    await session.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for each, plural in zip(rights(namespace), ("roles", "rolebindings"), strict=True):
        await session.client.create(f"{api}/namespaces/{namespace}/{plural}", each)
    target = await folder_target(session, folder, "", namespace)
    sync = Sync(name="bench", namespace=namespace)
    acting = session.acting_for(sync) if as_account else session
    started = time.perf_counter()
    made = await plan(acting, target)
    done = await perform(session, target, made, Writer(acting.client))
    assert not [each for each in done.results if each.error], "some objects were refused"
    return time.perf_counter() - started


async def measured(access: Access, objects: int, rounds: int) -> float:
    """Return how much longer it takes as an account, after one round of each that isn't counted."""
    times: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for number in range(objects):
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": {"a": "1"}}
            (folder / f"c{number}.yaml").write_text(yaml.safe_dump(manifest))
        async with Session.open(access) as session:
            for turn in range(rounds + 1):
                for as_account in (False, True) if turn % 2 else (True, False):
                    spent = await sync_s(session, folder, f"round-{turn}-{int(as_account)}", as_account=as_account)
                    if turn:
                        times[as_account].append(spent)
    print(f"as ourselves {statistics.median(times[False]):.3f} s, as an account {statistics.median(times[True]):.3f} s")
    pairs = zip(times[True], times[False], strict=True)
    return statistics.median(account / ourselves for account, ourselves in pairs)


def main() -> int:
    """Measure, print, and return 1 where it is over budget."""
    objects, rounds = (int(each) for each in (*sys.argv[1:], *("1000", "7")[len(sys.argv) - 1 :]))
    sandbox = Sandbox("bench-impersonation")
    sandbox.down()
    try:
        sandbox.up()
        ratio = asyncio.run(measured(Access(kubeconfig=str(sandbox.kubeconfig)), objects, rounds))
    finally:
        sandbox.down()
    print(f"{objects} objects: {ratio:.3f} of the time as ourselves (budget {BUDGET})")
    return int(ratio > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
