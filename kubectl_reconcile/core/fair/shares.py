"""Places that tenants share, so that one whose work takes long holds up nobody else.

Vocabulary: who has a *place* has it until they give it back. Who has one for longer than a moment (whoever counts the places says when)
*outstays*: they need no place among the others any more, and count among their tenant's *late* ones instead.

Rules:

- No tenant has more than its part of the places at a time, so that others find some at once.
- Who outstays gives the place to others, and goes on. A tenant with as many late ones as it may have gets no other place until one is back:
  what is slow there is slow for itself.
- Of all tenants together so many are late and no more; who outstays beyond that keeps the place, and is asked about again a moment later.
- The tenant without a name shares with nobody: it has all places, and is never late.

Pure: no clock.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from msgspec import Struct, field


class Limits(Struct, frozen=True):
    """How many late ones a tenant may have, and how many all together."""

    late: int
    late_in_all: int

    def part_of(self, places: int) -> int:
        """Return how many of so many places one tenant may have: three quarters, if there is more than one."""
        return max(places * 3 // 4, 1)


NEVER_LATE: Final = Limits(late=0, late_in_all=0)
"""Nobody gives a place to others before they are done."""


class Shares(Struct, eq=False):
    """Who has how many places, by tenant."""

    limits: Limits
    _held: Counter[str] = field(default_factory=Counter)
    _late: Counter[str] = field(default_factory=Counter)

    @property
    def held(self) -> int:
        """How many places are taken, late ones left out."""
        return self._held.total()

    def has(self, tenant: str) -> bool:
        """Tell whether a tenant has a place, or is late with one."""
        return bool(self._held[tenant] or self._late[tenant])

    def late(self, tenant: str) -> int:
        """Return how many late ones a tenant has."""
        return self._late[tenant]

    def has_place(self, tenant: str, places: int) -> bool:
        """Tell whether a *tenant* may take one of so many *places*."""
        if self.held >= places:
            return False
        return not tenant or (
            self._held[tenant] < self.limits.part_of(places) and self._late[tenant] < max(self.limits.late, 1)
        )

    def take(self, tenant: str) -> None:
        """Note that a place is taken."""
        self._held[tenant] += 1

    def outstay(self, tenant: str) -> bool:
        """Note that who has a place has outstayed; tell whether the place is free for others hereby."""
        if not tenant or self._late.total() >= self.limits.late_in_all:
            return False
        _less(self._held, tenant)
        self._late[tenant] += 1
        return True

    def give_back(self, tenant: str, *, was_late: bool) -> None:
        """Note that somebody who had a place is done; *was_late* is what ``outstay`` said of them."""
        _less(self._late if was_late else self._held, tenant)


def _less(count: Counter[str], tenant: str) -> None:
    count[tenant] -= 1
    if not count[tenant]:
        del count[tenant]
