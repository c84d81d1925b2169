"""How many bytes of files that are being read are in memory at a time, whoever reads them.

First come, first served: a large file waits until there is room for it, and those behind it wait for it. One that is larger than all
there is goes alone.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from kubectl_reconcile.source.running.ending import ending

_LOOK_S = 0.1
"""How often somebody who waits looks whether it is still wanted, in seconds."""


class ByteBudget:
    """Room for so many bytes, shared by threads. *held* is how many there are, *most* how many there ever were."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self.held = 0
        self.most = 0

    @contextmanager
    def room(self, size: int, total: int) -> Iterator[None]:
        """Wait until *size* bytes fit into *total* with what is held, and hold them for the time of the block.

        Raises:
            SourceError: it isn't needed any more.
        """
        self._enter(size, total)
        try:
            yield
        finally:
            with self._changed:
                self.held -= size
                self._changed.notify_all()

    def _enter(self, size: int, total: int) -> None:
        me, waited = object(), ending()
        with self._changed:
            self._queue.append(me)
            try:
                while self._queue[0] is not me or (self.held and self.held + size > total):
                    waited.check()
                    self._changed.wait(_LOOK_S)
                self.held += size
                self.most = max(self.most, self.held)
            finally:
                self._queue.remove(me)
                self._changed.notify_all()


PARSING = ByteBudget()
"""That of this process."""
