"""What happened in a pass -> the status of its Sync.

Conditions speak kstatus' language. *Synced* says whether the cluster is what the source asks for, *Healthy* whether the members
are as they should be, *Ready* both (or Synced alone, where the Sync doesn't wait for health). *Reconciling* says that work is
under way or that members are on their way, *Stalled* that nothing will happen until a person changes something.

===================================== =================== ============ ====================== ========
where                                 Synced              Healthy      Ready                  Stalled
===================================== =================== ============ ====================== ========
all is in sync                        True                as judged    as Healthy             False
members are in progress               True                False        False, InProgress      False
a member has failed                   True                False        False, Failed          True
deletions are held; an emptied path   False, Held         as judged    False, Held            True
drift is to be asked about            False, Drifted      as judged    False, Drifted         True
drift is only reported                True                as judged    as Healthy             False
fields are yielded, or contended      True                as judged    as Healthy             False
the source can't be read              False               as judged    False, the reason      False
a path without any object             False               as judged    False, the reason      False
suspended                             False, Suspended    as judged    False, Suspended       False
``spec.health.wait: false``           as above            as judged    as Synced              by Synced
===================================== =================== ============ ====================== ========

What isn't known of health (no daemon watches the members) counts neither way. A pass that changed nothing yields the very
status that is there, so it costs no write.

Pure: time is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from kubectl_reconcile.core.health.summary import HealthSummary
from kubectl_reconcile.core.objects import (
    Condition,
    Manifest,
    condition_of,
    mapping_of,
    maps_in,
    merge_conditions,
    number_of,
)
from kubectl_reconcile.core.resources.history import settings_of, with_row
from kubectl_reconcile.core.resources.sync import CONTENDED
from kubectl_reconcile.core.resources.verification import CONDITION as VERIFIED
from kubectl_reconcile.core.resources.verification import Verification

_PROBLEMS = 20
_SENTENCE = 1024
_UNDELETABLE = 100


class ConditionReason(StrEnum):
    """How a pass ended; the value is the reason of the condition Synced, and of Ready where that isn't True."""

    SYNCED = "Synced"
    """The cluster matches the source."""
    HELD = "Held"
    """Everything was applied except some deletions, which wait for approval."""
    PROBLEMS = "ProblemsInSource"
    """Some files or objects can't be used; the rest was applied, and nothing was pruned."""
    FAILED = "ApplyFailed"
    """The server refused some objects; the rest was applied. It is retried."""
    SOURCE = "SourceUnavailable"
    """The source can't be read; nothing was changed except that drift is still corrected. It is retried."""
    UNVERIFIED = "Unverified"
    """The newest revision isn't signed as the Sync requires; the revision that was verified last stays in force."""
    CLUSTER = "ClusterUnavailable"
    """The API server can't be reached. It is retried."""
    INVALID = "InvalidSpec"
    """The spec of the Sync is invalid."""
    WAITING = "DependencyNotReady"
    """Another Sync must become Ready first; this one continues as soon as that happens."""
    CYCLE = "DependencyCycle"
    """The Sync depends on itself, by way of other Syncs."""
    DRIFTED = "Drifted"
    """Somebody changed objects in the cluster, and spec.drift says to ask before the changes are reverted."""
    SUSPENDED = "Suspended"
    """The Sync is suspended; nothing is changed."""
    STOPPED = "Stopped"
    """The program ended during a sync; the next one continues."""
    CRASHED = "InternalError"
    """A fault of this program. It is retried."""
    DELETING = "Deleting"
    """The Sync is being deleted, and waits until its members are gone."""
    UNDELETABLE = "DeletionRefused"
    """The Sync is being deleted, but its account may not delete all of its members."""

    @property
    def is_stalled(self) -> bool:
        """Tell whether waiting won't help."""
        return self in _STALLED


_STALLED = frozenset(
    {
        ConditionReason.HELD,
        ConditionReason.INVALID,
        ConditionReason.CYCLE,
        ConditionReason.DRIFTED,
        ConditionReason.UNVERIFIED,
        ConditionReason.UNDELETABLE,
    }
)


class Counts(Struct, frozen=True):
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


