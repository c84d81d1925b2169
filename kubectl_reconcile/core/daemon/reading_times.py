"""When a custom resource is looked at whose module reads all of its namespace, where something changes all the time: soon, and then some seconds apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S
from kubectl_reconcile.core.objects import ObjectRef

READ_AGAIN_S: Final = 3.0
"""How many seconds apart."""


@dataclass(slots=True)
class ReadingTimes:
    """The times of all of them; of the monotonic clock."""

    _due_s: dict[ObjectRef, float] = field(default_factory=dict)

    def after_change(self, cr: ObjectRef, now_s: float) -> float:
        """Return when to look because something has changed *now_s*.

        It is never before that: that a look was wanted for a time to come doesn't tell that there will be one, since the queue has one look answer for
        all that was asked until then.
        """
        last_s = self._due_s.get(cr, 0.0)
        if last_s <= now_s:
            self._due_s[cr] = max(now_s + DEBOUNCE_S, last_s + READ_AGAIN_S)
        return self._due_s[cr]

    def forget(self, cr: ObjectRef) -> None:
        """Drop a custom resource that is gone."""
        self._due_s.pop(cr, None)
