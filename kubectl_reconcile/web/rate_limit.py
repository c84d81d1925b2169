"""How often something may be done. Pure: the time is passed in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RateLimit:
    """So many at once, and so many a second from then on."""

    burst: float = 300.0
    per_s: float = 60.0
    _left: float | None = None
    _seen_s: float = 0.0

    def admits(self, now_s: float) -> bool:
        """Tell whether one more may be done now, and count it."""
        left = self.burst if self._left is None else self._left
        self._left = min(self.burst, left + (now_s - self._seen_s) * self.per_s)
        self._seen_s = now_s
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def is_spent(self, now_s: float) -> bool:
        """Tell whether one more may not be done now, without counting it."""
        left = self.burst if self._left is None else self._left
        return min(self.burst, left + (now_s - self._seen_s) * self.per_s) < 1
