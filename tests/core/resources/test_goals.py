"""What people wait for of a Sync: when it is there, and what it lacks."""

from __future__ import annotations

import pytest
from hypothesis import given

from kubectl_reconcile.core.resources.goals import Goal, is_reached, lack_of, was_tried
from tests.odd_json import objects, statuses

LACKS = "Deployment.apps shop/web: 0 of 1 replicas are available"


def sync(*conditions, generation=2, **metadata):
    told = [
        {"type": type_, "status": status, "reason": reason, "message": message, "observedGeneration": observed}
        for type_, status, reason, message, observed in conditions
    ]
    named = {"name": "shop", "namespace": "shop", "generation": generation, **metadata}
    return {"metadata": named, "status": {"conditions": told}}


def synced(status="True", reason="Synced", message="", observed=2):
    return "Synced", status, reason, message, observed


def healthy(status="True", reason="Healthy", message="", observed=2):
    return "Healthy", status, reason, message, observed


def ready(status="True", reason="Synced", message="", observed=2):
    return "Ready", status, reason, message, observed


WELL = sync(synced(), healthy(), ready())
LATE = sync(synced(), healthy("False", "InProgress", LACKS), ready("False", "InProgress", LACKS))
HELD = sync(synced("False", "Held", "2 deletions wait"), healthy(), ready("False", "Held", "2 deletions wait"))
UNWATCHED = sync(synced(), ready())
OLD = sync(synced(observed=1), healthy(observed=1), ready(observed=1))

TABLE = {
    "all is well": (WELL, {Goal.HEALTHY, Goal.SYNCED, Goal.READY}),
    "applied, and not well yet": (LATE, {Goal.SYNCED}),
    "well, and not applied": (HELD, set()),
    "applied, and nobody watches": (UNWATCHED, {Goal.SYNCED, Goal.READY}),
    "of an older spec": (OLD, set()),
    "nothing told yet": (sync(), set()),
    "gone": (None, {Goal.DELETED}),
}


@pytest.mark.parametrize(("live", "reached"), TABLE.values(), ids=TABLE)
def test_a_goal_is_reached_when_what_it_asks_is_true_of_the_newest_spec(live, reached):
    assert {goal for goal in Goal if is_reached(live, goal)} == reached


LACKING = {
    "not well": (LATE, Goal.HEALTHY, ("InProgress", LACKS)),
    "not applied comes first": (HELD, Goal.HEALTHY, ("Held", "2 deletions wait")),
    "not Ready": (LATE, Goal.READY, ("InProgress", LACKS)),
    "nobody watches": (UNWATCHED, Goal.HEALTHY, ("", "no daemon has reported on it yet")),
    "of an older spec": (OLD, Goal.SYNCED, ("", "no daemon has processed its newest spec yet")),
    "nobody has deleted it": (WELL, Goal.DELETED, ("Synced", "nobody has deleted it")),
    "it can't go": (
        sync(ready("False", "DeletionRefused", "it may not"), deletionTimestamp="2026-11-20T12:00:00Z"),
        Goal.DELETED,
        ("DeletionRefused", "it may not"),
    ),
}


@pytest.mark.parametrize(("live", "goal", "lack"), LACKING.values(), ids=LACKING)
def test_what_is_lacking_is_told_with_its_reason(live, goal, lack):
    assert lack_of(live, goal) == lack


@given(live=objects(), status=statuses)
def test_whatever_a_status_says_there_is_an_answer(live, status):
    for goal in Goal:
        assert is_reached({**live, "status": status}, goal) in {True, False}
        assert all(isinstance(each, str) for each in lack_of({**live, "status": status}, goal))


REVISIONS = {
    "tried": ({"lastAttemptedRevision": "c0ffee"}, True),
    "looked at, and nothing to be done": ({"lastAttemptedRevision": "beaded", "observedRevision": "c0ffee"}, True),
    "another one": ({"lastAttemptedRevision": "beaded", "observedRevision": "beaded"}, False),
    "no revision at all": ({"lastAttemptedRevision": "", "observedRevision": 7}, False),
    "nothing told": ({}, False),
}


@pytest.mark.parametrize(("status", "tried"), REVISIONS.values(), ids=REVISIONS)
def test_a_commit_counts_as_tried_when_all_that_it_asks_for_was(status, tried):
    assert was_tried({"status": status}, "c0ff") is tried


CHARTS = {
    "its version": ("1.2.3", True),
    "its version and the first digits of its digest": ("1.2.3@sha256:abab", True),
    "the first digits of its version": ("1.2", False),
    "another digest": ("1.2.3@sha256:ff", False),
    "its digest": ("sha256:abab", True),
    "another digest alone": ("sha256:ff", False),
}


@pytest.mark.parametrize(("wanted", "tried"), CHARTS.values(), ids=CHARTS)
def test_a_chart_counts_as_tried_by_its_whole_version(wanted, tried):
    assert was_tried({"status": {"lastAttemptedRevision": f"1.2.3@sha256:{'ab' * 32}"}}, wanted) is tried


def test_a_condition_without_a_message_is_told_by_its_reason():
    assert lack_of(sync(synced("False", "Held")), Goal.SYNCED) == ("Held", "Held")
