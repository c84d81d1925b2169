"""What is to be looked at next: one entry per item, however often it was asked for.

Rules, after Kubernetes' own work queues:

- An item that is being worked on and asked for again runs once more afterwards, never twice at once.
- Tenants are served in turns, whatever they ask for (``core.fair.turns``); of one tenant's items those of higher priority go first, among
  equals the one that came first.
- No tenant has all turns at a time, nor more than a few that last (``core.fair.shares``); an item that is *away*, since it waits for what is
  counted elsewhere, has none meanwhile.
- A failed item waits longer each time, with jitter, up to a cap; success forgets the failures.
- A delayed request never postpones one that is already due.
- What the cluster does (drift, a child, a time that has come) is waited for a moment, since it comes in bursts; what
  a person or Git asks for isn't.
- An item that writes in pass after pass, or that holds up all others, is paced. Only a person or a push goes past that.
- What has its time only after a while comes with others at the next half second: a thousand such items a minute wake nobody a thousand times.
- Of all who wait for a turn one is woken for an item, when that is due: while nothing is, nobody is.

All waiting of passes is decided here; whoever works on an item only says how it went.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import random
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S, Priority
from kubectl_reconcile.core.fair.shares import Limits, Shares
from kubectl_reconcile.core.fair.turns import Turns, Waiting
from kubectl_reconcile.core.retry import PASS, Backoff
from kubectl_reconcile.engine.daemon.turns.pacing import TurnPacing

Item = TypeVar("Item", bound=Hashable)

TURNS_AT_ONCE: Final = 24
"""How many items are worked on at a time, late ones and those that are away left out."""
LATE: Final = Limits(late=8, late_in_all=96)
"""How many turns of one tenant may be late, and how many altogether."""
_FAR_S = 10.0
_TOGETHER_S = 0.5


class Turn(NamedTuple, Generic[Item]):
    """An item whose turn it is, why, and how long it has been due."""

    item: Item
    priority: Priority
    waited_s: float


class _Entry(Struct, Generic[Item], eq=False):
    item: Item
    priority: Priority
    due_s: float
    place: Waiting[_Entry[Item]] | None = None


class _Standing(Enum):
    """How a turn that is under way counts."""

    HELD = "held"
    """Among the others."""
    LATE = "late"
    """Among its tenant's late ones."""
    AWAY = "away"
    """Not here."""


class TurnsUnderWay(Struct, Generic[Item]):
    """The items that are worked on, and how each counts. *tenant_of* says whose an item is; who has no name shares with nobody."""

    tenant_of: Callable[[Item], str] = lambda _: ""
    _standing: dict[Item, _Standing] = field(default_factory=dict)
    _shares: Shares = field(default_factory=lambda: Shares(LATE))

    def __contains__(self, item: object) -> bool:
        """Tell whether an item is worked on."""
        return item in self._standing

    def __iter__(self) -> Iterator[Item]:
        """Yield the items that are worked on."""
        return iter(self._standing)

    def __len__(self) -> int:
        """Return how many items are worked on."""
        return len(self._standing)

    def may_begin(self, tenant: str) -> bool:
        """Tell whether another item of *tenant* may be worked on."""
        return self._shares.has_place(tenant, TURNS_AT_ONCE)

    def begin(self, item: Item) -> None:
        """Note that the work on *item* has begun; or that an item that was away is here again, whoever else is by now."""
        self._standing[item] = _Standing.HELD
        self._shares.take(self.tenant_of(item))

    def end(self, item: Item) -> None:
        """Note that the work on *item* is over."""
        self._give_back(item)
        self._standing.pop(item, None)

    def outstay(self, item: Item) -> bool:
        """Note that the work on *item* takes long; tell whether somebody else may work meanwhile."""
        if self._standing.get(item) is not _Standing.HELD or not self._shares.outstay(self.tenant_of(item)):
            return False
        self._standing[item] = _Standing.LATE
        return True

    def away(self, item: Item) -> None:
        """Note that the work on *item* waits for what is counted elsewhere."""
        self._give_back(item)
        self._standing[item] = _Standing.AWAY

    def _give_back(self, item: Item) -> None:
        standing = self._standing.get(item, _Standing.AWAY)
        if standing is not _Standing.AWAY:
            self._shares.give_back(self.tenant_of(item), was_late=standing is _Standing.LATE)


