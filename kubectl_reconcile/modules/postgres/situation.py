"""What a decision about a database is made on: instances as PostgreSQL tells them, pods, volumes and Secrets as Kubernetes does.

Vocabulary: an *instance* is one server with its pod and its volume; they share a *slot*, its name (``db-0``). The *primary* is the instance that
may be written to. The database is *formed* once an instance has told its system identifier, which PostgreSQL draws with ``initdb``: from
then on, no instance begins with an empty volume.

Facts are what the driver brings (see `driver.observe`); all of it may be missing. A preview's guess also says which pods will be ready.

Pure: values in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
from kubectl_reconcile.modules.postgres.spec import bytes_of

PREFIX = "example.com/"
TEMPLATE = f"{PREFIX}template"
"""On pods: the digest of what of the spec they were made by and can't take on while they run."""
SYSTEM = f"{PREFIX}system-identifier"
"""On volumes: the system identifier of the database whose data they hold."""
MAJOR = f"{PREFIX}major"
"""On volumes: the major version of PostgreSQL that has written them."""
ROLE = f"{PREFIX}role"
"""Label of pods: what clients may use them for. On volumes: whose data is the primary's."""
PRIMARY, REPLICA = "primary", "replica"
REJOINS = f"{PREFIX}rejoins"
"""On volumes: its log may have what the primary's hasn't, so that it is rewound before it follows."""
KEPT = f"{PREFIX}kept-since"
"""On volumes: since when it has been set aside. No instance runs on it."""
SERVES = f"{PREFIX}serves"
"""Label of pods that clients may use for something."""

LAG_LEAST = 16 << 20
"""Bytes below which a lag isn't told apart from none."""
SWITCHOVER = f"{PREFIX}switchover-to"
"""On a MyDatabase: the instance that somebody wants to be the primary, once."""

PREPARES = "prepare"
"""The container of a pod that makes its data directory ready."""
_FAULT_MAX = 400
_SINCE_MAX = 40
_LSN = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})")
_TOO_SOON_S, _PATIENCE_S = 20.0, 30.0
_OVERDUE_S = 30.0
"""For how long after its grace period a pod may still be on its way."""
CANT_REWIND = 5
"""How the container that makes a data directory ready ends where the folder can't be rewound, or is half rewound."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance by its pod, and what its server answered, nothing where it didn't. *fault* is what keeps it from running, if anything does.

    *is_diverged* tells whether it stands by with a log that has what the primary's hasn't; *is_overdue* whether its pod should have ended by now, and nobody says that it has.
    """

    slot: str
    manifest: Manifest = field(repr=False)
    is_going: bool = False
    has_ended: bool = False
    may_return: bool = False
    is_ready: bool = False
    fault: str = ""
    answer: Mapping[str, Any] = field(default_factory=dict)
    silence: str = ""
    is_diverged: bool = False
    is_overdue: bool = False

    @property
    def is_writable(self) -> bool:
        """Whether its server says that it is no standby."""
        return bool(self.answer) and self.answer.get("recovery") is False

    @property
    def stands_by(self) -> bool:
        """Whether its server says that it is a standby: it takes no writes until somebody promotes it."""
        return self.answer.get("recovery") is True

    @property
    def uid(self) -> str:
        """Which pod it is, of those that have had its name."""
        return str(self.manifest["metadata"].get("uid") or "")

    @property
    def reached(self) -> tuple[int, int] | None:
        """How far the log goes that it holds, as timeline and position, None where it doesn't say."""
        position = lsn_of(str(self.answer.get("lsn") or ""))
        return None if position is None else (int(self.answer.get("timeline") or 0), position)

    @property
    def is_unrewindable(self) -> bool:
        """Whether it has ended since its folder can't be rewound, or an earlier rewind was interrupted."""
        ends = (
            map_at(state, "terminated").get("exitCode")
            for name, state in container_states(self.manifest)
            if name == PREPARES
        )
        return self.has_ended and CANT_REWIND in ends

    @property
    def serves(self) -> bool:
        """Whether it is ready, its server answers, and it isn't going."""
        return self.is_ready and bool(self.answer) and not self.is_going

    @property
    def settings(self) -> Mapping[str, str]:
        """What is set by ALTER SYSTEM."""
        return self.answer.get("settings") or {}

    @property
    def pending(self) -> tuple[str, ...]:
        """Parameters that are set and take a restart to hold."""
        return tuple(self.answer.get("pending") or ())

    @property
    def template(self) -> str:
        """The digest of what it was made by."""
        return annotations_of(self.manifest).get(TEMPLATE, "")

    @property
    def begun(self) -> Mapping[str, str]:
        """How it began: the variables of its first container that are its own."""
        first = next(iter(maps_in(map_at(self.manifest, "spec").get("initContainers"))), {})
        pairs = ((str(each.get("name")), each.get("value")) for each in maps_in(first.get("env")))
        return {name: str(value) for name, value in pairs if value is not None}


