"""Watches how the members of followed Syncs are, and tells it on the Syncs.

A member that changes is judged by itself, in the event loop, without a request; counts are kept (``core.health.summary``). What is
news is written a moment later, at most once a second for a Sync; while nothing changes, nothing is written. No worker waits
for health: whoever wants to know whether a Sync is healthy looks at its status.

Why a workload ails is learnt from its pods: these are listed, as the Sync's account, of the few members that are named as
the worst, and only while they ail, later and later.

What counts as a member carries the mark of the Sync, put there by its field manager, in a namespace that the Sync writes to: a
stranger's object says nothing of it.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from kubectl_reconcile.cluster.cache import Event, StoredObject
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.health.summary import HealthSummary, HealthTally, Steadiness, member_health
from kubectl_reconcile.core.health.verdict import HealthStatus
from kubectl_reconcile.core.objects import Manifest, ObjectRef, condition_of, map_at
from kubectl_reconcile.core.planning.kinds import WORKLOADS
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, is_marked_by_us
from kubectl_reconcile.core.resources.status import health_status
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.broken_pods import Pods
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.telemetry.logs import event

_EVERY_S = 1.0
_AGAIN_S = 4.0
_SETTLE_S = 0.05
_AT_A_TIME = 100
_FIRST_PODS_S = 2.0
_SLOWEST_PODS_S = 30.0

log = logging.getLogger("kubectl_reconcile.daemon")


@dataclass(slots=True)
class _Look:
    """When the pods of a member are listed next, and how long the pause after that is."""

    at_s: float
    pause_s: float = _FIRST_PODS_S


@dataclass(slots=True)
class _Watched:
    """One Sync's members. *told_s* is when its status was written last, *told* the word of it; *is_news* that it isn't up to date.

    *places* are the namespaces that the Sync writes to, *is_whole* tells that all members were judged once.
    """

    sync: Sync
    places: frozenset[str]
    tally: HealthTally
    steady: Steadiness = field(default_factory=Steadiness)
    looks: dict[ObjectRef, _Look] = field(default_factory=dict)
    is_whole: bool = False
    told: str = ""
    told_s: float = 0.0
    is_news: bool = False
    steady_at_s: float | None = None
    due_s: float = 0.0
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Tell nothing any more."""
        if self.timer is not None:
            self.timer.cancel()
        if self.task is not None:
            self.task.cancel()


