"""Drift: what somebody changed in the cluster, whether it is corrected or left alone, and how that is told.

Vocabulary: *drift that is left alone* is known as a sentence per object; it is what ``spec.drift: Report`` and ``Ask`` ask
for. A change is *mere ownership* where all values are right and only the record of who owns them isn't.

Pure: values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec.structs import replace

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import DriftPolicy
from kubectl_reconcile.core.ssa.merge import Reason

Drift: TypeAlias = Mapping[ObjectRef, str]
"""What somebody changed and is left as it is: one sentence per object."""

_NAMED = 5
_DELETED = "somebody deleted it"


def drift_note(change: Change) -> str:
    """Name the fields that somebody changed, and who that was."""
    if change.op is Op.CREATE:
        return _DELETED
    drifted = [each for each in change.fields if each.reason is not Reason.GIT]
    managers = sorted({each.manager for each in drifted if each.manager})
    fields = ", ".join(str(each.path) for each in drifted[:_NAMED]) or "its metadata"
    return f"{', '.join(managers) or 'somebody'} changed {fields}"


def deleted_in(drift: Drift) -> frozenset[ObjectRef]:
    """Return the objects that aren't there any more, and are left so."""
    return frozenset(ref for ref, note in drift.items() if note == _DELETED)


def is_mere_ownership(change: Change) -> bool:
    """Tell whether only the record of who owns the values isn't right: writing that disturbs nobody."""
    return change.op is Op.UPDATE and not change.fields


def without_drift(made: Plan, known: Drift, *, is_new: bool) -> tuple[Plan, Drift]:
    """Return the plan of a whole set without what only corrects drift, and the drift that it leaves.

    *known* is the drift left so far. Unless the revision *is_new*, whatever differs is drift; in a new one a change
    is drift only if all its fields are, or somebody was known to have deleted the object.
    """
    left: dict[ObjectRef, str] = {}
    changes = []
    for change in made.changes:
        touches_fields = change.writes and change.op is not Op.DELETE and not is_mere_ownership(change)
        if touches_fields and (not is_new or _is_drift_alone(change, known)):
            left[change.ref] = drift_note(change)
            changes.append(change.gated(held=True))
        else:
            changes.append(change)
    return made.with_changes(changes), left


def _is_drift_alone(change: Change, known: Drift) -> bool:
    if change.op is Op.CREATE:
        return change.ref in known
    return bool(change.fields) and all(each.reason is Reason.DRIFT for each in change.fields)


def drift_after(changes: Iterable[Change], known: Drift) -> tuple[Drift, tuple[tuple[ObjectRef, str], ...]]:
    """Return the drift after a look at some objects, and what of it is news; what is as it should be is no drift."""
    left, news = dict(known), []
    for change in changes:
        if change.op is Op.UNCHANGED or is_mere_ownership(change):
            left.pop(change.ref, None)
        elif (note := drift_note(change)) != left.get(change.ref):
            left[change.ref] = note
            news.append((change.ref, note))
    return left, tuple(news)


def with_drift(report: Report, policy: DriftPolicy, drift: Drift) -> Report:
    """Return *report* with the drift that is left alone; it isn't Ready where somebody must decide."""
    if policy is DriftPolicy.CORRECT:
        return report
    drifted = [f"{ref}: {note}" for ref, note in sorted(drift.items())]
    if drifted and policy is DriftPolicy.ASK and report.reason is ConditionReason.SYNCED:
        more = f" (and {len(drifted) - 1} more)" if len(drifted) > 1 else ""
        message = f"{drifted[0]}{more}; to revert this, run kubectl reconcile sync"
        return replace(report, reason=ConditionReason.DRIFTED, message=message, drifted=drifted)
    return replace(report, drifted=drifted)
