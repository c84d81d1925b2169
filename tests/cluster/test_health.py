"""Health of live objects: what real controllers report, and a Memcached from CR to healthy nodes."""

from __future__ import annotations

import json
import time

import pytest

from kubectl_reconcile.core.health.judge import HealthStatus, health
from kubectl_reconcile.core.module.adoption import adopt_child
from kubectl_reconcile.core.module.call import check_purity
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.modules.memcached import memcached

DEADLINE_S = 300
POLL_S = 0.2

pytestmark = pytest.mark.usefixtures("crds")


def seen(kubectl, kind, name, namespace):
    """The live object, or None."""
    text = kubectl("get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "json")
    return json.loads(text) if text else None


def wait_for(look, status):
    """Poll until what *look* returns has *status*; the object."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        found = look()
        verdict = health(found, strict=True)
        if verdict.status is status:
            return found
        assert time.monotonic() < deadline, f"still {verdict}"
        time.sleep(POLL_S)


LABELS = {"app": "web"}
CONTAINER = {"name": "web", "image": "web:1"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [CONTAINER]}}
SELECTED = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}


def workload(kind, api, **spec):
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "web"}, "spec": spec}


BECOME = {
    "a Deployment rolls out": (workload("Deployment", "apps/v1", replicas=2, **SELECTED), HealthStatus.CURRENT),
    "a StatefulSet rolls out": (
        workload("StatefulSet", "apps/v1", replicas=2, serviceName="web", **SELECTED),
        HealthStatus.CURRENT,
    ),
    "a DaemonSet runs on every node": (workload("DaemonSet", "apps/v1", **SELECTED), HealthStatus.CURRENT),
    "a ReplicaSet fills up": (workload("ReplicaSet", "apps/v1", replicas=2, **SELECTED), HealthStatus.CURRENT),
    "a Pod gets ready": (workload("Pod", "v1", containers=[CONTAINER]), HealthStatus.CURRENT),
    "a Pod that fits nowhere waits": (
        workload("Pod", "v1", containers=[CONTAINER], nodeSelector={"no-such": "node"}),
        HealthStatus.IN_PROGRESS,
    ),
    "a Job completes": (
        workload("Job", "batch/v1", template={"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}),
        HealthStatus.CURRENT,
    ),
    "a claim without a volume waits": (workload("PersistentVolumeClaim", "v1", **CLAIM), HealthStatus.IN_PROGRESS),
    "a disruption budget is computed": (
        workload("PodDisruptionBudget", "policy/v1", maxUnavailable=1, selector={"matchLabels": LABELS}),
        HealthStatus.CURRENT,
    ),
    "a load balancer that nobody provides waits": (
        workload("Service", "v1", type="LoadBalancer", ports=[{"port": 80}]),
        HealthStatus.IN_PROGRESS,
    ),
}


@pytest.mark.parametrize(("manifest", "status"), BECOME.values(), ids=BECOME)
def test_live_objects_become_what_they_should(kubectl, namespace, manifest, status):
    manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    kubectl.apply(manifest)
    wait_for(lambda: seen(kubectl, manifest["kind"], "web", namespace), status)


def test_an_object_that_a_finalizer_holds_is_terminating(kubectl, namespace):
    metadata = {"name": "web", "namespace": namespace, "finalizers": ["example.com/keep"]}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    kubectl("delete", "configmap", "web", "-n", namespace, "--wait=false")
    found = seen(kubectl, "configmap", "web", namespace)
    kubectl("patch", "configmap", "web", "-n", namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert str(health(found)) == "Terminating: waits for finalizers example.com/keep"


def test_a_memcached_gets_healthy_nodes_and_takes_them_along(kubectl, namespace):
    metadata = {"name": "sessions", "namespace": namespace}
    kubectl.apply({**workload("Memcached", memcached.gvk.api_version, size=2), "metadata": metadata})
    cr = kubectl.json("get", "memcached", "sessions", "-n", namespace)
    ctx = Context("2026-01-01T00:00:00Z", memcached.name, cr)

    def outcome():
        children = [seen(kubectl, kind, "sessions", namespace) for kind in ("deployment", "service")]
        pods = kubectl.json("get", "pods", "-n", namespace, "-l", memcached.reads[0].selector)["items"]
        owned = Owned([child for child in children if child], [pod for pod in pods if ctx.sees(pod)])
        return check_purity(memcached, cr, owned, {}, ctx)

    def reported():
        found = outcome()
        conditions = [{"type": one.type, "status": one.status, "reason": one.reason} for one in found.conditions]
        return {**cr, "status": {**found.status, "conditions": conditions}}

    assert health(reported()).status is HealthStatus.IN_PROGRESS
    for child in outcome().children:
        kubectl.apply(adopt_child(child, cr, memcached))
    status = wait_for(reported, HealthStatus.CURRENT)["status"]
    assert status["readyReplicas"] == 2
    assert len(status["nodes"]) == 2
    assert status["nodes"] == sorted(status["nodes"])

    kubectl("delete", "memcached", "sessions", "-n", namespace)
    for kind in ("deployment", "service"):
        wait_for(lambda kind=kind: seen(kubectl, kind, "sessions", namespace), HealthStatus.NOT_FOUND)
