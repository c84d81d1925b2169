"""What an EtcdRestore is made of in Kubernetes: one Job.

Its pod has three containers, one after the other: our own image chooses and checks the snapshot, etcd's image restores it with etcdutl under a
name that no member reads, ours renames it.

Pure: values in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest
from kubectl_reconcile.modules.etcd_restore.source import ChosenBackup
from kubectl_reconcile.modules.etcd_restore.spec import RestoreSpec
from kubectl_reconcile.modules.etcd_restore.target import SeedTarget

AGENT = "kubectl_reconcile.modules.etcd_backup.agent.restore"
MADE_FOR = "etcd.database.coreos.com/made-for"
"""On Jobs: the digest of what they were made for; the snapshot doesn't count where none is named."""
FINISH = "finish"
_BACKUPS, _WORK, _DATA = "/backups", "/work", "/var/etcd"
_USER = 65532
"""Who the image runs as."""


def job_name(ctx: Context) -> str:
    """Return the name of the Job."""
    return ctx.name("restore")


def job(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> Manifest:
    """Return the Job that writes *snapshot* to the volume of *target*."""
    made_for = digest(spec, ctx, snapshot, target)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job_name(ctx), "labels": ctx.labels(), "annotations": {MADE_FOR: made_for}},
        "spec": _job_spec(spec, ctx, snapshot, target),
    }


def digest(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> str:
    """Return what tells a Job for this from Jobs for anything else. A newer backup that has come meanwhile is nothing else."""
    same = ChosenBackup(snapshot.claim, snapshot.folder, spec.backup.snapshot)
    whole = [target.claim_uid, _job_spec(spec, ctx, same, target)]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def _job_spec(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> dict[str, Any]:
    return {
        "backoffLimit": spec.retries,
        "activeDeadlineSeconds": spec.timeout_in_second,
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": {"labels": {**spec.pod.labels, **ctx.labels()}, "annotations": dict(spec.pod.annotations)},
            "spec": _pod_spec(spec, ctx, snapshot, target),
        },
    }


def _pod_spec(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> dict[str, Any]:
    ours = ["python", "-m", AGENT]
    arguments = _arguments(ctx, snapshot, target)
    secrets = {"imagePullSecrets": [dict(each) for each in spec.pod.image_pull_secrets]}
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumes": [
            {"name": "backups", "persistentVolumeClaim": {"claimName": snapshot.claim}},
            {"name": "data", "persistentVolumeClaim": {"claimName": target.claim}},
            {"name": "work", "emptyDir": {}},
        ],
        "initContainers": [
            _container(spec, "prepare", spec.image, ours, ["prepare", *arguments]),
            _container(spec, "restore", target.image, ["/usr/local/bin/etcdutl"], _etcdutl(target)),
        ],
        "containers": [_container(spec, FINISH, spec.image, ours, ["finish", *arguments])],
        **target.place,
        **(secrets if spec.pod.image_pull_secrets else {}),
    }


def _arguments(ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> list[str]:
    found: Mapping[str, Any] = {
        "folder": f"{_BACKUPS}/{snapshot.folder}",
        "snapshot": snapshot.file,
        "sha256": snapshot.sha256,
        "size": snapshot.size,
        "work": _WORK,
        "data": f"{_DATA}/{target.data}",
        "restore": ctx.cr["metadata"].get("uid") or "",
        "attempt": "$(POD_UID)",
    }
    return [f"--{name}={value}" for name, value in found.items() if value]


def _etcdutl(target: SeedTarget) -> list[str]:
    return [
        "snapshot",
        "restore",
        f"{_WORK}/snapshot.db",
        f"--data-dir={_DATA}/restoring-$(POD_UID)",
        f"--name={target.member}",
        f"--initial-cluster={target.member}={target.peer_url}",
        f"--initial-cluster-token={target.token}",
        f"--initial-advertise-peer-urls={target.peer_url}",
    ]


def _container(spec: RestoreSpec, name: str, image: str, command: list[str], arguments: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        "command": command,
        "args": arguments,
        "env": [{"name": "POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        "resources": dict(spec.pod.resources),
        "volumeMounts": [
            {"name": "backups", "mountPath": _BACKUPS, "readOnly": True},
            {"name": "data", "mountPath": _DATA},
            {"name": "work", "mountPath": _WORK},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
