"""Who may take how much memory: what runs for one repository or one rendering is *light* at first, and *heavy* if that isn't enough.

All of it shares one budget: what a process may take is set aside before it begins, and is free once it has ended. Light ones are few at a
time and take little. A heavy one takes as much as may be, one at a time of this process, whoever asks, in turns of tenants. So what
tenants' repositories, overlays and charts take together is known beforehand, however many there are, and whatever they unpack to.

Places and memory are taken before the lock of a clone, so whoever waits for them holds up nobody who has a clone to read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from kubectl_reconcile.core.fair.room import Room
from kubectl_reconcile.core.fair.shares import Limits
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.running.ending import ending
from kubectl_reconcile.source.running.places import TenantPlaces

LIGHT_GIT_BYTES: Final = 48 * MEBIBYTE
"""What a git may take that fetches, unless it turns out to need more."""
LIGHT_RENDERING_BYTES: Final = 160 * MEBIBYTE
"""What a rendering may take, unless it turns out to need more. A hundred objects take 80 MiB."""
HEAVY_RENDERING_BYTES: Final = 640 * MEBIBYTE
"""What a rendering may take at most. 7 MiB of CRDs have 350 MiB in use, and 550 of addresses."""
BESIDE_BYTES: Final = 256 * MEBIBYTE
"""What is left for light ones while a git takes as much as it may: a rendering and two fetches."""
LEAST_BYTES: Final = HEAVY_RENDERING_BYTES + 2 * LIGHT_GIT_BYTES
FETCHES: Final = TenantPlaces(4, Limits(late=1, late_in_all=2), 5.0)
"""Places for what fetches from a server."""
HEAVY: Final = TenantPlaces(1)
"""The place for what needs more."""

_LOOK_S: Final = 0.1
"""How often somebody who waits looks whether anybody waits for them."""


def all_bytes(limits: GitLimits) -> int:
    """Return how much memory there is for all together."""
    return max(limits.memory_bytes + BESIDE_BYTES, LEAST_BYTES)


class Held(Struct, eq=False):
    """So many bytes that somebody has set aside, until they are given back."""

    size: int
    is_over: bool = False


class Memory:
    """Memory of the processes beside this one; *most* is how much was set aside at most. What is *spare* goes when somebody needs it."""

    def __init__(self) -> None:
        self._room = Room()
        self._changed = threading.Condition()
        self._spare: dict[Held, Callable[[], None]] = {}
        self.most = 0

    @property
    def held(self) -> int:
        """How much is set aside."""
        return self._room.held

    @contextmanager
    def held_for(self, size: int, total: int) -> Iterator[None]:
        """Have *size* bytes of *total* set aside for the block.

        Raises:
            SourceError: it isn't needed any more.
        """
        held = self.take(size, total)
        try:
            yield
        finally:
            self.give_back(held)

    def take(self, size: int, total: int) -> Held:
        """Wait until *size* bytes of *total* can be set aside, and return them.

        Raises:
            SourceError: it isn't needed any more.
        """
        waited = ending()
        with self._changed:
            wish = self._room.add(size, total, time.monotonic())
            try:
                self._hand_on()
                while not wish.is_granted:
                    waited.check()
                    self._let_go_of_spare()
                    self._changed.wait(_LOOK_S)
                    self._hand_on()
            except BaseException:
                self._room.withdraw(wish)
                self._hand_on()
                raise
        return Held(size)

    def give_back(self, held: Held) -> None:
        """Note that what was set aside is free."""
        with self._changed:
            self._spare.pop(held, None)
            if not held.is_over:
                held.is_over = True
                self._room.give_back(held.size)
                self._hand_on()

    def spare(self, held: Held, let_go: Callable[[], None]) -> None:
        """Note that what was set aside is only kept for later: *let_go* ends what has it, and gives it back, once somebody else needs it."""
        with self._changed:
            self._spare[held] = let_go
            self._changed.notify_all()

    def claim(self, held: Held) -> bool:
        """Tell whether what was spare is still there; it isn't spare any more."""
        with self._changed:
            return self._spare.pop(held, None) is not None

    def _hand_on(self) -> None:
        while self._room.grant(time.monotonic()):
            self.most = max(self.most, self._room.held)
            self._changed.notify_all()

    def _let_go_of_spare(self) -> None:
        while self._spare:
            _, let_go = self._spare.popitem()
            let_go()


MEMORY: Final = Memory()
"""That of this process."""
