"""Who may ask a Git server next, so that a server that hangs, or a tenant with many Syncs, holds up nobody else.

Vocabulary: a *job* asks one server for one Sync, and fetches what is new. *Who* it is for, its *host* and its *tenant* (the Sync's
namespace) are names that are compared and nothing else. A job waits in a *lane* until a slot of it is free. All jobs begin
in the *quick* lane; one that takes longer than its *patience* has *outstayed* it, and belongs into the *slow* lane, where
jobs may take their time.

Rules:

- No host and no tenant has more than its part of a lane, whoever else waits or doesn't.
- Hosts take turns, and so do the tenants of one host: none is served twice while another waits that may go. Within both, first
  come, first served; an urgent job goes as if it had come a while ago, so it passes only so many others.
- A job that has outstayed moves to the slow lane where that has room. Where it hasn't and the job is in somebody's way, it is broken
  off, and waits in the slow lane to begin again. So who waits in the quick lane waits for none but jobs within their patience.
- Who outstayed begins in the slow lane next time, until a job of theirs ends within its patience.

Pure: no clock; whoever runs the jobs says when one has outstayed.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Hashable, Iterator
from enum import StrEnum
from typing import Final, Self, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.resources.credential_scope import Address, NoAddressError

PATIENCE_S: Final = 5.0
"""How long a job may take in the quick lane."""

_HEAD_START: Final = 1000
"""So many jobs an urgent one may pass."""

THIS_MACHINE: Final = "this machine"


def host_of(url: str) -> str:
    """Return which server a repository's URL names: scheme, host and port, or that it is none."""
    try:
        address = Address.of(url)
    except NoAddressError:
        return THIS_MACHINE
    return f"{address.scheme}://{address.host}:{address.port}"


class Job(Struct, frozen=True):
    """One job; *number* is its own, *who* it is for may have had others before."""

    number: int
    who: Hashable
    host: str
    tenant: str
    is_urgent: bool = False


class LaneLimits(Struct, frozen=True):
    """How many jobs of a lane may run at a time: altogether, of one host and of one tenant."""

    slots: int
    per_host: int
    per_tenant: int


