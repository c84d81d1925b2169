"""The workers of a daemon: so many take turns at a time, and one more for each that has none to do but to wait.

A turn that is *late* lasts for longer than a moment, as where somebody's webhook holds up what it writes; one that is *away* waits for
health, or for what is outside the cluster. Neither is in anybody's way: another worker takes turns meanwhile. How many may be late,
of one tenant and in all, is the queue's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.engine.daemon.turns.queue import TURNS_AT_ONCE, Turn, WorkQueue

MOMENT_S: Final = 2.0
"""After how long a turn is late."""


class _TurnUnderWay(Struct, eq=False):
    """A turn that somebody has, how many of what it does have it be *away*, and whether another worker stands in for it."""

    item: ObjectRef
    away: int = 0
    is_stood_in_for: bool = False
    is_over: bool = False
    alarm: asyncio.TimerHandle | None = None


_AT_HAND: ContextVar[_TurnUnderWay | None] = ContextVar("turn", default=None)


class Workers(Struct, eq=False):
    """The workers that take turns of *queue* and *work* on them, until they are ended; *ended* is informed of each that is.

    While the daemon is *stopping* nobody stands in for anybody.
    """

    queue: WorkQueue[ObjectRef]
    work: Callable[[Turn[ObjectRef]], Awaitable[None]]
    stopping: asyncio.Event
    ended: Callable[[asyncio.Task[None]], None]
    _spares: set[asyncio.Task[None]] = field(default_factory=set)
    _stood_in_for: int = 0

    def begin(self) -> list[asyncio.Task[None]]:
        """Begin to take turns, and return those who do for good."""
        return [asyncio.create_task(self._always(), name=f"worker-{number}") for number in range(TURNS_AT_ONCE)]

    @property
    def spares(self) -> tuple[asyncio.Task[None], ...]:
        """Return those who stand in for others."""
        return tuple(self._spares)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Have another worker stand in for the turn at hand for as long as it is away; that one ends with the turn that it is at then."""
        turn = _AT_HAND.get()
        if turn is None or turn.is_over:
            yield
            return
        turn.away += 1
        if turn.away == 1:
            self._watch(turn, None)
            self.queue.under_way.away(turn.item)
            self._stand_in(turn)
        try:
            yield
        finally:
            turn.away -= 1
            if not turn.away and not turn.is_over:
                self.queue.under_way.begin(turn.item)
                self._stand_back(turn)
                self._watch(turn, MOMENT_S)

    async def _always(self) -> None:
        while True:
            await self._next()

    async def _spare(self) -> None:
        while len(self._spares) <= self._stood_in_for:
            await self._next()

    async def _next(self) -> None:
        """Wait for the next turn, and have it."""
        turn = await self.queue.get()
        under_way = _TurnUnderWay(turn.item)
        before = _AT_HAND.set(under_way)
        self._watch(under_way, MOMENT_S)
        try:
            await self.work(turn)
        finally:
            under_way.is_over = True
            self._watch(under_way, None)
            self._stand_back(under_way)
            _AT_HAND.reset(before)
            self.queue.done(turn.item)

    def _watch(self, turn: _TurnUnderWay, after_s: float | None) -> None:
        """Have a turn be late after so long from now, or not at all."""
        if turn.alarm is not None:
            turn.alarm.cancel()
            turn.alarm = None
        if after_s is not None:
            turn.alarm = asyncio.get_running_loop().call_later(after_s, self._outstay, turn, context=Context())

    def _outstay(self, turn: _TurnUnderWay) -> None:
        if self.queue.under_way.outstay(turn.item):
            self._stand_in(turn)
        else:
            self._watch(turn, MOMENT_S)  # too many are late for now

    def _stand_in(self, turn: _TurnUnderWay) -> None:
        """Have another worker take turns while one doesn't come to its end."""
        self.queue.look()
        if turn.is_stood_in_for:
            return
        turn.is_stood_in_for = True
        self._stood_in_for += 1
        if len(self._spares) < self._stood_in_for and not self.stopping.is_set():
            spare = asyncio.create_task(self._spare(), name="spare", context=Context())
            self._spares.add(spare)
            spare.add_done_callback(self._spares.discard)
            spare.add_done_callback(self.ended)

    def _stand_back(self, turn: _TurnUnderWay) -> None:
        self._stood_in_for -= turn.is_stood_in_for
        turn.is_stood_in_for = False
