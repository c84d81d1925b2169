"""EtcdBackup: a CR ``EtcdBackup`` is backups of an etcd, one or on a schedule, each written and checked by a Job of its own.

When one is due and what happened to it, its Job and pods tell, see the module API. Nothing is written through the daemon.

Conditions: ``Ready`` (the last backup that ended succeeded, or none was due yet), ``Running``, and ``Degraded`` where only a person can continue: there
is no such cluster or no such volume claim, or the last backup failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubectl_reconcile.module_api import (
    Condition,
    Context,
    Facts,
    Manifest,
    Outcome,
    Owned,
    Reads,
    Select,
    kept_status,
    map_at,
    module,
    text_at,
    untouched_in,
    volumes_left,
)
from kubectl_reconcile_operators.backups.runs import BackupProgress, BackupRun, kept, last_lines, last_success, runs_of
from kubectl_reconcile_operators.backups.s3 import s3_hinted
from kubectl_reconcile_operators.backups.slots import Due, due, look_again_s, why_missed, with_missed
from kubectl_reconcile_operators.backups.storage import backup_claim
from kubectl_reconcile_operators.etcd_backup.children import WORDS, BackupTarget, job, job_name
from kubectl_reconcile_operators.etcd_backup.spec import S3_FIELD, STORAGE_FIELD, BackupSpec, backup_spec
from kubectl_reconcile_operators.volumes import KEPT_CLAIMS, claims_at_the_end

API = "etcd.database.coreos.com/v1beta2"
_CLIENT_PORT = 2379


def _claim_of(cr: Manifest) -> str:
    return text_at(cr, "spec", "storage", "persistentVolumeClaim", "claimName")


@dataclass(frozen=True, slots=True)
class _Obstacle:
    """What is in the way of beginning a backup."""

    reason: str
    message: str


@module(
    api=API,
    kind="EtcdBackup",
    owns=["batch/v1/Job", "v1/PersistentVolumeClaim"],
    keeps=[KEPT_CLAIMS],
    reads=[
        volumes_left("etcdbackup"),
        Reads("v1", "Pod", selector="reconcile.dev/module=etcdbackup"),
        Reads(API, "EtcdCluster", of=lambda cr: Select.named(text_at(cr, "spec", "clusterRef", "name"))),
        Reads("v1", "PersistentVolumeClaim", of=lambda cr: Select.named(_claim_of(cr))),
    ],
)
class EtcdBackup:
    """Back up an etcd to a volume or a bucket, once, at intervals, or as a cron schedule says.

    Each backup is a Job that asks all members, takes the snapshot from one that isn't the leader if another will do, checks it, and takes
    away what is more than ``backupPolicy`` keeps. The status has the last success, the next time, and a history.
    """

    def reconcile(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """Begin what is due; tell what happened to what was begun."""
        spec = backup_spec(cr)
        target, obstacle = _target(cr, spec, owned)
        obstacle = obstacle or _storage_obstacle(spec, owned, ctx)
        runs = tuple(_hinted(spec, run) for run in runs_of(cr, owned, ctx.now, WORDS))
        plan = spec.plan(str(cr["metadata"].get("creationTimestamp") or ctx.now))
        what = due(plan, runs, ctx.now, is_blocked=obstacle is not None)
        if what.missed:
            why = obstacle.message if obstacle else why_missed(plan, runs, what.missed)
            runs = with_missed(runs, what.missed, job_name(ctx, what.missed), why)
        children = tuple(_children(cr, spec, runs, owned, ctx))
        untouched = untouched_in(children)
        if what.begin:
            children += (job(spec, ctx, what.slot, target, runs),)
        return Outcome(
            children=children,
            untouched=untouched,
            status=_status(cr, spec, runs, what),
            conditions=tuple(_conditions(spec, runs, what, obstacle)),
            requeue_after_s=look_again_s(plan, runs, what, is_blocked=obstacle is not None),
        )

    def finalize(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """End the Jobs; the claim that was made stays, unless it is to go too."""
        claims = claims_at_the_end(cr, owned, ctx)
        left = [*owned.of("Job"), *claims.left]
        text = f"{len(left)} objects are left" if left else "everything is gone"
        return Outcome(
            dropped=claims.dropped,
            status=kept_status(cr),
            conditions=(Condition("Ready", "False", "Deleting", text),),
            finalized=not left,
        )


# --- what is backed up, and where to --------------------------------------------------------------


def _target(cr: Manifest, spec: BackupSpec, owned: Owned) -> tuple[BackupTarget, _Obstacle | None]:
    if spec.cluster_ref is None:
        return BackupTarget(spec.etcd_endpoints, spec.client_secret), None
    name = spec.cluster_ref.name
    cluster = owned.other("EtcdCluster", name)
    if cluster is None:
        return BackupTarget(()), _Obstacle(
            "ClusterNotFound",
            f".spec.clusterRef.name: there is no EtcdCluster {name} in this namespace (hint: correct the name, or create it)",
        )
    pods = _pods_of(cluster)
    if not pods:
        return BackupTarget(()), _Obstacle(
            "ClusterNotFormed",
            f".spec.clusterRef.name: EtcdCluster {name} has no members yet; the backup starts once it has some",
        )
    tls, of_cluster = map_at(cluster, "spec", "TLS"), Context("", "etcdcluster", cluster)
    secret = of_cluster.name("operator") if "auto" in tls else text_at(tls, "static", "operatorSecret")
    scheme, namespace = "https" if tls else "http", cr["metadata"].get("namespace") or ""
    service = of_cluster.name()
    hosts = (f"{scheme}://{pod}.{service}.{namespace}.svc:{_CLIENT_PORT}" for pod in pods)
    return BackupTarget(tuple(hosts), secret, str(cluster["metadata"].get("uid") or "")), None


def _pods_of(cluster: Manifest) -> list[str]:
    """Return the pods of a cluster's members, ready or not: which of them answers is seen when they are asked."""
    members = (cluster.get("status") or {}).get("members") or {}
    return sorted({str(each) for kind in ("ready", "unready") for each in members.get(kind) or ()})