class WorkQueue(Struct, Generic[Item]):
    """Items waiting to be worked on, and those *under_way*; used from one event loop."""

    under_way: TurnsUnderWay[Item] = field(default_factory=TurnsUnderWay)
    _waiting: dict[Item, _Entry[Item]] = field(default_factory=dict)
    _later: list[tuple[float, int, _Entry[Item]]] = field(default_factory=list)
    _ready: Turns[_Entry[Item]] = field(default_factory=Turns)
    _failures: dict[Item, int] = field(default_factory=dict)
    pacing: TurnPacing[Item] = field(default_factory=TurnPacing)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _idle: deque[asyncio.Future[None]] = field(default_factory=deque)
    _alarm: asyncio.TimerHandle | None = None
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, item: Item, priority: Priority, *, after_s: float = 0.0) -> None:
        """Ask for *item* to be worked on, at the earliest *after_s* from now."""
        due_s = time.monotonic() + after_s
        if priority > Priority.PUSH:
            due_s = max(due_s, self.pacing.until_s(item))
        if priority >= Priority.POLL and after_s >= _FAR_S:
            due_s = math.ceil(due_s / _TOGETHER_S) * _TOGETHER_S
        waiting = self._waiting.get(item)
        if waiting is not None and waiting.due_s <= due_s and waiting.priority <= priority:
            return
        if waiting is not None:
            due_s, priority = min(due_s, waiting.due_s), min(priority, waiting.priority)
            self._leave_line(waiting)
        entry = _Entry(item, priority, due_s)
        self._waiting[item] = entry
        heapq.heappush(self._later, (due_s, next(self._order), entry))
        self._wake_at(due_s)

    def changed(self, item: Item) -> None:
        """Ask for *item* because something changed in the cluster; what else changes in this moment is waited for."""
        self.add(item, Priority.DRIFT, after_s=DEBOUNCE_S)

    def failed(self, item: Item, priority: Priority = Priority.RESYNC, *, backoff: Backoff = PASS) -> float:
        """Ask for *item* again after a delay that grows with each failure; return the delay in seconds."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        delay_s = backoff.pause_s(failures, random.random())  # noqa: S311 - no secret
        self.add(item, priority, after_s=delay_s)
        return delay_s

    def succeeded(self, item: Item) -> None:
        """Forget the failures of *item*."""
        self._failures.pop(item, None)

    def forget(self, item: Item) -> None:
        """Drop *item*: it doesn't exist any more."""
        if (waiting := self._waiting.pop(item, None)) is not None:
            self._leave_line(waiting)
        self._failures.pop(item, None)
        self.pacing.forget(item)

    async def get(self) -> Turn[Item]:
        """Wait for the next item that is due, and mark it as being worked on until ``done``."""
        while True:
            self._promote()
            if entry := self._next():
                self.under_way.begin(entry.item)
                if self._ready:
                    self._wake()
                self._wake_for_next()
                return Turn(entry.item, entry.priority, max(time.monotonic() - entry.due_s, 0.0))
            await self._woken()

    def done(self, item: Item) -> None:
        """Say that the work on *item* is over; if it was asked for meanwhile, it waits for its next turn."""
        self.under_way.end(item)
        self._ended.set()
        waiting = self._waiting.get(item)
        if waiting is not None and waiting.due_s <= time.monotonic():  # it was passed over until now
            heapq.heappush(self._later, (waiting.due_s, next(self._order), waiting))
        if waiting is not None or self._ready:
            self._wake()

    def look(self) -> None:
        """Have somebody look for what is next: turns under way count otherwise than before."""
        if self._ready:
            self._wake()

    async def idle(self, among: Callable[[Item], bool] = lambda _: True) -> None:
        """Wait until no item, or none *among* these, is being worked on."""
        while any(among(item) for item in self.under_way):
            self._ended.clear()
            await self._ended.wait()

    @property
    def is_at_rest(self) -> bool:
        """Whether no item is being worked on."""
        return not len(self.under_way)

    def __len__(self) -> int:
        return len(self._waiting)

    async def _woken(self) -> None:
        """Wait until there may be something to take; who is cancelled while being woken wakes another one."""
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._idle.append(waking)
        self._wake_for_next()
        try:
            await waking
        except asyncio.CancelledError:
            if waking.done() and not waking.cancelled():
                self._wake()
            raise

    def _wake(self) -> None:
        """Have one of those who wait look for what is next."""
        while self._idle:
            if not (waking := self._idle.popleft()).done():
                waking.set_result(None)
                return

    def _wake_for_next(self) -> None:
        """Have somebody look when the earliest of what comes later is due."""
        if self._later:
            self._wake_at(self._later[0][0])

    def _wake_at(self, due_s: float) -> None:
        """Have one of those who wait look when it is *due_s*, unless one does earlier: who looks sees to it that the next is looked for."""
        if not self._idle:
            return
        if due_s <= time.monotonic():
            self._wake()
        elif self._alarm is None or self._alarm.when() > due_s:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = asyncio.get_running_loop().call_at(due_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._wake()

    def _leave_line(self, entry: _Entry[Item]) -> None:
        if entry.place is not None:
            self._ready.withdraw(entry.place)

    def _promote(self) -> None:
        """Have what is due wait for its turn; what is worked on still does so once that is over, and what is paced by now comes later."""
        now_s = time.monotonic()
        while self._later and self._later[0][0] <= now_s:
            *_, entry = heapq.heappop(self._later)
            if self._waiting.get(entry.item) is not entry or entry.item in self.under_way or entry.place is not None:
                continue
            if not self._is_paced(entry, now_s):
                entry.place = self._ready.add(entry, self.under_way.tenant_of(entry.item), entry.priority.urgency)

    def _is_paced(self, entry: _Entry[Item], now_s: float) -> bool:
        """Tell whether an entry has to come later, and have it do so."""
        until_s = self.pacing.until_s(entry.item) if entry.priority > Priority.PUSH else 0.0
        if until_s <= now_s:
            return False
        entry.due_s, entry.place = until_s, None
        heapq.heappush(self._later, (until_s, next(self._order), entry))
        return True

    def _next(self) -> _Entry[Item] | None:
        """Take the entry whose turn it is, if there is one that may have it."""
        now_s = time.monotonic()
        while (found := self._ready.next(self.under_way.may_begin)) is not None:
            if not self._is_paced(found, now_s):
                del self._waiting[found.item]
                return found
        return None
