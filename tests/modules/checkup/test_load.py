"""Checkups that send load, on plain values: when a Job begins, what it may ask, and what becomes of what it tells."""

import pytest

from kubectl_reconcile.core.module.inputs import CEILINGS
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.module_testing import asked
from kubectl_reconcile.modules.checkup.load import LoadWish
from tests.modules.checkup.jobs import RESULT, WEB, Jobs
from tests.modules.checkup.world import service

SOON, LATER, LATER_STILL = "2026-11-20T12:01:00Z", "2026-11-20T12:10:00Z", "2026-11-20T12:20:00Z"
LOAD = {"service": "web", "port": 80, "path": "/cart", "ratePerSecond": 50, "durationSeconds": 20, "connections": 4}


def load(*around, **more):
    return Jobs(*(around or (WEB,)), **{"load": LOAD, **more})


def test_without_a_schedule_load_is_sent_once_for_each_spec():
    world = load()
    first = world.begin()
    assert (world.told("Running"), world.told("Passed"), world.health) == (
        ("True", "JobAtWork"),
        ("Unknown", "NoResult"),
        "InProgress",
    )
    world.end()
    status = world.at(SOON)
    assert status["result"] == {**RESULT, "compared": False}
    assert (world.told("Passed"), world.told("Running"), world.health) == (
        ("True", "Passed"),
        ("False", "Idle"),
        "Current",
    )
    assert world.at(LATER) == status, "it is done"
    world.change(load={**LOAD, "ratePerSecond": 60})
    assert world.begin(LATER) != first
    world.end()
    assert world.at(LATER)["result"]["compared"] is False, "another rate is another check"
    world.change(load=LOAD)
    assert world.begin(LATER_STILL) == first, "an occasion has one name forever"
    assert len(world.jobs) == 1, "that of the last run stays, as long as there is no other"


def test_the_job_asks_the_service_of_this_namespace_and_runs_as_nobody():
    world = load(deadlineSeconds=99)
    world.at(SOON, asked)
    (job,) = world.jobs.values()
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"][:2] == ["load", "http://web.shop.svc:80/cart"]
    assert {"--rate=50", "--duration=20s", "--connections=4"} < set(container["args"])
    assert "--connect-to=10.96.0.7" in container["args"], (
        "by its name, the Service could stand for something else by then"
    )
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["backoffLimit"]) == (99, 0)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False


def test_a_slot_begins_one_job_and_missed_ones_are_not_made_up_for():
    world = load(schedule="0 * * * *")
    status = world.at(SOON)
    assert (world.begun, status["nextScheduleTime"]) == ([], "2026-11-20T13:00:00Z")
    world.begin("2026-11-20T13:00:02Z")
    assert world.begun == ["check-20261120130000"]
    world.end(at="2026-11-20T13:00:40Z")
    status = world.at("2026-11-20T13:00:41Z")
    assert (status["lastScheduleTime"], status["result"]["p99_ms"]) == ("2026-11-20T13:00:00Z", 8.25)
    world.at("2026-11-20T18:30:00Z")
    assert len(world.begun) == 1, "nobody was there for five slots, and the last is half an hour ago"
    world.begin("2026-11-20T19:04:00Z")
    assert world.begun[1:] == ["check-20261120190000"], "a few minutes late is in time"


def test_a_slot_that_comes_while_a_job_is_at_work_is_left_out():
    world = load(schedule="* * * * *")
    world.begin("2026-11-20T12:05:01Z")
    world.at("2026-11-20T12:07:30Z")
    world.end(at="2026-11-20T12:07:40Z")
    status = world.at("2026-11-20T12:07:41Z")
    assert (len(world.begun), status["lastScheduleTime"]) == (1, "2026-11-20T12:07:00Z")
    world.begin("2026-11-20T12:08:00Z")
    assert world.begun[1:] == ["check-20261120120800"]


def test_a_daemon_that_was_killed_finds_its_job_again():
    world = load(schedule="0 * * * *")
    world.at("2026-11-20T13:00:02Z")
    del world.cr["status"]  # it was killed before it could write
    world.at("2026-11-20T13:00:09Z")
    assert len(world.begun) == 1
    world.end(at="2026-11-20T13:00:40Z")
    del world.cr["status"]
    assert world.at("2026-11-20T13:01:00Z")["result"]["requests"] == 300
    world.jobs.clear()  # by hand: what was done stays done
    world.at("2026-11-20T13:02:00Z")
    assert (len(world.begun), world.cr["status"]["result"]["requests"]) == (1, 300)