@dataclass(frozen=True, slots=True)
class PrimaryHandover:
    """What earlier passes noted of one instance that takes over from another: *to* whom, and the *uid* of the pod that was the primary until then.

    *is_failover* tells whether the primary is left behind. *wish* is whom somebody asks for; *granted* is the wish that was dealt with already.
    """

    to: str = ""
    uid: str = ""
    wish: str = ""
    granted: str = ""
    is_failover: bool = False

    @property
    def is_noted(self) -> bool:
        """Whether it was told before, so that it is found again whatever happens."""
        return bool(self.to and self.uid)


@dataclass(frozen=True, slots=True)
class Outage:
    """What is known of a primary that is away: *since* when nobody serves, empty where somebody does.

    *lags* are the last known ones of replicas, in bytes, 0 below `LAG_LEAST`; *done* are the actions that have run, and so what was approved.
    """

    since: str = ""
    lags: Mapping[str, int] = field(default_factory=dict)
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstanceVolume:
    """A volume claim. *system* is the database whose data it holds, empty where none was seen on it; *size* is what is asked for, in bytes.

    *rejoins* tells whether its log may have what the primary's hasn't, as long as its instance doesn't follow; *kept_since* when it was set aside, empty where it wasn't.
    """

    slot: str
    system: str = ""
    major: str = ""
    is_primary: bool = False
    is_going: bool = False
    size: str = ""
    rejoins: bool = False
    kept_since: str = ""


