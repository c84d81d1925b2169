"""Leaders made even on a board: which replica is the first in order, so the one that is preferred to lead. It moves no data.

Leaders are even once each broker is preferred by the mean number of partitions, rounded down or up, or no change of order helps any more.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Collection

from kubectl_reconcile_operators.kafka.partitions.board import Board, way


def even_leaders(board: Board, brokers: Collection[int], changeable: Collection[int]) -> None:
    """Change the order of replicas of the partitions *changeable* until *brokers* are preferred about equally often."""
    leading = _Leading(board, brokers, changeable)
    while any(leading.hand_on(each) for each in leading.by_load()):
        pass


class _Leading:
    """Who is preferred how often, and which partitions each could hand to whom."""

    def __init__(self, board: Board, brokers: Collection[int], changeable: Collection[int]) -> None:
        self._board = board
        self._counts = dict.fromkeys(sorted(brokers), 0)
        self._hands: dict[tuple[int, int], set[int]] = defaultdict(set)
        for replicas in board.replicas:
            if replicas and replicas[0] in self._counts:
                self._counts[replicas[0]] += 1
        for index in sorted(changeable):
            self._note(index)

    def _note(self, index: int) -> None:
        first, *others = self._board.replicas[index]
        for other in others:
            self._hands[first, other].add(index)

    def by_load(self) -> list[int]:
        """Return the brokers, the most preferred first."""
        return sorted(self._counts, key=lambda each: (-self._counts[each], each))

    def hand_on(self, source: int) -> bool:
        """Let *source* be preferred once less, and one that is preferred less often once more, by way of others if need be."""
        path = self._path(source)
        for here, there in itertools.pairwise(path):
            self._hand(here, there)
        return bool(path)

    def _hand(self, here: int, there: int) -> None:
        index = min(self._hands[here, there])
        replicas = self._board.replicas[index]
        for other in replicas[1:]:
            self._hands[here, other].discard(index)
        place = replicas.index(there)
        replicas[0], replicas[place] = there, here
        self._note(index)
        self._counts[here] -= 1
        self._counts[there] += 1

    def _path(self, source: int) -> list[int]:
        came = {source: source}
        ahead = deque([source])
        while ahead:
            here = ahead.popleft()
            if self._counts[here] <= self._counts[source] - 2:
                return way(came, here)
            for there in self._counts:
                if there not in came and self._hands.get((here, there)):
                    came[there] = here
                    ahead.append(there)
        return []
