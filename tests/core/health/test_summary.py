"""A set's health from its members' verdicts: what is counted, what is named, and when swings are told."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.health import Health, HealthStatus
from kubectl_reconcile.core.health.summary import (
    MOST_NAMED,
    HealthTally,
    Steadiness,
    health_below,
    member_health,
    worst_of,
)
from kubectl_reconcile.core.objects import ObjectRef
from tests.odd_json import objects

TIMES = [f"2026-11-20T12:{minute:02d}:00Z" for minute in range(60)]


def ref(name):
    return ObjectRef("apps", "Deployment", "shop", str(name))


def bad(message="0 of 1 replicas are available", status=HealthStatus.IN_PROGRESS):
    return Health(status, message)


GOOD = Health(HealthStatus.CURRENT)
HOLDS_UP = {HealthStatus.FAILED, HealthStatus.IN_PROGRESS, HealthStatus.TERMINATING, HealthStatus.NOT_FOUND}


@pytest.mark.parametrize("status", HealthStatus, ids=str)
def test_what_is_unknown_or_suspended_holds_nobody_up(status):
    tally = HealthTally()
    tally.note(ref("web"), Health(status, "so it is"), TIMES[0])
    summary = tally.summary()
    assert summary.is_healthy is (status not in HOLDS_UP)
    assert summary.counts == {status: 1}


def test_unknown_ones_are_named_though():
    tally = HealthTally()
    tally.note(ref("web"), Health(HealthStatus.UNKNOWN, "says nothing"), TIMES[0])
    (named,) = tally.summary().worst
    assert (named.ref, named.why) == (ref("web"), "says nothing")


def test_a_set_without_members_is_healthy():
    assert HealthTally().summary().told() == {"counts": {"Current": 0}, "unhealthy": []}, (
        "the server takes no empty map"
    )
    assert (HealthTally().summary().is_healthy, HealthTally().summary().sentence) == (True, "0 objects, none unhealthy")


def test_the_ten_worst_are_named_the_gravest_first_and_of_these_the_oldest():
    tally = HealthTally()
    for number in range(30):
        tally.note(ref(f"late-{number}"), bad(), TIMES[number + 10])
    tally.note(ref("old"), bad(), TIMES[1])
    tally.note(ref("broken"), bad("it crashed", HealthStatus.FAILED), TIMES[59])
    summary = tally.summary()
    assert [each.ref.name for each in summary.worst[:3]] == ["broken", "old", "late-0"]
    assert len(summary.worst) == MOST_NAMED
    assert summary.sentence == "Deployment.apps shop/broken: it crashed (and 31 more)"


def test_since_when_an_object_ails_is_kept_while_it_ails_and_over_a_restart():
    tally = HealthTally()
    tally.note(ref("web"), bad(), TIMES[0])
    tally.note(ref("web"), bad("1 of 3 replicas are available"), TIMES[1])
    assert tally.summary().worst[0].since == TIMES[0]
    again = HealthTally(HealthTally.since({"health": tally.summary().told()}))
    again.note(ref("web"), bad(), TIMES[2])
    assert again.summary().worst[0].since == TIMES[0]
    again.note(ref("web"), bad("it crashed", HealthStatus.FAILED), TIMES[3])
    assert again.summary().worst[0].since == TIMES[3]


def test_only_news_is_news():
    tally = HealthTally()
    assert tally.note(ref("web"), bad(), TIMES[0])
    assert not tally.note(ref("web"), bad(), TIMES[1])
    assert tally.note(ref("web"), bad("1 of 3"), TIMES[1])
    assert tally.note(ref("web"), GOOD, TIMES[2])
    assert not tally.note(ref("web"), Health(HealthStatus.CURRENT, "in other words"), TIMES[3])
    assert tally.note(ref("web"), None, TIMES[4])
    assert not tally.note(ref("web"), None, TIMES[5])
    assert (len(tally), tally.summary().counts) == (0, {})


def test_a_cause_is_told_as_long_as_the_object_ails():
    tally = HealthTally()
    assert not tally.blame(ref("web"), "pod web-1: CrashLoopBackOff"), "nobody knows it"
    tally.note(ref("web"), bad(), TIMES[0])
    assert tally.blame(ref("web"), "pod web-1: CrashLoopBackOff")
    assert not tally.blame(ref("web"), "pod web-1: CrashLoopBackOff")
    assert tally.summary().worst[0].why == "0 of 1 replicas are available; pod web-1: CrashLoopBackOff"
    tally.note(ref("web"), GOOD, TIMES[1])
    tally.note(ref("web"), bad(), TIMES[2])
    assert tally.summary().worst[0].why == "0 of 1 replicas are available"


FAILED, IN_PROGRESS = HealthStatus.FAILED, HealthStatus.IN_PROGRESS
BELOW = {
    "all is well below": (GOOD, {}, "Current"),
    "well itself, and something below isn't": (
        GOOD, {"web": bad("0 of 1")}, "InProgress: Deployment.apps shop/web: 0 of 1",
    ),
    "the gravest below is named": (
        GOOD, {"a": bad("0 of 1"), "b": bad("crashed", FAILED)}, "Failed: Deployment.apps shop/b: crashed",
    ),
    "worse itself": (bad("broken", FAILED), {"web": bad("0 of 1")}, "Failed: broken; Deployment.apps shop/web: 0 of 1"),
    "as bad itself": (bad("not yet"), {"web": bad("0 of 1")}, "InProgress: not yet; Deployment.apps shop/web: 0 of 1"),
    "it says so already": (
        bad("Deployment.apps shop/web isn't ready"), {"web": bad("0 of 1")}, "InProgress: Deployment.apps shop/web isn't ready",
    ),
    "suspended": (bad("by hand", HealthStatus.SUSPENDED), {"web": bad("0 of 1", FAILED)}, "Suspended: by hand"),
    "nobody can tell itself": (
        bad("silent", HealthStatus.UNKNOWN), {"web": bad("0 of 1")}, "InProgress: Deployment.apps shop/web: 0 of 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("own", "below", "told"), BELOW.values(), ids=BELOW)
def test_a_member_is_no_better_than_what_is_below_it(own, below, told):
    assert str(worst_of(own, {ref(name): found for name, found in below.items()})) == told


def test_what_is_below_counts_for_the_member_as_long_as_it_ails():
    tally = HealthTally()
    tally.note(ref("top"), GOOD, TIMES[0])
    assert not tally.note_below(ref("top"), ref("web"), GOOD)
    assert tally.note_below(ref("top"), ref("web"), bad())
    assert not tally.note_below(ref("top"), ref("web"), bad()), "the member need not be judged again"
    assert tally.note(ref("top"), GOOD, TIMES[1])
    assert tally.summary().counts == {IN_PROGRESS: 1}
    assert tally.below(ref("top")) == [ref("web")]
    assert tally.note_below(ref("top"), ref("web"), None)
    assert tally.note(ref("top"), GOOD, TIMES[2])
    assert tally.summary().is_healthy
    tally.note_below(ref("top"), ref("web"), bad())
    tally.note(ref("top"), None, TIMES[3])
    assert tally.note(ref("top"), GOOD, TIMES[4])
    assert tally.summary().is_healthy, "what was below one that is gone says nothing of its successor"


def test_below_a_member_a_job_may_run_and_what_goes_is_wanted_no_more():
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "x"},
        "status": {"startTime": TIMES[0], "active": 1},
    }
    assert health_below(HealthRules(), job).status is HealthStatus.CURRENT
    assert member_health(HealthRules(), job).status is IN_PROGRESS
    going = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "deletionTimestamp": TIMES[0]}}
    assert health_below(HealthRules(), going).status is HealthStatus.CURRENT
    assert member_health(HealthRules(), going).status is HealthStatus.TERMINATING


def test_a_rule_that_cannot_be_answered_is_told_as_long_as_it_cannot():
    tally, wrong = HealthTally(), replace(GOOD, fault="the rule 'self.x > 3' can't be evaluated: no such overload")
    assert tally.note(ref("web"), GOOD, TIMES[0])
    assert tally.note(ref("web"), wrong, TIMES[1])
    assert not tally.note(ref("web"), wrong, TIMES[2])
    assert tally.summary().is_healthy
    told = (
        "1 object, none unhealthy; Deployment.apps shop/web: the rule 'self.x > 3' can't be evaluated: no such overload"
    )
    assert tally.summary().sentence == told
    assert tally.note(ref("web"), GOOD, TIMES[3])
    assert tally.summary().sentence == "1 object, none unhealthy"


def test_what_is_told_is_bounded():
    tally = HealthTally()
    for number in range(100):
        tally.note(ref(number), bad("x" * 10_000), TIMES[0])
        tally.blame(ref(number), "y" * 10_000)
    told = tally.summary().told()
    assert len(told["unhealthy"]) == MOST_NAMED
    assert max(len(each["message"]) for each in told["unhealthy"]) == 512


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.none() | st.builds(Health, st.sampled_from(HealthStatus), st.text(max_size=2))
    )
)


@given(CHANGES)
def test_counts_are_those_of_the_last_verdicts_whatever_came_before(changes):
    tally, last = HealthTally(), {}
    for name, found in changes:
        tally.note(ref(name), found, TIMES[0])
        last[name] = found
        if found is None:
            del last[name]
    summary = tally.summary()
    assert summary.counts == Counter(each.status for each in last.values())
    assert {each.ref.name for each in summary.worst} == {
        name for name, each in last.items() if each.status not in {HealthStatus.CURRENT, HealthStatus.SUSPENDED}
    }


# --- members --------------------------------------------------------------------------------------------------------------------


def claim(phase):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "status": {"phase": phase}}


BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b", "generation": 1},
    "status": {"observedGeneration": 1, "currentHealthy": 0, "desiredHealthy": 1},
}


def test_a_job_has_to_complete_unless_it_is_suspended():
    def judged(spec, **status):
        live = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load"}, "spec": spec, "status": status}
        return member_health(HealthRules(), live).status

    began = {"startTime": "2026-11-20T12:00:00Z"}
    assert judged({}, **began) is HealthStatus.IN_PROGRESS
    assert judged({}, **began, conditions=[{"type": "Complete", "status": "True"}]) is HealthStatus.CURRENT
    assert judged({}, **began, conditions=[{"type": "Failed", "status": "True"}]) is HealthStatus.FAILED
    assert judged({"suspend": True}) is HealthStatus.SUSPENDED


def test_a_claim_has_to_be_bound_and_a_budget_is_about_others():
    assert member_health(HealthRules(), claim("Pending")).status is HealthStatus.IN_PROGRESS
    assert member_health(HealthRules(), claim("Bound")).status is HealthStatus.CURRENT
    assert HealthRules().judge(BUDGET).status is HealthStatus.IN_PROGRESS
    assert member_health(HealthRules(), BUDGET).status is HealthStatus.CURRENT


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
SYNCS = {
    "followed, and never looked at": ({"source": {"git": {}}}, {}, HealthStatus.IN_PROGRESS),
    "Ready": ({"source": {"git": {}}}, READY, HealthStatus.CURRENT),
    "suspended": ({"source": {"git": {}}, "suspend": True}, {}, HealthStatus.SUSPENDED),
    "applied by hand": ({}, {}, HealthStatus.CURRENT),
}


@pytest.mark.parametrize(("spec", "status", "verdict"), SYNCS.values(), ids=SYNCS)
def test_a_sync_among_the_members(spec, status, verdict):
    live = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "a"}, "spec": spec}
    assert member_health(HealthRules(), {**live, "status": status}).status is verdict


@given(objects())
def test_any_json_gives_a_verdict(manifest):
    assert member_health(HealthRules(), manifest).status in HealthStatus
    assert member_health(HealthRules(strict=True), manifest).status in HealthStatus


# --- swings -----------------------------------------------------------------------------------------------------------------------


def swings(*states):
    """Return for how long each of these (seconds, sound) isn't told as healthy."""
    steady = Steadiness()
    return [steady.left_s(is_sound=sound, now_s=now_s) for now_s, sound in states]


