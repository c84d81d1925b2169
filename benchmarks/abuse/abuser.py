"""The tenant who abuses everything at once, as a program of its own: ``python -m benchmarks.abuse.abuser``, with an ``Enemy`` on its standard input.

It has what a team has, and no more: rights to write Syncs and view its namespace, an account with ``edit``, repositories and a webhook of its namespace,
and the page. What its servers compute is computed elsewhere in real life, so this program is nice. It ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from benchmarks.abuse.world import config_map
from kubectl_reconcile.core.annotations import SYNC_REQUESTED_AT
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.sandbox.gitserver import GitServer, ServedRepository
from tests.e2e.api import Api
from tests.e2e.cluster import Cluster
from tests.kubectl import Kubectl, KubectlError
from tests.security.admission import admission_webhook
from tests.security.tarpit import tarpit
from tests.security.tenants import manifest

_CHARTS, _SLOW, _HANGING, _BIG, _DEAD = 10, 5, 20, 3, 10
"""How many Syncs of each kind. Eight turns that last are all that a tenant has: with more that are slow, none of the others would come to anything."""
_NAMESPACES: Final = 3000
_MIB: Final = 400
_LOOP: Final = (
    "{{- range $i := until 1000000 }}{{- range $j := until 1000000 }}{{- if eq (add $i $j) -1 }}x{{ end }}{{ end }}"
    "{{ end }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: never}\n"
)
_SLOW_PACK: Final = (
    '#!/bin/sh\nt=$(mktemp)\n"$@" > "$t"\nsize=$(stat -c %s "$t")\nhead -c $((size - 40000)) "$t"\nsleep 25\n'
    'tail -c 40000 "$t"\nrm -f "$t"\n'
)
"""All of a pack but its end comes at once: whoever unpacks it holds what it unpacks to for a while."""


class Enemy(msgspec.Struct):
    """Where the cluster is and who abuses it, as JSON."""

    kubeconfig: str
    programs: str
    page: str
    namespace: str
    tokens: list[str]
    victims: list[str]


@dataclass
class Abuser:
    """One tenant at work, with servers in *folder*."""

    enemy: Enemy
    cluster: Cluster
    folder: Path
    over: threading.Event

    def follow(self, name: str, url: str, *, path: str = "", interval: str = "1s", **metadata: Any) -> None:
        """Have a repository followed."""
        source = {"git": {"url": url, "interval": interval}} | ({"path": path} if path else {})
        sync = manifest("reconcile.dev/v1alpha1", "Sync", name, self.enemy.namespace, spec={"source": source})
        sync["metadata"] |= metadata
        self.cluster.apply(sync)

    def again(self, every_s: float, do: Callable[[int], None]) -> None:
        """Do something again and again, in a thread of its own, until it is over."""

        def work() -> None:
            for number in range(10**9):
                if self.over.wait(every_s):
                    return
                try:
                    do(number)
                except (KubectlError, OSError) as error:
                    sys.stderr.write(f"{do.__qualname__}: {error}\n")

        threading.Thread(target=work, daemon=True).start()

    def until_applied(self, name: str) -> None:
        """Wait until a Sync is applied: what abuses it would come to nothing if the Sync itself waited for others of its namespace."""
        while not self.over.is_set():
            if (self.cluster.get("Sync", name).get("status") or {}).get("lastAppliedRevision"):
                return
            self.over.wait(0.2)

    def own(self) -> Cluster:
        """The cluster along a connection of its own, for a thread of its own."""
        kubectl = self.cluster.kubectl
        return Cluster(Api(kubectl), kubectl, self.enemy.namespace)


def webhook(abuser: Abuser) -> contextlib.AbstractContextManager[object]:
    """A webhook of the namespace that refuses and asks for ten minutes, and hangs for 29 s for others."""

    def answer(request: Mapping[str, Any]) -> dict[str, Any]:
        if "slow" in request["name"]:
            abuser.over.wait(29)
        details = {"retryAfterSeconds": 600}
        return {"allowed": False, "status": {"code": 429, "reason": "TooManyRequests", "details": details}}

    @contextlib.contextmanager
    def opened() -> Iterator[None]:
        with admission_webhook(abuser.folder, answer) as configuration:
            made = configuration(abuser.enemy.namespace)
            made["webhooks"][0]["objectSelector"] = {"matchLabels": {"asks": "the-webhook"}}
            abuser.cluster.kubectl.apply([made])
            yield

    return opened()


def followed_by_a_webhook(abuser: Abuser, git: GitServer) -> None:
    """Syncs whose writes the webhook refuses or holds up, which are asked for again and again."""
    for number in range(_SLOW):
        repository = git.create(f"slow-{number}")
        names = ["refused", *(f"slow-{each}" for each in range(20))]
        files = {f"{name}.json": _labelled(f"{name}-{number}") for name in names}
        repository.push(files)
        abuser.follow(f"slow-{number}", repository.url)
    cluster = abuser.own()

    def ask(turn: int) -> None:
        note = {SYNC_REQUESTED_AT: f"asked-{time.time_ns()}"}
        cluster.edit("Sync", f"slow-{turn % _SLOW}", {"metadata": {"annotations": note}})

    abuser.again(0.1, ask)


def charts(abuser: Abuser, git: GitServer) -> None:
    """Charts that never end, with a new commit every few seconds."""
    repository = git.create("charts")

    def push(turn: int) -> None:
        files: dict[str, str | bytes | None] = {}
        for number in range(_CHARTS):
            files[f"{number}/Chart.yaml"] = f"apiVersion: v2\nname: c{number}\nversion: 0.1.{turn}\n"
            files[f"{number}/templates/a.yaml"] = _LOOP
        repository.push(files)

    push(0)
    for number in range(_CHARTS):
        abuser.follow(f"chart-{number}", repository.url, path=str(number))
    abuser.again(5, lambda turn: push(turn + 1))


def big_repositories(abuser: Abuser, git: GitServer) -> None:
    """Repositories of few bytes that unpack to much memory, and change so that they are fetched again."""
    first = git.create("big-0")
    first.push({"x.bin": b"\0" * (_MIB << 20), "a.json": config_map("of-big-0")})
    repositories = [first]
    for number in range(1, _BIG):
        folder = first.folder.with_name(f"big-{number}.git")
        shutil.copytree(first.folder, folder)
        repositories.append(ServedRepository(folder, git))
    for number, repository in enumerate(repositories):
        repository.push({"a.json": config_map(f"of-big-{number}", turn="none yet")})
        abuser.follow(f"big-{number}", repository.url)

    def push(turn: int) -> None:
        number = turn % _BIG
        repositories[number].push({"a.json": config_map(f"of-big-{number}", turn=str(turn))})

    abuser.again(5, push)


def rights(abuser: Abuser, git: GitServer, dead: Sequence[str]) -> None:
    """An account that is a member is annotated twenty times a second, beside Syncs that lack something."""
    repository = git.create("account")
    repository.push({"sa.json": json.dumps(manifest("v1", "ServiceAccount", "pump"))})
    abuser.follow("account", repository.url)
    abuser.until_applied("account")
    for number, url in enumerate(dead):
        abuser.follow(f"dead-{number}", url, interval="5m")
    cluster = abuser.own()
    path = f"/api/v1/namespaces/{abuser.enemy.namespace}/serviceaccounts/pump?fieldManager=by-hand"

    def pump(turn: int) -> None:
        body = {"metadata": {"annotations": {"pump": str(turn)}}}
        cluster.api.ask(path, method="PATCH", body=body, type_="application/merge-patch+json")

    abuser.again(0.05, pump)


def forged_labels(abuser: Abuser) -> None:
    """Objects that are marked as members of the victims' Syncs, and change ten times a second."""
    cluster = abuser.own()
    ids = [applyset_id(ObjectRef("reconcile.dev", "Sync", victim, "plain")) for victim in abuser.enemy.victims]

    def forge(turn: int) -> None:
        forged = manifest("v1", "ConfigMap", f"forged-{turn % 30}", abuser.enemy.namespace, data={"turn": str(turn)})
        forged["metadata"]["labels"] = {PART_OF: ids[turn % len(ids)]}
        cluster.apply(forged)

    abuser.again(0.1, forge)


