"""How one instance takes over from the primary without loss: a switchover.

What proves that nothing is lost is what logs hold. Either the one that takes over has the last record of the old primary; or that one comes back on its volume *as a standby*, says
how far its log goes, and only a standby whose log goes as far is promoted. Two standbys and no primary take no writes, so that
at no moment two servers do. Each step is found again from what is there:

1. The old primary writes a checkpoint. Who takes over is noted in the status, with the uid of the pod that is the primary until then.
2. That pod is deleted. Its server ends the sessions of clients, sends all of its log to those who follow, and stops.
3. It is recreated on its volume as a standby.
   Before that, whenever it is seen: the one noted has the record with which the old primary has ended in order, which is the last one that it writes. Then all of its log is there, and 4. comes
   at once, whatever its pod is at. That record must stand after the last checkpoint that was seen while that pod's server took writes, since an earlier run may have ended so, too.
4. Once nobody receives anything any more: the one noted is promoted, if nobody's log goes further; else who has the most is noted instead, and the wish is given up. Timeline
   and position of each are looked at again right before. Replication slots for all others are made just before, so that what they lack is kept.
5. The one that takes writes is the primary from then on: the label that the Service selects moves, and the others follow it.

Until step 2 it may be called off. Afterwards it goes on whatever is asked for. Somebody who promotes an instance by hand ends it.

Pure: a state in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kubectl_reconcile.module_api import Context, map_at
from kubectl_reconcile_operators.postgres.children import Begin
from kubectl_reconcile_operators.postgres.membership import members, quorums
from kubectl_reconcile_operators.postgres.situation import SWITCHOVER, DatabaseState, Instance, PrimaryHandover, slot_id
from kubectl_reconcile_operators.postgres.spec import MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import DatabaseStep, Do, Why, ended, stop, unable, wait

# --- how it begins --------------------------------------------------------------------------------


def switchover(spec: MyDatabaseSpec, s: DatabaseState, _template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield the beginning of a switchover that somebody asks for, once the one asked for follows."""
    wish = s.handover.wish
    if not wish or is_granted(s) or switchover_refused(s, members(spec, s, ctx))[0]:
        return
    if wish in s.instances and s.is_healthy(s.instances[wish]):
        yield from handed_over(s, wish, "", ctx)


def switchover_refused(s: DatabaseState, there: list[str]) -> tuple[str, str]:
    """Return why a switchover that somebody asks for can't be: a word and a sentence, empty where it can; *there* are the instances that are to be."""
    wish = s.handover.wish
    if not wish or is_granted(s) or not s.is_formed or wish in there:
        return "", ""
    others = ", ".join(each for each in there if each != s.named_primary) or "none: set .spec.replicas to 2 first"
    return (
        "SwitchoverRefused",
        f"annotation {SWITCHOVER}: {wish[:60]!r} isn't a replica that will stay (hint: there is {others})",
    )


def is_granted(s: DatabaseState) -> bool:
    """Tell whether the wish of somebody for another primary was handled; what happens to that one later is another matter."""
    return s.handover.wish in {s.handover.granted, s.named_primary}


