"""One CR whose kind has a module: the module is asked, its children and status are written.

A pass over a CR trusts the caches: a child that they don't have is created by a write that the server refuses where
something of that name is there. Only then is it looked up, and the module asked again. So a thousand new CRs cost no
look at what isn't there.

CRs from Git and CRs made by hand are treated alike. A fault of a module, or of one CR, ends as an
event on that CR; it is tried again, later and later, and the others go on.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.engine.apply.writer import Signal
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.daemon.queue import Priority
from kubectl_reconcile.engine.sync.cr_plan import plan_of
from kubectl_reconcile.engine.telemetry.logs import event

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CrController:
    """The passes of all CRs. Nothing is kept between two of them."""

    context: DaemonContext

    async def run(self, ref: ObjectRef) -> None:
        """Ask the module of one CR, and write what it wants.

        Raises:
            ApiError: the server refuses, or doesn't answer; the pass is to be tried again.
        """
        cr = self.context.live(ref)
        if cr is None or GroupVersionKind.of(cr) not in self.context.session.modules:
            return
        await self.context.warn_of_renamed(ref, cr)
        started = time.perf_counter()
        self.context.contention.lapse(ref, time.monotonic())
        is_paced, stop = self.context.queue.pause_s(ref) > 0, self.context.stop(ref)
        made, results = await self._written(ref, cr, stop, provisional=not is_paced)
        if any(each.state is ResultState.TAKEN for each in results):
            earlier = [each for each in results if each.state is ResultState.SUCCEEDED]
            made, results = await self._written(ref, cr, stop, provisional=False)
            results = earlier + results
        self.context.metrics.pass_seconds.labels("cr").observe(time.perf_counter() - started)
        if stop.is_set():
            self.context.queue.add(ref, Priority.RESYNC)
            return
        await self._tell(ref, cr, made, results)

    async def _written(
        self, ref: ObjectRef, cr: Manifest, stop: Signal, *, provisional: bool
    ) -> tuple[Plan, list[Result]]:
        context = self.context
        made = await context.peaceful(
            ref, lambda contentions: plan_of(context.session, context.view, cr, contentions, trusting=provisional)
        )
        return made, await context.writer(stop, provisional=provisional).run(made)

    async def failed(self, ref: ObjectRef, why: str) -> None:
        """Tell of a pass that came to nothing."""
        self.context.metrics.passes.labels("cr", "failed").inc()
        if cr := self.context.live(ref):
            await self.context.events.warning(cr, "ReconcileFailed", why, action="Reconcile")

    async def _tell(self, ref: ObjectRef, cr: Manifest, made: Plan, results: list[Result]) -> None:
        """Log what went wrong, make events of it, and say when to look again."""
        faults = [str(problem) for problem in made.problems]
        faults += [f"{each.change.ref}: {each.error}" for each in results if each.state is not ResultState.SUCCEEDED]
        self.context.metrics.passes.labels("cr", "failed" if faults else "succeeded").inc()
        for fault in self.context.news.of(("pass", ref), faults):
            event(log, logging.WARNING, "module pass failed", object=ref, error=fault)
        for fault in faults:
            await self.context.events.warning(cr, "ReconcileFailed", fault, action="Reconcile")
        wrote = any(each.wrote for each in results)
        if wrote:
            self.context.queue.wrote(ref)
        if faults:
            self.context.queue.failed(ref)
            return
        self.context.queue.succeeded(ref)
        if wrote:
            self.context.queue.changed(ref)  # what was written is there now, and the status should say so
        elif made.outcomes.requeue_after_s is not None:
            self.context.queue.add(ref, Priority.POLL, after_s=made.outcomes.requeue_after_s)
        if (due_s := self.context.contention.due_s(ref)) is not None:
            self.context.queue.add(ref, Priority.POLL, after_s=due_s - time.monotonic())
