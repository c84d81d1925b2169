"""What Jobs tell by their pods: whose pods they are, what keeps them from running, and their last words."""

from __future__ import annotations

import orjson
import pytest

from kubectl_reconcile.core.module.jobs import container_states, last_words, pods_of_job, shortened, why_waiting


def pod(name="a", job="backup", uid="u-backup", **status):
    labels = {"batch.kubernetes.io/job-name": job}
    owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}]
    metadata = {"name": name, "labels": labels, "ownerReferences": owners}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}


def waiting(name, reason, message=""):
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}}


BACKUP = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "backup", "uid": "u-backup"}}


def test_pods_belong_to_the_job_that_controls_them():
    mine, others, earlier = pod(), pod("b", "another"), pod("c", uid="u-earlier")
    assert pods_of_job(BACKUP, [others, earlier, mine]) == [mine]


def test_a_pod_that_only_has_the_label_of_a_job_is_none_of_its_pods():
    forged, claimed = pod(), pod()
    del forged["metadata"]["ownerReferences"]
    del claimed["metadata"]["ownerReferences"][0]["controller"]
    assert pods_of_job(BACKUP, [forged, claimed]) == []
    unknown = {**BACKUP, "metadata": {"name": "backup"}}
    assert pods_of_job(unknown, [forged, pod(uid=None)]) == [], "a Job that isn't there yet has no pods"


def test_containers_are_told_in_the_order_in_which_they_run():
    told = pod(containerStatuses=[waiting("main", "X")], initContainerStatuses=[waiting("first", "Y"), "odd"])
    assert [name for name, _ in container_states(told)] == ["first", "main"]


PODS = {
    "nothing known yet": ({}, ""),
    "on the way": ({"containerStatuses": [waiting("main", "ContainerCreating")]}, ""),
    "no image": (
        {"containerStatuses": [waiting("main", "ErrImagePull", "not found")]},
        "its pod waits: ErrImagePull: not found",
    ),
    "an init container without an image": (
        {
            "initContainerStatuses": [waiting("first", "ErrImagePull")],
            "containerStatuses": [waiting("main", "PodInitializing")],
        },
        "its pod waits: ErrImagePull",
    ),
    "no node": (
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]},
        "its pod waits: Unschedulable: 0/3",
    ),
    "scheduled": ({"conditions": [{"type": "PodScheduled", "status": "True", "reason": "Fine"}]}, ""),
    "a status that makes no sense": ({"containerStatuses": {"a": 1}, "conditions": "none"}, ""),
}


@pytest.mark.parametrize(("status", "said"), PODS.values(), ids=PODS)
def test_what_keeps_a_pod_from_running_is_said_in_the_words_of_its_node(status, said):
    assert why_waiting(pod(**status)) == said


@pytest.mark.parametrize(
    ("message", "found"),
    [('{"error": "NoRoom"}', {"error": "NoRoom"}), ("panic: out of memory", {}), ("[1]", {}), ("", {})],
)
def test_last_words_are_those_of_a_json_object(message, found):
    assert last_words(message) == found


UNWRITABLE = {
    "no number": '{"ratio": NaN}',
    "no end": '{"ratio": -Infinity}',
    "a number beyond all": '{"ratio": 1e400}',
    "half a character": '{"name": "\\ud800"}',
    "half a character as a name": '{"\\ud800": 1}',
    "brackets without end": '{"x": ' + "[" * 1900 + "]" * 1900 + "}",
    "too many brackets": '{"x": ' + "[" * 21 + "]" * 21 + "}",
    "too many braces": '{"x":' * 21 + "1" + "}" * 21,
}


@pytest.mark.parametrize("message", UNWRITABLE.values(), ids=UNWRITABLE)
def test_last_words_that_nobody_could_write_down_are_none(message):
    assert last_words(message) == {}


def test_last_words_may_be_nested_and_have_large_numbers():
    deep = '{"x":' * 20 + "1" + "}" * 20
    assert orjson.dumps(last_words(deep)).decode() == deep
    assert last_words('{"n": 18446744073709551616}') == {"n": 2.0**64}


def test_what_is_too_long_is_cut_with_an_ellipsis():
    assert (shortened("abcd", 4), shortened("abcde", 4)) == ("abcd", "abc…")
