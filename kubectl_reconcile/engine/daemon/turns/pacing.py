"""How long an item waits for its next turn because of what its last ones did: wrote each time, or held up everybody else.

- An item that writes in pass after pass gets a burst for free, after that a turn every few seconds, since somebody undoes what it does. Passes for which somebody waits, as
  for the steps by which another server takes over, have a longer burst of their own, and don't wait for what was written before.
- Modules are called in the event loop, which is everybody's. The items of a namespace whose calls take long (ten thousand pods are looked
  at, say) share a twentieth of its time: more of them get their turns later, and nobody else does.

Only what isn't asked for by a person or a push waits; the queue sees to that.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

PacedItem = TypeVar("PacedItem", bound=Hashable)

_BURST, _URGENT_BURST = 10, 60
_REFILL_S = 3.0
_UNNOTICED_S = 0.1
_SHARE = 0.05
_MOST_KNOWN = 1000


@dataclass(slots=True)
class _Allowance:
    """How many passes that write are free: so many at once, and one more every few seconds."""

    burst: int
    at_s: float
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.burst

    def spend(self, now_s: float) -> float:
        """Count one such pass; return how long the next must wait."""
        self.left = min(self.burst, self.left + (now_s - self.at_s) / _REFILL_S) - 1
        self.at_s = now_s
        return max(0.0, -self.left * _REFILL_S)

    def is_full(self, now_s: float) -> bool:
        """Tell whether nothing is left to remember."""
        return self.left + (now_s - self.at_s) / _REFILL_S >= self.burst


@dataclass(slots=True)
class TurnPacing(Generic[PacedItem]):
    """When each item may have its next turn; times are of the monotonic clock."""

    _allowances: dict[tuple[PacedItem, bool], _Allowance] = field(default_factory=dict)
    _until_s: dict[PacedItem, float] = field(default_factory=dict)
    _shares_until_s: dict[str, float] = field(default_factory=dict)

    def wrote(self, item: PacedItem, *, is_urgent: bool = False) -> None:
        """Note that a pass over *item* wrote something, and whether somebody waits for what follows."""
        now_s = self._now_s()
        fresh = _Allowance(_URGENT_BURST if is_urgent else _BURST, now_s)
        if wait_s := self._allowances.setdefault((item, is_urgent), fresh).spend(now_s):
            self._wait(item, now_s + wait_s)

    def held_up(self, item: PacedItem, namespace: str, seconds: float) -> None:
        """Note that a call for *item* took *seconds* of the event loop's time, at the cost of all others."""
        if seconds <= _UNNOTICED_S:
            return
        now_s = self._now_s()
        until_s = max(self._shares_until_s.get(namespace, 0.0), now_s) + seconds / _SHARE
        self._shares_until_s[namespace] = until_s
        self._wait(item, until_s)

    def until_s(self, item: PacedItem) -> float:
        """Return when *item* may have its next turn."""
        return self._until_s.get(item, 0.0)

    def pause_s(self, item: PacedItem) -> float:
        """Return how long *item* still waits, 0 if it needn't."""
        return max(self.until_s(item) - time.monotonic(), 0.0)

    def forget(self, item: PacedItem) -> None:
        """Drop *item*: it doesn't exist any more. What its namespace has used is still used."""
        for is_urgent in (False, True):
            self._allowances.pop((item, is_urgent), None)
        self._until_s.pop(item, None)

    def _wait(self, item: PacedItem, until_s: float) -> None:
        self._until_s[item] = max(until_s, self.until_s(item))

    def _now_s(self) -> float:
        """Return the time; where much is known by now, what is over is dropped: it says nothing any more."""
        now_s = time.monotonic()
        if len(self._allowances) + len(self._until_s) + len(self._shares_until_s) >= _MOST_KNOWN:
            self._allowances = {item: each for item, each in self._allowances.items() if not each.is_full(now_s)}
            self._until_s = {item: at_s for item, at_s in self._until_s.items() if at_s > now_s}
            self._shares_until_s = {name: at_s for name, at_s in self._shares_until_s.items() if at_s > now_s}
        return now_s
