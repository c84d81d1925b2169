"""Snapshots that are taken before something that can't be undone: before an upgrade, and before the cluster's end.

A *precaution* is an EtcdBackup of its own, made by the cluster beside itself, that is taken once: its own module makes the Job, checks what was written, and says in its status how
that went. The cluster waits until it is there. Where it fails, nothing goes on until it is recreated (once somebody has deleted it), or the spec does without.

Pure: a spec and live objects in, steps and manifests out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import (
    Condition,
    Context,
    Manifest,
    Owned,
    condition_of,
    has_condition,
    map_at,
    text_at,
)
from kubectl_reconcile_operators.etcd.spec import ClusterSpec, EtcdVersion, PrecautionSpec
from kubectl_reconcile_operators.etcd.steps import Do, EtcdStep, Why

BACKUP_API = "etcd.database.coreos.com/v1beta2"
_NAME_MAX = 48
"""The longest name of an EtcdBackup."""
_DO_WITHOUT = """ --type=merge -p '{"spec":{"backup":{"beforeDeletion":false}}}'"""
_DONE = ("file", "etcdRevision", "sha256", "lastSuccessDate")


@dataclass(frozen=True, slots=True)
class Precaution:
    """An EtcdBackup that the cluster has made; *says* is its own sentence, without its hint."""

    name: str
    is_done: bool = False
    has_failed: bool = False
    is_going: bool = False
    says: str = ""


def precautions_of(owned: Owned) -> dict[str, Precaution]:
    """Return the EtcdBackups that the cluster has made, by name."""
    found = (_precaution(each) for each in owned.of("EtcdBackup"))
    return {each.name: each for each in found}


def _precaution(backup: Manifest) -> Precaution:
    ready = condition_of(backup, "Ready") or {}
    is_done = has_condition(backup, "Ready") and map_at(backup, "status").get("succeeded") is True
    return Precaution(
        backup["metadata"]["name"],
        is_done,
        has_failed=not is_done and has_condition(backup, "Degraded"),
        is_going=bool(backup["metadata"].get("deletionTimestamp")),
        says=str(ready.get("message") or "it hasn't started yet").partition(" (hint: ")[0],
    )


def before_upgrade(ctx: Context, version: EtcdVersion) -> str:
    """Return the name of the precaution before the upgrade to a version."""
    return _named(ctx, f"before-{str(version).replace('.', '-')}")


def before_deletion(ctx: Context) -> str:
    """Return the name of the precaution before the cluster's end."""
    return _named(ctx, "last")


def _named(ctx: Context, suffix: str) -> str:
    name = ctx.name(suffix)
    if len(name) <= _NAME_MAX:
        return name
    digest = hashlib.sha256(ctx.name().encode()).hexdigest()[:8]
    return f"{ctx.name()[: _NAME_MAX - len(suffix) - 10].rstrip('-')}-{digest}-{suffix}"


def backup_of(spec: ClusterSpec, ctx: Context, name: str) -> Manifest:
    """Return the EtcdBackup that a precaution is."""
    wanted = spec.backup
    if wanted is None:
        raise ValueError("no place for backups is configured")
    pod: Mapping[str, Any] = {
        "nodeSelector": dict(spec.pod.node_selector),
        "tolerations": [dict(each) for each in spec.pod.tolerations],
    }
    return {
        "apiVersion": BACKUP_API,
        "kind": "EtcdBackup",
        "metadata": {"name": name, "labels": ctx.labels()},
        "spec": {
            "clusterRef": {"name": ctx.cr["metadata"]["name"]},
            "storage": _storage(wanted, ctx),
            "image": wanted.image,
            "backupPolicy": {"timeoutInSecond": wanted.timeout_in_second},
            **({"pod": given} if (given := {name: value for name, value in pod.items() if value}) else {}),
        },
    }


def _storage(wanted: PrecautionSpec, ctx: Context) -> dict[str, Any]:
    if wanted.claim_name:
        return {"persistentVolumeClaim": {"claimName": wanted.claim_name}}
    return {"s3": dict(map_at(ctx.cr, "spec", "backup", "s3"))}


# --- before an upgrade ----------------------------------------------------------------------------


def awaited(spec: ClusterSpec, known: Mapping[str, Precaution], ctx: Context) -> str:
    """Return the name of the precaution that an upgrade must wait for, nothing where it needn't."""
    if spec.backup is None or not spec.backup.before_upgrade:
        return ""
    name = before_upgrade(ctx, spec.target)
    found = known.get(name)
    return "" if found is not None and found.is_done and not found.is_going else name


def taken_first(known: Mapping[str, Precaution], name: str, spec: ClusterSpec) -> EtcdStep:
    """Return the step towards the precaution that an upgrade waits for."""
    found, what = known.get(name), f"a snapshot before {spec.target}"
    if found is None:
        return EtcdStep(Do.BACK_UP, Why.UPGRADING, f"create EtcdBackup {name}: {what}", name, reason="BackingUp")
    text = f"EtcdBackup {name}, {what}: {'it is terminating' if found.is_going else found.says}"
    if found.has_failed and not found.is_going:
        hint = "correct that, and delete the EtcdBackup if it has failed; or set .spec.backup.beforeUpgrade to false"
        return EtcdStep(Do.WAIT, Why.UPGRADING, f"{text} (hint: {hint})", name, reason="BackupFailed")
    return EtcdStep(Do.WAIT, Why.UPGRADING, text, name, reason="BackingUp")


def kept_backups(
    spec: ClusterSpec, known: Mapping[str, Precaution], step: EtcdStep, ctx: Context
) -> Iterator[Manifest]:
    """Yield the EtcdBackup before the version that is specified, as long as that is: of one before, only what it wrote stays."""
    if spec.backup is None or not spec.backup.before_upgrade:
        return
    name = before_upgrade(ctx, spec.target)
    if step.do is Do.BACK_UP or (name in known and not known[name].is_going):
        yield backup_of(spec, ctx, name)


# --- before the end -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LastBackup:
    """What a cluster waits for that is to go: *child* is the EtcdBackup; *written* is what it has written, once it has."""

    child: Manifest
    written: Mapping[str, Any]
    conditions: tuple[Condition, ...]


def last_backup(spec: ClusterSpec, owned: Owned, ctx: Context) -> LastBackup | None:
    """Return what the cluster's end waits for, None where it needn't: nobody asked, there was nothing, or it is done."""
    cr = ctx.cr
    if spec.backup is None or not spec.backup.before_deletion:
        return None
    if not text_at(cr, "status", "clusterID") or map_at(cr, "status").get("lastBackup"):
        return None
    name = before_deletion(ctx)
    found = precautions_of(owned).get(name, Precaution(name, says="it hasn't been created yet"))
    status = map_at(owned.get("EtcdBackup", name) or {}, "status")
    written = {"name": name, **{each: status[each] for each in _DONE if each in status}} if found.is_done else {}
    return LastBackup(backup_of(spec, ctx, name), written, tuple(_last_told(found, cr)))


def _last_told(found: Precaution, cr: Manifest) -> Iterator[Condition]:
    text = f"EtcdBackup {found.name}, the last one: {found.says}; the members serve until it is done"
    if not found.has_failed:
        yield Condition("Ready", "False", "BackingUp", text)
        return
    without = "kubectl patch etcd " + cr["metadata"]["name"] + _DO_WITHOUT
    text += f" (hint: correct that, and delete the EtcdBackup if it has failed; or skip it: {without})"
    yield Condition("Ready", "False", "BackupFailed", text)
    yield Condition("Degraded", "True", "BackupFailed", text)