class Report(Struct, frozen=True):
    """How one pass went. *message* is a sentence for people; *problems* and *warnings* one sentence each.

    *digest* is that of all that the source asks for, empty where the pass was over a part of it.
    """

    reason: ConditionReason
    message: str
    revision: str = ""
    counts: Counts = field(default_factory=Counts)
    problems: Sequence[str] = ()
    drifted: Sequence[str] | None = None
    """Objects left as somebody changed them, one sentence each; None where drift is corrected anyway."""
    contended: Sequence[str] = ()
    """Fields that somebody else keeps overwriting and that are left alone for a while, one sentence each."""
    warnings: Sequence[str] = ()
    """What was most likely meant otherwise; the Sync is still Ready."""
    digest: str = ""
    undeletable: Sequence[str] = ()
    """Objects with the marks of members that nobody asks for and that the account may not delete."""
    unasked: Sequence[str] = ()
    """Objects with the marks of members that no revision is known to have asked for; they are left alone."""
    verification: Verification | None = None
    """Whose signature the revision has, or why a newer one isn't in force; None where nobody asks."""
    author: str = ""
    """Who made the commit, as it says itself."""
    subject: str = ""
    """The first line of the commit's message."""
    tag: str = ""
    """The tag that led to the commit, where a range of versions is followed."""
    helm: Mapping[str, Any] = field(default_factory=dict)
    """What the Sync itself says of its chart."""

    @property
    def ending(self) -> ConditionReason:
        """How it ended for whoever looks at the Sync: all may be as was verified last, and newer revisions be refused."""
        return ConditionReason.UNVERIFIED if self.refusal else self.reason

    @property
    def refusal(self) -> str:
        """Why the newest revision isn't in force, empty where it is."""
        return self.verification.refusal if self.verification else ""

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        if not self.refusal:
            return self.message
        return self.refusal if self.reason in _KEPT_UP else f"{self.refusal}; also: {self.message}"

    @property
    def is_of_rights(self) -> bool:
        """Whether something was refused for want of rights, as far as the sentences tell."""
        return bool(self.undeletable) or any(_OF_RIGHTS.search(text) for text in (self.message, *self.problems))

    def lines(self) -> list[str]:
        """Return its problems, the refusal before all others."""
        return [*([self.refusal] if self.refusal else []), *self.problems]


_OF_RIGHTS = re.compile(r"\bmay not |\blacks rights\b|\bpermissions not currently held\b")
"""How it is told that rights are missing, by us and by the server."""
_KEPT_UP = frozenset({ConditionReason.SYNCED, ConditionReason.UNVERIFIED})


def sync_status(
    before: Manifest,
    report: Report,
    *,
    generation: int,
    requested_at: str,
    now: str,
    health: HealthSummary | None = None,
    observed: str = "",
) -> dict[str, Any]:
    """Return the status after *report*; *before* is the live one, *requested_at* the request that was answered.

    *health* is how the members are, None where nobody watches them. *observed* is the commit up to which everything is processed that
    concerns the Sync, empty where it isn't known to be any other than the report's.
    """
    status = dict(before)
    status["observedGeneration"] = generation
    is_answer = bool(requested_at) and requested_at != before.get("lastHandledSyncAt")
    if requested_at:
        status["lastHandledSyncAt"] = requested_at
    if observed or report.revision not in {"", before.get("lastAttemptedRevision")}:
        status["observedRevision"] = observed or report.revision
    if report.revision:
        _attempted(status, report, generation)
        status["summary"] = _summary(mapping_of(before.get("summary")), report.counts, is_answer=is_answer)
        status["problems"] = [problem[:_SENTENCE] for problem in report.problems[:_PROBLEMS]]
        if report.warnings or "warnings" in before:
            status["warnings"] = [warning[:_SENTENCE] for warning in report.warnings[:_PROBLEMS]]
        if report.undeletable or "undeletable" in before:
            status["undeletable"] = list(report.undeletable[:_UNDELETABLE])
        if report.unasked or "unasked" in before:
            status["unasked"] = list(report.unasked[:_UNDELETABLE])
        status["history"] = with_row(maps_in(before.get("history")), _row(report, now))
    if report.revision and report.reason in {ConditionReason.SYNCED, ConditionReason.DRIFTED}:
        status["lastAppliedRevision"] = report.revision  # drift that waits for a person isn't Git's
    synced = Condition(
        "Synced", str(report.ending is ConditionReason.SYNCED), report.ending.value, report.sentence[:_SENTENCE]
    )
    conditions = [*_readiness(before, synced, health), synced]
    conditions += [*_drift_condition(before, report), *_contended_condition(before, report)]
    known = _verified(status, report)
    if report.verification is not None:
        conditions.append(report.verification.condition())
    status["conditions"] = merge_conditions(known, conditions, generation=generation, now=now)
    return _with_health(status, health)


