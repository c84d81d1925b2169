"""Checkups by a Job of somebody's own, on plain values: what its pod is told, where its result may be, and what is no result."""

import json
from pathlib import Path

import orjson
import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.module_testing import asked
from kubectl_reconcile.modules.checkup.job import MOST_BYTES
from tests import yaml_text
from tests.core.report.syncs import sync
from tests.modules.checkup.jobs import Jobs
from tests.modules.checkup.world import meta

ROOT = Path(__file__).parents[3]
SOON, LATER = "2026-11-20T12:01:00Z", "2026-11-20T13:00:00Z"
MAIN = {"name": "main", "image": "audit:1.2", "env": [{"name": "LEVEL", "value": "2"}]}
TEMPLATE = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [MAIN], "serviceAccountName": "audit"}}


def job(template=TEMPLATE, **more):
    return Jobs(job={"template": template}, **more)


def left(world, text):
    """What the pod of the Job that is at work leaves in the ConfigMap."""
    world.maps["check-result"]["data"] = {"before": "{}", world.begun[-1]: text}


def test_the_pod_is_as_it_is_asked_for_and_is_told_where_a_result_may_go():
    world = job(deadlineSeconds=60)
    world.at(SOON, asked)
    (made,) = world.jobs.values()
    template = made["spec"]["template"]
    (container,) = template["spec"]["containers"]
    told = {each["name"]: each["value"] for each in container["env"]}
    assert told == {"LEVEL": "2", "CHECKUP_CONFIGMAP": "check-result", "CHECKUP_KEY": made["metadata"]["name"]}
    assert container["terminationMessagePolicy"] == "FallbackToLogsOnError", "its last output says why it failed"
    assert (template["spec"]["restartPolicy"], template["spec"]["serviceAccountName"]) == ("Never", "audit")
    assert template["metadata"]["labels"].items() > {"team": "a", "app.kubernetes.io/name": "checkup"}.items()
    assert (made["spec"]["activeDeadlineSeconds"], made["spec"]["backoffLimit"]) == (60, 0)
    assert set(world.maps) == {"check-result"}


ACCOUNTS = {
    "none": ({}, False),
    "an account": ({"serviceAccountName": "audit"}, None),
    "by the older name": ({"serviceAccount": "audit"}, None),
    "none, and a token all the same": ({"automountServiceAccountToken": True}, True),
    "an account without its token": ({"serviceAccountName": "audit", "automountServiceAccountToken": False}, False),
}


@pytest.mark.parametrize(("spec", "mounts"), ACCOUNTS.values(), ids=ACCOUNTS)
def test_a_pod_has_the_token_of_an_account_only_where_it_is_asked_for(spec, mounts):
    world = job({"spec": {"containers": [MAIN], **spec}})
    world.at(SOON)
    (made,) = world.jobs.values()
    assert made["spec"]["template"]["spec"].get("automountServiceAccountToken") is mounts


