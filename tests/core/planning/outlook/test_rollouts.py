"""What a preview says of the pods that a change replaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.outlook.rollouts import rollout_of
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason
from tests.core.planning.changes import a_change
from tests.odd_json import FIELDS, statuses, values

IMAGE = FieldPath(("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}', "f:image"))


def workload(kind, spec, **status):
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
        "status": status,
    }


def said(kind, spec, *, op=Op.UPDATE, path=IMAGE, **status):
    live = workload(kind, spec, **status)
    change = FieldChange(path, "replace", "web:1", "web:2", Reason.GIT)
    return rollout_of(a_change(ObjectRef.of(live), op, before=live, after=live, fields=(change,)))


def rolling(missing=None, surplus=None):
    bounds = {"maxUnavailable": missing, "maxSurge": surplus}
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {key: value for key, value in bounds.items() if value is not None},
    }


def test_a_share_of_surplus_pods_of_a_daemon_set_is_rounded_up():
    strategy = {"updateStrategy": rolling(surplus="1%")}
    assert said("DaemonSet", strategy, desiredNumberScheduled=5) == "rolls 5 pods; none unavailable meanwhile"


DEPLOYMENTS = {
    "as it is by default": ({"replicas": 5}, "rolls 5 pods; at most 1 unavailable"),
    "one pod unless told otherwise": ({}, "rolls 1 pod; none unavailable meanwhile"),
    "a share is rounded down": ({"replicas": 7, "strategy": rolling("50%", 1)}, "rolls 7 pods; at most 3 unavailable"),
    "a number": ({"replicas": 7, "strategy": rolling(2, 0)}, "rolls 7 pods; at most 2 unavailable"),
    "more than there are": ({"replicas": 2, "strategy": rolling(5, 0)}, "rolls 2 pods; at most 2 unavailable"),
    "none may be missing": ({"replicas": 3, "strategy": rolling(0, 1)}, "rolls 3 pods; none unavailable meanwhile"),
    "shares that come to nothing": ({"replicas": 3, "strategy": rolling("1%", "0%")}, "rolls 3 pods; at most 1 unavailable"),
    "all at once": ({"replicas": 3, "strategy": {"type": "Recreate"}}, "stops 3 pods before new ones start"),
    "paused": ({"replicas": 3, "paused": True}, "is paused: its 3 pods are replaced once it is resumed"),
    "nothing runs": ({"replicas": 0}, ""),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "sentence"), DEPLOYMENTS.values(), ids=DEPLOYMENTS)
def test_a_deployment_tells_how_many_pods_it_rolls(spec, sentence):
    assert said("Deployment", spec) == sentence


STATEFUL_SETS = {
    "one after the other": ({"replicas": 3}, "rolls 3 pods; at most 1 unavailable"),
    "several at a time": ({"replicas": 9, "updateStrategy": rolling("25%")}, "rolls 9 pods; at most 3 unavailable"),
    "some of them": (
        {"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": 3}}},
        "rolls 2 pods; at most 1 unavailable",
    ),
    "none of them": ({"replicas": 5, "updateStrategy": {"rollingUpdate": {"partition": 5}}}, ""),
    "by hand": ({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}, "changes 2 pods as they are deleted by hand"),
}


@pytest.mark.parametrize(("spec", "sentence"), STATEFUL_SETS.values(), ids=STATEFUL_SETS)
def test_a_stateful_set_tells_how_many_pods_it_rolls(spec, sentence):
    assert said("StatefulSet", spec) == sentence


DAEMON_SETS = {
    "one after the other": ({}, "rolls 4 pods; at most 1 unavailable"),
    "a share is rounded up": ({"updateStrategy": rolling("30%")}, "rolls 4 pods; at most 2 unavailable"),
    "new ones first": ({"updateStrategy": rolling(0, 1)}, "rolls 4 pods; none unavailable meanwhile"),
    "by hand": ({"updateStrategy": {"type": "OnDelete"}}, "changes 4 pods as they are deleted by hand"),
}


@pytest.mark.parametrize(("spec", "sentence"), DAEMON_SETS.values(), ids=DAEMON_SETS)
def test_a_daemon_set_rolls_the_pods_of_all_nodes(spec, sentence):
    assert said("DaemonSet", spec, desiredNumberScheduled=4) == sentence


def test_a_daemon_set_of_which_nothing_is_known_rolls_nothing():
    assert said("DaemonSet", {}) == ""


def test_only_what_changes_the_template_rolls_pods():
    assert said("Deployment", {"replicas": 5}, path=FieldPath.fields("spec", "replicas")) == ""
    assert said("ConfigMap", {"replicas": 5}) == ""
    assert said("Deployment", {"replicas": 5}, op=Op.DELETE) == ""


def test_a_workload_that_is_recreated_stops_all_its_pods():
    assert said("StatefulSet", {"replicas": 3}, op=Op.REPLACE, replicas=3) == "stops 3 pods before new ones start"
    assert said("StatefulSet", {"replicas": 3}, op=Op.REPLACE) == ""
    assert said("DaemonSet", {}, op=Op.REPLACE, currentNumberScheduled=1) == "stops 1 pod before new ones start"
    recreated = {"replicas": 3, "strategy": {"type": "Recreate"}}
    assert said("Deployment", recreated, replicas=2) == "stops 2 pods before new ones start"


def test_an_object_that_is_made_or_goes_has_no_pods_to_replace():
    live = workload("Deployment", {"replicas": 3}, replicas=3)
    change = a_change(ObjectRef.of(live), Op.REPLACE, before=live, after=live)
    assert rollout_of(change) != ""
    assert rollout_of(replace(change, before=None)) == rollout_of(replace(change, after=None)) == ""


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
@given(spec=values | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, values)), status=statuses)
def test_whatever_an_object_says_there_is_an_answer(kind, spec, status):
    live = {**workload(kind, spec), "status": status}
    change = FieldChange(IMAGE, "replace", "web:1", "web:2", Reason.GIT)
    for op in (Op.UPDATE, Op.REPLACE):
        assert isinstance(rollout_of(a_change(ObjectRef.of(live), op, before=live, after=live, fields=(change,))), str)
