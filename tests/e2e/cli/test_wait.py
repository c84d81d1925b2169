"""wait and sync return once a Sync is well, or say what isn't, with the status of that."""

from __future__ import annotations

import json
import subprocess

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from tests.talking import talking
from tests.waiting import patiently

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
}
NEVER_PULLED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "registry.invalid/web:1"}]},
        },
    },
}
FAILING = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "load"},
    "spec": {
        "activeDeadlineSeconds": 1,
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"no-such": "node"},
                "containers": [{"name": "load", "image": "load:1"}],
            }
        },
    },
}
CERTIFICATE = {
    "apiVersion": "cert-manager.io/v1",
    "kind": "Certificate",
    "metadata": {"name": "tls"},
    "spec": {"secretName": "tls"},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "1"}}


@pytest.fixture
def pushed(follow, git_server, daemon):
    """pushed(*manifests, **spec): a Sync that a daemon follows, of a repository with these."""

    def make(*manifests, **spec):
        git_server.push({f"{number}.json": json.dumps(one) for number, one in enumerate(manifests)})
        return follow(git_server.url, **spec)

    return make


def until_told(sync, *words):
    """Wait until the status of a Sync says this of its health: what a command then has seconds for already exists."""
    patiently(lambda: all(each in sync.condition("Healthy")["message"] for each in words), " ".join(words))


@pytest.fixture
def bound(kubectl, namespace, tmp_path):
    """bound(): a volume for the claim, to which the cluster binds it."""
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/nowhere"},
            "claimRef": {"namespace": namespace, "name": "data"},
        },
    }
    file = tmp_path / "volume.json"
    file.write_text(json.dumps(volume))
    yield lambda: kubectl("create", "-f", str(file))
    kubectl("delete", "persistentvolume", namespace, "--ignore-not-found", "--wait=false")


def test_wait_returns_once_all_is_well(pushed, plugin, namespace):
    pushed(CONFIG)
    done = plugin("wait", "shop")
    assert done.status == 0, done.err
    assert done.out == f"Sync {namespace}/shop is healthy: 1 object, none unhealthy\n"


def test_time_that_runs_out_names_what_is_not_well(pushed, plugin, namespace):
    until_told(pushed(CONFIG, CLAIM), "not bound to a volume yet")
    assert plugin("wait", "shop", "--for", "synced").status == 0
    done = plugin("wait", "shop", "--timeout", "6s")
    assert done.status == ExitStatus.FAILED
    assert (
        f"Sync {namespace}/shop isn't healthy after 6 s: PersistentVolumeClaim {namespace}/data: not bound to a volume yet"
        in done.err
    )
    assert f"kubectl reconcile tree shop -n {namespace} --unhealthy" in done.err
    assert plugin("wait", "shop", "--for", "ready", "--timeout", "4s").status == ExitStatus.FAILED


def test_wait_ends_as_kubectl_wait_does_when_the_last_member_comes_right(pushed, plugin, bound, kubectl, namespace):
    pushed(CONFIG, CLAIM)
    assert plugin("wait", "shop", "--for", "synced").status == 0
    command = ["kubectl-reconcile", "wait", "shop", "--timeout=300s", "-n", namespace]
    with talking([*command, "--kubeconfig", kubectl.kubeconfig], stderr=subprocess.PIPE) as waiting:
        assert any("not bound to a volume yet" in line for line in waiting.stderr)
        bound()
        assert waiting.wait(250) == 0
    kubectl("wait", "--for=condition=Ready", "sync/shop", "--timeout=300s", "-n", namespace)


def synced_in_time(plugin, *options):
    """As ``sync shop``, again while the daemon has no time for it."""

    def done():
        answer = plugin("sync", "shop", *options)
        return None if "didn't finish the sync" in answer.err else answer

    return patiently(done, "the daemon does what it is asked for")


def test_sync_returns_once_all_is_well(pushed, plugin, bound, namespace):
    until_told(pushed(CONFIG, CLAIM), "not bound to a volume yet")
    assert plugin("wait", "shop", "--for", "synced").status == 0
    late = synced_in_time(plugin, "--timeout", "10s")
    assert late.status == ExitStatus.FAILED
    assert late.out.startswith("InProgress ")
    assert f"PersistentVolumeClaim {namespace}/data: not bound to a volume yet" in late.out
    assert f"to see what isn't healthy: kubectl reconcile tree shop -n {namespace} --unhealthy" in late.err
    assert plugin("sync", "shop", "--no-wait").status == 0
    bound()
    done = plugin("sync", "shop", "--timeout", "140s")
    assert done.status == 0, done.err