DANGERS = {
    ".spec.hostPID": {"hostPID": True},
    ".spec.hostNetwork": {"hostNetwork": True},
    '.spec.volumes[name="node"].hostPath': {"volumes": [{"name": "node", "hostPath": {"path": "/"}}]},
    '.spec.containers[name="main"].securityContext.privileged': {
        "containers": [{**MAIN, "securityContext": {"privileged": True}}]
    },
    '.spec.initContainers[name="first"].securityContext.capabilities.add': {
        "initContainers": [{"name": "first", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]
    },
}


@pytest.mark.parametrize(("field", "spec"), DANGERS.items(), ids=DANGERS)
def test_a_pod_that_could_get_at_its_node_is_refused(field, spec):
    with pytest.raises(SpecError, match="a Checkup runs no pod that could gain access to its node") as refused:
        job({"spec": {"containers": [MAIN], **spec}}).at(SOON)
    assert refused.value.field == f".spec.job.template{field}"


def test_who_owns_a_checkup_says_nothing_of_what_its_pod_may_do():
    world = job({"spec": {"containers": [MAIN], "hostPID": True}})
    kind = {"apiVersion": world.cr["apiVersion"], "kind": "Checkup", "controller": True}
    world.cr["metadata"] |= {"ownerReferences": [{**kind, "name": "check", "uid": "u-1"}]}
    with pytest.raises(SpecError, match="could gain access to its node"):
        world.at(SOON)


def test_a_job_ends_when_the_daemon_says_at_the_latest():
    world = job(deadlineSeconds=3600)
    world.at(SOON)
    with pytest.raises(SpecError, match=r"3600 or less here, not 3601 \(hint: .*--job-max-seconds\)"):
        job(deadlineSeconds=3601).at(SOON)
    short = job()
    short.ceilings = {**short.ceilings, "--job-max-seconds": 300}
    with pytest.raises(SpecError, match="300 or less here, not 600"):
        short.at(SOON)
    short.change(deadlineSeconds=300)
    short.at(SOON)


def test_a_variable_that_the_container_names_itself_stays():
    own = {"name": "CHECKUP_KEY", "value": "mine"}
    world = job({"spec": {"containers": [{**MAIN, "env": [own]}]}})
    world.at(SOON)
    (made,) = world.jobs.values()
    assert own in made["spec"]["template"]["spec"]["containers"][0]["env"]


def test_what_its_pod_said_is_the_result_and_its_numbers_are_compared():
    world = job(schedule="0 * * * *", passes="result.open < 5 && result.by.web == 'ok'")
    world.begin("2026-11-20T13:00:00Z")
    world.end({"open": 3, "by": {"web": "ok"}, "sure": True})
    world.at(world.now)
    assert (world.told("Passed"), world.message("Passed")) == (("True", "Passed"), "open 3, sure True")
    world.begin("2026-11-20T14:00:00Z")
    world.end({"open": 7, "by": {"web": "ok"}, "sure": True})
    status = world.at(world.now)
    assert (status["result"]["change"], status["result"]["by"]) == ({"open": 4}, {"web": "ok"})
    assert (world.told("Passed"), world.told("Regressed")) == (("False", "NotPassed"), ("True", "Worse"))
    assert "open 7" in world.message("Passed")


def test_what_is_left_in_the_config_map_counts_more_and_goes_once_it_is_written_down():
    world = job()
    world.begin()
    left(world, json.dumps({"pages": ["x" * 90] * 600}))
    world.end("", at=SOON)
    assert len(world.at(SOON)["result"]["pages"]) == 600
    assert world.maps, "nobody knows yet whether the status was written"
    world.at(SOON)
    assert (world.maps, world.told("Passed")) == ({}, ("True", "Passed"))
    world.at(SOON)
    assert world.told("Running") == ("False", "Idle"), "what was written down isn't waited for again"


def test_what_was_left_goes_before_the_next_run_begins_even_one_of_the_same_name():
    world = job(onSync=True)
    world.around = [sync(lastAppliedRevision="aaa")]
    world.begin()
    for number, revision in enumerate(("bbb", "aaa"), 1):
        left(world, json.dumps({"open": number}))
        world.around = [sync(lastAppliedRevision=revision)]  # it already exists when the result is written down
        world.end("")
        assert world.at(SOON)["result"]["open"] == number
        assert (len(world.begun), world.outcome.requeue_after_s) == (number, 5), "it is looked at again soon"
        world.at(SOON)
        assert (world.maps, len(world.begun), world.outcome.requeue_after_s) == ({}, number, 5)
        world.at(SOON)
        assert (len(world.begun), "data" in world.maps["check-result"]) == (number + 1, False)
    assert world.begun[0] == world.begun[2]
    world.end({"open": 3})
    assert world.at(SOON)["result"]["open"] == 3


def test_a_daemon_that_was_killed_between_config_map_and_job_begins_with_another_config_map():
    world = job(schedule="0 * * * *")
    world.begin("2026-11-20T13:00:00Z")
    world.end({"open": 1})
    world.at(world.now)
    world.at("2026-11-20T13:00:10Z")
    assert (world.maps, len(world.jobs)) == ({}, 1)
    world.maps["check-result"] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("check-result")}
    world.at("2026-11-20T14:00:01Z")
    assert (world.maps, len(world.begun), world.outcome.requeue_after_s) == ({}, 1, 5)
    world.at("2026-11-20T14:00:06Z")
    assert (world.maps.keys(), world.begun[1:]) == ({"check-result"}, ["check-20261120140000"])


def test_the_config_map_of_a_job_that_the_server_refuses_stays_and_the_status_says_where_to_look():
    world = job()
    world.at(SOON)
    refused = world.begun[0]
    for _ in range(3):
        world.jobs.clear()
        world.at(LATER)
        assert (world.maps.keys(), set(world.begun)) == ({"check-result"}, {refused})
    assert world.told("Running") == ("False", "Beginning")
    assert f"Job {refused} is about to start; if it doesn't, the API server refuses it" in world.message("Running")


