"""Follows all Syncs of a cluster, and all CRs whose kind has a module, for as long as it runs.

Events in, work out: a *watch event* says which item to look at, the *work queue* says when, a
*pass* looks at it. Nothing is done per tick: a repository without news costs one ``ls-remote`` per
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
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.cache import Event, Feed, StoredObject
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.connection import FENCE
from kubectl_reconcile.cluster.errors import ApiError, ServerError, TooManyRequests, Unreachable
from kubectl_reconcile.core.annotations import MODULE_LABEL, PUSHED_AT, RESUME_REQUESTED_AT, names_of
from kubectl_reconcile.core.module.api import INSTANCE_LABEL, Context
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef, annotations_of, condition_of
from kubectl_reconcile.core.planning.kinds import CRD
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import SYNC, Sync, SyncSpecError
from kubectl_reconcile.engine.api.sync_requests import SYNCS, now_text
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.cr_controller import CrController
from kubectl_reconcile.engine.daemon.http import serving
from kubectl_reconcile.engine.daemon.push_receiver import PushReceiver
from kubectl_reconcile.engine.daemon.queue import Priority
from kubectl_reconcile.engine.daemon.shard import LEASE, Shard
from kubectl_reconcile.engine.daemon.sync_controller import SyncController, is_asked
from kubectl_reconcile.engine.modules import metacontroller
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.logs import event

_WORKERS = 24
_KINDS_SETTLE_S = 0.3
_KINDS_RETRY_CAP_S = 10.0
_STUCK_S = 30.0
_DEEPEST = 8
_PASSING = (Unreachable, ServerError, TooManyRequests)
"""Failures of a feed that end by themselves; any other is somebody's to mend, and logged."""
_GRACE_S = 20.0
_KNOCK_S = 3.0

log = logging.getLogger(__name__)


async def serve(
    access: Access, *, cache_dir: Path | None, listen: str, lease_namespace: str, repositories: Path | None = None
) -> None:
    """Run a daemon until SIGTERM or SIGINT, with its HTTP answers and its Lease.

    *access* says which cluster, and with a namespace, which part of it; *repositories* below which folder Syncs may
    follow repositories of this machine. A server that doesn't answer yet is waited for.

    Raises:
        KubeconfigError: nothing says how to reach a cluster.
        ApiError: the server doesn't let us.
        ListenError: the address can't be listened on.
    """
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    async with await Client.connect(access) as client:
        session = await _opened(client, cache_dir, stopping)
        if session is None:
            return
        session.repositories = repositories
        namespace, leases = access.namespace or "", lease_namespace or client.namespace
        daemon = Daemon(session, stopping, namespace=namespace, lease_namespace=leases)
        pushes = PushReceiver(client, daemon.context.metrics, daemon.context.live, daemon.pushed)
        async with serving(
            listen, daemon.context.metrics, alive=daemon.alive, ready=daemon.ready, pushed=pushes.receive
        ) as address:
            event(log, logging.INFO, "started", server=client.server, listen=address)
            await daemon.run()
    event(log, logging.INFO, "ended")


async def _opened(client: Client, cache_dir: Path | None, stopping: asyncio.Event) -> Session | None:
    """Return a session as soon as the server answers; None if we are told to end before that."""
    while not stopping.is_set():
        try:
            return await Session.over(client, cache_dir)
        except (Unreachable, ServerError) as error:
            event(log, logging.WARNING, "waiting for the server", error=error)
            await _set_within(stopping, _KNOCK_S)
    return None


async def _set_within(stopping: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)
    return stopping.is_set()


