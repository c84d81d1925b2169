"""The turns of followed Syncs: events in, instructions out, until nothing is left to do.

Nothing is decided here: what happens is handed to ``core.daemon.pass_state`` as an event, the instructions that it returns are
carried out one by one (``sync_work``), and their results are handed back as events. Whoever logs, counts or makes
Kubernetes Events hears each of both (``sinks``).

Whatever goes wrong ends as a condition on the Sync.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.pass_phase import is_at_rest
from kubectl_reconcile.core.daemon.pass_state import step
from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S, Priority
from kubectl_reconcile.core.daemon.watch_events import is_asked
from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, map_at
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.status import ConditionReason
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.dependencies import Dependencies
from kubectl_reconcile.engine.daemon.finalization import Finalization
from kubectl_reconcile.engine.daemon.health.health_watch import HealthWatch
from kubectl_reconcile.engine.daemon.sources.followed import FollowedSync
from kubectl_reconcile.engine.daemon.sources.git_lanes import GitLanes
from kubectl_reconcile.engine.daemon.sources.observed_commits import ObservedCommits
from kubectl_reconcile.engine.daemon.sync_work import SyncWork
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.source.errors import SourceError

log = logging.getLogger("kubectl_reconcile.daemon")


@dataclass(slots=True)
class SyncController:
    """The passes of all Syncs. *lanes* ask their sources, *health* watches their members; *namespace* is where the daemon lives.

    *lent* has another worker take the place of a pass that waits, for as long as it is open; what is written outside a turn is *fenced*
    for as long as the Sync is ours. No repository is checked for new commits sooner than
    *least_interval_s* after the last time.
    """

    context: DaemonContext
    lanes: GitLanes
    health: HealthWatch
    namespace: str = ""
    lent: Callable[[], AbstractContextManager[object]] = nullcontext
    least_interval_s: float = 0.0
    fenced: Callable[[ObjectRef], AbstractContextManager[object]] = lambda _: nullcontext()
    dependencies: Dependencies = field(init=False)
    _followed: dict[ObjectRef, FollowedSync] = field(default_factory=dict)
    _work: SyncWork = field(init=False)
    _finalization: Finalization = field(init=False)
    _telling: set[asyncio.Task[None]] = field(default_factory=set)
    observed: ObservedCommits = field(init=False)

    def __post_init__(self) -> None:
        """Make what carries out instructions, and what manages Syncs that are deleted."""
        self.dependencies = Dependencies(self.context)
        self._work = SyncWork(
            self.context, self.lanes, self.dependencies, self.health, lambda ref: self.notify(ref, on.Pushed()),
            self._moved, self.lent,
        )  # fmt: skip
        self._finalization = Finalization(self.context, self.namespace)
        self.observed = ObservedCommits(self._note_observed)

    # Between turns ---------------------------------------------------------------------------

    def notify(self, ref: ObjectRef, happened: on.Event) -> None:
        """Take in what happened to a Sync between two turns; all that may follow at once is another turn."""
        followed = self._followed.get(ref) or FollowedSync()
        followed.state, instructions = step(followed.state, happened, time.monotonic())
        if isinstance(happened, on.Forgotten):
            self._followed.pop(ref, None)
        self._settle_reading(followed)
        for instruction in instructions:
            if isinstance(instruction, on.ForgetFailures):
                self.context.queue.succeeded(ref)
            elif isinstance(instruction, on.LookAgain):
                self.context.queue.add(ref, instruction.priority, after_s=instruction.after_s)

    def notify_all(self, happened: on.Event) -> None:
        """Take in what happened to all Syncs that are followed."""
        for ref in list(self._followed):
            self.notify(ref, happened)
        if isinstance(happened, on.RightsChanged):
            self._finalization.rights_changed(happened)

    def kinds_changed(self, kinds: Collection[GroupKind]) -> None:
        """Have those Syncs looked at that ask for objects of *kinds*, or of others of the same name, or have some."""
        names = {each.kind for each in kinds}
        for ref, followed in list(self._followed.items()) if names else ():
            live = self.context.live(ref)
            if not names.isdisjoint(followed.kind_names(Contents.recorded(live) if live else Contents())):
                self.notify(ref, on.KindsChanged())

    def objects_changed(self, ref: ObjectRef, changed: ObjectRef) -> None:
        """Note that what carries the mark of a Sync changed in the cluster; the next turn, which it asks for, takes it in."""
        if followed := self._followed.get(ref):
            if followed.note_changed(changed):
                self.context.queue.changed(ref)
            else:
                self.context.queue.add(
                    ref, Priority.RESYNC, after_s=max(followed.changed.strange_at_s - time.monotonic(), DEBOUNCE_S)
                )
        elif ref in self._finalization.waiting:
            self.context.queue.changed(ref)

    def _moved(self, ref: ObjectRef, target: Target) -> None:
        """Have those looked at who follow the same repository as *ref*, which saw its ref move, and whose manifests moved with it."""
        others = {
            other: followed.target
            for other, followed in self._followed.items()
            if other != ref and followed.target and followed.newest and not followed.state.source.is_reading
        }
        if shared := {other: each for other, each in others.items() if each.follows_same(target)}:
            task = asyncio.create_task(self._tell_of_move(shared), name=f"moved {ref}")
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell_of_move(self, targets: Mapping[ObjectRef, Target]) -> None:
        def moved() -> list[ObjectRef]:
            return [ref for ref, target in targets.items() if target.has_moved()]

        concerned = frozenset(await self.lanes.local(moved, list(targets)))
        for ref in targets:
            if ref in concerned:
                self.notify(ref, on.SourceMoved())
            else:
                self.observed.note(ref)

    async def _note_observed(self, ref: ObjectRef) -> bool:
        """Note on a Sync at rest up to which commit it was looked at; tell whether that had to be written."""
        followed, live = self._followed.get(ref), self.context.live(ref)
        observed = followed.observed if followed else ""
        if not observed or live is None or map_at(live, "status").get("observedRevision") == observed:
            return False

        def status(live: Manifest) -> Manifest:
            before = map_at(live, "status")
            is_told = followed is not None and before.get("conditions") and followed.observed == observed
            return {**before, "observedRevision": observed} if is_told else before

        with self.fenced(ref):
            return await self.context.set_status(ref, status)

    def forget(self, ref: ObjectRef) -> None:
        """Drop a Sync that is gone, or another's; a pass under way comes to nothing."""
        self.notify(ref, on.Forgotten())
        self.observed.forget(ref)
        self.dependencies.graph.asks_for(ref, ())
        self.lanes.forget(ref)
        self.health.forget(ref)
        self._finalization.forget(ref)
        self.context.forget(ref)

    def _settle_reading(self, followed: FollowedSync) -> None:
        """End a reading that the state knows nothing of: the Sync was deleted, suspended, follows something else, or is another's."""
        if not followed.state.source.is_reading:
            followed.end_reading()

    # A turn ----------------------------------------------------------------------------------

    async def run(self, ref: ObjectRef, *, asked: bool) -> None:
        """Look at one Sync, as far as there is something to look at. Whatever goes wrong, it will be retried."""
        if not asked and self._stays_at_rest(ref):
            event(log, logging.DEBUG, "at rest", sync=f"{ref.namespace}/{ref.name}")
            self.notify(ref, on.SourceCurrent())
            return
        try:
            await self._look_at(ref, asked=asked)
        except SourceError as error:
            await self._drive(ref, on.PassFailed(ConditionReason.SOURCE, str(error)))
        except ApiError as error:
            stopped = self.context.stop(ref).is_set()
            await self._drive(
                ref, on.PassInterrupted() if stopped else on.PassFailed(ConditionReason.CLUSTER, str(error))
            )
        except Exception as error:  # noqa: BLE001 - one poison object must not stop the others
            await self._drive(ref, on.PassFailed(ConditionReason.CRASHED, f"{type(error).__name__}: {error}"))

    def _stays_at_rest(self, ref: ObjectRef) -> bool:
        """Tell whether nothing has happened to a Sync but that its source is due, and whether that is where it was.

        Most turns of many Syncs of one repository are such; they take no look at the Sync itself.
        """
        followed, stored = self._followed.get(ref), self.context.cache.snapshot().stored(ref)
        if followed is None or stored is None or not is_at_rest(followed.state):
            return False
        is_same = followed.version == stored.resource_version
        is_quiet = (
            not followed.changed.is_there(time.monotonic())
            and followed.answer is None
            and self.context.contention.due_s(ref) is None
        )
        return is_same and is_quiet and self._work.is_current(followed, time.monotonic())

    async def _look_at(self, ref: ObjectRef, *, asked: bool) -> None:
        manifest = self.context.live(ref)
        if manifest is None:
            return
        await self.context.warn_of_renamed(ref, manifest)
        try:
            sync = Sync.of(manifest).asked_no_sooner_than(self.least_interval_s)
        except SyncSpecError as error:
            await self._drive(ref, on.SpecInvalid(str(error)))
            return
        if manifest["metadata"].get("deletionTimestamp"):
            self.notify(ref, on.Forgotten())
            self.health.forget(ref)
            await self._finalization.run(sync, manifest)
            return
        if sync.source is None:
            self.notify(ref, on.Forgotten())
            self.health.forget(ref)
            return
        await self._finalization.prepare(sync, manifest)
        try:
            async with asyncio.timeout(sync.timeout_s):
                await self._turn(ref, sync, manifest, asked=asked)
        except TimeoutError:
            late = f"not done within spec.timeout, {sync.timeout_s:.0f} s; it will be retried"
            await self._drive(ref, on.PassFailed(ConditionReason.FAILED, late, is_answer=True))

    async def _turn(self, ref: ObjectRef, sync: Sync, manifest: Manifest, *, asked: bool) -> None:
        followed = self._followed.setdefault(ref, FollowedSync())
        if followed.target is not None:
            followed.target = replace(followed.target, sync=sync, parent=manifest)
        if changed := followed.changed.take(time.monotonic()):
            followed.state, _ = step(followed.state, on.ObjectsChanged(changed), time.monotonic())
        try:
            await self._take_answer(ref, followed, sync)
            asked = asked or is_asked(self.context.live(ref, manifest) or manifest)
            await self._drive(ref, on.TurnCame(sync, await self._work.facts(ref, sync, followed), asked))
        finally:
            followed.let_go_of_parent()

    async def _take_answer(self, ref: ObjectRef, followed: FollowedSync, sync: Sync) -> None:
        """Take in what the source has said meanwhile, if it is still the one that is followed."""
        answer, followed.answer = followed.answer, None
        if answer is None or answer.source != sync.source or not followed.state.source.is_reading:
            return
        followed.reading, followed.newest = None, answer.newest or followed.newest
        followed.earlier = answer.earlier or followed.earlier
        followed.verification = answer.event.verification or followed.verification
        if answer.newest is not None:
            self.dependencies.graph.asks_for(ref, followed.asked_of_kind(SYNC.group_kind, sync.default_namespace))
        await self._drive(ref, answer.event)
        self.observed.note(ref)

    async def _drive(self, ref: ObjectRef, happened: on.Event) -> None:
        """Carry out what follows from an event, and from its results, until nothing does."""
        followed = self._followed.get(ref) or FollowedSync()
        events = deque([happened])
        while events:
            each = events.popleft()
            followed.state, instructions = step(followed.state, each, time.monotonic())
            await self.context.hear(ref, each)
            for instruction in instructions:
                if (result := await self._work.carry_out(ref, followed, instruction)) is not None:
                    events.append(result)
                await self.context.hear(ref, instruction)
        self._settle_reading(followed)
        if followed.state.sync is None and self._followed.get(ref) is followed:
            del self._followed[ref]
