"""Hypothesis strategies of arbitrary JSON, and of live objects that say it of themselves."""

from __future__ import annotations

from hypothesis import strategies as st

KINDS = [
    ("v1", "Pod"), ("v1", "Service"), ("v1", "Namespace"), ("v1", "PersistentVolumeClaim"), ("v1", "Secret"), ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("batch/v1", "CronJob"),
    ("policy/v1", "PodDisruptionBudget"), ("autoscaling/v2", "HorizontalPodAutoscaler"), ("networking.k8s.io/v1", "Ingress"),
    ("apiregistration.k8s.io/v1", "APIService"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("example.com/v1", "Thing"),
    ("reconcile.dev/v1alpha1", "Sync"),
]  # fmt: skip
FIELDS = [
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "phase", "reason", "message", "loadBalancer",
    "containerStatuses", "initContainerStatuses", "desiredNumberScheduled", "currentHealthy", "desiredHealthy", "currentRevision",
    "updateRevision", "startTime", "succeeded", "summary", "history", "problems", "lastHandledSyncAt", "type", "updateStrategy", "suspend",
    "clusterIP", "manualSelector", "template", "state", "waiting", "terminated", "name", "status", "ingress", "ip", "rollingUpdate",
    "partition", "source", "git", "url", "interval", "timeout", "health", "rules", "ignore", "dependsOn", "maxDeletes", "conflicts", "group",
    "names", "kind", "versions", "served", "schema",
]  # fmt: skip
WORDS = [
    "True",
    "False",
    "3",
    "",
    "Running",
    "Failed",
    "ok",
    "Ready",
    "Available",
    "Progressing",
    "OnDelete",
    "LoadBalancer",
    "-1",
    "9" * 30,
]
TYPES = [
    "Ready",
    "Available",
    "Progressing",
    "Stalled",
    "Reconciling",
    "Degraded",
    "Failed",
    "Complete",
    "Established",
    "PodScheduled",
]

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(WORDS)
values = st.recursive(
    leaves,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), below, max_size=4),
    max_leaves=12,
)  # fmt: skip
conditions = values | st.lists(
    values
    | st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | values},
        optional=dict.fromkeys(("status", "reason", "message", "observedGeneration", "lastTransitionTime"), values),
    ),
    max_size=4,
)
statuses = values | st.fixed_dictionaries({}, optional={"conditions": conditions, **dict.fromkeys(FIELDS, values)})
METADATA = [
    "labels",
    "annotations",
    "ownerReferences",
    "managedFields",
    "finalizers",
    "generation",
    "deletionTimestamp",
    "creationTimestamp",
]


@st.composite
def objects(draw, kinds=tuple(KINDS), metadata=values):
    """A live object: what the server vouches for is sound, all else is anything."""
    api_version, kind = draw(st.sampled_from(kinds))
    more = draw(st.fixed_dictionaries({}, optional=dict.fromkeys(METADATA, metadata)))
    spec = draw(values | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, values)))
    return {
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", **more},
        "spec": spec, "status": draw(statuses), **draw(st.fixed_dictionaries({}, optional={"data": values, "stringData": values})),
    }  # fmt: skip