def _attempted(status: dict[str, Any], report: Report, generation: int) -> None:
    """Note in *status* what was tried, and by which spec. A pass over some objects alone doesn't tell by which tag: that is known already."""
    before, now = tuple(status.get(name) for name in _ATTEMPTED), (report.revision, generation)
    status.update(zip(_ATTEMPTED, now, strict=True))
    if report.tag:
        status["lastAttemptedTag"] = report.tag
    elif before != now:
        status.pop("lastAttemptedTag", None)


def tells_more(before: Manifest, after: Manifest, same: tuple[str, str] = ("", "")) -> bool:
    """Tell whether a status says more than up to which commit the source was looked at: that alone is no reason to write it at once.

    *same* are an earlier and a later commit that hold the same: the later one says nothing where the earlier one was said.
    """
    earlier, later = same
    if later and after.get("lastAttemptedRevision") == later:
        after = {**after, **{name: earlier for name in _COMMITS if after.get(name) == later}}
        after |= {name: before[name] for name in ("lastAttemptedTag",) if name in before}
    return {**before, "observedRevision": ""} != {**after, "observedRevision": ""}


_ATTEMPTED = ("lastAttemptedRevision", "lastAttemptedGeneration")
_COMMITS = ("lastAttemptedRevision", "lastAppliedRevision", "lastReadyRevision")


def health_status(before: Manifest, health: HealthSummary, *, now: str) -> dict[str, Any]:
    """Return the status of a Sync whose members have changed since the last pass; *before* is the live one.

    It speaks of the generation that the last pass spoke of. As long as there was none, there is nothing to tell.
    """
    found = condition_of({"status": before}, "Synced")
    if found is None:
        return dict(before)
    synced = _known(found)
    is_busy = (condition_of({"status": before}, "Reconciling") or {}).get("reason") == _APPLYING
    wanted = [each for each in _readiness(before, synced, health) if not (is_busy and each.type == "Reconciling")]
    generation = number_of(found.get("observedGeneration")) or 0
    conditions = merge_conditions(before.get("conditions"), wanted, generation=generation, now=now)
    return _with_health({**before, "conditions": conditions}, health)


_APPLYING = "Applying"


def _known(found: Manifest) -> Condition:
    """Return the condition Synced as it was told; whatever somebody else wrote there counts as not synced."""
    try:
        reason = ConditionReason(str(found.get("reason")))
    except ValueError:
        reason = ConditionReason.CRASHED
    is_synced = found.get("status") == "True" and reason is ConditionReason.SYNCED
    return Condition("Synced", str(is_synced), reason.value, str(found.get("message") or "")[:_SENTENCE])


def _readiness(before: Manifest, synced: Condition, health: HealthSummary | None) -> list[Condition]:
    """Return the conditions that follow from being synced and being healthy."""
    is_synced, reason = synced.status == "True", ConditionReason(synced.reason)
    lacks = health if health is not None and health.is_awaited and not health.is_healthy else None
    ready = Condition("Ready", synced.status, synced.reason, synced.message)
    idle, stalled = Condition("Reconciling", "False", "Idle"), Condition("Stalled", "False", "NotStalled")
    if reason.is_stalled:
        stalled = Condition("Stalled", "True", synced.reason, synced.message)
    elif is_synced and lacks is not None:
        sentence = lacks.sentence[:_SENTENCE]
        ready = Condition("Ready", "False", lacks.reason, sentence)
        if lacks.has_failed:
            stalled = Condition("Stalled", "True", lacks.reason, sentence)
        else:
            idle = Condition("Reconciling", "True", lacks.reason, sentence)
    return [ready, idle, stalled, *_healthy(before, health)]


def _healthy(before: Manifest, health: HealthSummary | None) -> list[Condition]:
    """Return the condition Healthy; where nobody watches the members, what was told of them doesn't hold any more."""
    if health is not None:
        return [Condition("Healthy", str(health.is_healthy), health.reason, health.sentence[:_SENTENCE])]
    known = condition_of({"status": before}, "Healthy") is not None
    return [Condition("Healthy", "Unknown", "NotWatched", "no daemon watches the members")] if known else []


