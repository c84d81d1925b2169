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
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.module_api import (
    Manifest,
    annotations_of,
    awaits_node,
    container_states,
    first_variables,
    map_at,
)

PREFIX = "example.com/"
TEMPLATE = f"{PREFIX}template"
"""On pods: the digest of what of the spec they were made by and can't take on while they run."""
SYSTEM = f"{PREFIX}system-identifier"
"""On volumes: the system identifier of the database whose data they hold. On pods: that of the database that has begun, so that they begin no other one."""
MAJOR = f"{PREFIX}major"
"""On volumes: the major version of PostgreSQL that has written them."""
ROLE = f"{PREFIX}role"
"""Label of pods: what clients may use them for. On volumes: whose data is the primary's."""
PRIMARY, REPLICA = "primary", "replica"
REJOINS = f"{PREFIX}rejoins"
"""On volumes: its log may have what the primary's hasn't, so that it is rewound before it follows."""
KEPT = f"{PREFIX}kept-since"
"""On volumes: since when it has been set aside. No instance runs on it."""
SURPLUS = f"{PREFIX}surplus"
"""On volumes: it has been set aside since its replica isn't wanted any more."""
FULL = f"{PREFIX}full"
"""On volumes: there was no room left when somebody last said."""
SERVES = f"{PREFIX}serves"
"""Label of pods that clients may use for something."""

LAG_LEAST = 16 << 20
"""Bytes below which a lag isn't told apart from none."""
_ROUNDED = (1 << 28) - 1
SWITCHOVER = f"{PREFIX}switchover-to"
"""On a MyDatabase: the instance that somebody wants to be the primary, once."""

PREPARES = "prepare"
"""The container of a pod that makes its data directory ready."""
_LSN = re.compile(r"([0-9A-F]{1,8})/([0-9A-F]{1,8})")
HOLDS_NOTHING = 3
"""How the container that makes a data directory ready ends where the volume holds no database, and none may be begun on it."""
CANT_REWIND = 5
"""How the container that makes a data directory ready ends where the folder can't be rewound, or is half rewound."""


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance by its pod, and what its server answered, nothing where it didn't. *fault* is what keeps it from running, if anything does.

    *is_diverged* tells whether it stands by with a log that has what the primary's hasn't; *is_overdue* whether its pod should have ended by now, and nobody says that it has;
    *lacked_room* whether it has ended, or lets nobody in, because its volume is full.
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
    lacked_room: bool = False

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
    def closed(self) -> int | None:
        """Where in its log the server stopped in order that wrote it, if that is its end."""
        return lsn_of(str(self.answer.get("closed") or ""))

    @property
    def checkpoint(self) -> tuple[int, int] | None:
        """Where its last checkpoint stands, as timeline and position, if it takes writes."""
        position = lsn_of(str(self.answer.get("checkpoint") or "")) if self.is_writable else None
        return None if position is None else (int(self.answer.get("timeline") or 0), position)

    @property
    def is_unrewindable(self) -> bool:
        """Whether it has ended since its folder can't be rewound, or an earlier rewind was interrupted."""
        return self._has_prepared(CANT_REWIND)

    @property
    def holds_nothing(self) -> bool:
        """Whether it has ended since its volume holds no database."""
        return self._has_prepared(HOLDS_NOTHING)

    def _has_prepared(self, code: int) -> bool:
        """Tell whether it has ended with this code before there was a server."""
        ends = (
            map_at(state, "terminated").get("exitCode")
            for name, state in container_states(self.manifest)
            if name == PREPARES
        )
        return self.has_ended and code in ends

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
        return first_variables(self.manifest, "initContainers")


@dataclass(frozen=True, slots=True)
class PrimaryHandover:
    """What earlier passes noted of one instance that takes over from another: *to* whom, and the *uid* of the pod that was the primary until then.

    *is_failover* tells whether the primary is left behind. *wish* is whom somebody asks for; *granted* is the wish that was handled already.
    *is_gathering* tells that nobody knows which volume is the primary's: all stand by, and who has most takes over. *after* is where that primary's last checkpoint stood that was seen, as timeline and position; *is_closed* tells that whoever takes over had its log to the end.
    """

    to: str = ""
    uid: str = ""
    wish: str = ""
    granted: str = ""
    is_failover: bool = False
    after: tuple[int, int] | None = None
    is_closed: bool = False
    is_gathering: bool = False

    @property
    def is_switchover(self) -> bool:
        """Whether it is noted, and of a primary that stops in order."""
        return self.is_noted and not (self.is_failover or self.is_gathering)

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

    *rejoins* tells whether its log may have what the primary's hasn't, as long as its instance doesn't follow; *kept_since* when it was set aside, empty where it wasn't; *is_surplus* whether that was since its replica isn't wanted any more.
    *capacity* is what it has by now, empty where nobody says; *is_full* tells whether there was no room left when its instance last said.
    """

    slot: str
    system: str = ""
    major: str = ""
    is_primary: bool = False
    is_going: bool = False
    size: str = ""
    rejoins: bool = False
    kept_since: str = ""
    capacity: str = ""
    is_full: bool = False
    is_surplus: bool = False
    uid: str = ""


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
    def replaced(self) -> dict[str, InstanceVolume]:
        """The volumes that were set aside since no replica can be made of them."""
        return {slot: each for slot, each in self.kept.items() if not each.is_surplus}

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """The slots of pods that were created without their volume claim and wait for it: whoever writes both was killed in between, or the claim was refused."""
        waiting = (each for each in self.ordered if not each.is_going and awaits_node(each.manifest))
        return tuple(each.slot for each in waiting if each.slot not in self.claimed)

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
    def serving(self) -> Instance | None:
        """The primary where it serves: ready, writable, and with the data of this database."""
        primary = self.primary
        is_it = primary is not None and primary.serves and primary.is_writable and self.is_ours(primary)
        return primary if is_it else None

    def is_ours(self, instance: Instance) -> bool:
        """Tell whether the server of an instance doesn't say that it has the data of another database."""
        return str(instance.answer.get("system") or self.system) == self.system

    @property
    def ordered(self) -> list[Instance]:
        """The instances by number."""
        return sorted(self.instances.values(), key=lambda each: (len(each.slot), each.slot))

    def has_room(self, slot: str) -> bool:
        """Tell whether nobody says that the volume of a slot is full."""
        return slot not in self.claimed or not self.claimed[slot].is_full

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


def lsn_of(text: str) -> int | None:
    """Return a position in the log as a number, None where it is none: PostgreSQL writes it as two, in hexadecimal."""
    found = _LSN.fullmatch(text)
    return (int(found[1], 16) << 32) + int(found[2], 16) if found else None


def around(text: str) -> str:
    """Return a position in the log to the 256 MiB below, so that it changes seldom; empty where *text* is none."""
    position = lsn_of(text)
    return "" if position is None else lsn_text(position & ~_ROUNDED)


def lsn_text(position: int) -> str:
    """Return a position in the log as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"
