"""Synced, Healthy, Ready, Reconciling and Stalled: what each says in which case, and what it costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.health.summary import Ailment, HealthSummary
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.status import (
    ConditionReason,
    Counts,
    Report,
    health_status,
    passed_before,
    reconciling,
    sync_status,
    was_ready,
)
from tests.odd_json import statuses, values

FIRST, LATER = "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"
WEB = ObjectRef("apps", "Deployment", "shop", "web")
WELL = HealthSummary({HealthStatus.CURRENT: 3, HealthStatus.UNKNOWN: 1, HealthStatus.SUSPENDED: 1})
LAGS = HealthSummary(
    {HealthStatus.CURRENT: 2, HealthStatus.IN_PROGRESS: 1},
    (Ailment(WEB, HealthStatus.IN_PROGRESS, "0 of 1 replicas are available", FIRST),),
)
BROKEN = HealthSummary(
    {HealthStatus.CURRENT: 2, HealthStatus.FAILED: 2},
    (Ailment(WEB, HealthStatus.FAILED, "pod web-1: CrashLoopBackOff: back-off 40s", FIRST),),
)


def report(reason):
    return Report(reason, f"it is {reason}", "c0ffee", Counts(total=3))


def told(status):
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def after(reason, health, before=None, *, generation=1, now=FIRST):
    return sync_status(before or {}, report(reason), generation=generation, requested_at="", now=now, health=health)


AS_SYNCED = ConditionReason.SYNCED
LATE, IDLE = ("True", "InProgress"), ("False", "Idle")
FINE = ("False", "NotStalled")
TABLE = {
    "all is well": (AS_SYNCED, WELL, "True", "True", ("True", "Synced"), IDLE, FINE),
    "a member lags": (AS_SYNCED, LAGS, "True", "False", ("False", "InProgress"), LATE, FINE),
    "a member failed": (AS_SYNCED, BROKEN, "True", "False", ("False", "Failed"), IDLE, ("True", "Failed")),
    "held, and well": (ConditionReason.HELD, WELL, "False", "True", ("False", "Held"), IDLE, ("True", "Held")),
    "held, and broken": (ConditionReason.HELD, BROKEN, "False", "False", ("False", "Held"), IDLE, ("True", "Held")),
    "drift to ask about": (
        ConditionReason.DRIFTED, LAGS, "False", "False", ("False", "Drifted"), IDLE, ("True", "Drifted"),
    ),
    "the source can't be read": (
        ConditionReason.SOURCE, WELL, "False", "True", ("False", "SourceUnavailable"), IDLE, FINE,
    ),
    "suspended, and broken": (
        ConditionReason.SUSPENDED, BROKEN, "False", "False", ("False", "Suspended"), IDLE, FINE,
    ),
    "it waits for itself": (
        ConditionReason.CYCLE, WELL, "False", "True", ("False", "DependencyCycle"), IDLE, ("True", "DependencyCycle"),
    ),
    "health isn't waited for": (
        AS_SYNCED, replace(BROKEN, is_awaited=False), "True", "False", ("True", "Synced"), IDLE, FINE,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "health", "synced", "healthy", "ready", "busy", "stalled"), TABLE.values(), ids=TABLE
)
def test_what_each_condition_says(reason, health, synced, healthy, ready, busy, stalled):
    found = told(after(reason, health))
    assert (found["Synced"], found["Healthy"][0]) == ((synced, reason.value), healthy)
    assert (found["Ready"], found["Reconciling"], found["Stalled"]) == (ready, busy, stalled)


@pytest.mark.parametrize("reason", ConditionReason, ids=str)
@pytest.mark.parametrize("health", [WELL, LAGS, BROKEN, replace(BROKEN, is_awaited=False)])
def test_news_of_members_leads_to_what_a_pass_would_have_told(reason, health):
    before = after(reason, WELL)
    news = health_status(before, health, now=LATER)
    passed = after(reason, health, before, now=LATER)
    assert told(news) == told(passed)
    assert news["health"] == passed["health"]


def test_a_member_that_ails_is_named_with_its_reason_and_how_many_there_are_besides():
    ready = next(each for each in after(AS_SYNCED, BROKEN)["conditions"] if each["type"] == "Ready")
    assert ready["message"] == "Deployment.apps shop/web: pod web-1: CrashLoopBackOff: back-off 40s (and 1 more)"


def test_the_counts_and_the_worst_are_in_the_status():
    assert after(AS_SYNCED, BROKEN)["health"] == {
        "counts": {"Current": 2, "Failed": 2},
        "unhealthy": [
            {
                "object": "Deployment.apps shop/web",
                "health": "Failed",
                "message": "pod web-1: CrashLoopBackOff: back-off 40s",
                "since": FIRST,
            }
        ],
    }


def test_what_does_not_change_costs_no_write():
    before = after(AS_SYNCED, LAGS)
    assert health_status(before, LAGS, now=LATER) == before
    assert after(AS_SYNCED, LAGS, before, now=LATER) == before


def test_news_of_members_speaks_of_the_spec_that_the_last_pass_spoke_of():
    before = after(AS_SYNCED, LAGS, generation=4)
    ready = next(each for each in health_status(before, WELL, now=LATER)["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["observedGeneration"], ready["lastTransitionTime"]) == ("True", 4, LATER)


def test_a_pass_under_way_stays_under_way_whatever_members_do():
    busy = reconciling(after(AS_SYNCED, WELL), "3 objects to write at c0ffee", generation=1, now=FIRST)
    for health in (LAGS, BROKEN, WELL):
        assert told(health_status(busy, health, now=LATER))["Reconciling"] == ("True", "Applying")


def test_before_the_first_pass_there_is_nothing_to_tell():
    assert health_status({}, BROKEN, now=FIRST) == {}


def test_where_nobody_watches_the_members_any_more_nothing_is_claimed_of_them():
    status = after(AS_SYNCED, None, after(AS_SYNCED, BROKEN))
    assert (told(status)["Healthy"], told(status)["Ready"]) == (("Unknown", "NotWatched"), ("True", "Synced"))
    assert "health" not in status
    assert "Healthy" not in told(after(AS_SYNCED, None))


# --- for whoever depends on it ------------------------------------------------------------------------------------------------


def live(status, generation=1):
    return {"metadata": {"name": "base", "generation": generation}, "status": status}


def test_a_sync_was_ready_once_it_is_and_stays_so_when_members_ail_later():
    assert not was_ready(live(after(AS_SYNCED, LAGS)))
    ready = after(AS_SYNCED, WELL)
    assert was_ready(live(ready))
    assert was_ready(live(health_status(ready, BROKEN, now=LATER)))
    assert was_ready(live(after(ConditionReason.SOURCE, WELL, ready)))


def test_what_a_sync_was_at_another_revision_or_spec_says_nothing_of_this_one():
    ready = after(AS_SYNCED, WELL)
    assert not was_ready(live(ready, generation=2))
    newer = sync_status(
        ready, replace(report(AS_SYNCED), revision="facade"), generation=1, requested_at="", now=LATER, health=LAGS
    )
    assert not was_ready(live(newer))
    assert not was_ready(live(after(ConditionReason.WAITING, WELL, ready)))
    assert not was_ready(live({}))


def test_what_was_tried_by_this_spec_was_let_through():
    tried = live(after(ConditionReason.FAILED, LAGS, generation=2))
    assert passed_before(tried, 2) == "c0ffee"
    assert passed_before(tried, 3) == ""
    assert passed_before(None, 2) == ""
    waits = sync_status(
        {}, Report(ConditionReason.WAITING, "waits"), generation=2, requested_at="", now=FIRST, health=WELL
    )
    assert passed_before(live(waits), 2) == ""


@given(status=statuses)
def test_whatever_stands_in_a_status_is_read(status):
    was_ready({"metadata": {"generation": 1}, "status": status})
    passed_before({"status": status}, 1)
    if isinstance(status, dict):
        health_status(status, BROKEN, now=LATER)


@given(values, values)
def test_whatever_stands_in_the_conditions_of_a_status_is_read(synced, ready):
    conditions = [{"type": "Synced", "status": synced, "reason": ready, "observedGeneration": ready}]
    conditions += [{"type": "Ready", "status": ready, "observedGeneration": synced}]
    status = health_status({"conditions": conditions}, WELL, now=LATER)
    assert told(status)["Healthy"] == ("True", "Healthy")