def test_a_set_that_was_ill_now_and_then_counts_as_healthy_at_once():
    states = [(0.0, True), (1.0, False), (5.0, True), (6.0, False), (9.0, True), (10.0, False), (11.0, True)]
    assert swings(*states) == [0.0] * 7


def test_one_that_falls_ill_again_and_again_has_to_be_healthy_for_longer_each_time():
    steady, holds = Steadiness(), []
    now_s = 0.0
    for _ in range(12):
        steady.left_s(is_sound=False, now_s=now_s)
        now_s += 0.5
        holds.append(hold := steady.left_s(is_sound=True, now_s=now_s))
        now_s += hold
        assert steady.left_s(is_sound=True, now_s=now_s) == 0.0
    assert holds == [0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


def test_falling_ill_while_it_is_not_told_as_healthy_is_no_further_fall():
    steady = Steadiness()
    for number, sound in zip(range(100), itertools.cycle([False, True]), strict=False):
        steady.left_s(is_sound=sound, now_s=number / 100)
    assert steady.falls() == 4, "after the fourth it has to hold, which it never did"


def test_falls_of_ten_minutes_ago_and_those_before_something_else_was_applied_are_forgiven():
    steady = Steadiness()
    for number in range(8):
        steady.left_s(is_sound=False, now_s=number * 100.0)
        steady.left_s(is_sound=True, now_s=number * 100.0 + 1)
        steady.left_s(is_sound=True, now_s=number * 100.0 + 99)
    steady.left_s(is_sound=False, now_s=2000.0)
    assert steady.left_s(is_sound=True, now_s=2001.0) == 0.0
    for _ in range(8):
        steady.forgive()
        steady.left_s(is_sound=False, now_s=2002.0)
        assert steady.left_s(is_sound=True, now_s=2003.0) == 0.0
