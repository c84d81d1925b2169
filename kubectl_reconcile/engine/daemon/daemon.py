"""Follows all Syncs of a cluster, and all CRs whose kind has a module, for as long as it runs.

Events in, work out: a *watch event* says which item to look at, the *work queue* says when, a
*pass* looks at it. Nothing is done per tick: a repository without news costs one question per
interval, an idle cluster costs no request at all.

Rules:

- One item is never worked on twice at once; what fails is tried again, later and later.
- Whatever goes wrong with one item ends on that item, and the others go on.
- Told to end, it finishes the requests under way and leaves the rest to its successor, which
  needs nothing but the cluster and the repository to go on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, NotFound, ServerError, Unreachable
from kubectl_reconcile.core.annotations import PUSHED_AT
from kubectl_reconcile.core.daemon.holding import Holding
from kubectl_reconcile.core.daemon.pass_events import Pushed
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.daemon.watch_events import ItemIndex
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.engine.api.sync_requests import SYNCS, daemon_namespace, now_text
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.cr_controller import CrController, OutsidePasses
from kubectl_reconcile.engine.daemon.health.health_watch import HealthWatch
from kubectl_reconcile.engine.daemon.http import serving
from kubectl_reconcile.engine.daemon.kinds_watch import KindsWatch
from kubectl_reconcile.engine.daemon.push_receiver import PushReceiver
from kubectl_reconcile.engine.daemon.push_server import serving_pushes
from kubectl_reconcile.engine.daemon.replicas.fence import Fences
from kubectl_reconcile.engine.daemon.replicas.leases import LEASE, Leases
from kubectl_reconcile.engine.daemon.replicas.shard import Shard
from kubectl_reconcile.engine.daemon.sources.git_lanes import JOBS_AT_ONCE, GitLanes
from kubectl_reconcile.engine.daemon.sync_controller import SyncController
from kubectl_reconcile.engine.daemon.turns.queue import Turn
from kubectl_reconcile.engine.daemon.turns.workers import Workers
from kubectl_reconcile.engine.daemon.watch_router import WatchRouter
from kubectl_reconcile.engine.modules import metacontroller
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry import loop_monitor
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.engine.telemetry.memory import Tidying
from kubectl_reconcile.source.policy import SourcePolicy
from kubectl_reconcile.source.running.places import TENANT

_STUCK_S = 30.0
_GRACE_S = 20.0
_KNOCK_S = 3.0
_SWITCH_S = 0.001
"""For how long a thread that parses or plans for one Sync may keep the event loop from going on with others, in seconds."""

Page: TypeAlias = Callable[[Session], AbstractAsyncContextManager[str]]
"""Serves a page beside the daemon whose session it is, and tells at which address."""

log = logging.getLogger(__name__)


class SourcePace(Struct, frozen=True):
    """How many sources are asked at a time, and the shortest interval between two looks at one."""

    jobs: int
    least_interval_s: float


async def serve(
    access: Access,
    *,
    cache_dir: Path | None,
    listen: str,
    listen_hooks: str = "",
    page: Page | None = None,
    lease_namespace: str,
    module_accounts: bool = False,
    sources: SourcePolicy,
    pace: SourcePace,
) -> None:
    """Run a daemon until SIGTERM or SIGINT, with its HTTP answers and its Lease.

    With *module_accounts* it acts for CRs as accounts of their modules in *lease_namespace*.
    *access* says which cluster, and with a namespace, which part of it; *sources* what Syncs may follow, and *pace* how often;
    *page* what serves a page beside it, and where. A server that doesn't answer yet is waited for.

    Raises:
        KubeconfigError: nothing says how to reach a cluster.
        ApiError: the server doesn't let us.
        ListenError: the address can't be listened on.
    """
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with await Client.connect(access) as client:
        session = await _opened(client, sources, cache_dir, stopping)
        if session is None:
            return
        namespace = access.namespace or ""
        leases = lease_namespace or namespace or await _home(client)
        session.module_accounts = leases if module_accounts else ""
        daemon = Daemon(
            session,
            stopping,
            namespace=namespace,
            lease_namespace=leases,
            git_jobs=pace.jobs,
            least_interval_s=pace.least_interval_s,
        )
        pushes = PushReceiver(client, daemon.context.metrics, daemon.context.live, daemon.pushed)
        async with (
            serving(listen, daemon.context.metrics, alive=daemon.alive, ready=daemon.ready) as address,
            serving_pushes(listen_hooks, pushes.receive) as hooks,
            page(session) if page else nullcontext("") as shown,
        ):
            event(
                log,
                logging.INFO,
                "started",
                server=client.server,
                listen=address,
                hooks=hooks or "none",
                ui=shown or "none",
            )
            sys.setswitchinterval(_SWITCH_S)
            with loop_monitor.watched(daemon.context.metrics):
                await daemon.run()
    event(log, logging.INFO, "ended")


async def _opened(
    client: Client, sources: SourcePolicy, cache_dir: Path | None, stopping: asyncio.Event
) -> Session | None:
    """Return a session as soon as the server answers; None if we are told to end before that."""
    while not stopping.is_set():
        try:
            return await Session.over(client, sources, cache_dir)
        except (Unreachable, ServerError) as error:
            event(log, logging.WARNING, "waiting for the server", error=error)
            await _set_within(stopping, _KNOCK_S)
    return None


async def _home(client: Client) -> str:
    """Return the namespace where a daemon of all namespaces keeps its Leases, made where it isn't there yet.

    Raises:
        ApiError: it is missing, and may not be made.
    """
    name = daemon_namespace()
    try:
        await client.get(f"/api/v1/namespaces/{name}")
    except NotFound:
        with suppress(AlreadyExists):
            await client.create(
                "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            )
    return name


async def _set_within(stopping: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)
    return stopping.is_set()


class Daemon:
    """The loop; *namespace* limits it to the Syncs and CRs of one namespace. Its Leases are in *lease_namespace*."""

    def __init__(
        self,
        session: Session,
        stopping: asyncio.Event,
        *,
        namespace: str = "",
        lease_namespace: str = "default",
        git_jobs: int = JOBS_AT_ONCE,
        least_interval_s: float = 0.0,
    ) -> None:
        self.context = context = DaemonContext(session, self._owns, stopping)
        self._fences = Fences(lambda: self.shard.valid_until_s)
        leases = Leases(session.client, context.cache, lease_namespace, namespace)
        self.shard = Shard(leases, self._on_share, self._fences.look, self._let_go)
        self._held: set[ObjectRef] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._lanes = GitLanes(context.metrics, git_jobs)
        self._index = ItemIndex(namespace)
        health = HealthWatch(context, self._fenced, self._index.cr_of)
        self._workers = Workers(context.queue, self._have, stopping, _tell_of_failure)
        self._syncs = SyncController(
            context, self._lanes, health, lease_namespace, self._workers.away, least_interval_s, self._fenced
        )
        self._crs = CrController(context, OutsidePasses(self._workers.away))
        self._kinds = KindsWatch(context, namespace, {}, self._syncs.kinds_changed)
        self._router = WatchRouter(context, self._syncs, self._index, self._kinds.crd_changed, self._kinds.established)
        self._holding = Holding(
            self._index,
            is_ours=lambda sync: self.shard.share.holds(str(self._router.top_of(sync))),
            has_module=lambda kind: any(gvk.group_kind == kind for gvk in session.modules),
        )
        context.cache.keeps = lambda feed, stored: self._holding.is_whole(
            feed.label_selector, stored.ref.group_kind, stored.labels
        )
        self._is_ready = False
        self._turned_s = time.monotonic()

    # Running ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow until told to stop."""
        self.context.cache.subscribe(self._router.on_event)
        lease = self.context.session.discovery.find(LEASE.api_version, LEASE.kind)
        if lease is None:
            raise ApiError("the cluster serves no Leases, which daemons use to find each other")
        metrics = self.context.metrics
        self.context.session.client.count_answers(
            lambda verb, code: metrics.cluster.requests.labels(verb, str(code)).inc()
        )
        metrics.shard.members.set_function(lambda: len(self.shard.share.group.members))
        metrics.shard.items.set_function(lambda: len(self._held))
        metrics.contention.fields.set_function(lambda: len(self.context.contention))
        cache, objects = self.context.cache, metrics.cluster.objects
        objects.labels("whole").set_function(lambda: cache.snapshot().count(whole=True))
        objects.labels("bare").set_function(lambda: cache.snapshot().count(whole=False))
        workers = self._workers.begin()
        others = [
            asyncio.create_task(self._kinds.run(), name="kinds"),
            asyncio.create_task(self._turn(), name="turn"),
            asyncio.create_task(self._syncs.observed.run(), name="observed commits"),
        ]
        shard = asyncio.create_task(self.shard.run(lease), name="shard")
        self._tasks = [*workers, *others, shard]
        for task in self._tasks:
            task.add_done_callback(_tell_of_failure)
        try:
            if await self._kinds.start():
                self._is_ready = True
                event(log, logging.INFO, "following", syncs=len(self._index))
            if place := os.environ.get(metacontroller.VARIABLE):
                self.context.files.watch(metacontroller.folder_of(place), metacontroller, self._kinds.changed.set)
            await self.context.stopping.wait()
        finally:
            self.context.stopping.set()
            await self._end(workers, [*others, shard])

    async def _end(self, workers: list[asyncio.Task[None]], others: list[asyncio.Task[None]]) -> None:
        """Let passes finish the requests under way; idle workers and whoever takes too long are ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await self.context.queue.idle()
        ended = [*workers, *others, *self._workers.spares]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        self._lanes.close()
        self._syncs.health.close()
        await self.shard.leave()
        await self.context.files.close()
        await self.context.cache.close()
        await self.context.view.variables.close()

    async def pushed(self, sync: ObjectRef) -> None:
        """Have a Sync look at its repository, whichever replica follows it.

        Raises:
            ApiError: it is another one's, and the server refuses or doesn't answer.
        """
        if self._owns(sync):
            self._syncs.notify(sync, Pushed())
            return
        annotations = {PUSHED_AT: f"{now_text()}-{uuid.uuid4().hex[:8]}"}
        path = f"{SYNCS}/namespaces/{sync.namespace}/syncs/{sync.name}"
        await self.context.session.client.patch(path, {"metadata": {"annotations": annotations}})

    async def _turn(self) -> None:
        """Show that the loop turns, count what waits, and tidy up where nothing is to be done."""
        tidying = Tidying()
        while True:
            self._turned_s = time.monotonic()
            self.context.metrics.queue.depth.set(len(self.context.queue))
            await tidying.at_rest(is_so=self.context.queue.is_at_rest)
            await asyncio.sleep(1.0)

    def alive(self) -> str:
        """Return what is wrong with the loop, or nothing: all that it does it must be doing still."""
        stuck_s = time.monotonic() - self._turned_s
        if stuck_s > _STUCK_S:
            return f"the event loop has been stuck for {stuck_s:.0f} s"
        ended = next((task for task in self._tasks if task.done()), None)
        return f"the task {ended.get_name()} has ended" if ended and not self.context.stopping.is_set() else ""

    def ready(self) -> str:
        """Return what is still missing, or nothing."""
        if not self._is_ready:
            return "the caches aren't filled yet"
        return self._kinds.trouble() or self.shard.trouble()

    # Which items are ours ----------------------------------------------------------------------

    def _owns(self, ref: ObjectRef) -> bool:
        return self.shard.owns(str(self._router.top_of(ref)))

    def _fenced(self, ref: ObjectRef) -> AbstractContextManager[object]:
        """Return what stands around writes for an item while it is ours."""
        return self._fences.around(lambda: self._owns(ref))

    async def _let_go(self) -> None:
        """Return when nothing that isn't ours is being written any more, nor held."""
        await self._fences.others_let_go()
        self.context.cache.slim()

    def _on_share(self) -> None:
        """Take up what is ours now, and release what no longer is.

        Either way what we knew of it is forgotten: another replica may have brought it to a later commit meanwhile. A watch may show more than what
        is managed here: all members of Syncs share one.
        """
        self._fences.look()
        self._holding.share_changed()
        kinds = (SYNC.group_kind, *(gvk.group_kind for gvk in self.context.session.modules))
        items = {
            stored.ref
            for kind in kinds
            for stored in self.context.cache.snapshot().of_kind(kind)
            if self._index.looks_after(stored.ref, stored.labels)
        }
        held = {ref for ref in items if self._owns(ref)}
        for ref in self._held ^ held:
            self._syncs.forget(ref)
        for ref in held - self._held:
            self.context.queue.add(ref, Priority.PUSH)
        self._held = held

    # Work out --------------------------------------------------------------------------------

    async def _have(self, turn: Turn[ObjectRef]) -> None:
        """Have a turn."""
        TENANT.set(turn.item.namespace)
        self.context.metrics.queue.seconds.labels(turn.priority.name.lower()).observe(turn.waited_s)
        if self.context.stop(turn.item).is_set():
            self._held.discard(turn.item)
        else:
            self._held.add(turn.item)
            await self._look_at(turn.item, turn.priority)

    async def _look_at(self, ref: ObjectRef, priority: Priority) -> None:
        """Work on one item while it is ours. Whatever goes wrong ends on it, and the worker lives on."""
        if task := asyncio.current_task():
            task.set_name(f"{task.get_name().partition(':')[0]}: {ref}")  # for whoever asks what the loop is at
        with self._fenced(ref):
            if ref.group_kind == SYNC.group_kind:
                await self._syncs.run(ref, asked=priority is Priority.ASKED)
            else:
                await self._crs.run(ref)


def _tell_of_failure(task: asyncio.Task[Any]) -> None:
    """Log why a task has ended that never should; ``alive`` tells only that it has."""
    if not task.cancelled() and (error := task.exception()):
        event(log, logging.ERROR, "task ended", task=task.get_name(), error=repr(error))
