"""What is known of a database, put together from its CR, its children and what its servers have answered.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Facts,
    Manifest,
    Owned,
    actions_done,
    actions_failed,
    annotations_of,
    condition_of,
    container_states,
    is_alive,
    is_ready,
    map_at,
    maps_in,
    seconds_between,
    shortened,
    text_at,
)
from kubectl_reconcile_operators.postgres.situation import (
    FULL,
    KEPT,
    MAJOR,
    PRIMARY,
    REJOINS,
    ROLE,
    SURPLUS,
    SWITCHOVER,
    SYSTEM,
    DatabaseState,
    Instance,
    InstanceVolume,
    Outage,
    PrimaryHandover,
    lsn_of,
)

_FAULT_MAX = 400
_NO_ROOM = "No space left on device"
_OTHER_ROOM = (" ERROR: ", "shared memory")
"""What else is said to lack room: statements that failed, of a server that went on, and memory."""
_SINCE_MAX = 40
_TOO_SOON_S, _PATIENCE_S = 20.0, 30.0
_OVERDUE_S = 30.0
"""For how long after its grace period a pod may still be on its way."""


def state_of(cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> DatabaseState:
    """Return what is known of the database of *cr*."""
    seen = map_at(facts, "pods")
    found = (_instance(pod, map_at(seen, pod["metadata"]["name"]), ctx) for pod in owned.of("Pod"))
    instances = {each.slot: each for each in found if ctx.number_of(each.slot) >= 0}
    claims = (*owned.read("PersistentVolumeClaim"), *owned.of("PersistentVolumeClaim"))
    noted_volumes = (each for each in map(_volume, claims) if ctx.number_of(each.slot) >= 0)
    claimed = {each.slot: _filled(each, instances.get(each.slot)) for each in noted_volumes}
    volumes = {slot: each for slot, each in claimed.items() if not each.kept_since}
    status = map_at(cr, "status")
    noted = (each.system for each in volumes.values())
    told = (str(each.answer.get("system") or "") for each in instances.values())
    named = text_at(cr, "status", "currentPrimary")
    writable = sorted(
        (each.slot for each in instances.values() if each.is_writable), key=lambda slot: (instances[slot].is_going, slot != named)
    )  # fmt: skip
    holding = sorted(
        (each.slot for each in volumes.values() if each.system),
        key=lambda slot: (not volumes[slot].is_primary, ctx.number_of(slot)),
    )
    state = DatabaseState(
        instances=instances,
        claimed=claimed,
        system=str(status.get("systemID") or "") or next((each for each in (*noted, *told) if each), ""),
        named_primary=next((each for each in (*writable, named, *holding, *sorted(instances)) if each), ""),
        secrets=map_at(facts, "secrets"),
        roles=map_at(facts, "roles"),
        databases=map_at(facts, "databases"),
        followers=map_at(facts, "followers"),
        slots=map_at(facts, "slots"),
        failed=actions_failed(cr),
        handover=_handover(cr),
        outage=_outage(cr),
        synchronous=map_at(status, "synchronous"),
    )
    forks, primary = map_at(facts, "forks"), state.primary
    if primary is None or not primary.is_writable or len(state.writable) > 1:
        return state
    seen = {
        slot: replace(each, is_diverged=not state.streams(each) and diverged(each, primary, forks))
        for slot, each in instances.items()
    }
    state = replace(state, instances=seen)
    marked = {slot: replace(each, rejoins=_rejoins(state, each)) for slot, each in volumes.items()}
    return replace(state, claimed={**claimed, **marked})


def _filled(volume: InstanceVolume, instance: Instance | None) -> InstanceVolume:
    """Return a volume with whether it is full: as its server says, or how that ended, and as it was noted while nobody says."""
    if instance is not None and instance.answer:
        return replace(volume, is_full=bool(instance.answer.get("full")))
    return replace(volume, is_full=volume.is_full or (instance is not None and instance.lacked_room))


def _rejoins(s: DatabaseState, volume: InstanceVolume) -> bool:
    """Tell whether a volume may hold what the primary hasn't got; it was so noted until its instance follows.

    That is so of the volume of a primary that was left behind: one of which nobody has seen how far its log goes, while another takes writes that wasn't seen to have all of it.
    """
    instance = s.instances.get(volume.slot)
    if volume.slot == s.named_primary or (instance is not None and s.streams(instance)):
        return False
    is_whole = s.handover.is_closed and s.handover.to == s.named_primary
    is_left = volume.is_primary and not is_whole and (instance is None or not instance.stands_by)
    return volume.rejoins or is_left or (instance is not None and instance.is_diverged)


def diverged(instance: Instance, primary: Instance, forks: Mapping[str, Any]) -> bool:
    """Tell whether a standby's log has what the primary's hasn't; *forks* is where the primary's left each timeline before its own."""
    reached = instance.reached if instance.stands_by else None
    if reached is None or not forks or reached[0] == primary.answer.get("timeline"):
        return False
    left = lsn_of(str(forks.get(str(reached[0])) or ""))
    return left is None or reached[1] > left


def _outage(cr: Manifest) -> Outage:
    available = condition_of(cr, "Available") or {}
    since = str(available.get("lastTransitionTime") or "") if available.get("status") == "False" else ""
    lines = maps_in(map_at(cr, "status").get("instances"))
    lags = {str(each.get("pod")): lag for each in lines if isinstance(lag := each.get("lagBytes"), int)}
    return Outage(since, lags, actions_done(cr))


def _handover(cr: Manifest) -> PrimaryHandover:
    status = map_at(cr, "status")
    told = map_at(status, "handover")
    timeline, position = told.get("timeline"), lsn_of(text_at(told, "checkpoint"))
    return PrimaryHandover(
        text_at(told, "to"),
        text_at(told, "uid"),
        annotations_of(cr).get(SWITCHOVER, ""),
        text_at(status, "switchoverAnswered"),
        text_at(told, "kind") == "Failover",
        (timeline, position) if isinstance(timeline, int) and position is not None else None,
        told.get("closed") is True,
        text_at(told, "kind") == "Gathering",
    )


def _instance(pod: Manifest, answer: Mapping[str, Any], ctx: Context) -> Instance:
    metadata = pod["metadata"]
    going = bool(metadata.get("deletionTimestamp"))
    is_it = bool(answer) and answer.get("uid") == metadata.get("uid")
    answers = is_it and not answer.get("error")
    return Instance(
        slot=metadata["name"],
        manifest=pod,
        is_going=going,
        is_overdue=going and seconds_between(str(metadata["deletionTimestamp"]), ctx.now) > _OVERDUE_S,
        has_ended=not going and not is_alive(pod),
        may_return=_may_return(pod, ctx.now),
        is_ready=is_ready(pod) or (answers and bool(answer.get("ready"))),
        fault=_fault(pod),
        answer=answer if answers else {},
        silence=str(answer.get("error") or "") if is_it else "",
        lacked_room=(is_it and answer.get("full") is True) or any(map(_says_no_room, container_states(pod))),
    )


def _may_return(pod: Manifest, now: str) -> bool:
    """Tell whether another pod may follow one that has ended: at once, unless it ended right after it was made."""
    made = str(pod["metadata"].get("creationTimestamp") or "")
    ends = [str(map_at(state, "terminated").get("finishedAt") or "") for _, state in container_states(pod)]
    if not made or not any(ends):
        return True
    return seconds_between(made, max(ends)) >= _TOO_SOON_S or seconds_between(made, now) >= _PATIENCE_S


def _fault(pod: Manifest) -> str:
    """Return what keeps a pod from running, in the words of its node; empty where nothing does."""
    words: list[str] = []
    for name, state in container_states(pod):
        waiting, ended = map_at(state, "waiting"), map_at(state, "terminated")
        if waiting.get("reason") not in {None, "ContainerCreating", "PodInitializing"}:
            words.append(_joined(waiting.get("reason"), waiting.get("message")))
        if ended and ended.get("exitCode") != 0:
            words.append(_joined(f"{name} ended with exit code {ended.get('exitCode')}", ended.get("message")))
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("status") == "False":
        words.append(_joined(scheduled.get("reason"), scheduled.get("message")))
    return shortened("; ".join(words), _FAULT_MAX)


def _says_no_room(named: tuple[str, Mapping[str, Any]]) -> bool:
    """Tell whether a container has ended since there was no room on its volume, going by what it said last."""
    lines = str(map_at(named[1], "terminated").get("message") or "").splitlines()
    return any(_NO_ROOM in line and not any(other in line for other in _OTHER_ROOM) for line in lines)


def _joined(*parts: Any) -> str:
    return ": ".join(str(part).strip() for part in parts if part and str(part).strip())


def _volume(claim: Manifest) -> InstanceVolume:
    metadata, noted = claim["metadata"], annotations_of(claim)
    name = str(metadata["name"])
    asked = map_at(claim, "spec", "resources", "requests").get("storage")
    return InstanceVolume(
        slot=name.removesuffix("-data") if name.endswith("-data") else "",
        system=noted.get(SYSTEM, ""),
        major=noted.get(MAJOR, ""),
        is_primary=noted.get(ROLE) == PRIMARY,
        is_going=bool(metadata.get("deletionTimestamp")),
        size=str(asked or ""),
        rejoins=bool(noted.get(REJOINS)),
        kept_since=shortened(noted.get(KEPT, ""), _SINCE_MAX),
        capacity=str(map_at(claim, "status", "capacity").get("storage") or ""),
        is_full=bool(noted.get(FULL)),
        is_surplus=bool(noted.get(SURPLUS)),
        uid=str(metadata.get("uid") or ""),
    )
