"""What an EtcdRestore does next, and what it says of itself.

1. What has been written is never written again, as long as the cluster begins with it: then the restore is done for good.
2. A claim that was recreated is empty: all begins again.
3. What is in the way is told. A Job for anything else ends first, and its pods; then the Job for this.
4. Where the cluster has data, the snapshot is checked first; then the cluster asks for an approval, and until it has given its data up for this very
   snapshot nothing is written.
5. The data is in place once the Job is complete: then the cluster is told which claim holds it.

Pure: a spec, live objects and the status before in, a decision out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, Owned, annotations_of, map_at, text_at
from kubectl_reconcile_operators.backups.s3 import s3_hinted
from kubectl_reconcile_operators.etcd_restore.children import (
    MADE_FOR,
    check_digest,
    check_name,
    digest,
    job_name,
    snapshot_digest,
)
from kubectl_reconcile_operators.etcd_restore.progress import JobStory, RestoreProgress, is_at_work, story_of
from kubectl_reconcile_operators.etcd_restore.source import ChosenBackup, RestoreObstacle, snapshot_of
from kubectl_reconcile_operators.etcd_restore.spec import RestoreSpec
from kubectl_reconcile_operators.etcd_restore.target import FormedCluster, SeedTarget, target_of, too_old


class RestorePhase(StrEnum):
    """How far a restore is."""

    PENDING = "Pending"
    """Something isn't there yet, or is in the way."""
    RESTORING = "Restoring"
    """The Job is running."""
    STARTING = "Starting"
    """The data is in place; the cluster begins with it."""
    SUCCEEDED = "Succeeded"
    """The cluster has served with it. That is the end, whatever happens to the cluster."""
    FAILED = "Failed"
    """The Job has failed; no member has started."""


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """What is so, and what is to be done: *begin* is a Job's snapshot and target, *keep* says whether Jobs that are there stay.

    *check* is a snapshot that is to be checked first, since it would replace data, *checked* what was found.
    """

    phase: RestorePhase
    reason: str
    text: str
    is_for_a_person: bool = False
    begin: tuple[ChosenBackup, SeedTarget] | None = None
    keep: bool = False
    seed: Mapping[str, str] = field(default_factory=dict)
    snapshot: ChosenBackup | None = None
    story: JobStory | None = None
    check: ChosenBackup | None = None
    checked: Mapping[str, Any] = field(default_factory=dict)


def next_step_of(cr: Manifest, spec: RestoreSpec, owned: Owned, ctx: Context) -> RestoreStep:
    """Return what is to be done now."""
    before = map_at(cr, "status")
    seed = {name: str(value) for name, value in map_at(before, "seed").items()}
    cluster = owned.other("EtcdCluster", str(before.get("clusterName") or spec.cluster_ref.name))
    if before.get("phase") == RestorePhase.SUCCEEDED and seed:
        return _after(cr, spec, _done(seed, cluster))
    target = target_of(spec.cluster_ref.name, owned.other("EtcdCluster", spec.cluster_ref.name), ctx.name())
    asked = target.seed if isinstance(target, FormedCluster) else target
    is_anew = isinstance(asked, SeedTarget) and asked.claim_uid != seed.get("claimUID")
    if seed and not is_anew:
        return _after(cr, spec, _starting(seed, cluster))
    return _before_it_is_written(spec, owned, ctx, target)


# --- until the data is in place -------------------------------------------------------------------


def _before_it_is_written(
    spec: RestoreSpec, owned: Owned, ctx: Context, target: SeedTarget | FormedCluster | RestoreObstacle
) -> RestoreStep:
    backup = owned.other("EtcdBackup", spec.backup.name)
    snapshot = snapshot_of(spec.backup, backup, str(ctx.cr["metadata"].get("namespace") or ""))
    if isinstance(snapshot, RestoreObstacle):
        return _blocked(snapshot)
    if isinstance(target, RestoreObstacle):
        return _blocked(target)
    if obstacle := too_old(spec.cluster_ref.name, target, snapshot):
        return _blocked(obstacle)
    if isinstance(target, FormedCluster):
        return _replacing_step(spec, owned, ctx, snapshot, target)
    return _job_step(spec, owned, ctx, snapshot, target)


