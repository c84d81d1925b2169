"""What goes on beside a pass that waits until an earlier wave is healthy.

The pass holds no worker meanwhile: another one takes its place. Its source is asked when that is due, and the wait ends for
whatever supersedes the pass: another commit, another spec (a suspension is one), an approval, the end of the Sync.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.engine.daemon.context import Stop

LOOK_S: Final = 0.25
"""How often it is looked whether something supersedes a pass that waits."""


@dataclass(slots=True)
class WaveWait:
    """One pass that may come to wait; *lent* has another worker take its place for as long as it is open.

    *ask* has the source asked where that is due, *is_superseded* tells whether the pass is about what is asked for no more.
    """

    stop: Stop
    lent: Callable[[], AbstractContextManager[object]]
    ask: Callable[[], Awaitable[None]]
    is_superseded: Callable[[], bool]
    _objects: set[ObjectRef] = field(default_factory=set)
    _begun: asyncio.Event = field(default_factory=asyncio.Event)

    def heard(self, ref: ObjectRef, why: str) -> None:
        """Take in what an object lacks that is waited for, nothing once the wait for it is over."""
        if why:
            self._objects.add(ref)
            self._begun.set()
        else:
            self._objects.discard(ref)

    async def beside(self) -> None:
        """Do what is to be done beside the pass; cancel this when the pass is over."""
        await self._begun.wait()
        with self.lent():
            while True:
                await self.ask()
                if self._objects and self.is_superseded():
                    self.stop.is_superseded = True
                await asyncio.sleep(LOOK_S)
