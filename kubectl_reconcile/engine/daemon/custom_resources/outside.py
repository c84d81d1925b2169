"""Passes that wait for what is outside the cluster: databases that don't answer, webhooks that take their time.

Such a pass may last for minutes, and whoever owns the custom resource decides for how long. So it holds no worker: after a
moment another one takes its place. And there are so many such passes of a namespace and no more: what they remember is bounded,
and nobody keeps the others of a cluster waiting.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

from msgspec import Struct, field

MOST_OF_A_NAMESPACE: Final = 24
_MOST: Final = 240
_MOMENT_S: Final = 1.0


class OutsidePasses(Struct):
    """Counts them by namespace; *lent* has another worker take the place of a pass for as long as it is open."""

    lent: Callable[[], AbstractContextManager[object]]
    _going_on: Counter[str] = field(default_factory=Counter)

    def has_room(self, namespace: str) -> bool:
        """Tell whether one more pass of *namespace* may begin."""
        return self._going_on[namespace] < MOST_OF_A_NAMESPACE and self._going_on.total() < _MOST

    @contextmanager
    def begun(self, namespace: str) -> Iterator[None]:
        """Count a pass of *namespace* while this is open, and lend its worker once it has lasted for a moment."""
        self._going_on[namespace] += 1
        with ExitStack() as stack:
            timer = asyncio.get_running_loop().call_later(_MOMENT_S, lambda: stack.enter_context(self.lent()))
            try:
                yield
            finally:
                timer.cancel()
                self._going_on[namespace] -= 1
                self._going_on += Counter()  # forgets those that have none
