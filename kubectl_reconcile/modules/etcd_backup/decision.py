"""What is due: which backup is to begin now, if one is, when the next one comes, and what was missed.

Of slots that have passed, only the last one counts, and only while its deadline (``startingDeadlineSeconds``) hasn't passed: nothing is made
up for. A slot has one name forever, that of its Job. While a backup runs no other one begins; its slot waits, as long as it may.

Pure: a spec, runs and the time in, a decision out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubectl_reconcile.module_api import CronSchedule, later, seconds_between
from kubectl_reconcile.modules.etcd_backup.runs import BackupProgress, BackupRun
from kubectl_reconcile.modules.etcd_backup.spec import BackupSpec

ONCE = "once"
"""What the only run of an EtcdBackup without a schedule is called by."""


@dataclass(frozen=True, slots=True)
class Every:
    """Slots at a distance, counted from *since*: an interval as a schedule."""

    seconds: int
    since: str

    def after(self, moment: str) -> str:
        """Return the first slot after *moment*."""
        passed = max(0, int(seconds_between(self.since, moment) // self.seconds))
        return later(self.since, (passed + 1) * self.seconds)

    def latest(self, since: str, until: str) -> str:
        """Return the last slot after *since* that isn't after *until*; nothing where there is none."""
        count = int(seconds_between(self.since, until) // self.seconds)
        found = later(self.since, count * self.seconds)
        return found if count > 0 and seconds_between(since, found) > 0 else ""


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be done. *begin* says whether a run for *slot* begins now; *missed* is a slot whose time is over."""

    begin: bool = False
    slot: str = ""
    next_slot: str = ""
    missed: str = ""
    wait_s: float = 0.0


def due(spec: BackupSpec, runs: Sequence[BackupRun], created: str, now: str, *, is_blocked: bool) -> Due:
    """Return what is due for an EtcdBackup that was *created* then; while something is in the way it *is_blocked*."""
    at_work = any(not run.progress.has_ended for run in runs)
    if spec.is_once:
        return Due(begin=not runs and not is_blocked and not spec.suspend)
    slots = slots_of(spec, created)
    seen = max((run.slot for run in runs if run.slot), default="")
    handled = max(seen, created)
    if spec.suspend:
        return Due(next_slot="")
    oldest = max(handled, later(now, -spec.starting_deadline_seconds))
    slot = _last(slots, oldest, now)
    missed = "" if slot else _last(slots, handled, oldest)
    upcoming = slots.after(now)
    begin = bool(slot) and not at_work and not is_blocked
    return Due(begin, slot, upcoming, missed, seconds_between(now, upcoming))


def _last(slots: CronSchedule | Every, since: str, until: str) -> str:
    """Return the last slot after *since* that isn't after *until*; nothing where there is none.

    What is near is looked at first: of years of slots a minute apart, sixty are counted.
    """
    for window_s in (3_600, 86_400, 32 * 86_400, 400 * 86_400):
        start = max(since, later(until, -window_s))
        if found := slots.latest(start, until):
            return found
        if start == since:
            return ""
    return slots.latest(since, until)


def slots_of(spec: BackupSpec, created: str) -> CronSchedule | Every:
    """Return what names the slots of an EtcdBackup that repeats."""
    return spec.calendar or Every(spec.backup_policy.backup_interval_in_second, created)


def suffix_of(slot: str) -> str:
    """Return what the Job of a slot is called by: the slot as fourteen digits."""
    return "".join(each for each in slot if each.isdigit()) if slot else ONCE


def with_missed(runs: Iterable[BackupRun], slot: str, name: str, why: str) -> tuple[BackupRun, ...]:
    """Return *runs* with a slot that was missed, in order."""
    missed = BackupRun(name, slot, BackupProgress.MISSED, message=why)
    return tuple(sorted((*runs, missed), key=lambda run: run.when))