def test_what_is_suspended_or_blocked_waits_for_no_config_map():
    world = job(schedule="0 * * * *", suspend=True)
    world.maps["check-result"] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("check-result")}
    world.at("2026-11-20T13:00:00Z")
    assert (world.begun, world.outcome.requeue_after_s) == ([], None)


def test_a_pod_of_somebody_else_gives_no_verdict():
    world = job()
    name = world.begin()
    world.end({"open": 0})
    world.pods[name]["metadata"]["ownerReferences"][0]["uid"] = "u-another"
    world.at(SOON)
    assert world.told("Passed") == ("False", "NoResult")


def test_what_another_run_left_is_not_the_result_of_this_one():
    world = job()
    world.begin()
    world.maps["check-result"]["data"] = {"check-20251120120000": '{"open": 1}'}
    world.end("hello")
    world.at(SOON)
    assert world.told("Passed") == ("False", "NotAResult")


NO_RESULT = {
    "text": ("all is well", "NotAResult", "isn't a JSON object: 'all is well' (hint: it must be a JSON object such as"),
    "an empty object": ("{}\n", "NotAResult", "is an empty JSON object (hint: add at least one field)"),
    "a number": ("42", "NotAResult", "isn't a JSON object"),
    "a list": ("[1, 2]", "NotAResult", "isn't a JSON object"),
    "what somebody has cut off": ('{"open": [1, 2', "NotAResult", "nested 20 deep"),
    "what a node has cut off": ('{"x": "' + "y" * 4089, "NotAResult", "cut termination messages off after 4096 bytes"),
    "too much": (json.dumps({"x": "é" * MOST_BYTES}), "TooLarge", f"{MOST_BYTES} are the most"),
}


@pytest.mark.parametrize(("said", "reason", "words"), NO_RESULT.values(), ids=NO_RESULT)
def test_what_is_no_result_is_told_and_passes_nothing(said, reason, words):
    world = job()
    world.begin()
    left(world, said)
    world.end("")
    status = world.at(SOON)
    assert (world.told("Passed"), world.health, "result" in status) == (("False", reason), "Failed", False)
    assert words in world.message("Passed")
    assert len(json.dumps(status)) < 4096
    world.at(LATER)
    assert len(world.begun) == 1, "it isn't tried again until something is different"


ODD = {
    "no number": '{"ratio": NaN}',
    "a number beyond all": '{"ratio": 1e400}',
    "half a character": '{"name": "\\ud800"}',
    "brackets without end": '{"x": ' + "[" * 1900 + "]" * 1900 + "}",
    "too many brackets": '{"x": ' + "[" * 21 + "]" * 21 + "}",
}


@pytest.mark.parametrize("said", ODD.values(), ids=ODD)
def test_what_nobody_could_write_down_is_no_result_and_blocks_nothing(said):
    world = job(schedule="0 * * * *")
    world.begin("2026-11-20T13:00:00Z")
    world.end(said)
    orjson.dumps(world.at(world.now))
    assert world.told("Passed") == ("False", "NotAResult")
    assert "nested" in world.message("Passed")
    world.begin("2026-11-20T14:00:00Z")
    world.end(said, ok=False, reason="BackoffLimitExceeded")
    orjson.dumps(world.at(world.now))
    assert (len(world.begun), world.told("Passed")) == (2, ("False", "JobFailed"))


LARGE = {
    "what no integer holds": ('{"n": 18446744073709551616}', '{"n": -18446744073709551616}'),
    "the most that one holds": ('{"n": -9223372036854775808}', '{"n": 18446744073709551615}'),
    "further apart than numbers go": ('{"n": -1.7e308}', '{"n": 1.7e308}'),
}


