"""Whoever logs, counts or makes Kubernetes Events of what the controllers do: they hear of each event and instruction.

A sink changes nothing: without any of them the daemon does the same. What is found again at each retry is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field

from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.daemon import pass_events as on
from kubectl_reconcile.core.daemon.contention import ContentionBegun, ContentionSettled
from kubectl_reconcile.core.daemon.cr_pass import CrApplied, CrFailed
from kubectl_reconcile.core.daemon.removal import RemovalEnding
from kubectl_reconcile.core.health.health import AWAITING
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.core.resources.sync import CONTENDED, SYNC
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.engine.telemetry.logs import News, event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

log = logging.getLogger("kubectl_reconcile.daemon")


class Sink(Protocol):
    """Hears at once what happened to an item, or what is done about it."""

    def hear(self, item: ObjectRef, what: object) -> None:
        """Take notice of *what*; must neither wait nor fail."""


class MetricsSink(Struct, frozen=True):
    """Counts."""

    metrics: Metrics

    def hear(self, item: ObjectRef, what: object) -> None:  # noqa: ARG002 - of no item is counted by itself
        """Count what is worth counting."""
        metrics = self.metrics
        match what:
            case on.SourceRead(is_news=is_news):
                metrics.sources.polls.labels("news" if is_news else "unchanged").inc()
            case on.SourceFailed():
                metrics.sources.polls.labels("failed").inc()
            case on.Tell(report=report):
                metrics.passes.count.labels("sync", report.ending.value).inc()
            case on.Applied(duration_s=duration_s) if duration_s:
                metrics.passes.seconds.labels("sync").observe(duration_s)
            case on.DriftPutBack():
                metrics.writes.drift.labels(str(what.ref.group_kind)).inc()
            case CrApplied():
                metrics.passes.count.labels("cr", "failed" if what.faults else "succeeded").inc()
                metrics.passes.seconds.labels("cr").observe(what.duration_s)
            case CrFailed():
                metrics.passes.count.labels("cr", "failed").inc()
            case ContentionBegun(contention=contention):
                metrics.contention.backoffs.labels(str(contention.ref.group_kind), contention.manager).inc()
            case Result(state=ResultState.SUCCEEDED, wrote=True):
                metrics.writes.changes.labels(what.change.op.value).inc()


class LogSink(Struct, frozen=True):
    """Writes log lines; *news* remembers what was said, so that a retry that fails as before says nothing."""

    news: News = field(default_factory=News)

    def forget(self, item: ObjectRef) -> None:
        """Drop what was said of an item that is gone."""
        for about in ("pass", "source", "status", "renamed"):
            self.news.of((about, item), ())

    def hear(self, item: ObjectRef, what: object) -> None:  # noqa: C901, PLR0912 - one line per thing that is logged
        """Log what is worth a line."""
        match what:
            case on.SourceRead():
                self.news.of(("source", item), ())
            case on.RetryScheduled(retry=retry, after_s=after_s) if retry.scope is on.Scope.SOURCE:
                level = self.news.level(("source", item), retry.message)
                event(log, level, "source not read", sync=_name(item), error=retry.message, retry_s=after_s)
            case on.RetryScheduled(retry=retry, after_s=after_s) if retry.scope is on.Scope.BROKEN_OFF:
                level = self.news.level(("pass", item), retry.message)
                event(log, level, "pass failed", object=item, error=retry.message, retry_s=after_s)
            case on.PassFailed(reason=ConditionReason.CRASHED, message=message) | CrFailed(message, is_crash=True):
                level = self.news.level(("pass", item), message, logging.ERROR)
                event(log, level, "pass crashed", object=item, error=message, exc_info=True)
            case on.Tell(report=report, scope=on.Scope.SET):
                self._synced(item, report)
            case on.DriftPutBack(ref=ref, note=note):
                event(log, logging.INFO, "drift corrected", object=ref, drift=note)
            case on.DriftLeft(ref=ref, note=note):
                event(log, logging.INFO, "drift left alone", object=ref, drift=note)
            case CrApplied(faults=faults, awaiting=awaiting):
                for fault in self.news.of(("pass", item), faults):
                    event(log, logging.WARNING, "module pass failed", object=item, error=fault)
                if awaiting:
                    event(log, logging.INFO, "action waits for approval", object=item, why=awaiting)
            case ContentionBegun(contention=found):
                event(
                    log, logging.WARNING, "contended", object=found.ref, field=found.path, manager=found.manager,
                    times=found.times,
                )  # fmt: skip
            case on.HealthChanged(reason=reason, sentence=sentence):
                event(log, logging.INFO, "health", sync=_name(item), reason=reason, why=sentence)
            case on.AnnotationRenamed(sentence=sentence):
                event(log, logging.WARNING, "annotation renamed", object=item, error=sentence)
            case RemovalEnding(report=Report(message=message)):
                level = self.news.level(("pass", item), message)
                event(log, level, "not deleted yet", sync=_name(item), error=message)
            case ContentionSettled(contention=found):
                event(log, logging.INFO, "contention settled", object=found.ref, field=found.path)
            case Result():
                self._written(what)

    def _written(self, result: Result) -> None:
        change = result.change
        if result.state is not ResultState.SUCCEEDED:
            level = self.news.level(change.ref, result.error)
            event(log, level, "not applied", object=change.ref, op=change.op, error=result.error)
            return
        self.news.of(change.ref, ())
        if result.wrote:
            why: dict[str, Any] = {"why": change.action.summary} if change.action else {}
            event(
                log, logging.INFO, "applied", object=change.ref, op=change.op,
                fields=len(change.fields), duration_ms=round(result.duration_ms), **why,
            )  # fmt: skip

    def _synced(self, item: ObjectRef, report: Report) -> None:
        """Log how a pass over a set went, and which problems are news."""
        counts, name = report.counts, _name(item)
        again = logging.DEBUG if report.lines() and not counts.wrote else logging.INFO
        said = [*report.lines(), *report.warnings]
        news = self.news.of(("pass", item), [f"{report.revision} {report.ending}", *said])
        event(
            log, logging.INFO if news else again, "synced", sync=name, revision=short_of(report.revision),
            reason=report.ending, created=counts.created, updated=counts.updated, deleted=counts.deleted,
            unchanged=counts.unchanged, failed=counts.failed,
        )  # fmt: skip
        for problem in said:
            if problem in news:
                event(log, logging.WARNING, "problem", sync=name, problem=problem)


class EventSink(Struct, frozen=True):
    """Makes Kubernetes Events; *live* returns an item as it is, None where it isn't there any more."""

    events: Events
    live: Callable[[ObjectRef], Manifest | None]

    async def hear(self, item: ObjectRef, what: object) -> None:  # noqa: C901 - one line per kind of event
        """Make an event of what is worth one."""
        match what:
            case on.SourceFailed(message=message, verification=verification):
                reason = ConditionReason.UNVERIFIED if verification else ConditionReason.SOURCE
                await self._warn(item, reason.value, message, "Fetch")
            case on.Tell(report=report, scope=on.Scope.SET) if report.ending is not ConditionReason.SYNCED:
                await self._warn(item, report.ending.value, report.sentence, "Sync")
            case on.Tell(report=report, scope=on.Scope.SET) if report.counts.wrote:
                counts = report.counts
                done = f"{counts.created} created, {counts.updated} updated, {counts.deleted} deleted"
                await self._say(item, "Synced", f"{short_of(report.revision)}: {done}", "Sync")
            case on.DriftPutBack(ref=ref, note=note):
                await self._say(item, "DriftCorrected", f"{ref}: {note}; corrected", "Apply")
            case on.DriftLeft(ref=ref, note=note):
                await self._warn(item, "Drifted", f"{ref}: {note}; left alone", "Compare")
            case on.HealthChanged():
                await self._judged(item, what)
            case on.AnnotationRenamed(sentence=sentence):
                await self._warn(item, "AnnotationRenamed", sentence, "Read")
            case CrApplied():
                await self._reconciled(item, what)
            case CrFailed(message=message):
                await self._warn(item, "ReconcileFailed", message, "Reconcile")
            case RemovalEnding(report=Report(reason=ConditionReason.UNDELETABLE, message=message)):
                await self._warn(item, ConditionReason.UNDELETABLE.value, message, "Delete")
            case ContentionBegun(contention=contention):
                await self._warn(item, CONTENDED, str(contention), "Apply")

    async def _reconciled(self, item: ObjectRef, what: CrApplied) -> None:
        for fault in what.faults:
            await self._warn(item, "ReconcileFailed", fault, "Reconcile")
        if what.awaiting:
            await self._say(item, AWAITING, what.awaiting, "Act")

    async def _judged(self, item: ObjectRef, found: on.HealthChanged) -> None:
        if found.reason == "Failed":
            await self._warn(item, "Unhealthy", found.sentence, "Judge")
        else:
            await self._say(item, "Healthy" if found.reason == "Healthy" else "Progressing", found.sentence, "Judge")

    async def _say(self, item: ObjectRef, reason: str, note: str, action: str) -> None:
        if (about := self.live(item)) is not None:
            await self.events.normal(about, reason, note, action=action)

    async def _warn(self, item: ObjectRef, reason: str, note: str, action: str) -> None:
        if (about := self.live(item)) is not None:
            await self.events.warning(about, reason, note, action=action)


def _name(item: ObjectRef) -> str:
    return f"{item.namespace}/{item.name}" if item.group_kind == SYNC.group_kind else str(item)
