"""What is seen of a cluster: its brokers, and which of them hold which partition.

A *replica* is one copy of a partition on one broker; the first one in order is the *preferred leader*. A *fenced* broker is registered and not
running: it takes nothing. A partition without a leader is *offline*.

Pure: no clock, no network; all values are frozen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple


class Key(NamedTuple):
    """A partition's name; it sorts by topic, then by number."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as registered; *usable_bytes* is what its disk still takes, None where the broker doesn't tell."""

    id: int
    rack: str | None = None
    usable_bytes: int | None = None
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition as its leader sees it; *size_bytes* is one replica's size, that of the leader."""

    topic: str
    number: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...] = ()
    leader: int | None = None
    size_bytes: int = 0
    min_in_sync: int = 1

    @property
    def key(self) -> Key:
        """Its name."""
        return Key(self.topic, self.number)


@dataclass(frozen=True)
class Assignment:
    """A cluster at one moment: brokers by id, partitions by name."""

    brokers: Mapping[int, Broker]
    partitions: Mapping[Key, Partition]

    @cached_property
    def digest(self) -> str:
        """A hash of who holds what in which order: what a proposal was made for. Leaders, sizes and who is in sync aren't part of it."""
        return digest_of([[*key, list(each.replicas)] for key, each in self.partitions.items()])

    @cached_property
    def read_digest(self) -> str:
        """A hash of all that a proposal is worked out from: brokers, sizes and leaders too. Who is in sync isn't part of it."""
        brokers = [[each.id, each.rack, each.usable_bytes, each.fenced] for each in self.brokers.values()]
        return digest_of(
            [brokers, [[*key, each.replicas, each.leader, each.size_bytes] for key, each in self.partitions.items()]]
        )

    def held_by(self, broker: int) -> list[Partition]:
        """Return the partitions that have a replica on *broker*, by name."""
        return list(self._held.get(broker, ()))

    @cached_property
    def _held(self) -> Mapping[int, list[Partition]]:
        found: dict[int, list[Partition]] = {}
        for each in self.partitions.values():
            for broker in {*each.replicas}:
                found.setdefault(broker, []).append(each)
        return found


def assignment_of(brokers: Iterable[Broker], partitions: Iterable[Partition]) -> Assignment:
    """Return the cluster that consists of *brokers* and *partitions*, in whatever order they are listed."""
    return Assignment(
        {each.id: each for each in sorted(brokers, key=lambda each: each.id)},
        {each.key: each for each in sorted(partitions, key=lambda each: (each.topic, each.number))},
    )


def with_replicas(seen: Assignment, wanted: Mapping[Key, tuple[int, ...]]) -> Assignment:
    """Return the cluster as it is once each partition named in *wanted* stands there, all of it in sync, led by its first replica.

    The disks' usable bytes follow. A partition that is gone is left out.
    """
    free = {each.id: each.usable_bytes for each in seen.brokers.values()}
    after = dict(seen.partitions)
    for key in wanted.keys() & after.keys():
        before, replicas = after[key], wanted[key]
        after[key] = replace(before, replicas=replicas, in_sync=replicas, leader=replicas[0])
        for broker in {*replicas} ^ {*before.replicas}:
            size = before.size_bytes if broker in before.replicas else -before.size_bytes
            free[broker] = None if (room := free.get(broker)) is None else room + size
    return Assignment({each.id: replace(each, usable_bytes=free[each.id]) for each in seen.brokers.values()}, after)


def digest_of(value: object) -> str:
    """Return a short hash of *value*, which is JSON; lists keep their order."""
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode()).hexdigest()[:16]


def listing(names: Iterable[object], most: int = 5) -> str:
    """Return *names* for a sentence: at most *most* of them, and how many more there are."""
    every = [str(each) for each in names]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")
