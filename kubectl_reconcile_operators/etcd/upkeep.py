"""What keeps a cluster's database small: room where its quota is used up, and defragmentation on a schedule.

Where a member's file has reached the quota, it raises the alarm NOSPACE, and etcd refuses writes until the history is cut (*compacted*), the files are rewritten
without what is free in them (*defragmented*), and the alarm is *disarmed*. Earlier revisions of keys are lost with the history, so that somebody must approve; an approval
holds until the alarm is gone. A larger quota is another way out, and takes none. The alarm is disarmed once all files have room, whoever has made it.

A member answers nobody while it is defragmented: one goes after the other, the leader last, only while all serve and nothing else is to be done, and only where a file
has much that is free.

Pure: a situation in, steps out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kubectl_reconcile.module_api import (
    Condition,
    Context,
    Manifest,
    actions_done,
    condition_of,
    first_variables,
    has_condition,
    later,
    map_at,
    text_at,
)
from kubectl_reconcile_operators.etcd.situation import EtcdMember, Pod, Situation, arguments_of
from kubectl_reconcile_operators.etcd.spec import ClusterSpec
from kubectl_reconcile_operators.etcd.steps import Do, EtcdStep, Why

NO_SPACE = "NOSPACE"
MEBIBYTE = 1 << 20
_DEFAULT_QUOTA = 2 << 30
_QUOTA, _QUOTA_VARIABLE = "--quota-backend-bytes", "ETCD_QUOTA_BACKEND_BYTES"
_ALARM = re.compile(r"memberID:(\d+) alarm:(\w+)")
_REASONS = {NO_SPACE: "NoSpace", "CORRUPT": "Corrupt"}
_ROOM = 4 * MEBIBYTE
"""What must be free below a quota, or a tenth of it, for an alarm to be over: a write has a mebibyte and a half at most."""
ALARMED_PERCENT = 10
"""How much of a file is free for its defragmentation to be worth it where the quota is used up."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What earlier passes noted: when the alarm was seen first, which slot of the schedule was handled last, which actions have run."""

    alarm_since: str = ""
    last_slot: str = ""
    done: tuple[str, ...] = ()


def upkeep_of(cr: Manifest) -> Upkeep:
    """Return what the status and the journal of *cr* say."""
    alarm = (condition_of(cr, "Alarm") or {}) if has_condition(cr, "Alarm") else {}
    last_slot = text_at(cr, "status", "defragmentation", "lastScheduleTime")
    return Upkeep(str(alarm.get("lastTransitionTime") or ""), last_slot, actions_done(cr))


def is_worth_it(size: int, used: int, percent: int) -> bool:
    """Tell whether a file has that much that is free, and a mebibyte at least."""
    free = size - used
    return free >= MEBIBYTE and free * 100 >= size * percent


def alarms_in(errors: Iterable[str]) -> list[tuple[str, str]]:
    """Return kind and member (in hexadecimal) of the alarms that a member tells among what is wrong."""
    found = _ALARM.findall(" ".join(errors))
    return sorted({(kind, format(int(member), "x")) for member, kind in found})


# --- alarms ---------------------------------------------------------------------------------------


def alarm_condition(cr: Manifest, s: Situation) -> Condition:
    """Return what alarms there are; while no member answers, what was known of them."""
    before = condition_of(cr, "Alarm")
    if before and not any(pod.answers for pod in s.pods.values()):
        return Condition("Alarm", str(before["status"]), str(before["reason"]), str(before.get("message") or ""))
    if not s.alarms:
        return Condition("Alarm", "False", "None", "")
    first = s.alarms[0].kind
    return Condition("Alarm", "True", _REASONS.get(first, "Raised"), alarms_told(s))


def alarms_told(s: Situation) -> str:
    """Return the alarms in words."""
    slots = {each.id: each.slot for each in s.members}
    return ", ".join(f"{each.kind} of {slots.get(each.member) or each.member}" for each in s.alarms)


def is_growing(spec: ClusterSpec, s: Situation, is_outdated: Callable[[Pod], bool]) -> bool:
    """Tell whether the spec gives members a larger quota than some of them have, which is rolled out."""
    wanted = spec.etcd.quota_backend_bytes or _DEFAULT_QUOTA
    return any(is_outdated(pod) and _quota_of(pod) < wanted for pod in s.pods.values())


def _quota_of(pod: Pod) -> int:
    told = dict(each.partition("=")[::2] for each in arguments_of(pod.manifest))
    said = told.get(_QUOTA) or first_variables(pod.manifest).get(_QUOTA_VARIABLE) or ""
    return int(said) if said.isdecimal() and int(said) else _DEFAULT_QUOTA


