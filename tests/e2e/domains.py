"""What tests of domain modules share: CRs, their children, what a preview promises, and the chocolate factory."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path

from kubectl_reconcile.sandbox.processes import free_ports

ROOT = Path(__file__).parents[2]
FACTORY = ROOT / "examples" / "candy_factory.py"
APIS = {
    "Memcached": "cache.example.com/v1alpha1",
    "WebServer": "demo.k8s.io/v1alpha1",
    "ThreeTierApp": "apps.example.com/v1alpha1",
    "Candy": "awesome.corp.com/v1",
}
CHILDREN = ("Pod", "Service", "Deployment", "StatefulSet", "Memcached")


def cr(kind, name, annotations=None, **spec):
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": APIS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def condition(live, type_):
    found = ((live or {}).get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == type_), {})


def children(cluster):
    """What modules have made in the namespace and nobody is deleting: (kind, name) -> object."""
    found = {}
    for kind in CHILDREN:
        for one in cluster.list(kind):
            controller = next(
                (each for each in one["metadata"].get("ownerReferences") or () if each.get("controller")), {}
            )
            if controller.get("kind") in APIS and not one["metadata"].get("deletionTimestamp"):
                found[kind, one["metadata"]["name"]] = one
    return found


def holds(after, live):
    """Whether *live* has everything that *after* says."""
    if isinstance(after, dict):
        return isinstance(live, dict) and all(
            name in live and holds(value, live[name]) for name, value in after.items()
        )
    if isinstance(after, list):
        return isinstance(live, list) and len(after) == len(live) and all(map(holds, after, live))
    return after == live


def essence(manifest):
    """What a preview promises of an object: all but what the server and other controllers write."""
    kept = {name: value for name, value in manifest.items() if name not in {"metadata", "status", "kind", "apiVersion"}}
    return {**kept, "metadata": {"labels": manifest["metadata"].get("labels") or {}}}


def preview(plugin, folder, *arguments):
    answer = plugin("diff", "-f", str(folder), "-o", "json", *arguments)
    assert answer.status in {0, 1}, answer.err
    return json.loads(answer.out)


def promised(plan, before):
    """The children that there will be, by the plan: what each must hold, None where it stays as it is."""
    there = dict.fromkeys(before)
    for change in plan["changes"]:
        key = change["object"]["kind"], change["object"]["name"]
        if "owner" not in change or change["op"] == "act":
            continue
        if change["op"] == "delete":
            there.pop(key)
        else:
            there[key] = essence(change["after"])
    return there


def as_promised(cluster, promise):
    found = children(cluster)
    return found.keys() == promise.keys() and all(
        holds(want, essence(found[key])) for key, want in promise.items() if want is not None
    )


# --- an external system ---


class Factory:
    """The chocolate factory as a process, and what happened in it."""

    def __init__(self, folder):
        self.state, self.process, self.url = folder / "factory.json", None, ""

    def start(self):
        port = self.url.rpartition(":")[2] or next(free_ports())  # none that may be somebody's while it is away
        command = [sys.executable, FACTORY, "--listen", f"127.0.0.1:{port}", "--state", self.state]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(120)
        self.process.stdout.close()

    def ask(self, path, body=None, method="PUT"):
        data = None if body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        with contextlib.closing(connection):
            connection.request(method if data else "GET", path, data)
            return json.loads(connection.getresponse().read())

    def did(self, machine):
        return [(line["did"], line["what"]) for line in self.ask("/log") if line["machine"] == machine]


def shown(plan):
    """The actions of a plan: key -> run, held or waits."""
    acts = [change for change in plan["changes"] if change["op"] == "act"]
    return {one["action"]["key"]: "held" if one.get("held") else "waits" if one.get("waits") else "run" for one in acts}


def bar(cluster, name="it"):
    return (cluster.get("Candy", name).get("status") or {}).get("actualSweetness")


def ready(cluster, name="it"):
    return condition(cluster.get("Candy", name), "Ready").get("status") == "True"


# --- examples ---


SPECS = {
    "Memcached": {"size": 2},
    "WebServer": {"replicas": 2},
    "ThreeTierApp": {
        "frontend": {"image": "nginx:1.28"},
        "backend": {"image": "nginx:1.28"},
        "database": {"image": "postgres:17"},
        "cache": {"size": 1},
    },
    "Candy": {"flavor": "white", "sweetness": 5},
}


def at_rest(cluster, kind, name="it"):
    """Whether all is as a CR asks, and its status says so."""
    live = cluster.get(kind, name)
    type_, status = ("Ready", "True") if kind == "Candy" else ("Progressing", "False")
    return condition(live, type_).get("status") == status and (
        live["status"]["observedGeneration"] == live["metadata"]["generation"]
    )