def namespaces(abuser: Abuser, git: GitServer) -> None:
    """A Sync whose annotation names thousands of namespaces, others each time."""
    repository = git.create("namespaces")
    repository.push({"a.json": config_map("of-namespaces")})
    abuser.follow("namespaces", repository.url)
    abuser.until_applied("namespaces")
    cluster = abuser.own()

    def note(turn: int) -> None:
        names = ",".join(f"no-such-{turn}-{number}" for number in range(_NAMESPACES))
        notes = {
            "applyset.kubernetes.io/contains-group-kinds": "ConfigMap,Secret,Service,Deployment.apps,Job.batch",
            "applyset.kubernetes.io/additional-namespaces": names,
            SYNC_REQUESTED_AT: f"asked-{time.time_ns()}",
        }
        cluster.edit("Sync", "namespaces", {"metadata": {"annotations": notes}})

    abuser.again(3, note)


def hanging_servers(abuser: Abuser, urls: Sequence[str]) -> None:
    """Syncs of Git servers that take every connection and never answer."""
    for number, url in enumerate(urls):
        abuser.follow(f"hangs-{number}", url)


async def page(abuser: Abuser) -> None:
    """Plans that wait for servers that hang, and event streams, as many as two people can ask for."""

    async def ask(session: aiohttp.ClientSession, path: str, token: str) -> None:
        url, headers = f"http://{abuser.enemy.page}{path}", {"Authorization": f"Bearer {token}"}
        while not abuser.over.is_set():
            with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                async with session.get(url, headers=headers) as answer:
                    async for _ in answer.content:
                        pass
            await asyncio.sleep(0.5)

    paths = [f"/api/v1/syncs/{abuser.enemy.namespace}/hangs-{number}/plan" for number in range(8)]
    paths += ["/api/v1/stream"] * 30
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(ask(session, path, token) for path in paths for token in abuser.enemy.tokens))


