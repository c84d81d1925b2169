"""How fast to ask: as many requests at once as the server takes without complaint, and how often again.

The number under way starts in the middle and follows what the server says: an answer in time
widens it by a little, a 429 halves it, and nothing new starts before the time that the server asked to
be left alone, a few seconds at most. What was too much once isn't tried again for a while, since each refusal costs that
time. So many clients share one server as connections share a line.

What an admission webhook says in the server's name concerns what it was asked about, and nobody else: neither its 429 nor the time that
it asks for slows down another request.

Places are shared between tenants (``core.fair``): no tenant has all, and who waits is served in turns. A request that takes longer than a
moment, since a webhook holds it up, needs no place among the others any more; a tenant with many of these gets no other until one is over.

Of those who wait, *bulk*, one of very many requests for one purpose, goes last: a field that drifted isn't corrected behind a
thousand objects that are new. While others ask for something as well, bulk has one of sixteen places: what the server is busy
with takes its time whoever goes first, and two writes at once keep a server of two cores about as busy as eight.

A request is tried again where the server or the way to it was at fault, never where it was refused.
Tries are bounded, in number or in time, and spread out, so that clients that failed together don't come
back together.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from kubectl_reconcile.cluster.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from kubectl_reconcile.core.fair.shares import Limits, Shares
from kubectl_reconcile.core.fair.turns import Turns, Waiting
from kubectl_reconcile.core.retry import WRITE
from kubectl_reconcile.core.ssa.managed_fields import has_failed_at_versions

START = 24
"""Requests at once to begin with: enough to keep a server busy, few enough to leave it room for others."""
MOST = 32

_RETRIED: tuple[type[ApiError], ...] = (TooManyRequests, ServerError, Unreachable, Conflict)
_ATTEMPTS = 6
_OUTAGE_S = 45.0
_STORM_S = 90.0
_LONGEST_ASKED_S = 5.0
"""The longest that anybody is left alone who asks for it: whoever still has no time then says so again."""
_COOLDOWN_S = 0.5
_RECOVERY_S = 45.0
_PROBE_S = 10.0
_BULK_SHARE = 16
"""Of how many places bulk has one while others ask as well."""
_BULK_LEAST = 2
"""How many it has at least then, where there are as many."""
_OTHERS_S = 2.0
"""For how long after a request of others they count as asking."""
_MOMENT_S = 1.0
"""After how long a request is late: a server that isn't held up answers within some hundredths."""
LATE: Final = Limits(late=8, late_in_all=96)
"""How many requests of one tenant may be late, and how many altogether."""

Attempt: TypeAlias = Callable[[], Awaitable[Any]]


class Pacing(Protocol):
    """What each request is made within."""

    @property
    def is_recovering(self) -> bool:
        """Tell whether the server was away a moment ago."""

    def place(self) -> AbstractAsyncContextManager[None]:
        """Return what waits for a place, has it for a block, and takes note of how that went."""


class _Place(Struct, eq=False):
    """A request that has a place, or waits for one until it *begins*."""

    tenant: str
    is_bulk: bool
    begins: asyncio.Future[None]
    is_late: bool = False
    alarm: asyncio.TimerHandle | None = None


