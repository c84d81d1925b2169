"""Checkups on plain values: what is found, what changed, what passes, and when it is looked."""

import json

import pytest

from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.module_api import Context, Owned
from kubectl_reconcile.module_testing import asked
from kubectl_reconcile.modules.checkup import checkup, record
from tests.modules.checkup.world import World, deployment, role, service

LATER, LATER_STILL = "2026-11-20T12:01:00Z", "2026-11-20T12:02:00Z"


def test_a_namespace_in_which_nothing_is_found_passes():
    world = World(deployment(), service())
    status = world.look()
    assert (world.told("Passed"), world.health) == (("True", "Passed"), "Current")
    numbers = dict.fromkeys(("total", "high", "medium", "low", "new", "fixed", "unchanged"), 0)
    assert status["result"] == {**numbers, "compared": False}, "a map that becomes empty is refused by the server"
    assert [each["passed"] for each in status["history"]] == [True]


def test_findings_are_listed_with_the_most_severe_first():
    world = World(deployment(readinessProbe=None), role("*"), service(selector={"app": "nobody"}))
    status = world.look()
    assert world.checks == [
        ("Role.rbac.authorization.k8s.io/web", "rights-wildcard"),
        ("Service/web", "endpoints"),
        ("Deployment.apps/web", "probes"),
    ]
    assert status["result"]["checks"] == {"endpoints": 1, "probes": 1, "rights-wildcard": 1}
    assert (world.told("Passed"), world.health) == (("False", "Findings"), "Failed")
    assert "3 findings (1 high, 1 medium, 1 low); first Role" in world.message("Passed")


def test_a_result_is_compared_with_the_one_before():
    world = World(deployment(readinessProbe=None), role("*"))
    world.look()
    assert world.told("Regressed") == ("False", "NothingToCompareWith")
    world.change(deployment(readinessProbe=None), role("bind"))
    status = world.look(LATER)
    assert [status["result"][name] for name in ("new", "fixed", "unchanged")] == [1, 1, 1]
    assert [(each["check"], each.get("new", False)) for each in status["findings"]] == [
        ("rights-escalation", True),
        ("probes", False),
    ]
    assert [each["check"] for each in status["fixed"]] == ["rights-wildcard"]
    assert world.told("Regressed") == ("True", "NewFindings")
    assert "1 new, 1 fixed, 1 unchanged; first Role" in world.message("Regressed")
    world.change(deployment())
    assert world.look(LATER_STILL)["result"]["fixed"] == 2
    assert world.told("Regressed") == ("False", "NoNewFindings")
    assert [each["total"] for each in world.cr["status"]["history"]] == [2, 2, 0]


def test_a_result_that_stays_the_same_is_not_written_again():
    world = World(deployment(readinessProbe=None))
    before = world.look()
    assert world.look(LATER) == before
    assert world.wait_s is None, "a change wakes it"


def test_results_of_another_profile_are_not_compared():
    world = World(deployment(securityContext={}))
    world.look()
    world.change(deployment(securityContext={}), scan={"profile": "baseline"})
    status = world.look(LATER)
    assert (status["result"]["total"], status["result"]["compared"], status["fixed"]) == (0, False, [])
    assert world.told("Regressed") == ("False", "NothingToCompareWith")


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        ([{"check": "probes"}], {"rights-wildcard"}),
        ([{"kind": "Deployment.apps"}], {"rights-wildcard"}),
        ([{"kind": "Role", "name": "w*"}], {"probes"}),
        ([{"check": "rights-*", "name": "other"}], {"rights-wildcard", "probes"}),
        ([{"check": "rights-*"}, {"check": "probes", "reason": "it serves nobody"}], set()),
    ],
)
def test_what_is_excluded_is_not_found(exclude, left):
    world = World(deployment(readinessProbe=None), role("*"), scan={"profile": "restricted", "exclude": exclude})
    assert set(world.look()["result"].get("checks", ())) == left


@pytest.mark.parametrize(
    ("passes", "passed"),
    [
        ("result.high == 0", True),
        ("result.total < 1", False),
        ("result.checks['probes'] == 1 && !('limits' in result.checks)", True),
        ("result.checks['limits'] == 1", False),
        ("!('limits' in result.checks)", True),
    ],
)
def test_what_passes_is_asked_in_cel(passes, passed):
    world = World(deployment(readinessProbe=None), passes=passes)
    status = world.look()
    assert (world.told("Passed")[0] == "True") == passed == status["history"][-1]["passed"]
    assert world.health == ("Current" if passed else "Failed")


