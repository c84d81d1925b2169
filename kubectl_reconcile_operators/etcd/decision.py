"""What is to be done next for an etcd cluster: one step, or what is waited for.

The order, each line only where those above are settled:

1. Paused: nothing. Certificates that the cluster issues itself (see ``tls``), whatever else there is to do: nobody talks without. A pod that is going is waited for, a person where it
   should long have gone, and a volume that goes without a pod.
2. No members yet: one seed, and never a second one where data of an earlier one is left. Where a backup is to be restored: a volume, and then a
   seed on what was written to it.
3. Members and pods are made to agree. A pod that isn't a member goes, and so does the volume of a slot whose member was replaced, which holds nothing that others haven't got. That of a member that
   isn't wanted any more, or that somebody else has removed, is set aside: it is kept. A member without a
   pod gets one: a new one always, one that ran before on its own volume. Only a member whose data is gone, goes with its pod, or is
   refused by its own etcd, is removed; a later step adds another.
4. Members not known, or fewer than a majority that serve: no membership changes. What has a volume gets its pod back. Where no majority will
   come back, one member may go on alone if somebody approves (see ``recovery``). Before all that: where somebody has approved that a backup replaces
   all data (see ``replacing``).
5. A learner that has caught up is promoted. Members that don't serve are waited for; where there are too many, one that isn't ready goes first.
6. Size: a learner more, or a member less, never the leader.
7. Room where the quota is used up, if somebody approves (see ``upkeep``).
8. Version and template: one pod at a time while all serve, the leader last, after another has taken over; one minor at a time, never back. Before
   a newer version a snapshot is taken, where the spec says where to; nobody runs that version before it is there (see ``precautions``).
9. A slot of the schedule: members are defragmented, one after the other. Volumes of members that aren't wanted any more go, where the spec says so and somebody approves.

Pure: a situation and a spec in, a step out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubectl_reconcile.module_api import Context, actions_begun, actions_done, seconds_between, text_at
from kubectl_reconcile_operators.etcd.precautions import awaited, taken_first
from kubectl_reconcile_operators.etcd.recovery import (
    accepting,
    all_lost,
    alone,
    back_among_others,
    knowledge,
    lost,
    offered,
    presumed_slots,
    recovery_of,
    useless,
)
from kubectl_reconcile_operators.etcd.replacing import replacement_of, replacement_offered, replacing
from kubectl_reconcile_operators.etcd.situation import (
    ASIDE,
    MEMBER,
    EtcdMember,
    Pod,
    Situation,
    Volume,
    free_slot,
    in_order,
)
from kubectl_reconcile_operators.etcd.spec import ClusterSpec, EtcdVersion
from kubectl_reconcile_operators.etcd.steps import SETTLED, Do, EtcdStep, Why
from kubectl_reconcile_operators.etcd.tls.decision import certifying, cut_off, taken
from kubectl_reconcile_operators.etcd.upkeep import alarms_told, defragmenting, is_growing, making_room, upkeep_of
from kubectl_reconcile_operators.volumes import (
    SurplusEnd,
    end_of_surplus,
    surplus_occasion,
    surplus_set_aside,
    surplus_told,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What members are to run: a version and the digest of a template. *refusal* says why the specified version isn't it, *awaits* which EtcdBackup is to be there first."""

    version: EtcdVersion
    template: str
    refusal: str = ""
    awaits: str = ""

    def is_outdated(self, pod: Pod) -> bool:
        """Tell whether a pod was made for another version, by another template, or so that it would begin again on an empty volume."""
        return pod.version != self.version or pod.template != self.template or pod.begins_for_life


def wanted_of(spec: ClusterSpec, s: Situation, template: str, ctx: Context) -> Wanted:
    """Return what members are to run now, given what they run: one minor more at most, never less, and only after a precaution."""
    base, target = s.version or s.running_version or s.ran_version, spec.target
    running = max((pod.version for pod in s.pods.values() if pod.version), default=s.ran_version or base or target)
    if base is None or target.line == base.line or target.line == _next_line(base):
        name = awaited(spec, s.precautions, ctx) if s.is_formed and target > running else ""
        return Wanted(running if name else target, template, awaits=name)
    if target.line < base.line:
        return Wanted(
            running, template,
            f".spec.version: {target} is older than the cluster's version, {base}, and etcd can't read data of a newer version (hint: set it to"
            f" {running}, or restore a backup into a new cluster)",
        )  # fmt: skip
    step = ".".join(map(str, _next_line(base)))
    return Wanted(
        running, template,
        f".spec.version: {target} is more than one minor version above {base} (hint: upgrade to {step} first)",
    )  # fmt: skip


