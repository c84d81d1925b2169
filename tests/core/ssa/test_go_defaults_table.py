"""Defaults that depend on the struct that they stand in, one by one, as the server's Go code sets them."""

import pytest

from kubectl_reconcile.core.ssa.go_defaults.table import DEFAULTS, GROWN

ALL = 2**31 - 1
CLUSTER, NOTHING = "Cluster", None
CASES = {
    "an image of no tag": ("Container.imagePullPolicy", {"image": "web"}, "Always"),
    "an image of the latest tag": ("Container.imagePullPolicy", {"image": "reg:5000/a/web:latest"}, "Always"),
    "an image of a tag": ("Container.imagePullPolicy", {"image": "reg:5000/web:1"}, "IfNotPresent"),
    "an image of a registry with a port and no tag": ("Container.imagePullPolicy", {"image": "reg:5000/web"}, "Always"),
    "an image of a digest": ("Container.imagePullPolicy", {"image": "web@sha256:00"}, "IfNotPresent"),
    "no image": ("Container.imagePullPolicy", {}, "Always"),
    "a volume of an image": ("ImageVolumeSource.pullPolicy", {"reference": "web:1"}, "IfNotPresent"),
    "a volume of the latest image": ("ImageVolumeSource.pullPolicy", {"reference": "web"}, "Always"),
    "a user": ("Subject.apiGroup", {"kind": "User"}, "rbac.authorization.k8s.io"),
    "a group": ("Subject.apiGroup", {"kind": "Group"}, "rbac.authorization.k8s.io"),
    "an account": ("Subject.apiGroup", {"kind": "ServiceAccount"}, NOTHING),
    "a balanced Service": ("ServiceSpec.externalTrafficPolicy", {"type": "LoadBalancer"}, CLUSTER),
    "a Service on nodes": ("ServiceSpec.externalTrafficPolicy", {"type": "NodePort"}, CLUSTER),
    "a Service of the cluster": ("ServiceSpec.externalTrafficPolicy", {}, NOTHING),
    "a Service with addresses outside": ("ServiceSpec.externalTrafficPolicy", {"externalIPs": ["10.0.0.1"]}, CLUSTER),
    "a Service of the cluster with such addresses": (
        "ServiceSpec.externalTrafficPolicy", {"type": "ClusterIP", "externalIPs": ["10.0.0.1"]}, CLUSTER,
    ),
    "a Service elsewhere": ("ServiceSpec.externalTrafficPolicy", {"type": "ExternalName", "externalIPs": ["10.0.0.1"]}, NOTHING),
    "ports of nodes behind a balancer": ("ServiceSpec.allocateLoadBalancerNodePorts", {"type": "LoadBalancer"}, True),
    "no ports of nodes elsewhere": ("ServiceSpec.allocateLoadBalancerNodePorts", {"type": "NodePort"}, NOTHING),
    "traffic within the cluster": ("ServiceSpec.internalTrafficPolicy", {}, CLUSTER),
    "traffic to a Service elsewhere": ("ServiceSpec.internalTrafficPolicy", {"type": "ExternalName"}, NOTHING),
    "sessions by address": (
        "ServiceSpec.sessionAffinityConfig", {"sessionAffinity": "ClientIP"}, {"clientIP": {"timeoutSeconds": 10800}},
    ),
    "no sessions": ("ServiceSpec.sessionAffinityConfig", {"sessionAffinity": "None"}, NOTHING),
    "a port of pods": ("ServicePort.targetPort", {"port": 80}, 80),
    "a policy with rules for what goes out": ("NetworkPolicySpec.policyTypes", {"egress": [{}]}, ["Ingress", "Egress"]),
    "a policy without such rules": ("NetworkPolicySpec.policyTypes", {"egress": []}, ["Ingress"]),
    "failures of a Job": ("JobSpec.backoffLimit", {}, 6),
    "failures of a Job that counts those of each index": ("JobSpec.backoffLimit", {"backoffLimitPerIndex": 0}, ALL),
    "pods of a Job": ("JobSpec.podReplacementPolicy", {}, "TerminatingOrFailed"),
    "pods of a Job that says what a failure is": ("JobSpec.podReplacementPolicy", {"podFailurePolicy": {"rules": []}}, "Failed"),
    "completions of a Job": ("JobSpec.completions", {}, 1),
    "completions of a Job that says how many run": ("JobSpec.completions", {"parallelism": 2}, NOTHING),
    "a device": ("ExactDeviceRequest.count", {}, 1),
    "so many devices": ("ExactDeviceRequest.count", {"allocationMode": "ExactCount"}, 1),
    "all devices": ("ExactDeviceRequest.count", {"allocationMode": "All"}, NOTHING),
    "one of several devices": ("ExactDeviceRequest.count", {"firstAvailable": []}, NOTHING),
    "the list of a kind": ("CustomResourceDefinitionNames.listKind", {"kind": "Widget"}, "WidgetList"),
    "the singular of a kind": ("CustomResourceDefinitionNames.singular", {"kind": "Widget"}, "widget"),
    "a volume of nothing": ("Volume.emptyDir", {"name": "tmp"}, {}),
    "a volume of something": ("Volume.emptyDir", {"name": "tmp", "secret": {}}, NOTHING),
}  # fmt: skip


