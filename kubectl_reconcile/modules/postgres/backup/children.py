"""The Jobs of backups, and the one that fills the volume of a first instance from a backup.

A backup's pod has two containers, one after the other: PostgreSQL's image copies a server (``pg_basebackup``) and looks at the copy (``pg_verifybackup``); our own image
makes one file of it, checks that and keeps it. To begin with a backup it is the other way round: ours fetches, checks and unpacks it, PostgreSQL's looks at it,
starts it alone, without anybody to serve, and gives the superuser the password of its Secret; only then the folder gets the name that a server reads.

Pure: values in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import (
    BackupWords,
    Context,
    Manifest,
    restricted_container,
    restricted_pod,
    s3_arguments,
    s3_environment,
    s3_mounts,
    s3_volumes,
    slot_suffix,
)
from kubectl_reconcile.modules.postgres.backup.spec import FROM_FIELD, TARGET_FIELD, BackupWish, FromBackup
from kubectl_reconcile.modules.postgres.children import parameter_lines
from kubectl_reconcile.modules.postgres.spec import REPLICATOR, SUPERUSER, MyDatabaseSpec, secret_of

AGENT = "kubectl_reconcile.modules.postgres.agent"
WORDS = BackupWords(
    "example.com/backup-slot",
    ("file", "sizeBytes", "sha256", "timeline", "note"),
    frozenset({"sizeBytes", "timeline"}),
    "sizeBytes",
)
MADE_FOR = "example.com/made-for"
"""On the Job that restores: the digest of what it was made for."""
COMPONENT = "backup"
_USER = 999
_DATA = "/var/lib/postgresql/data"
_BACKUPS, _WORK = "/backups", "/work"

_COPY = """set -eu
umask 077
mkdir -p "$FOLDER"
rm -rf "$FOLDER"/*.copy
pg_basebackup --pgdata="$FOLDER/$ATTEMPT.copy" --dbname="$SOURCE application_name=copy options=-ctcp_user_timeout=60000" --wal-method=stream \\
  --checkpoint=fast --manifest-checksums=SHA256 --no-password
if [ "$VERIFY" = true ]; then
  pg_verifybackup --quiet "$FOLDER/$ATTEMPT.copy"
fi
"""
_BEGIN = """set -eu
umask 077
told() {
  if [ -w /dev/termination-log ]; then cat "$PGDATA/../restored.json" > /dev/termination-log; fi
}
if [ -e "$PGDATA/PG_VERSION" ]; then
  told
  exit 0
fi
new="$PGDATA.restoring"
pg_verifybackup --quiet "$new"
printf '%s\\n' "$PARAMETERS" > "$new/postgresql.auto.conf"
rm -f "$new/standby.signal" "$new/recovery.signal"
quoted=$(printf '%s' "$PASSWORD" | sed "s/'/''/g")
printf "alter role postgres login superuser password '%s'\\n" "$quoted" | postgres --single -D "$new" -c exit_on_error=on -c log_statement=none \\
  -c log_min_duration_statement=-1 -c log_min_error_statement=panic -c password_encryption=scram-sha-256 -c logging_collector=off -c archive_mode=off postgres
sync
mv "$new" "$PGDATA"
sync
told
"""


# --- backups --------------------------------------------------------------------------------------


def job_name(ctx: Context, slot: str) -> str:
    """Return the name of the Job of a slot: the same forever."""
    return ctx.name(f"backup-{slot_suffix(slot)}")


def wished_name(ctx: Context, wish: str) -> str:
    """Return the name of the Job of a backup that somebody asks for by *wish*: the same forever."""
    return ctx.name(f"backup-{hashlib.sha256(wish.encode()).hexdigest()[:10]}")


def backup_job(
    spec: MyDatabaseSpec, wanted: BackupWish, ctx: Context, name: str, source: str, *, slot: str
) -> Manifest:
    """Return the Job *name*, which copies the server at *source*, as PostgreSQL names one to connect to; *slot* is what it is for, empty where that is no slot."""
    pod = {
        **_pod_basics(),
        "volumes": [*wanted.target.volumes(ctx), {"name": "tmp", "emptyDir": {}}],
        "initContainers": [
            _container(
                "copy", spec.server_image, wanted.resources, mounts=wanted.target.mounts(),
                command=["sh", "-c", _COPY], env=_copied_by(wanted, ctx, source),
            )
        ],
        "containers": [
            _container(
                "keep", wanted.image, wanted.resources, mounts=wanted.target.mounts(), command=["python", "-m", AGENT],
                args=_kept_by(wanted, ctx), env=[_ATTEMPT, *(s3_environment(wanted.target.s3) if wanted.target.s3 else ())],
            )
        ],
    }  # fmt: skip
    labels = ctx.labels(COMPONENT)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": {WORDS.slot: slot}},
        "spec": _job_spec(pod, labels, wanted.retries, wanted.deadline_seconds),
    }


def _copied_by(wanted: BackupWish, ctx: Context, source: str) -> list[dict[str, Any]]:
    key = {"name": secret_of(ctx, REPLICATOR), "key": "password"}
    return [
        _ATTEMPT,
        {"name": "SOURCE", "value": source},
        {"name": "FOLDER", "value": _copies(wanted, ctx)},
        {"name": "VERIFY", "value": "true" if wanted.verify else "false"},
        {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": key}},
    ]


def _copies(wanted: BackupWish, ctx: Context) -> str:
    """Return the folder for the copy that a backup is made of: where there is room for backups, or on the node."""
    return _WORK if wanted.target.s3 else wanted.target.folder(ctx)


def _kept_by(wanted: BackupWish, ctx: Context) -> list[str]:
    return [
        "keep",
        f"--copy={_copies(wanted, ctx)}/$(ATTEMPT).copy",
        *wanted.target.arguments(ctx, TARGET_FIELD),
        f"--keep={wanted.retain.count}",
        f"--max-age-days={wanted.retain.days:g}",
        f"--stale-after={wanted.deadline_seconds}",
    ]


# --- beginning with a backup ----------------------------------------------------------------------


def restore_name(ctx: Context) -> str:
    """Return the name of the Job that restores."""
    return ctx.name("restore")


def restore_digest(spec: MyDatabaseSpec, wanted: FromBackup, ctx: Context, claim: str) -> str:
    """Return what tells a Job for this from Jobs for anything else."""
    made = _restore_pod(spec, wanted, ctx, claim)
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]


def restore_job(spec: MyDatabaseSpec, wanted: FromBackup, ctx: Context, claim: str) -> Manifest:
    """Return the Job that fills the volume of *claim* from a backup."""
    labels = ctx.labels(COMPONENT)
    made_for = restore_digest(spec, wanted, ctx, claim)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": restore_name(ctx), "labels": labels, "annotations": {MADE_FOR: made_for}},
        "spec": _job_spec(_restore_pod(spec, wanted, ctx, claim), labels, wanted.retries, wanted.deadline_seconds),
    }


def _restore_pod(spec: MyDatabaseSpec, wanted: FromBackup, ctx: Context, claim: str) -> dict[str, Any]:
    data = {"name": "data", "mountPath": _DATA}
    places = [{"name": "work", "mountPath": _WORK}, *s3_mounts(wanted.s3)] if wanted.s3 else [_BACKUPS_READ]
    password = {"secretKeyRef": {"name": secret_of(ctx, SUPERUSER), "key": "password"}}
    return {
        **_pod_basics(),
        "volumes": [
            *_where(wanted),
            {"name": "data", "persistentVolumeClaim": {"claimName": claim}},
            {"name": "tmp", "emptyDir": {}},
        ],
        "initContainers": [
            _container(
                "fetch", wanted.image, wanted.resources, mounts=[data, *places], command=["python", "-m", AGENT],
                args=_fetched_by(spec, wanted, ctx), env=[*(s3_environment(wanted.s3) if wanted.s3 else ())],
            )
        ],
        "containers": [
            _container(
                "begin", spec.server_image, wanted.resources, mounts=[data], command=["sh", "-c", _BEGIN],
                env=[
                    {"name": "PGDATA", "value": f"{_DATA}/pgdata"},
                    {"name": "PARAMETERS", "value": parameter_lines(spec.parameters)},
                    {"name": "PASSWORD", "valueFrom": password},
                ],
            )
        ],
    }  # fmt: skip


_BACKUPS_READ = {"name": "backups", "mountPath": _BACKUPS, "readOnly": True}


def _where(wanted: FromBackup) -> list[dict[str, Any]]:
    if wanted.s3:
        return [{"name": "work", "emptyDir": {}}, *s3_volumes(wanted.s3)]
    return [{"name": "backups", "persistentVolumeClaim": {"claimName": wanted.claim}}]


def _fetched_by(spec: MyDatabaseSpec, wanted: FromBackup, ctx: Context) -> list[str]:
    s3 = wanted.s3
    folder = s3.folder(ctx.namespace, wanted.database) if s3 else f"{_BACKUPS}/{wanted.database}"
    return [
        "fetch",
        f"--folder={folder}",
        *([f"--work={_WORK}", *s3_arguments(s3, f"{FROM_FIELD}.s3")] if s3 else []),
        *([f"--file={wanted.file}"] if wanted.file else []),
        f"--data={_DATA}/pgdata",
        f"--major={spec.version}",
        f"--restore={ctx.cr['metadata'].get('uid') or ''}",
    ]


# --- what both have -------------------------------------------------------------------------------

_ATTEMPT = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}


def _pod_basics() -> dict[str, Any]:
    return {"restartPolicy": "Never", **restricted_pod(_USER)}


def _job_spec(pod: Mapping[str, Any], labels: Mapping[str, str], retries: int, deadline_s: int) -> dict[str, Any]:
    return {
        "backoffLimit": retries,
        "activeDeadlineSeconds": deadline_s,
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": dict(labels)}, "spec": dict(pod)},
    }


def _container(
    name: str, image: str, resources: Mapping[str, Any], *, mounts: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "resources": dict(resources),
        "volumeMounts": [*mounts, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - of the container, which has no other writable place
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted_container(),
        **more,
    }