def handed_over(s: DatabaseState, to: str, what_for: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield the beginning of a handover from a primary that serves."""
    old = s.primary
    if old is None:
        return
    if behind := map_at(s.followers, to).get("lagBytes"):
        yield wait(f"{to}, which is to take over{what_for}, is up to {behind} bytes behind", "ReplicaBehind", s)
    if not s.has_room(to):
        yield wait(f"{to}, which is to take over{what_for}, has no room left on its volume", "ReplicaFull", s)
    if (s.handover.to, s.handover.uid) != (to, old.uid):
        text = f"checkpoint {old.slot}, before {to} takes over{what_for}"
        parameters = {"instance": old.slot}
        yield DatabaseStep(Do.CHECKPOINT, Why.CHANGING, text, str(ctx.number_of(old.slot)), parameters=parameters, target=to)  # fmt: skip
    text = f"delete {old.slot}, which comes back as a standby, so that {to} takes over{what_for}"
    yield DatabaseStep(Do.DELETE_POD, Why.CHANGING, text, old.slot, target=to)


def answered(s: DatabaseState, step: DatabaseStep) -> str:
    """Return the wish that was handled after *step*: it came true, or was given up for somebody whose log goes further."""
    wish, before = s.handover.wish, s.handover
    is_given_up = not s.writable and before.is_noted and wish == before.to and step.target not in {"", wish}
    return wish if is_given_up or is_granted(s) else ""


def noted(s: DatabaseState, step: DatabaseStep) -> PrimaryHandover:
    """Return what is to be known of a handover after *step*: while nobody takes writes, nothing that was noted is forgotten."""
    if not step.target:
        is_ended = bool(s.writable) and not _is_ending(s)
        return PrimaryHandover() if is_ended else s.handover
    if step.is_gathering:
        return PrimaryHandover(step.target, "none", is_gathering=True)
    if step.is_failover and s.handover.is_failover:
        return PrimaryHandover(step.target, s.handover.uid, is_failover=True)
    uid = s.primary.uid if s.primary and (s.writable or step.is_failover) else s.handover.uid
    uid, is_closed = uid or "none", bool(step.parameters.get("closed"))
    return PrimaryHandover(step.target, uid, is_failover=step.is_failover, after=_after(s, uid), is_closed=is_closed)


def _is_ending(s: DatabaseState) -> bool:
    """Tell whether the old primary is still about to stop for a switchover."""
    old = s.primary
    return s.handover.is_switchover and old is not None and old.is_going and old.uid == s.handover.uid


def _after(s: DatabaseState, uid: str) -> tuple[int, int] | None:
    """Return where the last checkpoint stands that was seen of the server of the pod *uid* while it took writes."""
    seen = s.primary.checkpoint if s.primary and s.primary.uid == uid else None
    return seen or (s.handover.after if s.handover.uid == uid else None)


# --- how it goes on -------------------------------------------------------------------------------


def closed(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield the promotion of the one that is to take over, where it has all of a log that the old primary has ended in order."""
    heir, old = s.instances.get(s.handover.to), s.primary
    if not s.handover.is_switchover or s.writable or heir is None or heir.is_going:
        return
    is_begun = old is None or old.is_going or _stands_by_next(old, s)
    if (
        is_begun
        and _has_all(heir, s)
        and s.has_room(heir.slot)
        and not any((each.reached or (0, 0)) > (heir.reached or (0, 0)) for each in s.ordered)
    ):
        step = _promoted(spec, s, heir, ctx, "which has all of the log")
        yield replace(step, target=heir.slot, parameters={**step.parameters, "closed": heir.answer["closed"]})


def _stands_by_next(old: Instance, s: DatabaseState) -> bool:
    return old.uid != s.handover.uid and old.begun.get("BEGIN") == Begin.REPLICA


def _has_all(heir: Instance, s: DatabaseState) -> bool:
    after, at = s.handover.after, heir.closed
    if after is None or at is None or not heir.stands_by:
        return False
    return heir.reached is not None and heir.reached[0] == after[0] and at > after[1]


def handing_over(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is next in a handover whose old primary has ended."""
    old = s.primary
    if not s.handover.is_switchover or s.writable:
        return
    yield from closed(spec, s, ctx)
    if (
        old is not None and old.uid == s.handover.uid and not old.stands_by
    ):  # nothing has happened to the old primary yet
        return
    for step in _gone_on(spec, s, template, ctx):
        yield replace(step, why=Why.CHANGING, target=step.target or s.handover.to)


def _gone_on(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for slot in dict.fromkeys((s.named_primary, s.handover.to)):
        yield from standing_by(spec, s, slot, template)
    yield from elected(spec, s, ctx, "which has all of the log")


def elected(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context, what: str) -> Iterator[DatabaseStep]:
    """Yield the promotion of the standby whose log goes furthest, *what* says what it has; before, what is waited for."""
    standbys = [each for each in s.ordered if each.stands_by and not each.is_going]
    if any(each.answer.get("receives") for each in standbys):
        yield wait("a standby still receives the log, or reads its own again", "HandingOver", s)
    if mute := [each.slot for each in standbys if each.reached is None]:
        yield wait(f"{', '.join(mute)} don't say how far their log goes", "HandingOver", s)
    best = max(standbys, key=lambda each: (each.reached or (0, 0), s.has_room(each.slot), each.slot == s.handover.to))
    if not s.has_room(best.slot):
        yield wait(f"{best.slot}, whose log goes furthest, takes over once there is room on its volume", "DiskFull", s)
    if best.slot != s.handover.to:
        why = "its log goes further" if s.has_room(s.handover.to) else f"the volume of {s.handover.to} is full"
        text = f"{best.slot} takes over instead of {s.handover.to}: {why}"
        yield replace(wait(text, "HandingOver", s), target=best.slot)
    yield _promoted(spec, s, best, ctx, what)


def standing_by(spec: MyDatabaseSpec, s: DatabaseState, slot: str, template: str) -> Iterator[DatabaseStep]:
    """Yield what it takes until an instance stands by."""
    instance = s.instances.get(slot)
    if instance is None and slot in s.volumes and s.volumes[slot].is_going:
        yield wait(f"the volume claim of {slot} is terminating", "VolumeTerminating", s)
    elif instance is None and slot in s.volumes:
        yield DatabaseStep(Do.CREATE_POD, Why.CHANGING, f"create {slot} on its volume, as a standby", slot, begin=Begin.REPLICA)  # fmt: skip
    elif instance is None:
        others = ", ".join(each.slot for each in s.ordered) or "none"
        yield stop(f"the volume of {slot} was lost during a handover to {s.handover.to} (hint: promote an instance by pg_promote(): there is {others})", "DataLost")  # fmt: skip
    elif instance.is_going:
        yield wait(f"pod {slot} is terminating", "PodTerminating", s)
    elif not instance.answer:
        yield from ended(instance, s)
        yield from unable(spec, instance, s, template)
        fault = instance.fault or instance.silence
        yield wait(f"{slot} begins as a standby{f': {fault}' if fault else ''}", "HandingOver", s)


def _promoted(spec: MyDatabaseSpec, s: DatabaseState, best: Instance, ctx: Context, what: str) -> DatabaseStep:
    position = f", up to {best.answer['lsn']}" if best.answer.get("lsn") != "0/0" else ""
    text = f"promote {best.slot}, {what}{position}; it is the primary then"
    others = [
        slot_id(each) for each in members(spec, s, ctx) if each != best.slot and each in {*s.instances, *s.volumes}
    ]
    parameters = {"instance": best.slot, "slots": others, "synchronous": quorums(s)[-1].setting(best.slot)}
    return DatabaseStep(Do.PROMOTE, Why.CHANGING, text, str(ctx.number_of(best.slot)), parameters=parameters)
