"""Carries out instructions about a followed Sync: its source is read, its set planned and written, its status told.

Each instruction of ``core.daemon.pass_events`` has one method here; what it came to is returned as an event.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial, reduce

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.annotations import APPROVED_PLAN
from kubectl_reconcile.core.apply.results import ResultState, refused_namespaces, report_of
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.drift import deleted_in
from kubectl_reconcile.core.daemon.pass_state import step
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of, map_at, maps_in
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.rendering.holding import with_fitting
from kubectl_reconcile.core.rendering.substitution import NO_VALUES, Values
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.history import with_put_back
from kubectl_reconcile.core.resources.source import SourceSpec
from kubectl_reconcile.core.resources.status import ConditionReason, Report, passed_before, reconciling, tells_more
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.resources.verification import Verification, not_asked
from kubectl_reconcile.core.retry import PASS
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.daemon.context import DaemonContext, told_late
from kubectl_reconcile.engine.daemon.dependencies import Dependencies
from kubectl_reconcile.engine.daemon.health.health_watch import HealthWatch
from kubectl_reconcile.engine.daemon.health.wave_wait import WaveWait
from kubectl_reconcile.engine.daemon.sources import news
from kubectl_reconcile.engine.daemon.sources.followed import FollowedSync, SourceAnswer
from kubectl_reconcile.engine.daemon.sources.git_lanes import GitLanes
from kubectl_reconcile.engine.sync import lookups
from kubectl_reconcile.engine.sync.answers import Sight
from kubectl_reconcile.engine.sync.books import status_after
from kubectl_reconcile.engine.sync.credentials import KeptUp, local_folder
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader
from kubectl_reconcile.engine.sync.fetching import equip
from kubectl_reconcile.engine.sync.reconcile import Done, PlannedSync, after_provisional, perform, plan_for
from kubectl_reconcile.engine.sync.revisions.earlier import read_at, read_with_bases
from kubectl_reconcile.engine.sync.rounds import until_seen
from kubectl_reconcile.engine.sync.signed_sources import read_keys, verification_of
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.targets import source_of
from kubectl_reconcile.engine.sync.variables import values_of
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.verifying import UnverifiedError

log = logging.getLogger("kubectl_reconcile.daemon")

_MOMENT_S = 2.0
"""How long a pass may write before its status says that it does: where many Syncs are written at a time, each takes longer for that."""


class SyncWork(Struct, frozen=True):
    """All that is done for Syncs; *changed* is called when files of a followed folder did, *moved* when a reading saw its ref move."""

    context: DaemonContext
    lanes: GitLanes
    dependencies: Dependencies
    health: HealthWatch
    changed: Callable[[ObjectRef], None]
    moved: Callable[[ObjectRef, Target], None]
    lent: Callable[[], AbstractContextManager[object]] = nullcontext

    async def carry_out(  # noqa: C901, PLR0911 - one line per instruction
        self, ref: ObjectRef, followed: FollowedSync, instruction: on.Instruction
    ) -> on.Event | None:
        """Do what an instruction says, and return what it came to where something is to be told.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        match instruction:
            case on.ReadSource():
                return await self._begin_reading(ref, followed, instruction)
            case on.CheckMembers():
                return on.MembersChecked(all(map(self.context.view.snapshot().stored, followed.places)))
            case on.PlanSet():
                return await self._plan_set(ref, followed, instruction)
            case on.PlanObjects():
                return await self._plan_objects(ref, followed, instruction.refs)
            case on.ApplySet():
                return await self._apply_set(ref, followed, instruction)
            case on.ApplyObjects():
                return await self._apply_objects(ref, followed.read()[0].sync, instruction.plan)
            case on.Retry():
                delay_s = self.context.queue.failed(ref, instruction.priority, backoff=PASS.up_to(instruction.cap_s))
                return on.RetryScheduled(instruction, delay_s)
            case on.Tell():
                await self._tell(ref, followed, instruction)
            case on.ForgetFailures():
                self.context.queue.succeeded(ref)
            case on.LookAgain():
                self.context.queue.add(ref, instruction.priority, after_s=instruction.after_s)
            case on.DriftPutBack():
                self.context.queue.pacing.wrote(instruction.ref)
            case on.NotePutBack():
                await self._note_put_back(ref, instruction.put_back)
        return None

    async def facts(self, ref: ObjectRef, sync: Sync, followed: FollowedSync) -> on.ClusterFacts:
        """Return what a decision about a Sync needs to know; contention that has lasted long enough ends hereby.

        Raises:
            ApiError: a Sync of another namespace could not be asked for.
        """
        contention, now_s, state = self.context.contention, time.monotonic(), followed.state
        has_lapsed = bool(contention.lapse(ref, now_s))
        is_gated = state.is_gated or state.sync is None or state.sync.generation != sync.generation
        return on.ClusterFacts(
            waits=await self.dependencies.lack(sync) if is_gated and not sync.suspend else "",
            cycle=self.dependencies.graph.cycle(ref) if is_gated and sync.depends_on else "",
            is_contended=bool(contention.of(ref)),
            has_lapsed=has_lapsed,
            lapses_at_s=contention.due_s(ref),
            pauses_s={each: self.context.queue.pacing.pause_s(each) for each in state.dirty},
            has_earlier=followed.earlier is not None,
            is_current=self.is_current(followed, now_s),
        )

    def is_current(self, followed: FollowedSync, now_s: float) -> bool:
        """Tell whether the source is due, and nothing has to be read again: neither the ref nor values that ConfigMaps and Secrets hold, which may have changed."""
        sync = followed.state.sync
        if sync is None or now_s < followed.state.source.due_s:
            return False
        if sync.source is not None and sync.source.decryption.secret:
            return False  # its keys may be others
        holders = sync.source.holders if sync.source else ()
        return news.is_ref_current(followed, sync, now_s) and (
            not holders or self.context.view.variables.is_current(sync)
        )

    # The source ------------------------------------------------------------------------------

    async def _begin_reading(self, ref: ObjectRef, followed: FollowedSync, asked: on.ReadSource) -> on.Event | None:
        """Have the source checked for new commits, opened again with the credentials of now where that is asked for."""
        sync = followed.state.sync
        followed.end_reading()
        if sync is None or sync.source is None:
            return on.Forgotten()
        if self.context.session.sources.requires_verify and sync.source.verify is None:
            refused = not_asked(sync.source.verify_field)
            return on.SourceFailed(refused.refusal, verification=refused)
        try:
            if asked.opened or followed.target is None:
                followed.target = await self._opened(ref, followed, sync, sync.source)
            else:
                await read_keys(self.context.session_of(sync), sync, followed.target.source)
            reader = followed.target.reader
            await equip(self.context.session_of(sync), sync, reader, KeptUp(reader.chart, asked.since_s))
            values = await self._values(ref, sync, followed.target.values)
            followed.target = replace(followed.target, values=values)  # a pass beside this may have written to the Sync
            await lookups.read_again(self.context.session_of(sync), followed.target.reader)
        except SourceError as error:
            return on.SourceFailed(str(error))
        except ApiError as error:
            return on.SourceFailed(str(error), ConditionReason.CLUSTER)
        is_urgent = asked.is_awaited or followed.state.source.due_s == 0.0
        if (server := followed.target.source.followed) is not None:
            server.since_s = asked.since_s
        asking = replace(followed.target, parent=None)  # who waits for a turn doesn't hold the live Sync meanwhile
        followed.reading = asyncio.create_task(
            self._read(followed, sync, sync.source, asking, is_urgent=is_urgent), name=f"reading {ref}"
        )
        return None

    async def _values(self, ref: ObjectRef, sync: Sync, before: Values) -> Values:
        """Return the values that ConfigMaps and Secrets hold, those of *before* where the watches show that they are as they were.

        Raises:
            ApiError: the server doesn't answer.
        """
        watch = self.context.view.variables
        if before is not NO_VALUES and watch.is_current(sync):
            return before
        values = await values_of(self.context.session_of(sync), sync)
        watch.follow(sync, values, lambda: self.changed(ref))
        return values

    async def _read(
        self, followed: FollowedSync, sync: Sync, source: SourceSpec, target: Target, *, is_urgent: bool
    ) -> None:
        """Ask a *source* when it is its turn, and have what it says taken in by the next turn of the Sync."""
        ref, before = sync.ref, news.tip_of(target)
        applied, passed = _revisions(self.context.live(ref), sync)
        earlier = passed if sync.depends_on and followed.desired is None else ""
        readers = [target.reader, self._reader_beside(target)] if earlier else [target.reader]

        def read() -> Awaitable[tuple[Desired, Desired | None]]:
            return self.lanes.run(
                lambda: self._read_both(target, applied, earlier, readers[-1]),
                who=ref, url=source.address, tenant=ref.namespace, is_urgent=is_urgent, timeout_s=sync.timeout_s,
            )  # fmt: skip

        try:
            newest, kept = await lookups.answered(self.context.session_of(sync), readers, read)
            found = verification_of(target)
            is_news = news.asks_for_else(newest, followed) or found != followed.verification
            if news.tells_of_move(target, before):
                self.moved(ref, target)
            passed_now = passed == newest.revision.sha
            if followed.newest is None and passed and not passed_now:
                same = passed, newest.revision.sha
                is_same = await self.lanes.local(
                    partial(news.holds_the_same, target.source, newest, passed), otherwise=False
                )
                followed.same = same if is_same else ("", "")
            answer = SourceAnswer(source, on.SourceRead(is_news, found, passed_now), newest if is_news else None, kept)
        except UnverifiedError as error:
            refused = error.verification
            answer = SourceAnswer(source, on.SourceFailed(refused.refusal, verification=refused))
        except SourceError as error:
            answer = SourceAnswer(source, on.SourceFailed(str(error)))
        except ApiError as error:
            answer = SourceAnswer(source, on.SourceFailed(str(error), ConditionReason.CLUSTER))
        except Exception as error:  # noqa: BLE001 - one poison repository must not stop the others
            event(
                log, logging.ERROR, "source crashed", sync=ref, error=f"{type(error).__name__}: {error}", exc_info=True
            )
            answer = SourceAnswer(source, on.SourceFailed(f"{type(error).__name__}: {error}", ConditionReason.CRASHED))
        followed.answer = answer
        asks = followed.state.source.is_awaited
        self.context.queue.add(ref, Priority.ASKED if asks else Priority.PUSH)

    def _reader_beside(self, target: Target) -> ManifestReader:
        """Return what reads an earlier revision of what *target* follows, with the same credentials."""
        beside = self.context.session.reader()
        beside.chart, beside.fetching = target.reader.chart, target.reader.fetching
        beside.decrypt_with(target.reader.decryption)
        return beside

    def _read_both(
        self, target: Target, applied: str, earlier: str, beside: ManifestReader
    ) -> tuple[Desired, Desired | None]:
        """Return what the source asks for now, and what it asked for at the commit *earlier* where that is another one, by a reader *beside*. Blocks."""
        newest = read_with_bases(target, applied)
        if not earlier or newest.revision.sha == earlier:
            return newest, None
        return newest, read_at(target, earlier, beside)

    async def _opened(self, ref: ObjectRef, followed: FollowedSync, sync: Sync, spec: SourceSpec) -> Target:
        """Return the target with its source opened; one that was never read is recreated, with all that hangs on it."""
        keeps = Verification.recorded(self.context.live(ref))
        source = await source_of(self.context.session_of(sync), sync, spec, keeps=keeps)
        if (folder := local_folder(spec.address)) is not None:
            self.context.files.watch(folder, ref, lambda: self.changed(ref))
        if followed.target is not None and followed.state.source.is_read:
            if source.verified is not None:
                source.verified.go_on_from(followed.target.source.verified)
            return replace(followed.target, source=source)
        followed.forget()
        reader = self.context.session.reader()
        return Target(sync, source, parent=self.context.live(ref), reader=reader, locally=self.lanes.local)

    # The cluster -----------------------------------------------------------------------------

    async def _plan_set(self, ref: ObjectRef, followed: FollowedSync, asked: on.PlanSet) -> on.Event:
        if not asked.is_earlier:
            followed.earlier = None
        followed.desired = followed.earlier or followed.newest
        target, desired = followed.read()
        self.context.contention.pushed(ref, desired.revision.sha)
        sight = Sight.MANY if asked.unseen else Sight.ALL
        planned = await self._planned(followed, target, desired, sight=sight, remembered=True)
        made, desired = planned.plan, planned.desired
        if planned.was_told_anew:
            followed.told_anew(desired)
        followed.find_places(made, desired)
        if (live := self.context.live(ref, target.parent)) is not None:
            is_all = not any(each.in_source for each in made.errors)  # what can't be read may ask for what it did
            await self.health.take_up(target.sync, live, followed.places, is_all=is_all)
        applied = str(((target.parent or {}).get("status") or {}).get("lastAppliedRevision") or "")
        return on.PlanMade(made, frozenset(followed.places), applied)

    async def _plan_objects(self, ref: ObjectRef, followed: FollowedSync, refs: Iterable[ObjectRef]) -> on.Event:
        """Plan some members, of which nothing is pruned: what isn't among them isn't gone."""
        target, desired = followed.read()
        narrow = replace(target, sync=replace(target.sync, prune=False))
        contentions = self.context.contention.of(ref)
        members = sorted(refs)

        def part(whole: Desired) -> Desired:
            is_known = whole is desired
            places = followed.places if is_known else followed.places_by(whole, target.sync.default_namespace)
            return _part(places, whole, members)

        made = await self._planned(followed, narrow, desired, choose=part, remembered=True)
        if made.was_told_anew:
            followed.told_anew(made.desired)
            followed.find_places_again(made.desired, target.sync.default_namespace)
        is_contended_anew = self.context.contention.of(ref) != contentions
        return on.PlanMade(made.plan, contention_changed=is_contended_anew, was_told_anew=made.was_told_anew)

    async def _planned(
        self,
        followed: FollowedSync,
        target: Target,
        desired: Desired,
        *,
        choose: Callable[[Desired], Desired] = lambda whole: whole,
        sight: Sight = Sight.ALL,
        remembered: bool = False,
    ) -> PlannedSync:
        """Plan members, without fields that others keep overwriting; modules are asked beside that."""
        session, view = self.context.session_of(target.sync), self.context.view.of(target.sync)
        planned = await plan_for(
            session, target, desired, view, memory=followed.memory, children=False, choose=choose, sight=sight,
            contentions=self.context.contention.contentions(),
            overwritten=partial(self.context.overwritten, target.sync.ref), remembered=remembered,
        )  # fmt: skip
        followed.memory = planned.memory
        return planned

    async def _apply_set(self, ref: ObjectRef, followed: FollowedSync, work: on.ApplySet) -> on.Event:
        target, desired = followed.read()
        started, stop, sync = time.perf_counter(), self.context.stop(ref), target.sync
        wait = WaveWait(
            stop, self.lent, partial(self._ask_beside, ref, followed), partial(self._is_superseded, ref, followed, sync),
            partial(self._say_reconciling, ref),
        )  # fmt: skip
        session = self.context.session_of(sync)
        writes = sum(1 for change in work.plan.acting() if change.writes)
        writer = self.context.writer(session, stop, waiting=wait.heard, writes=writes, tenant=sync.namespace)
        by = Sight.MANY if work.unseen else Sight.ALL

        async def write(sight: Sight) -> Done:
            target, _ = followed.read()
            made = work.plan if sight is by else (await self._planned(followed, target, desired)).plan
            done = await perform(
                self.context.session, target, made, replace(writer, provisional=sight is not Sight.ALL),
                memory=followed.memory, recorded=self.context.cache.wrote,
            )  # fmt: skip
            followed.take(done)
            return done

        followed.target = replace(target, parent=self.context.live(ref, target.parent) or target.parent)
        beside = asyncio.create_task(wait.beside(), name=f"beside {ref}")
        try:
            async with told_late(_MOMENT_S, partial(self._announce, ref, work)) if writes else nullcontext():
                went = await until_seen(by, write, lambda done: done.results, stop)
        finally:
            beside.cancel()
        if stop.is_set():
            return on.PassInterrupted()
        followed.earlier = None
        done = reduce(after_provisional, went)
        missing = refused_namespaces(done.results)
        return on.Applied(done.report, missing_namespaces=missing, duration_s=time.perf_counter() - started)

    async def _ask_beside(self, ref: ObjectRef, followed: FollowedSync) -> None:
        """Have the source asked where that is due while a pass waits; an answer without news is taken in at once."""
        answer = followed.answer
        if answer is not None and isinstance(answer.event, on.SourceRead) and not answer.event.is_news:
            followed.answer, followed.reading = None, None
            followed.state, _ = step(followed.state, answer.event, time.monotonic())
            await self.context.hear(ref, answer.event)
        followed.state, instructions = step(followed.state, on.SourceDue(), time.monotonic())
        for instruction in instructions:
            result = await self.carry_out(ref, followed, instruction)
            if isinstance(result, on.SourceFailed) and followed.state.sync and followed.state.sync.source:
                followed.answer = SourceAnswer(followed.state.sync.source, result)  # for the next turn

    def _is_superseded(self, ref: ObjectRef, followed: FollowedSync, sync: Sync) -> bool:
        """Tell whether something else is asked for than what a pass of *sync* is about."""
        live = self.context.live(ref)
        if live is None or live["metadata"].get("deletionTimestamp"):
            return True
        answer = followed.answer.event if followed.answer else None
        is_news = isinstance(answer, on.SourceRead) and answer.is_news
        is_approved = annotations_of(live).get(APPROVED_PLAN, "") != sync.approved_plan
        return is_news or is_approved or live["metadata"].get("generation") != sync.generation

    async def _apply_objects(self, ref: ObjectRef, sync: Sync, made: Plan) -> on.Event:
        stop = self.context.stop(ref)
        results = await self.context.writer(self.context.session_of(sync), stop, tenant=sync.namespace).run(made)
        if stop.is_set():
            return on.PassInterrupted()
        succeeded = [each for each in results if each.state is ResultState.SUCCEEDED]
        return on.Applied(
            report_of(made, results),
            written=tuple(each.change for each in succeeded if each.wrote),
            has_failed=len(succeeded) < len(results),
        )

    # The status ------------------------------------------------------------------------------

    async def _announce(self, ref: ObjectRef, work: on.ApplySet) -> None:
        """Say that work is under way."""
        if not work.announced:
            return
        message = (
            f"{work.announced} object{'s' if work.announced > 1 else ''} to write at {short_of(work.plan.revision)}"
        )
        await self._say_reconciling(ref, message)

    async def _say_reconciling(self, ref: ObjectRef, message: str) -> None:
        await self.context.set_status(ref, lambda live: reconciling(
            live.get("status") or {}, message, generation=live["metadata"]["generation"], now=now_text()
        ))  # fmt: skip

    async def _tell(self, ref: ObjectRef, followed: FollowedSync, told: on.Tell) -> None:
        """Write how it went onto the Sync, and which request that answers."""
        contended = [str(contention) for contention in self.context.contention.of(ref)]
        report = replace(told.report, contended=contended)
        await self._learn_health(ref, followed)
        self.health.miss(ref, deleted_in(followed.state.drift))
        is_new = told.scope is on.Scope.SET and report.counts.wrote
        health = self.health.summary(ref, is_new=is_new)
        observed = followed.observed

        def status(live: Manifest) -> Manifest:
            before = map_at(live, "status")
            after = status_after(live, report, told.answers, health, observed)
            if told.scope is on.Scope.SET:
                after = _contents(live, followed, report).noted(after, ref.namespace)
            return after if tells_more(before, after, followed.same) else before

        known = followed.target.parent if followed.target else None
        await self.health.told(ref, health, is_told=await self.context.set_status(ref, status, known))

    async def _note_put_back(self, ref: ObjectRef, put_back: Iterable[on.DriftPutBack]) -> None:
        notes = [(str(each.ref), each.note) for each in put_back]

        def status(live: Manifest) -> Manifest:
            before = map_at(live, "status")
            return {**before, "putBack": with_put_back(maps_in(before.get("putBack")), notes, now_text())}

        await self.context.set_status(ref, status)

    async def _learn_health(self, ref: ObjectRef, followed: FollowedSync) -> None:
        """Have the members watched also where no plan has shown them, as the spec has it now."""
        target = followed.target
        live = self.context.live(ref, target.parent if target else None)
        with suppress(SyncSpecError):
            if live is not None:
                is_read = target is not None and target.sync.generation == live["metadata"].get("generation")
                await self.health.learn(target.sync if target and is_read else Sync.of(live), live)


def _revisions(live: Manifest | None, sync: Sync) -> tuple[str, str]:
    """Return what was applied last, and what was tried last by this spec. At a start each Sync waits for its turn to read: none of them holds its object meanwhile."""
    applied = str(map_at(live or {}, "status").get("lastAppliedRevision") or "")
    return applied, passed_before(live, sync.generation)


def _contents(live: Manifest, followed: FollowedSync, report: Report) -> Contents:
    """Return kinds and namespaces of what is asked for; and those of before, unless nothing can be left of what was asked for then."""
    asked = Contents.of(followed.places)
    is_all = report.reason is ConditionReason.SYNCED and not report.undeletable
    return asked if is_all else asked | Contents.told(live)


def _part(places: Mapping[ObjectRef, Located], desired: Desired, refs: Iterable[ObjectRef]) -> Desired:
    """Return what is asked for of some members alone, and of what must fit them; *places* are where members are written down."""
    changed = [places[each] for each in refs if each in places]
    return replace(desired, manifests=with_fitting(changed, desired.manifests), problems=(), whole=False)
