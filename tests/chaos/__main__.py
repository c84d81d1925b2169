"""Kill a sync at random moments, run it again, and look for what leaked: ``python -m tests.chaos 50``.

Each round draws a new desired state of 300 objects (some new, some changed, some gone), starts a sync as a process,
kills it with SIGKILL at a random moment (a round in which it was faster doesn't count), and looks:

- nothing that we made is without the label of the set, and nothing carries it that neither state asks for;
- the parent lists every kind of member, also of those that the killed sync made;
- what belongs to others is untouched, down to its resource version.

Then the sync runs again to its end, and the cluster must hold the desired state, nothing less, nothing more.
Prints a line for each fault and the seed that repeats it; exits 1 if there was one.
"""

# ruff: noqa: T201, S311 - a program that prints; what is random here needs no secrecy

from __future__ import annotations

import base64
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubectl_reconcile.core.objects import FIELD_MANAGER, ObjectRef, labels_of
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, applyset_id
from kubectl_reconcile.sandbox.components import Options
from kubectl_reconcile.sandbox.controlplane import Sandbox, trust_accounts
from tests.kubectl import Kubectl, install_crds

PROGRAM = Path(sys.executable).parent / "kubectl-reconcile"
COUNT = 300
NAMESPACES = ("chaos-a", "chaos-b")
SYNC = ObjectRef("reconcile.dev", "Sync", "chaos-a", "chaos")
SET_ID = applyset_id(SYNC)
COLLECTIONS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
}
Key = tuple[str, str, str]
State = dict[Key, int]


@dataclass
class Cluster:
    """A control plane, looked at past the program under test."""

    sandbox: Sandbox

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        status, answer = self.sandbox.request(method, path, body)
        if status >= 400:
            raise RuntimeError(f"{method} {path}: {status} {answer[:300]!r}")
        found: dict[str, Any] = json.loads(answer)
        return found

    def objects(self) -> dict[Key, dict[str, Any]]:
        found = {}
        for kind, pattern in COLLECTIONS.items():
            for namespace in NAMESPACES:
                for item in self.ask("GET", pattern.format(namespace))["items"]:
                    found[kind, namespace, item["metadata"]["name"]] = item
        return found

    def parent(self) -> dict[str, Any]:
        return self.ask("GET", "/apis/reconcile.dev/v1alpha1/namespaces/chaos-a/syncs/chaos")


def manifest(key: Key, version: int) -> dict[str, Any]:
    kind, namespace, name = key
    base: dict[str, Any] = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}
    match kind:
        case "ConfigMap":
            return base | {"data": {"version": str(version)}}
        case "Secret":
            return base | {"stringData": {"version": str(version)}}
        case "Service":
            return base | {"spec": {"ports": [{"port": 1000 + version}], "selector": {"app": name}}}
        case _:
            rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": [f"v{version}"]}
            return base | {"apiVersion": "rbac.authorization.k8s.io/v1", "rules": [rule]}


def version_of(live: Mapping[str, Any]) -> int:
    match live:
        case {"spec": {"ports": [{"port": port}]}}:
            return int(port) - 1000
        case {"rules": [{"resourceNames": [text]}]}:
            return int(text[1:])
        case {"type": _, "data": {"version": text}}:
            return int(base64.b64decode(text))
        case {"data": {"version": text}}:
            return int(text)
    return -1


