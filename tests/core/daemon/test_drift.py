"""Drift: what of a plan only puts it back, and how it is told."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.daemon.drift import drift_after, drift_note, with_drift, without_drift
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import DriftPolicy
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason

WEB, DB = ObjectRef("", "ConfigMap", "shop", "web"), ObjectRef("", "ConfigMap", "shop", "db")


def fields(*reasons, manager="by-hand"):
    return tuple(
        FieldChange(FieldPath.fields("data", f"key{number}"), "replace", 1, 2, reason, manager)
        for number, reason in enumerate(reasons)
    )


DRIFTED = Change(WEB, Op.UPDATE, fields=fields(Reason.DRIFT))
BY_GIT = Change(WEB, Op.UPDATE, fields=fields(Reason.GIT))
MIXED = Change(WEB, Op.UPDATE, fields=fields(Reason.GIT, Reason.DRIFT))
DELETED = Change(WEB, Op.CREATE)
OWNERSHIP = Change(WEB, Op.UPDATE)
NOTE = {WEB: "by-hand changed .data.key0"}
GONE = {WEB: "somebody deleted it"}

HELD = {
    "drift in a new revision": (DRIFTED, {}, True, NOTE),
    "drift in the same": (DRIFTED, {}, False, NOTE),
    "what Git changed in a new revision": (BY_GIT, {}, True, {}),
    "what differs in the same revision is drift, whatever the base says": (BY_GIT, {}, False, {WEB: "somebody changed its metadata"}),
    "an object that Git changed beside drift": (MIXED, {}, True, {}),
    "an object that is known to be deleted by hand": (DELETED, GONE, True, GONE),
    "an object that Git has anew": (DELETED, {}, True, {}),
    "an object missing in the same revision": (DELETED, {}, False, GONE),
    "mere ownership": (OWNERSHIP, NOTE, False, {}),
    "a deletion": (Change(WEB, Op.DELETE), {}, False, {}),
    "what can't be written anyway": (DRIFTED.gated(blocked="it is somebody's"), {}, False, {}),
    "what is as it should be again": (Change(WEB, Op.UNCHANGED), NOTE, True, {}),
}  # fmt: skip


@pytest.mark.parametrize(("change", "known", "is_new", "left"), HELD.values(), ids=HELD)
def test_drift_is_held_and_all_else_is_written(change, known, is_new, left):
    made, found = without_drift(Plan(None, "1", (change,)), known, is_new=is_new)
    assert found == left
    assert made.changes == ((change.gated(held=True),) if left else (change,))


def test_drift_of_objects_that_are_no_members_any_more_is_forgotten():
    assert without_drift(Plan(None, "1", ()), NOTE, is_new=False)[1] == {}


def test_drift_is_news_once_until_it_is_other_drift_or_none():
    found, news = drift_after([DRIFTED], {})
    assert (found, news) == (NOTE, tuple(NOTE.items()))
    assert drift_after([DRIFTED], found) == (NOTE, ())
    assert drift_after([DELETED], found) == (GONE, tuple(GONE.items()))
    assert drift_after([Change(WEB, Op.UNCHANGED)], found) == ({}, ())
    assert drift_after([OWNERSHIP], {**found, DB: "x"}) == ({DB: "x"}, ())


def test_a_note_names_who_and_what_but_not_all_of_it():
    many = Change(WEB, Op.UPDATE, fields=fields(*[Reason.DRIFT] * 6))
    assert drift_note(many) == "by-hand changed " + ", ".join(f".data.key{number}" for number in range(5))
    nobody = Change(WEB, Op.UPDATE, fields=fields(Reason.DRIFT, manager=""))
    assert drift_note(nobody) == "somebody changed .data.key0"


SYNCED, FAILED = Report(ConditionReason.SYNCED, "fine", "1"), Report(ConditionReason.FAILED, "no", "1")
TWO = {WEB: "somebody deleted it", DB: "by-hand changed .data"}
TOLD = {
    "put back": (SYNCED, DriftPolicy.CORRECT, TWO, "Synced", None),
    "reported": (SYNCED, DriftPolicy.REPORT, TWO, "Synced", 2),
    "asked about": (SYNCED, DriftPolicy.ASK, TWO, "Drifted", 2),
    "none to ask about": (SYNCED, DriftPolicy.ASK, {}, "Synced", 0),
    "worse than drift": (FAILED, DriftPolicy.ASK, TWO, "ApplyFailed", 2),
}


@pytest.mark.parametrize(("report", "policy", "drift", "reason", "sentences"), TOLD.values(), ids=TOLD)
def test_drift_that_is_left_is_in_the_report(report, policy, drift, reason, sentences):
    told = with_drift(report, policy, drift)
    assert (told.reason, told.revision) == (reason, "1")
    assert (None if told.drifted is None else len(told.drifted)) == sentences


def test_who_must_decide_is_told_the_first_and_how_many_more():
    told = with_drift(SYNCED, DriftPolicy.ASK, TWO)
    assert told.message == f"{DB}: by-hand changed .data (and 1 more); to revert this, run kubectl reconcile sync"
