"""Runs what asks Git servers, in threads of its own, in the order that ``core.fair.lanes`` decides.

A thread that waits for a server can't be ended, but the git that it waits for can: a job that is cancelled, stopped or
late has its git killed, and its thread ends by itself. Its slot is free once it has.

What reads clones of this machine for plans has other threads, and no server: neither waits for the other, and what both leave
alone is the default executor, which looks up names of hosts.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct, field

from kubectl_reconcile.core.fair.lanes import PATIENCE_S, BreakOff, Job, Lane, Lanes, host_of
from kubectl_reconcile.engine.telemetry.metrics import Metrics
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.running.ending import Ending
from kubectl_reconcile.source.running.threads import begin

T = TypeVar("T")

JOBS_AT_ONCE: Final = 40
"""How many jobs run at a time, unless somebody says otherwise."""

_LOCAL_THREADS: Final = 4
_LOCAL_S: Final = 10.0
"""How long a plan waits for what a clone holds, in seconds."""


class _Ticket(Struct, eq=False):
    """One job between its coming and its end."""

    job: Job
    begins: asyncio.Future[Lane]
    ending: Ending = field(default_factory=Ending)
    came_s: float = field(default_factory=time.monotonic)
    is_broken_off: bool = False


class GitLanes:
    """The lanes of one daemon, used from its event loop."""

    def __init__(self, metrics: Metrics, jobs: int = JOBS_AT_ONCE, *, patience_s: float = PATIENCE_S) -> None:
        self._lanes = Lanes.of(jobs)
        self._metrics, self._patience_s = metrics.lanes, patience_s
        self._threads = ThreadPoolExecutor(max(jobs, 2), "git")
        self._local = ThreadPoolExecutor(_LOCAL_THREADS, "git-local")
        self._numbers = itertools.count()
        self._tickets: dict[int, _Ticket] = {}
        self._is_closed = False
        for lane in Lane:
            self._metrics.waiting.labels(lane.value).set_function(partial(self._lanes.waiting, lane))
            self._metrics.running.labels(lane.value).set_function(partial(self._lanes.running, lane))

    async def run(
        self, work: Callable[[], T], *, who: Hashable, url: str, tenant: str, is_urgent: bool, timeout_s: float
    ) -> T:
        """Do *work*, which asks the server at *url*, in a thread when it is its turn; cancelled, it is ended.

        Raises:
            SourceError: the work raised it, or took longer than *timeout_s* once it had begun.
        """
        while True:
            job = Job(next(self._numbers), who, host_of(url), tenant, is_urgent)
            ticket = self._tickets[job.number] = _Ticket(job, asyncio.get_running_loop().create_future())
            self._lanes.add(job)
            self._decide()
            try:
                lane = await ticket.begins
            except asyncio.CancelledError:
                self._withdraw(ticket)
                raise
            self._metrics.seconds.labels(lane.value).observe(time.monotonic() - ticket.came_s)
            try:
                return await self._begun(ticket, work, timeout_s)
            except _BrokenOffError:
                continue

    async def local(self, work: Callable[[], T], otherwise: T) -> T:
        """Return what *work* reads from clones of this machine; *otherwise* where that takes too long."""
        ending = Ending()
        thread = begin(self._local, ending, work)
        try:
            async with asyncio.timeout(_LOCAL_S):
                return await asyncio.shield(thread)
        except TimeoutError:
            return otherwise
        finally:
            ending.end()

    def forget(self, who: Hashable) -> None:
        """Forget somebody whose jobs there won't be any more."""
        self._lanes.forget(who)

    def close(self) -> None:
        """End all jobs; threads end by themselves, with nothing left to wait for."""
        self._is_closed = True
        for ticket in self._tickets.values():
            ticket.ending.end()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._local.shutdown(wait=False, cancel_futures=True)

    async def _begun(self, ticket: _Ticket, work: Callable[[], T], timeout_s: float) -> T:
        loop = asyncio.get_running_loop()
        try:
            thread = begin(self._threads, ticket.ending, work)
        except BaseException:  # there are no threads any more
            self._ended(ticket)
            raise
        thread.add_done_callback(lambda _: self._ended(ticket))
        patience = loop.call_later(self._patience_s, self._outstayed, ticket)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(thread)
        except TimeoutError:
            late = f"not read within spec.timeout, {timeout_s:.0f} s"
            raise SourceError(SourceFault.UNREACHABLE, late, "it will be retried") from None
        except SourceError:
            if ticket.is_broken_off:
                raise _BrokenOffError from None
            raise
        finally:
            patience.cancel()
            ticket.ending.end()

    def _decide(self) -> None:
        """Carry out what the lanes decide, until nothing is left to be decided, or all is over."""
        while not self._is_closed and (decision := self._lanes.next()) is not None:
            ticket = self._tickets[decision.job.number]
            if isinstance(decision, BreakOff):
                ticket.is_broken_off = True
                self._metrics.broken_off.inc()
                ticket.ending.end()
            elif not ticket.begins.done():
                ticket.begins.set_result(decision.lane)

    def _outstayed(self, ticket: _Ticket) -> None:
        self._lanes.outstayed(ticket.job)
        self._decide()

    def _ended(self, ticket: _Ticket) -> None:
        """Note that a thread has come to its end, whoever still waits for it or not."""
        self._tickets.pop(ticket.job.number, None)
        self._lanes.ended(ticket.job)
        self._decide()

    def _withdraw(self, ticket: _Ticket) -> None:
        """Give up a job that hasn't begun; one that was told to begin in this very moment has a slot to give back."""
        self._tickets.pop(ticket.job.number, None)
        self._lanes.withdraw(ticket.job)
        self._lanes.ended(ticket.job)
        self._decide()


class _BrokenOffError(Exception):
    """The job's slot is needed by others; it is to begin again."""