def test_who_asks_for_no_health_gets_synced_alone(pushed, plugin):
    pushed(CONFIG, CLAIM, health={"wait": False})
    assert plugin("sync", "shop", "--timeout", "140s").status == 0
    assert plugin("wait", "shop", "--for", "ready").status == 0


def test_wait_for_the_end_of_a_sync(pushed, plugin, cluster):
    pushed(CONFIG)
    late = plugin("wait", "shop", "--for", "deleted", "--timeout", "4s")
    assert (late.status, "isn't deleted after 4 s: nobody has deleted it" in late.err) == (ExitStatus.FAILED, True), (
        late.err
    )
    cluster.delete("Sync", "shop")
    assert plugin("wait", "shop", "--for", "deleted").status == 0
    assert plugin("wait", "shop", "--for", "deleted").out.endswith("shop is deleted\n")
    assert plugin("wait", "shop").status == ExitStatus.USAGE


def test_a_folder_is_synced_once_all_of_it_is_well(plugin, bound, namespace, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "web.json").write_text(json.dumps(CONFIG))
    (folder / "data.json").write_text(json.dumps(CLAIM))
    late = plugin("sync", "-f", str(folder), "--name", "hand", "--timeout", "8s")
    assert late.status == ExitStatus.FAILED
    assert "2 created" in late.out
    assert f"waiting for PersistentVolumeClaim {namespace}/data: not bound to a volume yet\n" in late.err
    assert f"PersistentVolumeClaim {namespace}/data: not healthy in time: not bound to a volume yet\n" in late.err
    again = plugin("sync", "-f", str(folder), "--name", "hand", "--timeout", "8s")
    assert (again.status, "2 unchanged" in again.out) == (ExitStatus.FAILED, True)
    assert plugin("sync", "-f", str(folder), "--name", "hand", "--no-wait").status == 0
    bound()
    done = plugin("sync", "-f", str(folder), "--name", "hand", "--timeout", "140s")
    assert done.status == 0, done.err


UNWELL = {
    "an image that can't be pulled": (
        NEVER_PULLED,
        "Deployment.apps {}/web: ",
        "ImagePullBackOff: Back-off pulling image",
    ),
    "a Job that fails": (FAILING, "Job.batch {}/load: ", "Job was active longer than specified deadline"),
    "a kind whose controller is missing": (CERTIFICATE, "Certificate.cert-manager.io {}/tls: ", ""),
    "a claim that stays pending": (CLAIM, "PersistentVolumeClaim {}/data: ", "not bound to a volume yet"),
}


@pytest.fixture
def certificates(kubectl):
    """The cluster serves Certificates, and nobody looks after them."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"kind": "Certificate", "plural": "certificates", "singular": "certificate"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "certificates.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io",
            "names": names,
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    kubectl("apply", "-f", "-", stdin=[definition])
    kubectl("wait", "--for=condition=Established", "crd/certificates.cert-manager.io", "--timeout=300s")
    yield
    kubectl("delete", "crd", "certificates.cert-manager.io", "--ignore-not-found", "--wait=false")


@pytest.mark.parametrize(("manifest", "which", "why"), UNWELL.values(), ids=UNWELL)
def test_what_is_not_well_is_named_by_sync_status_wait_and_an_event(
    manifest, which, why, pushed, plugin, namespace, eventually, request
):
    if manifest is CERTIFICATE:
        request.getfixturevalue("certificates")
    until_told(pushed(manifest), which.format(namespace), why)
    done = synced_in_time(plugin, "--timeout", "30s" if manifest is FAILING else "8s")
    assert done.status == ExitStatus.FAILED
    assert which.format(namespace) in done.out
    assert why in done.out
    for answer in (plugin("status", "shop").out, plugin("wait", "shop", "--timeout", "4s").err):
        assert which.format(namespace) in answer
        assert why in answer
    eventually(lambda: which.format(namespace) in plugin("events", "shop").out, "an event names it")
