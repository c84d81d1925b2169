"""The Jobs of backups.

A backup's pod has two containers, one after the other: PostgreSQL's image copies a server (``pg_basebackup``) and looks at the copy (``pg_verifybackup``); our own image
makes one file of it, checks that and keeps it.

Pure: values in, manifests out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, restricted_container, restricted_pod, slot_suffix
from kubectl_reconcile_operators.backups.retention import COPY_NAMES
from kubectl_reconcile_operators.backups.runs import BackupRun, BackupWords, unnamed
from kubectl_reconcile_operators.backups.s3 import s3_environment
from kubectl_reconcile_operators.postgres.backup.spec import TARGET_FIELD, BackupWish
from kubectl_reconcile_operators.postgres.spec import REPLICATOR, MyDatabaseSpec, secret_of

AGENT = "kubectl_reconcile_operators.postgres.agent"
WORDS = BackupWords(
    "example.com/backup-slot",
    ("file", "sizeBytes", "sha256", "timeline", "note"),
    frozenset({"sizeBytes", "timeline"}),
    "sizeBytes",
)
COMPONENT = "backup"
_USER = 999
_WORK = "/work"

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


# --- backups --------------------------------------------------------------------------------------


def job_name(ctx: Context, slot: str) -> str:
    """Return the name of the Job of a slot: the same forever."""
    return ctx.name(f"backup-{slot_suffix(slot)}")


def wished_name(ctx: Context, wish: str) -> str:
    """Return the name of the Job of a backup that somebody asks for by *wish*: the same forever."""
    return ctx.name(f"backup-{hashlib.sha256(wish.encode()).hexdigest()[:10]}")


def backup_job(
    spec: MyDatabaseSpec,
    wanted: BackupWish,
    ctx: Context,
    name: str,
    source: str,
    runs: Iterable[BackupRun],
    *,
    slot: str,
) -> Manifest:
    """Return the Job *name*, which copies the server at *source*, as PostgreSQL names one to connect to; *slot* is what it is for, empty where that is no slot. *runs* are those before."""
    pod = {
        **pod_basics(),
        "volumes": [*wanted.target.volumes(ctx), {"name": "tmp", "emptyDir": {}}],
        "initContainers": [
            job_container(
                "copy", spec.server_image, wanted.resources, mounts=wanted.target.mounts(),
                command=["sh", "-c", _COPY], env=_copied_by(wanted, ctx, source),
            )
        ],
        "containers": [
            job_container(
                "keep", wanted.image, wanted.resources, mounts=wanted.target.mounts(), command=["python", "-m", AGENT],
                args=_kept_by(wanted, ctx, runs), env=[_ATTEMPT, *(s3_environment(wanted.target.s3) if wanted.target.s3 else ())],
            )
        ],
    }  # fmt: skip
    labels = ctx.labels(COMPONENT)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": {WORDS.slot: slot}},
        "spec": job_spec(pod, labels, wanted.retries, wanted.deadline_seconds),
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


def _kept_by(wanted: BackupWish, ctx: Context, runs: Iterable[BackupRun]) -> list[str]:
    return [
        "keep",
        f"--copy={_copies(wanted, ctx)}/$(ATTEMPT).copy",
        *wanted.target.arguments(ctx, TARGET_FIELD),
        f"--keep={wanted.retain.count}",
        f"--max-age-days={wanted.retain.days:g}",
        f"--stale-after={wanted.deadline_seconds}",
        *(f"--ours={each}" for each in unnamed(runs, COPY_NAMES)),
    ]


# --- what Jobs have -------------------------------------------------------------------------------

_ATTEMPT = {"name": "ATTEMPT", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}


def pod_basics() -> dict[str, Any]:
    """Return what all pods of Jobs have."""
    return {"restartPolicy": "Never", **restricted_pod(_USER)}


def job_spec(pod: Mapping[str, Any], labels: Mapping[str, str], retries: int, deadline_s: int) -> dict[str, Any]:
    """Return the spec of a Job with this pod, which is tried again so often within its time."""
    return {
        "backoffLimit": retries,
        "activeDeadlineSeconds": deadline_s,
        "podReplacementPolicy": "Failed",
        "template": {"metadata": {"labels": dict(labels)}, "spec": dict(pod)},
    }


def job_container(
    name: str, image: str, resources: Mapping[str, Any], *, mounts: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    """Return a container of such a pod, with fields by name."""
    return {
        "name": name,
        "image": image,
        "resources": dict(resources),
        "volumeMounts": [*mounts, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - of the container, which has no other writable place
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted_container(),
        **more,
    }
