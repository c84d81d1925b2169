"""One CR whose kind has a module: the module is asked, its children and status are written.

A pass over a CR trusts the caches: a child that they don't have is created by a write that the server refuses where
something of that name is there. Only then is it looked up, and the module asked again. So a thousand new CRs cost no
look at what isn't there.

CRs from Git and CRs made by hand are treated alike. A fault of a module, or of one CR, ends as an
event on that CR; it will be retried, later and later, and the others go on. So they do while a module waits for
what is outside the cluster: databases that don't answer, webhooks that take their time.
Such a pass may last for minutes, and whoever owns the custom resource decides for how long. So it holds no worker: after a
moment another one takes its place. And there are so many such passes of a namespace and no more: what they remember is bounded,
and nobody keeps the others of a cluster waiting.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from operator import itemgetter
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.cluster.errors import ApiError, Conflict, NotFound
from kubectl_reconcile.core.annotations import OBSERVED
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.daemon.cr_pass import (
    CrApplied,
    CrEvent,
    CrFailed,
    CrInstruction,
    CrInterrupted,
    Pace,
    after_cr_pass,
)
from kubectl_reconcile.core.daemon.pass_events import ForgetFailures, LookAgain, Retry, RetryScheduled
from kubectl_reconcile.core.daemon.priority import Priority
from kubectl_reconcile.core.health.health import AWAITING
from kubectl_reconcile.core.module.published import to_be_noted
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, condition_of
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.retry import PASS
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.writer import Signal
from kubectl_reconcile.engine.daemon.context import DaemonContext
from kubectl_reconcile.engine.sync.answers import Sight
from kubectl_reconcile.engine.sync.cr_plan import plan_of
from kubectl_reconcile.engine.sync.rounds import until_seen
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.logs import event

_CROWDED_S = 3.0
MOST_OF_A_NAMESPACE: Final = 24
"""So many passes of a namespace wait for what is outside at once."""
_MOST: Final = 240
_MOMENT_S: Final = 1.0

log = logging.getLogger(__name__)


class OutsidePasses(Struct):
    """Counts the passes that wait for what is outside, by namespace; *lent* has another worker take the place of a pass for as long as it is open."""

    lent: Callable[[], AbstractContextManager[object]]
    _going_on: Counter[str] = field(default_factory=Counter)

    def has_room(self, namespace: str) -> bool:
        """Tell whether one more pass of *namespace* may begin."""
        return self._going_on[namespace] < MOST_OF_A_NAMESPACE and self._going_on.total() < _MOST

    @contextmanager
    def begun(self, namespace: str) -> Iterator[None]:
        """Count a pass of *namespace* while this is open, and lend its worker once it has lasted for a moment."""
        self._going_on[namespace] += 1
        with ExitStack() as stack:
            timer = asyncio.get_running_loop().call_later(_MOMENT_S, lambda: stack.enter_context(self.lent()))
            try:
                yield
            finally:
                timer.cancel()
                self._going_on[namespace] -= 1
                self._going_on += Counter()  # forgets those that have none


class CrController(Struct):
    """The passes of all CRs. Nothing is kept between two of them."""

    context: DaemonContext
    outside: OutsidePasses

    async def run(self, ref: ObjectRef) -> None:
        """Ask the module of one CR, and write what it wants. Whatever goes wrong, it will be retried."""
        cr = self.context.live(ref)
        module = self.context.session.modules.get(GroupVersionKind.of(cr)) if cr is not None else None
        if cr is None or module is None:
            return
        if module.observe is None:
            await self._run(ref, cr)
        elif self.outside.has_room(ref.namespace):
            with self.outside.begun(ref.namespace):
                await self._run(ref, cr)
        else:
            event(log, logging.DEBUG, "others of the namespace wait outside", item=ref)
            after_s = _CROWDED_S * random.uniform(0.8, 1.2)  # noqa: S311 - spreads them
            self.context.queue.add(ref, Priority.RESYNC, after_s=after_s)

    async def _run(self, ref: ObjectRef, cr: Manifest) -> None:
        try:
            await self.context.warn_of_renamed(ref, cr)
            happened = await self._pass(ref, cr)
        except ApiError as error:
            stopped = self.context.stop(ref).is_set()
            await self._follow_up(ref, CrInterrupted() if stopped else CrFailed(str(error)))
        except Exception as error:  # noqa: BLE001 - one poison object must not stop the others
            await self._follow_up(ref, CrFailed(f"{type(error).__name__}: {error}", is_crash=True))
        else:
            await self._follow_up(ref, happened)

    async def _pass(self, ref: ObjectRef, cr: Manifest) -> CrEvent:
        started = time.perf_counter()
        self.context.contention.lapse(ref, time.monotonic())
        is_paced, stop = self.context.queue.pacing.pause_s(ref) > 0, self.context.stop(ref)
        by = Sight.ALL if is_paced else Sight.NONE
        *before, (made, results) = await until_seen(by, partial(self._written, ref, cr, stop), itemgetter(1), stop)
        earlier = [each for _, told in before for each in told if each.state is ResultState.SUCCEEDED]
        results = earlier + results
        if stop.is_set():
            return CrInterrupted()
        refused = [each for each in results if each.state is not ResultState.SUCCEEDED]
        return CrApplied(
            faults=(*map(str, made.errors), *(f"{each.change.ref}: {each.error}" for each in refused)),
            has_written=any(each.wrote for each in results),
            requeue_after_s=made.outcomes.requeue_after_s,
            is_urgent=made.outcomes.is_urgent,
            lapses_at_s=self.context.contention.due_s(ref),
            duration_s=time.perf_counter() - started,
            awaiting=_news_of_awaited(cr, made),
        )

    async def _written(self, ref: ObjectRef, cr: Manifest, stop: Signal, sight: Sight) -> tuple[Plan, list[Result]]:
        context, session = self.context, self.context.session_for(self.context.session.modules[GroupVersionKind.of(cr)])
        made = await plan_of(
            session, context.view, cr, context.contention.contentions(),
            sight=sight, overwritten=partial(context.overwritten, ref),
        )  # fmt: skip
        is_provisional = sight is not Sight.ALL
        results = await context.writer(session, stop, provisional=is_provisional, tenant=ref.namespace).run(made)
        if not stop.is_set():
            await self._note_observed(session, ref, made)
        return made, results

    async def _note_observed(self, session: Session, ref: ObjectRef, made: Plan) -> None:
        """Note on the CR what its pods were found to be, where that is news: others may not reach them."""
        cr, seen = self.context.live(ref), made.outcomes.observed.get(ref)
        module = session.modules.get(GroupVersionKind.of(cr)) if cr is not None else None
        if cr is None or module is None or not module.publishes or seen is None or seen.error:
            return
        if text := to_be_noted(cr, seen.facts, now_text()):
            kind = await session.kind(module.gvk)
            body = {"metadata": {"annotations": {OBSERVED: text}, "uid": cr["metadata"]["uid"]}}
            with suppress(NotFound, Conflict):  # it is gone, or another one by now
                path = kind.path(ref.namespace, ref.name)
                self.context.cache.wrote(await session.client.patch(path, body, manager=module.manager))

    async def _follow_up(self, ref: ObjectRef, happened: CrEvent) -> None:
        """Do what follows from how a pass went."""
        await self.context.hear(ref, happened)
        for instruction in after_cr_pass(happened, time.monotonic()):
            await self._carry_out(ref, instruction)

    async def _carry_out(self, ref: ObjectRef, instruction: CrInstruction) -> None:
        queue = self.context.queue
        match instruction:
            case Pace():
                queue.pacing.wrote(ref, is_urgent=instruction.is_urgent)
            case LookAgain():
                queue.add(ref, instruction.priority, after_s=instruction.after_s)
            case ForgetFailures():
                queue.succeeded(ref)
            case Retry():
                delay_s = queue.failed(ref, instruction.priority, backoff=PASS.up_to(instruction.cap_s))
                await self.context.hear(ref, RetryScheduled(instruction, delay_s))


def _news_of_awaited(cr: Manifest, made: Plan) -> str:
    """Return which action waits for a person since this pass; nothing where *cr* says so already, or none does."""
    written = next((each.after for each in made.outcomes.statuses if each.ref == ObjectRef.of(cr)), {})
    now, before = condition_of(written, AWAITING) or {}, condition_of(cr, AWAITING) or {}
    is_news = now.get("status") == "True" and (before.get("status"), before.get("message")) != (
        "True",
        now.get("message"),
    )
    return str(now.get("message") or "") if is_news else ""
