"""A board on which replicas are moved until a proposal stands: who holds what now, and which move is possible.

A replica may go to a broker that takes, holds no replica of that partition, has room on its disk, and, where racks count, doesn't make the
partition stand on fewer racks. A replica that has been moved already moves on for nothing: only where it ends counts.

The board changes; it never leaves the function that made it. No clock, no chance: ties go to the smaller size, then to the first name.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Key

_LOOKS = 64
"""How many replicas next to the wanted size are looked at, each side, before a pair of brokers counts as without a move between them."""


class Board:
    """Replicas on brokers. *takers* may get replicas, *givers* lose them; replicas of *pinned* partitions stay."""

    def __init__(
        self,
        seen: Assignment,
        *,
        takers: Collection[int],
        givers: Collection[int],
        pinned: Collection[Key],
        keeps_racks: bool,
    ) -> None:
        partitions = list(seen.partitions.values())
        self.keys = [each.key for each in partitions]
        self.sizes = [each.size_bytes for each in partitions]
        self.old = [each.replicas for each in partitions]
        self.replicas = [list(each.replicas) for each in partitions]
        self.takers = sorted(takers)
        self.givers = sorted(givers)
        self.pinned = frozenset(index for index, key in enumerate(self.keys) if key in pinned)
        every = seen.brokers.keys() | {broker for replicas in self.old for broker in replicas}
        self.racks = {broker: _rack_of(seen, broker) if keeps_racks else None for broker in every}
        self.keeps_racks = keeps_racks
        self.room = {broker: _room_of(seen, broker) for broker in every}
        self.counts = dict.fromkeys(sorted(every), 0)
        self.bytes = dict.fromkeys(sorted(every), 0)
        self.movable: dict[int, list[tuple[int, int]]] = {broker: [] for broker in every}
        for index, replicas in enumerate(self.old):
            for broker in replicas:
                self._count(index, broker, 1)
                if index not in self.pinned:
                    self.movable[broker].append((self.sizes[index], index))
        for each in self.movable.values():
            each.sort()
        self.counts_before, self.bytes_before, self.room_before = dict(self.counts), dict(self.bytes), dict(self.room)

    def _count(self, index: int, broker: int, replicas: int) -> None:
        self.counts[broker] += replicas
        self.bytes[broker] += replicas * self.sizes[index]

    def move(self, index: int, source: int, target: int) -> None:
        """Move the replica of a partition; the target takes the source's place in the order."""
        replicas, size = self.replicas[index], self.sizes[index]
        replicas[replicas.index(source)] = target
        for broker, count in ((source, -1), (target, 1)):
            self._count(index, broker, count)
            if broker not in self.old[index]:
                self._take_room(broker, count * size)
        del self.movable[source][bisect_left(self.movable[source], (size, index))]
        insort(self.movable[target], (size, index))

    def undo(self) -> None:
        """Put all replicas back to where they stood."""
        for index in list(self.moved()):
            old, now = self.old[index], list(self.replicas[index])
            for here, there in zip(
                (each for each in now if each not in old), (each for each in old if each not in now), strict=True
            ):
                self.move(index, here, there)
            self.replicas[index] = list(old)

    def _take_room(self, broker: int, size: int) -> None:
        room = self.room[broker]
        self.room[broker] = None if room is None else room - size

    def can_move(self, index: int, source: int, target: int) -> bool:
        """Tell whether the replica that *source* holds may stand on *target*."""
        if not self.may_hold(index, target):
            return False
        return not self.keeps_racks or self._keeps_racks(self.replicas[index], source, target)

    def may_hold(self, index: int, target: int) -> bool:
        """Tell whether *target* holds no replica of a partition and has room for one, whatever the racks."""
        room = self.room[target]
        if target in self.replicas[index]:
            return False
        return room is None or target in self.old[index] or self.sizes[index] <= room

    def _keeps_racks(self, replicas: list[int], source: int, target: int) -> bool:
        rack, others = self.racks[target], [self.racks[each] for each in replicas if each != source]
        return rack not in others or self.racks[source] in others

    def cost(self, index: int, source: int, target: int) -> int:
        """Return by how many the moves grow if this one is made: a replica that was moved already moves on for nothing."""
        return (target not in self.old[index]) - (source not in self.old[index])

    def nearest(self, source: int, target: int, size: float, *, most: float | None = None) -> int | None:
        """Return the partition whose replica can go from *source* to *target* and whose size is nearest to *size* and below *most*."""
        found = self.near(source, target, size)
        fits = [index for index in found if most is None or 0 < self.sizes[index] < most]
        return min(
            fits,
            key=lambda index: (self.cost(index, source, target), abs(self.sizes[index] - size), index),
            default=None,
        )

    def near(self, source: int, target: int, size: float) -> Iterator[int]:
        """Yield the movable partition next above *size*, and the one next below."""
        replicas = self.movable[source]
        at = bisect_left(replicas, (size, -1))
        above = range(at, min(at + _LOOKS, len(replicas)))
        below = range(at - 1, max(at - _LOOKS, 0) - 1, -1)
        for side in (above, below):
            for place in side:
                index = replicas[place][1]
                if self.can_move(index, source, target):
                    yield index
                    break

    def any_movable(self, source: int, target: int, size: float) -> int | None:
        """Return the partition to go from *source* to *target*: near *size*, or wherever in the list there is one."""
        found = self.nearest(source, target, size)
        if found is not None:
            return found
        every = (index for _, index in self.movable[source] if self.can_move(index, source, target))
        return next(every, None)

    def racks_of(self, index: int) -> int:
        """Return on how many racks a partition stands."""
        return len({self.racks[broker] for broker in self.replicas[index]})

    def moved(self) -> Iterable[int]:
        """Yield the partitions whose replicas don't stand as they stood."""
        return (index for index, replicas in enumerate(self.replicas) if tuple(replicas) != self.old[index])


def _rack_of(seen: Assignment, broker: int) -> str | None:
    known = seen.brokers.get(broker)
    return known.rack if known else None


def _room_of(seen: Assignment, broker: int) -> int | None:
    known = seen.brokers.get(broker)
    return known.usable_bytes if known else 0


def way(came: Mapping[int, int], here: int) -> list[int]:
    """Return the way to *here* from where it began, which came from itself."""
    path = [here]
    while came[here] != here:
        here = came[here]
        path.append(here)
    return path[::-1]
