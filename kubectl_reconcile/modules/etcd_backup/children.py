"""What an EtcdBackup is made of in Kubernetes: a Job for each backup, and the volume claim where none is named.

The Job runs ``kubectl_reconcile.modules.etcd_backup.agent`` in our own image: it asks etcd, writes and checks the snapshot, and takes away old ones.

Pure: a spec and a context in, manifests out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Manifest,
    map_at,
    restricted_container,
    restricted_pod,
    s3_arguments,
    s3_environment,
    s3_mounts,
    s3_volumes,
)
from kubectl_reconcile.modules.etcd_backup.decision import suffix_of
from kubectl_reconcile.modules.etcd_backup.runs import SLOT
from kubectl_reconcile.modules.etcd_backup.spec import S3_FIELD, BackupSpec

AGENT = "kubectl_reconcile.modules.etcd_backup.agent"
_PLACE, _WORK, _CERTIFICATES = "/backups", "/work", "/etc/etcd-client"
_USER = 65532
"""Who the image runs as."""


@dataclass(frozen=True, slots=True)
class BackupTarget:
    """The etcd that is backed up: the addresses of its members, and the Secret to show to them."""

    endpoints: tuple[str, ...]
    secret: str = ""


def claim_name(spec: BackupSpec, ctx: Context) -> str:
    """Return the name of the claim that backups are written to."""
    named = spec.storage.persistent_volume_claim
    return named.claim_name if named else ctx.name("backups")


def claim(cr: Manifest, ctx: Context) -> Manifest | None:
    """Return the claim that is made where none is named. It is read from the CR as it stands: one that is deleted may make no sense any more."""
    storage = map_at(cr, "spec", "storage")
    if "volumeClaimSpec" not in storage:
        return None
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": ctx.name("backups"), "labels": ctx.labels()},
        "spec": dict(map_at(storage, "volumeClaimSpec")),
    }


def job_name(ctx: Context, slot: str) -> str:
    """Return the name of the Job of a slot: the same forever."""
    return ctx.name(suffix_of(slot))


def job(spec: BackupSpec, ctx: Context, slot: str, target: BackupTarget) -> Manifest:
    """Return the Job of a slot."""
    policy, wanted = spec.backup_policy, spec.pod
    labels = {**wanted.labels, **ctx.labels()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(ctx, slot), "labels": ctx.labels(), "annotations": {SLOT: slot}},
        "spec": {
            "backoffLimit": policy.retries,
            "activeDeadlineSeconds": policy.timeout_in_second,
            "template": {
                "metadata": {"labels": labels, "annotations": dict(wanted.annotations)},
                "spec": _pod_spec(spec, ctx, target),
            },
        },
    }


def _pod_spec(spec: BackupSpec, ctx: Context, target: BackupTarget) -> dict[str, Any]:
    wanted = spec.pod
    s3 = spec.storage.s3
    volumes, mounts = _volumes(spec, ctx)
    if target.secret:
        volumes.append({"name": "certificates", "secret": {"secretName": target.secret}})
        mounts.append({"name": "certificates", "mountPath": _CERTIFICATES, "readOnly": True})
    found: dict[str, Any] = {
        "restartPolicy": "Never",
        **restricted_pod(_USER),
        "volumes": volumes,
        "containers": [
            {
                "name": "backup",
                "image": spec.image,
                "command": ["python", "-m", AGENT],
                "args": _arguments(spec, ctx, target),
                **({"env": s3_environment(s3)} if s3 else {}),
                "resources": dict(wanted.resources),
                "volumeMounts": mounts,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": restricted_container(),
            }
        ],
    }
    given: Mapping[str, Any] = {
        "nodeSelector": dict(wanted.node_selector),
        "affinity": dict(wanted.affinity),
        "tolerations": [dict(each) for each in wanted.tolerations],
        "imagePullSecrets": [dict(each) for each in wanted.image_pull_secrets],
    }
    return {**found, **{name: value for name, value in given.items() if value}}


def _volumes(spec: BackupSpec, ctx: Context) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the volumes of where backups go, and their mounts. To a bucket, a snapshot passes through a volume that goes with the pod."""
    if (s3 := spec.storage.s3) is None:
        claimed = {"name": "backups", "persistentVolumeClaim": {"claimName": claim_name(spec, ctx)}}
        return [claimed], [{"name": "backups", "mountPath": _PLACE}]
    passing: dict[str, Any] = {"name": "work", "emptyDir": {}}
    return [passing, *s3_volumes(s3)], [{"name": "work", "mountPath": _WORK}, *s3_mounts(s3)]


def _place_arguments(spec: BackupSpec, ctx: Context) -> list[str]:
    if (s3 := spec.storage.s3) is None:
        return [f"--folder={_PLACE}/{ctx.name()}"]
    folder = s3.folder(ctx.cr["metadata"].get("namespace") or "", ctx.name())
    return [f"--folder={folder}", f"--work={_WORK}", *s3_arguments(s3, S3_FIELD)]


def _arguments(spec: BackupSpec, ctx: Context, target: BackupTarget) -> list[str]:
    policy = spec.backup_policy
    found = [f"--endpoint={each}" for each in target.endpoints]
    found += [
        *_place_arguments(spec, ctx),
        f"--keep={policy.max_backups}",
        f"--max-age-days={policy.max_age_in_days}",
    ]
    found += [f"--stale-after={policy.timeout_in_second}"]
    return [*found, f"--certificates={_CERTIFICATES}"] if target.secret else found
