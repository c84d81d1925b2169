"""What acting as an account costs: ``python -m benchmarks.impersonation [OBJECTS] [ROUNDS]``.

Writes so many ConfigMaps (1,000) to fresh namespaces, in turn as three who may write them, and prints the medians of all rounds (15).

- *the account by impersonation* is how the daemon writes a Sync's members: its own account, with the rights that ``install`` gives it,
  acts as the Sync's. Whoever may do everything takes another way through the server, and a longer one: since Kubernetes 1.36 it
  tries constrained impersonation (KEP-5284) first, and reckons a key of each request for its cache.
- *the account by its own token* is the fair partner: the same user with the same Role, whom the server asks the same questions and
  queues with the same others. What is left between the two is impersonation. The budget of 1.05 is for that.
- *the administrator* skips all of it: ``system:masters`` is asked for no rights and waits in no queue (API priority and fairness exempts
  it). What is left to that is the price of having no more rights than one needs, by whatever way one comes by them.

Beside the time by the clock, which every other program on the machine moves, stands the time of the processor that the API server
and this program took together: the ratio that is judged. Requests are counted, too: there must be as many, whoever writes.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil
import yaml
from msgspec.structs import replace

from benchmarks.process import end_when_told
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.core.module.rbac import daemon_rules
from kubectl_reconcile.engine.apply.writer import Writer
from kubectl_reconcile.engine.sync.reconcile import perform, plan
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.targets import folder_target
from kubectl_reconcile.sandbox.controlplane import Sandbox

BUDGET = 1.05
HOME, ACCOUNT, DAEMON = "accounts", "kubectl-reconcile", "daemon"
"""The accounts are the same in all rounds, so that all connections are equally warm."""
_RBAC = "rbac.authorization.k8s.io"


def rights(namespace: str) -> list[dict[str, Any]]:
    """Return the Role that lets the account write ConfigMaps in *namespace*, and its binding."""
    metadata = {"name": "kubectl-reconcile", "namespace": namespace}
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}
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


class Who(StrEnum):
    """Who writes."""

    IMPERSONATED = "the account by impersonation"
    TOKEN = "the account by its own token"  # noqa: S105 - no token
    ADMINISTRATOR = "the administrator"


@dataclass(frozen=True, slots=True)
class Spent:
    """What one sync took: seconds by the clock, of our processor and of the server's, and how many requests."""

    clock_s: float
    ours_s: float
    server_s: float
    requests: int

    @property
    def processor_s(self) -> float:
        """What both took together."""
        return self.ours_s + self.server_s


@dataclass(frozen=True, slots=True)
class Place:
    """Where is measured: the sessions of the administrator and of both accounts, the process of the API server, the manifests."""

    administrator: Session
    daemon: Session
    account: Session
    server: psutil.Process
    folder: Path

    async def spent(self, namespace: str, who: Who) -> Spent:
        """Write all manifests to a fresh *namespace*, and return what that took from the plan on."""
        api, client = "/apis/rbac.authorization.k8s.io/v1", self.administrator.client
        await client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        for each, plural in zip(rights(namespace), ("roles", "rolebindings"), strict=True):
            await client.create(f"{api}/namespaces/{namespace}/{plural}", each)
        impersonated = self.daemon.acting_as(f"system:serviceaccount:{HOME}:{ACCOUNT}")
        acting = {Who.IMPERSONATED: impersonated, Who.TOKEN: self.account, Who.ADMINISTRATOR: self.administrator}[who]
        return await self._measured(acting, namespace)

    async def _measured(self, acting: Session, namespace: str) -> Spent:
        target = await folder_target(acting, self.folder, "", namespace)
        asked: list[str] = []
        acting.client.count_answers(lambda verb, _status: asked.append(verb))
        clock_s, ours_s, server_s = time.perf_counter(), time.process_time(), processor_s(self.server)
        made = await plan(acting, target)
        done = await perform(acting, target, made, Writer(acting.client))
        spent = Spent(
            time.perf_counter() - clock_s,
            time.process_time() - ours_s,
            processor_s(self.server) - server_s,
            len(asked),
        )
        refused = [each.error for each in done.results if each.error]
        assert not refused, refused[:1]
        return spent