class Daemon:
    """The loop; *namespace* limits it to the Syncs and CRs of one namespace. Its Leases are in *lease_namespace*."""

    def __init__(
        self, session: Session, stopping: asyncio.Event, *, namespace: str = "", lease_namespace: str = "default"
    ) -> None:
        self.context = context = DaemonContext(session, self._owns, stopping)
        self.shard = Shard(
            session.client, context.cache, lease_namespace, namespace, self._on_share, self._others_let_go
        )
        self._held: set[ObjectRef] = set()
        self._roots: list[Feed] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._namespace = namespace
        self._syncs = SyncController(context)
        self._domains = CrController(context)
        self._sets: dict[str, ObjectRef] = {}
        self._instances: dict[tuple[str, str, str], ObjectRef] = {}
        self._owners: dict[str, ObjectRef] = {}
        self._kinds_changed = asyncio.Event()
        self._established: dict[ObjectRef, list[GroupVersionKind]] = {}
        self._is_ready = False
        self._turned_s = time.monotonic()

    # Running ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow until told to stop."""
        self.context.cache.subscribe(self._on_event)
        lease = self.context.session.discovery.find(LEASE.api_version, LEASE.kind)
        if lease is None:
            raise ApiError("the cluster serves no Leases, by which daemons know of each other")
        metrics = self.context.metrics
        self.context.session.client.count_answers(lambda verb, code: metrics.requests.labels(verb, str(code)).inc())
        metrics.members.set_function(lambda: len(self.shard.share.group.members))
        metrics.held.set_function(lambda: len(self._held))
        self.context.metrics.backed_off.set_function(lambda: len(self.context.contention))
        self.context.metrics.objects.set_function(lambda: len(self.context.cache.snapshot().refs()))
        workers = [asyncio.create_task(self._work(), name=f"worker-{number}") for number in range(_WORKERS)]
        others = [
            asyncio.create_task(self._learn_kinds(), name="kinds"),
            asyncio.create_task(self._turn(), name="turn"),
        ]
        shard = asyncio.create_task(self.shard.run(lease), name="shard")
        self._tasks = [*workers, *others, shard]
        for task in self._tasks:
            task.add_done_callback(_tell_of_failure)
        try:
            await self._start()
            if place := os.environ.get(metacontroller.VARIABLE):
                self.context.files.watch(metacontroller.folder_of(place), metacontroller, self._kinds_changed.set)
            await self.context.stopping.wait()
        finally:
            self.context.stopping.set()
            await self._end(workers, [*others, shard])

    async def _start(self) -> None:
        """Bring in what everything hangs on: Syncs, CRDs, and the CRs of all modules."""
        session = self.context.session
        while not session.discovery.find(SYNC.api_version, SYNC.kind):
            event(
                log,
                logging.WARNING,
                "the cluster serves no Syncs",
                hint="install the CRDs: kubectl reconcile sync --install",
            )
            if await _set_within(self.context.stopping, _KNOCK_S):
                return
            with suppress(ApiError):
                await session.refresh()
        self._roots = self._root_feeds()
        for feed, failure in (await self.context.view.ensure(self._roots)).items():
            event(log, logging.ERROR, "not followed", kind=feed.resource.gvk.group_kind, error=failure)
        self._is_ready = True
        event(log, logging.INFO, "following", syncs=len(self._sets))

    def _root_feeds(self) -> list[Feed]:
        session, modules = self.context.session, self.context.session.modules
        served = {
            gvk: found for gvk in (SYNC, *modules) if (found := session.discovery.find(gvk.api_version, gvk.kind))
        }
        feeds = [Feed(resource, namespace=self._namespace) for resource in served.values()]
        if crds := session.resource(CRD):
            feeds.append(Feed(crds))
        return feeds + gather.child_feeds(session, [modules[gvk] for gvk in served if gvk in modules])

    async def _end(self, workers: list[asyncio.Task[None]], others: list[asyncio.Task[None]]) -> None:
        """Let passes finish the requests under way; idle workers and whoever takes too long are ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await self.context.queue.idle()
        for task in (*workers, *others):
            task.cancel()
        await asyncio.gather(*workers, *others, return_exceptions=True)
        await self.shard.leave()
        await self.context.files.close()
        await self.context.cache.close()

    async def pushed(self, sync: ObjectRef) -> None:
        """Have a Sync look at its repository, whichever replica follows it.

        Raises:
            ApiError: it is another one's, and the server refuses or doesn't answer.
        """
        if self._owns(sync):
            self._syncs.pushed(sync)
            return
        annotations = {PUSHED_AT: f"{now_text()}-{uuid.uuid4().hex[:8]}"}
        path = f"{SYNCS}/namespaces/{sync.namespace}/syncs/{sync.name}"
        await self.context.session.client.patch(path, {"metadata": {"annotations": annotations}})

    async def _turn(self) -> None:
        """Show that the loop turns, and count what waits."""
        while True:
            self._turned_s = time.monotonic()
            self.context.metrics.queue.set(len(self.context.queue))
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
            return "the caches are not filled yet"
        passing = (feed for feed in self._roots if isinstance(self.context.cache.failure(feed), _PASSING))
        late = next(passing, None)
        return f"{late} isn't followed: {self.context.cache.failure(late)}" if late else self.shard.trouble()

    # Which items are ours ----------------------------------------------------------------------

    def _owns(self, ref: ObjectRef) -> bool:
        return self.shard.owns(str(self._family(ref)))

    def _family(self, ref: ObjectRef) -> ObjectRef:
        """Return the CR on top of a nested one, since its pass writes what is below; anything else is on its own."""
        snapshot = self.context.cache.snapshot()
        for _ in range(_DEEPEST):
            stored = snapshot.stored(ref)
            above = self._owners.get(stored.controller_uid) if stored else None
            if above is None:
                break
            ref = above
        return ref

    def _on_share(self) -> None:
        """Take up what is ours now, and let go of what no longer is.

        Either way what we knew of it is forgotten: another replica may have brought it to a later commit meanwhile.
        """
        kinds = (SYNC.group_kind, *(gvk.group_kind for gvk in self.context.session.modules))
        items = {stored.ref for kind in kinds for stored in self.context.cache.snapshot().of_kind(kind)}
        held = {ref for ref in items if self._owns(ref)}
        for ref in self._held ^ held:
            self._syncs.forget(ref)
        for ref in held - self._held:
            self.context.queue.add(ref, Priority.PUSH)
        self._held = held

    async def _others_let_go(self) -> None:
        """Wait until nothing is worked on that isn't ours."""
        await self.context.queue.idle(lambda ref: not self._owns(ref))

    # Events in -------------------------------------------------------------------------------

    def _on_event(self, happened: Event) -> None:
        """Say which items an event concerns. Called in the loop; must not wait."""
        newest = happened.new or happened.old
        if newest is None:
            return
        if happened.ref.group_kind == SYNC.group_kind:
            self._on_sync(happened)
        elif happened.ref.group_kind == CRD:
            self._on_crd(happened)
        elif newest.gvk in self.context.session.modules:
            self._on_cr(happened, newest)
        if not happened.own:
            self._on_member(happened)
        # A status that we gave a nested CR is our own write, and news for the CR above it.
        if not happened.own or newest.gvk in self.context.session.modules:
            self._on_child(newest)

    def _on_sync(self, happened: Event) -> None:
        ref = happened.ref
        if self._namespace not in {"", ref.namespace}:
            return
        if happened.new is None:
            self._syncs.forget(ref)
            return
        manifest = happened.new.manifest()
        if _is_new(RESUME_REQUESTED_AT, happened):
            self._resume(ref)
        if _is_new(PUSHED_AT, happened):
            self._syncs.pushed(ref)
        with suppress(SyncSpecError):
            self._sets[set_id_of(Sync.of(manifest))] = ref
        self._syncs.wake_dependents(ref)
        followed = self._syncs.followed.get(ref)
        if is_asked(manifest) or manifest["metadata"].get("deletionTimestamp"):
            self.context.queue.add(ref, Priority.ASKED)
        elif (followed is None and happened.old is None) or _generation(happened.old) != _generation(happened.new):
            self.context.queue.add(ref, Priority.PUSH)

    def _resume(self, sync: ObjectRef) -> None:
        """End the contention of a Sync and of the CRs in it, and try again at once."""
        for holder in self.context.contention.holders():
            stored = self.context.cache.snapshot().stored(holder)
            if holder == sync or (stored and self._sets.get(stored.labels.get(PART_OF, "")) == sync):
                self.context.contention.resume(holder)
                self.context.queue.add(holder, Priority.ASKED)

    def _on_crd(self, happened: Event) -> None:
        """A kind came, went or changed; mere status updates are no news, but Established is."""
        self._established[happened.ref] = _established_by(happened.new)
        if _crd_facts(happened.old) != _crd_facts(happened.new):
            self._kinds_changed.set()

    def _on_cr(self, happened: Event, stored: StoredObject) -> None:
        """Wake the CR itself; a status that we wrote ourselves is no news."""
        if happened.own and _generation(happened.old) == _generation(happened.new):
            return
        if not self._looks_after(stored):
            return
        module = self.context.session.modules[stored.gvk]
        name = Context(now="", module=module.name, cr=stored.manifest()).name()
        if happened.new is None:
            self._instances.pop((module.name, stored.ref.namespace, name), None)
            self._owners.pop(stored.uid, None)
            self.context.forget(stored.ref)
            return
        if _is_new(RESUME_REQUESTED_AT, happened):
            self.context.contention.resume(stored.ref)
        self._instances[module.name, stored.ref.namespace, name] = stored.ref
        self._owners[stored.uid] = stored.ref
        self.context.queue.changed(stored.ref)

    def _looks_after(self, cr: StoredObject) -> bool:
        """Tell whether a CR is ours: a member of a Sync may be in any namespace, and all members share one watch."""
        return self._namespace in {"", cr.ref.namespace} or cr.labels.get(PART_OF, "") in self._sets

    def _on_member(self, happened: Event) -> None:
        for stored in (happened.old, happened.new):
            sync = self._sets.get(stored.labels.get(PART_OF, "")) if stored else None
            followed = self._syncs.followed.get(sync) if sync else None
            if sync and followed and followed.desired is not None:
                followed.changed_live(happened.ref)
                self.context.queue.changed(sync)

    def _on_child(self, stored: StoredObject) -> None:
        """Wake the CR that a child, or an object that its module reads, belongs to."""
        key = (stored.labels.get(MODULE_LABEL, ""), stored.ref.namespace, stored.labels.get(INSTANCE_LABEL, ""))
        found = {self._instances.get(key), self._owners.get(stored.controller_uid), *self._readers(stored)}
        for cr in (each for each in found if each is not None):
            self.context.queue.changed(cr)

    def _readers(self, stored: StoredObject) -> Iterator[ObjectRef]:
        """Yield the CRs whose modules say, CR by CR, that they read this object."""
        for module in self.context.session.modules.values():
            for reads in module.reads:
                if reads.of is None or reads.gvk.group_kind != stored.ref.group_kind:
                    continue
                for (name, namespace, _), ref in self._instances.items():
                    live = (
                        self.context.live(ref)
                        if name == module.name and namespace in {"", stored.ref.namespace}
                        else None
                    )
                    if live is not None and reads.of(live).matches(stored.manifest()):
                        yield ref

    async def _learn_kinds(self) -> None:
        """Look again at what the server knows whenever CRDs come, change or go.

        Established comes before discovery lists a kind, by moments or, where the server is busy, by
        seconds: until all are listed, it is asked again.
        """
        pause_s = _KINDS_SETTLE_S
        while True:
            await self._kinds_changed.wait()
            await asyncio.sleep(pause_s)
            self._kinds_changed.clear()
            try:
                await self.context.session.refresh()
                self._roots = self._root_feeds()
                await self.context.view.ensure(self._roots)
            except ApiError as error:
                event(log, logging.WARNING, "kinds not refreshed", error=error)
                self._kinds_changed.set()
            if late := self._is_unlisted():
                self._kinds_changed.set()
            pause_s = min(pause_s * 2, _KINDS_RETRY_CAP_S) if late else _KINDS_SETTLE_S
            for ref, followed in self._syncs.followed.items():
                followed.whole = True
                self.context.queue.add(ref, Priority.RESYNC)

    def _is_unlisted(self) -> bool:
        """Tell whether some kind that is Established isn't among those that we know."""
        find = self.context.session.discovery.find
        return any(not find(gvk.api_version, gvk.kind) for kinds in self._established.values() for gvk in kinds)

    # Work out --------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            turn = await self.context.queue.get()
            self.context.metrics.queue_seconds.labels(turn.priority.name.lower()).observe(turn.waited_s)
            try:
                if self.context.stop(turn.item).is_set():
                    self._held.discard(turn.item)
                else:
                    self._held.add(turn.item)
                    await self._look_at(turn.item, turn.priority)
            finally:
                self.context.queue.done(turn.item)

    async def _look_at(self, ref: ObjectRef, priority: Priority) -> None:
        """Work on one item. Whatever goes wrong, the worker lives on and the item is tried again."""
        is_sync, stop = ref.group_kind == SYNC.group_kind, self.context.stop(ref)
        FENCE.set(lambda: "" if self._owns(ref) else "another replica may work on it by now")
        try:
            if is_sync:
                await self._syncs.run(ref, asked=priority is Priority.ASKED)
            else:
                await self._domains.run(ref)
        except ApiError as error:
            if stop.is_set():
                self.context.queue.add(ref, Priority.RESYNC)  # for as long as it isn't ours, that leads to nothing
                return
            retry_s = self.context.queue.failed(ref)
            level = self.context.news.level(("pass", ref), str(error))
            event(log, level, "pass failed", object=ref, error=error, retry_s=retry_s)
            if is_sync:
                await self._syncs.report(ref, Report(ConditionReason.CLUSTER, str(error)))
            else:
                await self._domains.failed(ref, str(error))
        except Exception as error:  # noqa: BLE001 - one poison object must not stop the others
            retry_s = self.context.queue.failed(ref)
            level = self.context.news.level(("pass", ref), repr(error), logging.ERROR)
            event(log, level, "pass crashed", object=ref, error=error, retry_s=retry_s, exc_info=True)
            if is_sync:
                await self._syncs.report(ref, Report(ConditionReason.CRASHED, f"{type(error).__name__}: {error}"))
            else:
                await self._domains.failed(ref, f"{type(error).__name__}: {error}")


