"""One Sync, followed: its source is asked for news, its set is planned and written, its status told.

A pass is *whole* when Git, the Sync or the kinds changed, when somebody asked, or when the last
one failed; else it looks only at the *dirty* objects, those that changed in the cluster. A pass
with nothing to look at asks the repository at most, and writes nothing; somebody who asked is
told what the last whole pass found, since the watches say that it still holds.

Whatever goes wrong ends as a condition on the Sync.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace

from kubectl_reconcile.core.annotations import SYNC_REQUESTED_AT
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import Manifest, ObjectRef, annotations_of, condition_of
from kubectl_reconcile.core.planning.plan import Change, Contentions, Op, Plan
from kubectl_reconcile.core.resources.status import ConditionReason, Counts, Report, reconciling, sync_status
from kubectl_reconcile.core.resources.sync import DriftPolicy, GitSpec, Sync, SyncSpecError
from kubectl_reconcile.core.ssa.merge import Reason
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.finalization import Finalization
from kubectl_reconcile.engine.daemon.queue import RETRY_CAP_S, Priority
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.reconcile import Target, perform, plan_for, read
from kubectl_reconcile.engine.sync.targets import local_folder, source_of
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.source.errors import SourceError

_POLL_SOON_S = 0.05

log = logging.getLogger(__name__)


def is_asked(manifest: Manifest) -> bool:
    """Tell whether somebody asked for a sync that wasn't answered yet."""
    asked = annotations_of(manifest).get(SYNC_REQUESTED_AT)
    return bool(asked) and asked != (manifest.get("status") or {}).get("lastHandledSyncAt")


@dataclass(slots=True)
class FollowedSync:
    """One Sync being followed: its source, and what is to be looked at next."""

    target: Target
    git: GitSpec
    generation: int
    desired: Desired | None = None
    places: Mapping[ObjectRef, Located] = field(default_factory=dict)
    dirty: set[ObjectRef] = field(default_factory=set)
    drifted: dict[ObjectRef, str] = field(default_factory=dict)
    whole: bool = True
    settled: Report | None = None
    poll_due_s: float = 0.0
    retry_due_s: float = 0.0
    unread: bool = False

    @property
    def is_due(self) -> bool:
        """Tell whether it is time to ask the source for news."""
        return time.monotonic() >= self.poll_due_s

    def changed_live(self, ref: ObjectRef) -> None:
        """Note that a member changed in the cluster; one that no file explains calls for a whole pass."""
        if ref in self.places:
            self.dirty.add(ref)
        else:
            self.whole = True


