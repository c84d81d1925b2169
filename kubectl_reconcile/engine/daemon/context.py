"""What all passes of a running daemon share: the cluster's cache, the queue, and the ways to report.

Two things happen in every pass besides its own work: changes are written through one kind of
writer, which feeds the cache and counts; and how it went is told, as a status, an event and a
log line.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from kubectl_reconcile.cluster.cache import Cache
from kubectl_reconcile.cluster.connection import FENCE
from kubectl_reconcile.cluster.errors import ApiError, Conflict, Fenced, NotFound
from kubectl_reconcile.core.annotations import renamed
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.daemon.contention import ContentionBegun, ContentionSettled, ContentionTracker
from kubectl_reconcile.core.daemon.pass_events import AnnotationRenamed
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Contention, Contentions
from kubectl_reconcile.core.resources.applyset import ID as SET_ID
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.flow_control import MOST as MANY
from kubectl_reconcile.engine.apply.flow_control import FlowControl
from kubectl_reconcile.engine.apply.writer import Hooks, Signal, Writer
from kubectl_reconcile.engine.daemon.sinks import EventSink, LogSink, MetricsSink, Sink
from kubectl_reconcile.engine.daemon.sources.file_watch import FileWatch
from kubectl_reconcile.engine.daemon.sources.variables_watch import VariablesWatch
from kubectl_reconcile.engine.daemon.turns.queue import TurnsUnderWay, WorkQueue
from kubectl_reconcile.engine.daemon.views import FollowingView, MemberFeeds, OwnRights
from kubectl_reconcile.engine.modules.action_runner import ActionRunner
from kubectl_reconcile.engine.modules.call_timeout import ModuleCalls
from kubectl_reconcile.engine.sync.books import write_sync_status
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

log = logging.getLogger(__name__)

Waiting: TypeAlias = Callable[[ObjectRef, str], None]
"""Hears what an object lacks that is waited for, and nothing once the wait is over."""


class Stop(Struct):
    """Set once the daemon has been told to end, an item is no longer ours to work on, or this pass over it is superseded."""

    stopping: asyncio.Event
    is_ours: Callable[[], bool]
    is_superseded: bool = False

    def is_set(self) -> bool:
        """Tell whether it is time to stop."""
        return self.is_superseded or self.stopping.is_set() or not self.is_ours()


@dataclass(slots=True)
class DaemonContext:
    """One running daemon. *stopping* is set when it has been told to end; *owns* tells which items are its own.

    *session* acts as the daemon itself, which writes Syncs, Leases and Events. Members are written as their Sync's account
    (``session_of``), children as their module's (``session_for``).
    """

    session: Session
    owns: Callable[[ObjectRef], bool]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    metrics: Metrics = field(default_factory=Metrics)
    queue: WorkQueue[ObjectRef] = field(default_factory=lambda: WorkQueue(TurnsUnderWay(attrgetter("namespace"))))
    contention: ContentionTracker = field(default_factory=ContentionTracker)
    files: FileWatch = field(default_factory=FileWatch)
    pace: FlowControl = field(default_factory=FlowControl)
    cache: Cache = field(init=False)
    view: FollowingView = field(init=False)
    events: Events = field(init=False)
    sinks: tuple[Sink, ...] = field(init=False)
    _log_sink: LogSink = field(default_factory=LogSink)
    _telling: dict[ObjectRef, asyncio.Lock] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make what hangs on the session's connection, and its sinks."""
        self.cache = Cache(self.session.client)
        members = MemberFeeds(self.cache, OwnRights(self.session.client))
        calls = ModuleCalls(self.metrics, took=self._was_held_up)
        self.view = FollowingView(self.cache, calls, members, VariablesWatch(self.session))
        self.events = Events(self.session.client)
        self.session.operands.recalls = False  # it is us who note what is observed
        self.sinks = (self._log_sink, MetricsSink(self.metrics))

    def _was_held_up(self, cr: ObjectRef, seconds: float) -> None:
        self.queue.pacing.held_up(cr, cr.namespace, seconds)

    def live(self, ref: ObjectRef, known: Manifest | None = None) -> Manifest | None:
        """Return the live object as the cache has it: *known* itself where that is still as it is, for whoever only reads it."""
        stored = self.cache.snapshot().stored(ref)
        if known is not None and stored is not None and stored.is_version_of(known):
            return known
        return stored.manifest() if stored else None

    def above(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """Return the Syncs that a Sync is a member of, or a member of whose members, and so on; where that is a circle, itself among them."""
        snapshot, found, queue = self.cache.snapshot(), set[ObjectRef](), [ref]
        while queue:
            stored = snapshot.stored(queue.pop())
            set_id = stored.labels.get(PART_OF, "") if stored is not None else ""
            sets = (each.ref for each in (snapshot.labelled(SET_ID, set_id) if set_id else ()))
            new = {each for each in sets if each.group_kind == SYNC.group_kind and applyset_id(each) == set_id} - found
            found |= new
            queue += sorted(new)
        return frozenset(found)

    def forget(self, ref: ObjectRef) -> None:
        """Drop what is remembered of an item that is gone."""
        self.queue.forget(ref)
        self.contention.forget(ref)
        self.files.unwatch(ref)
        self.view.members.release(ref)
        self.view.variables.forget(ref)
        self._log_sink.forget(ref)
        self._telling.pop(ref, None)

    # As whom ---------------------------------------------------------------------------------

    def session_of(self, sync: Sync) -> Session:
        """Return the session as which all is done for the members of a Sync."""
        return self.session.acting_for(sync)

    def session_for(self, module: Module) -> Session:
        """Return the session as which all is done for the CRs of a module."""
        account = self.session.account_of(module)
        return self.session.acting_as(account) if account else self.session

    async def warn_of_renamed(self, ref: ObjectRef, live: Manifest) -> None:
        """Say once that an object carries annotations by names of earlier versions."""
        for sentence in self._log_sink.news.of(("renamed", ref), renamed(live)):
            await self.hear(ref, AnnotationRenamed(sentence))

    def stop(self, ref: ObjectRef) -> Stop:
        """Return what ends a pass over *ref* early: for good, where a fence stands around it."""
        fence = FENCE.get()
        return Stop(self.stopping, lambda: not fence.is_shut() if fence else self.owns(ref))

    def writer(
        self,
        session: Session,
        stop: Signal,
        *,
        provisional: bool = False,
        waiting: Waiting = lambda _ref, _why: None,
        writes: int = 1,
        tenant: str,
    ) -> Writer:
        """Return a writer that keeps the cache up to date, counts what it does, and respects *stop*; all share one pace.

        It writes as *session* does, within the share of *tenant*. *waiting* is informed of what it waits for. Who makes many *writes* lets others go first.
        """
        hooks = Hooks(
            result=lambda result: self._heard(result, stop), wrote=self.cache.wrote, deleted=self.cache.deleted,
            waiting=waiting,
        )  # fmt: skip
        actor = ActionRunner(session.reach, session.modules)

        async def act(change: Change) -> Manifest | None:
            fence = FENCE.get()
            async with fence.around(str(change.ref)) if fence else nullcontext():
                return await actor.run(change)

        pace = self.pace.share(tenant, bulk=writes > MANY)
        return Writer(session.client, hooks, stop, pace, provisional=provisional, act=act)

    def _heard(self, result: Result, stop: Signal) -> None:
        """Tell sinks of a write, and remember it for contention; what is taken is looked at before it is judged.

        What comes to nothing because the pass ends is a hand-over and no failure: whoever goes on tells how that went.
        """
        if result.state is ResultState.TAKEN or (result.state is not ResultState.SUCCEEDED and stop.is_set()):
            return
        if result.state is ResultState.SUCCEEDED and result.wrote:
            self.contention.wrote(result.change, time.monotonic())
        for sink in self.sinks:
            sink.hear(result.change.ref, result)

    async def hear(self, item: ObjectRef, what: object) -> None:
        """Tell all sinks what happened to an item, or what is done about it."""
        for sink in self.sinks:
            sink.hear(item, what)
        await EventSink(self.events, self.live).hear(item, what)

    async def overwritten(
        self, item: ObjectRef, writes: Sequence[Change], settled: Sequence[Contention]
    ) -> Contentions | None:
        """Return all fields to be left alone, where some of what is about to be written for *item* have just become such; None where none has.

        Fields whose contention is *settled* are as they should be.
        """
        tracker = self.contention
        tracker.settle(settled)
        for each in settled:
            await self.hear(item, ContentionSettled(each))
        begun = tracker.begin(item, writes, now_s=time.monotonic(), now=now_text())
        for one in begun:
            await self.hear(item, ContentionBegun(one))
        return tracker.contentions() if begun else None

    async def set_status(
        self, ref: ObjectRef, status: Callable[[Manifest], Manifest], known: Manifest | None = None
    ) -> bool:
        """Write a Sync's status, made from the live object, and only if it says something new; tell whether it says so now.

        Of several who have something to tell at a time, each adds to what the one before it told. *known* is what was read of it before.
        """
        async with self._telling.setdefault(ref, asyncio.Lock()):
            return await self._set_status(ref, status, known)

    async def _set_status(self, ref: ObjectRef, status: Callable[[Manifest], Manifest], known: Manifest | None) -> bool:
        live = self.live(ref, known)
        if live is None:
            return False
        wanted = status(live)
        if wanted == (live.get("status") or {}):
            return True
        try:
            self.cache.wrote(await write_sync_status(self.session, live, wanted))
        except (NotFound, Conflict, Fenced):
            return False  # it is gone, recreated, or another replica's: there is nobody to tell, or nothing for us
        except ApiError as error:
            level = self._log_sink.news.level(("status", ref), str(error))
            event(log, level, "status not written", object=ref, error=error)
            return False
        return True


@asynccontextmanager
async def told_late(after_s: float, tell: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Have *tell* called should the block take longer than *after_s*; it has come to its end when the block has."""
    over = asyncio.Event()

    async def wait() -> None:
        try:
            async with asyncio.timeout(after_s):
                await over.wait()
        except TimeoutError:
            await tell()

    waiting = asyncio.create_task(wait())
    try:
        yield
    finally:
        over.set()
        await waiting
