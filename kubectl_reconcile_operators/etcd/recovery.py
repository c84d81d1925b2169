"""What is done where a majority is gone for good: the data of one member goes on alone, once somebody has approved.

*Offered* is the member that knows most of what was committed, of those whose data is there; the offer is one for this loss alone, so that an
approval never counts for another one. It comes once so many volumes are gone that no majority can come back, else after a while.

What follows an approval, each step found again from what is there: the pods of all others end; their volumes are put aside, which is a mark
that nobody starts on them any more, so that the old majority can't come back; the member starts with ``--force-new-cluster``, and clients don't
reach it yet; once it serves as the only member it is restarted without that, and the cluster grows as any other. If a majority serves
before the first of these steps, none is taken.

Pure: a situation in, steps out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Facts,
    Manifest,
    actions_done,
    condition_of,
    map_at,
    maps_in,
    seconds_between,
    text_at,
)
from kubectl_reconcile_operators.etcd.continuity import acceptance_key
from kubectl_reconcile_operators.etcd.situation import EtcdMember, Pod, Situation, Volume, in_order
from kubectl_reconcile_operators.etcd.steps import Do, EtcdStep, Why

PATIENCE_S = 300.0
"""For how long a majority that might come back is waited for before one member is offered instead."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What earlier passes noted. *lost_since* is when a majority was there last, *voters* who they were, *slot* whose data goes on alone by now."""

    lost_since: str = ""
    voters: tuple[EtcdMember, ...] = ()
    slot: str = ""
    done: tuple[str, ...] = ()


def recovery_of(cr: Manifest) -> Recovery:
    """Return what the status of *cr* says of a majority that is lost, and its journal of what was approved."""
    status = map_at(cr, "status")
    available = condition_of(cr, "Available") or {}
    is_lost = available.get("status") == "False" and available.get("reason") == "QuorumLost"
    voters = maps_in(status.get("voters"))
    return Recovery(
        str(available.get("lastTransitionTime") or "") if is_lost else "",
        tuple(EtcdMember(str(each.get("id")), str(each.get("name")), True, False) for each in voters),
        text_at(status, "recovery", "slot"),
        actions_done(cr),
    )


def presumed_slots(s: Situation, noted: Recovery) -> set[str]:
    """Return the slots of all members: as some member says, else of those who voted last, else of all whose data is there.

    A volume outlives a member that was removed for a while: that its data is there alone makes nobody a member.
    """
    if s.members:
        return {each.slot for each in s.members}
    held = {each.slot: each.member for each in s.volumes.values() if each.member}
    last = {each.id for each in noted.voters}
    return {slot for slot, member in held.items() if member in last} or set(held)


def voters_told(s: Situation) -> list[dict[str, str]]:
    """Return the voters as a status keeps them."""
    return [{"name": each.slot or each.id, "id": each.id} for each in s.voters]


# --- who goes on ----------------------------------------------------------------------------------


def going_on_alone(s: Situation, noted: Recovery) -> str:
    """Return the slot whose data goes on alone by somebody's decision, nothing where a majority serves or nobody has decided."""
    if s.has_majority:
        return ""
    slots = {_key(each, noted): each.slot for each in s.volumes.values() if each.holds and not each.is_going}
    for key in reversed(noted.done):  # the last decision counts
        if key in slots:
            return slots[key]
    return noted.slot if noted.slot in slots.values() else ""


def recovery_key(s: Situation, noted: Recovery) -> str:
    """Return the key of the action that is offered, which is of this loss alone."""
    best = _best(s, noted)
    return _key(best, noted) if best is not None else ""


def _key(volume: Volume, noted: Recovery) -> str:
    loss = [noted.lost_since, *sorted(each.id for each in noted.voters)]
    return f"recover-{volume.holds}-{hashlib.sha256(' '.join(loss).encode()).hexdigest()[:10]}"


def _best(s: Situation, noted: Recovery) -> Volume | None:
    """Return the volume of the voter that knows most of what was committed, None where nobody's data is there."""
    ids = {each.id for each in noted.voters}
    able = [each for each in s.volumes.values() if _is_able(s, each) and (each.holds in ids if ids else each.member)]
    return min(able, key=lambda each: (*_behind(s, each.slot), len(each.slot), each.slot), default=None)


def _is_able(s: Situation, volume: Volume) -> bool:
    return bool(volume.holds) and not volume.is_going and not _is_refused(s, volume.slot)


def _is_refused(s: Situation, slot: str) -> bool:
    pod = s.pods.get(slot)
    return pod is not None and (pod.refuses_data or pod.has_lost_data or pod.is_apart)


