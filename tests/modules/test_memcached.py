"""What a Memcached becomes: children, status and conditions, on plain values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.health.judge import HealthStatus, health
from kubectl_reconcile.core.module.api import modules_in
from kubectl_reconcile.core.module.call import check_purity, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.modules import memcached as python_module
from kubectl_reconcile.modules.memcached import DEFAULT_IMAGE, memcached

NOW = "2026-01-01T00:00:00Z"


def a_cr(name="sessions", **spec):
    return {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": name, "namespace": "shop", "uid": "u-1"},
        "spec": {"size": 3, **spec},
    }


def context(cr):
    return Context(now=NOW, module=memcached.name, cr=cr)


def reconcile(cr, owned=None):
    return check_purity(memcached, cr, owned or Owned(), {}, context(cr))


def children(cr):
    return {child["kind"]: child for child in reconcile(cr).children}


def container(cr):
    return children(cr)["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def a_pod(name, *, ready=True, phase="Running", waiting=None, **metadata):
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]}
    if waiting:
        status["containerStatuses"] = [{"name": "memcached", "state": {"waiting": {"reason": waiting}}}]
    labels = context(a_cr()).labels()
    metadata = {"name": name, "namespace": "shop", "labels": labels, **metadata}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def a_deployment(cr, *, ready=3, reason="NewReplicaSetAvailable", message=""):
    """The Deployment of *cr*, as its controller reports it with *ready* pods."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), ready)
    progressing = {"type": "Progressing", "status": "True", "reason": reason, "message": message}
    status = {
        "observedGeneration": 1, **counts, "conditions": [progressing, {"type": "Available", "status": "True"}],
    }  # fmt: skip
    stated = children(cr)["Deployment"]
    return {**stated, "metadata": {**stated["metadata"], "namespace": "shop", "generation": 1}, "status": status}


def conditions(outcome):
    return {found.type: (found.status, found.reason) for found in outcome.conditions}


# --- children ---


def test_a_memcached_is_a_deployment_and_a_service_of_its_name():
    found = children(a_cr())
    assert {kind: child["metadata"]["name"] for kind, child in found.items()} == {
        "Deployment": "sessions",
        "Service": "sessions",
    }
    assert found["Deployment"]["spec"]["replicas"] == 3


def test_nodes_run_memcached_on_the_port():
    found = container(a_cr(containerPort=11300))
    assert found["command"] == ["memcached", "-m=64", "-o", "modern", "-v", "-p", "11300"]
    assert [port["containerPort"] for port in found["ports"]] == [11300]


def test_the_service_leads_to_the_nodes():
    found = children(a_cr(containerPort=11300))
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"].items() <= labels.items()
    (port,) = found["Service"]["spec"]["ports"]
    assert port["port"] == 11300
    assert port["targetPort"] == container(a_cr())["ports"][0]["name"]