@dataclass(frozen=True, slots=True)
class VolumeFilling:
    """How far the volume of the first instance is filled from a backup; *obstacle* is what keeps that from being begun.

    *is_other* tells whether its Job was made for something else than the spec says now; *said* is what the Job says, *file* the backup.
    """

    is_begun: bool = False
    is_done: bool = False
    has_failed: bool = False
    is_other: bool = False
    said: str = ""
    file: str = ""
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """Everything that is known. *claimed* are all volumes. *synchronous* is what was noted of who has a row before it is acknowledged, see `membership`. *followers* are what the primary says of those who stream from it, by slot; *slots* are its replication slots; *failed* are the messages of actions that failed when they were last tried, by key."""

    instances: Mapping[str, Instance] = field(default_factory=dict)
    claimed: Mapping[str, InstanceVolume] = field(default_factory=dict)
    system: str = ""
    named_primary: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Any] = field(default_factory=dict)
    databases: Mapping[str, str] = field(default_factory=dict)
    followers: Mapping[str, Any] = field(default_factory=dict)
    slots: Mapping[str, Any] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    handover: PrimaryHandover = field(default_factory=PrimaryHandover)
    outage: Outage = field(default_factory=Outage)
    synchronous: Mapping[str, Any] = field(default_factory=dict)
    filling: VolumeFilling = field(default_factory=VolumeFilling)

    @property
    def volumes(self) -> dict[str, InstanceVolume]:
        """The volumes that instances run on."""
        return {slot: each for slot, each in self.claimed.items() if not each.kept_since}

    @property
    def kept(self) -> dict[str, InstanceVolume]:
        """The volumes that were set aside."""
        return {slot: each for slot, each in self.claimed.items() if each.kept_since}

    @property
    def is_formed(self) -> bool:
        """Whether there has been a database, so that there is something to lose."""
        return bool(self.system)

    @property
    def writable(self) -> tuple[Instance, ...]:
        """The instances whose servers take writes; where one doesn't end, none of those that are to."""
        found = tuple(each for each in self.instances.values() if each.is_writable)
        return tuple(each for each in found if not each.is_going) or found

    @property
    def primary(self) -> Instance | None:
        """The instance of the primary's slot, None where it has no pod."""
        return self.instances.get(self.named_primary)

    @property
    def ordered(self) -> list[Instance]:
        """The instances by number."""
        return sorted(self.instances.values(), key=lambda each: (len(each.slot), each.slot))

    def streams(self, instance: Instance) -> bool:
        """Tell whether an instance is a replica that follows the primary: it stands by, and the primary sends to it."""
        return instance.stands_by and map_at(self.followers, instance.slot).get("state") == "streaming"

    def is_healthy(self, instance: Instance) -> bool:
        """Tell whether an instance serves as what it is."""
        is_it = instance.is_writable if instance.slot == self.named_primary else self.streams(instance)
        return instance.serves and is_it

    @property
    def systems(self) -> tuple[str, ...]:
        """The system identifiers that are seen anywhere."""
        told = (str(each.answer.get("system") or "") for each in self.instances.values())
        noted = (each.system for each in self.volumes.values())
        return tuple(sorted({each for each in (*told, *noted, self.system) if each}))


def claim_name(slot: str) -> str:
    """Return the name of a slot's volume claim."""
    return f"{slot}-data"


def slot_id(slot: str) -> str:
    """Return the name of the replication slot that an instance follows by."""
    return slot.replace("-", "_")


def state_of(cr: Manifest, owned: Owned, facts: Facts, ctx: Context) -> DatabaseState:
    """Return what is known of the database of *cr*."""
    seen = map_at(facts, "pods")
    found = (_instance(pod, map_at(seen, pod["metadata"]["name"]), ctx) for pod in owned.of("Pod"))
    instances = {each.slot: each for each in found if ctx.number_of(each.slot) >= 0}
    claims = (*owned.read("PersistentVolumeClaim"), *owned.of("PersistentVolumeClaim"))
    claimed = {each.slot: each for each in map(_volume, claims) if ctx.number_of(each.slot) >= 0}
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


def _rejoins(s: DatabaseState, volume: InstanceVolume) -> bool:
    """Tell whether a volume may hold what the primary hasn't got; it was so noted until its instance follows.

    That is so of the volume of a primary that was left behind: one of which nobody has seen how far its log goes, while another takes writes.
    """
    instance = s.instances.get(volume.slot)
    if volume.slot == s.named_primary or (instance is not None and s.streams(instance)):
        return False
    is_left = volume.is_primary and (instance is None or not instance.stands_by)
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
    return PrimaryHandover(
        text_at(status, "handover", "to"),
        text_at(status, "handover", "uid"),
        annotations_of(cr).get(SWITCHOVER, ""),
        text_at(status, "switchoverAnswered"),
        text_at(status, "handover", "kind") == "Failover",
    )


def lsn_of(text: str) -> int | None:
    """Return a position in the log as a number, None where it is none: PostgreSQL writes it as two, in hexadecimal."""
    found = _LSN.fullmatch(text)
    return (int(found[1], 16) << 32) + int(found[2], 16) if found else None


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
    )


def would_shrink(volume: InstanceVolume, size: str) -> bool:
    """Tell whether a volume is larger than *size*."""
    return (bytes_of(volume.size) or 0) > (bytes_of(size) or 0)
