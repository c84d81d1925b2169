"""When objects are looked at again though nothing happens to them: where time alone changes their verdicts.

One alarm serves all of a set: whoever asks sets it for the next look that is due.

Pure: times are arguments, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

import heapq
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.objects import ObjectRef

_SAME_S: Final = 2.0


class SecondLooks(Struct):
    """The looks that are due some time."""

    _due_s: dict[ObjectRef, float] = field(default_factory=dict)
    _order: list[tuple[float, ObjectRef]] = field(default_factory=list)

    def note(self, ref: ObjectRef, at_s: float | None) -> None:
        """Have an object looked at again at *at_s*, or not at all; what was noted of it before counts no more."""
        if at_s is None:
            self._due_s.pop(ref, None)
            return
        known_s = self._due_s.get(ref)
        if known_s is None or abs(known_s - at_s) > _SAME_S:  # ages are told in whole seconds
            self._due_s[ref] = at_s
            heapq.heappush(self._order, (at_s, ref))

    def next_s(self) -> float | None:
        """Return when the next look is due, None where none is."""
        while self._order and self._due_s.get(self._order[0][1]) != self._order[0][0]:
            heapq.heappop(self._order)
        return self._order[0][0] if self._order else None

    def take(self, now_s: float) -> list[ObjectRef]:
        """Return what is to be looked at now, the first due first, and forget it."""
        found: list[ObjectRef] = []
        while (at_s := self.next_s()) is not None and at_s <= now_s:
            _, ref = heapq.heappop(self._order)
            del self._due_s[ref]
            found.append(ref)
        return found

    def __len__(self) -> int:
        return len(self._due_s)