def _tell_of_failure(task: asyncio.Task[Any]) -> None:
    """Log why a task has ended that never should; ``alive`` tells only that it has."""
    if not task.cancelled() and (error := task.exception()):
        event(log, logging.ERROR, "task ended", task=task.get_name(), error=repr(error))


def _is_new(annotation: str, happened: Event) -> bool:
    """Tell whether somebody just set an annotation to another value."""
    if happened.old is None or happened.new is None:
        return False
    names = [name for name in names_of(annotation) if name.encode() in happened.new.raw]
    before, after = (annotations_of(each.manifest()) if names else {} for each in (happened.old, happened.new))
    return any(after.get(name) and after.get(name) != before.get(name) for name in names)


def _generation(stored: StoredObject | None) -> int:
    return int(stored.manifest()["metadata"].get("generation", 0)) if stored else 0


def _crd_facts(stored: StoredObject | None) -> tuple[int, str]:
    """Return what of a CRD decides which kinds are served, and how."""
    if stored is None:
        return 0, ""
    conditions = (stored.manifest().get("status") or {}).get("conditions") or ()
    established = next((each["status"] for each in conditions if each["type"] == "Established"), "")
    return _generation(stored), established


def _established_by(stored: StoredObject | None) -> list[GroupVersionKind]:
    """Return the kinds that the server promises by a CRD's condition Established."""
    crd = stored.manifest() if stored else {}
    established = (condition_of(crd, "Established") or {}).get("status") == "True" if crd else False
    if not established or crd["metadata"].get("deletionTimestamp"):
        return []
    spec = crd["spec"]
    versions = (version["name"] for version in spec["versions"] if version.get("served"))
    return [GroupVersionKind(spec["group"], version, spec["names"]["kind"]) for version in versions]
