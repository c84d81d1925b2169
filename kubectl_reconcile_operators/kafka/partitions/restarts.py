"""Which broker may stop now, and in which order brokers restart.

A broker may stop if no partition loses what it needs by that: as many replicas in sync as its topic asks for (``min.insync.replicas``). A partition that
has no replica to spare even while all are in sync (replicas ≤ min.insync.replicas) can't wait for that: it blocks nothing once it is whole, and is
named. One that has a single replica is away while its broker is: somebody has to approve that.

Pure: decides on what is seen; ``batches`` says what moves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Key, Partition, listing


@dataclass(frozen=True, slots=True)
class BrokerStop:
    """Whether *broker* may stop now.

    *waits* are sentences on what has to come first by itself; *single* are partitions that would be away with it, which somebody approves;
    *short* are those that can't be written with acks=all meanwhile, which is said and waited for by nobody.
    """

    broker: int
    waits: tuple[str, ...] = ()
    single: tuple[Key, ...] = ()
    short: tuple[Key, ...] = ()

    def is_allowed(self, *, approved: bool = False) -> bool:
        """Tell whether the broker may stop; *approved* is whether somebody has approved that *single* are away."""
        return not self.waits and (approved or not self.single)


def stop_of(broker: int, seen: Assignment, moving: Collection[Key] = ()) -> BrokerStop:
    """Return whether *broker* may stop now; *moving* are the partitions that are being reassigned.

    A broker that doesn't run (fenced, or not registered) may: nothing is lost by it.
    """
    known = seen.brokers.get(broker)
    if known is None or known.fenced:
        return BrokerStop(broker)
    led = [each for each in seen.held_by(broker) if broker in each.in_sync or broker == each.leader]
    single = tuple(each.key for each in led if len(each.replicas) == 1)
    short = tuple(each.key for each in led if 1 < len(each.replicas) <= each.min_in_sync)
    return BrokerStop(broker, tuple(_waits(broker, seen, led, moving)), single, short)


def _waits(broker: int, seen: Assignment, held: Iterable[Partition], moving: Collection[Key]) -> Iterable[str]:
    if moving:
        yield f"{len(moving)} partitions are being moved: {listing(sorted(moving))}"
    if away := [each.id for each in seen.brokers.values() if each.fenced and each.id != broker]:
        yield f"brokers that don't run: {listing(away)}"
    if needed := [each.key for each in held if not _can_spare(each, broker)]:
        yield f"{len(needed)} partitions need broker {broker} to have enough replicas in sync: {listing(needed)}"
    elif behind := [each.key for each in held if set(each.replicas) - set(each.in_sync)]:
        yield f"{len(behind)} partitions have replicas that aren't in sync again yet: {listing(behind)}"


def _can_spare(partition: Partition, broker: int) -> bool:
    """Tell whether enough replicas stay in sync without *broker*: those that the topic asks for, or all others where it has no more than that."""
    left = len(set(partition.in_sync) - {broker})
    return left >= min(partition.min_in_sync, len(partition.replicas) - 1)


def restart_order(seen: Assignment, brokers: Iterable[int], controller: int | None) -> list[int]:
    """Return *brokers* in the order in which they restart.

    First those that don't run, then those whose own replicas are behind (a restart may be what they need), then by id; the active controller
    is last.
    """
    behind = {
        each for partition in seen.partitions.values() for each in set(partition.replicas) - set(partition.in_sync)
    }

    def rank(broker: int) -> tuple[bool, bool, bool, int]:
        known = seen.brokers.get(broker)
        return broker == controller, known is not None and not known.fenced, broker not in behind, broker

    return sorted(set(brokers), key=rank)


def next_stop(
    seen: Assignment, brokers: Iterable[int], controller: int | None, moving: Collection[Key] = ()
) -> BrokerStop | None:
    """Return the next of *brokers*, which are those that still have to restart, and whether it may stop now; None if there is none."""
    order = restart_order(seen, brokers, controller)
    return stop_of(order[0], seen, moving) if order else None