def _storage_obstacle(spec: BackupSpec, owned: Owned, ctx: Context) -> _Obstacle | None:
    wrong = spec.storage.missing(owned, ctx, STORAGE_FIELD)
    return _Obstacle("ClaimNotFound", wrong) if wrong else None


def _hinted(spec: BackupSpec, run: BackupRun) -> BackupRun:
    s3 = spec.storage.s3
    return run if s3 is None else replace(run, message=s3_hinted(run.message, s3, S3_FIELD))


# --- children -------------------------------------------------------------------------------------


def _claim(cr: Manifest, ctx: Context) -> Manifest | None:
    return backup_claim(map_at(cr, "spec", "storage"), ctx)


def _children(
    cr: Manifest, spec: BackupSpec, runs: Sequence[BackupRun], owned: Owned, ctx: Context
) -> Iterator[Manifest]:
    """Yield what there is and stays: the claim, and the Jobs of the runs that the history has."""
    if (made := _claim(cr, ctx)) is not None:
        yield made
    names = {run.name for run in kept(runs, spec.history_limit)}
    for each in owned.of("Job"):
        if each["metadata"]["name"] in names:
            yield _stub(each)


def _stub(child: Manifest) -> Manifest:
    """Return a child that stays as it is: only its name is told."""
    return {
        "apiVersion": child["apiVersion"],
        "kind": child["kind"],
        "metadata": {"name": child["metadata"]["name"]},
    }


# --- status ---------------------------------------------------------------------------------------


def _status(cr: Manifest, spec: BackupSpec, runs: Sequence[BackupRun], what: Due) -> dict[str, Any]:
    before: Mapping[str, Any] = cr.get("status") or {}
    ended = [run for run in runs if run.progress.has_ended]
    last, good = (ended[-1] if ended else None), last_success(runs)
    active = [run.name for run in runs if not run.progress.has_ended]
    slots = [run.slot for run in runs if run.slot and run.progress is not BackupProgress.MISSED]
    found: dict[str, Any] = {
        "succeeded": last is not None and last.progress is BackupProgress.SUCCEEDED,
        "reason": last.message if last is not None and last.progress is not BackupProgress.SUCCEEDED else "",
        "active": active[0] if active else "",
        "lastScheduleTime": max(slots, default=str(before.get("lastScheduleTime") or "")),
        "nextScheduleTime": what.next_slot,
        "history": last_lines(runs, spec.history_limit),
    }
    if good is not None:
        told = good.told
        found |= {
            "lastSuccessDate": good.ended,
            "file": told.get("file", ""),
            "etcdRevision": told.get("revision", 0),
            "etcdVersion": told.get("etcdVersion", ""),
            "sizeBytes": told.get("sizeBytes", 0),
            "sha256": told.get("sha256", ""),
            "durationSeconds": told.get("durationSeconds", 0),
        }
    return {name: value for name, value in found.items() if value != ""}


def _conditions(
    spec: BackupSpec, runs: Sequence[BackupRun], what: Due, obstacle: _Obstacle | None
) -> Iterator[Condition]:
    ended = [run for run in runs if run.progress.has_ended]
    active = next((run for run in runs if not run.progress.has_ended), None)
    last = ended[-1] if ended else None
    if active is not None:
        yield Condition("Running", "True", "JobAtWork", active.message or f"Job {active.name} is running")
    else:
        yield Condition("Running", "False", "Idle", "")
    is_done = spec.is_once and last is not None
    if obstacle is not None and not is_done:
        yield Condition("Ready", "False", obstacle.reason, obstacle.message)
        if obstacle.reason != "ClusterNotFormed":
            yield Condition("Degraded", "True", obstacle.reason, obstacle.message)
        return
    yield _ready(spec, last, what)
    if last is not None and last.progress is not BackupProgress.SUCCEEDED:
        yield Condition("Degraded", "True", _reason_of(last), _told_of(spec, last))


def _ready(spec: BackupSpec, last: BackupRun | None, what: Due) -> Condition:
    if last is not None and last.progress is not BackupProgress.SUCCEEDED:
        return Condition("Ready", "False", _reason_of(last), _told_of(spec, last))
    after = f"; the next one runs at {what.next_slot}" if what.next_slot else ""
    if last is not None:
        text = f"revision {last.told.get('revision', 'unknown')} is in {last.told.get('file', 'a file of its Job')}"
        return Condition("Ready", "True", "Suspended" if spec.suspend else "BackedUp", f"{text}{after}")
    if spec.suspend:
        return Condition("Ready", "True", "Suspended", ".spec.suspend is true: no backup is started")
    if spec.is_once:
        return Condition("Ready", "False", "Running", "the backup is running")
    return Condition("Ready", "True", "Scheduled", f"the first backup runs at {what.next_slot}")


def _reason_of(run: BackupRun) -> str:
    return "BackupMissed" if run.progress is BackupProgress.MISSED else "BackupFailed"


def _told_of(spec: BackupSpec, run: BackupRun) -> str:
    verb = "was missed" if run.progress is BackupProgress.MISSED else "failed"
    hint = " (hint: this EtcdBackup is finished; delete it and create a new one)" if spec.is_once else ""
    return f"backup {run.name} {verb}: {run.message}{hint}"