def test_the_deployment_selects_its_own_template():
    spec = children(a_cr())["Deployment"]["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_two_memcacheds_never_share_a_selector():
    one, other = (children(a_cr(name))["Deployment"]["spec"]["selector"] for name in ("sessions", "pages"))
    assert one != other


def test_defaults_are_stated_so_that_drift_is_put_back():
    assert container(a_cr())["image"] == DEFAULT_IMAGE
    assert container(a_cr())["ports"][0]["containerPort"] == 11211


def test_resources_pass_through_and_are_left_to_others_where_not_asked_for():
    wanted = {"limits": {"memory": "96Mi"}}
    assert container(a_cr(resources=wanted))["resources"] == wanted
    assert "resources" not in container(a_cr())


def test_nodes_run_without_privileges():
    pod = children(a_cr())["Deployment"]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["automountServiceAccountToken"]
    assert container(a_cr())["securityContext"]["capabilities"] == {"drop": ["ALL"]}


INVALID = {
    "no size": ({"size": None}, ".spec.size"),
    "a negative size": ({"size": -1}, ".spec.size"),
    "a size in words": ({"size": "three"}, ".spec.size"),
    "a privileged port": ({"containerPort": 80}, ".spec.containerPort"),
    "a port that doesn't exist": ({"containerPort": 70000}, ".spec.containerPort"),
    "a blank image": ({"image": " "}, ".spec.image"),
    "resources as text": ({"resources": "lots"}, ".spec.resources"),
}


@pytest.mark.parametrize(("spec", "named"), INVALID.values(), ids=INVALID)
def test_an_invalid_spec_names_the_field(spec, named):
    cr = a_cr(**spec)
    with pytest.raises(SpecError) as refused:
        outcome_of(memcached, cr, Owned(), {}, context(cr))
    assert refused.value.field == named


# --- status ---


def test_nodes_are_sorted_and_those_that_go_are_left_out():
    pods = [
        a_pod("sessions-c"),
        a_pod("sessions-a", ready=False),
        a_pod("sessions-b", deletionTimestamp=NOW),
        a_pod("sessions-d", phase="Failed"),
    ]
    outcome = reconcile(a_cr(), Owned(read=pods))
    assert outcome.status == {"nodes": ["sessions-a", "sessions-c"], "readyReplicas": 1}


CR = a_cr()
THREE = [a_pod(f"sessions-{slot}") for slot in "abc"]

SITUATIONS = {
    "nothing exists yet": (CR, [], [], {
        "Available": ("False", "NoNodeReady"), "Progressing": ("True", "RollingOut"), "Degraded": ("False", "AsExpected"),
    }),
    "all is well": (CR, [a_deployment(CR)], THREE, {
        "Available": ("True", "NodesReady"), "Progressing": ("False", "RolloutComplete"), "Degraded": ("False", "AsExpected"),
    }),
    "one node is still missing": (CR, [a_deployment(CR, ready=2)], THREE[:2], {
        "Available": ("True", "NodesReady"), "Progressing": ("True", "RollingOut"), "Degraded": ("False", "AsExpected"),
    }),
    "the size has just changed": (a_cr(size=2), [a_deployment(CR)], THREE, {
        "Available": ("True", "NodesReady"), "Progressing": ("True", "RollingOut"), "Degraded": ("False", "AsExpected"),
    }),
    "the image has just changed": (a_cr(image="memcached:2"), [a_deployment(CR)], THREE, {
        "Available": ("True", "NodesReady"), "Progressing": ("True", "RollingOut"), "Degraded": ("False", "AsExpected"),
    }),
    "the port has just changed": (a_cr(containerPort=11300), [a_deployment(CR)], THREE, {
        "Available": ("True", "NodesReady"), "Progressing": ("True", "RollingOut"), "Degraded": ("False", "AsExpected"),
    }),
    "the rollout timed out": (CR, [a_deployment(CR, ready=0, reason="ProgressDeadlineExceeded")], [], {
        "Available": ("False", "NoNodeReady"), "Progressing": ("False", "RolloutFailed"), "Degraded": ("True", "RolloutFailed"),
    }),
    "a node can't start": (CR, [a_deployment(CR, ready=2)], [*THREE[:2], a_pod("sessions-c", ready=False, waiting="ErrImagePull")], {
        "Available": ("True", "NodesReady"), "Progressing": ("True", "RollingOut"), "Degraded": ("True", "NodeFailed"),
    }),
    "no nodes are wanted": (a_cr(size=0), [a_deployment(a_cr(size=0), ready=0)], [], {
        "Available": ("True", "ScaledToZero"), "Progressing": ("False", "RolloutComplete"), "Degraded": ("False", "AsExpected"),
    }),
}  # fmt: skip


@pytest.mark.parametrize(("cr", "owned", "pods", "expected"), SITUATIONS.values(), ids=SITUATIONS)
def test_conditions_say_how_it_stands(cr, owned, pods, expected):
    assert conditions(reconcile(cr, Owned(owned, pods))) == expected


HEALTHS = {
    "nothing exists yet": HealthStatus.IN_PROGRESS,
    "all is well": HealthStatus.CURRENT,
    "one node is still missing": HealthStatus.IN_PROGRESS,
    "the size has just changed": HealthStatus.IN_PROGRESS,
    "the rollout timed out": HealthStatus.FAILED,
    "a node can't start": HealthStatus.FAILED,
    "no nodes are wanted": HealthStatus.CURRENT,
}


@pytest.mark.parametrize(("situation", "expected"), HEALTHS.items(), ids=HEALTHS)
def test_a_memcached_is_as_healthy_as_its_conditions_say(situation, expected):
    cr, owned, pods, _ = SITUATIONS[situation]
    found = reconcile(cr, Owned(owned, pods)).conditions
    status = {"conditions": [{"type": one.type, "status": one.status, "reason": one.reason} for one in found]}
    assert health({**cr, "status": status}).status is expected


def test_a_failed_node_is_named_with_its_reason():
    cr, owned, pods, _ = SITUATIONS["a node can't start"]
    (degraded,) = (found for found in reconcile(cr, Owned(owned, pods)).conditions if found.type == "Degraded")
    assert degraded.message == "sessions-c: container memcached: ErrImagePull"


def test_the_count_is_in_the_message():
    cr, owned, pods, _ = SITUATIONS["one node is still missing"]
    messages = {found.type: found.message for found in reconcile(cr, Owned(owned, pods)).conditions}
    assert messages["Progressing"] == "2 of 3 nodes are ready; 2 of 3 replicas are created"


# --- laws ---

SPECS = st.fixed_dictionaries(
    {"size": st.integers(-1, 1001)},
    optional={
        "containerPort": st.integers(0, 70000),
        "image": st.text(max_size=8),
        "resources": st.dictionaries(
            st.sampled_from(["limits", "requests"]), st.dictionaries(st.text(max_size=3), st.text())
        ),
    },
)
PODS = st.lists(st.builds(a_pod, st.text("abc", min_size=1, max_size=3), ready=st.booleans()), max_size=4)


@given(SPECS, PODS)
def test_the_outcome_is_a_pure_function_of_what_is_seen(spec, pods):
    outcome = reconcile(a_cr(**spec), Owned(read=pods))
    assert outcome.keep_children or [child["kind"] for child in outcome.children] == ["Deployment", "Service"]


@given(st.permutations(THREE))
def test_the_order_of_pods_does_not_matter(pods):
    assert reconcile(CR, Owned(read=pods)) == reconcile(CR, Owned(read=THREE))


def test_the_module_is_found_where_the_entry_point_says():
    assert modules_in(python_module) == (memcached,)
