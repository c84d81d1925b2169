"""What happened in a pass -> the status of its Sync.

Conditions speak kstatus' language: Ready says whether the cluster is what the source asks for,
Reconciling that work is under way, Stalled that nothing will happen until a person changes
something. A pass that changed nothing yields the very status that is there, so it costs no write.

Pure: time is an argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from kubectl_reconcile.core.objects import Condition, Manifest, mapping_of, maps_in, merge_conditions
from kubectl_reconcile.core.resources.history import with_row
from kubectl_reconcile.core.resources.sync import CONTENDED
from kubectl_reconcile.core.resources.verification import CONDITION as VERIFIED
from kubectl_reconcile.core.resources.verification import Verification

_PROBLEMS = 20
_SENTENCE = 1024
_UNDELETABLE = 100


class ConditionReason(StrEnum):
    """How a pass ended; the value is the reason of the condition Ready."""

    SYNCED = "Synced"
    """The cluster is what the source asks for."""
    HELD = "Held"
    """All but some deletions was done; those wait for a person."""
    PROBLEMS = "ProblemsInSource"
    """Some files or objects can't be used as they are; the rest was applied."""
    FAILED = "ApplyFailed"
    """The server refused some objects; the rest was applied."""
    SOURCE = "SourceUnavailable"
    """The source could not be read; nothing was touched."""
    UNVERIFIED = "Unverified"
    """What the source asks for now isn't signed as the Sync says; what was verified last stays in force."""
    CLUSTER = "ClusterUnavailable"
    """The server could not be asked; it is tried again."""
    INVALID = "InvalidSpec"
    """The Sync itself can't be meant so."""
    WAITING = "DependencyNotReady"
    """Another Sync must be Ready first; it is looked at again as soon as that changes."""
    DRIFTED = "Drifted"
    """Somebody changed objects in the cluster, and spec.drift says to ask before they are put back."""
    SUSPENDED = "Suspended"
    """The Sync is told to do nothing."""
    STOPPED = "Stopped"
    """The program ended in the middle; the next one goes on."""
    CRASHED = "InternalError"
    """A fault of this program; it is tried again."""
    DELETING = "Deleting"
    """The Sync goes once its members are gone."""
    UNDELETABLE = "DeletionRefused"
    """The Sync is to go, and its account may not delete all of its members."""

    @property
    def is_stalled(self) -> bool:
        """Tell whether waiting won't help."""
        return self in _STALLED


_STALLED = frozenset(
    {
        ConditionReason.HELD,
        ConditionReason.INVALID,
        ConditionReason.DRIFTED,
        ConditionReason.UNVERIFIED,
        ConditionReason.UNDELETABLE,
    }
)


@dataclass(frozen=True, slots=True)
class Counts:
    """Objects of a set, and what one pass did to them."""

    total: int = 0
    created: int = 0
    updated: int = 0
    deleted: int = 0
    unchanged: int = 0
    failed: int = 0

    @property
    def wrote(self) -> bool:
        """Tell whether the pass changed the cluster."""
        return bool(self.created or self.updated or self.deleted)


@dataclass(frozen=True, slots=True)
class Report:
    """How one pass went. *message* is a sentence for people; *problems* and *warnings* one sentence each.

    *digest* is that of all that the source asks for, empty where the pass was over a part of it.
    """

    reason: ConditionReason
    message: str
    revision: str = ""
    counts: Counts = field(default_factory=Counts)
    problems: Sequence[str] = ()
    drifted: Sequence[str] | None = None
    """Objects left as somebody changed them, one sentence each; None where drift is put back anyway."""
    contended: Sequence[str] = ()
    """Fields that somebody else keeps overwriting and that are left alone for a while, one sentence each."""
    warnings: Sequence[str] = ()
    """What was most likely meant otherwise; the Sync is Ready all the same."""
    digest: str = ""
    undeletable: Sequence[str] = ()
    """Objects with the marks of members that nobody asks for and that the account may not delete."""
    verification: Verification | None = None
    """Whose signature the revision has, or why a newer one isn't in force; None where nobody asks."""

    @property
    def ending(self) -> ConditionReason:
        """How it ended for whoever looks at the Sync: all may be as was verified last, and newer commits be refused."""
        return ConditionReason.UNVERIFIED if self.refusal else self.reason

    @property
    def refusal(self) -> str:
        """Why the newest commit isn't in force, empty where it is."""
        return self.verification.refusal if self.verification else ""

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        if not self.refusal:
            return self.message
        return self.refusal if self.reason in _KEPT_UP else f"{self.refusal}; besides: {self.message}"

    def lines(self) -> list[str]:
        """Return its problems, the refusal before all others."""
        return [*([self.refusal] if self.refusal else []), *self.problems]


_KEPT_UP = frozenset({ConditionReason.SYNCED, ConditionReason.UNVERIFIED})


