"""EtcdRestore: a CR ``EtcdRestore`` is one backup that an EtcdCluster begins with.

The EtcdCluster names the restore (``spec.restoreFrom``), makes the volume claim of its first member, and waits. The restore writes to it by a Job, checks
first and renames last, and tells which claim holds the data; the cluster begins with that, and grows. What either waits for is in the other's status, so
they may be made in any order.

Conditions: ``Ready`` (the cluster has started with the backup), ``Running``, and ``Degraded`` where only a person can continue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubectl_reconcile.module_api import (
    Condition,
    Context,
    Facts,
    Manifest,
    Outcome,
    Owned,
    Reads,
    Select,
    module,
    named,
    text_at,
    untouched_in,
)
from kubectl_reconcile_operators.etcd_restore.children import check_job, check_name, job, job_name
from kubectl_reconcile_operators.etcd_restore.decision import RestorePhase, RestoreStep, next_step_of
from kubectl_reconcile_operators.etcd_restore.progress import story_of
from kubectl_reconcile_operators.etcd_restore.spec import RestoreSpec, restore_spec

API = "etcd.database.coreos.com/v1beta2"
_BUSY_S, _BLOCKED_S = 5.0, 15.0
_KEPT = ("file", "revision", "sizeBytes", "sha256", "etcdVersion", "startTime", "completionTime")


@module(
    api=API,
    kind="EtcdRestore",
    owns=["batch/v1/Job"],
    reads=[
        Reads("v1", "Pod", selector="reconcile.dev/module=etcdrestore"),
        Reads(API, "EtcdCluster", of=lambda cr: Select.named(text_at(cr, "spec", "clusterRef", "name"))),
        Reads(API, "EtcdBackup", of=lambda cr: Select.named(text_at(cr, "spec", "backup", "name"))),
    ],
)
class EtcdRestore:
    """Restore a backup into an EtcdCluster, which names this restore.

    The snapshot is checked and restored by a Job onto the volume of the first member; the cluster begins with that member, and others are added
    one by one. A cluster that has data is left alone until somebody approves that they are replaced.
    """

    def reconcile(self, cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
        """Begin what is due; tell what happened to what was begun."""
        spec = restore_spec(cr)
        step = next_step_of(cr, spec, owned, ctx)
        children = tuple(_children(spec, step, owned, ctx))
        return Outcome(
            children=children,
            untouched=untouched_in(children),
            status=_status(cr, spec, step, owned, ctx),
            conditions=tuple(_conditions(step)),
            requeue_after_s=_wait_s(step),
        )


def _children(spec: RestoreSpec, step: RestoreStep, owned: Owned, ctx: Context) -> Iterator[Manifest]:
    if step.begin is not None:
        yield job(spec, ctx, *step.begin)
    if step.check is not None:
        yield check_job(spec, ctx, step.check)
    for name in (job_name(ctx), check_name(ctx)):
        if step.keep and owned.get("Job", name) is not None:
            yield named("batch/v1", "Job", name)


def _status(cr: Manifest, spec: RestoreSpec, step: RestoreStep, owned: Owned, ctx: Context) -> dict[str, Any]:
    before: Mapping[str, Any] = cr.get("status") or {}
    is_begun = step.phase is not RestorePhase.PENDING
    found: dict[str, Any] = {
        "phase": step.phase.value,
        "reason": step.text if step.is_for_a_person else "",
        **({name: before[name] for name in _KEPT if name in before} if is_begun and step.begin is None else {}),
        **_known(step, owned, ctx),
        "checked": dict(step.checked),
        "seed": dict(step.seed),
    }
    if is_begun:
        written = step.seed and before.get("seed")
        found["clusterName"] = before.get("clusterName") if written else spec.cluster_ref.name
        found["backupName"] = before.get("backupName") if written else spec.backup.name
        found["members"] = _members(step, owned, str(found["clusterName"]), before)
    return {name: value for name, value in found.items() if value not in ("", None, {})}


def _known(step: RestoreStep, owned: Owned, ctx: Context) -> dict[str, Any]:
    """Return what is known of the snapshot and of the Job: from the EtcdBackup first, from the Job's pod once that has told it."""
    snapshot, live = step.snapshot, owned.get("Job", job_name(ctx))
    found: dict[str, Any] = {}
    if snapshot is not None and step.begin is not None:
        file = f"{snapshot.folder}/{snapshot.file}" if snapshot.file else ""
        found = {"file": file, "revision": snapshot.revision or "", "sizeBytes": snapshot.size or ""}
        found |= {"sha256": snapshot.sha256, "etcdVersion": snapshot.version}
    story = step.story or (story_of(live, owned.read("Pod")) if live is not None and step.seed else None)
    if story is not None:
        found |= {"startTime": story.began, "completionTime": story.ended, **story.told}
    return {name: value for name, value in found.items() if value != ""}


def _members(step: RestoreStep, owned: Owned, name: str, before: Mapping[str, Any]) -> Any:
    """Return how many members of the restored cluster serve; what was seen last where it is gone."""
    cluster = owned.other("EtcdCluster", name)
    status: Mapping[str, Any] = (cluster or {}).get("status") or {}
    if not step.seed or status.get("clusterID") != step.seed.get("clusterID"):
        return before.get("members") if step.phase is RestorePhase.SUCCEEDED else None
    return len((status.get("members") or {}).get("ready") or ())


def _conditions(step: RestoreStep) -> Iterator[Condition]:
    is_done = step.phase is RestorePhase.SUCCEEDED
    yield Condition("Ready", "True" if is_done and not step.is_for_a_person else "False", step.reason, step.text)
    at_work = step.phase in {RestorePhase.RESTORING, RestorePhase.STARTING}
    yield Condition(
        "Running", "True" if at_work else "False", step.reason if at_work else "Idle", step.text if at_work else ""
    )
    if step.is_for_a_person:
        yield Condition("Degraded", "True", step.reason, step.text)


def _wait_s(step: RestoreStep) -> float | None:
    """Return when to look again, if nothing happens until then. All that is looked at is watched."""
    if step.phase is RestorePhase.SUCCEEDED:
        return None
    return _BUSY_S if step.phase is not RestorePhase.PENDING and not step.is_for_a_person else _BLOCKED_S
