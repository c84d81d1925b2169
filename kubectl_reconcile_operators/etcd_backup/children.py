"""What an EtcdBackup is made of in Kubernetes: a Job for each backup, and the volume claim where none is named.

The Job runs ``kubectl_reconcile_operators.etcd_backup.agent`` in our own image: it asks etcd, writes and checks the snapshot, and takes away old ones.

Pure: a spec and a context in, manifests out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, restricted_container, restricted_pod, slot_suffix
from kubectl_reconcile_operators.backups.retention import SNAPSHOT_NAMES
from kubectl_reconcile_operators.backups.runs import BackupRun, BackupWords, unnamed
from kubectl_reconcile_operators.backups.s3 import s3_environment
from kubectl_reconcile_operators.etcd_backup.spec import STORAGE_FIELD, BackupSpec

AGENT = "kubectl_reconcile_operators.etcd_backup.agent"
WORDS = BackupWords(
    "etcd.database.coreos.com/slot",
    ("file", "revision", "sizeBytes", "sha256", "etcdVersion", "member", "durationSeconds", "note"),
    frozenset({"revision", "sizeBytes", "durationSeconds"}),
    "revision",
)
_CERTIFICATES = "/etc/etcd-client"
_USER = 65532
"""Who the image runs as."""


@dataclass(frozen=True, slots=True)
class BackupTarget:
    """The etcd that is backed up: the addresses of its members, the Secret to show to them, and the *uid* of its EtcdCluster, if it has one: two that were created one after the other may call themselves the same."""

    endpoints: tuple[str, ...]
    secret: str = ""
    uid: str = ""


def job_name(ctx: Context, slot: str) -> str:
    """Return the name of the Job of a slot: the same forever."""
    return ctx.name(slot_suffix(slot))


def job(spec: BackupSpec, ctx: Context, slot: str, target: BackupTarget, runs: Iterable[BackupRun]) -> Manifest:
    """Return the Job of a slot; *runs* are those before."""
    policy, wanted = spec.backup_policy, spec.pod
    labels = {**wanted.labels, **ctx.labels()}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(ctx, slot), "labels": ctx.labels(), "annotations": {WORDS.slot: slot}},
        "spec": {
            "backoffLimit": policy.retries,
            "activeDeadlineSeconds": policy.timeout_in_second,
            "template": {
                "metadata": {"labels": labels, "annotations": dict(wanted.annotations)},
                "spec": _pod_spec(spec, ctx, target, runs),
            },
        },
    }


def _pod_spec(spec: BackupSpec, ctx: Context, target: BackupTarget, runs: Iterable[BackupRun]) -> dict[str, Any]:
    wanted = spec.pod
    s3 = spec.storage.s3
    volumes, mounts = spec.storage.volumes(ctx), spec.storage.mounts()
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
                "args": _arguments(spec, ctx, target, runs),
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


def _arguments(spec: BackupSpec, ctx: Context, target: BackupTarget, runs: Iterable[BackupRun]) -> list[str]:
    policy = spec.backup_policy
    found = [f"--endpoint={each}" for each in target.endpoints]
    found += [
        *spec.storage.arguments(ctx, STORAGE_FIELD),
        f"--keep={policy.max_backups}",
        f"--max-age-days={policy.max_age_in_days}",
    ]
    found += [f"--stale-after={policy.timeout_in_second}"]
    found += [f"--created-as={target.uid}"] if target.uid else []
    found += [f"--ours={each}" for each in unnamed(runs, SNAPSHOT_NAMES)]
    return [*found, f"--certificates={_CERTIFICATES}"] if target.secret else found
