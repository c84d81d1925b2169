"""The Job that fills the volume of a first instance, from a backup or by a copy of a server that runs.

Its pod has two containers, one after the other. The first one makes a folder: our own image fetches, checks and unpacks a backup, or PostgreSQL's copies a server (``pg_basebackup``). The second one, of
PostgreSQL's image, looks at that folder, starts a server on it alone, without anybody to serve, and gives the superuser the password of its Secret; only then the folder gets the name that a server reads.

A server that isn't ours is asked for TLS, and to prove by SCRAM over that very connection that it knows the password: so nobody gets to know the password who doesn't already, nor reads along. Its
settings stay behind, since they may name files and programs that aren't here.

Pure: values in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest
from kubectl_reconcile_operators.backups.s3 import s3_arguments, s3_environment, s3_mounts, s3_volumes
from kubectl_reconcile_operators.postgres.backup.children import (
    AGENT,
    COMPONENT,
    job_container,
    job_spec,
    pod_basics,
)
from kubectl_reconcile_operators.postgres.backup.spec import FROM_FIELD, FromBackup
from kubectl_reconcile_operators.postgres.bootstrap.spec import FromCluster
from kubectl_reconcile_operators.postgres.children import parameter_lines, source_at
from kubectl_reconcile_operators.postgres.spec import SUPERUSER, MyDatabaseSpec, secret_of

MADE_FOR = "example.com/made-for"
"""On the Job: the digest of what it was made for."""
_IN_DIGESTS = "kubectl_reconcile.modules.postgres.agent"
"""What AGENT was called before. In digests it still is, so that a Job of before an upgrade counts as made for the same."""
_DATA = "/var/lib/postgresql/data"
_BACKUPS, _WORK = "/backups", "/work"
_SAFELY = "sslmode=require channel_binding=require"

_COPY = """set -eu
umask 077
mark=$(dirname "$PGDATA")/restored.json
if [ -e "$PGDATA" ]; then
  grep -qsF "\\"restore\\": \\"$RESTORE\\"" "$mark" && exit 0
  echo "NotEmpty: the volume holds a database that this copy hasn't written (hint: delete the volume claim, or copy into a MyDatabase of another name)"
  exit 1
fi
new="$PGDATA.restoring"
rm -rf "$new"
pg_basebackup --pgdata="$new" --dbname="$SOURCE application_name=copy options=-ctcp_user_timeout=60000" --wal-method=stream \\
  --checkpoint=fast --manifest-checksums=SHA256 --no-password
found=$(cat "$new/PG_VERSION")
if [ "$found" != "$MAJOR" ]; then
  rm -rf "$new"
  echo "OtherVersion: $NAMED is PostgreSQL $found, which $MAJOR doesn't read (hint: set .spec.version to $found in a new MyDatabase)"
  exit 1
fi
size=$(du -sk "$new" | cut -f 1)
printf '{"file": "a copy of %s, %s", "sizeBytes": %s, "restore": "%s"}' "$NAMED" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$((size * 1024))" "$RESTORE" > "$mark"
sync
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
if [ "$SETTINGS" = ours ]; then
  megabytes=$(($(LC_ALL=C pg_controldata -D "$new" | sed -n 's/^Bytes per WAL segment: *//p') / 1048576))
  printf '%s\\n' "min_wal_size = $((megabytes * 5))MB" "max_wal_size = $((megabytes * 64))MB" > "$new/postgresql.conf"
  : > "$new/pg_ident.conf"
fi
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


def filling_name(ctx: Context) -> str:
    """Return the name of the Job."""
    return ctx.name("restore")