@dataclass(slots=True)
class SyncController:
    """The passes of all Syncs; *followed* is what is known of each between two passes."""

    context: DaemonContext
    followed: dict[ObjectRef, FollowedSync] = field(default_factory=dict)
    endings: Finalization = field(init=False)

    def __post_init__(self) -> None:
        """Make what looks after Syncs that are deleted."""
        self.endings = Finalization(self.context)

    def forget(self, ref: ObjectRef) -> None:
        """Drop a Sync that is gone."""
        self.followed.pop(ref, None)
        self.context.forget(ref)

    def pushed(self, ref: ObjectRef) -> None:
        """Ask the source of a Sync for news now."""
        if followed := self.followed.get(ref):
            followed.poll_due_s = 0.0
        self.context.queue.add(ref, Priority.PUSH)

    async def run(self, ref: ObjectRef, *, asked: bool) -> None:
        """Look at one Sync, as far as there is something to look at.

        Raises:
            ApiError: the server refuses, or doesn't answer; the pass is to be tried again.
        """
        manifest = self.context.live(ref)
        if manifest is None:
            return
        await self.context.warn_of_renamed(ref, manifest)
        try:
            sync = Sync.of(manifest)
        except SyncSpecError as error:
            await self.report(ref, Report(ConditionReason.INVALID, str(error)))
            return
        if manifest["metadata"].get("deletionTimestamp"):
            await self.endings.run(sync, manifest)
            return
        if sync.git is None:
            return
        await self.endings.prepare(sync, manifest)
        if sync.suspend:
            self.followed.pop(ref, None)
            await self.report(ref, Report(ConditionReason.SUSPENDED, "spec.suspend is true"), answers=sync.requested_at)
            return
        try:
            async with asyncio.timeout(sync.timeout_s):
                await self._pass(ref, sync, sync.git, manifest, asked=asked or is_asked(manifest))
        except TimeoutError:
            self.context.queue.failed(ref)
            late = f"not done within spec.timeout, {sync.timeout_s:.0f} s; it is tried again"
            await self.report(ref, Report(ConditionReason.FAILED, late), answers=sync.requested_at)

    async def _pass(self, ref: ObjectRef, sync: Sync, git: GitSpec, manifest: Manifest, *, asked: bool) -> None:
        try:
            await self._read(ref, await self._follow(ref, sync, git, manifest, asked=asked), asked=asked)
        except SourceError as error:
            await self._unreadable(ref, sync, git, manifest, error)
        followed = self.followed.get(ref)
        if followed is None or followed.desired is None:
            return
        if self.context.contention.lapse(ref, time.monotonic()):
            followed.whole = True
        poll_s = min(followed.poll_due_s, self.context.contention.due_s(ref) or followed.poll_due_s)
        self.context.queue.add(ref, Priority.POLL, after_s=max(poll_s - time.monotonic(), _POLL_SOON_S))
        if followed.unread:
            await self._keep_up(ref, followed, followed.desired)
        elif unready := self._unready(sync):
            followed.whole = True
            waits = f"waits for Sync {unready.namespace}/{unready.name} to be Ready"
            await self.report(ref, Report(ConditionReason.WAITING, waits), answers=sync.requested_at)
        elif asked and (report := self._as_before(ref, followed)):
            await self.report(ref, report, answers=sync.requested_at)
        elif asked or (followed.whole and time.monotonic() >= followed.retry_due_s):
            await self._whole(ref, followed, followed.desired, asked=asked)
        else:
            await self._keep_up(ref, followed, followed.desired)

    def _as_before(self, ref: ObjectRef, followed: FollowedSync) -> Report | None:
        """Return how the last whole pass went, if all was well and nothing can have changed since; else None."""
        news = followed.whole or followed.dirty or self.context.contention.of(ref)
        if news or followed.target.sync.drift is not DriftPolicy.CORRECT:
            return None
        snapshot = self.context.view.snapshot()
        return followed.settled if all(map(snapshot.stored, followed.places)) else None

    async def _keep_up(self, ref: ObjectRef, followed: FollowedSync, desired: Desired) -> None:
        """Look at what changed in the cluster, if anything did. Needs no source."""
        if followed.dirty:
            await self._drifted(ref, followed, desired)

    def _unready(self, sync: Sync) -> ObjectRef | None:
        """Return the first Sync that this one depends on and that isn't Ready for its newest spec."""
        return next((each for each in sync.depends_on if not _is_ready(self.context.live(each))), None)

    def wake_dependents(self, ref: ObjectRef) -> None:
        """Look again at the Syncs that wait for *ref*."""
        for waiting, followed in self.followed.items():
            if followed.whole and ref in followed.target.sync.depends_on:
                self.context.queue.add(waiting, Priority.PUSH)

    # The source ------------------------------------------------------------------------------

    async def _follow(
        self, ref: ObjectRef, sync: Sync, git: GitSpec, manifest: Manifest, *, asked: bool
    ) -> FollowedSync:
        """Return the state of this Sync, made anew where what it follows changed."""
        followed = self.followed.get(ref)
        if followed is None or followed.git != git:
            self.followed.pop(ref, None)
            source = await source_of(self.context.session, sync, git)
            if (folder := local_folder(git.url)) is not None:
                self.context.files.watch(folder, ref, lambda: self.pushed(ref))
            followed = self.followed[ref] = FollowedSync(
                Target(sync, source, reader=self.context.session.reader()), git, sync.generation
            )
        elif followed.unread and (asked or followed.is_due):
            followed.target.source = await source_of(self.context.session, sync, git)
        followed.whole = followed.whole or followed.generation != sync.generation
        followed.generation = sync.generation
        followed.target.sync, followed.target.parent = sync, manifest
        return followed

    async def _read(self, ref: ObjectRef, followed: FollowedSync, *, asked: bool) -> None:
        """Ask the source for news, if it is time or somebody asked."""
        if followed.desired is not None and not asked and not followed.is_due:
            return
        desired = await read(followed.target)
        followed.poll_due_s = time.monotonic() + followed.git.interval_s
        news = desired is not followed.desired
        self.context.metrics.polls.labels("news" if news else "unchanged").inc()
        self.context.news.of(("source", ref), ())
        followed.desired, followed.whole = desired, followed.whole or news or followed.unread
        followed.retry_due_s = 0.0 if news else followed.retry_due_s
        followed.unread = False

    async def _unreadable(
        self, ref: ObjectRef, sync: Sync, git: GitSpec, manifest: Manifest, error: SourceError
    ) -> None:
        """Say that the source can't be read. Credentials may be what is wrong, so they are read anew next time.

        What was read before is kept up meanwhile.
        """
        self.context.metrics.polls.labels("failed").inc()
        retry_s = self.context.queue.failed(ref, Priority.POLL, cap_s=max(git.interval_s, 5.0))
        if followed := self.followed.get(ref):
            followed.unread, followed.poll_due_s = True, time.monotonic() + retry_s
        level = self.context.news.level(("source", ref), str(error))
        event(log, level, "source not read", sync=f"{ref.namespace}/{ref.name}", error=error, retry_s=retry_s)
        await self.report(ref, Report(ConditionReason.SOURCE, str(error)), answers=sync.requested_at)
        await self.context.events.warning(manifest, ConditionReason.SOURCE.value, str(error), action="Fetch")

    # The cluster -----------------------------------------------------------------------------

    async def _whole(self, ref: ObjectRef, followed: FollowedSync, desired: Desired, *, asked: bool) -> None:
        """Plan and write the whole set; drift that is to be left alone is, unless somebody asked."""
        followed.whole, followed.dirty, followed.settled = False, set(), None
        try:
            made = await self._planned(ref, followed.target, desired)
            followed.target.verdicts, followed.places = made.verdicts, _places(made, desired)
            made = _drift_left(followed, made, asked=asked)
            await self._carry_out(ref, followed, made)
        except BaseException:
            followed.whole = True
            raise

    async def _planned(self, ref: ObjectRef, target: Target, desired: Desired) -> Plan:
        def build(contentions: Contentions) -> Awaitable[Plan]:
            target.contentions = contentions
            return plan_for(self.context.session, target, desired, self.context.view, children=False)

        return await self.context.peaceful(ref, build)

    async def _carry_out(self, ref: ObjectRef, followed: FollowedSync, made: Plan) -> None:
        started = time.perf_counter()
        await self._announce(ref, made)
        stop = self.context.stop(ref)
        done = await perform(self.context.session, followed.target, made, self.context.writer(stop))
        report = _with_drift(followed, done.report)
        if followed.target.parent:
            self.context.cache.wrote(followed.target.parent)
        self.context.metrics.pass_seconds.labels("sync").observe(time.perf_counter() - started)
        if stop.is_set():
            followed.whole = True
            self.context.queue.add(ref, Priority.RESYNC)
            return
        await self.report(ref, report, answers=followed.target.sync.requested_at)
        await self._tell(ref, followed, report)
        if report.reason is ConditionReason.SYNCED:
            followed.settled = replace(report, counts=Counts(report.counts.total, unchanged=report.counts.total))
        if report.reason in {ConditionReason.FAILED, ConditionReason.PROBLEMS}:
            self._retry(ref, followed)
        else:
            self.context.queue.succeeded(ref)

    def _retry(self, ref: ObjectRef, followed: FollowedSync) -> None:
        """Look at the whole set again, later with each failure; polls in between only look for news."""
        followed.whole = True
        delay_s = self.context.queue.failed(ref, Priority.DRIFT, cap_s=max(followed.git.interval_s, RETRY_CAP_S))
        followed.retry_due_s = time.monotonic() + delay_s - _POLL_SOON_S

    async def _announce(self, ref: ObjectRef, made: Plan) -> None:
        """Say that work begins, where there is some."""
        if writes := sum(1 for change in made.changes if change.writes):
            message = f"{writes} object{'s' if writes > 1 else ''} to write at {made.revision[:7]}"
            await self.context.set_status(ref, lambda live: reconciling(
                live.get("status") or {}, message, generation=live["metadata"]["generation"], now=now_text()
            ))  # fmt: skip

    async def _drifted(self, ref: ObjectRef, followed: FollowedSync, desired: Desired) -> None:
        """Plan and write only what changed in the cluster; what is put back again and again waits for its turn."""
        pauses_s = {each: self.context.queue.pause_s(each) for each in followed.dirty}
        dirty = frozenset(each for each, pause_s in pauses_s.items() if not pause_s)
        if not dirty:
            self.context.queue.add(ref, Priority.DRIFT, after_s=min(pauses_s.values()))
            return
        followed.dirty -= dirty
        manifests = tuple(followed.places[each] for each in sorted(dirty) if each in followed.places)
        part = replace(desired, manifests=manifests, problems=(), whole=False)
        target = replace(followed.target, sync=replace(followed.target.sync, prune=False))
        try:
            contentions = self.context.contention.of(ref)
            made = await self._planned(ref, target, part)
            followed.target.verdicts = target.verdicts
            if self.context.contention.of(ref) != contentions:  # the status must tell, and only a whole pass writes it
                followed.whole = True
                self.context.queue.changed(ref)
            if followed.target.sync.drift is not DriftPolicy.CORRECT:
                await self._leave(ref, followed, made)
                return
            results = await self.context.writer(self.context.stop(ref)).run(made)
        except BaseException:
            followed.dirty |= dirty
            raise
        await self._put_back(ref, followed, results)

    async def _leave(self, ref: ObjectRef, followed: FollowedSync, made: Plan) -> None:
        """Tell of drift without touching it; what is as it should be again is no drift any more."""
        await self.context.writer(self.context.stop(ref)).run(
            replace(made, changes=tuple(filter(_is_mere_ownership, made.changes)))
        )
        for change in made.changes:
            if change.op is Op.UNCHANGED or _is_mere_ownership(change):
                followed.drifted.pop(change.ref, None)
            elif (note := _drift_note(change)) != followed.drifted.get(change.ref):
                followed.drifted[change.ref] = note
                event(log, logging.INFO, "drift left alone", object=change.ref, drift=note)
                if followed.target.parent:
                    sentence = f"{change.ref}: {note}; left alone"
                    await self.context.events.warning(followed.target.parent, "Drifted", sentence, action="Compare")
        live = self.context.live(ref) or {}
        ready = condition_of(live, "Ready") or {}
        if ready.get("reason") in {ConditionReason.SYNCED.value, ConditionReason.DRIFTED.value}:
            counts = Counts(total=len(followed.places))
            report = Report(ConditionReason.SYNCED, f"{counts.total} objects as Git asks for", made.revision, counts)
            await self.report(ref, _with_drift(followed, report))

    async def _put_back(self, ref: ObjectRef, followed: FollowedSync, results: list[Result]) -> None:
        """Tell what drift was put back; what could not be is left to a whole pass."""
        for result in results:
            if result.state is ResultState.SUCCEEDED and result.wrote:
                self.context.queue.wrote(result.change.ref)
                self.context.metrics.drift.labels(str(result.change.ref.group_kind)).inc()
                note = _drift_note(result.change)
                event(log, logging.INFO, "drift put back", object=result.change.ref, drift=note)
                if followed.target.parent:
                    sentence = f"{result.change.ref}: {note}; put back"
                    await self.context.events.normal(followed.target.parent, "DriftCorrected", sentence, action="Apply")
        if any(result.state is not ResultState.SUCCEEDED for result in results):
            self._retry(ref, followed)
        if followed.dirty:
            self.context.queue.changed(ref)

    # Telling ---------------------------------------------------------------------------------

    async def report(self, ref: ObjectRef, report: Report, *, answers: str = "") -> None:
        """Write how a pass went onto its Sync, and which request it answers."""
        self.context.metrics.passes.labels("sync", report.reason.value).inc()
        told = replace(report, contended=[str(contention) for contention in self.context.contention.of(ref)])
        await self.context.set_status(ref, lambda live: sync_status(
            live.get("status") or {}, told,
            generation=live["metadata"]["generation"], requested_at=answers, now=now_text(),
        ))  # fmt: skip

    async def _tell(self, ref: ObjectRef, followed: FollowedSync, report: Report) -> None:
        """Log how a whole pass went, and make an event of what is worth one."""
        counts, name = report.counts, f"{ref.namespace}/{ref.name}"
        again = logging.DEBUG if report.problems and not counts.wrote else logging.INFO
        news = self.context.news.of(("pass", ref), [f"{report.revision} {report.reason}", *report.problems])
        event(
            log, logging.INFO if news else again, "synced", sync=name, revision=report.revision[:7],
            reason=report.reason, created=counts.created, updated=counts.updated, deleted=counts.deleted,
            unchanged=counts.unchanged, failed=counts.failed,
        )  # fmt: skip
        for problem in report.problems:
            if problem in news:
                event(log, logging.WARNING, "problem", sync=name, problem=problem)
        parent = followed.target.parent
        if parent is None:
            return
        if report.reason is not ConditionReason.SYNCED:
            await self.context.events.warning(parent, report.reason.value, report.message, action="Sync")
        elif counts.wrote:
            done = f"{counts.created} created, {counts.updated} updated, {counts.deleted} deleted"
            await self.context.events.normal(parent, "Synced", f"{report.revision[:7]}: {done}", action="Sync")