def sync_status(before: Manifest, report: Report, *, generation: int, requested_at: str, now: str) -> dict[str, Any]:
    """Return the status after *report*; *before* is the live one, *requested_at* the request that was answered."""
    status = dict(before)
    status["observedGeneration"] = generation
    is_answer = bool(requested_at) and requested_at != before.get("lastHandledSyncAt")
    if requested_at:
        status["lastHandledSyncAt"] = requested_at
    if report.revision:
        status["lastAttemptedRevision"] = report.revision
        status["summary"] = _summary(mapping_of(before.get("summary")), report.counts, is_answer=is_answer)
        status["problems"] = [problem[:_SENTENCE] for problem in report.problems[:_PROBLEMS]]
        if report.warnings or "warnings" in before:
            status["warnings"] = [warning[:_SENTENCE] for warning in report.warnings[:_PROBLEMS]]
        if report.undeletable or "undeletable" in before:
            status["undeletable"] = list(report.undeletable[:_UNDELETABLE])
        status["history"] = with_row(maps_in(before.get("history")), _row(report, now))
    if report.revision and report.reason in {ConditionReason.SYNCED, ConditionReason.DRIFTED}:
        status["lastAppliedRevision"] = report.revision  # drift that waits for a person is none of Git's
    ready = _condition("Ready", report.ending is ConditionReason.SYNCED, report)
    stalled = _condition("Stalled", report.ending.is_stalled, report)
    idle = Condition("Reconciling", "False", "Idle")
    conditions = [ready, idle, stalled, *_drift_condition(before, report), *_contended_condition(before, report)]
    known = _verified(status, report)
    if report.verification is not None:
        conditions.append(report.verification.condition())
    status["conditions"] = merge_conditions(known, conditions, generation=generation, now=now)
    return status


def _verified(status: dict[str, Any], report: Report) -> list[Manifest]:
    """Note in *status* which commit was verified, and return the conditions that stay.

    Where a pass over a revision was asked for no signatures, nothing of earlier ones stays: they say nothing of this one.
    """
    known = maps_in(status.get("conditions"))
    if report.verification is not None and report.verification.revision:
        status["verified"] = report.verification.status()
    elif report.verification is None and report.revision:
        status.pop("verified", None)
        known = [each for each in known if each.get("type") != VERIFIED]
    return list(known)


def _contended_condition(before: Manifest, report: Report) -> list[Condition]:
    """Tell of fields that are left to others; a Sync that never had any has no such condition."""
    if report.contended:
        return [Condition(CONTENDED, "True", "BackedOff", "; ".join(report.contended)[:_SENTENCE])]
    known = any(condition.get("type") == CONTENDED for condition in maps_in(before.get("conditions")))
    return [Condition(CONTENDED, "False", "InSync")] if known else []


def _drift_condition(before: Manifest, report: Report) -> list[Condition]:
    """Tell of drift that is left alone; a Sync that never leaves any has no such condition."""
    if report.drifted:
        message = "; ".join(report.drifted)
        return [Condition("Drifted", "True", "NotCorrected", message[:_SENTENCE])]
    known = any(condition.get("type") == "Drifted" for condition in maps_in(before.get("conditions")))
    return [Condition("Drifted", "False", "InSync")] if known or report.drifted is not None else []


def reconciling(before: Manifest, message: str, *, generation: int, now: str) -> dict[str, Any]:
    """Return the status of a Sync whose pass begins to write."""
    busy = Condition("Reconciling", "True", "Applying", message)
    conditions = merge_conditions(before.get("conditions"), (busy,), generation=generation, now=now)
    return {**before, "conditions": conditions}


def _condition(type_: str, holds: bool, report: Report) -> Condition:  # noqa: FBT001 - True or False is the condition
    message = report.sentence[:_SENTENCE] if holds or type_ == "Ready" else ""
    return Condition(type_, str(holds), report.ending.value if holds or type_ == "Ready" else "NotStalled", message)


def _summary(before: Manifest, counts: Counts, *, is_answer: bool) -> dict[str, Any]:
    """Keep what the last pass that did something did; a quiet pass only recounts the set, unless somebody asked for it."""
    if is_answer or counts.wrote or counts.failed or before.get("failed") or not before:
        return asdict(counts)
    return {**before, "total": counts.total}


def _row(report: Report, now: str) -> dict[str, Any]:
    """Return the row of the history that a pass makes."""
    return {
        "revision": report.revision,
        "digest": report.digest,
        "time": now,
        "result": report.reason.value,
        "message": report.message[:_SENTENCE],
        **_signed_by(report),
        **asdict(report.counts),
    }


def _signed_by(report: Report) -> dict[str, str]:
    """Return who signed the revision, and with which key."""
    found = report.verification
    return {"signer": found.signer, "key": found.key} if found and found.revision == report.revision else {}