def test_another_question_is_asked_of_the_result_that_is_there():
    world = World(deployment(readinessProbe=None), passes="result.low == 0")
    scanned = world.look()["lastResultTime"]
    world.change(deployment(readinessProbe=None), passes="result.low == 1")
    assert world.look(LATER)["lastResultTime"] == scanned
    assert world.told("Passed") == ("True", "Passed")


def test_a_question_that_can_t_be_answered_passes_nothing_and_says_why():
    world = World(passes="result.total < 'none'")
    world.look()
    assert world.told("Passed") == ("False", "CannotBeJudged")
    assert world.message("Passed").startswith(".spec.passes: ")


BAD = {
    "CEL that is none": ({"passes": "result.total =="}, ".spec.passes"),
    "CEL that takes too long": ({"passes": "[1,2,3].all(a, [1,2,3].all(b, result.checks.all(c, result.checks.all(d, result.checks.all(e, c == d)))))"}, ".spec.passes"),
    "a day that never comes": ({"schedule": "0 0 31 2 *"}, ".spec.schedule"),
    "four fields": ({"schedule": "0 0 1 *"}, ".spec.schedule"),
    "a zone that nobody knows": ({"timeZone": "Europe/Atlantis"}, ".spec.timeZone"),
    "no such profile": ({"scan": {"profile": "tight"}}, ".spec.scan.profile"),
    "no such check": ({"scan": {"exclude": [{"kind": "Pod"}, {"check": "privilegd"}]}}, ".spec.scan.exclude[1].check"),
    "an entry without a word": ({"scan": {"exclude": [{"reason": "all of it"}]}}, ".spec.scan.exclude[0]"),
    "a history of nothing": ({"keep": 0}, ".spec.keep"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "field"), BAD.values(), ids=BAD)
def test_what_makes_no_sense_is_told_with_its_place(spec, field):
    with pytest.raises(SpecError) as refused:
        World(**spec).look()
    assert refused.value.field == field


def test_where_an_expression_stops_being_one_is_told_in_a_few_words():
    with pytest.raises(SpecError) as refused:
        World(passes="result.total ==").look()
    assert str(refused.value) == ".spec.passes: isn't CEL: line 1, column 16: Syntax error: mismatched input '<EOF>'"


# --- when ---


def test_with_a_schedule_it_is_looked_at_once_and_then_at_its_slots():
    world = World(schedule="0 3 * * *", timeZone="Europe/Berlin")
    status = world.look()
    assert (status["lastResultTime"], status["nextScheduleTime"]) == ("2026-11-20T12:00:00Z", "2026-11-21T02:00:00Z")
    assert world.wait_s == 3600
    world.change(role("*"))
    assert world.look("2026-11-21T01:59:30Z")["result"]["total"] == 0
    assert world.wait_s == 30
    status = world.look("2026-11-21T02:00:01Z")
    assert (status["result"]["new"], status["lastScheduleTime"]) == (1, "2026-11-21T02:00:00Z")
    assert world.look("2026-11-21T02:00:02Z") == status


def test_each_slot_is_in_the_history_even_where_nothing_changed_and_missed_ones_are_not():
    world = World(role("*"), schedule="0 * * * *", keep=3)
    world.look()
    world.look("2026-11-20T13:00:00Z")
    assert world.look("2026-11-20T18:30:00Z")["lastScheduleTime"] == "2026-11-20T18:00:00Z"
    assert [each["time"][11:16] for each in world.cr["status"]["history"]] == ["12:00", "13:00", "18:30"]
    assert world.told("Regressed") == ("False", "NoNewFindings")
    for hour in ("19", "20"):
        world.look(f"2026-11-20T{hour}:00:00Z")
    assert [each["time"][11:13] for each in world.cr["status"]["history"]] == ["18", "19", "20"]


def test_another_profile_does_not_wait_for_the_next_slot():
    world = World(deployment(securityContext={}), schedule="0 3 * * *", scan={"profile": "baseline"})
    assert world.look()["result"]["total"] == 0
    world.change(*world.objects, scan={"profile": "restricted"})
    assert world.look(LATER)["result"]["total"] > 0


