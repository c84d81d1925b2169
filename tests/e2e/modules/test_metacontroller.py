"""Hooks written for Metacontroller, in another language, serve as modules unchanged."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.modules.hooks import API, KINDS, controller, crd

HOOKS = Path(__file__).with_name("hooks.js")


class Hooks:
    """The hooks as a process."""

    def __init__(self):
        self.process = subprocess.Popen(["node", HOOKS], stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def trouble(self, status):
        """Answer everything with this status from now on; 0: behave."""
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", "/trouble", str(status))
            connection.getresponse().read()

    def stop(self):
        self.process.kill()
        self.process.wait(120)
        self.process.stdout.close()


@pytest.fixture
def hooks(kubectl, tmp_path, monkeypatch, cluster, new_daemon):
    """The hooks, and a daemon that has them as modules."""
    kubectl("apply", "--server-side", "-f", "-", stdin=[crd(kind) for kind in KINDS])
    kubectl(
        "wait",
        "--for=condition=Established",
        "--timeout=300s",
        *(f"crd/{plural}.hooks.example.com" for plural in KINDS.values()),
    )
    started = Hooks()
    folder = tmp_path / "controllers"
    folder.mkdir()
    for one in (
        controller("CatSet", f"{started.url}/catset", ("pods", "RollingRecreate"), finalize=True),
        controller("PerPod", f"{started.url}/service-per-pod", ("services", "InPlace")),
        controller("BlueGreen", f"{started.url}/bluegreen", ("pods", "Recreate"), ("services", "InPlace")),
    ):
        (folder / f"{one['metadata']['name']}.json").write_text(json.dumps(one))
    monkeypatch.setenv("KUBECTL_RECONCILE_WEBHOOKS", str(folder))
    new_daemon(cluster.kubectl.kubeconfig, cluster.namespace).start()
    yield started
    started.stop()


def parent(kind, name, **spec):
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def put(cluster, manifest):
    path = f"/apis/{API}/namespaces/{cluster.namespace}/{KINDS[manifest['kind']]}/{manifest['metadata']['name']}"
    query = "?fieldManager=by-hand&force=true"
    cluster.api.ask(path + query, method="PATCH", body=manifest, type_="application/apply-patch+yaml")
    return path


def images(cluster):
    pods = cluster.list("Pod")
    return {
        one["metadata"]["name"]: one["spec"]["containers"][0]["image"]
        for one in pods
        if not one["metadata"].get("deletionTimestamp")
    }


@pytest.mark.usefixtures("hooks")
def test_a_cat_set_rolls_and_goes_pod_by_pod(cluster, plugin, tmp_path, eventually):
    manifest = parent("CatSet", "cats", replicas=3, image="cat:1")
    (tmp_path / "cats.json").write_text(json.dumps(manifest))
    shown = plugin("diff", "-f", str(tmp_path / "cats.json"), "-o", "summary")
    assert "cats-0" in shown.out
    path = put(cluster, manifest)
    eventually(lambda: set(images(cluster)) == {"cats-0", "cats-1", "cats-2"}, "three pods")
    eventually(lambda: cluster.api.ask(path)["status"].get("ready") == 3, "the hook's status is written")
    put(cluster, parent("CatSet", "cats", replicas=3, image="cat:2"))
    eventually(lambda: set(images(cluster).values()) == {"cat:2"} and len(images(cluster)) == 3, "all are recreated")
    cluster.delete("Pod", "cats-1")
    eventually(lambda: len(images(cluster)) == 3, "a deleted pod is back")
    cluster.api.ask(path, method="DELETE")
    eventually(lambda: cluster.api.ask(path) is None, "the set is gone")
    assert not images(cluster)


@pytest.mark.usefixtures("hooks")
def test_a_set_that_says_nothing_of_its_health_is_no_better_than_its_pods(follow, cluster, git_server, eventually):
    def told():
        return sync.condition("Ready").get("message", "")

    git_server.push({"cats.json": json.dumps(parent("CatSet", "cats", replicas=2, image="registry.invalid/cat:1"))})
    sync = follow(git_server.url)
    named = f"CatSet.hooks.example.com {cluster.namespace}/cats: Pod {cluster.namespace}/cats-"
    eventually(lambda: named in told() and "ImagePullBackOff" in told(), "the pod that can't be pulled is named")
    assert sync.status["health"]["counts"] == {"Failed": 1}
    git_server.push({"cats.json": json.dumps(parent("CatSet", "cats", replicas=2, image="cat:2"))})
    eventually(lambda: sync.condition("Ready").get("status") == "True", "its pods run")


@pytest.mark.usefixtures("hooks")
def test_each_pod_has_a_service(cluster, eventually):
    put(cluster, parent("PerPod", "one", replicas=2))
    eventually(lambda: cluster.names("Service") == {"one-0", "one-1"}, "two Services")
    put(cluster, parent("PerPod", "one", replicas=1))
    eventually(lambda: cluster.names("Service") == {"one-0"}, "one Service")


@pytest.mark.usefixtures("hooks")
def test_green_takes_over_from_blue_once_it_is_ready(cluster, eventually):
    path = put(cluster, parent("BlueGreen", "web", image="web:1"))
    eventually(lambda: images(cluster) == {"web-blue": "web:1"}, "blue")
    put(cluster, parent("BlueGreen", "web", image="web:2"))
    eventually(lambda: images(cluster) == {"web-green": "web:2"}, "green alone")
    eventually(
        lambda: cluster.get("Service", "web")["spec"]["selector"]["colour"] == "green", "written beside the pods"
    )
    eventually(
        lambda: (cluster.api.ask(path).get("status") or {}).get("active") == "green",
        "the hook's status is written after the pods",
    )


@pytest.mark.parametrize("status", [429, 500])
def test_a_hook_in_trouble_is_quoted_and_nothing_is_lost(status, hooks, cluster, eventually):
    path = put(cluster, parent("PerPod", "one", replicas=2))
    eventually(lambda: cluster.names("Service") == {"one-0", "one-1"}, "two Services")
    hooks.trouble(status)
    put(cluster, parent("PerPod", "one", replicas=1))

    def degraded():
        conditions = (cluster.api.ask(path).get("status") or {}).get("conditions") or ()
        return next((one["message"] for one in conditions if one["type"] == "Degraded" and one["status"] == "True"), "")

    eventually(lambda: str(status) in degraded(), "the CR says so")
    assert cluster.names("Service") == {"one-0", "one-1"}
    hooks.trouble(0)
    eventually(lambda: cluster.names("Service") == {"one-0"}, "it goes on")
    eventually(lambda: not degraded(), "and says so")
