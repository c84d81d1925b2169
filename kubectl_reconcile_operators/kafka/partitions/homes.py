"""Replicas that have to go: off a broker that leaves, or off a rack that holds two replicas of one partition.

Each goes to the broker that has the least, big ones first; a rack that doesn't hold the partition yet comes before all else.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubectl_reconcile_operators.kafka.partitions.board import Board


def empty(board: Board, leaving: Iterable[int], *, by_bytes: bool) -> list[int]:
    """Move all replicas off the brokers that leave; return the partitions for a replica of which no broker was found."""
    stuck = []
    for broker in sorted(leaving):
        for _, index in sorted(board.movable[broker], key=lambda each: (-each[0], each[1])):
            target = _home(board, index, broker, by_bytes=by_bytes)
            if target is None:
                stuck.append(index)
            else:
                board.move(index, broker, target)
    return sorted(set(stuck))


def _home(board: Board, index: int, source: int, *, by_bytes: bool) -> int | None:
    """Return where the replica goes that *source* holds: to as many racks as possible, then to who has the least."""
    others = {board.racks[each] for each in board.replicas[index] if each != source}

    def rank(target: int) -> tuple[bool, int, int, int]:
        counts, size = board.counts[target], board.bytes[target]
        return (board.racks[target] in others, *((size, counts) if by_bytes else (counts, size)), target)

    return min((each for each in board.takers if board.may_hold(index, each)), key=rank, default=None)


def spread(board: Board, *, by_bytes: bool, most: int | None = None) -> None:
    """Move replicas so that each partition stands on as many racks as there are, or as it has replicas.

    A broker that holds *most* replicas gets none for that.
    """
    racks = len({board.racks[each] for each in board.takers})
    short = [
        index
        for index, replicas in enumerate(board.replicas)
        if index not in board.pinned and racks > 1 and len(replicas) > 1
    ]
    for index in short:
        for _ in range(min(racks, len(board.replicas[index])) - board.racks_of(index)):
            _spread_one(board, index, by_bytes=by_bytes, most=most)


def _spread_one(board: Board, index: int, *, by_bytes: bool, most: int | None) -> None:
    """Move one replica from a rack that has two of them to one that has none: from who has the most to who has the least."""
    has = board.bytes if by_bytes else board.counts
    racks = [board.racks[each] for each in board.replicas[index]]
    sources = [each for each in board.replicas[index] if racks.count(board.racks[each]) > 1 and each in board.givers]
    takers = [each for each in board.takers if most is None or board.counts[each] < most]
    targets = [each for each in takers if board.racks[each] not in racks and board.may_hold(index, each)]
    if sources and targets:
        source = min(sources, key=lambda each: (-has[each], each))
        board.move(index, source, min(targets, key=lambda each: (has[each], each)))