def _with_health(status: dict[str, Any], health: HealthSummary | None) -> dict[str, Any]:
    """Note the verdicts, and at which revision and generation the Sync was Ready last, for whoever depends on it."""
    if health is not None:
        status["health"] = health.told()
    else:
        status.pop("health", None)
    ready = condition_of({"status": status}, "Ready") or {}
    if ready.get("status") == "True" and "lastAttemptedRevision" in status:
        status["lastReadyRevision"] = status["lastAttemptedRevision"]
        status["lastReadyGeneration"] = ready["observedGeneration"]
    return status


def passed_before(live: Manifest | None, generation: int) -> str:
    """Return the revision that was tried last by the spec of this *generation*: what it depends on let it through then. Empty where none was."""
    status = mapping_of((live or {}).get("status"))
    is_of_it = status.get("lastAttemptedGeneration") == generation
    return str(status.get("lastAttemptedRevision") or "") if is_of_it else ""


_PASSES_BY = frozenset(
    {ConditionReason.SYNCED, ConditionReason.SOURCE, ConditionReason.CLUSTER, ConditionReason.DRIFTED}
)
"""Reasons that say nothing against what was applied before."""


def was_ready(live: Manifest) -> bool:
    """Tell whether a Sync has been Ready at the revision and the spec that it has now; that it ails since doesn't count."""
    status, generation = mapping_of(live.get("status")), mapping_of(live.get("metadata")).get("generation")
    ready, synced = condition_of(live, "Ready") or {}, condition_of(live, "Synced") or {}
    if ready.get("status") == "True" and ready.get("observedGeneration") == generation:
        return True
    revision = status.get("lastReadyRevision")
    is_current = bool(revision) and revision == status.get("lastAttemptedRevision")
    return is_current and status.get("lastReadyGeneration") == generation and synced.get("reason") in _PASSES_BY


def _verified(status: dict[str, Any], report: Report) -> list[Manifest]:
    """Note in *status* which revision was verified, and return the conditions that stay.

    Where a pass over a revision was asked for no signatures, nothing of earlier ones stays: they say nothing about this one.
    """
    known = maps_in(status.get("conditions"))
    if report.verification is not None and report.verification.revision:
        status["verified"] = report.verification.status()
    elif report.verification is None and report.revision:
        status.pop("verified", None)
        known = [each for each in known if each.get("type") != VERIFIED]
    return list(known)


def _contended_condition(before: Manifest, report: Report) -> list[Condition]:
    """Report fields that are left to others; a Sync that never had any has no such condition."""
    if report.contended:
        return [Condition(CONTENDED, "True", "BackedOff", "; ".join(report.contended)[:_SENTENCE])]
    known = any(condition.get("type") == CONTENDED for condition in maps_in(before.get("conditions")))
    return [Condition(CONTENDED, "False", "InSync")] if known else []


def _drift_condition(before: Manifest, report: Report) -> list[Condition]:
    """Report drift that is left alone; a Sync that never leaves any has no such condition."""
    if report.drifted:
        message = "; ".join(report.drifted)
        return [Condition("Drifted", "True", "NotCorrected", message[:_SENTENCE])]
    known = any(condition.get("type") == "Drifted" for condition in maps_in(before.get("conditions")))
    return [Condition("Drifted", "False", "InSync")] if known or report.drifted is not None else []


def reconciling(before: Manifest, message: str, *, generation: int, now: str) -> dict[str, Any]:
    """Return the status of a Sync whose pass begins to write."""
    busy = Condition("Reconciling", "True", _APPLYING, message[:_SENTENCE])
    conditions = merge_conditions(before.get("conditions"), (busy,), generation=generation, now=now)
    return {**before, "conditions": conditions}


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
        **{
            name: text
            for name, text in (("author", report.author), ("subject", report.subject), ("tag", report.tag))
            if text
        },
        **settings_of(report.helm),
        **_signed_by(report),
        **asdict(report.counts),
    }


def _signed_by(report: Report) -> dict[str, str]:
    """Return who signed the revision, and with which key."""
    found = report.verification
    return {"signer": found.signer, "key": found.key} if found and found.revision == report.revision else {}
