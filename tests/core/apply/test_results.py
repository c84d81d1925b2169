"""How a plan was carried out -> the report of the pass: its reason, its sentence, its counts."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.apply.results import Result, ResultState, report_of, untouched, verdicts_of
from kubectl_reconcile.core.objects import ObjectRef, Problem, Severity
from kubectl_reconcile.core.planning.hold import Hold, Marked, approval_of
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.resources.status import ConditionReason
from tests.core.planning.changes import a_change


def ref(name):
    return ObjectRef("", "ConfigMap", "shop", name)


def change(op, name="a", **facts):
    return a_change(ref(name), op, **facts)


def plan(*changes, **facts):
    return Plan(None, "3f9c2e1", changes, **facts)


def done(op, name="a", *, wrote=True, live=None, **facts):
    return Result(change(op, name, **facts), ResultState.SUCCEEDED, wrote=wrote, live=live)


def refused(name="a", why="no such thing"):
    return Result(change(Op.UPDATE, name), ResultState.FAILED, why)


HOLD = Hold("deletions", "3 of 4 members would be deleted", (ref("x"), ref("y")))
PROBLEM = Problem("a.yaml", 3, "no kind")
REPORTS = {
    "nothing to do": (plan(change(Op.UNCHANGED)), [], False, "Synced", "1 object in sync"),
    "no object at all": (plan(), [], False, "Synced", "0 objects in sync"),
    "a refusal is named": (plan(change(Op.UPDATE)), [refused()], False, "ApplyFailed", f"{ref('a')}: no such thing"),
    "further refusals are counted": (
        plan(change(Op.UPDATE), change(Op.UPDATE, "b")), [refused(), refused("b", "no such kind")], False,
        "ApplyFailed", f"{ref('a')}: no such thing (and 1 more)",
    ),
    "refusals of one cause are one": (
        plan(change(Op.UPDATE), change(Op.UPDATE, "b")), [refused(), refused("b")], False,
        "ApplyFailed", f"{ref('a')} and 1 more ({ref('b')}): no such thing",
    ),
    "what is wrong outside the source is no fault of the source": (
        plan(problems=(Problem("Candy a", 0, "no answer", in_source=False),)), [], False, "ApplyFailed", "Candy a: no answer",
    ),
    "a warning is no harm": (
        plan(problems=(Problem("a.yaml", 3, "odd", severity=Severity.WARNING),)), [], False,
        "Synced", "0 objects in sync",
    ),
    "a problem is worse than a hold": (
        plan(problems=(PROBLEM,), holds=(HOLD,)), [], False, "ProblemsInSource", f"{PROBLEM} (and 1 more)",
    ),
    "a refusal is worse than a problem": (
        plan(problems=(PROBLEM,)), [refused()], False, "ApplyFailed", f"{PROBLEM} (and 1 more)",
    ),
    "a hold says what waits and what lets it through": (
        plan(holds=(HOLD,)), [], False,
        "Held", f"2 deletions wait for approval {approval_of(HOLD.refs)}: 3 of 4 members would be deleted: {ref('x')}, {ref('y')}",
    ),
    "a hold of one deletion": (
        plan(holds=(replace(HOLD, refs=HOLD.refs[:1]),)), [], False,
        "Held", f"1 deletion waits for approval {approval_of(HOLD.refs[:1])}: 3 of 4 members would be deleted: {ref('x')}",
    ),
    "whoever is told to end says so whatever else is wrong": (
        plan(problems=(PROBLEM,)), [refused()], True, "Stopped", "the program was stopped; the next one continues",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "results", "stopped", "reason", "message"), REPORTS.values(), ids=REPORTS)
def test_a_report_gives_the_worst_reason_and_a_sentence(made, results, stopped, reason, message):
    report = report_of(made, results, stopped=stopped)
    assert (report.reason, report.message, report.revision) == (reason, message, "3f9c2e1")


def test_counts_are_of_what_was_written_not_of_what_was_planned():
    made = plan(
        change(Op.CREATE, "a"), change(Op.UPDATE, "b"), change(Op.UPDATE, "c"), change(Op.REPLACE, "d"),
        change(Op.DELETE, "e"), change(Op.UNCHANGED, "f"), change(Op.UPDATE, "g"),
    )  # fmt: skip
    results = [
        done(Op.CREATE, "a"), done(Op.UPDATE, "b"), done(Op.UPDATE, "c", wrote=False), done(Op.REPLACE, "d"),
        done(Op.DELETE, "e"), refused("g"),
    ]  # fmt: skip
    counts = report_of(made, results).counts
    assert (counts.total, counts.created, counts.updated, counts.deleted) == (6, 1, 2, 1)
    assert (counts.unchanged, counts.failed) == (1, 1)


def test_a_source_that_cannot_be_read_takes_no_objects_out_of_the_count():
    made = replace(plan(change(Op.UNCHANGED, "a")), marked=Marked(5))
    assert report_of(made, []).counts.total == 1
    assert report_of(replace(made, problems=(PROBLEM,)), []).counts.total == 5


def test_what_was_skipped_counts_as_failed_and_is_told():
    skipped = Result(change(Op.CREATE), ResultState.SKIPPED, "waits for b")
    report = report_of(plan(change(Op.CREATE)), [skipped])
    assert (report.reason, report.counts.failed, report.counts.created) == (ConditionReason.FAILED, 1, 0)
    assert list(report.problems) == [f"{ref('a')}: waits for b"]


def test_verdicts_are_kept_of_what_was_applied_and_of_nothing_else():
    live = {"metadata": {"resourceVersion": "7"}}
    results = [
        done(Op.UPDATE, "a", live=live, key="k1"),
        done(Op.UPDATE, "keyless", live=live),
        done(Op.DELETE, "gone", key="k2"),
        Result(change(Op.UPDATE, "b", key="k3"), ResultState.FAILED, "no", live=live),
    ]
    assert verdicts_of(results) == {ref("a"): ("k1", "7")}


def test_an_atomic_plan_with_a_fault_leaves_all_untouched_and_says_why_of_each():
    made = plan(change(Op.CREATE, "a"), change(Op.UPDATE, "b", blocked="it is somebody's"), change(Op.UNCHANGED, "c"))
    found = {each.change.ref.name: (each.state, each.error, each.wrote) for each in untouched(made, "b is blocked")}
    assert found == {
        "a": (ResultState.SKIPPED, "the Sync is atomic: b is blocked", False),
        "b": (ResultState.FAILED, "it is somebody's", False),
    }
