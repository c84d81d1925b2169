"""How an instance joins again whose log has what the primary's hasn't: an old primary that was left behind, or a replica that had received more.

1. Its volume is marked, as long as it doesn't follow, see `reading.diverged`. A server that runs on it as a standby is ended.
2. The primary writes a checkpoint, if its last one is of an earlier timeline: ``pg_rewind`` takes the timeline of the last one for that of the primary.
3. It begins again with ``pg_rewind``, in its pod: what only it held is gone then, and it follows.
4. Where that can't be, was interrupted, or didn't help, its volume is set aside: no instance runs on it any more. Another one begins with a copy of the
   primary's data, on a volume of its own.
   So it is of one that was away until the primary threw away what it needs: log is kept for it within limits, so that it never fills the primary's disk.
5. Once all replicas follow, a volume that was set aside is deleted, after as many hours as the spec says.
   Those of replicas that aren't wanted any more are set aside, too, and nobody begins on them: they stay until somebody deletes them, or, where the spec says that volumes go, approves that.

All of that only where the spec asks for failovers: whoever promotes by hand decides by hand, too.

Pure: a state in, steps out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kubectl_reconcile.module_api import Context, map_at, seconds_between
from kubectl_reconcile_operators.postgres.children import Begin
from kubectl_reconcile_operators.postgres.membership import members
from kubectl_reconcile_operators.postgres.situation import DatabaseState, Instance, InstanceVolume, claim_name, slot_id
from kubectl_reconcile_operators.postgres.spec import FailoverWish, MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import DatabaseStep, Do, Why, wait
from kubectl_reconcile_operators.volumes import (
    SurplusEnd,
    end_of_surplus,
    surplus_occasion,
    surplus_set_aside,
    surplus_told,
)

KEPT_MAX = 3
"""Volumes that are kept at most of instances that others replace: beyond, none is set aside, so that no fault fills the disks."""
_HOUR_S = 3600
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_REWOUND_S = 600.0
"""For how long an instance that was rewound may not follow."""


def rejoining(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what ends an instance that can't follow as it is, so that it begins again or another one does."""
    if spec.failover is None:
        return
    for slot in members(spec, s, ctx):
        instance = s.instances.get(slot)
        if slot == s.named_primary or slot not in s.volumes or (instance is not None and instance.is_going):
            continue
        if s.volumes[slot].is_going:
            continue
        if (why := _hopeless(s, slot, ctx)) and len(s.replaced) < KEPT_MAX:
            yield _set_aside(spec.failover, slot, why)
        if instance is not None and instance.is_diverged and not _was_rewound(instance):
            text = f"delete {slot}, whose log has what that of {s.named_primary} hasn't, {_reached(instance)}; it comes back rewound"
            yield DatabaseStep(Do.DELETE_POD, Why.RECOVERING, text, slot)