def useless(pod: Pod) -> str:
    """Return why what a pod has isn't its member's data, nothing where it may be."""
    if pod.is_apart:
        return "it has begun again on an empty volume, so that what it holds isn't the cluster's data"
    if pod.has_lost_data:
        return "its data is gone: its volume came back empty"
    if pod.refuses_data and not pod.is_ready:
        return f"its etcd refuses its data ({pod.fault[:120]})"
    return ""


def _behind(s: Situation, slot: str) -> tuple[int, int, bool]:
    """Return what puts a member behind others: who knows more comes first, and of equals who runs."""
    told, pod = _told_by(s, slot), s.pods.get(slot)
    return -int(told.get("index") or 0), -int(told.get("revision") or 0), pod is None or bool(pod.fault)


def _told_by(s: Situation, slot: str) -> Mapping[str, Any]:
    return map_at(s.facts, "pods", slot)


# --- what is offered ------------------------------------------------------------------------------


def offered(s: Situation, noted: Recovery, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the action that lets one member go on alone, once no majority will come back."""
    best = _best(s, noted)
    if best is None or not noted.lost_since or _is_only(s, noted):
        return
    if not (_is_for_good(s, noted) or _is_late(noted, ctx.now)):
        return
    others = [each.slot for each in in_order(s, ctx) if each.slot != best.slot]
    aside = f"; the volumes of {', '.join(others)} are put aside" if others else ""
    text = f"let {best.slot}{_amount(s, best.slot)} continue alone, with --force-new-cluster{aside}; acknowledged writes that didn't reach it are lost"
    hint = f"kubectl reconcile approve etcd/{ctx.cr['metadata']['name']}"
    situation = f"{lost(s, noted)}; {knowledge(s, noted)}; {text} (hint: if no majority comes back: {hint}; or restore a backup into another cluster)"
    yield EtcdStep(
        Do.RECOVER, Why.RECOVERING, text, best.slot, best.holds,
        reason="QuorumLost", needs_approval=True, situation=situation,
    )  # fmt: skip


def _is_only(s: Situation, noted: Recovery) -> bool:
    """Tell whether there is nobody whom a member could be let go on without."""
    return len(noted.voters or s.voters or [each for each in s.volumes.values() if each.member]) < 2


def _is_late(noted: Recovery, now: str) -> bool:
    return seconds_between(noted.lost_since, now) >= PATIENCE_S


def _is_for_good(s: Situation, noted: Recovery) -> bool:
    """Tell whether so many members have lost their data that no majority can come back."""
    voters = noted.voters or s.voters
    able = [each for each in voters if _keeps_data(s, each)]
    return bool(voters) and len(able) <= len(voters) // 2


def _keeps_data(s: Situation, member: EtcdMember) -> bool:
    volume = s.volumes.get(member.slot)
    return volume is not None and volume.member == member.id and not _is_refused(s, member.slot)


def _amount(s: Situation, slot: str) -> str:
    revision = _told_by(s, slot).get("revision")
    return f" (revision {revision})" if revision else ""


def lost(s: Situation, noted: Recovery) -> str:
    """Return who is missing of how many."""
    voters = noted.voters or s.voters
    missing = [each.slot or each.id for each in voters if not s.serves(each)]
    if not missing:
        return "no member says who leads"
    return f"{', '.join(missing)} of {len(voters)} members don't serve"


def knowledge(s: Situation, noted: Recovery) -> str:
    """Return what is known of the data of each voter."""
    return "; ".join(f"{each.slot or each.id}: {_known_of(s, each)}" for each in noted.voters or s.voters)


def _known_of(s: Situation, member: EtcdMember) -> str:
    told = _told_by(s, member.slot)
    volume, pod = s.volumes.get(member.slot), s.pods.get(member.slot)
    if pod is not None and (pod.is_apart or pod.has_lost_data):
        return useless(pod)
    if told.get("revision"):
        return f"answers, with revision {told['revision']} and term {told.get('term')}"
    if (volume is None or volume.member != member.id) or pod is None:
        return _without_pod_or_data(volume, member)
    if pod.refuses_data:
        return f"its etcd refuses the data on its volume ({pod.fault[:120]})"
    return f"its volume exists; it doesn't answer{f' ({pod.fault[:120]})' if pod.fault else ''}"


def _without_pod_or_data(volume: Volume | None, member: EtcdMember) -> str:
    if volume is None:
        return "its volume is gone"
    if volume.aside:
        return "its volume is put aside"
    if volume.member != member.id:
        return "it has another volume, without its data"
    return "its volume exists, its pod doesn't"


def all_lost(s: Situation, noted: Recovery) -> Iterator[EtcdStep]:
    """Yield that all data is gone, where pods are there and nobody has anything: nothing is begun in its place."""
    voters = noted.voters or s.voters
    if not s.is_formed or not voters or not all(_has_nothing(s, each) for each in voters):
        return
    text = (
        f"all data is gone ({knowledge(s, noted)}); nothing is begun in its place (hint: restore a backup: name an EtcdRestore in .spec.restoreFrom;"
        " or delete this cluster and its volumes, and recreate it)"
    )
    yield EtcdStep(Do.STOP, Why.RECOVERING, text, reason="DataLost")


def _has_nothing(s: Situation, member: EtcdMember) -> bool:
    pod, volume = s.pods.get(member.slot), s.volumes.get(member.slot)
    if pod is not None:
        return pod.has_lost_data
    return volume is None or volume.holds != member.id


def accepting(s: Situation, noted: Recovery, ctx: Context) -> Iterator[EtcdStep]:
    """Yield the action by which a person takes what answers for the cluster, though it knows few of those who voted last."""
    apart = [each.slot for each in s.pods_in_order if each.is_apart]
    if not s.is_disowned or not apart or not noted.lost_since or not _is_late(noted, ctx.now):
        return
    who = ", ".join(apart)
    text = f"take what {who} holds for the data of the cluster, though it isn't what the others hold: all that they know is lost"
    hint = f"kubectl reconcile approve etcd/{ctx.cr['metadata']['name']}"
    situation = f"{knowledge(s, noted)}; {text} (hint: if the members were changed by hand, and this is right: {hint})"
    yield EtcdStep(
        Do.ACCEPT, Why.RECOVERING, text, apart[0], acceptance_key(ctx.cr, s.facts),
        reason="QuorumLost", needs_approval=True, situation=situation,
    )  # fmt: skip


# --- what follows ---------------------------------------------------------------------------------


def alone(s: Situation, noted: Recovery, ctx: Context, is_outdated: Callable[[Pod], bool]) -> Iterator[EtcdStep]:
    """Yield what lets one member go on alone, where that was decided; *is_outdated* tells whether a pod isn't as specified any more."""
    slot = going_on_alone(s, noted)
    if not slot:
        return
    why = Why.RECOVERING
    for pod in s.pods_in_order:
        if pod.slot != slot:
            yield EtcdStep(Do.DELETE_POD, why, f"delete {pod.slot}: {slot} continues alone", pod.slot)
    others = [each.slot for each in in_order(s, ctx) if each.slot != slot and not each.aside]
    if others or s.volumes[slot].aside:
        whose = ", ".join(others) or "the others"
        text = f"put aside the volumes of {whose}, so that only {slot} continues; the volumes stay"
        yield EtcdStep(Do.PUT_ASIDE, why, text, slot)
    found = s.pods.get(slot)
    if found is None:
        text = f"create {slot} on its volume, as the only member (--force-new-cluster)"
        yield EtcdStep(Do.CREATE_ALONE, why, text, slot)
    elif not found.is_alone or found.has_ended or (not found.is_ready and not found.answers and is_outdated(found)):
        yield EtcdStep(Do.DELETE_POD, why, f"delete {slot}, which comes back as the only member", slot)
    else:
        if found.refuses_data:
            yield from offered(s, noted, ctx)
        text = f"{slot} starts as the only member{f': {found.fault}' if found.fault else ''}"
        yield EtcdStep(Do.WAIT, why, text, slot, reason="StartingAlone")


def back_among_others(s: Situation) -> Iterator[EtcdStep]:
    """Yield the end of it: a pod that has begun alone comes back as one that others may join."""
    for pod in s.pods_in_order:
        if pod.is_alone:
            text = f"delete {pod.slot}, which is the only member now; it comes back without --force-new-cluster"
            yield EtcdStep(Do.DELETE_POD, Why.RECOVERING, text, pod.slot)


def laid_out(volume: Volume, step: EtcdStep) -> Volume:
    """Return a volume as it is after *step*."""
    if step.slot == volume.slot and step.do is Do.KEEP_VOLUME:
        return replace(volume, member="", aside=volume.holds or "nobody", seed_for="", is_surplus=True)
    if step.slot == volume.slot and step.do is Do.REMOVE:
        return replace(volume, is_surplus=step.why is Why.SCALING)
    if step.do is not Do.PUT_ASIDE:
        return volume
    if volume.slot == step.slot:
        return replace(volume, member=volume.holds, aside="", is_surplus=False)
    return replace(volume, member="", aside=volume.holds or "nobody", seed_for="")


def is_decided(cr: Manifest, facts: Facts) -> bool:
    """Tell, for previews, whether one member is about to go on alone, so that others won't come back."""
    return bool(facts.get("recovering")) or bool(text_at(cr, "status", "recovery", "slot"))