def _places(made: Plan, desired: Desired) -> dict[ObjectRef, Located]:
    """Return where each member is written down."""
    by_place = {(located.path, located.line): located for located in desired.manifests}
    found = ((change.ref, by_place.get((change.provenance.file, change.provenance.line))) for change in made.changes)
    return {ref: located for ref, located in found if located is not None}


def _drift_note(change: Change) -> str:
    """Name the fields that somebody changed, and who that was."""
    if change.op is Op.CREATE:
        return "somebody deleted it"
    drifted = [each for each in change.fields if each.reason is not Reason.GIT]
    managers = sorted({each.manager for each in drifted if each.manager})
    fields = ", ".join(str(each.path) for each in drifted[:5]) or "its metadata"
    return f"{', '.join(managers) or 'somebody'} changed {fields}"


def _drift_left(followed: FollowedSync, made: Plan, *, asked: bool) -> Plan:
    """Return *made* without what only puts drift back, where the Sync says to leave it."""
    if asked or followed.target.sync.drift is DriftPolicy.CORRECT:
        followed.drifted.clear()
        return made
    status = (followed.target.parent or {}).get("status") or {}
    nothing_new = status.get("lastAppliedRevision") == made.revision
    known = {change.ref for change in made.changes}
    followed.drifted = {ref: note for ref, note in followed.drifted.items() if ref in known}
    changes = []
    for change in made.changes:
        about_fields = change.writes and change.op is not Op.DELETE and not _is_mere_ownership(change)
        if about_fields and (nothing_new or _is_mere_drift(followed, change)):
            followed.drifted[change.ref] = _drift_note(change)
            changes.append(change.gated(held=True))
        else:
            followed.drifted.pop(change.ref, None)
            changes.append(change)
    return replace(made, changes=tuple(changes))


