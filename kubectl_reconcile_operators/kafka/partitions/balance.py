"""Replicas and bytes made even on a board, with few moves.

*Replicas* are even once each broker has the mean, rounded down or up. *Disks* are even once each has the mean's bytes, a tenth more or less; if replicas
are to be even as well, a tenth more or less will do for them, too. What can't be reached (racks, room, one partition bigger than a broker's
part) is approached until no single move brings it nearer.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubectl_reconcile_operators.kafka.partitions.board import Board, way

_TENTH = 0.1
_SWAPS = 32
"""How many small replicas are tried as the other half of a swap."""


@dataclass(frozen=True, slots=True)
class Bands:
    """Between what a broker's replicas and bytes should be; None where that isn't a goal."""

    replicas: tuple[int, int] | None
    bytes: tuple[float, float] | None


def bands_of(board: Board, brokers: Sequence[int], *, replicas: bool, disk: bool) -> Bands:
    """Return the bands for what *brokers* hold now, all together."""
    counts = sum(board.counts[each] for each in brokers) / max(1, len(brokers))
    size = sum(board.bytes[each] for each in brokers) / max(1, len(brokers))
    slack = _TENTH * counts if disk else 0
    return Bands(
        (math.floor(counts - slack), math.ceil(counts + slack)) if replicas else None,
        (size * (1 - _TENTH), size * (1 + _TENTH)) if disk else None,
    )


def even_out(board: Board, bands: Bands) -> None:
    """Move replicas until all brokers are within *bands*, or nothing helps any more."""
    helped = True
    while helped:
        helped = bands.replicas is not None and _repeated(_move_one, board, bands)
        helped = (bands.bytes is not None and _repeated(_lower_one, board, bands)) or helped
        helped = helped and bands.replicas is not None and bands.bytes is not None


def _repeated(step: Callable[[Board, Bands], bool], board: Board, bands: Bands) -> bool:
    """Take a step until it can't be taken any more; tell whether it could be once."""
    helped = False
    while step(board, bands):
        helped = True
    return helped


def _move_one(board: Board, bands: Bands) -> bool:
    """Move one replica from a broker that has many to one that has few, directly or by way of others."""
    for source, target in _uneven(board, bands):
        index = board.any_movable(source, target, _evening_size(board, bands, target))
        if index is not None:
            board.move(index, source, target)
            return True
    return any(
        _move_along(board, bands, source) for source in dict.fromkeys(source for source, _ in _uneven(board, bands))
    )


def _uneven(board: Board, bands: Bands) -> Iterator[tuple[int, int]]:
    """Yield pairs of brokers that are nearer to their band once a replica has gone from one to the other, the most uneven first."""
    low, high = bands.replicas or (0, 0)
    fullest, emptiest = _fullest_and_emptiest(board, board.counts)
    only_added = set(board.takers) != set(board.givers)
    for source in fullest:
        for target in emptiest:
            has, gets = board.counts[source], board.counts[target]
            if has <= low or gets >= high:
                break
            if gets < low or (has > high and not only_added):
                yield source, target


def _fullest_and_emptiest(board: Board, held: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return who may give, whoever holds most first, and who may take, whoever holds least first."""
    fullest = sorted(board.givers, key=lambda each: (-held[each], each))
    return fullest, sorted(board.takers, key=lambda each: (held[each], each))


def _evening_size(board: Board, bands: Bands, target: int) -> float:
    """Return the size that a replica best has to go to *target*: what it lacks in bytes, for each replica that it lacks; else the smallest."""
    if bands.replicas is None or bands.bytes is None:
        return 0
    lacks = max(1, bands.replicas[0] - board.counts[target])
    return max(0, (sum(bands.bytes) / 2 - board.bytes[target]) / lacks)


def _move_along(board: Board, bands: Bands, source: int) -> bool:
    """Move one replica off *source* by way of other brokers, each of which passes one on."""
    path = _path(board, bands, source)
    made: list[tuple[int, int, int]] = []
    for here, there in itertools.pairwise(path):
        index = board.any_movable(here, there, 0)
        if index is None:
            for step in reversed(made):
                board.move(step[0], step[2], step[1])
            return False
        board.move(index, here, there)
        made.append((index, here, there))
    return bool(made)


def _path(board: Board, bands: Bands, source: int) -> list[int]:
    """Return the shortest way from *source* to a broker that should have a replica more; empty if there is none."""
    wanting = {target for each, target in _uneven(board, bands) if each == source}
    came: dict[int, int] = {source: source}
    ahead = deque([source])
    while ahead:
        here = ahead.popleft()
        if here in wanting:
            return way(came, here)
        for there in board.takers:
            if there not in came and board.any_movable(here, there, 0) is not None:
                came[there] = here
                ahead.append(there)
    return []


def _lower_one(board: Board, bands: Bands) -> bool:
    """Make the move, or the swap, that evens the bytes of an uneven pair the most; False if there is none."""
    for source, target in _uneven_bytes(board, bands):
        apart = board.bytes[source] - board.bytes[target]
        if _may_move(board, bands, source, target):
            index = board.nearest(source, target, apart / 2, most=apart)
            if index is not None and _nears(board, bands, source, target, board.sizes[index]):
                board.move(index, source, target)
                return True
    return any(_swap(board, bands, *pair) for pair in _uneven_bytes(board, bands))


def _nears(board: Board, bands: Bands, source: int, target: int, size: int) -> bool:
    """Tell whether both brokers together are nearer to their band once so many bytes have gone from *source* to *target*."""
    before = (board.bytes[source], board.bytes[target])
    after = (board.bytes[source] - size, board.bytes[target] + size)
    return outside(bands.bytes, after) < outside(bands.bytes, before)


def outside(band: tuple[float, float] | None, values: Iterable[float]) -> float:
    """Return by how much *values* are outside of a band, all together."""
    return sum(max(0, each - band[1], band[0] - each) for each in values) if band else 0


def _uneven_bytes(board: Board, bands: Bands) -> Iterator[tuple[int, int]]:
    """Yield pairs between which bytes should go: from whoever has too many to whoever has less, to whoever has too few from whoever has more."""
    low, high = bands.bytes or (0, 0)
    fullest, emptiest = _fullest_and_emptiest(board, board.bytes)
    only_added = set(board.takers) != set(board.givers)
    for source in fullest:
        for target in emptiest:
            has, gets = board.bytes[source], board.bytes[target]
            if has > gets and (gets < low or (has > high and not only_added)):
                yield source, target


def _may_move(board: Board, bands: Bands, source: int, target: int) -> bool:
    """Tell whether both brokers' replicas stay even if one goes from *source* to *target*."""
    if bands.replicas is None:
        return True
    low, high = bands.replicas
    return board.counts[source] - 1 >= low and board.counts[target] + 1 <= high


def _swap(board: Board, bands: Bands, source: int, target: int) -> bool:
    """Swap a big replica of *source* for a small one of *target*; neither's number of replicas changes."""
    if bands.replicas is None or target not in board.givers or source not in board.takers:
        return False
    apart = board.bytes[source] - board.bytes[target]
    for size, small in board.movable[target][:_SWAPS]:
        if not board.can_move(small, target, source):
            continue
        big = board.nearest(source, target, size + apart / 2, most=size + apart)
        if big is not None and _nears(board, bands, source, target, board.sizes[big] - size):
            board.move(big, source, target)
            board.move(small, target, source)
            return True
    return False