@pytest.mark.parametrize(("field", "within", "default"), CASES.values(), ids=CASES)
def test_the_default_of(field, within, default):
    definition, _, name = field.partition(".")
    assert DEFAULTS[definition][name](within) == default


ROLLING = {
    "Deployment": {"maxSurge": "25%", "maxUnavailable": "25%"},
    "StatefulSetUpdate": {"partition": 0},
    "DaemonSetUpdate": {"maxSurge": 0, "maxUnavailable": 1},
}


@pytest.mark.parametrize(("kind", "details"), ROLLING.items(), ids=ROLLING)
def test_details_of_a_rollout_are_filled_in_where_pods_roll(kind, details):
    strategy = DEFAULTS[f"{kind}Strategy"]
    assert strategy["type"] == "RollingUpdate"
    assert strategy["rollingUpdate"]({}) == strategy["rollingUpdate"]({"type": "RollingUpdate"}) == details
    assert strategy["rollingUpdate"]({"type": "Recreate"}) is None


def tolerates(key, seconds=300):
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


NOT_READY, UNREACHABLE = (f"node.kubernetes.io/{trouble}" for trouble in ("not-ready", "unreachable"))
BOTH = [tolerates(NOT_READY), tolerates(UNREACHABLE)]
ANY = {"operator": "Exists"}
GPU = {"key": "gpu", "operator": "Exists"}
STATED = {
    "nothing": ([], BOTH),
    "something else": ([GPU], [GPU, *BOTH]),
    "one of the two": ([tolerates(NOT_READY, 5)], [tolerates(NOT_READY, 5), tolerates(UNREACHABLE)]),
    "anything": ([ANY], [ANY]),
    "anything that keeps pods from starting": ([{**ANY, "effect": "NoSchedule"}], [{**ANY, "effect": "NoSchedule"}, *BOTH]),
    "one of the two whatever its effect": (
        [{"key": UNREACHABLE, "operator": "Exists"}], [{"key": UNREACHABLE, "operator": "Exists"}, tolerates(NOT_READY)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("stated", "tolerated"), STATED.values(), ids=STATED)
def test_a_pod_bears_with_a_node_in_trouble_for_five_minutes_unless_it_says_otherwise(stated, tolerated):
    assert GROWN["Pod.spec.tolerations"]({"tolerations": stated}) == tolerated
    assert GROWN["Pod.spec.tolerations"]({}) == BOTH


@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_a_container_requests_what_it_is_limited_to_unless_it_says_otherwise(containers):
    requested = GROWN[f"Pod.spec.{containers}.resources.requests"]
    assert requested({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}) == {
        "cpu": "1",
        "memory": "1Gi",
    }
    assert requested({"requests": {"cpu": "1"}}) == {"cpu": "1"}
    assert requested({"limits": None}) is None
