"""Turns between tenants: who has had one last is served last, whatever they want and however much of it.

Vocabulary: a *tenant* is whoever shares what there is little of, by name: a namespace, mostly. What waits has an *urgency*: so many
others it may pass that came before it. A turn is one thing that is taken.

Rules:

- A tenant's place in line is that of the most urgent thing of theirs, but never before their last turn. So of those who wait each is served
  once before anybody is served twice, and urgency decides between things of one tenant, and between tenants who weren't served lately.
- Among the things of one tenant the most urgent goes first; among equals, the one that came first. What is passed by more than its
  urgency allows isn't passed any more.
- Who may not be served now keeps their place.

Pure: no clock; turns are counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")

_MOST_KNOWN: Final = 1000
"""So many tenants' last turns are remembered before those are dropped that nobody can be said to have had lately."""
_LATELY: Final = 100_000
"""So many turns ago is no longer lately: more than any urgency."""


class Waiting(Struct, Generic[T], eq=False):
    """Something that waits for its turn. *is_wanted* is unset by whoever doesn't want it any more."""

    what: T
    tenant: str
    rank: int
    arrival: int
    is_wanted: bool = True

    def __lt__(self, other: Waiting[T]) -> bool:
        return (self.rank, self.arrival) < (other.rank, other.arrival)


class Turns(Struct, Generic[T], eq=False):
    """Things that wait, by tenant, and when each tenant was served last."""

    _lines: dict[str, list[Waiting[T]]] = field(default_factory=dict)
    _served: dict[str, int] = field(default_factory=dict)
    _turn: int = 0

    def add(self, what: T, tenant: str, urgency: int = 0) -> Waiting[T]:
        """Have *what* wait for a turn of its *tenant*, and return its place in line."""
        self._turn += 1
        waiting = Waiting(what, tenant, self._turn - urgency, self._turn)
        heapq.heappush(self._lines.setdefault(tenant, []), waiting)
        return waiting

    def next(self, may: Callable[[str], bool] = lambda _: True) -> T | None:
        """Take what has the next turn, of tenants that *may* have one; None where nothing has."""
        best, at = "", None
        for tenant in list(self._lines):
            first = self._first(tenant)
            if first is None:
                continue
            place = max(self._served.get(tenant, first.rank), first.rank), first.arrival
            if (at is None or place < at) and may(tenant):
                best, at = tenant, place
        if at is None:
            return None
        self._turn += 1
        self._note_served(best)
        found = heapq.heappop(self._lines[best])
        self._first(best)
        return found.what

    def withdraw(self, waiting: Waiting[T]) -> None:
        """Drop something that isn't wanted any more."""
        waiting.is_wanted = False
        self._first(waiting.tenant)

    def waits(self, tenant: str) -> bool:
        """Tell whether something of *tenant* waits."""
        return self._first(tenant) is not None

    def __bool__(self) -> bool:
        return any(self._first(tenant) is not None for tenant in list(self._lines))

    def _first(self, tenant: str) -> Waiting[T] | None:
        """Return the first in a tenant's line that is still wanted; those before it, and an empty line, are dropped."""
        line = self._lines.get(tenant)
        while line and not line[0].is_wanted:
            heapq.heappop(line)
        if not line:
            self._lines.pop(tenant, None)
            return None
        return line[0]

    def _note_served(self, tenant: str) -> None:
        self._served[tenant] = self._turn
        if len(self._served) > _MOST_KNOWN:
            self._served = {each: turn for each, turn in self._served.items() if self._turn - turn < _LATELY}