def shared_out(jobs: int) -> tuple[LaneLimits, LaneLimits]:
    """Return the limits of the quick and the slow lane, for so many *jobs* in both; at least one each."""
    slow = max(jobs * 2 // 5, 1)
    quick = max(jobs - slow, 1)
    return (
        LaneLimits(quick, max(quick // 3, 1), max(quick // 2, 1)),
        LaneLimits(slow, max(slow // 4, 1), max(slow // 2, 1)),
    )


class Lane(StrEnum):
    """Where a job waits and runs."""

    QUICK = "quick"
    """Its server is taken for one that answers."""
    SLOW = "slow"
    """It took long last time, or takes long now."""


class Start(Struct, frozen=True):
    """The job is to begin."""

    job: Job
    lane: Lane


class BreakOff(Struct, frozen=True):
    """The job is to be ended, and to be added again once it has."""

    job: Job


Decision: TypeAlias = Start | BreakOff

_Entry: TypeAlias = tuple[int, int, Job]
"""A job that waits, after its rank and its number of arrival."""


class _Slots(Struct):
    """One lane: who waits, by host and tenant, and who runs."""

    limits: LaneLimits
    waiting: dict[str, dict[str, list[_Entry]]] = field(default_factory=dict)
    running: dict[int, Job] = field(default_factory=dict)
    hosts: Counter[str] = field(default_factory=Counter)
    tenants: Counter[str] = field(default_factory=Counter)
    served: dict[tuple[str, ...], int] = field(default_factory=dict)

    def take(self, job: Job) -> None:
        self.running[job.number] = job
        self.hosts[job.host] += 1
        self.tenants[job.tenant] += 1

    def release(self, job: Job) -> bool:
        """Free the slot of a job; return False if it has none here."""
        if self.running.pop(job.number, None) is None:
            return False
        for count, name in ((self.hosts, job.host), (self.tenants, job.tenant)):
            count[name] -= 1
            if not count[name]:
                del count[name]
        return True

    def has_room(self, host: str, tenant: str, without: Job | None = None) -> bool:
        """Tell whether a job of that host and tenant could begin, or could *without* one that runs."""
        less = (0, 0, 0) if without is None else (1, without.host == host, without.tenant == tenant)
        return (
            len(self.running) - less[0] < self.limits.slots
            and self.hosts[host] - less[1] < self.limits.per_host
            and self.tenants[tenant] - less[2] < self.limits.per_tenant
        )

    def wait(self, job: Job, rank: int, arrival: int) -> None:
        heapq.heappush(self.waiting.setdefault(job.host, {}).setdefault(job.tenant, []), (rank, arrival, job))

    def withdraw(self, job: Job) -> None:
        """Drop a job that waits."""
        entries = self.waiting.get(job.host, {}).get(job.tenant, [])
        kept = [entry for entry in entries if entry[2].number != job.number]
        if len(kept) < len(entries):
            heapq.heapify(kept)
            self._keep(job.host, job.tenant, kept)

    def next(self, turn: int) -> Job | None:
        """Take the job whose turn it is, of those that may begin; *turn* counts the jobs that came and began so far."""
        ranks = {
            host: max(self.served.get((host,), 0), min(entries[0][0] for entries in tenants.values()))
            for host, tenants in self._that_may_begin()
        }
        if not ranks:
            return None
        host = min(ranks, key=lambda each: ranks[each])
        tenants = {name: each for name, each in self.waiting[host].items() if self.has_room(host, name)}
        tenant = min(tenants, key=lambda name: max(self.served.get((host, name), 0), tenants[name][0][0]))
        *_, job = heapq.heappop(tenants[tenant])
        self.served[host,] = self.served[host, tenant] = turn
        self._keep(host, tenant, tenants[tenant])
        self.take(job)
        return job

    def groups(self) -> Iterator[tuple[str, str]]:
        """Yield each host and tenant of which somebody waits."""
        return ((host, tenant) for host, tenants in self.waiting.items() for tenant in tenants)

    def _that_may_begin(self) -> Iterator[tuple[str, dict[str, list[_Entry]]]]:
        for host, tenants in self.waiting.items():
            able = {name: entries for name, entries in tenants.items() if self.has_room(host, name)}
            if able:
                yield host, able

    def _keep(self, host: str, tenant: str, entries: list[_Entry]) -> None:
        """Note who still waits. Of whom nobody waits no turn is remembered: who comes later comes after it anyway."""
        self.waiting[host][tenant] = entries
        if not entries:
            del self.waiting[host][tenant]
            self.served.pop((host, tenant), None)
        if not self.waiting[host]:
            del self.waiting[host]
            self.served.pop((host,), None)


class Lanes:
    """Jobs that wait and run. Whoever changes something asks ``next`` for what follows, until nothing does."""

    def __init__(self, quick: LaneLimits, slow: LaneLimits) -> None:
        self._slots = {Lane.QUICK: _Slots(quick), Lane.SLOW: _Slots(slow)}
        self._outstayed: dict[int, Job] = {}
        self._slow: set[Hashable] = set()
        self._turns = itertools.count(_HEAD_START + 1)

    @classmethod
    def of(cls, jobs: int) -> Self:
        """Return lanes for so many jobs at a time."""
        return cls(*shared_out(jobs))

    def add(self, job: Job) -> None:
        """Have *job* wait for its turn."""
        lane = Lane.SLOW if job.who in self._slow else Lane.QUICK
        arrival = next(self._turns)
        self._slots[lane].wait(job, arrival - _HEAD_START * job.is_urgent, arrival)

    def outstayed(self, job: Job) -> None:
        """Note that *job* has run for longer than its patience."""
        self._slow.add(job.who)
        self._outstayed[job.number] = job

    def ended(self, job: Job) -> None:
        """Note that *job* came to its end; one that had been stopped or withdrawn may."""
        was_late = self._outstayed.pop(job.number, None) is not None
        if any(slots.release(job) for slots in self._slots.values()) and not was_late:
            self._slow.discard(job.who)

    def withdraw(self, job: Job) -> None:
        """Drop *job*, if it waits: it isn't wanted any more."""
        for slots in self._slots.values():
            slots.withdraw(job)

    def forget(self, who: Hashable) -> None:
        """Forget whether the jobs of somebody took long: there will be none any more."""
        self._slow.discard(who)

    def next(self) -> Decision | None:
        """Return what is to be done now, as done; None if nothing is."""
        for lane, slots in self._slots.items():
            if (job := slots.next(next(self._turns))) is not None:
                return Start(job, lane)
        self._make_way()
        job = self._in_the_way()
        if job is None:
            return None if self._settled() else self.next()
        self._slots[Lane.QUICK].release(job)
        self._slow.add(job.who)  # another job of theirs may have ended within its patience meanwhile
        return BreakOff(job)

    def waiting(self, lane: Lane) -> int:
        """Return how many jobs wait."""
        return sum(len(entries) for tenants in self._slots[lane].waiting.values() for entries in tenants.values())

    def running(self, lane: Lane) -> int:
        """Return how many jobs run."""
        return len(self._slots[lane].running)

    def _make_way(self) -> None:
        """Move jobs that outstayed into what room the slow lane has: nobody waits there who could use it."""
        quick, slow = self._slots[Lane.QUICK], self._slots[Lane.SLOW]
        for job in list(self._outstayed.values()):
            if job.number in quick.running and slow.has_room(job.host, job.tenant):
                quick.release(job)
                slow.take(job)

    def _in_the_way(self) -> Job | None:
        """Return the job that outstayed longest of those without which somebody could begin."""
        quick = self._slots[Lane.QUICK]
        late = [job for job in self._outstayed.values() if job.number in quick.running]
        groups = list(quick.groups()) if late else []
        return next((job for job in late if any(quick.has_room(*group, without=job) for group in groups)), None)

    def _settled(self) -> bool:
        """Tell whether nobody waits who could begin."""
        return not any(slots.has_room(*group) for slots in self._slots.values() for group in slots.groups())
