"""Ending work with Git that nobody waits for any more: a Sync was deleted or changed, or its lane is needed by others.

Git is waited for in threads, which can't be ended; the processes that they wait for can. So whoever has work done in a thread
makes an *ending* for it (``ENDING``, before the thread begins); ``end`` kills the processes that run for it, and none is started after that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.source.errors import SourceError, SourceFault

_LOOK_S: Final = 0.1
"""How often somebody who waits for a turn looks whether anybody waits for them."""


class Ending(Struct, eq=False):
    """What ends the work of one thread; may be used from any other."""

    _over: threading.Event = field(default_factory=threading.Event)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _kills: set[Callable[[], None]] = field(default_factory=set)

    def end(self) -> None:
        """Kill what runs, for good: all that begins from now on ends at once."""
        with self._guard:
            self._over.set()
            for kill in self._kills:
                kill()

    def is_over(self) -> bool:
        """Tell whether nobody waits any more."""
        return self._over.is_set()

    def check(self) -> None:
        """Return if somebody still waits.

        Raises:
            SourceError: nobody does (``ENDED``).
        """
        if self.is_over():
            raise SourceError(SourceFault.ENDED, "it isn't needed any more")

    @contextmanager
    def around(self, kill: Callable[[], None]) -> Iterator[None]:
        """Have *kill* called should the work be ended within the block, or have been ended before it."""
        with self._guard:
            self._kills.add(kill)
            if self.is_over():
                kill()
        try:
            yield
        finally:
            with self._guard:
                self._kills.discard(kill)


@contextmanager
def taking(turn: threading.Lock) -> Iterator[None]:
    """Hold *turn* for the block; whoever is ended while they wait for it waits no longer.

    Raises:
        SourceError: nobody waits any more (``ENDED``).
    """
    waited = ending()
    while not turn.acquire(timeout=_LOOK_S):
        waited.check()
    try:
        waited.check()
        yield
    finally:
        turn.release()


ENDING: ContextVar[Ending | None] = ContextVar("ending", default=None)
"""What may end the work at hand; None where nobody does but its deadline."""


def ending() -> Ending:
    """Return what may end the work at hand."""
    return ENDING.get() or Ending()
