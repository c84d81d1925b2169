"""What of a proposal is next, given what has been moved and what is in flight.

Nothing is remembered: who holds what and what Kafka is moving say where a proposal is, so whoever is killed goes on from there. A partition is
*done* once nothing of it is in flight, its replicas stand as proposed, in that order, and all of them are in sync.

Pure: returns what to ask Kafka for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubectl_reconcile_operators.kafka.partitions.assignment import Assignment, Key, Partition
from kubectl_reconcile_operators.kafka.partitions.proposal import PartitionMove


@dataclass(frozen=True, slots=True)
class InFlight:
    """A reassignment that Kafka is at: *replicas* are all that hold the partition meanwhile, *adding* and *removing* among them."""

    key: Key
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        """Where the partition goes."""
        return tuple(each for each in self.replicas if each not in self.removing)


@dataclass(frozen=True, slots=True)
class Batch:
    """What to ask Kafka for now.

    *submit* has the replicas to ask for by partition, *cancel* the reassignments to take back. *waiting* are in flight as they should be or
    catch up, *done* are finished, *left* wait for their turn, *gone* are no more (their topic was deleted). *elect* are those whose preferred
    leader is in sync and doesn't lead, to be elected.
    """

    submit: Mapping[Key, tuple[int, ...]] = field(default_factory=dict)
    cancel: tuple[Key, ...] = ()
    waiting: tuple[Key, ...] = ()
    done: tuple[Key, ...] = ()
    left: tuple[Key, ...] = ()
    gone: tuple[Key, ...] = ()
    elect: tuple[Key, ...] = ()

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to move or to wait for; elections may be."""
        return not (self.submit or self.cancel or self.waiting or self.left)


def next_batch(
    moves: Iterable[PartitionMove], seen: Assignment, in_flight: Iterable[InFlight], max_moves_in_flight: int
) -> Batch:
    """Return what to do next for *moves*, of which at most *max_moves_in_flight* partitions are under way.

    A reassignment of one of their partitions that goes elsewhere is cancelled first; those of other partitions count and are left alone.
    A mere change of order moves nothing and doesn't count.
    """
    flights = {each.key: each for each in in_flight}
    wanted = {each.key: each for each in moves}
    gone = tuple(key for key in wanted if key not in seen.partitions)
    there = {key: each for key, each in wanted.items() if key in seen.partitions}
    cancel = tuple(key for key, each in there.items() if key in flights and not _agrees(flights[key], each.new))
    done = tuple(key for key, each in there.items() if key not in flights and _is_done(seen.partitions[key], each.new))
    waiting = tuple(key for key, each in there.items() if _is_waiting(seen.partitions[key], flights.get(key), each.new))
    settled = {*cancel, *done, *waiting}
    rest = [key for key in there if key not in settled]
    under_way = len(flights) + sum(key not in flights for key in waiting)
    mere_order = [key for key in rest if set(seen.partitions[key].replicas) == set(there[key].new)]
    ordered = {*mere_order}
    data = [key for key in rest if key not in ordered][: max(0, max_moves_in_flight - under_way)]
    submit = {key: there[key].new for key in (*mere_order, *data)}
    left = tuple(key for key in rest if key not in submit)
    return Batch(submit, cancel, waiting, done, left, gone, elections(seen.partitions[key] for key in done))


def _agrees(flight: InFlight, new: tuple[int, ...]) -> bool:
    return flight.target == new


def _is_done(partition: Partition, new: tuple[int, ...]) -> bool:
    return partition.replicas == new and set(new) <= set(partition.in_sync)


def _is_waiting(partition: Partition, flight: InFlight | None, new: tuple[int, ...]) -> bool:
    """Tell whether a partition is on its way: in flight there, or there already and not in sync yet."""
    if flight:
        return _agrees(flight, new)
    return partition.replicas == new and not set(new) <= set(partition.in_sync)


def undo(moves: Iterable[PartitionMove], seen: Assignment, in_flight: Iterable[InFlight]) -> Batch:
    """Return what takes back the moves of *moves* that are in flight; what was moved stays.

    Kafka gives back the old replicas in another order, so that another one is preferred to lead: the old order is asked for as well, once
    the cancelled reassignment is gone.
    """
    flights = {each.key: each for each in in_flight}
    there = [each for each in moves if each.key in seen.partitions]
    cancel = tuple(each.key for each in there if each.key in flights and flights[each.key].adding)
    waiting = tuple(each.key for each in there if each.key in flights and not flights[each.key].adding)
    resting = [each for each in there if each.key not in flights]
    submit = {each.key: each.old for each in resting if _is_shuffled(seen.partitions[each.key], each)}
    rest = [each.key for each in resting if each.key not in submit]
    return Batch(submit, cancel, waiting, done=tuple(rest), elect=elections(seen.partitions[key] for key in rest))


def _is_shuffled(partition: Partition, move: PartitionMove) -> bool:
    """Tell whether a partition stands where it stood, in an order that is neither the old nor the new one."""
    return set(partition.replicas) == set(move.old) and partition.replicas not in {move.old, move.new}


def elections(partitions: Iterable[Partition]) -> tuple[Key, ...]:
    """Return the partitions whose preferred leader is in sync and doesn't lead."""
    return tuple(
        each.key
        for each in partitions
        if each.leader is not None and each.leader != each.replicas[0] and each.replicas[0] in each.in_sync
    )


def strays(moves: Iterable[PartitionMove], in_flight: Iterable[InFlight]) -> tuple[Key, ...]:
    """Return the reassignments in flight that none of *moves* asks for: somebody else's, or ours before a change of mind."""
    wanted = {each.key for each in moves}
    return tuple(sorted(each.key for each in in_flight if each.key not in wanted))
