"""A repository that brings all it needs, on a cluster that knows nothing of it; and Secrets on the daemon's whole way."""

from __future__ import annotations

import base64
import json
import shutil

import pytest

from kubectl_reconcile.core.objects import walk
from kubectl_reconcile.engine.commands.install import data_folder
from tests import yaml_text

EVERYTHING = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: sessions, namespace: shop}
spec: {size: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
MADE_BY_THE_SERVER = {"uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"}


def stated(manifest):
    """The leaves that somebody states; a uid of an owner that is yet to be made can't be known."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name not in MADE_BY_THE_SERVER}
    tree = {**{name: value for name, value in manifest.items() if name != "status"}, "metadata": metadata}
    return {path: value for path, value in walk(tree) if "ownerReferences" not in path and value not in ({}, [])}


def test_an_empty_cluster_gets_field_by_field_what_the_preview_says(own_cluster, plugin, tmp_path):
    empty, _ = own_cluster()
    run = plugin.on(empty)
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "everything.yaml").write_text(EVERYTHING)
    shutil.copy(data_folder("crds") / "memcacheds.cache.example.com.yaml", folder)
    shown = run("diff", "-f", str(folder), "--name", "shop", "-o", "json")
    assert shown.status == 1, shown.err
    plan = json.loads(shown.out)
    assert plan["problems"] == []
    assert [(each["op"], each["object"]["kind"], each["object"]["name"]) for each in plan["changes"]] == [
        ("create", "Namespace", "shop"),
        ("create", "CustomResourceDefinition", "memcacheds.cache.example.com"),
        ("create", "Deployment", "web"),
        ("create", "Memcached", "sessions"),
        ("create", "Service", "sessions"),
        ("create", "Deployment", "sessions"),
    ]
    refused = run("sync", "-f", str(folder), "--name", "shop")
    assert (refused.status, "--install" in refused.err) == (2, True)
    done = run("sync", "-f", str(folder), "--name", "shop", "--install")
    assert done.status == 0, done.err
    for each in plan["changes"]:
        ref = each["object"]
        place = ("-n", ref["namespace"]) if ref["namespace"] else ()
        live = yaml_text.document(
            empty.kubectl("get", f"{ref['kind']}.{ref['group']}".rstrip("."), ref["name"], *place, "-oyaml")
        )
        wanted, there = stated(each["after"]), stated(live)
        assert {path: there.get(path) for path in wanted} == wanted, ref
    assert run("diff", "-f", str(folder), "--name", "shop").status == 0


SECRET = "hunter2-hunter2"


@pytest.fixture
def secret():
    """secret(password) -> the text of its file."""

    def text(password, kind="Opaque"):
        metadata = {"name": "key"}
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind}
        return json.dumps({**manifest, "stringData": {"password": password}})

    return text


def test_no_secret_shows_in_log_status_events_or_metrics(
    daemon, follow, cluster, git_server, secret, config_map, eventually, kubectl
):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"s.yaml": secret(SECRET), "a.yaml": config_map("a")}))
    cluster.edit("Secret", "key", {"stringData": {"password": f"{SECRET}-by-hand"}})
    eventually(lambda: value(cluster) == SECRET, "drift is put back")
    sync.until_synced(git_server.push({"s.yaml": secret(f"{SECRET}-2")}))
    git_server.push({"s.yaml": secret(f"{SECRET}-3", "kubernetes.io/tls")})
    eventually(lambda: "Secret" in json.dumps(sync.live["status"]), "the server refuses a change of type")
    sync.until_synced(git_server.push({"s.yaml": None}))
    events = kubectl("get", "events.events.k8s.io", "-n", cluster.namespace, "-o", "yaml")
    told = "\n".join([daemon.log, daemon.answer("/metrics")[1], json.dumps(sync.live), events])
    assert SECRET not in told
    assert base64.b64encode(SECRET.encode()).decode()[:16] not in told


def value(cluster):
    return base64.b64decode(cluster.get("Secret", "key")["data"]["password"]).decode()
