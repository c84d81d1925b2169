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


PLAIN = (
    None, True, False, 0, 1, -1, 3, 2.5, 10**20, float("nan"), "", "x", "3", "True", "Running", "Ready", [], [None], ["x", 3], [[]], [{}],
    [{"name": "a"}], {}, {"a": 1}, {"name": None}, {"type": []}, {"x": {"y": "z"}},
)  # fmt: skip
ODD = st.lists(values, min_size=1, max_size=3)


@st.composite
def under(draw, names, odd=ODD, plain=PLAIN):
    """A dictionary of any of *names*, which say something plain, or something odd that others say as well.

    All is chosen by one draw of bytes, for it is the number of draws that takes time.
    """
    said = [*plain, *draw(odd)]
    chosen = draw(st.binary(min_size=len(names), max_size=len(names)))
    return {name: said[byte // 2 % len(said)] for name, byte in zip(names, chosen, strict=True) if byte % 2}


conditions = values | st.lists(
    values
    | st.tuples(st.sampled_from(TYPES) | values, under(["status", "reason", "message", "observedGeneration", "lastTransitionTime"])).map(
        lambda drawn: {"type": drawn[0], **drawn[1]}
    ),
    max_size=4,
)  # fmt: skip
some_conditions = st.just({}) | conditions.map(lambda each: {"conditions": each})
told = st.builds(lambda fields, said: {**fields, **said}, under(FIELDS), some_conditions)
statuses = told | told | values
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
    more = draw(under(METADATA) if metadata is values else under(METADATA, st.tuples(metadata), plain=()))
    return {
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", **more},
        "spec": draw(under(FIELDS) | under(FIELDS) | values), "status": draw(statuses), **draw(under(["data", "stringData"])),
    }  # fmt: skip
