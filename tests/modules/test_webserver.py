"""The WebServer module: which pods it wants, which it gives up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.module.call import check_purity, outcome_of
from kubectl_reconcile.core.module.inputs import Context, Owned
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.modules.webserver import webserver

NOW = "2026-01-01T00:00:00Z"


def web(replicas=2, name="web"):
    metadata = {"name": name, "namespace": "shop", "uid": "u-1"}
    return {
        "apiVersion": "demo.k8s.io/v1alpha1",
        "kind": "WebServer",
        "metadata": metadata,
        "spec": {"replicas": replicas},
    }


def pod(slot, *, ready=True, phase="Running", made=0, going=False):
    metadata = {"name": f"web-pod-{slot}", "namespace": "shop", "creationTimestamp": f"2026-01-01T00:00:{made:02}Z"}
    metadata |= {"deletionTimestamp": NOW} if going else {}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": phase, "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}, "status": status}


def ask(cr, *pods, with_=outcome_of):
    return with_(webserver, cr, Owned(pods), {}, Context(NOW, "webserver", cr))


def slots(outcome):
    return [int(child["metadata"]["name"].rpartition("-")[2]) for child in outcome.children]


def found(outcome, type_):
    return next(one.status for one in outcome.conditions if one.type == type_)


WANTED = {
    "none yet": (2, [], [0, 1]),
    "all there": (2, [pod(0), pod(1)], [0, 1]),
    "one missing": (3, [pod(0), pod(2)], [0, 1, 2]),
    "none wanted": (0, [pod(0)], []),
    "a terminating pod keeps its slot": (2, [pod(0, going=True), pod(1)], [1, 2]),
    "a failed pod is replaced in another slot": (2, [pod(0, phase="Failed"), pod(1)], [1, 2]),
    "so is one that has ended": (1, [pod(0, phase="Succeeded")], [1]),
    "what isn't ready goes first": (1, [pod(0, ready=False), pod(1)], [1]),
    "then the youngest": (1, [pod(0, made=9), pod(1, made=1)], [1]),
    "then the highest slot": (1, [pod(0), pod(1)], [0]),
    "a young pod that is ready beats an old one that isn't": (1, [pod(0, ready=False), pod(1, made=9)], [1]),
    "slots are numbers": (2, [pod(9), pod(10), pod(11)], [10, 9]),
}


@pytest.mark.parametrize(("replicas", "pods", "expected"), WANTED.values(), ids=WANTED)
def test_which_slots_are_wanted(replicas, pods, expected):
    assert slots(ask(web(replicas), *pods)) == expected


def test_the_status_counts_what_runs_or_is_about_to():
    outcome = ask(web(2), pod(0), pod(1, ready=False), pod(2, going=True), pod(3, phase="Failed"))
    assert outcome.status == {"count": 2, "ready": 1}
    assert [found(outcome, type_) for type_ in ("Available", "Progressing", "Degraded")] == ["True", "True", "False"]


def test_at_rest_nothing_progresses():
    assert found(ask(web(1), pod(0)), "Progressing") == "False"


def test_a_pod_carries_the_servers_labels():
    (child,) = ask(web(1)).children
    assert child["metadata"]["labels"]["app"] == "web"
    assert child["metadata"]["labels"]["app.kubernetes.io/instance"] == "web"


@pytest.mark.parametrize("replicas", [-1, 501, "2", None])
def test_a_senseless_number_is_refused(replicas):
    with pytest.raises(SpecError, match=r"\.spec\.replicas"):
        ask(web(replicas))


PODS = st.lists(
    st.builds(
        pod,
        st.integers(0, 12),
        ready=st.booleans(),
        phase=st.sampled_from(["Running", "Pending", "Failed"]),
        made=st.integers(0, 9),
        going=st.booleans(),
    ),
    unique_by=lambda each: each["metadata"]["name"],
)


@given(st.integers(0, 8), PODS)
def test_there_are_as_many_as_wanted_and_none_stands_in_a_taken_slot(replicas, pods):
    names = [child["metadata"]["name"] for child in ask(web(replicas), *pods, with_=check_purity).children]
    assert len(set(names)) == len(names) == replicas
    unusable = {
        one["metadata"]["name"]
        for one in pods
        if one["metadata"].get("deletionTimestamp") or one["status"]["phase"] == "Failed"
    }
    assert not unusable & set(names)


@given(st.integers(0, 8), PODS)
def test_no_pod_is_given_up_while_another_is_made(replicas, pods):
    names = {child["metadata"]["name"] for child in ask(web(replicas), *pods).children}
    there = {one["metadata"]["name"] for one in pods}
    alive = {
        one["metadata"]["name"]
        for one in pods
        if not one["metadata"].get("deletionTimestamp") and one["status"]["phase"] != "Failed"
    }
    assert not (names - there) or alive <= names