def _is_mere_ownership(change: Change) -> bool:
    """Tell whether all values are right and only the record of who owns them isn't: writing that disturbs nobody."""
    return change.op is Op.UPDATE and not change.fields


def _is_mere_drift(followed: FollowedSync, change: Change) -> bool:
    if change.op is Op.CREATE:
        return change.ref in followed.drifted
    return bool(change.fields) and all(each.reason is Reason.DRIFT for each in change.fields)


def _with_drift(followed: FollowedSync, report: Report) -> Report:
    """Return *report* with the drift that is left alone; it isn't Ready where somebody must decide."""
    policy = followed.target.sync.drift
    if policy is DriftPolicy.CORRECT:
        return report
    drifted = [f"{ref}: {note}" for ref, note in sorted(followed.drifted.items())]
    if drifted and policy is DriftPolicy.ASK and report.reason is ConditionReason.SYNCED:
        message = f"{drifted[0]}{f' (and {len(drifted) - 1} more)' if len(drifted) > 1 else ''}; sync to put it back"
        return replace(report, reason=ConditionReason.DRIFTED, message=message, drifted=drifted)
    return replace(report, drifted=drifted)


def _is_ready(live: Manifest | None) -> bool:
    if live is None:
        return False
    ready = condition_of(live, "Ready") or {}
    return ready.get("status") == "True" and ready.get("observedGeneration") == live["metadata"].get("generation")
