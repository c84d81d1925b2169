"""How a plan was carried out -> what the next plan may take for granted, and the report of the pass.

Vocabulary: a *result* is how one change ended; a *report* is how the whole pass did, with the reason of the condition
Ready, one sentence for people, and counts.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.apply import causes
from kubectl_reconcile.core.apply.causes import Refusal
from kubectl_reconcile.core.objects import Manifest, ObjectRef, warnings_among
from kubectl_reconcile.core.planning.hold import NEW_REVISION
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.status import ConditionReason, Counts, Report


class ResultState(StrEnum):
    """How one change ended."""

    SUCCEEDED = "succeeded"
    """The cluster holds what the plan asked for."""
    SKIPPED = "skipped"
    """It was not tried; the error says why."""
    FAILED = "failed"
    """It was tried, and refused or lost; the error is the server's."""
    TAKEN = "taken"
    """A provisional run would have created it, and something of its name is there: that is as it was."""


class Result(Struct, frozen=True):
    """How one change ended. *live* is the server's answer without its managedFields, None where there is none.

    *wrote* is False where the server found nothing to do. *denied* tells that it is a right that is missing.
    """

    change: Change
    state: ResultState
    error: str = ""
    duration_ms: float = 0.0
    live: Manifest | None = None
    wrote: bool = True
    denied: bool = False

    @property
    def is_left(self) -> bool:
        """Tell whether it is a deletion for which a right is missing: the object stays, and stops nothing else.

        It may be no member at all: anybody who may write it can copy a member's marks.
        """
        return self.denied and self.change.op is Op.DELETE and not self.change.is_child


def undeletable(results: Iterable[Result]) -> list[Refusal]:
    """Return what carries a member's marks and may not be deleted by the account, and why."""
    return [Refusal(each.change.ref, "", each.error) for each in results if each.is_left]


def untouched(made: Plan, reason: str) -> tuple[Result, ...]:
    """Return the results of a plan of which nothing is written."""
    return tuple(
        Result(change, ResultState.FAILED, change.gate.blocked, wrote=False)
        if change.gate.blocked
        else Result(change, ResultState.SKIPPED, f"the Sync is atomic: {reason}", wrote=False)
        for change in made.changes
        if change.gate.blocked or change.writes
    )


def verdicts_of(results: Iterable[Result]) -> dict[ObjectRef, tuple[str, str]]:
    """Return what needs no look until it changes: what was applied is as it should be."""
    return {
        result.change.ref: (result.change.provenance.key, result.live["metadata"]["resourceVersion"])
        for result in results
        if result.change.provenance.key and result.live is not None and result.state is ResultState.SUCCEEDED
    }


def refused_namespaces(results: Iterable[Result]) -> frozenset[str]:
    """Return the namespaces in which something was refused: should one come only later, it was what was missing."""
    return frozenset(
        each.change.ref.namespace
        for each in results
        if each.state is not ResultState.SUCCEEDED and each.change.ref.namespace
    )


def report_of(made: Plan, results: Iterable[Result], *, stopped: bool = False) -> Report:
    """Return the report of a pass: one sentence, counts, and everything that went wrong."""
    results = tuple(results)
    failed = [result for result in results if result.state is not ResultState.SUCCEEDED and not result.is_left]
    left = undeletable(results)
    counts = Counts(
        total=_total(made),
        created=_count(results, Op.CREATE),
        updated=_count(results, Op.UPDATE) + _count(results, Op.REPLACE),
        deleted=_count(results, Op.DELETE),
        unchanged=made.counts()[Op.UNCHANGED] - sum(1 for each in failed if each.change.op is Op.UNCHANGED),
        failed=len(failed),
    )
    faults = causes.of_problems(made.errors)
    faults += causes.of_refusals(Refusal.of(result.change, result.error) for result in failed)
    faults += [f"held: {causes.of_hold(hold)}" for hold in made.holds]
    reason = _reason_of(made, failed, stopped=stopped)
    warnings = causes.of_problems(warnings_among(made.problems))
    warnings += [f"not deleted: {sentence}" for sentence in causes.of_refusals(left)]
    strangers = made.marked.strangers
    warnings += [causes.of_strangers(strangers)] if strangers is not None else []
    return Report(
        reason, _sentence(reason, made, counts, faults), made.revision, counts, faults,
        warnings=warnings, undeletable=[str(each.ref) for each in left],
        unasked=[str(ref) for ref in strangers.refs] if strangers is not None else (),
    )  # fmt: skip


def _total(made: Plan) -> int:
    """Return how many objects the set has after a pass: where not all could be read, nothing goes, and what it holds counts."""
    asked = sum(1 for _ in made.refs())
    return max(asked, made.members) if made.errors else asked


def with_earlier(report: Report, earlier: Report) -> Report:
    """Return *report* with what was written shortly before it, as *earlier* tells."""
    now, before = report.counts, earlier.counts
    written = replace(
        now,
        created=now.created + before.created,
        updated=now.updated + before.updated,
        deleted=now.deleted + before.deleted,
        unchanged=now.unchanged - before.created - before.updated,
    )
    return replace(report, counts=written)


def _count(results: Iterable[Result], op: Op) -> int:
    return sum(1 for each in results if each.change.op is op and each.wrote and each.state is ResultState.SUCCEEDED)


def _reason_of(made: Plan, failed: list[Result], *, stopped: bool) -> ConditionReason:
    if stopped:
        return ConditionReason.STOPPED
    if failed:
        return ConditionReason.FAILED
    if made.errors:
        in_source = any(problem.in_source for problem in made.errors)
        return ConditionReason.PROBLEMS if in_source else ConditionReason.FAILED
    return ConditionReason.HELD if made.holds else ConditionReason.SYNCED


def _sentence(reason: ConditionReason, made: Plan, counts: Counts, faults: list[str]) -> str:
    objects = f"{counts.total} object{'' if counts.total == 1 else 's'}"
    if reason is ConditionReason.SYNCED:
        return f"{objects} in sync"
    if reason is ConditionReason.STOPPED:
        return "the program was stopped; the next one continues"
    if reason is ConditionReason.HELD:
        hold = made.holds[0]
        if hold.reason == NEW_REVISION:
            return f"{hold.message} {made.approval}: {causes.listed([str(ref) for ref in hold.refs])}"
        wait = "1 deletion waits" if len(hold.refs) == 1 else f"{len(hold.refs)} deletions wait"
        return f"{wait} for approval {made.approval}: {causes.of_hold(hold)}"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{faults[0]}{more}"