@pytest.mark.parametrize(("first", "second"), LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("passes", ["", "result.n > 0 && (!result.compared || result.change.n > 0)"])
def test_numbers_of_any_size_are_a_result_and_compared_where_that_can_be_written(first, second, passes):
    world = job(schedule="0 * * * *", passes=passes)
    for hour, said in ((13, first), (14, second)):
        world.begin(f"2026-11-20T{hour}:00:00Z")
        world.end(said)
        orjson.dumps(world.at(world.now))
    assert world.cr["status"]["result"]["n"] == json.loads(second)["n"]
    assert len(world.begun) == 2


def test_a_result_may_use_names_that_mean_something_in_results_of_others():
    own = {"errors": ["x"], "requests": 2.5, "p99_ms": "slow", "p50_ms": True, "checks": {"db": "ok"}, "total": 3.5}
    world = job(passes="result.checks.db == 'ok' && result.errors[0] == 'x'")
    world.begin()
    world.end({**own, "change": "of mind", "compared": "never"})
    status = world.at(SOON)
    assert status["result"] == {**own, "compared": False}, "what is compared the Checkup says"
    assert status["history"] == [{"time": status["lastResultTime"], "passed": True}]
    assert world.told("Passed") == ("True", "Passed")


@pytest.mark.parametrize("errors", [2**53 + 1, -(2**53) - 1, 1.5])
def test_history_has_whole_numbers_as_far_as_the_server_takes_them(errors):
    world = job()
    world.begin()
    world.end({"errors": errors, "requests": 3, "p99_ms": 7})
    (line,) = world.at(SOON)["history"]
    assert (line["requests"], line["p99_ms"], "errors" in line) == (3, 7, False)


def test_the_custom_resource_definition_takes_whatever_a_result_has():
    schema = yaml_text.document((ROOT / "crds" / "checkups.checks.reconcile.dev.yaml").read_text())
    status = schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    result = status["properties"]["result"]
    assert result["x-kubernetes-preserve-unknown-fields"] is True
    assert result["properties"].keys() == {"compared", "change"}, "what the Checkup itself says of every result"


def test_a_job_that_never_ends_is_ended_by_its_deadline():
    world = job()
    world.begin()
    world.end("", ok=False, reason="DeadlineExceeded", message="Job was active longer than specified deadline")
    world.at(SOON)
    assert "DeadlineExceeded" in world.message("Passed")


def test_of_a_job_that_worked_until_its_deadline_nothing_is_said_of_waiting():
    world = job()
    name = world.begin()
    world.end("")
    world.pods[name]["status"] = {"containerStatuses": [{"name": "main", "state": {"running": {}}}]}
    world.jobs[name].pop("status")
    world.at(SOON)
    assert world.message("Running") == f"Job {name} is running"
    world.pods.clear()
    world.jobs[name]["status"] = {"conditions": [{"type": "FailureTarget", "status": "True"}]}
    world.at(SOON)
    world.end("", ok=False, reason="DeadlineExceeded")
    world.pods.clear()
    world.at(SOON)
    assert world.message("Passed") == f"Job {name}: DeadlineExceeded"


WAITING = {
    "its image": ({"reason": "ErrImagePull", "message": "no such image"}, "its pod waits: ErrImagePull: no such image"),
    "its pod": (None, "it waits for its pod (hint: kubectl describe job"),
}


@pytest.mark.parametrize(("waits", "words"), WAITING.values(), ids=WAITING)
def test_what_a_job_waited_for_in_vain_is_told_after_its_deadline(waits, words):
    world = job()
    name = world.begin()
    if waits:
        world.end("")
        pod = world.pods[name]
        pod["status"] = {"containerStatuses": [{"name": "main", "state": {"waiting": waits}}]}
        world.jobs[name].pop("status")
    world.at(SOON)
    assert words in world.message("Running")
    world.pods.clear()
    world.jobs[name]["status"] = {"conditions": [{"type": "FailureTarget", "status": "True"}]}
    world.at(SOON)
    assert words in world.message("Running")
    world.end("", ok=False, reason="DeadlineExceeded")
    world.pods.clear()
    world.at(SOON)
    assert "DeadlineExceeded" in world.message("Passed")
    assert f"; last seen: {words}" in world.message("Passed")


BAD = {
    "no containers": ({"spec": {}}, ".spec.job.template.spec.containers"),
    "nothing at all": ({}, ".spec.job.template.spec.containers"),
    "pods that are always restarted": (
        {"spec": {"containers": [MAIN], "restartPolicy": "Always"}},
        ".spec.job.template.spec.restartPolicy",
    ),
}


@pytest.mark.parametrize(("template", "field"), BAD.values(), ids=BAD)
def test_a_template_that_makes_no_sense_is_told_with_its_place(template, field):
    with pytest.raises(SpecError) as refused:
        job(template).at(SOON)
    assert refused.value.field == field
