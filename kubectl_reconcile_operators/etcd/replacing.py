"""How a cluster that has data gives it up for a backup, once somebody has approved.

The EtcdRestore that the cluster names has checked its snapshot, and tells by a *digest* which one. The cluster *offers* to be replaced by exactly that;
the approval is of this snapshot alone. Then, each step found again from what is there: all pods end; all volumes are put aside, before anything is written, so that
the old majority can't come back; a new volume is made and shown to the restore, as for a cluster that is new. What the restore has written goes on as its first member.

Pure: a situation in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubectl_reconcile.module_api import Context, Facts, Manifest, actions_done, map_at, text_at
from kubectl_reconcile_operators.etcd.restored import RestoreState
from kubectl_reconcile_operators.etcd.situation import Situation, Volume, free_slot, in_order
from kubectl_reconcile_operators.etcd.steps import Do, EtcdStep, Why


@dataclass(frozen=True, slots=True)
class Replacement:
    """What earlier passes noted: for which snapshot, told by its *digest*, the data is given up, and which actions have run."""

    digest: str = ""
    done: tuple[str, ...] = ()


def replacement_of(cr: Manifest) -> Replacement:
    """Return what the status and the journal of *cr* say."""
    return Replacement(text_at(cr, "status", "replacing", "digest"), actions_done(cr))


def replacement_key(restore: RestoreState) -> str:
    """Return the key of the action that is offered, which is of this snapshot alone."""
    return f"replace-{restore.digest}"


def given_up_for(s: Situation, noted: Replacement) -> str:
    """Return the digest of the snapshot that the data is given up for by somebody's decision, nothing where it isn't or that has been written."""
    restore = s.restore
    if restore is None or not restore.digest or _is_written(s, restore):
        return ""
    is_decided = noted.digest == restore.digest or replacement_key(restore) in noted.done
    return restore.digest if is_decided else ""


def _is_written(s: Situation, restore: RestoreState) -> bool:
    return bool(restore.claim_uid) and any(each.uid == restore.claim_uid for each in s.volumes.values())


# --- what is offered ------------------------------------------------------------------------------


def replacement_offered(s: Situation, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the action by which a cluster's data is given up, where a restore is ready to replace it."""
    restore = s.restore
    if restore is None or not restore.digest or not s.is_formed or _is_written(s, restore):
        return
    old = [slot for slot, volume in s.volumes.items() if not volume.aside]
    aside = f"; the volumes of {', '.join(old)} are put aside" if old else ""
    text = f"replace all data with {restore.file} of EtcdRestore {restore.name}: {_loss(s, restore)}{aside}"
    situation = f"{text} (hint: to approve this: kubectl reconcile approve etcd/{ctx.cr['metadata']['name']}; otherwise remove .spec.restoreFrom)"
    yield EtcdStep(
        Do.REPLACE, Why.SETTLED, text, member=restore.digest,
        reason="RestoreOffered", needs_approval=True, situation=situation,
    )  # fmt: skip


def _loss(s: Situation, restore: RestoreState) -> str:
    pods = map_at(s.facts, "pods")
    current = max((int(map_at(pods, name).get("revision") or 0) for name in pods), default=0)
    since = f"everything is lost that was written after revision {restore.revision}, and that is written until the members stop"
    return (
        f"{since} (the cluster is at {current}: {max(0, current - restore.revision)} revisions by now)"
        if current
        else since
    )


# --- what follows ---------------------------------------------------------------------------------


def replacing(s: Situation, noted: Replacement, ctx: Context) -> Iterator[EtcdStep]:
    """Yield what gives the data up, where that was decided; and what is waited for where all data is put aside."""
    restore, digest = s.restore, given_up_for(s, noted)
    if restore is None or restore.is_done or _is_written(s, restore) or not s.is_formed:
        return
    if not digest:
        if (
            not s.pods
            and any(each.aside for each in s.volumes.values())
            and not any(each.member for each in s.volumes.values())
        ):
            yield from replacement_offered(s, ctx)
            yield _waiting(restore)
        return
    why = Why.RECOVERING
    for pod in s.pods_in_order:
        text = f"delete {pod.slot}: EtcdRestore {restore.name} replaces its data"
        yield EtcdStep(Do.DELETE_POD, why, text, pod.slot)
    seed = next((each for each in in_order(s, ctx) if each.seed_for == digest), None)
    if any(not each.aside and each != seed for each in s.volumes.values()):
        text = f"put aside all volumes, so that no member continues with the data that EtcdRestore {restore.name} replaces; the volumes stay"
        yield EtcdStep(Do.PUT_ASIDE, why, text, seed.slot if seed else "")
    if seed is None:
        slot = free_slot(s, ctx)
        text = f"create the volume of {slot}, for EtcdRestore {restore.name} to write to"
        yield EtcdStep(Do.CREATE_VOLUME, why, text, slot, digest)
    else:
        reason = "RestoreFailed" if restore.has_failed else "Restoring"
        yield EtcdStep(Do.WAIT, why, f"EtcdRestore {restore.name}: {restore.says}", seed.slot, digest, reason=reason)


def _waiting(restore: RestoreState) -> EtcdStep:
    """Return what is said while all data is put aside and nobody has decided what follows."""
    if not restore.is_there:
        text = f".spec.restoreFrom.name: there is no EtcdRestore {restore.name} in this namespace, and all volumes are put aside (hint: create it)"
        return EtcdStep(Do.WAIT, Why.RECOVERING, text, reason="RestoreNotFound")
    reason = "RestoreFailed" if restore.has_failed else "Restoring"
    return EtcdStep(Do.WAIT, Why.RECOVERING, f"EtcdRestore {restore.name}: {restore.says}", reason=reason)


def new_seed(step: EtcdStep) -> Volume:
    """Return the volume that *step* makes."""
    return Volume(step.slot, seed_for=step.member if step.do is Do.CREATE_VOLUME else "")


def is_given_up(cr: Manifest, facts: Facts) -> bool:
    """Tell, for previews, whether the data is about to be given up."""
    return bool(facts.get("replacing")) or bool(text_at(cr, "status", "replacing", "digest"))
