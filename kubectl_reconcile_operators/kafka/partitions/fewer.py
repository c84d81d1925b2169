"""Whether fewer moves would do: all of them are tried, where they can be counted.

What moves one replica at a time towards even sometimes takes three steps where two would do, if partitions differ much in size and there are few of
them. In a cluster of few partitions all sets of moves can be tried; in a large one there is always a partition of the size that is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from kubectl_reconcile_operators.kafka.partitions.balance import Bands, even_out, outside
from kubectl_reconcile_operators.kafka.partitions.board import Board

_MOST_SETS = 10_000
"""How many sets of moves are tried at most, of each number of moves."""
_MOST_PARTITIONS = 1000
_ROUNDS = 5


class _Step(NamedTuple):
    at: int
    source: int
    target: int


class _Off(NamedTuple):
    """How far a board is from what is wished: racks that are missing, replicas and bytes out of their bands."""

    racks: int
    replicas: float
    size: float


def use_fewer(board: Board, bands: Bands) -> None:
    """Reach what *board* has reached with fewer moves, if trying finds a way."""
    for _ in range(_ROUNDS):
        steps = _fewer(board, bands)
        if steps is None:
            return
        board.undo()
        for step in steps:
            board.move(*step)
        even_out(board, bands)


def _fewer(board: Board, bands: Bands) -> tuple[_Step, ...] | None:
    """Return fewer moves than were made that bring the brokers as near to what is wished; None if there are none, or too many to try."""
    made = sum(len({*board.replicas[index]} - {*board.old[index]}) for index in board.moved())
    reached = _off(board, bands, board.counts, board.bytes, _short_of_racks(board, board.replicas))
    steps = list(_steps(board)) if 1 < made < 10 and len(board.keys) <= _MOST_PARTITIONS else []
    for count in range(1, made):
        if not steps or math.comb(len(steps), count) > _MOST_SETS:
            return None
        for chosen in combinations(steps, count):
            after = _after(board, bands, chosen)
            if after and all(off <= before for off, before in zip(after, reached, strict=True)):
                return chosen
    return None


def _steps(board: Board) -> Iterator[_Step]:
    for index, replicas in enumerate(board.old):
        for source in replicas:
            if index not in board.pinned and source in board.givers:
                yield from (_Step(index, source, each) for each in board.takers if each not in replicas)


def _after(board: Board, bands: Bands, steps: Iterable[_Step]) -> _Off | None:
    """Return how far the brokers are from what is wished once *steps* are made from where all stood; None if they can't be made."""
    replicas = {index: list(board.old[index]) for index, _, _ in steps}
    counts, size, room = dict(board.counts_before), dict(board.bytes_before), dict(board.room_before)
    for index, source, target in steps:
        if source not in replicas[index] or target in replicas[index]:
            return None
        replicas[index][replicas[index].index(source)] = target
        counts[source], counts[target] = counts[source] - 1, counts[target] + 1
        size[source], size[target] = size[source] - board.sizes[index], size[target] + board.sizes[index]
        left = room[target]
        room[target] = None if left is None else left - board.sizes[index]
        if left is not None and left < board.sizes[index]:
            return None
    every = [replicas.get(index, before) for index, before in enumerate(board.old)]
    return _off(board, bands, counts, size, _short_of_racks(board, every))


def _off(board: Board, bands: Bands, counts: dict[int, int], size: dict[int, int], racks: int) -> _Off:
    brokers = board.givers
    return _Off(
        racks,
        outside(bands.replicas, [counts[each] for each in brokers]),
        outside(bands.bytes, [size[each] for each in brokers]),
    )


def _short_of_racks(board: Board, replicas: Iterable[Iterable[int]]) -> int:
    """Return how many more racks partitions could stand on, all together."""
    if not board.keeps_racks:
        return 0
    racks = len({board.racks[each] for each in board.takers})
    held = [[board.racks[broker] for broker in each] for each in replicas]
    return sum(max(0, min(racks, len(each)) - len(set(each))) for each in held)