@dataclass
class Chaos:
    """One run: what was asked for, and what went wrong so far."""

    cluster: Cluster
    folder: Path
    dice: random.Random
    faults: list[str] = field(default_factory=list)
    killed: int = 0
    killed_writing: int = 0
    serial: int = 0

    def fault(self, text: str) -> None:
        self.faults.append(text)
        print(f"FAULT {text}", flush=True)

    def next_state(self, state: State) -> State:
        """Draw the next desired state: some objects go, some change, new ones come."""
        kept = {key: version for key, version in state.items() if self.dice.random() > 0.2}
        changed = {key: version + (self.dice.random() < 0.3) for key, version in kept.items()}
        while len(changed) < COUNT:
            self.serial += 1
            kind, namespace = self.dice.choice(list(COLLECTIONS)), self.dice.choice(NAMESPACES)
            changed[kind, namespace, f"object-{self.serial}"] = 1
        return changed

    def write(self, state: State) -> None:
        files: dict[str, list[str]] = {}
        for key, version in state.items():
            files.setdefault(f"{key[0].lower()}-{sum(map(ord, key[2])) % 7}.yaml", []).append(
                json.dumps(manifest(key, version))
            )
        for old in self.folder.iterdir():
            old.unlink()
        for name, documents in files.items():
            (self.folder / name).write_text("\n---\n".join(documents))

    def start(self) -> subprocess.Popen[str]:
        command = [PROGRAM, "sync", "-f", str(self.folder), "--name", "chaos", "-n", "chaos-a", "-y", "--no-wait"]
        environ = {**os.environ, "KUBECONFIG": str(self.cluster.sandbox.kubeconfig), "PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ)

    def kill_one(self) -> None:
        """Start a sync and kill it: half of the time anywhere, half of the time while it writes."""
        process = self.start()
        assert process.stdout is not None
        if self.dice.random() < 0.25:
            time.sleep(self.dice.uniform(0.1, 2.0))
        else:
            for line in process.stdout:
                if line.startswith(("created", "updated", "deleted", "wave")):
                    break
            time.sleep(self.dice.expovariate(1 / 0.15))
        running = process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.stdout.close()
        process.wait()
        self.killed += running

    def look(self, before: State, after: State, others: Mapping[Key, str]) -> dict[Key, dict[str, Any]]:
        """Look for what must not be at any moment."""
        found = self.cluster.objects()
        contents = Contents.recorded(self.cluster.parent())
        for key, live in found.items():
            ours = any(entry.get("manager") == FIELD_MANAGER for entry in live["metadata"].get("managedFields") or ())
            marked = labels_of(live).get(PART_OF) == SET_ID
            if key in others:
                if live["metadata"]["resourceVersion"] != others[key]:
                    self.fault(f"{key} belongs to others and was touched")
            elif ours and not marked:
                self.fault(f"{key} was made by us and doesn't carry the label")
            elif marked and key not in before and key not in after:
                self.fault(f"{key} is asked for by neither state")
            if marked and key[0] not in {kind.kind for kind in contents.kinds}:
                self.fault(f"{key} is a member, and the parent doesn't list its kind")
        for key in others.keys() - found.keys():
            self.fault(f"{key} belongs to others and is gone")
        for key in (before.keys() & after.keys()) - found.keys():
            self.fault(f"{key} is asked for by both states and is gone")
        return found

    def finish(self, state: State) -> None:
        """Run the sync to its end; the cluster must hold just the desired state."""
        process = self.start()
        text, _ = process.communicate(timeout=300)
        if process.returncode:
            self.fault(f"the sync after a kill exited {process.returncode}: {text[-500:]}")
        members = {key: live for key, live in self.cluster.objects().items() if labels_of(live).get(PART_OF) == SET_ID}
        for key in members.keys() - state.keys():
            self.fault(f"{key} leaked")
        for key in state.keys() - members.keys():
            self.fault(f"{key} is missing")
        for key in state.keys() & members.keys():
            if version_of(members[key]) != state[key]:
                self.fault(f"{key} is at version {version_of(members[key])}, not {state[key]}")


def strangers(cluster: Cluster) -> Iterator[tuple[Key, str]]:
    """Make objects of others: without a label, and of another set."""
    for at in range(12):
        name, labels = f"stranger-{at}", {PART_OF: "applyset-somebody-else-v1"} if at % 3 == 0 else {}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
        made = cluster.ask("POST", COLLECTIONS["ConfigMap"].format(NAMESPACES[at % 2]), body)
        yield ("ConfigMap", NAMESPACES[at % 2], name), made["metadata"]["resourceVersion"]


def prepare(cluster: Cluster) -> None:
    install_crds(Kubectl(str(cluster.sandbox.kubeconfig), cluster.sandbox.programs))
    for name in NAMESPACES:
        cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    sync = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "chaos", "namespace": "chaos-a"},
        "spec": {"maxDeletes": "100%"},
    }
    cluster.ask("POST", "/apis/reconcile.dev/v1alpha1/namespaces/chaos-a/syncs", sync)


def main(kills: int, seed: int) -> int:
    """Kill so many syncs that were at work, which takes some more rounds; tell how often something was wrong."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        sandbox = Sandbox("chaos", root=Path(root) / "sandbox")
        try:
            sandbox.up(Options(components=("etcd", "kube-apiserver")))
            trust_accounts(sandbox)
            cluster = Cluster(sandbox)
            prepare(cluster)
            folder = Path(root) / "shop"
            folder.mkdir()
            chaos = Chaos(cluster, folder, random.Random(seed))
            others = dict(strangers(cluster))
            state: State = {}
            rounds = 0
            while chaos.killed < kills:
                rounds += 1
                before, state = state, chaos.next_state(state)
                chaos.write(state)
                chaos.kill_one()
                found = chaos.look(before, state, others)
                done = sum(key in found and version_of(found[key]) == version for key, version in state.items())
                chaos.killed_writing += 0 < done < COUNT or bool((before.keys() - state.keys()) & found.keys())
                chaos.finish(state)
                chaos.look(state, state, others)
                print(
                    f"round {rounds}, {chaos.killed} of {kills} killed: {done} of {COUNT} were in place; "
                    f"{len(chaos.faults)} faults",
                    flush=True,
                )
        finally:
            sandbox.down()
    spent_s = time.monotonic() - began_s
    print(
        f"{rounds} rounds of {COUNT} objects, {chaos.killed} killed while running, {chaos.killed_writing} of them with "
        f"the work half done: {len(chaos.faults)} faults (seed {seed}, {spent_s:.0f} s)"
    )
    return 1 if chaos.faults else 0


if __name__ == "__main__":
    COUNT_ARGUMENT = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    sys.exit(main(COUNT_ARGUMENT, int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)))
