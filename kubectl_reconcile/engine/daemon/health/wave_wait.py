"""What goes on beside a pass that waits until an earlier wave is healthy.

The pass holds no worker meanwhile: another one takes its place. Its source is asked when that is due, and the wait ends for
whatever supersedes the pass: another commit, another spec (a suspension is one), an approval, the end of the Sync. What it waits for is
told once that has lasted for a moment, and again when it is something else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.engine.daemon.context import Stop

LOOK_S: Final = 0.25
"""How often it is looked whether something supersedes a pass that waits."""
TELL_S: Final = 5.0
"""How often at most a wait is told: each time is a write of a status."""


class WaveWait(Struct):
    """One pass that may come to wait; *lent* has another worker take its place for as long as it is open.

    *ask* has the source asked where that is due, *is_superseded* tells whether the pass is about what is asked for no more.
    *tell* is given a sentence about what is waited for.
    """

    stop: Stop
    lent: Callable[[], AbstractContextManager[object]]
    ask: Callable[[], Awaitable[None]]
    is_superseded: Callable[[], bool]
    tell: Callable[[str], Awaitable[None]]
    _objects: dict[ObjectRef, str] = field(default_factory=dict)
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _said: str = ""
    _say_at_s: float = 0.0

    def heard(self, ref: ObjectRef, why: str) -> None:
        """Take in what an object lacks that is waited for, nothing once the wait for it is over."""
        if why:
            self._objects[ref] = why
            self._begun.set()
        else:
            self._objects.pop(ref, None)

    async def beside(self) -> None:
        """Do what is to be done beside the pass; cancel this when the pass is over."""
        await self._begun.wait()
        self._say_at_s = time.monotonic() + TELL_S  # most waits are shorter, and nobody's business
        with self.lent():
            while True:
                await self.ask()
                if self._objects and self.is_superseded():
                    self.stop.is_superseded = True
                await self._say()
                await asyncio.sleep(LOOK_S)

    async def _say(self) -> None:
        """Tell what is waited for if that is news. A telling that has begun ends although the pass is over: half of one would leave a status that nobody knows of."""
        sentence = waits_for(self._objects)
        if not sentence or sentence == self._said or time.monotonic() < self._say_at_s:
            return
        self._said, self._say_at_s = sentence, time.monotonic() + TELL_S
        await asyncio.shield(asyncio.ensure_future(self.tell(sentence)))


def waits_for(objects: Mapping[ObjectRef, str]) -> str:
    """Return a sentence about the first of these objects, each with what it lacks, and how many more there are."""
    if not objects:
        return ""
    first, *others = sorted(objects)
    more = f" (and for {len(others)} more)" if others else ""
    return f"waits for {first}: {objects[first]}{more}"