def test_a_result_is_compared_with_the_one_before():
    world = load(schedule="0 * * * *", passes="result.errors == 0 && (!result.compared || result.change.p99_ms < 50)")
    world.begin("2026-11-20T13:00:00Z")
    world.end()
    world.at(world.now)
    assert world.told("Regressed") == ("False", "NothingToCompareWith")
    world.begin("2026-11-20T14:00:00Z")
    world.end({**RESULT, "p50_ms": 1.25, "p99_ms": 9.0})
    status = world.at(world.now)
    assert status["result"]["change"] == {"requests": 0, "errors": 0, "p50_ms": -0.25, "p99_ms": 0.75}
    assert world.told("Regressed") == ("False", "NotWorse"), "less than a quarter is chance"
    world.begin("2026-11-20T15:00:00Z")
    world.end({**RESULT, "p99_ms": 80.0})
    status = world.at(world.now)
    assert (world.told("Regressed"), world.told("Passed")) == (("True", "Worse"), ("False", "NotPassed"))
    assert "p99 80.0 ms, 0 of 300 requests failed; before, p50 1.25 ms, p99 9.0 ms" in world.message("Regressed")
    assert [(each["p99_ms"], each["passed"]) for each in status["history"]] == [
        (8.25, True),
        (9.0, True),
        (80.0, False),
    ]


@pytest.mark.parametrize(
    ("passes", "result", "passed"),
    [
        ("", RESULT, "True"),
        ("", {**RESULT, "errors": 1}, "False"),
        ("result.p99_ms < 200 && result.errors == 0", RESULT, "True"),
        ("result.p99_ms < 8", RESULT, "False"),
        ("result.statuses['200'] == result.requests", RESULT, "True"),
        ("result.p99 < 200", RESULT, "False"),
        ("result.p99_ms < 'fast'", RESULT, "False"),
    ],
)
def test_what_passes(passes, result, passed):
    world = load(passes=passes)
    world.begin()
    world.end(result)
    world.at(SOON)
    assert world.told("Passed")[0] == passed
    assert world.cr["status"]["history"][0]["passed"] is (passed == "True")


FAILED = {
    "its Job had no more time": ({"ok": False, "said": "", "reason": "DeadlineExceeded", "message": "active too long"}, "JobFailed", "DeadlineExceeded: active too long"),
    "its program fell over": ({"ok": False, "said": "Traceback: no", "reason": "BackoffLimitExceeded"}, "JobFailed", "BackoffLimitExceeded; Traceback: no"),
    "it told something else": ({"said": "hello"}, "NotAResult", "'hello'"),
    "its result was cut off": ({"said": '{"requests": 3, "err'}, "NotAResult", "'{\"requests\": 3, \"err'"),
    "it told another result": ({"said": '{"requests": "many"}'}, "NotAResult", "many"),
}  # fmt: skip


@pytest.mark.parametrize(("end", "reason", "words"), FAILED.values(), ids=FAILED)
def test_a_run_that_tells_no_result_passes_nothing_and_the_result_before_stays(end, reason, words):
    world = load(schedule="0 * * * *")
    world.begin("2026-11-20T13:00:00Z")
    world.end()
    world.at(world.now)
    world.begin("2026-11-20T14:00:00Z")
    world.end(**end)
    status = world.at(world.now)
    assert (world.told("Passed"), world.health) == (("False", reason), "Failed")
    assert words in world.message("Passed")
    assert status["result"]["p99_ms"] == 8.25
    assert (status["history"][-1]["passed"], "failed" in status["history"][-1]) == (False, True)
    world.begin("2026-11-20T15:00:00Z")
    world.end()
    assert "failure" not in world.at(world.now)
    assert world.cr["status"]["result"]["compared"] is True


def test_words_that_come_after_the_job_is_done_are_waited_for_and_not_forever():
    world = load()
    name = world.begin()
    world.end()
    pod = world.pods.pop(name)
    world.at("2026-11-20T12:00:05Z")
    assert (world.told("Running")[0], "result" in world.cr["status"]) == ("True", False)
    world.pods[name] = pod
    assert world.at("2026-11-20T12:00:09Z")["result"]["requests"] == 300
    world.change(load={**LOAD, "path": "/"})
    name = world.begin(SOON)
    world.end()
    del world.pods[name]
    world.at(LATER)
    assert world.told("Passed") == ("False", "NoResult")