@dataclass(slots=True)
class HealthWatch:
    """The health of all sets that are followed; *fenced* stands around what is written for a Sync."""

    context: DaemonContext
    fenced: Callable[[ObjectRef], AbstractContextManager[object]]
    _watched: dict[ObjectRef, _Watched] = field(default_factory=dict)
    _by_set: dict[str, ObjectRef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Have verdicts counted whenever somebody asks for metrics."""
        for status in HealthStatus:
            members = self.context.metrics.health.members.labels(str(status))
            members.set_function(functools.partial(self._count, status))

    def _count(self, status: HealthStatus) -> int:
        return sum(each.tally.counts[status] for each in self._watched.values())

    # What is watched -------------------------------------------------------------------------

    async def take_up(self, sync: Sync, live: Manifest, places: frozenset[str] = frozenset()) -> None:
        """Watch the members of a Sync, whose feeds are followed by now; its spec may be another than before.

        *places* are namespaces that it is about to write to, besides those that it says it has members in.
        """
        places |= Contents.recorded(live).namespaces | {"", sync.namespace}
        sync = replace(sync, health=self.context.session.health_of(sync))
        known = self._watched.get(sync.ref)
        is_same = known is not None and known.is_whole and known.sync.health == sync.health
        if known is not None and is_same and places <= known.places:
            known.sync = sync
            return
        tally = HealthTally(HealthTally.since(map_at(live, "status")))
        told = str((condition_of(live, "Healthy") or {}).get("reason") or "")
        watched = _Watched(sync, places, tally, known.steady if known else Steadiness(), told=told)
        if known is not None:
            watched.told_s = known.told_s
            known.end()
        self._watched[sync.ref], self._by_set[set_id_of(sync)] = watched, sync.ref
        await self._judge_all(watched)
        self._plan(sync.ref, watched)

    async def _judge_all(self, watched: _Watched) -> None:
        """Judge all members as they are, some at a time: others have their turn in between."""
        view, set_id = self.context.view.of(watched.sync), set_id_of(watched.sync)
        refs = [stored.ref for stored in view.snapshot().labelled(PART_OF, set_id)]
        for at in range(0, len(refs), _AT_A_TIME):
            snapshot = view.snapshot()
            for ref in refs[at : at + _AT_A_TIME]:
                stored = snapshot.stored(ref)
                self._judge(watched, ref, stored.manifest() if stored is not None else None)
            await asyncio.sleep(0)
        watched.is_whole = True

    async def learn(self, sync: Sync, live: Manifest) -> None:
        """Watch the members that a Sync says it has, where no plan has shown them: it is suspended, or its source can't be read."""
        if sync.ref in self._watched:
            await self.take_up(sync, live, self._watched[sync.ref].places)
            return
        session, contents = self.context.session_of(sync), Contents.recorded(live)
        feeds = gather.member_feeds(session, gather.member_kinds(session, contents, ()), PART_OF)
        try:
            await self.context.view.of(sync).ensure(feeds, contents.namespaces)
        except ApiError:
            return  # the next look at the Sync tries again
        await self.take_up(sync, live)

    def forget(self, ref: ObjectRef) -> None:
        """Watch the members of a Sync no more: it is gone, going, or another replica's."""
        if (watched := self._watched.pop(ref, None)) is not None:
            watched.end()
            self._by_set.pop(set_id_of(watched.sync), None)

    def close(self) -> None:
        """Watch nothing any more."""
        for ref in list(self._watched):
            self.forget(ref)

    # What happens ----------------------------------------------------------------------------

    def on_event(self, happened: Event) -> None:
        """Judge an object that came, changed or went, for the set whose member it is."""
        for ref in {self._set_of(stored) for stored in (happened.old, happened.new) if stored}:
            watched = self._watched.get(ref) if ref else None
            if ref is None or watched is None:
                continue
            new = happened.new or self.context.cache.snapshot().stored(happened.ref)
            is_member = new is not None and self._set_of(new) == ref
            if self._judge(watched, happened.ref, new.manifest() if new is not None and is_member else None):
                self._soon(ref, watched, self._tells_at_s(watched))

    def _set_of(self, stored: StoredObject) -> ObjectRef | None:
        return self._by_set.get(stored.labels.get(PART_OF, ""))

    def _judge(self, watched: _Watched, ref: ObjectRef, live: Manifest | None) -> bool:
        sync = watched.sync
        is_ours = ref.namespace in watched.places and live is not None and is_marked_by_us(live, sync.field_manager)
        found = member_health(sync.health, live) if live is not None and is_ours else None
        is_news = watched.tally.note(ref, found, now_text())
        watched.is_news |= is_news
        return is_news

    # What is told ----------------------------------------------------------------------------

    def summary(self, ref: ObjectRef, *, is_new: bool = False) -> HealthSummary | None:
        """Return how the members of a Sync are, as it is to be told now; None where they aren't known.

        What happens to them from now on is news again. *is_new* tells that something else was applied: how often its members fell ill before says nothing any more.
        """
        watched = self._watched.get(ref)
        if watched is None or not watched.is_whole:
            return None
        watched.is_news = False
        if is_new:
            watched.steady.forgive()
        found, now_s = watched.tally.summary(is_awaited=watched.sync.waits_for_health), time.monotonic()
        left_s = watched.steady.left_s(is_sound=found.is_sound, now_s=now_s)
        watched.steady_at_s = now_s + left_s if left_s else None
        if not left_s:
            return found
        times, again = watched.steady.falls(), "counts as healthy once it has been for a while"
        return HealthSummary(
            found.counts, found.worst, found.is_awaited, f"unhealthy {times} times within ten minutes: {again}"
        )

    async def told(self, ref: ObjectRef, summary: HealthSummary | None, *, is_told: bool) -> None:
        """Note whether a status with this summary was written, and say what has changed hereby."""
        watched = self._watched.get(ref)
        if watched is None or summary is None:
            return
        watched.told_s = time.monotonic()
        if not is_told:
            watched.told_s, watched.is_news = watched.told_s + _AGAIN_S, True
            self._plan(ref, watched)
            return
        before, watched.told = watched.told, summary.reason
        self._plan(ref, watched)
        if before != summary.reason and (before or not summary.is_healthy):
            await self.context.hear(ref, on.HealthChanged(summary.reason, summary.sentence))

    @staticmethod
    def _tells_at_s(watched: _Watched) -> float:
        """Return when news may be told: a moment later, since it comes in bursts, and not twice within a second."""
        return max(watched.told_s + _EVERY_S, time.monotonic() + _SETTLE_S)

    def _plan(self, ref: ObjectRef, watched: _Watched) -> None:
        """Have news told, what may have become steady looked at, and pods looked at, each when it is time."""
        now_s = time.monotonic()
        due_s = [self._tells_at_s(watched)] if watched.is_news else []
        due_s += [watched.steady_at_s] if watched.steady_at_s is not None else []
        due_s += [look.at_s for look in self._looks(watched, now_s).values()]
        if due_s:
            self._soon(ref, watched, min(due_s))

    def _soon(self, ref: ObjectRef, watched: _Watched, at_s: float) -> None:
        """Have a Sync looked at by then; what is under way plans anew when it ends."""
        if watched.task is not None or (watched.timer is not None and watched.due_s <= at_s):
            return
        if watched.timer is not None:
            watched.timer.cancel()
        delay_s = max(at_s - time.monotonic(), 0.0)
        watched.due_s = at_s
        watched.timer = asyncio.get_running_loop().call_later(delay_s, self._begin, ref, watched)

    def _begin(self, ref: ObjectRef, watched: _Watched) -> None:
        watched.timer = None
        watched.task = asyncio.create_task(self._tell(ref, watched), name=f"health of {ref}")

    async def _tell(self, ref: ObjectRef, watched: _Watched) -> None:
        try:
            if not self.context.stop(ref).is_set():
                with self.fenced(ref):
                    await self._write(ref, watched)
                    await self._look_below(watched)
        except Exception as error:  # noqa: BLE001 - one poison object must not stop the others
            event(log, logging.ERROR, "health not told", sync=ref, error=f"{type(error).__name__}: {error}")
        finally:
            watched.task = None
        if self._watched.get(ref) is watched and not self.context.stop(ref).is_set():
            self._plan(ref, watched)

    async def _write(self, ref: ObjectRef, watched: _Watched) -> None:
        is_steady = watched.steady_at_s is not None and time.monotonic() >= watched.steady_at_s
        if not watched.is_news and not is_steady:
            return
        found = self.summary(ref)
        if found is None:
            return
        is_told = await self.context.set_status(
            ref, lambda live: health_status(map_at(live, "status"), found, now=now_text())
        )
        await self.told(ref, found, is_told=is_told)

    # What is below -----------------------------------------------------------------------------

    def _looks(self, watched: _Watched, now_s: float) -> dict[ObjectRef, _Look]:
        """Return the workloads among the worst, and when their pods are looked at next."""
        wanted = [each.ref for each in watched.tally.worst() if each.ref.group_kind in WORKLOADS]
        watched.looks = {ref: watched.looks.get(ref) or _Look(now_s + _FIRST_PODS_S) for ref in wanted}
        return watched.looks

    async def _look_below(self, watched: _Watched) -> None:
        now_s = time.monotonic()
        pods = Pods(self.context.session_of(watched.sync).client)
        for member, look in self._looks(watched, now_s).items():
            if look.at_s > now_s:
                continue
            look.pause_s = min(look.pause_s * 2, _SLOWEST_PODS_S)
            look.at_s = now_s + look.pause_s
            live = self.context.live(member)
            try:
                cause = await pods.to_blame(member, live) if live is not None else ""
            except ApiError:
                continue  # who may not look at pods still tells what the object says
            watched.is_news |= watched.tally.blame(member, cause)
