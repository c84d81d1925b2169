"""Health of plain values: what kstatus says, where we go further, and what strict adds."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.health.judge import Expected, Health, HealthStatus, health

CURRENT, IN_PROGRESS, FAILED = HealthStatus.CURRENT, HealthStatus.IN_PROGRESS, HealthStatus.FAILED
TERMINATING, UNKNOWN, SUSPENDED = HealthStatus.TERMINATING, HealthStatus.UNKNOWN, HealthStatus.SUSPENDED


def an_object(kind, status=None, *, api="v1", spec=None, **metadata):
    manifest = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", **metadata}}
    if spec is not None:
        manifest["spec"] = spec
    if status is not None:
        manifest["status"] = status
    return manifest


def conditions(*found):
    """Conditions from (type, status[, reason[, message]])."""
    names = ("type", "status", "reason", "message")
    return {"conditions": [dict(zip(names, one, strict=False)) for one in found]}


def deployment(counts, *found, replicas=3, generation=2, **spec):
    created, updated, available, ready = counts
    status = {
        "observedGeneration": 2, "replicas": created, "updatedReplicas": updated,
        "availableReplicas": available, "readyReplicas": ready, **conditions(*found),
    }  # fmt: skip
    return an_object("Deployment", status, api="apps/v1", spec={"replicas": replicas, **spec}, generation=generation)


def custom(status=None, **metadata):
    return an_object("Widget", status, api="example.com/v1", **metadata)


ROLLED_OUT = ("Progressing", "True", "NewReplicaSetAvailable")
AVAILABLE = ("Available", "True")

DEPLOYMENTS = {
    "rolled out": (deployment((3, 3, 3, 3), ROLLED_OUT, AVAILABLE), CURRENT, "3 of 3 replicas are available"),
    "scaled to zero": (deployment((0, 0, 0, 0), ROLLED_OUT, AVAILABLE, replicas=0), CURRENT, "0 of 0"),
    "replicas default to one": (deployment((1, 1, 1, 1), ROLLED_OUT, AVAILABLE, replicas=None), CURRENT, "1 of 1"),
    "new, no status yet": (
        an_object("Deployment", api="apps/v1", spec={}, generation=1), IN_PROGRESS, "controller hasn't observed it",
    ),
    "spec changed, not observed": (
        deployment((3, 3, 3, 3), ROLLED_OUT, AVAILABLE, generation=3), IN_PROGRESS, "generation 3 not observed yet (last: 2)",
    ),
    "pods missing": (deployment((2, 2, 2, 2), ROLLED_OUT, AVAILABLE), IN_PROGRESS, "2 of 3 replicas are created"),
    "old pods left": (deployment((3, 1, 1, 1), ROLLED_OUT, AVAILABLE), IN_PROGRESS, "1 of 3 replicas are updated"),
    "surplus going": (deployment((4, 3, 3, 3), ROLLED_OUT, AVAILABLE), IN_PROGRESS, "4 replicas exist, 3 wanted"),
    "not yet available": (deployment((3, 3, 1, 3), ROLLED_OUT, AVAILABLE), IN_PROGRESS, "1 of 3 replicas are available"),
    "not yet ready": (deployment((3, 3, 3, 2), ROLLED_OUT, AVAILABLE), IN_PROGRESS, "2 of 3 replicas are ready"),
    "counts right, rollout not declared complete": (
        deployment((3, 3, 3, 3), ("Progressing", "True", "ReplicaSetUpdated"), AVAILABLE, progressDeadlineSeconds=600), IN_PROGRESS, "not complete",
    ),
    "no Progressing condition though it has a deadline": (
        deployment((3, 3, 3, 3), AVAILABLE, progressDeadlineSeconds=600), IN_PROGRESS, "not complete",
    ),
    "without a deadline there is no Progressing condition": (
        deployment((3, 3, 3, 3), AVAILABLE, progressDeadlineSeconds=2**31 - 1), CURRENT, "",
    ),
    "paused with all replicas there": (
        deployment((3, 3, 3, 3), ("Progressing", "Unknown", "DeploymentPaused"), AVAILABLE, paused=True), SUSPENDED, "paused",
    ),
    "paused half-way": (
        deployment((3, 1, 3, 3), ("Progressing", "Unknown", "DeploymentPaused"), AVAILABLE, paused=True),
        SUSPENDED, "paused: 1 of 3 replicas are updated",
    ),
    "unavailable": (
        deployment((3, 3, 3, 3), ROLLED_OUT, ("Available", "False", "MinimumReplicasUnavailable", "no minimum")),
        IN_PROGRESS, "no minimum",
    ),
    "deadline exceeded": (
        deployment((3, 1, 2, 2), ("Progressing", "False", "ProgressDeadlineExceeded", "web-7d has timed out"), AVAILABLE),
        FAILED, "web-7d has timed out",
    ),
    "quota in the way says so while it waits": (
        deployment((2, 2, 2, 2), ROLLED_OUT, AVAILABLE, ("ReplicaFailure", "True", "FailedCreate", "exceeded quota")),
        IN_PROGRESS, "2 of 3 replicas are created (exceeded quota)",
    ),
}  # fmt: skip


def stateful_set(counts, *, current="a", update="a", strategy=None, replicas=3):
    created, ready, updated = counts
    status = {
        "observedGeneration": 1, "replicas": created, "readyReplicas": ready, "updatedReplicas": updated,
        "currentRevision": current, "updateRevision": update,
    }  # fmt: skip
    spec = {"replicas": replicas, "updateStrategy": strategy or {"type": "RollingUpdate"}}
    return an_object("StatefulSet", status, api="apps/v1", spec=spec, generation=1)


PARTITION = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}

STATEFUL_SETS = {
    "settled": (stateful_set((3, 3, 3)), CURRENT, "3 of 3 replicas are ready"),
    "growing": (stateful_set((2, 2, 2)), IN_PROGRESS, "2 of 3 replicas are created"),
    "one not ready": (stateful_set((3, 2, 3)), IN_PROGRESS, "2 of 3 replicas are ready"),
    "shrinking": (stateful_set((4, 3, 3)), IN_PROGRESS, "wanted"),
    "updating": (stateful_set((3, 3, 1), update="b"), IN_PROGRESS, "1 of 3 replicas are updated"),
    "old pods left though the revisions agree": (
        an_object(
            "StatefulSet",
            {"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentReplicas": 2},
            api="apps/v1",
            spec={"replicas": 3},
            generation=1,
        ),
        IN_PROGRESS,
        "2 of 3 replicas are of the current revision",
    ),
    "update not declared complete": (stateful_set((3, 3, 3), update="b"), IN_PROGRESS, "not complete"),
    "partition reached": (stateful_set((3, 3, 1), update="b", strategy=PARTITION), CURRENT, "down to ordinal 2"),
    "partition not reached": (stateful_set((3, 3, 0), update="b", strategy=PARTITION), IN_PROGRESS, "0 of 1"),
    "updates on delete wait for nothing": (
        stateful_set((3, 3, 0), update="b", strategy={"type": "OnDelete"}),
        CURRENT,
        "",
    ),
    "new": (an_object("StatefulSet", api="apps/v1", spec={}), IN_PROGRESS, "hasn't observed"),
}


def daemon_set(counts, *, strategy="RollingUpdate"):
    names = (
        "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady",
    )  # fmt: skip
    status = {"observedGeneration": 1, **dict(zip(names, counts, strict=True))}
    spec = {"updateStrategy": {"type": strategy}}
    return an_object("DaemonSet", status, api="apps/v1", spec=spec, generation=1)


DAEMON_SETS = {
    "on every node": (daemon_set((2, 2, 2, 2, 2)), CURRENT, "2 of 2"),
    "no nodes to run on": (daemon_set((0, 0, 0, 0, 0)), CURRENT, "0 of 0"),
    "a node without": (daemon_set((2, 1, 1, 1, 1)), IN_PROGRESS, "1 of 2 replicas are scheduled"),
    "updating": (daemon_set((2, 2, 1, 2, 2)), IN_PROGRESS, "1 of 2 replicas are updated"),
    "updates on delete don't count": (daemon_set((2, 2, 0, 2, 2), strategy="OnDelete"), CURRENT, ""),
    "not available": (daemon_set((2, 2, 2, 1, 2)), IN_PROGRESS, "1 of 2 replicas are available"),
    "not ready": (daemon_set((2, 2, 2, 2, 1)), IN_PROGRESS, "1 of 2 replicas are ready"),
    "new": (an_object("DaemonSet", api="apps/v1", spec={}), IN_PROGRESS, "hasn't observed"),
    "seen, not counted": (an_object("DaemonSet", {"observedGeneration": 1}, api="apps/v1", spec={}), IN_PROGRESS, ""),
}


def replica_set(counts, *found):
    labelled, available, ready, created = counts
    status = {
        "observedGeneration": 1, "fullyLabeledReplicas": labelled, "availableReplicas": available,
        "readyReplicas": ready, "replicas": created, **conditions(*found),
    }  # fmt: skip
    return an_object("ReplicaSet", status, api="apps/v1", spec={"replicas": 2}, generation=1)


REPLICA_SETS = {
    "complete": (replica_set((2, 2, 2, 2)), CURRENT, "2 of 2"),
    "pods missing": (replica_set((1, 1, 1, 1)), IN_PROGRESS, "1 of 2"),
    "surplus": (replica_set((2, 2, 2, 3)), IN_PROGRESS, "wanted"),
    "can't make pods": (
        replica_set((2, 2, 2, 2), ("ReplicaFailure", "True", "F", "no quota")),
        IN_PROGRESS,
        "no quota",
    ),
    "new": (an_object("ReplicaSet", api="apps/v1", spec={}), IN_PROGRESS, "hasn't observed"),
}


def pod(phase, *found, waiting=None, init=None, message="", **more):
    status = {"phase": phase, **conditions(*found), **more} if phase else {}
    if waiting:
        state = {"waiting": {"reason": waiting, "message": message}}
        status["containerStatuses"] = [{"name": "web", "ready": False, "state": state}]
    if init:
        status["initContainerStatuses"] = [{"name": "init", "ready": False, "state": {"waiting": {"reason": init}}}]
    return an_object("Pod", status)


BORN = "2026-01-01T00:00:00Z"
UNSCHEDULABLE = pod("Pending", ("PodScheduled", "False", "Unschedulable", "0/1 nodes are available"))
UNSCHEDULABLE["metadata"]["creationTimestamp"] = BORN


def ended(code, reason):
    return [{"name": "web", "ready": False, "state": {"terminated": {"exitCode": code, "reason": reason}}}]


PODS = {
    "ready": (pod("Running", ("Ready", "True")), CURRENT, "ready"),
    "completed": (pod("Succeeded"), CURRENT, "completed"),
    "running, not ready": (
        pod("Running", ("Ready", "False"), containerStatuses=[{"name": "b"}, {"name": "a"}, {"name": "c", "ready": True}]),
        IN_PROGRESS, "not ready: a, b",
    ),
    "running, containers not reported": (pod("Running"), IN_PROGRESS, "not ready"),
    "no status yet": (pod(None), IN_PROGRESS, "pending"),
    "pulling": (pod("Pending", waiting="ContainerCreating"), IN_PROGRESS, "pending"),
    "unschedulable, nobody knows since when": (UNSCHEDULABLE, IN_PROGRESS, "0/1 nodes"),
    "crash loop while running": (
        pod("Running", waiting="CrashLoopBackOff", message="back-off 40s"), FAILED, "container web: CrashLoopBackOff: back-off 40s",
    ),
    "crash loop of an init container": (pod("Pending", init="CrashLoopBackOff"), FAILED, "container init: CrashLoopBackOff"),
    "no such image": (pod("Pending", waiting="ErrImagePull", message="not found"), FAILED, "ErrImagePull: not found"),
    "image backed off": (pod("Pending", waiting="ImagePullBackOff"), FAILED, "ImagePullBackOff"),
    "image name makes no sense": (pod("Pending", waiting="InvalidImageName"), FAILED, "InvalidImageName"),
    "ConfigMap missing": (pod("Pending", waiting="CreateContainerConfigError"), FAILED, "CreateContainerConfigError"),
    "evicted": (pod("Failed", reason="Evicted", message="low on memory"), FAILED, "Evicted"),
    "ended badly": (pod("Failed", containerStatuses=ended(3, "Error")), FAILED, "container web: exit status 3: Error"),
    "failed without a word": (pod("Failed"), FAILED, "failed"),
    "a phase of tomorrow": (pod("Hibernating"), UNKNOWN, "phase Hibernating"),
}  # fmt: skip


def job(status, **spec):
    return an_object("Job", status, api="batch/v1", spec=spec)


STARTED = {"startTime": "2026-01-01T00:00:00Z", "active": 1}
JOBS = {
    "complete": (
        job({**STARTED, "active": 0, "succeeded": 1, **conditions(("Complete", "True"))}),
        CURRENT,
        "1 succeeded",
    ),
    "failed": (job(conditions(("Failed", "True", "BackoffLimitExceeded", "too often"))), FAILED, "too often"),
    "started": (job(STARTED), CURRENT, "running: 0 succeeded, 1 active"),
    "not started": (job({}), IN_PROGRESS, "not started"),
    "suspended": (job({}, suspend=True), SUSPENDED, "suspended"),
}


def crd(*found):
    return an_object("CustomResourceDefinition", conditions(*found), api="apiextensions.k8s.io/v1")


def autoscaler(*found):
    return an_object("HorizontalPodAutoscaler", conditions(*found), api="autoscaling/v2")


def budget(healthy, wanted):
    status = {"observedGeneration": 1, "currentHealthy": healthy, "desiredHealthy": wanted}
    return an_object("PodDisruptionBudget", status, api="policy/v1", generation=1)


BALANCER = {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
NO_METRICS = ("ScalingActive", "False", "FailedGetResourceMetric", "no metrics")

OTHER_KINDS = {
    "cron job": (an_object("CronJob", api="batch/v1", spec={}), CURRENT, "scheduled"),
    "suspended cron job": (an_object("CronJob", api="batch/v1", spec={"suspend": True}), SUSPENDED, "suspended"),
    "claim bound": (an_object("PersistentVolumeClaim", {"phase": "Bound"}), CURRENT, "bound"),
    "claim waits": (an_object("PersistentVolumeClaim", {"phase": "Pending"}), IN_PROGRESS, "not bound"),
    "claim lost its volume": (an_object("PersistentVolumeClaim", {"phase": "Lost"}), FAILED, "lost"),
    "service": (an_object("Service", {}, spec={"type": "ClusterIP"}), CURRENT, ""),
    "load balancer": (an_object("Service", {}, spec=BALANCER), CURRENT, ""),
    "load balancer without cluster IP": (an_object("Service", {}, spec={"type": "LoadBalancer"}), IN_PROGRESS, "cluster IP"),
    "ingress": (an_object("Ingress", {}, api="networking.k8s.io/v1"), CURRENT, ""),
    "budget met": (budget(2, 2), CURRENT, "met"),
    "budget not met": (budget(1, 2), IN_PROGRESS, "1 of 2 pods are healthy"),
    "budget not computed": (an_object("PodDisruptionBudget", {}, api="policy/v1"), IN_PROGRESS, "hasn't observed"),
    "CRD established": (crd(("NamesAccepted", "True"), ("Established", "True")), CURRENT, "established"),
    "CRD being installed": (crd(("Established", "False", "Installing", "the initial names")), IN_PROGRESS, "initial"),
    "CRD new": (crd(), IN_PROGRESS, "not established yet"),
    "CRD whose names are taken": (crd(("NamesAccepted", "False", "Conflict", "taken")), FAILED, "taken"),
    "autoscaler at work": (autoscaler(("AbleToScale", "True"), ("ScalingActive", "True", "V", "has metrics")), CURRENT, ""),
    "autoscaler without metrics": (autoscaler(NO_METRICS), CURRENT, "no metrics"),
    "autoscaler whose target is missing": (autoscaler(("AbleToScale", "False", "FailedGetScale", "gone")), FAILED, "gone"),
    "autoscaler with a wrong selector": (autoscaler(("ScalingActive", "False", "InvalidSelector", "bad")), FAILED, "bad"),
    "API served": (
        an_object("APIService", conditions(("Available", "True")), api="apiregistration.k8s.io/v1"), CURRENT, "available",
    ),
    "API unreachable": (
        an_object("APIService", conditions(("Available", "False", "FailedDiscovery", "refused")), api="apiregistration.k8s.io/v1"),
        IN_PROGRESS, "refused",
    ),
    "API new": (an_object("APIService", api="apiregistration.k8s.io/v1"), IN_PROGRESS, "not available"),
    "namespace active": (an_object("Namespace", {"phase": "Active"}), CURRENT, "active"),
    "namespace going": (an_object("Namespace", {"phase": "Terminating"}), TERMINATING, "deleted"),
    "namespace new": (an_object("Namespace"), IN_PROGRESS, "not active"),
    "a kind with nothing to wait for": (an_object("ConfigMap"), CURRENT, ""),
    "a namesake in another group": (an_object("Pod", {"startTime": "x"}, api="example.com/v1"), CURRENT, ""),
    "CRD whose names never came to be accepted": (crd(("Established", "False", "NotAccepted", "not all names")), FAILED, "names"),
    "budget that can't be computed": (
        an_object("PodDisruptionBudget", {"observedGeneration": 1, **conditions(("DisruptionAllowed", "False", "SyncFailed", "no scale"))}, api="policy/v1"),
        FAILED, "no scale",
    ),
}  # fmt: skip

CUSTOM_RESOURCES = {
    "without a status": (custom(), CURRENT, ""),
    "status null": ({**custom(), "status": None}, CURRENT, ""),
    "ready": (custom(conditions(("Ready", "True", "Ok", "all good"))), CURRENT, "all good"),
    "not ready": (custom(conditions(("Ready", "False", "Waiting", "on the way"))), IN_PROGRESS, "on the way"),
    "readiness unknown": (custom(conditions(("Ready", "Unknown", "Asking"))), IN_PROGRESS, "Asking"),
    "reconciling": (custom(conditions(("Ready", "True"), ("Reconciling", "True", "R", "at it"))), IN_PROGRESS, "at it"),
    "stalled": (custom(conditions(("Ready", "False"), ("Stalled", "True", "S", "stuck"))), FAILED, "stuck"),
    "reconciling comes before stalled": (
        custom(conditions(("Stalled", "True", "S", "stuck"), ("Reconciling", "True", "R", "at it"))), IN_PROGRESS, "at it",
    ),
    "not observed": (custom({"observedGeneration": 1, **conditions(("Ready", "True"))}, generation=2), IN_PROGRESS, "2"),
    "Ready of an older generation": (
        custom({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}, generation=2),
        IN_PROGRESS, "Ready is about generation 1",
    ),
    "degraded": (custom(conditions(("Degraded", "True", "D", "broken"), ("Available", "True"))), FAILED, "broken"),
    "not available": (custom(conditions(("Available", "False", "A", "none up"))), IN_PROGRESS, "none up"),
    "available": (custom(conditions(("Available", "True", "A", "up"), ("Degraded", "False"))), CURRENT, "up"),
    "available and progressing": (
        custom(conditions(("Available", "True"), ("Progressing", "True", "RollingOut", "1 of 2"))), IN_PROGRESS, "1 of 2",
    ),
    "progressing as a finished Deployment does": (custom(conditions(AVAILABLE, ROLLED_OUT)), CURRENT, ""),
    "Ready is asked before the trio": (custom(conditions(("Ready", "True"), ("Degraded", "True"))), CURRENT, ""),
    "not ready, for a reason that names a failure": (
        custom(conditions(("Ready", "False", "ReconcileError", "no right"))), FAILED, "no right",
    ),
    "not ready, since something isn't there yet": (custom(conditions(("Ready", "False", "SecretNotFound"))), IN_PROGRESS, ""),
    "failed": (custom(conditions(("Failed", "True", "", "broken"))), FAILED, "broken"),
    "failed no more": (custom(conditions(("Failed", "False"), ("Synced", "True", "", "well"))), CURRENT, "well"),
    "not synced": (custom(conditions(("Synced", "False", "Waiting", "soon"))), IN_PROGRESS, "soon"),
    "not programmed, invalid": (custom(conditions(("Programmed", "False", "Invalid", "bad"))), FAILED, "bad"),
    "one positive condition is not true": (
        custom(conditions(("Accepted", "True"), ("Programmed", "Unknown", "", "asking"))), IN_PROGRESS, "asking",
    ),
    "a positive condition of an older generation": (
        custom({"conditions": [{"type": "Synced", "status": "True", "observedGeneration": 1}]}, generation=2),
        IN_PROGRESS, "Synced is about generation 1",
    ),
    "marked as not ready": (custom(conditions(("NotReady", "True", "Creating"))), IN_PROGRESS, "Creating"),
    "conditions that nobody knows": (custom(conditions(("Sunny", "False"))), CURRENT, ""),
    "a phase that says ready": (custom({"phase": "Ready"}), CURRENT, "phase is Ready"),
    "a phase that says failed": (custom({"phase": "FAILED", "message": "no disk"}), FAILED, "no disk"),
    "a state of two words": (custom({"state": "Not Ready"}), IN_PROGRESS, "state is Not Ready"),
    "a phase that says paused": (custom({"phase": "Paused"}), SUSPENDED, ""),
    "a phase that nobody knows": (custom({"phase": "Musing"}), CURRENT, ""),
    "its health": (custom({"health": "red"}), FAILED, ""),
    "a phase that knows nothing": (custom({"phase": "Unknown"}), UNKNOWN, ""),
    "conditions come before a phase": (custom({"phase": "Failed", **conditions(("Available", "True"))}), CURRENT, ""),
    "suspended by its spec": ({**custom(conditions(("Ready", "False"))), "spec": {"suspend": True}}, SUSPENDED, ""),
    "suspended by its spec, whatever was observed": (
        {**custom({"observedGeneration": 1}, generation=2), "spec": {"paused": True}}, SUSPENDED, "",
    ),
    "a spec whose suspend is no boolean": ({**custom(), "spec": {"suspend": "never"}}, CURRENT, ""),
    "paused by its controller": (custom(conditions(("Paused", "True", "", "by hand"))), SUSPENDED, "by hand"),
    "being deleted": (
        custom(conditions(("Ready", "True")), deletionTimestamp="2026-01-01T00:00:00Z"), TERMINATING, "being deleted",
    ),
    "held by a finalizer": (
        custom(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["example.com/keep"]), TERMINATING, "example.com/keep",
    ),
}  # fmt: skip

TABLES = {
    f"{kind}: {name}": case
    for kind, table in {
        "Deployment": DEPLOYMENTS,
        "StatefulSet": STATEFUL_SETS,
        "DaemonSet": DAEMON_SETS,
        "ReplicaSet": REPLICA_SETS,
        "Pod": PODS,
        "Job": JOBS,
        "other": OTHER_KINDS,
        "custom": CUSTOM_RESOURCES,
    }.items()
    for name, case in table.items()
}


@pytest.mark.parametrize(("manifest", "status", "words"), TABLES.values(), ids=TABLES)
def test_an_object_is_judged_by_what_it_says(manifest, status, words):
    before = copy.deepcopy(manifest)
    verdict = health(manifest)
    assert verdict.status is status
    assert words in verdict.message
    assert manifest == before


AGES = {
    "a pod that has just been made": (UNSCHEDULABLE, Expected.NOT_KNOWN, "2026-01-01T00:00:10Z", IN_PROGRESS),
    "a pod that has found no node for a while": (UNSCHEDULABLE, Expected.NOT_KNOWN, "2026-01-01T00:00:16Z", FAILED),
    "a time that is none": (UNSCHEDULABLE, Expected.NOT_KNOWN, "soon", IN_PROGRESS),
    "a time without a zone": (UNSCHEDULABLE, Expected.NOT_KNOWN, "2026-01-01T00:00:16", IN_PROGRESS),
    "nothing said, nobody looked": (custom(creationTimestamp=BORN), Expected.NOT_KNOWN, "2026-01-02T00:00:00Z", CURRENT),
    "nothing said, and nothing ever will be": (custom(creationTimestamp=BORN), Expected.NEVER, "2026-01-02T00:00:00Z", CURRENT),
    "nothing said yet": (custom(creationTimestamp=BORN), Expected.POSSIBLE, "2026-01-01T00:00:59Z", CURRENT),
    "nothing said in a minute": (custom(creationTimestamp=BORN), Expected.POSSIBLE, "2026-01-01T00:01:00Z", UNKNOWN),
    "nothing said, and no time to tell by": (custom(creationTimestamp=BORN), Expected.POSSIBLE, "", UNKNOWN),
    "nothing said, though of others of its kind": (custom(creationTimestamp=BORN), Expected.SURE, "2026-01-02T00:00:00Z", IN_PROGRESS),
    "something said": (custom({"replicas": 1}, creationTimestamp=BORN), Expected.SURE, "2026-01-02T00:00:00Z", CURRENT),
    "a kind that has a rule needs no sibling": (
        an_object("Certificate", api="cert-manager.io/v1", creationTimestamp=BORN), Expected.POSSIBLE, "2026-01-02T00:00:00Z", IN_PROGRESS,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("manifest", "expected", "now", "status"), AGES.values(), ids=AGES)
def test_what_says_nothing_is_judged_by_its_age_and_by_what_is_expected_of_it(manifest, expected, now, status):
    assert health(manifest, expected=expected, now=now).status is status


LASTING = {
    "what is silent for a second": (custom(creationTimestamp=BORN), "2026-01-01T00:00:01Z", 59.0),
    "what is silent for a minute": (custom(creationTimestamp=BORN), "2026-01-01T00:01:00Z", None),
    "what speaks": (custom({"replicas": 1}, creationTimestamp=BORN), "2026-01-01T00:00:01Z", None),
    "a pod without a node for a second": (UNSCHEDULABLE, "2026-01-01T00:00:01Z", 14.0),
    "a pod without a node for long": (UNSCHEDULABLE, "2026-01-01T00:00:16Z", None),
    "a pod without a node, and no time to tell by": (UNSCHEDULABLE, "", None),
}


@pytest.mark.parametrize(("manifest", "now", "lasts_s"), LASTING.values(), ids=LASTING)
def test_a_verdict_says_for_how_long_it_holds_where_time_alone_changes_it(manifest, now, lasts_s):
    found = health(manifest, expected=Expected.POSSIBLE, now=now)
    assert found.lasts_s == lasts_s
    if lasts_s is not None:
        due = (datetime.fromisoformat(now) + timedelta(seconds=lasts_s, milliseconds=1)).isoformat()
        assert health(manifest, expected=Expected.POSSIBLE, now=due).status is not found.status


STRICT = {
    "a Job must complete": (job(STARTED), IN_PROGRESS),
    "a suspended Job has nothing to complete": (job({}, suspend=True), SUSPENDED),
    "a complete Job is done": (job(conditions(("Complete", "True"))), CURRENT),
    "a load balancer needs an address": (an_object("Service", {}, spec=BALANCER), IN_PROGRESS),
    "a load balancer with one is done": (an_object("Service", ADDRESS, spec=BALANCER), CURRENT),
    "a plain Service needs none": (an_object("Service", {}, spec={"type": "ClusterIP"}), CURRENT),
    "an Ingress needs an address": (an_object("Ingress", {}, api="networking.k8s.io/v1"), IN_PROGRESS),
    "an Ingress with one is done": (an_object("Ingress", ADDRESS, api="networking.k8s.io/v1"), CURRENT),
    "an autoscaler needs metrics": (autoscaler(NO_METRICS), IN_PROGRESS),
    "an autoscaler that is switched off needs none": (
        autoscaler(("ScalingActive", "False", "ScalingDisabled")),
        CURRENT,
    ),
    "an autoscaler at work is done": (autoscaler(("ScalingActive", "True")), CURRENT),
    "an autoscaler nobody has seen": (autoscaler(), IN_PROGRESS),
    "a broken autoscaler stays failed": (autoscaler(("AbleToScale", "False", "FailedGetScale")), FAILED),
    "other kinds are judged as ever": (pod("Running", ("Ready", "True")), CURRENT),
}


@pytest.mark.parametrize(("manifest", "status"), STRICT.values(), ids=STRICT)
def test_strict_asks_for_the_work_done(manifest, status):
    assert health(manifest, strict=True).status is status


@pytest.mark.parametrize("manifest", [case[0] for case in TABLES.values()], ids=TABLES)
def test_strict_never_calls_current_what_the_plain_rules_do_not(manifest):
    if health(manifest).status is not CURRENT:
        assert health(manifest, strict=True).status is not CURRENT


def test_what_is_paused_or_says_nothing_holds_nobody_up():
    assert {status for status in HealthStatus if not status.holds_up} == {CURRENT, SUSPENDED, UNKNOWN}


def test_nothing_is_not_found():
    assert health(None) == Health(HealthStatus.NOT_FOUND, "does not exist")


def test_a_verdict_prints_as_one_line():
    assert str(Health(FAILED, "crashed")) == "Failed: crashed"
    assert str(Health(CURRENT)) == "Current"


@given(
    status=st.dictionaries(st.sampled_from(["phase", "replicas", "observedGeneration"]), st.integers(0, 3) | st.none())
)
@pytest.mark.parametrize(
    "kind", ["apps/v1 Deployment", "apps/v1 StatefulSet", "v1 Pod", "batch/v1 Job", "v1 Namespace"]
)
def test_half_written_statuses_get_a_verdict(kind, status):
    api, _, name = kind.partition(" ")
    assert isinstance(health(an_object(name, status, api=api, generation=1)), Health)