def _next_line(version: EtcdVersion) -> tuple[int, int]:
    return version.major, version.minor + 1


def next_step(spec: ClusterSpec, s: Situation, wanted: Wanted, ctx: Context) -> EtcdStep:
    """Return the one step to take now."""
    if spec.paused:
        return EtcdStep(Do.STOP, Why.SETTLED, ".spec.paused is true; nothing is changed", reason="Paused")
    for source in _ORDER:
        for step in source(spec, s, wanted, ctx):
            return step
    return SETTLED


_STUCK_S = 60.0
"""How long after the end of its grace period a pod that is still there takes a person."""

# --- what comes first -----------------------------------------------------------------------------


def _certified(spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    yield from certifying(spec, s, ctx)
    if not s.is_formed:
        yield from taken(spec, s, ctx)


def _cut_off(spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    return cut_off(spec, s, ctx)


def _taken(spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    return taken(spec, s, ctx)


def _under_way(_spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    if len(s.clusters) > 1:
        text = f"pods answer as members of different clusters ({', '.join(s.clusters)}); nothing is changed (hint: delete the pod and the volume claim of the one that is wrong)"
        yield EtcdStep(Do.STOP, Why.RECOVERING, text, reason="DifferentClusters")
    for pod in s.pods_in_order:
        if pod.is_going:
            yield _ended(pod, ctx.now)
    for volume in s.volumes.values():
        if volume.is_going and volume.slot not in s.pods:
            text = f"the volume claim of {volume.slot} is terminating"
            yield EtcdStep(Do.WAIT, Why.RECOVERING, text, volume.slot, reason="VolumeTerminating")


def _ended(pod: Pod, now: str) -> EtcdStep:
    """Return the step while a pod terminates: it is waited for, and once its time is long over a person is."""
    metadata, slot = pod.manifest["metadata"], pod.slot
    text, due = f"pod {slot} is terminating", str(metadata["deletionTimestamp"])
    if seconds_between(due, now) < _STUCK_S:
        return EtcdStep(Do.WAIT, Why.RECOVERING, text, slot, reason="PodTerminating")
    if held := ", ".join(metadata.get("finalizers") or ()):
        why, hint = f"finalizer {held} keeps it", "ask its owner, or remove it"
    else:
        why = f"node {text_at(pod.manifest, 'spec', 'nodeName')} hasn't reported that it has ended"
        hint = f"if that node is gone for good, and the pod can't run any more: kubectl delete pod {slot} --force"
    text = f"{text}, but should have ended at {due}: {why}; nothing else changes meanwhile (hint: {hint})"
    return EtcdStep(Do.STOP, Why.RECOVERING, text, slot, reason="PodStuck")


def _replaced(_spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    return replacing(s, replacement_of(ctx.cr), ctx)


def _room(spec: ClusterSpec, s: Situation, wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    return making_room(s, upkeep_of(ctx.cr), ctx, grows=is_growing(spec, s, wanted.is_outdated))


def _scheduled(spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    return defragmenting(spec, s, upkeep_of(ctx.cr), ctx.now)


def _replaceable(_spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    return replacement_offered(s, ctx)


# --- no majority ----------------------------------------------------------------------------------


def _without_majority(_spec: ClusterSpec, s: Situation, wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    """Yield what can be done while nobody can change the membership: pods are recreated where their data is."""
    if s.has_majority:
        return
    noted = recovery_of(ctx.cr)
    yield from alone(s, noted, ctx, wanted.is_outdated)
    why = Why.RECOVERING if s.is_formed else Why.CREATING
    if not s.is_formed and not s.pods and not s.members:
        yield _beginning(s, ctx)
    yield from _pods_put_back(s, wanted, ctx, why)
    if s.is_formed:
        for step in (*accepting(s, noted, ctx), *replacement_offered(s, ctx)):
            yield replace(step, reason="QuorumLost", situation=f"{lost(s, noted)}; {step.told}")
        yield from offered(s, noted, ctx)
    if s.is_formed and not s.pods and s.volumes and all(each.aside for each in s.volumes.values()):
        text = (
            "all volumes are put aside (hint: name an EtcdRestore in .spec.restoreFrom, or give a volume back to its member; the member's id is in the annotation:"
            f" kubectl annotate pvc {next(iter(s.volumes))}-data {MEMBER}=ID {ASIDE}-)"
        )
        yield EtcdStep(Do.STOP, Why.RECOVERING, text, reason="AllPutAside")
    if s.is_formed and not s.pods and not any(each.holds for each in s.volumes.values()):
        text = "every member is gone, and so is all data; nothing is begun in its place (hint: delete this cluster and recreate it, or restore a backup)"
        yield EtcdStep(Do.STOP, Why.RECOVERING, text, reason="DataLost")
    yield from all_lost(s, noted)
    if not s.is_formed:
        yield EtcdStep(Do.WAIT, Why.CREATING, f"the first member starts{_faults(s)}", reason="Starting")
    known = f"; {told}" if (told := knowledge(s, noted)) else ""
    text = f"{lost(s, noted)}{_faults(s)}; no member is added or removed without a majority{known}"
    yield EtcdStep(Do.WAIT, Why.RECOVERING, text, reason="QuorumLost")


def _beginning(s: Situation, ctx: Context) -> EtcdStep:
    """Return the first step of all: a seed, or a volume for a restore to write to."""
    if s.restore is None:
        left = [slot for slot, volume in s.volumes.items() if not volume.aside]
        seed = min(left, default=free_slot(s, ctx), key=ctx.number_of)
        return EtcdStep(Do.CREATE_POD, Why.CREATING, f"create {seed}, the first member", seed, seed=True)
    slot, name = ctx.name("0"), s.restore.name
    if not s.restore.is_there:
        text = (
            f".spec.restoreFrom.name: there is no EtcdRestore {name} in this namespace (hint: create it, or remove the field"
            " for an empty cluster)"
        )
        return EtcdStep(Do.WAIT, Why.CREATING, text, slot, reason="RestoreNotFound")
    if slot not in s.volumes:
        text = f"create the volume of {slot}, for EtcdRestore {name} to write to"
        return EtcdStep(Do.CREATE_VOLUME, Why.CREATING, text, slot)
    reason = "RestoreFailed" if s.restore.has_failed else "Restoring"
    return EtcdStep(Do.WAIT, Why.CREATING, f"EtcdRestore {name}: {s.restore.says}", slot, reason=reason)


def _pods_put_back(s: Situation, wanted: Wanted, ctx: Context, why: Why) -> Iterator[EtcdStep]:
    """Yield the pods to be deleted because they will never run, and those to be created on volumes that hold data."""
    lasting = _lasting(s)
    for pod in s.pods_in_order:
        if pod.has_ended and pod.slot in lasting:
            yield EtcdStep(
                Do.DELETE_POD, why, f"delete {pod.slot}, which has ended; it comes back on its volume", pod.slot
            )
        if _is_misfit(pod, s, wanted):
            yield EtcdStep(
                Do.DELETE_POD, why, f"delete {pod.slot}, which doesn't run and no longer matches the spec", pod.slot
            )
    if not s.is_formed:
        return
    known = presumed_slots(s, recovery_of(ctx.cr))
    for slot in sorted(s.volumes.keys() - s.pods.keys(), key=ctx.number_of):
        if slot in known and not s.volumes[slot].aside:
            yield EtcdStep(Do.CREATE_POD, why, f"create {slot} on its volume, as the same member", slot)


def _is_misfit(pod: Pod, s: Situation, wanted: Wanted) -> bool:
    """Tell whether a pod doesn't run, nothing is lost with it, and another one may."""
    member = s.member(pod.slot)
    keeps = pod.slot in _lasting(s) or (not s.is_formed) or (member is not None and not member.is_started)
    return keeps and not pod.is_ready and not pod.answers and wanted.is_outdated(pod)


def _lasting(s: Situation) -> set[str]:
    """Return the slots whose volume outlives their pod."""
    return {slot for slot, volume in s.volumes.items() if not volume.is_going}


def _faults(s: Situation) -> str:
    found = [f"{pod.slot}: {pod.fault}" for pod in s.pods_in_order if pod.fault]
    return f" ({'; '.join(found)})" if found else ""


# --- members and pods agree -----------------------------------------------------------------------


def _alone(_spec: ClusterSpec, s: Situation, _wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    return back_among_others(s)


def _strangers(_spec: ClusterSpec, s: Situation, _wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    for member in s.members:
        if not member.slot:
            text = f"remove member {member.id}, which this cluster didn't add; it counts for the majority, but has no pod here"
            yield EtcdStep(Do.REMOVE, Why.RECOVERING, text, "", member.id, reason="Stranger", needs_approval=True)


def _leftovers(spec: ClusterSpec, s: Situation, wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    """Yield what isn't a member's (any more)."""
    why = _why(spec, s, wanted)
    for pod in s.pods_in_order:
        if s.member(pod.slot) is None:
            yield EtcdStep(Do.DELETE_POD, why, f"delete {pod.slot}, which isn't a member", pod.slot)
    for slot in sorted(s.volumes.keys() - s.pods.keys(), key=ctx.number_of):
        if s.member(slot) is None and not s.volumes[slot].aside:
            yield _left(spec, s.volumes[slot], why, ctx)


def _left(spec: ClusterSpec, volume: Volume, why: Why, ctx: Context) -> EtcdStep:
    """Return what happens to the volume of a slot that has no member any more."""
    slot, is_ours = volume.slot, f"{Do.REMOVE.value}-{volume.member}" in actions_begun(ctx.cr)
    if not volume.is_surplus and (is_ours or not volume.member):
        return EtcdStep(Do.DELETE_VOLUME, why, f"delete the volume of {slot}, which isn't a member any more", slot)
    return EtcdStep(Do.KEEP_VOLUME, why, surplus_set_aside(spec.deletion_policy, slot, "member"), slot)


def _surplus(spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the end of volumes that are kept since their members aren't wanted any more, or the decision that somebody has to make before."""
    for volume in in_order(s, ctx):
        if not (volume.aside and volume.is_surplus) or volume.is_going or volume.slot in s.pods:
            continue
        slot, text = volume.slot, surplus_told(volume.slot, "member")
        match end_of_surplus(spec.deletion_policy, slot, volume.uid, actions_done(ctx.cr)):
            case SurplusEnd.ASKED:
                occasion = surplus_occasion(slot, volume.uid)
                yield EtcdStep(Do.END_VOLUME, Why.SCALING, text, slot, reason="AwaitsApproval", occasion=occasion)
            case SurplusEnd.GONE:
                yield EtcdStep(Do.DELETE_VOLUME, Why.SCALING, text, slot)
            case SurplusEnd.KEPT:
                pass


def _missing(spec: ClusterSpec, s: Situation, wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    return (_without_pod(spec, s, wanted, member) for member in s.members if member.slot not in s.pods)


def _broken(_spec: ClusterSpec, s: Situation, wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    """Yield members whose pods will never run, or have nothing to run on."""
    for member in s.members:
        pod = s.pods[member.slot]
        if pod.has_ended:
            yield EtcdStep(Do.DELETE_POD, Why.RECOVERING, f"delete {pod.slot}, which has ended", pod.slot)
        if _is_misfit(pod, s, wanted):
            text = f"delete {pod.slot}, which doesn't run and no longer matches the spec"
            yield EtcdStep(Do.DELETE_POD, Why.RECOVERING, text, pod.slot)
        if (why := useless(pod)) and _can_spare(s, member):
            text = f"remove {member.slot}: {why}; a new member takes its place"
            yield EtcdStep(Do.REMOVE, Why.RECOVERING, text, member.slot, member.id)


def _doomed(spec: ClusterSpec, s: Situation, _wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    """Yield members whose volume somebody has deleted, which goes once their pod ends: they are replaced while they serve."""
    for member in sorted(_on_going_volumes(s), key=lambda each: each.id == s.leader):
        if not _can_spare(s, member) or (s.serves(member) and len(s.voters) < spec.size):
            continue
        slot = member.slot
        if member.id != s.leader:
            text = f"remove {slot}: its volume claim was deleted, so its data is lost with its pod; a new member takes its place"
            yield EtcdStep(Do.REMOVE, Why.RECOVERING, text, slot, member.id)
        for heir in (each for each in s.serving if each != member):
            text = f"let {heir.slot} lead, so that {slot}, whose volume claim was deleted, can be replaced"
            yield EtcdStep(Do.MOVE_LEADER, Why.RECOVERING, text, heir.slot, heir.id)


def _indispensable(_spec: ClusterSpec, s: Situation, _wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    """Yield members on such volumes that others can't do without: nobody ends their pods."""
    for member in _on_going_volumes(s):
        text = (
            f"the volume claim of {member.slot} was deleted, so its data is lost with its pod; the pod is left alone, because the others have"
            " no majority without it (hint: set .spec.size to 3 or more to replace it)"
        )
        yield EtcdStep(Do.STOP, Why.RECOVERING, text, member.slot, reason="VolumeTerminating")


def _on_going_volumes(s: Situation) -> list[EtcdMember]:
    going = {slot for slot, volume in s.volumes.items() if volume.is_going}
    return [each for each in s.members if each.slot in going]


def _without_pod(spec: ClusterSpec, s: Situation, wanted: Wanted, member: EtcdMember) -> EtcdStep:
    """Return what happens to a member that has no pod."""
    slot, volume = member.slot, s.volumes.get(member.slot)
    if not member.is_started:
        return EtcdStep(Do.CREATE_POD, _why(spec, s, wanted), f"create {slot}, which was added", slot)
    if volume is not None and volume.member == member.id:
        return EtcdStep(Do.CREATE_POD, Why.RECOVERING, f"create {slot} on its volume, as the same member", slot)
    if _can_spare(s, member):
        text = f"remove {slot}: its data is gone; a new member takes its place"
        return EtcdStep(Do.REMOVE, Why.RECOVERING, text, slot, member.id)
    text = f"{slot} has lost its data, and can't be replaced while others don't serve"
    return EtcdStep(Do.WAIT, Why.RECOVERING, text, slot, reason="MemberLost")


def _can_spare(s: Situation, member: EtcdMember) -> bool:
    """Tell whether a majority of those that stay serves, and of those that are there too."""
    serving = [each for each in s.serving if each != member]
    return len(serving) >= s.quorum and len(serving) > 0


def _why(spec: ClusterSpec, s: Situation, wanted: Wanted) -> Why:
    """Return what a step among members is for that follows from one before it."""
    if any(map(wanted.is_outdated, s.pods.values())):
        return Why.UPGRADING
    if len(s.voters) == 1 < spec.size:
        return Why.CREATING
    return Why.SCALING if len(s.voters) != spec.size else Why.RECOVERING


# --- health, size, rollout ------------------------------------------------------------------------


def _health(spec: ClusterSpec, s: Situation, wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    for member in s.members:
        if member.is_learner:
            yield _learner(spec, s, wanted, member)
    idle = [each for each in s.voters if not s.serves(each)]
    if len(s.voters) > spec.size:
        down = [each for each in idle if each.id != s.leader and not s.pods[each.slot].is_ready]
        for gone in down[-1:]:
            text = f"remove {gone.slot}, which doesn't serve, for size {spec.size}"
            yield EtcdStep(Do.REMOVE, Why.SCALING, text, gone.slot, gone.id)
    for member in idle:
        pod = s.pods[member.slot]
        fault = f": {pod.fault}" if pod.fault else ""
        yield EtcdStep(
            Do.WAIT, Why.RECOVERING, f"{member.slot} doesn't serve yet{fault}", member.slot, reason="MemberNotServing"
        )


def _learner(spec: ClusterSpec, s: Situation, wanted: Wanted, member: EtcdMember) -> EtcdStep:
    why = _why(spec, s, wanted)
    if len(s.members) > spec.size and len(s.voters) >= spec.size:
        return EtcdStep(
            Do.REMOVE, Why.SCALING, f"remove {member.slot}, which isn't needed any more", member.slot, member.id
        )
    is_settled = member.slot in s.pods and (
        not s.pods[member.slot].is_beginning or wanted.is_outdated(s.pods[member.slot])
    )
    if s.serves(member) and is_settled:
        return EtcdStep(Do.PROMOTE, why, f"promote {member.slot}: it has caught up", member.slot, member.id)
    pod = s.pods[member.slot]
    fault = f": {pod.fault}" if pod.fault else ""
    return EtcdStep(Do.WAIT, why, f"learner {member.slot} catches up{fault}", member.slot, reason="LearnerCatchesUp")


def _size(spec: ClusterSpec, s: Situation, _wanted: Wanted, ctx: Context) -> Iterator[EtcdStep]:
    have, want = len(s.voters), spec.size
    if have < want:
        slot = free_slot(s, ctx)
        why = Why.CREATING if have == 1 else Why.SCALING
        yield EtcdStep(Do.ADD, why, f"add {slot} as a learner, for size {want}", slot)
    elif have > want:
        gone = [each for each in s.voters if each.id != s.leader][-1]
        yield EtcdStep(Do.REMOVE, Why.SCALING, f"remove {gone.slot}, for size {want}", gone.slot, gone.id)


def _rollout(spec: ClusterSpec, s: Situation, wanted: Wanted, _ctx: Context) -> Iterator[EtcdStep]:
    outdated = [each for each in s.voters if wanted.is_outdated(s.pods[each.slot])]
    if not outdated and not wanted.awaits:
        if s.version is not None and s.version.line != wanted.version.line:
            text = f"all members run {wanted.version}, and the cluster's version follows in a moment"
            yield EtcdStep(Do.WAIT, Why.UPGRADING, text, reason="VersionNotAgreedOn")
        return
    if s.alarms and not is_growing(spec, s, wanted.is_outdated):
        text = f"nothing is rolled out as long as there are alarms ({alarms_told(s)})"
        yield EtcdStep(Do.STOP, Why.UPGRADING, text, reason="Alarm")
    if wanted.awaits:
        yield taken_first(s.precautions, wanted.awaits, spec)
    others = [each for each in outdated if each.id != s.leader]
    if not others and len(s.voters) > 1:
        heir = next(each for each in s.voters if each.id != s.leader)
        text = f"let {heir.slot} lead, so that {outdated[0].slot} can be replaced"
        yield EtcdStep(Do.MOVE_LEADER, Why.UPGRADING, text, heir.slot, heir.id)
    member = (others or outdated)[0]
    yield _replacement(s, member, s.pods[member.slot], wanted)


def _replacement(s: Situation, member: EtcdMember, pod: Pod, wanted: Wanted) -> EtcdStep:
    changed = "which would begin again on an empty volume" if pod.begins_for_life else "whose pod spec changed"
    what = f"for {wanted.version}" if pod.version != wanted.version else changed
    slot = member.slot
    if slot in s.volumes:
        return EtcdStep(Do.DELETE_POD, Why.UPGRADING, f"delete {slot} {what}; it comes back on its volume", slot)
    if len(s.voters) > 1:
        text = f"remove {slot} {what}: it keeps its data in memory, so a new member takes its place"
        return EtcdStep(Do.REMOVE, Why.UPGRADING, text, slot, member.id)
    text = f"{slot} is the only member and keeps its data in memory: it would be lost (hint: set .spec.size to 3 first)"
    return EtcdStep(Do.STOP, Why.UPGRADING, text, slot, reason="WouldLoseData")


_ORDER = (
    _certified, _under_way, _cut_off, _replaced, _without_majority, _alone, _strangers, _leftovers, _missing, _doomed, _broken, _health, _size, _room, _indispensable, _taken,
    _rollout, _scheduled, _surplus, _replaceable,
)  # fmt: skip
"""Where steps come from; the first one there is is taken."""
