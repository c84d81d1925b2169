"""Slots for requests that take long: so many are answered at a time, of everybody together and of each person.

A guest has one slot at a time, ServiceAccounts of a namespace one together, so that nobody holds up all others; whoever has the page for themselves may take all. Somebody's own
requests wait for one another first, and only the next of them waits beside others, in the order in which they came. Nobody waits forever.

What a request has done in threads is done in threads of the page. The slot is free once these have ended, and not when the browser goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from kubectl_reconcile.source.running.threads import ERRAND, Errand
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import Refused

WAIT_S = 60.0
"""How long somebody waits for a slot, in seconds."""


class RequestSlots:
    """Slots, *at_once* in all, for requests whose work runs in *threads*."""

    def __init__(self, threads: Executor, at_once: int) -> None:
        self._threads, self._at_once = threads, at_once
        self._all = asyncio.Semaphore(at_once)
        self._of_one: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def one(self, who: Asker) -> AsyncIterator[None]:
        """Hold a slot of *who* for the block, and until all has ended that the block has done in threads.

        Raises:
            Refused: none got free for a while.
        """
        own = self._own(who)
        try:
            async with asyncio.timeout(WAIT_S):
                await self._take(own)
        except TimeoutError:
            hint = "wait until the earlier requests are answered, and try again"
            raise Refused(503, "too many requests are running", hint) from None
        errand = Errand(self._threads)
        before = ERRAND.set(errand)
        try:
            yield
        finally:
            ERRAND.reset(before)
            errand.when_over(lambda: self._give_back(own))

    def _own(self, who: Asker) -> asyncio.Semaphore:
        """Return the slots of one person, by the name that the cluster knows them by; those of a namespace for its ServiceAccounts."""
        found = self._of_one.get(who.tenant)
        if found is None:
            found = asyncio.Semaphore(1 if who.guest else self._at_once)
            self._of_one[who.tenant] = found
        return found

    async def _take(self, own: asyncio.Semaphore) -> None:
        await own.acquire()
        try:
            await self._all.acquire()
        except asyncio.CancelledError:
            own.release()
            raise

    def _give_back(self, own: asyncio.Semaphore) -> None:
        self._all.release()
        own.release()
