"""From a backup to a first instance: the Job that fills its volume, and what became of that.

It is begun only where there is no database yet, and no pod before it is done. What it was made for is noted on the Job: one that failed gives way once the spec says something else.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_reconcile.module_api import (
    BackupProgress,
    BackupWords,
    Context,
    Manifest,
    Owned,
    named,
    runs_of,
    s3_hinted,
)
from kubectl_reconcile.modules.postgres.backup.children import (
    MADE_FOR,
    WORDS,
    restore_digest,
    restore_job,
    restore_name,
)
from kubectl_reconcile.modules.postgres.backup.spec import FROM_FIELD, FromBackup
from kubectl_reconcile.modules.postgres.situation import DatabaseState, VolumeFilling, claim_name
from kubectl_reconcile.modules.postgres.spec import MyDatabaseSpec
from kubectl_reconcile.modules.postgres.steps import DatabaseStep, NextDo, Purpose, stop, wait

_RESTORES = BackupWords(MADE_FOR, WORDS.told, WORDS.numbers, WORDS.proof)


def seed_of(s: DatabaseState, ctx: Context) -> str:
    """Return the slot of the first instance."""
    return min(s.volumes, default=ctx.name("0"), key=ctx.number_of)


def filling_of(spec: MyDatabaseSpec, s: DatabaseState, owned: Owned, ctx: Context) -> VolumeFilling:
    """Return how far the volume of the first instance is filled; nothing where it isn't to be, or was long ago."""
    wanted = spec.from_backup
    if wanted is None or s.is_formed:
        return VolumeFilling()
    run = next(iter(runs_of({}, owned, ctx.now, _RESTORES)), None)
    if run is None:
        return VolumeFilling(obstacle=_missing(wanted, owned))
    is_other = run.slot != restore_digest(spec, wanted, ctx, claim_name(seed_of(s, ctx)))
    said = s3_hinted(run.message, wanted.s3, f"{FROM_FIELD}.s3") if wanted.s3 else run.message
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


def restoring(wanted: FromBackup, s: DatabaseState, seed: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what there is to do until the volume of the first instance is filled."""
    found, job = s.filling, restore_name(ctx)
    what = f"{wanted.database}/{wanted.file}" if wanted.file else f"the newest backup of {wanted.database}"
    if not found.is_begun:
        if found.obstacle:
            yield stop(found.obstacle, "ClaimNotFound")
        yield DatabaseStep(NextDo.RESTORE, Purpose.CREATING, f"restore {what} to the volume of {seed}", seed)
    elif found.has_failed and found.is_other:
        text = f"delete Job {job}, which failed, since .spec has changed"
        yield DatabaseStep(NextDo.FORGET_RESTORE, Purpose.CREATING, text, seed)
    elif found.has_failed:
        hint = (
            ""
            if "(hint: " in found.said
            else f" (hint: correct {FROM_FIELD}, or delete Job {job} to have it tried again)"
        )
        yield stop(f"{FROM_FIELD}: {found.said}{hint}", "RestoreFailed")
    elif not found.is_done:
        yield wait(
            f"Job {job} restores {what} to the volume of {seed}{f': {found.said}' if found.said else ''}",
            "Restoring",
            s,
        )


def restore_children(spec: MyDatabaseSpec, s: DatabaseState, step: DatabaseStep, ctx: Context) -> Iterator[Manifest]:
    """Yield the Job that there is to be: until the database has begun."""
    if step.do is NextDo.RESTORE and spec.from_backup:
        yield restore_job(spec, spec.from_backup, ctx, claim_name(step.about))
    elif s.filling.is_begun and step.do is not NextDo.FORGET_RESTORE:
        yield named("batch/v1", "Job", restore_name(ctx))
