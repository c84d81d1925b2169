"""Kinds as planning and writing need them: what a CRD brings, when objects are written, and where they are served."""

import pytest

from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.planning.kinds import Kind, Phase, kinds_of_crd
from kubectl_reconcile.core.ssa.schema import UNKNOWN

SCHEMA = {
    "openAPIV3Schema": {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
}


def a_crd(*versions, **spec):
    whole = {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"}, **spec}
    return {"spec": {**whole, "versions": [{"name": "v1", "schema": SCHEMA, **each} for each in versions or ({},)]}}


V1, V2 = (GroupVersionKind("example.com", version, "Widget") for version in ("v1", "v2"))


def test_a_crd_brings_one_kind_for_each_version_that_is_served():
    found = kinds_of_crd(a_crd({"subresources": {"status": {}}}, {"name": "v2"}, {"name": "v3", "served": False}))
    assert list(found) == [V1, V2]
    first, second = found.values()
    assert (first.gvk, first.plural, first.namespaced, first.custom, first.has_status) == (
        V1,
        "widgets",
        True,
        True,
        True,
    )
    assert (second.gvk, second.has_status, second.phase) == (V2, False, Phase.CUSTOM)
    assert first.schema.root.map.type_at("spec").map.type_at("a").scalar == "string"


@pytest.mark.parametrize("scope", [{"scope": "Cluster"}, {"scope": None}], ids=str)
def test_a_kind_is_of_the_cluster_unless_it_says_that_it_is_of_namespaces(scope):
    assert not kinds_of_crd(a_crd(**scope))[V1].namespaced


MALFORMED = {
    "no spec": {},
    "a spec of text": {"spec": "odd"},
    "no names": {"spec": {"group": "example.com", "versions": []}},
    "versions of text": {"spec": {"group": "a", "names": {"kind": "A", "plural": "as"}, "versions": ["v1"]}},
    "a version without a name": {"spec": {"group": "a", "names": {"kind": "A", "plural": "as"}, "versions": [{}]}},
}


@pytest.mark.parametrize("crd", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_crd_brings_none(crd):
    assert kinds_of_crd(crd) == {}


def kind(api_version, name, *, namespaced=True, custom=False):
    return Kind(GroupVersionKind.parse(api_version, name), f"{name.lower()}s", namespaced, UNKNOWN, custom)


PATHS = {
    "an object": (kind("apps/v1", "Deployment"), ("shop", "web"), "/apis/apps/v1/namespaces/shop/deployments/web"),
    "its status": (kind("apps/v1", "Deployment"), ("shop", "web", "status"), "/apis/apps/v1/namespaces/shop/deployments/web/status"),
    "all of a namespace": (kind("v1", "Pod"), ("shop",), "/api/v1/namespaces/shop/pods"),
    "all of the cluster": (kind("v1", "Pod"), ("",), "/api/v1/pods"),
    "one of no namespace": (kind("v1", "Node", namespaced=False), ("shop", "a"), "/api/v1/nodes/a"),
}  # fmt: skip


@pytest.mark.parametrize(("of", "place", "path"), PATHS.values(), ids=PATHS)
def test_an_object_is_served_at(of, place, path):
    assert of.path(*place) == path


def test_built_in_kinds_have_their_phase_and_others_are_workloads_or_custom():
    assert kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration").phase is Phase.ADMISSION
    assert kind("apps/v1", "Deployment").phase is Phase.WORKLOAD
    assert kind("example.com/v1", "Widget", custom=True).phase is Phase.CUSTOM
    assert kind("v1", "Namespace").phase < kind("v1", "ConfigMap").phase <= Phase.WORKLOAD


RBAC = "rbac.authorization.k8s.io/v1"
ORDER = {
    "an account before the Secret with its token": (kind("v1", "ServiceAccount"), kind("v1", "Secret")),
    "a Role before its RoleBinding": (kind(RBAC, "Role"), kind(RBAC, "RoleBinding")),
    "a ClusterRole before its binding": (kind(RBAC, "ClusterRole"), kind(RBAC, "ClusterRoleBinding")),
    "a ClusterRole before a RoleBinding of it": (kind(RBAC, "ClusterRole"), kind(RBAC, "RoleBinding")),
    "limits before claims": (kind("v1", "LimitRange"), kind("v1", "PersistentVolumeClaim")),
    "a volume before the claim that would have another made": (kind("v1", "PersistentVolume"), kind("v1", "PersistentVolumeClaim")),
    "a storage class before claims": (kind("storage.k8s.io/v1", "StorageClass"), kind("v1", "PersistentVolumeClaim")),
    "a priority class before pods": (kind("scheduling.k8s.io/v1", "PriorityClass"), kind("v1", "Pod")),
    "network policies before pods": (kind("networking.k8s.io/v1", "NetworkPolicy"), kind("v1", "Pod")),
    "Services before pods, which are told of them": (kind("v1", "Service"), kind("apps/v1", "Deployment")),
    "disruption budgets before pods": (kind("policy/v1", "PodDisruptionBudget"), kind("apps/v1", "StatefulSet")),
    "an ingress class before Ingresses": (kind("networking.k8s.io/v1", "IngressClass"), kind("networking.k8s.io/v1", "Ingress")),
}  # fmt: skip


@pytest.mark.parametrize(("first", "then"), ORDER.values(), ids=ORDER)
def test_within_a_step_kinds_are_written_as_other_tools_write_them(first, then):
    assert first.phase < then.phase