def _blocked(obstacle: RestoreObstacle) -> RestoreStep:
    return RestoreStep(RestorePhase.PENDING, obstacle.reason, obstacle.message, is_for_a_person=not obstacle.passes)


def _replacing_step(
    spec: RestoreSpec, owned: Owned, ctx: Context, snapshot: ChosenBackup, cluster: FormedCluster
) -> RestoreStep:
    """Return what is to be done where a cluster has data: the snapshot is checked, somebody approves, the members end; then as with a new one."""
    checked = map_at(ctx.cr, "status", "checked")
    if checked.get("madeFor") != check_digest(spec, ctx, snapshot):
        found = _check_step(spec, owned, ctx, snapshot)
        if isinstance(found, RestoreStep):
            return found
        checked = found
    pinned = replace(
        snapshot, file=text_at(checked, "file").rpartition("/")[2], sha256=text_at(checked, "sha256"),
        size=int(checked.get("sizeBytes") or 0), revision=int(checked.get("revision") or 0),
    )  # fmt: skip
    if cluster.seed is not None and cluster.approved == checked.get("digest"):
        return replace(_job_step(spec, owned, ctx, pinned, cluster.seed), checked=checked)
    if cluster.given_up_for == checked.get("digest"):
        text = f"EtcdCluster {cluster.name} stops its members and puts their volumes aside"
        return RestoreStep(RestorePhase.RESTORING, "ClusterEnds", text, checked=checked)
    text = (
        f"{checked.get('file')} is whole, with revision {checked.get('revision')}; EtcdCluster {cluster.name} has data, and continues as it is until"
        f" somebody approves the replacement (hint: kubectl reconcile approve etcd/{cluster.name})"
    )
    return RestoreStep(RestorePhase.PENDING, "ApprovalNeeded", text, is_for_a_person=True, checked=checked)


def _check_step(
    spec: RestoreSpec, owned: Owned, ctx: Context, snapshot: ChosenBackup
) -> RestoreStep | Mapping[str, Any]:
    """Return what was found of a snapshot, or how far its check is."""
    live, made_for = owned.get("Job", check_name(ctx)), check_digest(spec, ctx, snapshot)
    text = f"{snapshot.folder}/{snapshot.file or 'the newest backup'} is checked before it may replace data"
    if live is None:
        return RestoreStep(RestorePhase.PENDING, "SnapshotIsChecked", text, check=snapshot)
    if annotations_of(live).get(MADE_FOR) != made_for:
        return RestoreStep(RestorePhase.PENDING, "EarlierJobEnds", "an earlier Job ends first")
    story = _story(live, owned, snapshot)
    if story.progress is RestoreProgress.FAILED:
        hint = f"correct what is wrong, or delete Job {check_name(ctx)} to try again"
        text = f"{story.message}{'' if '(hint: ' in story.message else f' (hint: {hint})'}; nothing has been replaced"
        return RestoreStep(RestorePhase.FAILED, story.reason, text, is_for_a_person=True, keep=True, story=story)
    if story.progress is RestoreProgress.RUNNING:
        return RestoreStep(RestorePhase.PENDING, "SnapshotIsChecked", story.message or text, keep=True)
    known = {"file": f"{snapshot.folder}/{snapshot.file}", "revision": snapshot.revision, "sizeBytes": snapshot.size}
    found = {**known, "sha256": snapshot.sha256, **story.told, "madeFor": made_for}
    return {**found, "digest": snapshot_digest(ctx, found)}


def _story(job: Manifest, owned: Owned, snapshot: ChosenBackup) -> JobStory:
    found = story_of(job, owned.read("Pod"))
    return replace(found, message=s3_hinted(found.message, snapshot.s3, snapshot.field)) if snapshot.s3 else found