def filling_digest(spec: MyDatabaseSpec, wanted: FromBackup | FromCluster, ctx: Context, claim: str) -> str:
    """Return what tells a Job for this from Jobs for anything else."""
    made = _pod(spec, wanted, ctx, claim)
    text = json.dumps(made, sort_keys=True).replace(f'"{AGENT}"', f'"{_IN_DIGESTS}"')
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def filling_job(spec: MyDatabaseSpec, wanted: FromBackup | FromCluster, ctx: Context, claim: str) -> Manifest:
    """Return the Job that fills the volume of *claim*."""
    labels = ctx.labels(COMPONENT)
    made_for = filling_digest(spec, wanted, ctx, claim)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": filling_name(ctx), "labels": labels, "annotations": {MADE_FOR: made_for}},
        "spec": job_spec(_pod(spec, wanted, ctx, claim), labels, wanted.retries, wanted.deadline_seconds),
    }


def _pod(spec: MyDatabaseSpec, wanted: FromBackup | FromCluster, ctx: Context, claim: str) -> dict[str, Any]:
    password = {"secretKeyRef": {"name": secret_of(ctx, SUPERUSER), "key": "password"}}
    is_foreign = isinstance(wanted, FromCluster) and wanted.host
    return {
        **pod_basics(),
        "volumes": [
            *(_where(wanted) if isinstance(wanted, FromBackup) else ()),
            {"name": "data", "persistentVolumeClaim": {"claimName": claim}},
            {"name": "tmp", "emptyDir": {}},
        ],
        "initContainers": [
            _fetching(spec, wanted, ctx) if isinstance(wanted, FromBackup) else _copying(spec, wanted, ctx)
        ],
        "containers": [
            job_container(
                "begin", spec.server_image, wanted.resources, mounts=[_HELD], command=["sh", "-c", _BEGIN],
                env=[
                    {"name": "PGDATA", "value": f"{_DATA}/pgdata"},
                    {"name": "PARAMETERS", "value": parameter_lines(spec.parameters)},
                    {"name": "SETTINGS", "value": "ours" if is_foreign else "copied"},
                    {"name": "PASSWORD", "valueFrom": password},
                ],
            )
        ],
    }  # fmt: skip


_HELD = {"name": "data", "mountPath": _DATA}


# --- a server that runs ---------------------------------------------------------------------------


def _copying(spec: MyDatabaseSpec, wanted: FromCluster, ctx: Context) -> dict[str, Any]:
    host = f"{wanted.database}.{ctx.namespace}.svc" if wanted.database else wanted.host
    source = source_at(host, wanted.port) if wanted.database else f"{source_at(host, wanted.port, user='')} {_SAFELY}"
    key = {"name": wanted.secret, "key": "password"}
    user = {"name": "PGUSER", "valueFrom": {"secretKeyRef": {"name": wanted.secret, "key": "username"}}}
    return job_container(
        "copy", spec.server_image, wanted.resources, mounts=[_HELD], command=["sh", "-c", _COPY],
        env=[
            {"name": "SOURCE", "value": source},
            {"name": "NAMED", "value": wanted.source},
            {"name": "MAJOR", "value": str(spec.version)},
            {"name": "RESTORE", "value": str(ctx.cr["metadata"].get("uid") or "")},
            {"name": "PGDATA", "value": f"{_DATA}/pgdata"},
            {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": key}},
            *((user,) if wanted.host else ()),
        ],
    )  # fmt: skip


# --- a backup -------------------------------------------------------------------------------------

_BACKUPS_READ = {"name": "backups", "mountPath": _BACKUPS, "readOnly": True}


def _fetching(spec: MyDatabaseSpec, wanted: FromBackup, ctx: Context) -> dict[str, Any]:
    places = [{"name": "work", "mountPath": _WORK}, *s3_mounts(wanted.s3)] if wanted.s3 else [_BACKUPS_READ]
    return job_container(
        "fetch", wanted.image, wanted.resources, mounts=[_HELD, *places], command=["python", "-m", AGENT],
        args=_fetched_by(spec, wanted, ctx), env=[*(s3_environment(wanted.s3) if wanted.s3 else ())],
    )  # fmt: skip


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
