"""Fences: no write of a pass outlives the time in which the pass is ours.

A fence stands around one pass. It is asked before each write; while one is under way, it ends that when our Lease does, unless
the Lease is renewed in time. Once shut it stays shut, even if the item is ours again later: what the pass knew is old by then, and
another pass looks again.

What it can't do: take back bytes that are on their way. So each write also says which version it judged (``engine/apply``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from msgspec import Struct, field

from kubectl_reconcile.cluster.connection import FENCE
from kubectl_reconcile.cluster.errors import Fenced

_LET_GO_S = 8.0
"""How long a write may still take once its item is another's: shorter than anybody waits for our word on that."""


class PassFence(Struct, eq=False):
    """The fence around one pass. *is_ours* and *ours_until_s* (monotonic) are asked again and again."""

    is_ours: Callable[[], bool]
    ours_until_s: Callable[[], float]
    ended: asyncio.Event
    _shut: bool = False
    _writes: set[asyncio.Timeout] = field(default_factory=set)

    @property
    def is_writing(self) -> bool:
        """Whether a write is under way."""
        return bool(self._writes)

    def is_shut(self) -> bool:
        """Tell whether nothing may be written any more; if so, that stays."""
        if not self._shut and not self.is_ours():
            self._shut = True
        return self._shut

    @asynccontextmanager
    async def around(self, what: str) -> AsyncIterator[None]:
        """Surround one write.

        Raises:
            Fenced: it may not be made, or took longer than it may.
        """
        if self.is_shut():
            raise Fenced(f"{what} isn't sent: {self._why()}")
        try:
            async with asyncio.timeout_at(self.ours_until_s()) as limit:
                self._writes.add(limit)
                try:
                    yield
                finally:
                    self._writes.discard(limit)
                    self.ended.set()
        except TimeoutError:
            if not limit.expired():
                raise
            self._shut = True
            raise Fenced(f"{what} wasn't answered in time: {self._why()}") from None

    def _why(self) -> str:
        """Return what has ended our time: an outage of the API server isn't another replica's doing."""
        if asyncio.get_running_loop().time() >= self.ours_until_s():
            return "the API server hasn't renewed this replica's Lease, so another replica may work on it by now"
        return "another replica works on it by now"

    def look(self) -> None:
        """Have writes under way end when they must, now that the share or the Lease has changed."""
        until_s = self.ours_until_s()
        if self.is_shut():
            until_s = min(until_s, asyncio.get_running_loop().time() + _LET_GO_S)
        for limit in self._writes:
            when_s = limit.when()
            if not limit.expired() and when_s is not None:
                limit.reschedule(min(until_s, when_s) if self._shut else until_s)


class Fences(Struct):
    """The fences around all passes under way."""

    ours_until_s: Callable[[], float]
    _passes: set[PassFence] = field(default_factory=set)
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def around(self, is_ours: Callable[[], bool]) -> Iterator[PassFence]:
        """Stand around a pass, and whatever it calls."""
        fence = PassFence(is_ours, self.ours_until_s, self._ended)
        self._passes.add(fence)
        token = FENCE.set(fence)
        try:
            yield fence
        finally:
            FENCE.reset(token)
            self._passes.discard(fence)
            self._ended.set()

    def look(self) -> None:
        """Shut the fences around what isn't ours any more; call it whenever that may have changed."""
        for fence in self._passes:
            fence.look()

    async def others_let_go(self) -> None:
        """Wait until nothing is being written that isn't ours."""
        while any(fence.is_writing and fence.is_shut() for fence in self._passes):
            self._ended.clear()
            await self._ended.wait()
