"""From a backup, or a server that runs, to a first instance: the Job that fills its volume, and what happened to it.

It is begun only where there is no database yet, and no pod before it is done. What it was made for is noted on the Job: one that failed gives way once the spec says something else.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.module_api import Context, Manifest, Owned, named
from kubectl_reconcile_operators.backups.runs import BackupProgress, BackupWords, runs_of
from kubectl_reconcile_operators.backups.s3 import s3_hinted
from kubectl_reconcile_operators.postgres.backup.children import WORDS
from kubectl_reconcile_operators.postgres.backup.spec import FROM_FIELD, FromBackup
from kubectl_reconcile_operators.postgres.bootstrap.children import MADE_FOR, filling_digest, filling_job, filling_name
from kubectl_reconcile_operators.postgres.bootstrap.spec import CLUSTER_FIELD, FromCluster
from kubectl_reconcile_operators.postgres.situation import DatabaseState, VolumeFilling, claim_name
from kubectl_reconcile_operators.postgres.spec import MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import ABSENT, OK, DatabaseStep, Do, Why, stop, wait

_FILLINGS = BackupWords(MADE_FOR, WORDS.told, WORDS.numbers, WORDS.proof)


def seed_of(s: DatabaseState, ctx: Context) -> str:
    """Return the slot of the first instance."""
    return min(s.volumes, default=ctx.name("0"), key=ctx.number_of)


def filling_of(spec: MyDatabaseSpec, s: DatabaseState, owned: Owned, ctx: Context) -> VolumeFilling:
    """Return how far the volume of the first instance is filled; nothing where it isn't to be, or was long ago."""
    wanted = spec.filled_from
    if wanted is None or s.is_formed:
        return VolumeFilling()
    run = next(iter(runs_of({}, owned, ctx.now, _FILLINGS)), None)
    if run is None:
        obstacle = _missing(wanted, owned) if isinstance(wanted, FromBackup) else _unreachable(wanted, s)
        return VolumeFilling(obstacle=obstacle)
    is_other = run.slot != filling_digest(spec, wanted, ctx, claim_name(seed_of(s, ctx)))
    s3 = wanted.s3 if isinstance(wanted, FromBackup) else None
    said = s3_hinted(run.message, s3, f"{FROM_FIELD}.s3") if s3 else run.message
    return VolumeFilling(
        is_begun=True,
        is_done=run.progress is BackupProgress.SUCCEEDED,
        has_failed=run.progress is BackupProgress.FAILED,
        is_other=is_other,
        said=said,
        file=str(run.told.get("file") or ""),
    )


def _missing(wanted: FromBackup, owned: Owned) -> str:
    """Return what is wrong with the claim that the backup is on; nothing where nothing is."""
    if (
        wanted.s3
        or owned.other("PersistentVolumeClaim", wanted.claim)
        or owned.get("PersistentVolumeClaim", wanted.claim)
    ):
        return ""
    field = f"{FROM_FIELD}.persistentVolumeClaim"
    return f"{field}: there is no PersistentVolumeClaim {wanted.claim} in this namespace (hint: name the claim that the backups are on by its claimName, or s3 for a bucket)"


def _unreachable(wanted: FromCluster, s: DatabaseState) -> str:
    """Return what is wrong with the Secret that a server is copied by; nothing where nothing is."""
    known = s.secrets.get(wanted.secret, ABSENT)
    if known == OK:
        return ""
    if wanted.host:
        hint = " (hint: create it with username and password of somebody who may copy the server)"
        return f"{CLUSTER_FIELD}.secretName: Secret {wanted.secret} {f'is missing{hint}' if known == ABSENT else known}"
    if known == ABSENT:
        hint = f"MyDatabase {wanted.database} has one once it exists with at least 2 replicas, or with backup"
        return f"{CLUSTER_FIELD}.database: there is no Secret {wanted.secret} in this namespace (hint: {hint})"
    return f"{CLUSTER_FIELD}.database: Secret {wanted.secret} {known}"


def filled(wanted: FromBackup | FromCluster, s: DatabaseState, seed: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what there is to do until the volume of the first instance is filled."""
    found, job = s.filling, filling_name(ctx)
    field, verb, what = _told(wanted)
    is_copy = isinstance(wanted, FromCluster)
    if not found.is_begun:
        if found.obstacle:
            yield stop(found.obstacle, "SourceNotFound" if is_copy else "ClaimNotFound")
        yield DatabaseStep(Do.RESTORE, Why.CREATING, f"{verb} {what} to the volume of {seed}", seed)
    elif found.has_failed and found.is_other:
        text = f"delete Job {job}, which failed, since .spec has changed"
        yield DatabaseStep(Do.FORGET_RESTORE, Why.CREATING, text, seed)
    elif found.has_failed:
        hint = f" (hint: correct {field}, or delete Job {job} to have it tried again)"
        reason = "CopyFailed" if is_copy else "RestoreFailed"
        yield stop(f"{field}: {found.said}{'' if '(hint: ' in found.said else hint}", reason)
    elif not found.is_done:
        does = "copies" if is_copy else "restores"
        text = f"Job {job} {does} {what} to the volume of {seed}{f': {found.said}' if found.said else ''}"
        yield wait(text, "Copying" if is_copy else "Restoring", s)


def _told(wanted: FromBackup | FromCluster) -> tuple[str, str, str]:
    """Return the field of the spec that says so, and what is done with what."""
    if isinstance(wanted, FromCluster):
        return CLUSTER_FIELD, "copy", wanted.source
    newest = f"the newest backup of {wanted.database}"
    return FROM_FIELD, "restore", f"{wanted.database}/{wanted.file}" if wanted.file else newest


def filling_children(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Manifest]:
    """Yield the Job that there is to be: until the database has begun."""
    if step.do is Do.RESTORE and spec.filled_from:
        yield filling_job(spec, spec.filled_from, ctx, claim_name(step.about))
    elif s.filling.is_begun and step.do is not Do.FORGET_RESTORE:
        yield named("batch/v1", "Job", filling_name(ctx))
