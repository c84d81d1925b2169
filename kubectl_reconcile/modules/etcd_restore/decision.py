"""What an EtcdRestore does next, and what it says of itself.

1. What has been written is never written again, as long as the cluster begins with it: then the restore is done for good.
2. A claim that was made anew is empty: all begins again.
3. What is in the way is told. A Job for anything else ends first, and its pods; then the Job for this.
4. The data is in place once the Job is complete: then the cluster is told which claim holds it.

Pure: a spec, live objects and the status before in, a decision out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kubectl_reconcile.module_api import Context, Manifest, Owned, annotations_of, map_at
from kubectl_reconcile.modules.etcd_restore.children import MADE_FOR, digest, job_name
from kubectl_reconcile.modules.etcd_restore.progress import JobStory, RestoreProgress, is_at_work, story_of
from kubectl_reconcile.modules.etcd_restore.source import ChosenBackup, RestoreObstacle, snapshot_of
from kubectl_reconcile.modules.etcd_restore.spec import RestoreSpec
from kubectl_reconcile.modules.etcd_restore.target import SeedTarget, target_of, too_old


class RestorePhase(StrEnum):
    """How far a restore is."""

    PENDING = "Pending"
    """Something isn't there yet, or is in the way."""
    RESTORING = "Restoring"
    """The Job is at work."""
    STARTING = "Starting"
    """The data is in place; the cluster begins with it."""
    SUCCEEDED = "Succeeded"
    """The cluster has served with it. That is the end, whatever becomes of the cluster."""
    FAILED = "Failed"
    """The Job has failed; no member has begun."""


@dataclass(frozen=True, slots=True)
class RestoreStep:
    """What is so, and what is to be done: *begin* is a Job's snapshot and target, *keep* says whether the Job that is there stays."""

    phase: RestorePhase
    reason: str
    text: str
    is_for_a_person: bool = False
    begin: tuple[ChosenBackup, SeedTarget] | None = None
    keep: bool = False
    seed: Mapping[str, str] = field(default_factory=dict)
    snapshot: ChosenBackup | None = None
    story: JobStory | None = None


def next_step_of(cr: Manifest, spec: RestoreSpec, owned: Owned, ctx: Context) -> RestoreStep:
    """Return what is to be done now."""
    before = map_at(cr, "status")
    seed = {name: str(value) for name, value in map_at(before, "seed").items()}
    cluster = owned.other("EtcdCluster", str(before.get("clusterName") or spec.cluster_ref.name))
    if before.get("phase") == RestorePhase.SUCCEEDED and seed:
        return _after(cr, spec, _done(seed, cluster))
    target = target_of(spec.cluster_ref.name, owned.other("EtcdCluster", spec.cluster_ref.name), ctx.name())
    is_anew = isinstance(target, SeedTarget) and target.claim_uid != seed.get("claimUID")
    if seed and not is_anew:
        return _after(cr, spec, _starting(seed, cluster))
    return _before_it_is_written(spec, owned, ctx, target)


# --- until the data is in place -------------------------------------------------------------------


def _before_it_is_written(
    spec: RestoreSpec, owned: Owned, ctx: Context, target: SeedTarget | RestoreObstacle
) -> RestoreStep:
    backup = owned.other("EtcdBackup", spec.backup.name)
    snapshot = snapshot_of(spec.backup, backup)
    if isinstance(snapshot, RestoreObstacle):
        return _blocked(snapshot)
    if isinstance(target, RestoreObstacle):
        return _blocked(target)
    if obstacle := too_old(spec.cluster_ref.name, target, snapshot):
        return _blocked(obstacle)
    return _job_step(spec, owned, ctx, snapshot, target)


def _blocked(obstacle: RestoreObstacle) -> RestoreStep:
    return RestoreStep(RestorePhase.PENDING, obstacle.reason, obstacle.message, is_for_a_person=not obstacle.passes)


def _job_step(spec: RestoreSpec, owned: Owned, ctx: Context, snapshot: ChosenBackup, target: SeedTarget) -> RestoreStep:
    job, pods = owned.get("Job", job_name(ctx)), owned.read("Pod")
    where = f"{snapshot.folder}/{snapshot.file}" if snapshot.file else f"the newest backup of {snapshot.folder}"
    if job is None or annotations_of(job).get(MADE_FOR) != digest(spec, ctx, snapshot, target):
        if job is not None or any(map(is_at_work, pods)):
            return RestoreStep(RestorePhase.PENDING, "EarlierJobEnds", "an earlier Job ends first")
        text = f"restore {where} to the volume of {target.member}"
        return RestoreStep(RestorePhase.RESTORING, "JobAtWork", text, begin=(snapshot, target), snapshot=snapshot)
    story = story_of(job, pods)
    if story.progress is RestoreProgress.FAILED:
        hint = f"correct what is wrong, or delete Job {job_name(ctx)} to try again"
        text = f"{story.message}{'' if '(hint: ' in story.message else f' (hint: {hint})'}; no member has begun"
        return RestoreStep(RestorePhase.FAILED, story.reason, text, is_for_a_person=True, keep=True, story=story)
    if story.progress is RestoreProgress.RUNNING:
        text = story.message or f"Job {job_name(ctx)} restores {where} to the volume of {target.member}"
        return RestoreStep(RestorePhase.RESTORING, "JobAtWork", text, keep=True, snapshot=snapshot, story=story)
    seed = {"claimUID": target.claim_uid, "memberID": target.member_id, "clusterID": target.cluster_id}
    text = f"the data is in place; EtcdCluster {spec.cluster_ref.name} begins with {target.member}"
    return RestoreStep(RestorePhase.STARTING, "ClusterStarting", text, keep=True, seed=seed, story=story)


# --- once it is -----------------------------------------------------------------------------------


def _starting(seed: Mapping[str, str], cluster: Manifest | None) -> RestoreStep:
    if cluster is None:
        text = "the data is in place, and the EtcdCluster is gone (hint: make it again; as long as its volume claim is there, it begins with the data)"
        return RestoreStep(RestorePhase.STARTING, "ClusterNotFound", text, keep=True, seed=seed)
    status = map_at(cluster, "status")
    members = map_at(status, "members").get("ready") or ()
    if status.get("clusterID") == seed.get("clusterID") and members:
        return _done(seed, cluster)
    text = f"the data is in place; EtcdCluster {cluster['metadata']['name']} begins with it"
    return RestoreStep(RestorePhase.STARTING, "ClusterStarting", text, keep=True, seed=seed)


def _done(seed: Mapping[str, str], cluster: Manifest | None) -> RestoreStep:
    name = cluster["metadata"]["name"] if cluster else "that was restored"
    text = f"EtcdCluster {name} has begun with the backup"
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
            text = f"{name}: was {was} when the data was written, and nothing follows from {now} (hint: set it back, or make another EtcdRestore)"
            return RestoreStep(step.phase, "SpecChanged", text, is_for_a_person=True, keep=True, seed=step.seed)
    return step
