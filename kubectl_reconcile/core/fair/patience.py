"""How long somebody whose work took longer than it may waits before the next of it, so that it takes no more than a part of all time.

Pure: time is an argument, in seconds of a clock that only goes forward.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.retry import LATE_RENDERING

_MOST_KNOWN: Final = 1000


class Impatience(Struct):
    """Whose work took too long, how often in a row, and until when they wait. Who has no name waits for nobody's sake."""

    _late: dict[str, tuple[int, float]] = field(default_factory=dict)

    def was_late(self, tenant: str, took_s: float, now_s: float) -> None:
        """Note that work of a tenant took *took_s*, which was too long: the pause is as long at first, and doubles with each in a row."""
        if not tenant:
            return
        times = self._late.get(tenant, (0, 0.0))[0] + 1
        self._late[tenant] = times, now_s + replace(LATE_RENDERING, first_s=took_s).pause_s(times)
        if len(self._late) > _MOST_KNOWN:
            self._late = {each: known for each, known in self._late.items() if known[1] > now_s}

    def was_in_time(self, tenant: str) -> None:
        """Note that work of a tenant took no longer than it may."""
        self._late.pop(tenant, None)

    def pause_s(self, tenant: str, now_s: float) -> float:
        """Return how long a tenant still waits, 0 if they needn't."""
        return max(self._late.get(tenant, (0, 0.0))[1] - now_s, 0.0)
