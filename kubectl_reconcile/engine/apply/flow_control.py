"""How fast to ask: as many requests at once as the server takes without complaint, and how often again.

The number under way starts in the middle and follows what the server says: an answer in time
widens it by a little, a 429 halves it, and nothing new starts before the time that the server asked to
be left alone. What was too much once isn't tried again for a while, since each refusal costs that
time. So many clients share one server as connections share a line.

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
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

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
from kubectl_reconcile.core.ssa.managed_fields import has_failed_at_versions

START = 24
"""Requests at once to begin with: enough to keep a server busy, few enough to leave it room for others."""
MOST = 32

_RETRIED: tuple[type[ApiError], ...] = (TooManyRequests, ServerError, Unreachable, Conflict)
_ATTEMPTS = 6
_OUTAGE_S = 45.0
_STORM_S = 90.0
_LONGEST_PAUSE_S = 3.0
_COOLDOWN_S = 0.5
_RECOVERY_S = 45.0
_PROBE_S = 10.0
_BULK_SHARE = 16
"""Of how many places bulk has one while others ask as well."""
_BULK_LEAST = 2
"""How many it has at least then, where there are as many."""
_OTHERS_S = 2.0
"""For how long after a request of others they count as asking."""

Attempt: TypeAlias = Callable[[], Awaitable[Any]]


class Pacing(Protocol):
    """What each request is made within, by ``async with``."""

    @property
    def is_recovering(self) -> bool:
        """Tell whether the server was away a moment ago."""

    async def __aenter__(self) -> None:
        """Wait for a place."""

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """Give it up, and take note of how it went."""


class FlowControl:
    """A limit on requests under way that follows the server's mood. Use ``async with`` around each request, or with its *bulk*."""

    def __init__(self, start: int = START, most: int = MOST) -> None:
        self._most = most
        self._limit = float(start)
        self._ceiling = float(most)
        self._busy = self._bulk_busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._bulk_waiting: deque[asyncio.Future[None]] = deque()
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
        """How many requests may be under way now."""
        return max(int(self._limit), 1)

    @property
    def bulk(self) -> Pacing:
        """The same limit for what is one of very many."""
        return _Bulk(self)

    @property
    def _bulk_limit(self) -> int:
        """How many of them may be bulk now."""
        is_shared = self._busy > self._bulk_busy or time.monotonic() - self._others_s < _OTHERS_S
        return max(self.limit // _BULK_SHARE, min(_BULK_LEAST, self.limit)) if is_shared else self.limit

    async def __aenter__(self) -> None:
        self._others_s = time.monotonic()
        await self.begin(bulk=False)

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self._others_s = time.monotonic()
        self.end(error, bulk=False)

    async def begin(self, *, bulk: bool) -> None:
        """Wait for a place. Whoever gives one up hands it on: who comes then doesn't get it before those who wait."""
        if self._has_place(bulk=bulk):
            self._take(bulk=bulk)
        else:
            await self._turn(self._bulk_waiting if bulk else self._waiting, bulk=bulk)
        try:
            while (wait_s := self._quiet_until_s - time.monotonic()) > 0:  # noqa: ASYNC110 - a time, no event, ends it
                await asyncio.sleep(wait_s * random.uniform(1.0, 1.3))  # noqa: S311 - jitter, no secret
        except asyncio.CancelledError:
            self._give_up(bulk=bulk)
            raise

    async def _turn(self, waiting: deque[asyncio.Future[None]], *, bulk: bool) -> None:
        """Wait until a place is handed on."""
        turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                with suppress(ValueError):  # it was passed over already
                    waiting.remove(turn)
            else:
                self._give_up(bulk=bulk)
            raise

    def end(self, error: BaseException | None, *, bulk: bool) -> None:
        """Give a place up, and take note of how it went."""
        if isinstance(error, TooManyRequests):
            self._slow(error.retry_after_s)
        elif isinstance(error, Unreachable):
            self._outage_s = time.monotonic()
        elif error is None:
            self._widen()
        self._give_up(bulk=bulk)

    def _has_place(self, *, bulk: bool) -> bool:
        if self._busy >= self.limit or self._waiting:
            return False
        return not bulk or (self._bulk_busy < self._bulk_limit and not self._bulk_waiting)

    def _take(self, *, bulk: bool) -> None:
        self._busy += 1
        self._bulk_busy += bulk

    def _give_up(self, *, bulk: bool) -> None:
        """Have one place less taken, and hand on those that are left, bulk last."""
        self._busy -= 1
        self._bulk_busy -= bulk
        while self._waiting and self._busy < self.limit:
            self._hand_on(self._waiting, bulk=False)
        while self._bulk_waiting and self._busy < self.limit and self._bulk_busy < self._bulk_limit:
            self._hand_on(self._bulk_waiting, bulk=True)

    def _hand_on(self, waiting: deque[asyncio.Future[None]], *, bulk: bool) -> None:
        turn = waiting.popleft()
        if not turn.done():
            self._take(bulk=bulk)
            turn.set_result(None)

    def _slow(self, retry_after_s: float | None) -> None:
        """Halve the limit, once for all answers of one storm, and leave the server alone as it asked."""
        now = time.monotonic()
        self._quiet_until_s = max(self._quiet_until_s, now + (retry_after_s or 0.0))
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


class _Bulk(Struct, frozen=True):
    """A limit as what is one of very many meets it."""

    flow: FlowControl

    @property
    def is_recovering(self) -> bool:
        """Tell whether the server was away a moment ago."""
        return self.flow.is_recovering

    async def __aenter__(self) -> None:
        await self.flow.begin(bulk=True)

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self.flow.end(error, bulk=True)


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
            async with pace:
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
    if isinstance(error, TooManyRequests):
        return spent_s < _STORM_S
    if isinstance(error, Unreachable) or error.status in {502, 503, 504}:
        return spent_s < _OUTAGE_S
    return number < _ATTEMPTS - 1


async def pause(error: ApiError, number: int) -> None:
    """Wait before another try: as long as the server asked, else longer each time."""
    wait_s = error.retry_after_s or min(0.1 * 2**number, _LONGEST_PAUSE_S)
    await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