def test_without_its_schedule_nothing_is_said_of_slots():
    world = World(schedule="0 3 * * *")
    world.look()
    world.look("2026-11-21T03:00:00Z")
    world.change(schedule="")
    assert not {"nextScheduleTime", "lastScheduleTime"} & {*world.look("2026-11-21T04:00:00Z")}


def test_what_is_suspended_keeps_its_result_and_its_verdict():
    world = World(role("*"), schedule="* * * * *")
    before = {**world.look()}
    world.change(suspend=True)
    status = world.look(LATER_STILL)
    assert [status[name] for name in ("result", "lastResultTime")] == [
        before[name] for name in ("result", "lastResultTime")
    ]
    assert ("nextScheduleTime" in status, world.wait_s) == (False, None)
    assert world.told("Passed") == ("False", "Findings")


# --- what can't be read, what is too much ---


def test_where_a_kind_can_t_be_read_nothing_passes_and_the_last_result_stays():
    world = World(deployment())
    before = world.look()
    world.unread = {"Role.rbac.authorization.k8s.io": "roles is forbidden"}
    status = world.look(LATER)
    assert status["result"] == before["result"]
    assert world.told("Stalled") == ("True", "NotReadable")
    assert world.told("Passed") == ("Unknown", "NotReadable")
    assert (
        "Role.rbac.authorization.k8s.io: roles is forbidden (hint: to give the module these rights, run kubectl reconcile grant"
        in world.message("Stalled")
    )
    assert (world.wait_s, world.health) == (30, "Failed")
    world.unread = {}
    world.look(LATER_STILL)
    assert (world.told("Stalled")[0], world.told("Passed")[0], world.health) == ("False", "True", "Current")


def test_a_list_that_would_be_too_long_ends_and_what_is_new_is_known_all_the_same():
    many = [role("*", name=f"role-{number:04d}") for number in range(2000)]
    world = World(*many)
    status = world.look()
    listed = len(status["findings"])
    assert len(json.dumps(status["findings"])) < 64 * 1024 < len(json.dumps(status["findings"])) * 2
    assert (status["result"]["total"], listed + status["notListed"]) == (2000, 2000)
    world.change(*many[1:], role("bind", name="role-9999"))
    status = world.look(LATER)
    assert [status["result"][name] for name in ("new", "fixed", "unchanged")] == [1, 1, 1999]
    assert [each["object"] for each in status["fixed"]] == ["Role.rbac.authorization.k8s.io/role-0000"]
    assert len(json.dumps(status)) < 160 * 1024


def test_of_more_findings_than_are_kept_nobody_says_which_are_new(monkeypatch):
    monkeypatch.setattr(record, "_MOST_PRINTS", 20)
    many = [role("*", name=f"role-{number:02d}") for number in range(21)]
    world = World(*many[:10])
    world.look()
    world.change(*many)
    status = world.look(LATER)
    assert (status["result"]["compared"], "fingerprints" in status) == (False, False)
    world.change(*many[:20])
    assert world.look(LATER_STILL)["result"]["compared"] is False
    world.change(*many[:19])
    assert world.look("2026-11-20T12:03:00Z")["result"]["fixed"] == 1


@pytest.mark.parametrize("odd", [7, "%%%", "AAAA", None, ["x"]])
def test_whatever_somebody_writes_into_the_status_is_read(odd):
    world = World(role("*"))
    world.look()
    world.cr["status"] |= {"fingerprints": odd, "findings": odd, "history": odd, "result": odd, "digest": "x"}
    assert world.look(LATER)["result"]["total"] == 1


def test_a_result_that_somebody_has_made_huge_is_not_asked():
    world = World(passes="result.checks.all(a, result.checks.all(b, a + b != ''))")
    status = world.look()
    status["result"]["checks"] = {f"check-{number}": 1 for number in range(20_000)}
    world.look()
    assert (world.told("Passed"), world.health) == (("False", "CannotBeJudged"), "Failed")
    assert world.message("Passed") == ".spec.passes would take too long for a result of this size"


def test_it_is_pure():
    world = World(deployment(), role("*"), schedule="0 3 * * *", passes="result.high == 0")
    world.look()
    asked(checkup, world.cr, Owned(), {}, Context(LATER, "checkup", world.cr))
