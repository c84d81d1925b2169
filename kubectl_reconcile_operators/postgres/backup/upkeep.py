"""Backups of a database beside all else: which Job is due, what happened to those before, and what is told of them.

Pure: a spec, what is known of the database, and live objects in; children, a status and a condition out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubectl_reconcile.module_api import Condition, Context, Manifest, Owned, annotations_of, map_at, named, text_at
from kubectl_reconcile_operators.backups.runs import BackupProgress, BackupRun, kept, last_lines, last_success, runs_of
from kubectl_reconcile_operators.backups.s3 import s3_hinted
from kubectl_reconcile_operators.backups.slots import Due, due, look_again_s, why_missed, with_missed
from kubectl_reconcile_operators.backups.storage import backup_claim
from kubectl_reconcile_operators.postgres.backup.children import WORDS, backup_job, job_name, wished_name
from kubectl_reconcile_operators.postgres.backup.spec import TARGET_FIELD, BackupWish
from kubectl_reconcile_operators.postgres.children import source_at
from kubectl_reconcile_operators.postgres.situation import DatabaseState
from kubectl_reconcile_operators.postgres.spec import REPLICATOR, MyDatabaseSpec
from kubectl_reconcile_operators.volumes import CLAIM

BACKUP_NOW = "example.com/backup-now"
"""On a MyDatabase: asks for a backup besides those of the schedule, once for each text."""
_HISTORY = "backups"


@dataclass(frozen=True, slots=True)
class BackupRound:
    """What a pass does and says about backups. *wait_s* is when to look again at the latest, None where nothing comes."""

    children: tuple[Manifest, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class _BackupObstacle:
    """What is in the way of a backup; what *passes* is waited for, anything else is for a person."""

    reason: str
    message: str
    passes: bool = False


def backups_of(spec: MyDatabaseSpec, s: DatabaseState, cr: Manifest, owned: Owned, ctx: Context) -> BackupRound:
    """Return what is to be done and told about backups now."""
    left = tuple(_claim_left(cr, owned, ctx))
    if (wanted := spec.backup) is None:
        return BackupRound(left)
    runs = tuple(_hinted(wanted, run) for run in runs_of(cr, owned, ctx.now, WORDS, history=_HISTORY))
    obstacle = _obstacle(wanted, s, owned, ctx)
    plan = wanted.plan(str(cr["metadata"].get("creationTimestamp") or ctx.now))
    what = due(plan, runs, ctx.now, is_blocked=obstacle is not None)
    if what.missed:
        why = obstacle.message if obstacle else why_missed(plan, runs, what.missed)
        runs = with_missed(runs, what.missed, job_name(ctx, what.missed), why)
    there = {run.name for run in kept(runs, wanted.history_limit) if not _is_outdated(run, runs)}
    jobs = tuple(
        named("batch/v1", "Job", each["metadata"]["name"])
        for each in owned.of("Job")
        if each["metadata"]["name"] in there and WORDS.slot in annotations_of(each)
    )
    asked = annotations_of(cr).get(BACKUP_NOW, "")
    answered = _answered(asked, cr, runs, ctx)
    begun: tuple[Manifest, ...] = ()
    at_rest = obstacle is None and all(run.progress.has_ended for run in runs)
    if asked and not answered and at_rest:
        begun = (backup_job(spec, wanted, ctx, wished_name(ctx, asked), _source(s, ctx), runs, slot=""),)
    elif what.begin:
        begun = (backup_job(spec, wanted, ctx, job_name(ctx, what.slot), _source(s, ctx), runs, slot=what.slot),)
    return BackupRound(
        (*left, *jobs, *begun),
        _status(cr, wanted, runs, what) | ({"backupAnswered": answered} if answered else {}),
        (_condition(wanted, runs, what, obstacle),),
        look_again_s(plan, runs, what, is_blocked=obstacle is not None),
    )


def _answered(asked: str, cr: Manifest, runs: Sequence[BackupRun], ctx: Context) -> str:
    """Return the wish that was handled: it has a Job, or had one."""
    is_known = text_at(cr, "status", "backupAnswered") == asked or wished_name(ctx, asked) in {run.name for run in runs}
    return asked if asked and is_known else ""


def _is_outdated(run: BackupRun, runs: Sequence[BackupRun]) -> bool:
    """Tell whether a backup failed that a later one made good: its Job would still say that the database isn't well."""
    good = last_success(runs)
    return run.progress is BackupProgress.FAILED and good is not None and run.when < good.when