class FlowControl:
    """A limit on requests under way that follows the server's mood. Make each request within a ``place`` of its own, or of a *share* of it.

    Itself it is the share of somebody who has the server for themselves.
    """

    def __init__(self, start: int = START, most: int = MOST) -> None:
        self._most = most
        self._limit = float(start)
        self._ceiling = float(most)
        self._shares, self._bulk_busy = Shares(LATE), 0
        self._waiting: Turns[_Place] = Turns()
        self._bulk_waiting: Turns[_Place] = Turns()
        self._others_s = float("-inf")
        self._quiet_until_s = 0.0
        self._slowed_s = 0.0
        self._raised_s = 0.0
        self._outage_s = float("-inf")

    @property
    def is_recovering(self) -> bool:
        """Tell whether the server was away a moment ago: it may not know yet who may do what, nor all of its kinds."""
        return time.monotonic() - self._outage_s < _RECOVERY_S

    @property
    def limit(self) -> int:
        """How many requests may be under way now, late ones left out."""
        return max(int(self._limit), 1)

    @property
    def bulk(self) -> Pacing:
        """The same limit for what is one of very many."""
        return self.share("", bulk=True)

    def share(self, tenant: str, *, bulk: bool = False) -> Pacing:
        """Return the same limit for requests of a *tenant*, each one of very many where they are *bulk*."""
        return _Share(self, tenant, bulk)

    def place(self) -> AbstractAsyncContextManager[None]:
        """Return what waits for a place, has it for a block, and takes note of how that went."""
        return self.placed("", bulk=False)

    @asynccontextmanager
    async def placed(self, tenant: str, *, bulk: bool) -> AsyncIterator[None]:
        """Wait for a place of *tenant*, have it for the block, and take note of how that went.

        Whoever gives one up hands it on: who comes then doesn't get it before those who wait.
        """
        self._note_asking(bulk=bulk)
        place = await self._begun(tenant, bulk=bulk)
        error = None
        try:
            while (wait_s := self._quiet_until_s - time.monotonic()) > 0:  # noqa: ASYNC110 - a time, no event, ends it
                await asyncio.sleep(wait_s * random.uniform(1.0, 1.3))  # noqa: S311 - jitter, no secret
            self._watch(place)
            yield
            self._widen()
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._note_asking(bulk=bulk)
            self._note_error(error)
            self._give_up(place)

    @property
    def _bulk_limit(self) -> int:
        """How many of them may be bulk now."""
        is_shared = self._shares.held > self._bulk_busy or time.monotonic() - self._others_s < _OTHERS_S
        return max(self.limit // _BULK_SHARE, min(_BULK_LEAST, self.limit)) if is_shared else self.limit

    def _note_asking(self, *, bulk: bool) -> None:
        if not bulk:
            self._others_s = time.monotonic()

    async def _begun(self, tenant: str, *, bulk: bool) -> _Place:
        """Wait until there is a place, and return it."""
        place = _Place(tenant, bulk, asyncio.get_running_loop().create_future())
        line = self._bulk_waiting if bulk else self._waiting
        waiting: Waiting[_Place] = line.add(place, tenant)
        self._hand_on()
        try:
            await place.begins
        except asyncio.CancelledError:
            if place.begins.cancelled():
                line.withdraw(waiting)  # unless it was passed over already
            else:
                self._give_up(place)
            raise
        return place

    def _hand_on(self) -> None:
        """Hand on the places that are free: a few to bulk whoever else waits, then to others, what is left to bulk."""
        while self._bulk_busy < self.limit // _BULK_SHARE and self._give_next(self._bulk_waiting):
            pass
        while self._give_next(self._waiting):
            pass
        while self._bulk_busy < self._bulk_limit and self._give_next(self._bulk_waiting):
            pass

    def _give_next(self, line: Turns[_Place]) -> bool:
        """Give a place to whoever is next in *line*; tell whether there is one who may have it."""
        if self._shares.held >= self.limit:
            return False
        place = line.next(lambda tenant: self._shares.has_place(tenant, self.limit))
        if place is None:
            return False
        if not place.begins.done():
            self._shares.take(place.tenant)
            self._bulk_busy += place.is_bulk
            place.begins.set_result(None)
        return True

    def _watch(self, place: _Place) -> None:
        """Have a tenant's request be late after a moment from now."""
        if place.tenant:
            place.alarm = asyncio.get_running_loop().call_later(_MOMENT_S, self._outstay, place)

    def _outstay(self, place: _Place) -> None:
        """Have others take the place of a request that takes long."""
        if self._shares.outstay(place.tenant):
            place.is_late = True
            self._bulk_busy -= place.is_bulk
            self._hand_on()
        else:
            self._watch(place)  # too many are late for now

    def _give_up(self, place: _Place) -> None:
        if place.alarm is not None:
            place.alarm.cancel()
        self._shares.give_back(place.tenant, was_late=place.is_late)
        if not place.is_late:
            self._bulk_busy -= place.is_bulk
        self._hand_on()

    def _note_error(self, error: BaseException | None) -> None:
        if isinstance(error, TooManyRequests) and not error.is_of_webhook:
            self._slow(error.retry_after_s)
        elif isinstance(error, Unreachable):
            self._outage_s = time.monotonic()

    def _slow(self, retry_after_s: float | None) -> None:
        """Halve the limit, once for all answers of one storm, and leave the server alone as it asked."""
        now = time.monotonic()
        self._quiet_until_s = max(self._quiet_until_s, now + min(retry_after_s or 0.0, _LONGEST_ASKED_S))
        if now - self._slowed_s > _COOLDOWN_S:
            self._slowed_s = now
            self._ceiling = max(self._limit - 1, 1.0)
            self._limit = max(self._limit / 2, 1.0)

    def _widen(self) -> None:
        """Take a little more, up to what was refused last; every few seconds see whether more will do by now."""
        now = time.monotonic()
        if self._limit >= self._ceiling and now - max(self._slowed_s, self._raised_s) > _PROBE_S:
            self._raised_s, self._ceiling = now, self._ceiling + 1
        self._limit = min(self._limit + 1 / self._limit, self._ceiling, self._most)


class _Share(Struct, frozen=True):
    """A limit as one tenant's requests meet it."""

    flow: FlowControl
    tenant: str
    is_bulk: bool

    @property
    def is_recovering(self) -> bool:
        """Tell whether the server was away a moment ago."""
        return self.flow.is_recovering

    def place(self) -> AbstractAsyncContextManager[None]:
        """Return what waits for a place, has it for a block, and takes note of how that went."""
        return self.flow.placed(self.tenant, bulk=self.is_bulk)


async def patiently(attempt: Attempt, *, also: tuple[type[ApiError], ...] = (), pace: Pacing | None = None) -> Any:
    """Return what *attempt* returns, trying again where the server or the way to it was at fault.

    *also* are refusals that pass by themselves, such as a kind that isn't served yet. Between two tries
    the place in the line is given up.

    Raises:
        ApiError: the last error, once tries are used up; any other refusal at once.
    """
    number, began_s = 0, time.monotonic()
    while True:
        try:
            if pace is None:
                return await attempt()
            async with pace.place():
                return await attempt()
        except ApiError as error:
            passing = isinstance(error, (*_RETRIED, *also)) and _is_worth_another(
                error, number, time.monotonic() - began_s
            )
            if not passing and not _is_of_a_server_that_starts(error, pace):
                raise
            await pause(error, number)
            number += 1


def _is_of_a_server_that_starts(error: ApiError, pace: Pacing | None) -> bool:
    """Tell whether a refusal may be that of a server that reads its rules and kinds still: waited for until it has recovered."""
    if pace is None or not pace.is_recovering:
        return False
    no_such_kind = isinstance(error, NotFound) and error.message.startswith("the server could not find the requested")
    return isinstance(error, (Forbidden, Unauthorized)) or no_such_kind


def _is_worth_another(error: ApiError, number: int, spent_s: float) -> bool:
    if isinstance(error, Conflict) and error.causes:
        return False  # fields that belong to others: trying again changes nothing
    if has_failed_at_versions(error.status, error.message):
        return False  # the record of owners has to change first
    if error.is_of_webhook:
        return number < _ATTEMPTS - 1  # and not for as long as its server's trouble may last
    if isinstance(error, TooManyRequests):
        return spent_s < _STORM_S
    if isinstance(error, Unreachable) or error.status in {502, 503, 504}:
        return spent_s < _OUTAGE_S
    return number < _ATTEMPTS - 1


async def pause(error: ApiError, number: int) -> None:
    """Wait before another try: as long as was asked for, within bounds, else longer each time."""
    drawn = random.random()  # noqa: S311 - no secret
    await asyncio.sleep(min(error.retry_after_s or WRITE.pause_s(number + 1, drawn), _LONGEST_ASKED_S))
