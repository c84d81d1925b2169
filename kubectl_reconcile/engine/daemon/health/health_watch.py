"""Watches how the members of followed Syncs are, and tells it on the Syncs.

A member that changes is judged by itself, in the event loop, without a request; counts are kept (``core.health.summary``). What is
news is written a moment later, at most once a second for a Sync; while nothing changes, nothing is written. No worker waits
for health: whoever wants to know whether a Sync is healthy looks at its status.

What a module makes of a member, and of what that owns, counts for the member: it is in the caches anyway. Where time alone changes a
verdict, the object is looked at again when it does, by the alarm that the Sync has in any case.

Why a workload ails is learnt from its pods: these are listed, as the Sync's account, of the few members that are named as
the worst, and only while they ail, later and later.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Event
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.health.summary import HealthSummary, HealthTally, Steadiness
from kubectl_reconcile.core.objects import Manifest, ObjectRef, condition_of, map_at
from kubectl_reconcile.core.planning.kinds import WORKLOADS
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents
from kubectl_reconcile.core.resources.status import health_status
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.retry import AILING_PODS
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.broken_pods import Pods
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.health.judging import Judging
from kubectl_reconcile.engine.daemon.health.watched import MemberClaims, PodLook, WatchedMembers
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.telemetry.logs import event

_EVERY_S = 1.0
_AGAIN_S = 4.0
_SETTLE_S = 0.05

log = logging.getLogger("kubectl_reconcile.daemon")


@dataclass(slots=True)
class HealthWatch:
    """The health of all sets that are followed; *fenced* stands around what is written for a Sync.

    *cr_of* returns the custom resource that has a module and this uid, None where there is none.
    """

    context: DaemonContext
    fenced: Callable[[ObjectRef], AbstractContextManager[object]]
    cr_of: Callable[[str], ObjectRef | None]
    _judging: Judging = field(init=False)
    _watched: dict[ObjectRef, WatchedMembers] = field(init=False)

    def __post_init__(self) -> None:
        """Make what judges, and have verdicts counted whenever somebody asks for metrics."""
        self._judging = Judging(self.context, self.cr_of)
        self._watched = self._judging.watched
        for status in HealthStatus:
            members = self.context.metrics.health.members.labels(str(status))
            members.set_function(functools.partial(self._count, status))

    def _count(self, status: HealthStatus) -> int:
        return sum(each.tally.counts[status] for each in self._watched.values())

    # What is watched -------------------------------------------------------------------------

    async def take_up(
        self,
        sync: Sync,
        live: Manifest,
        asked: Mapping[ObjectRef, object] | None = None,
        places: frozenset[str] = frozenset(),
        *,
        is_all: bool = True,
    ) -> None:
        """Watch the members of a Sync, whose feeds are followed by now; its spec may be another than before.

        *asked* is what its source asks for, as before where it is None; what was asked for before counts as well unless that *is_all*. *places* are namespaces
        that it has members in, besides those that it says.
        """
        places |= Contents.recorded(live).namespaces | {"", sync.namespace}
        sync = replace(sync, health=self.context.session.health_of(sync))
        known = self._watched.get(sync.ref)
        is_same = known is not None and known.is_whole and known.sync.health == sync.health
        before = known.claims.asked if known is not None else None
        if asked is None:
            asked = before
        elif not is_all:
            asked = None if before is None else {**before, **asked}
        if known is not None and is_same and (places <= known.claims.places or asked is not None):
            known.sync = sync
            if asked is not None:
                self._judging.ask_for(known, asked)
                self._plan(sync.ref, known)
            return
        tally = HealthTally(HealthTally.since(map_at(live, "status")))
        told = str((condition_of(live, "Healthy") or {}).get("reason") or "")
        unasked = frozenset(map(str, map_at(live, "status").get("unasked") or ()))
        watched = WatchedMembers(
            sync, MemberClaims(places, asked, unasked), tally, known.steady if known else Steadiness(), told=told
        )
        if known is not None:
            watched.told_s, watched.missing = known.told_s, known.missing
            known.end()
        self._judging.begin(watched)
        await self._judging.judge_all(watched)
        self._plan(sync.ref, watched)

    async def learn(self, sync: Sync, live: Manifest) -> None:
        """Watch the members that a Sync says it has, where no plan has shown them: it is suspended, or its source can't be read."""
        if sync.ref in self._watched:
            await self.take_up(sync, live, places=self._watched[sync.ref].claims.places)
            return
        session, contents = self.context.session_of(sync), Contents.recorded(live)
        feeds = gather.member_feeds(session, gather.member_kinds(session, contents, ()), PART_OF)
        try:
            await self.context.view.of(sync).ensure(feeds, Contents.looked_for(live))
        except ApiError:
            return  # the next look at the Sync tries again
        await self.take_up(sync, live)

    def forget(self, ref: ObjectRef) -> None:
        """Watch the members of a Sync no more: it is gone, going, or another replica's."""
        if (watched := self._watched.get(ref)) is not None:
            watched.end()
            self._judging.end(watched)

    def close(self) -> None:
        """Watch nothing any more."""
        for ref in list(self._watched):
            self.forget(ref)

    # What happens ----------------------------------------------------------------------------

    def on_event(self, happened: Event) -> None:
        """Judge an object that came, changed or went, for the set whose member it is, or whose member it belongs to."""
        for watched in self._judging.on_event(happened):
            self._soon(watched.sync.ref, watched, self._tells_at_s(watched))

    def miss(self, sync: ObjectRef, missing: frozenset[ObjectRef]) -> None:
        """Count members that somebody deleted and that are left so as not found."""
        watched = self._watched.get(sync)
        if watched is None or watched.missing == missing:
            return
        changed, watched.missing = watched.missing ^ missing, missing
        for ref in changed:
            self._judging.judge(watched, ref, self.context.live(ref))

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
        times, again = watched.steady.falls(), "counts as healthy after it has been healthy for a while"
        return replace(found, unsteady=f"unhealthy {times} times within ten minutes: {again}")

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
    def _tells_at_s(watched: WatchedMembers) -> float:
        """Return when news may be told: a moment later, since it comes in bursts, and not twice within a second."""
        return max(watched.told_s + _EVERY_S, time.monotonic() + _SETTLE_S)

    def _plan(self, ref: ObjectRef, watched: WatchedMembers) -> None:
        """Have news told, what may have become steady looked at, and pods looked at, each when it is time."""
        now_s = time.monotonic()
        due_s = [self._tells_at_s(watched)] if watched.is_news else []
        due_s += [watched.steady_at_s] if watched.steady_at_s is not None else []
        due_s += [look.at_s for look in self._looks(watched, now_s).values()]
        due_s += [at_s] if (at_s := watched.again.next_s()) is not None else []
        if due_s:
            self._soon(ref, watched, min(due_s))

    def _soon(self, ref: ObjectRef, watched: WatchedMembers, at_s: float) -> None:
        """Have a Sync looked at by then; what is under way plans again when it ends."""
        if watched.task is not None or (watched.timer is not None and watched.timer.when() <= at_s):
            return
        if watched.timer is not None:
            watched.timer.cancel()
        watched.timer = asyncio.get_running_loop().call_at(at_s, self._begin, ref, watched)

    def _begin(self, ref: ObjectRef, watched: WatchedMembers) -> None:
        watched.timer = None
        watched.task = asyncio.create_task(self._tell(ref, watched), name=f"health of {ref}")

    async def _tell(self, ref: ObjectRef, watched: WatchedMembers) -> None:
        try:
            if not self.context.stop(ref).is_set():
                with self.fenced(ref):
                    self._judging.judge_again(watched)
                    await self._write(ref, watched)
                    await self._look_below(watched)
        except Exception as error:  # noqa: BLE001 - one poison object must not stop the others
            event(log, logging.ERROR, "health not reported", sync=ref, error=f"{type(error).__name__}: {error}")
        finally:
            watched.task = None
        if self._watched.get(ref) is watched and not self.context.stop(ref).is_set():
            self._plan(ref, watched)

    async def _write(self, ref: ObjectRef, watched: WatchedMembers) -> None:
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

    @staticmethod
    def _ailing_workloads(watched: WatchedMembers) -> dict[ObjectRef, ObjectRef]:
        """Return the workloads among the worst, and among what is below these, each with the member that it belongs to."""
        found = {}
        for each in watched.tally.worst():
            ailing = [each.ref, *watched.tally.below(each.ref)]
            workload = next((ref for ref in ailing if ref.group_kind in WORKLOADS), None)
            if workload is not None:
                found[workload] = each.ref
        return found

    def _looks(self, watched: WatchedMembers, now_s: float) -> dict[ObjectRef, PodLook]:
        """Return when the pods of ailing workloads are looked at next."""
        wanted = self._ailing_workloads(watched)
        watched.looks = {ref: watched.looks.get(ref) or PodLook(now_s + AILING_PODS.first_s) for ref in wanted}
        return watched.looks

    async def _look_below(self, watched: WatchedMembers) -> None:
        now_s, members = time.monotonic(), self._ailing_workloads(watched)
        pods = Pods(self.context.session_of(watched.sync).client)
        for workload, look in self._looks(watched, now_s).items():
            if look.at_s > now_s:
                continue
            look.times += 1
            look.at_s = now_s + AILING_PODS.pause_s(look.times + 1)
            live = self.context.live(workload)
            try:
                cause = await pods.to_blame(workload, live) if live is not None else ""
            except ApiError:
                continue  # who may not look at pods still tells what the object says
            watched.is_news |= watched.tally.blame(members[workload], cause)
