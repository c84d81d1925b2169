"""What an EtcdRestore is made of in Kubernetes: one Job, and before it one that checks the snapshot where data is to be replaced.

The first one's pod has three containers, one after the other: our own image chooses and checks the snapshot, etcd's image restores it with etcdutl under a
name that no member reads, ours renames it.

Pure: values in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, restricted_container, restricted_pod
from kubectl_reconcile_operators.backups.s3 import s3_arguments, s3_environment, s3_mounts, s3_volumes
from kubectl_reconcile_operators.etcd_restore.source import ChosenBackup
from kubectl_reconcile_operators.etcd_restore.spec import RestoreSpec
from kubectl_reconcile_operators.etcd_restore.target import SeedTarget

AGENT = "kubectl_reconcile_operators.etcd_backup.agent.restore"
_IN_DIGESTS = "kubectl_reconcile.modules.etcd_backup.agent.restore"
"""What the program was called before. In digests it still is, so that a Job that runs while the daemon is upgraded counts as made for the same."""
MADE_FOR = "etcd.database.coreos.com/made-for"
"""On Jobs: the digest of what they were made for; the snapshot doesn't count where none is named."""
FINISH = "finish"
_OURS = ["python", "-m", AGENT]
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
        "spec": _job_spec(spec, ctx, _pod_spec(spec, ctx, snapshot, target)),
    }


def check_name(ctx: Context) -> str:
    """Return the name of the Job that checks a snapshot before anybody is asked."""
    return ctx.name("check")


def check_job(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup) -> Manifest:
    """Return the Job that checks *snapshot*, and writes nothing."""
    made_for = check_digest(spec, ctx, snapshot)
    whole = _job_spec(spec, ctx, _check_pod_spec(spec, snapshot))
    metadata = {"name": check_name(ctx), "labels": ctx.labels(), "annotations": {MADE_FOR: made_for}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": whole}


def check_digest(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup) -> str:
    """Return what tells a check of this from checks of anything else. A newer backup that has come meanwhile is nothing else."""
    same = snapshot.again(spec.backup.snapshot)
    return _short([ctx.cr["metadata"].get("uid") or "", _job_spec(spec, ctx, _check_pod_spec(spec, same))])


def snapshot_digest(ctx: Context, checked: Mapping[str, Any]) -> str:
    """Return what tells a snapshot, as it was checked for this restore, from any other: an approval is of that."""
    return _short(
        [ctx.cr["metadata"].get("uid") or "", checked.get("file"), checked.get("sha256"), checked.get("revision")]
    )


def _short(whole: Any) -> str:
    text = json.dumps(whole, sort_keys=True).replace(f'"{AGENT}"', f'"{_IN_DIGESTS}"')
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> str:
    """Return what tells a Job for this from Jobs for anything else. A newer backup that has come meanwhile is nothing else."""
    same = snapshot.again(spec.backup.snapshot)
    return _short([target.claim_uid, _job_spec(spec, ctx, _pod_spec(spec, ctx, same, target))])


def _job_spec(spec: RestoreSpec, ctx: Context, pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "backoffLimit": spec.retries,
        "activeDeadlineSeconds": spec.timeout_in_second,
        "podReplacementPolicy": "Failed",
        "template": {
            "metadata": {"labels": {**spec.pod.labels, **ctx.labels()}, "annotations": dict(spec.pod.annotations)},
            "spec": pod,
        },
    }


def _check_pod_spec(spec: RestoreSpec, snapshot: ChosenBackup) -> dict[str, Any]:
    work = [f"--work={_WORK}"] if snapshot.s3 else []
    made = _with_place(
        snapshot, _container(spec, "check", spec.image, _OURS, ["check", *_arguments_of(snapshot), *work])
    )
    needed = {"data"} if snapshot.s3 else {"data", "work"}
    passing = [{"name": "work", "emptyDir": {}}] if snapshot.s3 else []
    return {
        **_pod_basics(spec),
        "volumes": [*_place_volumes(snapshot), *passing],
        "containers": [{**made, "volumeMounts": [each for each in made["volumeMounts"] if each["name"] not in needed]}],
    }


def _pod_spec(spec: RestoreSpec, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> dict[str, Any]:
    arguments = _arguments(ctx, snapshot, target)
    return {
        **_pod_basics(spec),
        "volumes": [
            *_place_volumes(snapshot),
            {"name": "data", "persistentVolumeClaim": {"claimName": target.claim}},
            {"name": "work", "emptyDir": {}},
        ],
        "initContainers": [
            _with_place(snapshot, _container(spec, "prepare", spec.image, _OURS, ["prepare", *arguments])),
            _with_claim(
                snapshot, _container(spec, "restore", target.image, ["/usr/local/bin/etcdutl"], _etcdutl(target))
            ),
        ],
        "containers": [_with_claim(snapshot, _container(spec, FINISH, spec.image, _OURS, ["finish", *arguments]))],
        **target.place,
    }


def _place_volumes(snapshot: ChosenBackup) -> list[dict[str, Any]]:
    if snapshot.s3:
        return s3_volumes(snapshot.s3)
    return [{"name": "backups", "persistentVolumeClaim": {"claimName": snapshot.claim}}]


def _with_claim(snapshot: ChosenBackup, container: dict[str, Any]) -> dict[str, Any]:
    """Return a container that sees the claim with the backups, where they are on one."""
    if snapshot.s3:
        return container
    backups = {"name": "backups", "mountPath": _BACKUPS, "readOnly": True}
    return {**container, "volumeMounts": [backups, *container["volumeMounts"]]}


def _with_place(snapshot: ChosenBackup, container: dict[str, Any]) -> dict[str, Any]:
    """Return a container that gets to the backups wherever they are: it alone has the credentials of a bucket."""
    if snapshot.s3 is None:
        return _with_claim(snapshot, container)
    return {
        **container,
        "env": [*container["env"], *s3_environment(snapshot.s3)],
        "volumeMounts": [*container["volumeMounts"], *s3_mounts(snapshot.s3)],
    }


def _pod_basics(spec: RestoreSpec) -> dict[str, Any]:
    secrets = {"imagePullSecrets": [dict(each) for each in spec.pod.image_pull_secrets]}
    return {
        "restartPolicy": "Never",
        **restricted_pod(_USER),
        **(secrets if spec.pod.image_pull_secrets else {}),
    }


def _arguments(ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> list[str]:
    found: Mapping[str, Any] = {
        "work": _WORK,
        "data": f"{_DATA}/{target.data}",
        "restore": ctx.cr["metadata"].get("uid") or "",
        "attempt": "$(POD_UID)",
    }
    return [*_arguments_of(snapshot), *(f"--{name}={value}" for name, value in found.items() if value)]


def _arguments_of(snapshot: ChosenBackup) -> list[str]:
    found: Mapping[str, Any] = {
        "folder": snapshot.folder if snapshot.s3 else f"{_BACKUPS}/{snapshot.folder}",
        "snapshot": snapshot.file,
        "sha256": snapshot.sha256,
        "size": snapshot.size,
    }
    place = s3_arguments(snapshot.s3, snapshot.field) if snapshot.s3 else []
    return [*(f"--{name}={value}" for name, value in found.items() if value), *place]


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
            {"name": "data", "mountPath": _DATA},
            {"name": "work", "mountPath": _WORK},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted_container(),
    }