async def make_accounts(administrator: Session) -> None:
    """Make both accounts, and give the daemon's what the daemon has."""
    create, group = administrator.client.create, f"/apis/{_RBAC}/v1"
    await create("/api/v1/namespaces", {"metadata": {"name": HOME}})
    for name in (ACCOUNT, DAEMON):
        await create(f"/api/v1/namespaces/{HOME}/serviceaccounts", {"metadata": {"name": name}})
    metadata = {"name": DAEMON}
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": DAEMON}
    subject = {"kind": "ServiceAccount", "name": DAEMON, "namespace": HOME}
    await create(f"{group}/clusterroles", {"metadata": metadata, "rules": daemon_rules(())})
    await create(f"{group}/clusterrolebindings", {"metadata": metadata, "roleRef": reference, "subjects": [subject]})


async def token_of(administrator: Session, name: str) -> str:
    """Return a token of an account."""
    path = f"/api/v1/namespaces/{HOME}/serviceaccounts/{name}/token"
    return str((await administrator.client.create(path, {"spec": {}}))["status"]["token"])


def processor_s(process: psutil.Process) -> float:
    """Return how long a process has been on a processor."""
    times = process.cpu_times()
    return float(times.user + times.system)


async def measured(sandbox: Sandbox, objects: int, rounds: int) -> dict[Who, list[Spent]]:
    """Return what each round took for each, after one of each that isn't counted."""
    found: dict[Who, list[Spent]] = {who: [] for who in Who}
    access = Access(kubeconfig=str(sandbox.kubeconfig))
    server = psutil.Process(sandbox.pid("kube-apiserver"))
    async with AsyncExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory())
        for number in range(objects):
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}, "data": {"a": "1"}}
            (Path(folder) / f"c{number}.yaml").write_text(yaml.safe_dump(manifest))
        administrator = await opened.enter_async_context(Session.open(access))
        await make_accounts(administrator)
        daemon, account = [
            await opened.enter_async_context(Session.open(replace(access, token=await token_of(administrator, name))))
            for name in (DAEMON, ACCOUNT)
        ]
        place = Place(administrator, daemon, account, server, Path(folder))
        order = list(Who)
        for turn in range(rounds + 1):
            for who in order[turn % 3 :] + order[: turn % 3]:
                spent = await place.spent(f"round-{turn}-{order.index(who)}", who)
                if turn:
                    found[who].append(spent)
    return found


def told(found: Mapping[Who, Sequence[Spent]]) -> Iterator[str]:
    """Yield a line about each."""
    for who, rounds in found.items():
        clock, ours, server = (
            statistics.median(getattr(each, name) for each in rounds) for name in ("clock_s", "ours_s", "server_s")
        )
        requests = sorted({each.requests for each in rounds})
        yield f"{who:29} {clock:.3f} s by the clock, {ours:.3f} s ours, {server:.3f} s the server's, requests {requests}"


def ratio(found: Mapping[Who, Sequence[Spent]], other: Who, name: str) -> float:
    """Return the median of how much more than *other* impersonation takes in a round, of the clock or of processors."""
    pairs = zip(found[Who.IMPERSONATED], found[other], strict=True)
    return float(statistics.median(getattr(one, name) / getattr(two, name) for one, two in pairs))


def main() -> int:
    """Measure, print, and return 1 where it is over budget."""
    objects, rounds = (int(each) for each in (*sys.argv[1:], *("1000", "15")[len(sys.argv) - 1 :]))
    end_when_told()
    sandbox = Sandbox("bench-impersonation")
    sandbox.down()
    try:
        sandbox.up()
        found = asyncio.run(measured(sandbox, objects, rounds))
    finally:
        sandbox.down()
    print("\n".join(told(found)))
    for other in (Who.TOKEN, Who.ADMINISTRATOR):
        clock, processor = (ratio(found, other, name) for name in ("clock_s", "processor_s"))
        print(
            f"{objects} objects, {Who.IMPERSONATED} : {other} = {processor:.3f} of processors, {clock:.3f} by the clock"
        )
    over = ratio(found, Who.TOKEN, "processor_s")
    print(f"impersonation itself costs {over:.3f} (budget {BUDGET})")
    return int(over > BUDGET)


if __name__ == "__main__":
    sys.exit(main())