def _job_step(spec: RestoreSpec, owned: Owned, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> RestoreStep:
    job, pods = owned.get("Job", job_name(ctx)), owned.read("Pod")
    where = f"{snapshot.folder}/{snapshot.file}" if snapshot.file else f"the newest backup of {snapshot.folder}"
    if job is None or annotations_of(job).get(MADE_FOR) != digest(spec, ctx, snapshot, target):
        if job is not None or any(map(is_at_work, pods)):
            return RestoreStep(RestorePhase.PENDING, "EarlierJobEnds", "an earlier Job ends first")
        text = f"restore {where} to the volume of {target.member}"
        return RestoreStep(RestorePhase.RESTORING, "JobAtWork", text, begin=(snapshot, target), snapshot=snapshot)
    story = _story(job, owned, snapshot)
    if story.progress is RestoreProgress.FAILED:
        hint = f"correct what is wrong, or delete Job {job_name(ctx)} to try again"
        text = f"{story.message}{'' if '(hint: ' in story.message else f' (hint: {hint})'}; no member has started"
        return RestoreStep(RestorePhase.FAILED, story.reason, text, is_for_a_person=True, keep=True, story=story)
    if story.progress is RestoreProgress.RUNNING:
        text = story.message or f"Job {job_name(ctx)} restores {where} to the volume of {target.member}"
        return RestoreStep(RestorePhase.RESTORING, "JobAtWork", text, keep=True, snapshot=snapshot, story=story)
    seed = {"claimUID": target.claim_uid, "memberID": target.member_id, "clusterID": target.cluster_id}
    text = f"the data is in place; EtcdCluster {spec.cluster_ref.name} starts with {target.member}"
    return RestoreStep(RestorePhase.STARTING, "ClusterStarting", text, keep=True, seed=seed, story=story)


# --- once it is -----------------------------------------------------------------------------------


def _starting(seed: Mapping[str, str], cluster: Manifest | None) -> RestoreStep:
    if cluster is None:
        text = "the data is in place, and the EtcdCluster is gone (hint: create it again; as long as its volume claim exists, it starts with the data)"
        return RestoreStep(RestorePhase.STARTING, "ClusterNotFound", text, keep=True, seed=seed)
    status = map_at(cluster, "status")
    members = map_at(status, "members").get("ready") or ()
    if status.get("clusterID") == seed.get("clusterID") and members:
        return _done(seed, cluster)
    text = f"the data is in place; EtcdCluster {cluster['metadata']['name']} starts with it"
    return RestoreStep(RestorePhase.STARTING, "ClusterStarting", text, keep=True, seed=seed)


def _done(seed: Mapping[str, str], cluster: Manifest | None) -> RestoreStep:
    name = cluster["metadata"]["name"] if cluster else "that was restored"
    text = f"EtcdCluster {name} has started with the backup"
    return RestoreStep(RestorePhase.SUCCEEDED, "Restored", text, keep=True, seed=seed)


def _after(cr: Manifest, spec: RestoreSpec, step: RestoreStep) -> RestoreStep:
    """Return *step*, or what is to be said of a spec that was changed since: nothing follows from it."""
    before = map_at(cr, "status")
    file = str(before.get("file") or "")
    for name, was, now in (
        (".spec.clusterRef.name", str(before.get("clusterName") or ""), spec.cluster_ref.name),
        (".spec.backup.name", str(before.get("backupName") or ""), spec.backup.name),
        (".spec.backup.snapshot", file.rpartition("/")[2], spec.backup.snapshot),
    ):
        if was and now and was != now:
            text = f"{name}: was {was} when the data was written; the change to {now} has no effect (hint: set it back, or create another EtcdRestore)"
            return RestoreStep(step.phase, "SpecChanged", text, is_for_a_person=True, keep=True, seed=step.seed)
    return step