IN_THE_WAY = {
    "there is no Service": ([service(name="other")], ".spec.load.service: there is no Service web"),
    "it has no such port": ([service(ports=[{"port": 8080}])], ".spec.load.port: Service web has no port 80 (hint: it has 8080)"),
    "it stands for a name elsewhere": ([service(ports=[{"port": 80}], type="ExternalName")], "selects no pods"),
    "it has no address": ([service(ports=[{"port": 80}], clusterIP="None")], "has no address of its own"),
    "somebody writes its endpoints": ([service(ports=[{"port": 80}], selector={})], "selects no pods"),
}  # fmt: skip


@pytest.mark.parametrize(("around", "words"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_is_in_the_way_is_told_with_its_field_and_nothing_begins(around, words):
    world = load(*around)
    world.at(SOON)
    assert (world.begun, world.told("Stalled"), world.health) == ([], ("True", "InTheWay"), "Failed")
    assert words in world.message("Stalled")
    world.around = [WEB]
    world.begin(LATER)
    assert (len(world.begun), world.told("Stalled")) == (1, ("False", "AsExpected"))


def test_who_may_not_see_services_asks_none():
    world = load()
    world.unread = {"Service": "services is forbidden"}
    world.at(SOON)
    assert (world.begun, world.told("Stalled")[0]) == ([], "True")


BAD = {
    "nothing is asked for": ({"load": None}, ".spec"),
    "two things are": ({"scan": {}}, ".spec"),
    "a name that leads elsewhere": ({"load": {**LOAD, "service": "web.other"}}, ".spec.load.service"),
    "a path that isn't one": ({"load": {**LOAD, "path": "@elsewhere/"}}, ".spec.load.path"),
    "a path with a line break": ({"load": {**LOAD, "path": "/\r\nHost: x"}}, ".spec.load.path"),
    "a port that isn't one": ({"load": {**LOAD, "port": 0}}, ".spec.load.port"),
    "a rate above the ceiling": ({"load": {**LOAD, "ratePerSecond": 1001}}, ".spec.load.ratePerSecond"),
    "connections above it": ({"load": {**LOAD, "connections": 101}}, ".spec.load.connections"),
    "a time above it": ({"load": {**LOAD, "durationSeconds": 601}}, ".spec.load.durationSeconds"),
    "a deadline of nothing": ({"deadlineSeconds": 1}, ".spec.deadlineSeconds"),
    "a day that never comes": ({"schedule": "0 0 31 2 *"}, ".spec.schedule"),
    "CEL that is none": ({"passes": "result.errors =="}, ".spec.passes"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "field"), BAD.values(), ids=BAD)
def test_what_makes_no_sense_is_told_with_its_place(spec, field):
    with pytest.raises(SpecError) as refused:
        load(**spec).at(SOON)
    assert refused.value.field == field


def test_ceilings_are_the_daemons():
    world = load(load={**LOAD, "ratePerSecond": 5000})
    with pytest.raises(SpecError, match=r"1000 or less here, not 5000 \(hint: .*--load-max-rate\)"):
        world.at(SOON)
    world.ceilings = {**CEILINGS, "--load-max-rate": 5000}
    world.begin()


def test_what_is_suspended_begins_nothing_and_a_job_at_work_ends():
    world = load(schedule="0 * * * *")
    world.begin("2026-11-20T13:00:00Z")
    world.change(suspend=True)
    world.end()
    status = world.at("2026-11-20T14:00:01Z")
    assert (status["result"]["requests"], "nextScheduleTime" in status) == (300, False)
    assert len(world.begun) == 1
    assert world.outcome.requeue_after_s is None


def test_a_check_of_another_kind_begins_with_nothing():
    world = load()
    world.begin()
    world.end()
    world.at(SOON)
    world.change(load=None, scan={"profile": "baseline"})
    status = world.at(LATER)
    assert (len(status["history"]), status["result"]["compared"], world.jobs) == (1, False, {})
    world.change(load=LOAD, scan=None)
    world.begin(LATER_STILL)
    assert world.told("Passed") == ("Unknown", "NoResult")


def test_the_deadline_leaves_room_for_all_that_is_given_up():
    wish = LoadWish("web", 80, duration_seconds=60, timeout_seconds=10)
    assert wish.deadline_s > 60 + 2 * 10


@pytest.mark.parametrize("odd", [7, "x", ["x"], {"p50_ms": "fast", "change": 3}])
def test_whatever_somebody_writes_into_the_status_is_read(odd):
    world = load(schedule="0 * * * *")
    world.begin("2026-11-20T13:00:00Z")
    world.end()
    world.at(world.now)
    world.cr["status"] |= {"result": odd, "history": odd, "failure": odd}
    world.begin("2026-11-20T14:00:00Z")
    world.end()
    assert world.at(world.now)["result"]["requests"] == 300
