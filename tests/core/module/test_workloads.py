"""Common children of modules: what is insisted on, and what is said of those that are ready."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.module.workloads import (
    available,
    awaits_node,
    container,
    deployment,
    first_variables,
    is_alive,
    is_ready,
    restricted_container,
    restricted_pod,
    service,
    spread_over_nodes,
    stateful_set,
)
from kubectl_reconcile.core.objects import Condition

CTX = Context("2026-11-20T12:00:00Z", "cache", {"metadata": {"name": "web", "namespace": "shop"}})


def test_a_container_states_its_port_and_environment_only_where_it_has_some():
    assert container("main", "nginx:1") == {"name": "main", "image": "nginx:1"}
    assert container("main", "nginx:1", port=80, env={"A": "1"}, command=["run"]) == {
        "name": "main",
        "image": "nginx:1",
        "command": ["run"],
        "ports": [{"name": "main", "containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "A", "value": "1"}],
    }


@pytest.mark.parametrize(("make", "kind"), [(deployment, "Deployment"), (stateful_set, "StatefulSet")])
def test_a_workload_selects_its_own_pods_which_have_no_rights_on_the_server(make, kind):
    found = make(CTX, "store", replicas=3, containers=[container("main", "nginx:1")])
    assert (found["apiVersion"], found["kind"]) == ("apps/v1", kind)
    assert found["metadata"] == {"name": CTX.name("store"), "labels": CTX.labels("store")}
    assert found["spec"].pop("serviceName", "") == (CTX.name("store") if kind == "StatefulSet" else "")
    assert found["spec"] == {
        "replicas": 3,
        "selector": {"matchLabels": CTX.selector("store")},
        "template": {
            "metadata": {"labels": CTX.labels("store")},
            "spec": {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": "nginx:1"}]},
        },
    }
    assert CTX.selector("store").items() <= CTX.labels("store").items()


@pytest.mark.parametrize("headless", [False, True])
def test_a_service_stands_in_front_of_the_main_port_of_its_pods(headless):
    assert service(CTX, "store", port=80, headless=headless) == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": CTX.name("store"), "labels": CTX.labels("store")},
        "spec": {
            "type": "ClusterIP",
            **({"clusterIP": "None"} if headless else {}),
            "selector": CTX.selector("store"),
            "ports": [{"name": "main", "port": 80, "targetPort": "main", "protocol": "TCP"}],
        },
    }


ALIVE = {
    "one that runs": ({"status": {"phase": "Running"}}, True),
    "one that is about to": ({"status": {"phase": "Pending"}}, True),
    "one that nobody has seen yet": ({}, True),
    "one whose status is odd": ({"status": "x"}, True),
    "not one that has ended": ({"status": {"phase": "Succeeded"}}, False),
    "not one that has failed": ({"status": {"phase": "Failed"}}, False),
    "not one that is being deleted": ({"metadata": {"deletionTimestamp": "now"}}, False),
}


@pytest.mark.parametrize(("pod", "alive"), ALIVE.values(), ids=ALIVE)
def test_alive_is(pod, alive):
    assert is_alive({"metadata": {}, **pod}) is alive


WAITING = {
    "one that nobody has seen yet": ({}, True),
    "one that no node may take": ({"spec": {"containers": []}, "status": {"phase": "Pending"}}, True),
    "not one that a node has taken": ({"spec": {"nodeName": "one"}, "status": {"phase": "Pending"}}, False),
    "not one that has run": ({"status": {"phase": "Failed"}}, False),
}


@pytest.mark.parametrize(("pod", "waits"), WAITING.values(), ids=WAITING)
def test_a_pod_that_waits_for_a_node_is(pod, waits):
    assert awaits_node({"metadata": {}, **pod}) is waits


def test_the_variables_of_a_first_container_are_those_that_are_given_by_value():
    given = [{"name": "BEGIN", "value": "first"}, {"name": "EMPTY", "value": ""}, {"name": "PASSWORD", "valueFrom": {}}]
    pod = {
        "spec": {"initContainers": [{"env": given}, {"env": [{"name": "OTHER", "value": "x"}]}], "containers": "odd"}
    }
    assert first_variables(pod, "initContainers") == {"BEGIN": "first", "EMPTY": ""}
    assert first_variables(pod) == first_variables({}) == {}


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_pod_is_ready_when_it_says_so(status, ready):
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": status}]}}) is ready
    assert not is_ready({"status": {"conditions": [{"type": "Initialized", "status": "True"}]}})


AVAILABLE = {
    "none wanted": (0, 0, Condition("Available", "True", "ScaledToZero", "no nodes are wanted")),
    "none ready": (0, 3, Condition("Available", "False", "NoneReady", "0 of 3 nodes are ready")),
    "some ready": (1, 3, Condition("Available", "True", "SomeReady", "1 of 3 nodes are ready")),
    "all ready": (3, 3, Condition("Available", "True", "SomeReady", "3 of 3 nodes are ready")),
}


@pytest.mark.parametrize(("ready", "wanted", "said"), AVAILABLE.values(), ids=AVAILABLE)
def test_available(ready, wanted, said):
    assert available(ready, wanted, "nodes") == said


SHORT_OR_LONG = st.sampled_from(["web", "w.e.b", "w" * 60, "9-9"])


@given(SHORT_OR_LONG, st.integers(0, 99_999))
def test_a_number_is_told_from_the_name_that_was_made_of_it(name, number):
    ctx = replace(CTX, cr={"metadata": {"name": name}})
    assert ctx.number_of(ctx.name(str(number))) == number


@pytest.mark.parametrize(
    "name", ["web", "web-", "web-01", "web-x", "other-1", "web-1-data", "web-123456", "web-²", "web--1"]
)
def test_a_name_that_was_made_of_no_number_has_none(name):
    assert CTX.number_of(name) == -1


def test_a_restricted_pod_has_no_token_and_runs_as_a_user_without_rights():
    assert restricted_pod(999) == {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 999,
            "runAsGroup": 999,
            "fsGroup": 999,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def test_a_restricted_container_gains_no_rights_and_writes_to_its_volumes_alone():
    assert restricted_container() == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_pods_that_are_to_be_spread_prefer_different_nodes():
    (wish,) = spread_over_nodes({"app": "web"})["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert wish == {
        "weight": 100,
        "podAffinityTerm": {
            "labelSelector": {"matchLabels": {"app": "web"}},
            "topologyKey": "kubernetes.io/hostname",
        },
    }
    assert list(spread_over_nodes({})["podAntiAffinity"]) == ["preferredDuringSchedulingIgnoredDuringExecution"]
