"""What should move, and what that would bring: a proposal, worked out from what is seen and what is wished.

Racks come first, whatever they cost; what else is a goal is reached as far as racks let it. Contradictions and wishes that can't be granted are
*problems*, in sentences; a proposal that has one moves nothing.

Pure: the same cluster and the same wish give the same proposal, in whatever order brokers and partitions are listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kubectl_reconcile_operators.kafka.partitions.assignment import (
    Assignment,
    Key,
    Partition,
    digest_of,
    listing,
    with_replicas,
)
from kubectl_reconcile_operators.kafka.partitions.balance import bands_of, even_out
from kubectl_reconcile_operators.kafka.partitions.board import Board
from kubectl_reconcile_operators.kafka.partitions.fewer import use_fewer
from kubectl_reconcile_operators.kafka.partitions.homes import empty, spread
from kubectl_reconcile_operators.kafka.partitions.leaders import even_leaders
from kubectl_reconcile_operators.kafka.partitions.wish import BalanceGoal, MoveMode, Wish, matches, problems_of, staying

_ROUNDS = 4
"""How often it is looked whether more is found from where the moves found so far lead: else the next proposal would find it."""


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """A partition that is to stand elsewhere, or in another order; *size_bytes* is what one new replica copies."""

    key: Key
    old: tuple[int, ...]
    new: tuple[int, ...]
    size_bytes: int = 0
    leader: int | None = None

    @property
    def added(self) -> tuple[int, ...]:
        """The brokers that get a replica."""
        return tuple(each for each in self.new if each not in self.old)

    @property
    def removed(self) -> tuple[int, ...]:
        """The brokers that give theirs up."""
        return tuple(each for each in self.old if each not in self.new)

    @property
    def moved_bytes(self) -> int:
        """What is copied."""
        return self.size_bytes * len(self.added)


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds; *leaders* counts the partitions that prefer it to lead."""

    broker: int
    replicas: int = 0
    leaders: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class MoveProposal:
    """Moves by partition, in the order of names, and each broker's load before and after them.

    *seen* is the digest of the assignment it was made for. *problems* are why there is none; *notes* say what it can't do, or does unasked.
    """

    seen: str
    moves: tuple[PartitionMove, ...] = ()
    before: tuple[BrokerLoad, ...] = ()
    after: tuple[BrokerLoad, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A hash of what was seen and of what should move: what an approval is for."""
        return digest_of([self.seen, [[*each.key, list(each.new)] for each in self.moves]])

    @property
    def moved_replicas(self) -> int:
        """How many replicas are copied."""
        return sum(len(each.added) for each in self.moves)

    @property
    def moved_bytes(self) -> int:
        """How many bytes are copied."""
        return sum(each.moved_bytes for each in self.moves)

    @property
    def changed_leaders(self) -> int:
        """How many partitions prefer another leader."""
        return sum(each.old[:1] != each.new[:1] for each in self.moves)

    def wanted(self) -> dict[Key, tuple[int, ...]]:
        """Return where each partition that moves is to stand."""
        return {each.key: each.new for each in self.moves}


def propose(seen: Assignment, wish: Wish) -> MoveProposal:
    """Return what should move so that *wish* comes true, with few moves."""
    before = loads_of(seen)
    if problems := problems_of(seen, wish):
        return MoveProposal(seen.digest, (), before, before, tuple(problems))
    wanted: dict[Key, tuple[int, ...]] = {}
    there = seen
    for _ in range(1 if wish.mode is MoveMode.REMOVE_BROKERS else _ROUNDS):
        board = _board(there, wish)
        if stuck := _work_out(board, there, wish):
            return MoveProposal(seen.digest, (), before, before, (_no_room(board, there, wish, stuck),))
        moved = {board.keys[index]: tuple(board.replicas[index]) for index in board.moved()}
        if not moved:
            break
        wanted |= moved
        there = _moved(there, moved, board.room)
    return proposal_of(seen, wanted, _notes(seen, wish))


def _moved(seen: Assignment, wanted: Mapping[Key, tuple[int, ...]], room: Mapping[int, int | None]) -> Assignment:
    """Return the cluster once partitions stand as *wanted*. What they leave isn't *room* for others: it is free only once all have moved."""
    there = with_replicas(seen, wanted)
    brokers = {number: replace(each, usable_bytes=room[number]) for number, each in there.brokers.items()}
    return replace(there, brokers=brokers)


def proposal_of(seen: Assignment, wanted: dict[Key, tuple[int, ...]], notes: Iterable[str] = ()) -> MoveProposal:
    """Return the proposal that has the partitions in *wanted* stand where it says; those that are gone or stand there are left out."""
    moves = tuple(
        PartitionMove(key, each.replicas, wanted[key], each.size_bytes, each.leader)
        for key, each in seen.partitions.items()
        if key in wanted and wanted[key] != each.replicas
    )
    after = loads_of(with_replicas(seen, {each.key: each.new for each in moves}))
    return MoveProposal(seen.digest, moves, loads_of(seen), after, notes=tuple(notes))


def _board(seen: Assignment, wish: Wish) -> Board:
    stay = [each.id for each in staying(seen, wish)]
    takers = sorted({*stay} & {*wish.brokers}) if wish.mode is MoveMode.ADD_BROKERS else stay
    return Board(
        seen,
        takers=takers,
        givers=[] if wish.mode is MoveMode.REMOVE_BROKERS else stay,
        pinned=[key for key, each in seen.partitions.items() if _stays(each, wish)],
        keeps_racks=BalanceGoal.RACK in wish.goals,
    )


def _stays(partition: Partition, wish: Wish) -> bool:
    return wish.excludes(partition.topic) or partition.leader is None


def _work_out(board: Board, seen: Assignment, wish: Wish) -> list[int]:
    """Move replicas on *board* until the wish is true; return the partitions that find no broker to go to."""
    by_bytes = BalanceGoal.DISK in wish.goals and BalanceGoal.REPLICAS not in wish.goals
    stay = [each.id for each in staying(seen, wish)]
    if wish.mode is MoveMode.REMOVE_BROKERS:
        stuck = empty(board, wish.brokers, by_bytes=by_bytes)
    else:
        stuck = []
        if BalanceGoal.RACK in wish.goals:
            spread(board, by_bytes=by_bytes, most=_part(board, stay) if wish.mode is MoveMode.ADD_BROKERS else None)
        bands = bands_of(board, stay, replicas=BalanceGoal.REPLICAS in wish.goals, disk=BalanceGoal.DISK in wish.goals)
        even_out(board, bands)
        if wish.mode is MoveMode.FULL:
            use_fewer(board, bands)
    if BalanceGoal.LEADERS in wish.goals and not stuck:
        even_leaders(board, stay, _reordered(board, wish))
    return stuck


def _part(board: Board, brokers: list[int]) -> int:
    """Return how many replicas each broker would have if all had as many."""
    return sum(board.counts[each] for each in brokers) // max(1, len(brokers))


def _reordered(board: Board, wish: Wish) -> list[int]:
    """Return the partitions whose order may change: all that may move, or, where only some brokers are meant, those that do."""
    every = range(len(board.keys)) if wish.mode is MoveMode.FULL else board.moved()
    return [index for index in every if index not in board.pinned]


def _no_room(board: Board, seen: Assignment, wish: Wish, stuck: list[int]) -> str:
    room = listing(
        f"{each.id} has {'unknown' if (free := board.room[each.id]) is None else free} bytes left"
        for each in staying(seen, wish)
    )
    largest = max(board.sizes[index] for index in stuck)
    return (
        f"{len(stuck)} partitions find no broker with room for them: {listing(board.keys[index] for index in stuck)}, up to {largest} bytes; "
        f"after what else would move, broker {room} (hint: add disk space or brokers)"
    )


def _notes(seen: Assignment, wish: Wish) -> Iterable[str]:
    if offline := [
        key for key, each in seen.partitions.items() if each.leader is None and not wish.excludes(key.topic)
    ]:
        yield f"{len(offline)} partitions have no leader and stay where they are: {listing(offline)}"
    if away := [each.id for each in seen.brokers.values() if each.fenced and not wish.leaves(each.id)]:
        yield f"brokers that don't run get and lose nothing: {listing(away)}"
    topics = {key.topic for key in seen.partitions}
    if bare := [each for each in wish.excluded if not any(matches(each, topic) for topic in topics)]:
        yield f"no topic is called as excludeTopics says: {listing(bare)}"


def loads_of(seen: Assignment) -> tuple[BrokerLoad, ...]:
    """Return what each broker holds, by id; also those that are registered no more and still named by a partition."""
    every = sorted(seen.brokers.keys() | {broker for each in seen.partitions.values() for broker in each.replicas})
    replicas, leaders, size = dict.fromkeys(every, 0), dict.fromkeys(every, 0), dict.fromkeys(every, 0)
    for each in seen.partitions.values():
        for place, broker in enumerate(each.replicas):
            replicas[broker] += 1
            leaders[broker] += place == 0
            size[broker] += each.size_bytes
    return tuple(BrokerLoad(broker, replicas[broker], leaders[broker], size[broker]) for broker in every)


def estimate_s(proposal: MoveProposal, throttle_bytes_per_s: int | None) -> int | None:
    """Return how long the moves take if each broker sends and gets at most *throttle_bytes_per_s*, in seconds; None without a throttle.

    A new replica is copied from the partition's leader. The busiest broker, sending or getting, is what it takes.
    """
    if not throttle_bytes_per_s:
        return None
    sent: dict[int, int] = {}
    got: dict[int, int] = {}
    for move in proposal.moves:
        source = move.leader if move.leader is not None else move.old[0]
        sent[source] = sent.get(source, 0) + move.moved_bytes
        for broker in move.added:
            got[broker] = got.get(broker, 0) + move.size_bytes
    return math.ceil(max([*sent.values(), *got.values()], default=0) / throttle_bytes_per_s)