def _labelled(name: str) -> str:
    one = manifest("v1", "ConfigMap", name, data={"x": "1"})
    one["metadata"]["labels"] = {"asks": "the-webhook"}
    return json.dumps(one)


def main() -> None:
    """Abuse everything until the standard input ends."""
    os.nice(10)
    enemy = msgspec.json.decode(sys.stdin.readline(), type=Enemy)
    kubectl = Kubectl(enemy.kubeconfig, Path(enemy.programs))
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="abuser-")))
        cluster = Cluster(stack.enter_context(contextlib.closing(Api(kubectl))), kubectl, enemy.namespace)
        over = threading.Event()
        stack.callback(over.set)
        abuser = Abuser(enemy, cluster, folder, over)
        slow_pack = folder / "slow-pack"
        slow_pack.write_text(_SLOW_PACK)
        slow_pack.chmod(0o755)
        config = {"uploadpack.packObjectsHook": str(slow_pack), "uploadpack.allowFilter": "false"}
        git, slow_git = (
            stack.enter_context(GitServer(folder / name, config=each)) for name, each in (("git", {}), ("big", config))
        )
        pits = stack.enter_context(tarpit(_HANGING))
        stack.enter_context(webhook(abuser))
        rights(abuser, git, [f"{git.url}/none-{number}.git" for number in range(_DEAD)])
        namespaces(abuser, git)
        forged_labels(abuser)
        charts(abuser, git)
        big_repositories(abuser, slow_git)
        hanging_servers(abuser, pits.urls)
        followed_by_a_webhook(abuser, git)
        threading.Thread(target=lambda: asyncio.run(page(abuser)), daemon=True).start()
        sys.stdout.write("at work\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
