"""Up to which commit Syncs have been looked at of whom nothing else is to be told: noted on one after the other, at a bounded pace.

A push that concerns one of a thousand Syncs is no reason to write a thousand statuses. What is written for another reason takes
the commit along; the others have it noted in their turn, who waits longest first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from kubectl_reconcile.core.objects import ObjectRef

_EVERY_S = 5.0
"""After how long the first has it noted, and each one after it."""


class ObservedCommits(Struct):
    """The Syncs whose status may be behind. *write* brings one up to date, and tells whether there was something to write."""

    write: Callable[[ObjectRef], Awaitable[bool]]
    _behind: dict[ObjectRef, None] = field(default_factory=dict)
    _is_some: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, sync: ObjectRef) -> None:
        """Have a Sync looked at in its turn."""
        self._behind.setdefault(sync)
        self._is_some.set()

    def forget(self, sync: ObjectRef) -> None:
        """Drop a Sync that is gone, or another's."""
        self._behind.pop(sync, None)

    async def run(self) -> None:
        """Go through them, without an end."""
        while True:
            await self._is_some.wait()
            await asyncio.sleep(_EVERY_S)
            has_written = False
            while self._behind and not has_written:
                sync = next(iter(self._behind))
                del self._behind[sync]
                has_written = await self.write(sync)
            if not self._behind:
                self._is_some.clear()
