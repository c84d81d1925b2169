"""More or fewer replicas of partitions: where those that come stand, and which of them go.

One that comes stands where a partition has none yet: on another rack if there is one, then on the broker that has the least. Of those that go, one on a broker that leaves is the first, then one of
a rack that has two, then one on the broker that has the most. The preferred leader stays. Nothing goes of a partition unless all that stays is in sync.

Pure: the same cluster and the same wish give the same places, in whatever order they are listed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Key, Partition, listing


@dataclass(frozen=True, slots=True)
class Resized:
    """Where partitions are to stand, and sentences on those that can't have as many replicas as they should."""

    wanted: Mapping[Key, tuple[int, ...]] = field(default_factory=dict)
    stuck: tuple[str, ...] = ()


def with_fewer(seen: Assignment, counts: Mapping[str, int], leaving: Collection[int]) -> Resized:
    """Return where partitions stand that have more replicas than *counts* says of their topic; *leaving* are brokers that are to go."""
    places = _Places(seen, leaving)
    wanted: dict[Key, tuple[int, ...]] = {}
    behind: list[Key] = []
    for each in _of(seen, counts):
        left = list(each.replicas)
        while len(left) > counts[each.topic]:
            gone = max(left[1:], key=lambda broker: places.can_go(broker, left, each))
            left.remove(gone)
            places.counts[gone] -= 1
        if len(left) == len(each.replicas):
            continue
        if {*left} <= {*each.in_sync}:
            wanted[each.key] = tuple(left)
        else:
            behind.append(each.key)
    stuck = (f"replicas of {listing(behind)} aren't in sync yet, so none is taken away",) if behind else ()
    return Resized(wanted, stuck)


def with_more(seen: Assignment, counts: Mapping[str, int], leaving: Collection[int]) -> Resized:
    """Return where partitions stand that have fewer replicas than *counts* says of their topic; brokers that are *leaving* get none."""
    places = _Places(seen, leaving)
    wanted: dict[Key, tuple[int, ...]] = {}
    without: list[Key] = []
    for each in _of(seen, counts):
        every = list(each.replicas)
        while len(every) < counts[each.topic]:
            target = places.home(every, each.size_bytes)
            if target is None:
                without.append(each.key)
                break
            places.take(target, each.size_bytes)
            every.append(target)
        if len(every) > len(each.replicas):
            wanted[each.key] = tuple(every)
    hint = "add brokers or disk space, or lower the replicas"
    stuck = (f"no broker has room for another replica of {listing(without)} (hint: {hint})",) if without else ()
    return Resized(wanted, stuck)


def _of(seen: Assignment, counts: Mapping[str, int]) -> list[Partition]:
    """Return the partitions of these topics that somebody leads."""
    return [each for each in seen.partitions.values() if each.topic in counts and each.leader is not None]


class _Places:
    """What brokers hold while places are found."""

    def __init__(self, seen: Assignment, leaving: Collection[int]) -> None:
        self.racks = {each.id: each.rack for each in seen.brokers.values()}
        self.stay = [each.id for each in seen.brokers.values() if not each.fenced and each.id not in leaving]
        self.room = {each.id: each.usable_bytes for each in seen.brokers.values()}
        held = {broker for each in seen.partitions.values() for broker in each.replicas}
        self.counts = {broker: len(seen.held_by(broker)) for broker in sorted({*self.racks, *held})}
        self.leaving = {*leaving}

    def can_go(self, broker: int, left: list[int], partition: Partition) -> tuple[bool, bool, bool, int, int]:
        """Return how much a replica rather goes than others."""
        racks = [self.racks.get(each) for each in left]
        is_double = racks.count(self.racks.get(broker)) > 1
        return broker in self.leaving, broker not in partition.in_sync, is_double, self.counts[broker], broker

    def home(self, held: list[int], size: int) -> int | None:
        """Return where another replica of a partition stands that *held* hold, None where there is no place for it."""
        racks = {self.racks.get(each) for each in held}
        free = [each for each in self.stay if each not in held and _fits(self.room[each], size)]
        return min(free, key=lambda each: (self.racks[each] in racks, self.counts[each], each), default=None)

    def take(self, broker: int, size: int) -> None:
        """Note that a broker gets a replica."""
        self.counts[broker] += 1
        room = self.room[broker]
        self.room[broker] = None if room is None else room - size


def _fits(room: int | None, size: int) -> bool:
    return room is None or room >= size
