"""Requests at a steady rate, whatever happens to them.

Each request is *due* at a moment that the rate alone decides. How long it took is counted from then on until it was answered, or given up: where a server
stalls, those that have to wait for it count with all of their waiting. (To count from when a request was sent at last leaves out the very ones that suffer:
coordinated omission.) Every request counts, also one that failed, or was never sent: none gets out of the figures by failing.

At most so many requests are under way as there are *connections*; those that are due besides wait, in their order. What waits takes no memory.

The clock is that of the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.load.histogram import LatencyHistogram

_MOST_NAMES = 12
"""How many kinds of answers and faults are told; of further ones their number."""
_LAST_OKAY = 399


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """*rate* requests a second for some *seconds* over that many *connections*, each given up after *timeout_s*.

    Requests that couldn't be sent until *timeout_s* after the last one was due are given up, too.
    """

    rate: float
    seconds: float
    connections: int
    timeout_s: float

    @property
    def count(self) -> int:
        """How many requests there are."""
        return max(1, round(self.rate * self.seconds))


Send = Callable[[], Awaitable[int]]
"""Sends one request, and returns the status of the answer once all of that is read. Whatever it raises is why there is none."""


@dataclass(slots=True)
class LoadResult:
    """What happened to requests. *late* is how late this program was itself with what it could have sent: by that, durations are too long."""

    took: LatencyHistogram = field(default_factory=LatencyHistogram)
    late: LatencyHistogram = field(default_factory=LatencyHistogram)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    seconds: float = 0.0

    def add(self, took_s: float, outcome: int | str) -> None:
        """Count one request: the status of its answer, or the name of what kept it from having one."""
        self.took.add(took_s)
        if isinstance(outcome, int):
            self.statuses[str(outcome)] += 1
            self.errors += outcome > _LAST_OKAY
        else:
            self.faults[outcome] += 1
            self.errors += 1

    def tree(self) -> dict[str, Any]:
        """Return it as JSON of less than 2 KiB: durations in milliseconds."""
        quantiles = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99, "p999_ms": 0.999}
        return {
            "requests": self.took.count,
            "errors": self.errors,
            "rate": round(self.statuses.total() / self.seconds, 2) if self.seconds else 0.0,
            "seconds": round(self.seconds, 3),
            **{name: _ms(self.took.quantile(part)) for name, part in quantiles.items()},
            "max_ms": _ms(self.took.longest_s),
            "mean_ms": _ms(self.took.mean_s),
            "late_p99_ms": _ms(self.late.quantile(0.99)),
            **{name: told for name in ("statuses", "faults") if (told := _most(getattr(self, name)))},
        }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _most(counts: Counter[str]) -> dict[str, int]:
    shown = dict(counts.most_common(_MOST_NAMES))
    rest = counts.total() - sum(shown.values())
    return {**shown, "others": rest} if rest else shown


async def carried_out(plan: LoadPlan, send: Send) -> LoadResult:
    """Return what happened to the requests of *plan*, all of which have ended by then."""
    run = _OpenLoop(plan, send, asyncio.get_running_loop().time())
    async with asyncio.TaskGroup() as group:
        for _ in range(min(plan.connections, plan.count)):
            group.create_task(run.connection())
    run.result.seconds = max(plan.seconds, asyncio.get_running_loop().time() - run.began)
    return run.result


@dataclass(slots=True)
class _OpenLoop:
    """A plan being carried out since *began*; *next* is the number of the request that nobody has taken up yet."""

    plan: LoadPlan
    send: Send
    began: float
    next: int = 0
    result: LoadResult = field(default_factory=LoadResult)

    async def connection(self) -> None:
        """Take up one request after the other, each when it is due."""
        clock = asyncio.get_running_loop().time
        last = self.began + self.plan.seconds + self.plan.timeout_s
        while (number := self.next) < self.plan.count:
            self.next += 1
            due, free = self.began + number / self.plan.rate, clock()
            if free >= last:
                self.result.add(free - due, "NotSent")
                continue
            if due > free:
                await asyncio.sleep(due - free)
            self.result.late.add(clock() - max(due, free))
            outcome = await self._outcome()
            self.result.add(clock() - due, outcome)

    async def _outcome(self) -> int | str:
        try:
            async with asyncio.timeout(self.plan.timeout_s):
                return await self.send()
        except TimeoutError:
            return "Timeout"
        except Exception as error:  # noqa: BLE001 - whatever it is, there was no answer
            return type(error).__name__