def _claim_left(cr: Manifest, owned: Owned, ctx: Context) -> Iterator[Manifest]:
    """Yield the claim that backups are on which is made here, or was by an earlier MyDatabase of the name; it stays as it is, also where the spec has no backups any more."""
    found = owned.known(CLAIM, ctx.name("backups"))
    if found is not None and ctx.sees(found):
        yield named("v1", CLAIM, ctx.name("backups"))
    elif (made := backup_claim(map_at(cr, "spec", "backup", "target"), ctx)) is not None:
        yield made


def _hinted(wanted: BackupWish, run: BackupRun) -> BackupRun:
    s3 = wanted.target.s3
    return run if s3 is None else replace(run, message=s3_hinted(run.message, s3, f"{TARGET_FIELD}.s3"))


def _obstacle(wanted: BackupWish, s: DatabaseState, owned: Owned, ctx: Context) -> _BackupObstacle | None:
    if wrong := wanted.target.missing(owned, ctx, TARGET_FIELD):
        return _BackupObstacle("ClaimNotFound", wrong)
    role = map_at(s.roles, REPLICATOR)
    if s.primary is None or not s.is_healthy(s.primary) or len(s.writable) > 1:
        return _BackupObstacle("NotServing", "the primary doesn't serve; the backup starts once it does", passes=True)
    if not (role.get("password") and role.get("replication") and role.get("login")):
        text = f"user {REPLICATOR}, who backups log in as, isn't ready; the backup starts once it is"
        return _BackupObstacle("NotServing", text, passes=True)
    return None


def _source(s: DatabaseState, ctx: Context) -> str:
    """Return whom to copy: a replica that follows, where there is one, and the primary where that one doesn't answer."""
    hosts = [f"{ctx.name()}.{ctx.namespace}.svc"]
    for each in reversed(s.ordered):
        address = text_at(each.manifest, "status", "podIP")
        if each.slot != s.named_primary and s.is_healthy(each) and address:
            hosts.insert(0, address)
            break
    return source_at(",".join(hosts))


# --- what is told ---------------------------------------------------------------------------------


def _status(cr: Manifest, wanted: BackupWish, runs: Sequence[BackupRun], what: Due) -> dict[str, Any]:
    before = map_at(cr, "status")
    slots = [run.slot for run in runs if run.slot and run.progress is not BackupProgress.MISSED]
    good = last_success(runs)
    last = {} if good is None else {"name": good.name, "completionTime": good.ended, **good.told}
    found: dict[str, Any] = {
        "lastBackup": {name: value for name, value in last.items() if value != ""},
        "lastScheduleTime": max(slots, default=str(before.get("lastScheduleTime") or "")),
        "nextScheduleTime": what.next_slot,
        _HISTORY: last_lines(runs, wanted.history_limit),
    }
    return {name: value for name, value in found.items() if value}


def _condition(wanted: BackupWish, runs: Sequence[BackupRun], what: Due, obstacle: _BackupObstacle | None) -> Condition:
    ended = [run for run in runs if run.progress.has_ended]
    active = next((run for run in runs if not run.progress.has_ended), None)
    last = ended[-1] if ended else None
    after = f"; the next one runs at {what.next_slot}" if what.next_slot else ""
    if obstacle is not None and not obstacle.passes:
        return Condition("BackupHealthy", "False", obstacle.reason, obstacle.message)
    if last is not None and last.progress is not BackupProgress.SUCCEEDED:
        verb, reason = "failed", "BackupFailed"
        if last.progress is BackupProgress.MISSED:
            verb, reason = "was missed", "BackupMissed"
        return Condition("BackupHealthy", "False", reason, f"backup {last.name} {verb}: {last.message}{after}")
    if active is not None:
        state = "True" if last is not None else "Unknown"
        return Condition("BackupHealthy", state, "Running", active.message or f"Job {active.name} is running")
    if last is not None:
        text = f"the last one is {last.told.get('file', f'that of Job {last.name}')}{after}"
        return Condition("BackupHealthy", "True", "Suspended" if wanted.suspend else "BackedUp", text)
    if wanted.suspend:
        return Condition(
            "BackupHealthy", "Unknown", "Suspended", f"{'.spec.backup.suspend'} is true: no backup is started"
        )
    text = (
        obstacle.message
        if obstacle
        else f"the first one comes at {what.next_slot}"
        if what.next_slot
        else "the first one begins"
    )
    return Condition("BackupHealthy", "Unknown", obstacle.reason if obstacle else "Scheduled", text)
