"""What all passes of a running daemon share: the cluster's cache, the queue, and the ways to report.

Two things happen in every pass besides its own work: changes are written through one kind of
writer, which feeds the cache and counts; and how it went is told, as a status, an event and a
log line.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.errors import ApiError, Conflict, NotFound
from kubectl_reconcile.core.daemon.contention import Ceasefires
from kubectl_reconcile.core.module.api import Ask
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.plan import Contest, Contests, Plan
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.status import CONTESTED
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.flow_control import Pace
from kubectl_reconcile.engine.apply.writer import Hooks, Result, Signal, State, Writer
from kubectl_reconcile.engine.daemon.file_watch import Files
from kubectl_reconcile.engine.daemon.queue import WorkQueue
from kubectl_reconcile.engine.modules.action_runner import Actor
from kubectl_reconcile.engine.modules.call_timeout import Asking
from kubectl_reconcile.engine.sync.reconcile import write_sync_status
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.engine.telemetry.logs import News, event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

_SYNCED_WITHIN_S = 30.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Following:
    """A view that follows: each feed is listed once and watched from then on; Syncs share the watches."""

    cache: Cache
    ask: Ask

    def selects(self, _set_id: str) -> str:
        """Return the selector of all sets' members: one watch a kind serves every Sync."""
        return PART_OF

    async def ensure(self, feeds: Iterable[Feed]) -> Mapping[Feed, ApiError]:
        """Follow these feeds; return those that could not be had, and why."""
        wanted = list(feeds)
        for feed in wanted:
            self.cache.follow(feed)
        await self.cache.wait_synced(wanted, timeout_s=_SYNCED_WITHIN_S)
        late = ApiError(f"not listed within {_SYNCED_WITHIN_S:.0f} s")
        return {feed: self.cache.failure(feed) or late for feed in wanted if not self.cache.synced(feed)}

    def snapshot(self) -> Snapshot:
        """Return the live objects of all feeds so far."""
        return self.cache.snapshot()


@dataclass(frozen=True, slots=True)
class Stop:
    """Set once the daemon has been told to end, or an item is no longer ours to work on."""

    stopping: asyncio.Event
    is_ours: Callable[[], bool]

    def is_set(self) -> bool:
        """Tell whether it is time to stop."""
        return self.stopping.is_set() or not self.is_ours()


@dataclass(slots=True)
class Running:
    """One daemon at work. *stopping* is set when it has been told to end; *owns* tells which items are its own."""

    session: Session
    owns: Callable[[ObjectRef], bool]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: Metrics = field(default_factory=Metrics)
    queue: WorkQueue[ObjectRef] = field(default_factory=WorkQueue)
    news: News = field(default_factory=News)
    ceasefires: Ceasefires = field(default_factory=Ceasefires)
    files: Files = field(default_factory=Files)
    pace: Pace = field(default_factory=Pace)
    cache: Cache = field(init=False)
    view: Following = field(init=False)
    events: Events = field(init=False)

    def __post_init__(self) -> None:
        """Make what hangs on the session's connection."""
        self.cache = Cache(self.session.client)
        self.view = Following(self.cache, Asking(self.metrics))
        self.events = Events(self.session.client)

    def live(self, ref: ObjectRef) -> Manifest | None:
        """Return the live object as the cache has it."""
        stored = self.cache.snapshot().stored(ref)
        return stored.manifest() if stored else None

    def forget(self, ref: ObjectRef) -> None:
        """Drop what is remembered of an item that is gone."""
        self.queue.forget(ref)
        self.ceasefires.forget(ref)
        self.files.unwatch(ref)
        for about in ("pass", "source", "status"):
            self.news.of((about, ref), ())

    def stop(self, ref: ObjectRef) -> Stop:
        """Return what ends a pass over *ref* early."""
        return Stop(self.stopping, lambda: self.owns(ref))

    def writer(self, stop: Signal, *, provisional: bool = False) -> Writer:
        """Return a writer that keeps the cache up to date, counts what it does, and heeds *stop*; all share one pace."""
        hooks = Hooks(result=self._count, wrote=self.cache.wrote, deleted=self.cache.deleted)
        actor = Actor(self.session.client, self.session.systems, self.session.modules)
        return Writer(self.session.client, hooks, stop, self.pace, provisional=provisional, act=actor.run)

    def _count(self, result: Result) -> None:
        change = result.change
        if result.state is State.TAKEN:
            return  # it is looked at before it is judged
        if result.state is not State.SUCCEEDED:
            level = self.news.level(change.ref, result.error)
            event(log, level, "not applied", object=change.ref, op=change.op, error=result.error)
            return
        self.news.of(change.ref, ())
        if result.wrote:
            self.ceasefires.wrote(change, time.monotonic())
            self.metrics.changes.labels(change.op.value).inc()
            event(
                log, logging.INFO, "applied", object=change.ref, op=change.op,
                fields=len(change.fields), duration_ms=round(result.duration_ms),
            )  # fmt: skip

    async def peaceful(self, holder: ObjectRef, build: Callable[[Contests], Awaitable[Plan]]) -> Plan:
        """Return the plan that *build* makes for *holder* without the fields that are contested; tell of new contests.

        Raises:
            ApiError: building it failed.
        """
        fires = self.ceasefires
        while True:
            made = await build(fires.contests())
            fires.settle(made.settled)
            for contest in made.settled:
                event(log, logging.INFO, "contest settled", object=contest.ref, field=contest.path)
            begun = fires.begin(holder, made.changes, now_s=time.monotonic(), now=now_text())
            if not begun:
                return made
            await self._tell_contests(holder, begun)

    async def _tell_contests(self, holder: ObjectRef, begun: Iterable[Contest]) -> None:
        about = self.live(holder)
        for contest in begun:
            self.metrics.contests.labels(str(contest.ref.group_kind), contest.manager).inc()
            event(
                log, logging.WARNING, "contested", object=contest.ref, field=contest.path, manager=contest.manager,
                times=contest.times,
            )  # fmt: skip
            if about is not None:
                await self.events.warning(about, CONTESTED, f"{contest}; it is left alone for a while", action="Apply")

    async def set_status(self, ref: ObjectRef, status: Callable[[Manifest], Manifest]) -> None:
        """Write a Sync's status, made from the live object, and only if it says something new."""
        live = self.live(ref)
        if live is None:
            return
        wanted = status(live)
        if wanted == (live.get("status") or {}):
            return
        try:
            self.cache.wrote(await write_sync_status(self.session, live, wanted))
        except (NotFound, Conflict):
            return  # it is gone, or was made anew: there is nobody to tell
        except ApiError as error:
            level = self.news.level(("status", ref), str(error))
            event(log, level, "status not written", object=ref, error=error)
