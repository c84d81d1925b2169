"""Carries out instructions about a followed Sync: its source is read, its set planned and written, its status told.

Each instruction of ``core.daemon.pass_events`` has one method here; what it came to is returned as an event.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kubectl_reconcile.core.apply.results import ResultState, refused_namespaces, report_of
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.pass_state import PassState
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import Manifest, ObjectRef, condition_of
from kubectl_reconcile.core.planning.plan import Contentions, Plan
from kubectl_reconcile.core.resources.status import reconciling, sync_status
from kubectl_reconcile.core.resources.sync import GitSpec, Sync
from kubectl_reconcile.core.resources.verification import Verification, not_asked
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.sync.credentials import local_folder
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.perform import perform
from kubectl_reconcile.engine.sync.reconcile import Target, plan_for, read
from kubectl_reconcile.engine.sync.signed_sources import read_keys, verification_of
from kubectl_reconcile.engine.sync.targets import source_of
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.signed.verified import UnverifiedError, VerifiedSource


class NothingReadError(RuntimeError):
    """A set is to be worked on that was never read: a fault of the program."""


@dataclass(slots=True)
class FollowedSync:
    """One Sync being followed: its state, and what carrying out needs besides, which decides nothing.

    *changed* are the members that changed in the cluster since the last turn.
    """

    state: PassState = field(default_factory=PassState)
    target: Target | None = None
    desired: Desired | None = None
    places: Mapping[ObjectRef, Located] = field(default_factory=dict)
    changed: set[ObjectRef] = field(default_factory=set)
    verification: Verification | None = None

    def read(self) -> tuple[Target, Desired]:
        """Return what is followed, and what it asks for.

        Raises:
            NothingReadError: it was never read.
        """
        if self.target is None or self.desired is None:
            raise NothingReadError("a set is to be worked on that was never read")
        return self.target, self.desired


@dataclass(frozen=True, slots=True)
class SyncWork:
    """All that is done for Syncs; *changed* is called when files of a followed folder did."""

    context: DaemonContext
    changed: Callable[[ObjectRef], None]

    async def carry_out(  # noqa: C901, PLR0911 - one line per instruction
        self, ref: ObjectRef, followed: FollowedSync, instruction: on.Instruction
    ) -> on.Event | None:
        """Do what an instruction says, and return what it came to where something is to be told.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        match instruction:
            case on.ReadSource():
                return await self._read(ref, followed, opened=instruction.opened)
            case on.CheckMembers():
                return on.MembersChecked(all(map(self.context.view.snapshot().stored, followed.places)))
            case on.PlanSet():
                return await self._plan_set(ref, followed)
            case on.PlanObjects():
                return await self._plan_objects(ref, followed, instruction.refs)
            case on.ApplySet():
                return await self._apply_set(ref, followed.read()[0], instruction.plan)
            case on.ApplyObjects():
                return await self._apply_objects(ref, followed.read()[0].sync, instruction.plan)
            case on.Retry():
                delay_s = self.context.queue.failed(ref, instruction.priority, cap_s=instruction.cap_s)
                return on.RetryScheduled(instruction, delay_s)
            case on.Announce():
                await self._announce(ref, instruction)
            case on.Tell():
                await self._tell(ref, instruction)
            case on.ForgetFailures():
                self.context.queue.succeeded(ref)
            case on.LookAgain():
                self.context.queue.add(ref, instruction.priority, after_s=instruction.after_s)
            case on.DriftPutBack():
                self.context.queue.wrote(instruction.ref)
        return None

    def facts(self, ref: ObjectRef, sync: Sync, dirty: Iterable[ObjectRef]) -> on.ClusterFacts:
        """Return what a decision about a Sync needs to know; contention that has lasted long enough ends hereby."""
        contention, now_s = self.context.contention, time.monotonic()
        has_lapsed = bool(contention.lapse(ref, now_s))
        return on.ClusterFacts(
            unready=next((each for each in sync.depends_on if not _is_ready(self.context.live(each))), None),
            is_contended=bool(contention.of(ref)),
            has_lapsed=has_lapsed,
            lapses_at_s=contention.due_s(ref),
            pauses_s={each: self.context.queue.pause_s(each) for each in dirty},
        )

    # The source ------------------------------------------------------------------------------

    async def _read(self, ref: ObjectRef, followed: FollowedSync, *, opened: bool) -> on.Event:
        """Ask the source for news, opened anew with the credentials of now where that is asked for."""
        sync = followed.state.sync
        if sync is None or sync.git is None:
            return on.Forgotten()
        if self.context.session.requires_verify and sync.git.verify is None:
            return self._refused(ref, followed, sync, not_asked())
        try:
            if opened or followed.target is None:
                followed.target = await self._opened(ref, followed, sync, sync.git)
            else:
                await read_keys(self.context.session_of(sync), sync, followed.target.source)
            desired = await read(followed.target)
        except UnverifiedError as error:
            return self._refused(ref, followed, sync, error.verification)
        except SourceError as error:
            return on.SourceFailed(str(error), self.facts(ref, sync, followed.state.dirty))
        before, followed.verification = followed.verification, verification_of(followed.target.source)
        is_news, followed.desired = desired is not followed.desired or before != followed.verification, desired
        return on.SourceRead(is_news, self.facts(ref, sync, followed.state.dirty), followed.verification)

    def _refused(self, ref: ObjectRef, followed: FollowedSync, sync: Sync, verification: Verification) -> on.Event:
        followed.verification = verification
        return on.SourceFailed(verification.refusal, self.facts(ref, sync, followed.state.dirty), verification)

    async def _opened(self, ref: ObjectRef, followed: FollowedSync, sync: Sync, git: GitSpec) -> Target:
        """Return the target with its source opened; one that was never read is recreated, with all that hangs on it."""
        keeps = Verification.recorded(self.context.live(ref))
        source = await source_of(self.context.session_of(sync), sync, git, keeps=keeps)
        if (folder := local_folder(git.url)) is not None:
            self.context.files.watch(folder, ref, lambda: self.changed(ref))
        if followed.target is not None and followed.state.source.is_read:
            if isinstance(source, VerifiedSource):
                source.go_on_from(followed.target.source)
            followed.target.source = source
            return followed.target
        followed.desired, followed.places = None, {}
        return Target(sync, source, parent=self.context.live(ref), reader=self.context.session.reader())

    # The cluster -----------------------------------------------------------------------------

    async def _plan_set(self, ref: ObjectRef, followed: FollowedSync) -> on.Event:
        target, desired = followed.read()
        made = await self._planned(ref, target, desired)
        target.verdicts, followed.places = made.verdicts, _places(made, desired)
        applied = str(((target.parent or {}).get("status") or {}).get("lastAppliedRevision") or "")
        return on.PlanMade(made, frozenset(followed.places), applied)

    async def _plan_objects(self, ref: ObjectRef, followed: FollowedSync, refs: Iterable[ObjectRef]) -> on.Event:
        """Plan some members, of which nothing is pruned: what isn't among them isn't gone."""
        target, desired = followed.read()
        manifests = tuple(followed.places[each] for each in sorted(refs) if each in followed.places)
        part = replace(desired, manifests=manifests, problems=(), whole=False)
        narrow = replace(target, sync=replace(target.sync, prune=False))
        contentions = self.context.contention.of(ref)
        made = await self._planned(ref, narrow, part)
        target.verdicts = narrow.verdicts
        return on.PlanMade(made, contention_changed=self.context.contention.of(ref) != contentions)

    async def _planned(self, ref: ObjectRef, target: Target, desired: Desired) -> Plan:
        def build(contentions: Contentions) -> Awaitable[Plan]:
            target.contentions = contentions
            return plan_for(
                self.context.session_of(target.sync), target, desired, self.context.view.of(target.sync), children=False
            )

        return await self.context.plan_uncontended(ref, build)

    async def _apply_set(self, ref: ObjectRef, target: Target, made: Plan) -> on.Event:
        started, stop = time.perf_counter(), self.context.stop(ref)
        writer = self.context.writer(self.context.session_of(target.sync), stop)
        done = await perform(self.context.session, target, made, writer)
        if target.parent:
            self.context.cache.wrote(target.parent)
        if stop.is_set():
            return on.PassInterrupted()
        missing = refused_namespaces(done.results)
        return on.Applied(done.report, missing_namespaces=missing, duration_s=time.perf_counter() - started)

    async def _apply_objects(self, ref: ObjectRef, sync: Sync, made: Plan) -> on.Event:
        stop = self.context.stop(ref)
        results = await self.context.writer(self.context.session_of(sync), stop).run(made)
        if stop.is_set():
            return on.PassInterrupted()
        succeeded = [each for each in results if each.state is ResultState.SUCCEEDED]
        return on.Applied(
            report_of(made, results),
            written=tuple(each.change for each in succeeded if each.wrote),
            has_failed=len(succeeded) < len(results),
        )

    # The status ------------------------------------------------------------------------------

    async def _announce(self, ref: ObjectRef, work: on.Announce) -> None:
        """Say that work begins."""
        message = f"{work.writes} object{'s' if work.writes > 1 else ''} to write at {work.revision[:7]}"
        await self.context.set_status(ref, lambda live: reconciling(
            live.get("status") or {}, message, generation=live["metadata"]["generation"], now=now_text()
        ))  # fmt: skip

    async def _tell(self, ref: ObjectRef, told: on.Tell) -> None:
        """Write how it went onto the Sync, and which request that answers."""
        contended = [str(contention) for contention in self.context.contention.of(ref)]
        report = replace(told.report, contended=contended)
        await self.context.set_status(ref, lambda live: sync_status(
            live.get("status") or {}, report,
            generation=live["metadata"]["generation"], requested_at=told.answers, now=now_text(),
        ))  # fmt: skip


def _places(made: Plan, desired: Desired) -> dict[ObjectRef, Located]:
    """Return where each member is written down."""
    by_place = {(located.path, located.line): located for located in desired.manifests}
    found = ((change.ref, by_place.get((change.provenance.file, change.provenance.line))) for change in made.changes)
    return {ref: located for ref, located in found if located is not None}


def _is_ready(live: Manifest | None) -> bool:
    """Tell whether a Sync is Ready for its newest spec."""
    if live is None:
        return False
    ready = condition_of(live, "Ready") or {}
    return ready.get("status") == "True" and ready.get("observedGeneration") == live["metadata"].get("generation")