def _has_room(pod: Pod, size: int) -> bool:
    quota = _quota_of(pod)
    return quota - size >= max(quota // 10, min(_ROOM, quota // 2))


# --- room -----------------------------------------------------------------------------------------


def making_room(s: Situation, noted: Upkeep, ctx: Context, *, grows: bool) -> Iterator[EtcdStep]:
    """Yield what makes room where the quota is used up: at first the action that somebody must approve. Nothing where the quota *grows*."""
    if not any(each.kind == NO_SPACE for each in s.alarms):
        return
    if not _cramped(s):
        text = "disarm the alarm of the quota: all files have room again"
        yield EtcdStep(Do.DISARM, Why.RECOVERING, text, reason="NoSpace")
    elif grows:
        return
    elif not noted.alarm_since:
        yield EtcdStep(Do.WAIT, Why.RECOVERING, _told(s), reason="NoSpace")
    elif (offer := _offer(s, noted, ctx)).key not in noted.done:
        yield offer
    else:
        yield from _approved(s)


def _offer(s: Situation, noted: Upkeep, ctx: Context) -> EtcdStep:
    text = (
        f"make room: compact the history to revision {_revision(s)}, defragment one member at a time, the leader last, and disarm the alarm; earlier revisions"
        " of keys are lost, their current values are kept"
    )
    hint = f"kubectl reconcile approve etcd/{ctx.cr['metadata']['name']}; or raise .spec.etcd.quotaBackendBytes, which is rolled out and loses no data"
    occasion = hashlib.sha256(noted.alarm_since.encode()).hexdigest()[:10]
    return EtcdStep(
        Do.MAKE_ROOM, Why.SETTLED, text,
        reason="NoSpace", needs_approval=True, situation=f"{_told(s)}; {text} (hint: {hint})", occasion=occasion,
    )  # fmt: skip


def _approved(s: Situation) -> Iterator[EtcdStep]:
    """Yield what follows an approval, each step found again from what the members say."""
    if not s.facts.get("compacted"):
        text = f"compact the history to revision {_revision(s)}"
        yield EtcdStep(Do.COMPACT, Why.RECOVERING, text, reason="NoSpace")
    for member in s.leader_last:
        size, used = _size_of(s, member.slot)
        if is_worth_it(size, used, ALARMED_PERCENT):
            if member.id == s.leader and (behind := [each for each in _cramped(s) if each != member.slot]):
                text = f"{', '.join(behind)}, whose files shrink before the leader's, still compact their history"
                yield EtcdStep(Do.WAIT, Why.RECOVERING, text, reason="NoSpace")
            text = f"defragment {member.slot}, to make room: {_mebibytes(size - used)} of {_mebibytes(size)} are free"
            yield EtcdStep(Do.DEFRAGMENT, Why.RECOVERING, text, member.slot, member.id, reason="NoSpace")
    hint = "raise .spec.etcd.quotaBackendBytes, which is rolled out, or delete keys"
    text = f"{_told(s)}; the history is compacted, and no more space is free (hint: {hint})"
    yield EtcdStep(Do.STOP, Why.RECOVERING, text, reason="NoSpace")


def _revision(s: Situation) -> int:
    return int(s.facts.get("revision") or 0)


def _size_of(s: Situation, slot: str) -> tuple[int, int]:
    """Return how large a member's file is, and how much of it is in use; nothing where it isn't known."""
    told = map_at(s.facts, "sizes", slot)
    return int(told.get("size") or 0), int(told.get("used") or 0)


def _cramped(s: Situation) -> list[str]:
    """Return the slots of voters whose files have no room, or of which nothing is known."""
    sizes = {each.slot: _size_of(s, each.slot)[0] for each in s.voters}
    return [slot for slot, size in sizes.items() if not (size and _has_room(s.pods[slot], size))]


def _told(s: Situation) -> str:
    each = (_file_told(s.pods[member.slot], *_size_of(s, member.slot)) for member in s.voters)
    return f"the quota of the database is used up, and etcd refuses to write ({'; '.join(each)})"


def _file_told(pod: Pod, size: int, used: int) -> str:
    return f"{pod.slot}: {_mebibytes(size)} of {_mebibytes(_quota_of(pod))}, {_mebibytes(used)} of them in use"


def _mebibytes(number: int) -> str:
    return f"{number / MEBIBYTE:.1f} MiB"


# --- the schedule ---------------------------------------------------------------------------------


def defragmenting(spec: ClusterSpec, s: Situation, noted: Upkeep, now: str) -> Iterator[EtcdStep]:
    """Yield the members whose files are worth it, once each slot of the schedule."""
    slot = _due(spec, noted, now)
    if not slot or s.alarms:
        return
    free: list[str] = list(s.facts.get("slack") or ())
    for member in s.leader_last:
        step = _scheduled(member, slot)
        if member.slot in free and step.key not in noted.done:
            yield step


def _scheduled(member: EtcdMember, slot: str) -> EtcdStep:
    text = f"defragment {member.slot}, as scheduled for {slot}: much of its file is free"
    occasion = "".join(each for each in slot if each.isdecimal())
    return EtcdStep(Do.DEFRAGMENT, Why.SETTLED, text, member.slot, member.id, reason="Scheduled", occasion=occasion)


def _due(spec: ClusterSpec, noted: Upkeep, now: str) -> str:
    """Return the slot that has come, isn't handled, and isn't over; nothing where there is none."""
    wanted, calendar = spec.etcd.defragmentation, spec.etcd.calendar
    if wanted is None or calendar is None or not noted.last_slot:
        return ""
    return calendar.latest(max(noted.last_slot, later(now, -wanted.starting_deadline_seconds)), now)


def defragmentation_told(spec: ClusterSpec, step: EtcdStep, noted: Upkeep, now: str) -> dict[str, str]:
    """Return what the status keeps of the schedule, nothing where there is none. A slot is handled once nothing is left to do."""
    calendar = spec.etcd.calendar
    if calendar is None:
        return {}
    is_over = step.do in {Do.NOTHING, Do.REPLACE}
    slot = _due(spec, noted, now) if is_over else ""
    return {"lastScheduleTime": slot or noted.last_slot or now, "nextScheduleTime": calendar.after(now)}