def come_back(spec: MyDatabaseSpec, s: DatabaseState, slot: str, why: Why, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what brings a replica back on its volume, rewound where that may hold what the primary hasn't got."""
    primary = s.primary
    if spec.failover is None or primary is None or not s.volumes[slot].rejoins:
        yield DatabaseStep(Do.CREATE_POD, why, f"create {slot} on its volume, as a replica", slot)
    elif primary.answer.get("checkpointed") != primary.answer.get("timeline"):
        text = f"checkpoint {primary.slot}, so that {slot} can be rewound to what it has"
        parameters = {"instance": primary.slot}
        yield DatabaseStep(Do.CHECKPOINT, Why.RECOVERING, text, str(ctx.number_of(primary.slot)), parameters=parameters)  # fmt: skip
    else:
        text = f"create {slot} on its volume, as a replica: rewound to what {primary.slot} has; rows that only {slot} holds are lost then"
        yield DatabaseStep(Do.CREATE_POD, Why.RECOVERING, text, slot, begin=Begin.REWIND)


def given_up(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield the end of volumes that were set aside: of those that others replace once they were kept for long enough, of replicas that aren't wanted any more once somebody has approved it."""
    hours = (spec.failover or FailoverWish()).keep_old_volumes_hours
    for slot, volume in sorted(s.kept.items()):
        is_over = _age_s(volume.kept_since, ctx.now) >= hours * _HOUR_S
        if volume.is_surplus or volume.is_going or slot in s.instances:
            continue
        if spec.failover is not None and is_over:
            text = f"delete the volume of {slot}, which was set aside {volume.kept_since} and kept for {hours} h; all replicas follow"
            yield DatabaseStep(Do.DELETE_VOLUME, Why.RECOVERING, text, slot)
    for slot, volume in sorted(s.kept.items()):
        if volume.is_surplus and not volume.is_going and slot not in s.instances:
            yield from _surplus_ended(spec, s, volume)


def _surplus_ended(spec: MyDatabaseSpec, s: DatabaseState, volume: InstanceVolume) -> Iterator[DatabaseStep]:
    """Yield the end of the volume of a replica that isn't wanted any more, or the decision that somebody has to make before."""
    slot, text = volume.slot, surplus_told(volume.slot, "replica")
    match end_of_surplus(spec.deletion_policy, slot, volume.uid, s.outage.done):
        case SurplusEnd.ASKED:
            about = surplus_occasion(slot, volume.uid)
            given = {"slot": slot}
            yield DatabaseStep(Do.END_VOLUME, Why.SCALING, text, about, "AwaitsApproval", parameters=given)
        case SurplusEnd.GONE:
            yield DatabaseStep(Do.DELETE_VOLUME, Why.SCALING, text, slot)
        case SurplusEnd.KEPT:
            pass


def why_not(spec: MyDatabaseSpec, s: DatabaseState, instance: Instance) -> str:
    """Return why an instance that follows nobody isn't made to by itself, and what somebody can do; empty where there is no more to say than that."""
    by_hand = f"delete the pod and its volume claim {claim_name(instance.slot)}: it begins with a new copy"
    if map_at(s.slots, slot_id(instance.slot)).get("status") == "lost":
        needs = "it needs what the primary has thrown away"
        return f"{needs}{_full(s)}" if spec.failover else f"{needs} (hint: {by_hand})"
    if spec.failover is None:
        return f"it stands by, and follows nobody (hint: where its log has what the primary's hasn't, {by_hand})"
    return f"it stands by, and follows nobody{_full(s)}"


def unrewindable(spec: MyDatabaseSpec, s: DatabaseState, instance: Instance) -> Iterator[DatabaseStep]:
    """Yield what is waited for where a folder can't be rewound and nobody begins in its place: to try again wouldn't help."""
    if instance.is_unrewindable:
        hint = f" (hint: delete the pod and its volume claim {claim_name(instance.slot)}: it begins with a new copy)"
        text = f"{instance.slot} can't be rewound: {instance.fault}{_full(s) if spec.failover else hint}"
        yield wait(text, "InstanceFails", s)


def _full(s: DatabaseState) -> str:
    """Return why nobody begins in the place of one that can't follow, empty where somebody may."""
    if len(s.replaced) < KEPT_MAX:
        return ""
    kept = ", ".join(claim_name(each) for each in sorted(s.replaced))
    return f"; no other begins in its place, since {len(s.replaced)} old volumes are kept already (hint: delete of these what you don't need: {kept})"


def _hopeless(s: DatabaseState, slot: str, ctx: Context) -> str:
    """Return why no instance can follow on the volume of a slot, empty where one may."""
    instance = s.instances.get(slot)
    if instance is not None and instance.is_unrewindable:
        return f"can't be rewound ({instance.fault})"
    if map_at(s.slots, slot_id(slot)).get("status") == "lost":
        return "can't follow any more: what it needs for that, the primary has thrown away"
    if not s.volumes[slot].rejoins:
        return ""
    if instance is None or not _was_rewound(instance) or not instance.stands_by:
        return ""
    made = str(instance.manifest["metadata"].get("creationTimestamp") or "")
    is_stuck = instance.is_diverged or (made and _age_s(made, ctx.now) >= _REWOUND_S)
    return "was rewound, and still doesn't follow" if is_stuck else ""


def _set_aside(wish: FailoverWish, slot: str, why: str) -> DatabaseStep:
    text = f"set the volume of {slot} aside, which {why}; it is kept for {wish.keep_old_volumes_hours} h, and another replica begins with a new copy"
    return DatabaseStep(Do.SET_ASIDE, Why.RECOVERING, text, slot)


def _was_rewound(instance: Instance) -> bool:
    return instance.begun.get("BEGIN") == Begin.REWIND


def _reached(instance: Instance) -> str:
    return f"up to {instance.answer.get('lsn')} on timeline {instance.answer.get('timeline')}"


def retained(spec: MyDatabaseSpec, slot: str) -> DatabaseStep:
    """Return what keeps the volume of a replica that isn't wanted any more."""
    return DatabaseStep(Do.SET_ASIDE, Why.SCALING, surplus_set_aside(spec.deletion_policy, slot, "replica"), slot)


def _age_s(since: str, now: str) -> float:
    """Return for how many seconds something has been; less than zero where *since* is no moment."""
    try:
        return seconds_between(since, now) if _MOMENT.fullmatch(since) else -1.0
    except ValueError:
        return -1.0
