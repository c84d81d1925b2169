"""What is due: which backup is to begin now, if one is, when the next one comes, and what was missed.

Of slots that have passed, only the last one counts, and only while its deadline (``deadline_s``) hasn't passed: nothing is made
up for. A slot has one name forever, that of its Job; where the first backup, which is of no slot, couldn't begin until a slot came, that
one begins in its place. While a backup runs no other one begins; its slot waits, as long as it may.

Pure: a plan, runs and the time in, a decision out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubectl_reconcile.module_api import CronSchedule, Every, later, latest_slot, seconds_between
from kubectl_reconcile_operators.backups.runs import BackupProgress, BackupRun


@dataclass(frozen=True, slots=True)
class BackupPlan:
    """When backups run: at *slots*, counted from *since*, each at most *deadline_s* late. With *at_once*, the first backup runs immediately."""

    slots: CronSchedule | Every | None
    since: str
    deadline_s: float
    at_once: bool = False
    is_suspended: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """What to do now. *begin* says whether to start a run for *slot*; *missed* is a slot that is too late to start."""

    begin: bool = False
    slot: str = ""
    next_slot: str = ""
    missed: str = ""
    wait_s: float = 0.0


def due(plan: BackupPlan, runs: Sequence[BackupRun], now: str, *, is_blocked: bool) -> Due:
    """Return what is due. *is_blocked* says that something is in the way."""
    if plan.is_suspended:
        return Due()
    at_work = any(not run.progress.has_ended for run in runs)
    first = plan.at_once and not runs
    if plan.slots is None:
        return Due(begin=first and not is_blocked)
    upcoming = plan.slots.after(now)
    wait_s = seconds_between(now, upcoming)
    seen = max((run.slot for run in runs if run.slot), default="")
    handled = max(seen, plan.since)
    oldest = max(handled, later(now, -plan.deadline_s))
    slot = latest_slot(plan.slots, oldest, now)
    if first and not slot:
        return Due(not is_blocked, "", upcoming, "", wait_s)
    missed = "" if slot else latest_slot(plan.slots, handled, oldest)
    begin = bool(slot) and not at_work and not is_blocked
    return Due(begin, slot, upcoming, missed, wait_s)


def with_missed(runs: Iterable[BackupRun], slot: str, name: str, why: str) -> tuple[BackupRun, ...]:
    """Return *runs* with a slot that was missed, in order."""
    missed = BackupRun(name, slot, BackupProgress.MISSED, message=why)
    return tuple(sorted((*runs, missed), key=lambda run: run.when))


def why_missed(plan: BackupPlan, runs: Sequence[BackupRun], slot: str) -> str:
    """Return why a slot was missed although nothing was in its way."""
    limit = f"{plan.deadline_s:g} s"
    if any(not run.progress.has_ended for run in runs):
        return f"an earlier backup was still running {limit} after {slot}"
    return f"no Job was started within {limit}: no daemon was running, or another Job has its name"


def look_again_s(plan: BackupPlan, runs: Sequence[BackupRun], what: Due, *, is_blocked: bool) -> float | None:
    """Return after how many seconds to check again if nothing happens until then; None if nothing is due. Jobs and pods are watched."""
    if any(not run.progress.has_ended for run in runs) or what.begin:
        return 5.0
    if is_blocked or what.slot:
        return 15.0
    return None if plan.slots is None or plan.is_suspended else min(max(1.0, what.wait_s), 3600.0)
