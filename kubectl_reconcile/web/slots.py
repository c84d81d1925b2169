"""Slots for requests that take long: so many are answered at a time, of everybody together and of each person.

A guest has one slot at a time, ServiceAccounts of a namespace one together, so that nobody holds up all others; whoever has the page for themselves may take all. Somebody's own
requests wait for one another first, and people are served in turns (``core.fair``). Nobody waits forever. A request that takes longer than a
moment, as where a Git server hangs, gives its slot to others and goes on: its person gets no other meanwhile.

What a request has done in threads is done in threads of the page. The slot is free once these have ended, and not when the browser goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from kubectl_reconcile.core.fair.shares import Limits, Shares
from kubectl_reconcile.core.fair.turns import Turns
from kubectl_reconcile.source.running.places import TENANT
from kubectl_reconcile.source.running.threads import ERRAND, Errand
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import Refused

WAIT_S = 60.0
"""How long somebody waits for a slot, in seconds."""


MOMENT_S = 2.0
"""After how long a request is late, in seconds."""
LATE: Final = Limits(late=1, late_in_all=24)
"""How many requests of one person may be late, and how many altogether."""


class _Slot(Struct, eq=False):
    """A request that has a slot, or waits for one until it *begins*."""

    tenant: str
    begins: asyncio.Future[None]
    is_late: bool = False
    alarm: asyncio.TimerHandle | None = None


class RequestSlots:
    """Slots, *at_once* in all besides those of late requests, for requests whose work runs in *threads*."""

    def __init__(self, threads: Executor, at_once: int) -> None:
        self._threads, self._at_once = threads, at_once
        self._shares = Shares(LATE)
        self._waiting: Turns[_Slot] = Turns()

    @asynccontextmanager
    async def one(self, who: Asker) -> AsyncIterator[None]:
        """Hold a slot of *who* for the block, and until all has ended that the block has done in threads.

        Raises:
            Refused: none got free for a while.
        """
        slot = await self._taken(who.tenant if who.guest else "")
        self._watch(slot)
        errand = Errand(self._threads)
        before, tenant = ERRAND.set(errand), TENANT.set(f"page/{slot.tenant}" if slot.tenant else "")
        try:
            yield
        finally:
            ERRAND.reset(before)
            TENANT.reset(tenant)
            errand.when_over(lambda: self._give_back(slot))

    async def _taken(self, tenant: str) -> _Slot:
        """Wait for a slot, and return it.

        Raises:
            Refused: none got free for a while.
        """
        slot = _Slot(tenant, asyncio.get_running_loop().create_future())
        waiting = self._waiting.add(slot, tenant)
        self._hand_on()
        try:
            if not slot.begins.done():
                async with asyncio.timeout(WAIT_S):
                    await slot.begins
        except BaseException as error:
            self._waiting.withdraw(waiting)
            if not slot.begins.cancelled():  # its turn came in this very moment
                self._give_back(slot)
            if not isinstance(error, TimeoutError):
                raise
            hint = "wait until the earlier requests are answered, and try again"
            raise Refused(503, "too many requests are running", hint) from None
        return slot

    def _may(self, tenant: str) -> bool:
        """Tell whether somebody may have a slot: one of a guest, by the name that the cluster knows them by, or of a namespace's ServiceAccounts."""
        return not (tenant and self._shares.has(tenant)) and self._shares.has_place(tenant, self._at_once)

    def _hand_on(self) -> None:
        while (slot := self._waiting.next(self._may)) is not None:
            if not slot.begins.done():
                self._shares.take(slot.tenant)
                slot.begins.set_result(None)

    def _watch(self, slot: _Slot) -> None:
        """Have a guest's request be late after a moment from now."""
        if slot.tenant:
            slot.alarm = asyncio.get_running_loop().call_later(MOMENT_S, self._outstay, slot)

    def _outstay(self, slot: _Slot) -> None:
        if self._shares.outstay(slot.tenant):
            slot.is_late = True
            self._hand_on()
        else:
            self._watch(slot)  # too many are late for now

    def _give_back(self, slot: _Slot) -> None:
        if slot.alarm is not None:
            slot.alarm.cancel()
        self._shares.give_back(slot.tenant, was_late=slot.is_late)
        self._hand_on()
