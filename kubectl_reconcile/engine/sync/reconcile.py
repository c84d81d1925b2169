"""One pass of one Sync, top to bottom: read, gather, plan, judge, write, report.

Daemon, commands and the page call the same functions. They differ in the *view* they bring, a cache that follows the cluster or one filled once, and in
who answers what a plan must know. A daemon decides between the steps (``core.daemon.pass_state``), a command asks a person.

- **read**: what the source asks for (``read``)
- **gather**: what is known at first (``inputs_of``)
- **plan**: built, asked and built again until nothing is left to ask (``plan_for``)
- **judge**: the server tries the plan (``judge``)
- **write**: the books say what the set may hold, then members are written (``write``)
- **report**: how it went (``reported``), which goes onto the Sync (``books``)

What a pass leaves to the next it returns: nothing here is changed in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.apply.results import Result, ResultState, report_of, untouched, verdicts_of, with_earlier
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.kinds import CRD
from kubectl_reconcile.core.planning.outlook.unhealthy import with_health
from kubectl_reconcile.core.planning.plan import Contentions, Plan
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.status import ConditionReason, Report
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.apply.dry_run import confirm_before_writing, trouble
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.modules.action_runner import ActionRunner
from kubectl_reconcile.engine.sync import books, gather, lookups
from kubectl_reconcile.engine.sync.answers import (
    ClusterAnswers,
    Overwritten,
    Sight,
    SyncAnswers,
    nobody_overwrites,
)
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.inputs import inputs_of
from kubectl_reconcile.engine.sync.rounds import planned
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import require_verified, verification_of
from kubectl_reconcile.engine.sync.target import NOTHING_KNOWN, PassMemory, Target
from kubectl_reconcile.engine.sync.view import ClusterView, OneShotView
from kubectl_reconcile.source.running.threads import in_thread

# --- read, gather, plan -------------------------------------------------------------------------

_AT_ONCE = 1_000
"""Of more members a plan is built in a thread: a second's work would hold up whatever else the event loop does."""


async def read(session: Session, target: Target, *, shown: bool = True) -> Desired:
    """Return what the source asks for now, fetching where that is needed, and reading what a chart looks up.

    Unless it isn't *shown* to anybody, a chart is told no more than the Sync's account may look up as well.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server doesn't answer.
    """
    behalf = lookups.Behalf.of(session, target.sync, target.parent) if shown else None
    return await lookups.answered(session, [target.reader], lambda: in_thread(target.read), behalf)


class PlannedSync(Struct, frozen=True):
    """A plan, all *inputs* that it was made of, and the *memory* for the next.

    *desired* is all that the source asks for, which is another than before where a chart *was_told_anew* what it looks up.
    """

    plan: Plan
    inputs: Inputs
    memory: PassMemory
    desired: Desired
    was_told_anew: bool = False


async def plan_for(
    session: Session,
    target: Target,
    desired: Desired,
    view: ClusterView,
    *,
    memory: PassMemory = NOTHING_KNOWN,
    children: bool = True,
    choose: Callable[[Desired], Desired] = lambda whole: whole,
    sight: Sight = Sight.ALL,
    contentions: Contentions | None = None,
    overwritten: Overwritten = nobody_overwrites,
    remembered: bool = False,
) -> PlannedSync:
    """Return what bringing the cluster to what is *chosen* of *desired* would do, as seen through *view*, with *contentions* left alone.

    Without *children*, what modules make of the members is left out: somebody else manages it. *sight* is how far it is looked for what is new;
    what isn't is to be written by a provisional run. Where *desired* is *remembered* from an earlier pass, a chart is told again what it looks up
    of what is to be written: else drift were restored to a value that it takes from the object itself.

    Raises:
        SourceError: a chart can't be rendered any more.
        ApiError: the server refuses, or doesn't answer.
    """

    async def begun(desired: Desired) -> Inputs:
        found = await inputs_of(session, target, choose(desired), view, memory, children=children)
        return found.remembering(contentions=contentions or {})

    inputs, footing = await begun(desired), memory.footing
    if remembered:
        inputs = inputs.knowing(chart=desired.looked_up)

    async def build(known: Inputs) -> Plan:
        nonlocal footing
        is_long = len(known.desired) > _AT_ONCE and not known.modules.by_kind
        work = functools.partial(planner.build_on, known, footing)
        found, footing = await in_thread(work) if is_long else work()
        return found

    answers = SyncAnswers(session, target, desired, begun, ClusterAnswers(session, sight, overwritten))
    known = await planned(target.sync.ref, inputs, build, answers)
    after = memory.after(known.inputs, known.plan, footing)
    return PlannedSync(known.plan, known.inputs, after, answers.desired, answers.desired is not desired)


# --- judge, write, report ------------------------------------------------------------------------

_SHARE_FOR_WRITING = 0.9
"""Of a Sync's timeout; the rest is for telling how it went."""


class Done(Struct, frozen=True):
    """A plan carried out, as far as it went: the *target* with its Sync as that left it, and the *memory* for the next pass."""

    plan: Plan
    results: tuple[Result, ...]
    report: Report
    target: Target
    memory: PassMemory


async def judge(session: Session, target: Target, made: Plan, writer: Writer) -> Plan:
    """Return *made* as the server judges it, so that what it refuses is known before anything is written; what it has tried it isn't asked again.

    Raises:
        UnverifiedError: the revision isn't signed as the Sync asks.
        ApiError: the server doesn't answer.
    """
    await require_verified(target, made.revision)
    if made.confirmed:
        return made
    along = gather.lister(session)
    return await confirm_before_writing(
        writer.client, made, target.sync, along=along, pace=writer.pace, members=writer.members
    )


async def write(
    session: Session, target: Target, made: Plan, writer: Writer, recorded: Callable[[Manifest], None]
) -> tuple[Target, tuple[Result, ...]]:
    """Return the target and what writing *made* came to: before that, its Sync says what the set may hold.

    Raises:
        ApiError: the books could not be brought up to date; nothing was written.
    """
    if target.sync.atomic and (reason := trouble(made)):
        return target, tuple(untouched(made, reason))
    if target.grouped:
        target = await books.record(session.client, target, Contents.of(made.refs()), recorded, exact=False)
    return target, tuple(await writer.run(made))


def reported(target: Target, made: Plan, results: Sequence[Result], *, stopped: bool) -> Report:
    """Return how a pass went."""
    report = report_of(made, results, stopped=stopped)
    report = report if made.partial else replace(report, digest=made.digest)
    report = replace(report, verification=verification_of(target), helm=target.settings)
    if made.commit is not None and made.commit.sha == report.revision:
        report = replace(report, author=made.commit.author, subject=made.commit.subject, tag=made.commit.tag)
    return report


async def _closed(
    session: Session, target: Target, made: Plan, results: Sequence[Result], recorded: Callable[[Manifest], None]
) -> Target:
    """Return *target* with its Sync as it is once the books say no more than what is there, and approvals are spent."""
    contents = Contents.of(made.refs()) | Contents.of(books.still_there(made, results))
    target = await books.record(session.client, target, contents, recorded, exact=True)
    if books.spends_approvals(target.sync, made):
        spent = books.without(target.sync.approved_plan)
        target = await books.noted(session.client, target, spent, recorded)
    return target


async def perform(
    session: Session,
    target: Target,
    made: Plan,
    writer: Writer | None = None,
    *,
    memory: PassMemory = NOTHING_KNOWN,
    recorded: Callable[[Manifest], None] = lambda _: None,
) -> Done:
    """Carry out *made*, and return how it went. Members are written as *writer* has it; the books are kept by *session*, and *recorded* hears what they say.

    Raises:
        UnverifiedError: the revision isn't signed as the Sync asks; nothing was written.
        ApiError: the parent could not be brought up to date; nothing was written.
    """
    sync = target.sync
    writer = replace(
        writer or Writer(session.client),
        rules=session.health_of(sync), timeout_s=sync.timeout_s * _SHARE_FOR_WRITING, atomic=sync.atomic,
    )  # fmt: skip
    writer.act = writer.act or ActionRunner(session.reach, session.modules).run
    made = await judge(session, target, made, writer)
    target, results = await write(session, target, made, writer, recorded)
    report = reported(target, made, results, stopped=writer.stopping.is_set())
    if target.grouped and report.reason is ConditionReason.SYNCED and not made.partial:
        target = await _closed(session, target, made, results, recorded)
    if any(result.change.ref.group_kind == CRD and result.wrote for result in results):
        await session.refresh()
    return Done(made, results, report, target, memory.written(made, verdicts_of(results)))


def after_provisional(before: Done, done: Done) -> Done:
    """Return how both went: a provisional run, and the one that followed since something was there."""
    created = tuple(each for each in before.results if each.state is ResultState.SUCCEEDED and each.wrote)
    return replace(done, results=(*created, *done.results), report=with_earlier(done.report, before.report))


# --- as a person does it -------------------------------------------------------------------------


async def plan(session: Session, target: Target, memory: PassMemory = NOTHING_KNOWN) -> Plan:
    """Return what a sync of *target* would do, children included, as an earlier pass left the *memory* of it. Writes nothing.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    view = OneShotView(Cache(session.client))
    return (await plan_for(session, target, await read(session, target), view, memory=memory)).plan


async def preview(session: Session, target: Target) -> Plan:
    """Return the same for whoever reads it: with the objects that aren't well before the sync, for which all are judged.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    view = OneShotView(Cache(session.client))
    made = await plan_for(session, target, await read(session, target), view)
    return with_health(made.plan, view.snapshot(), session.health_of(target.sync), now_text())


async def settle(
    session: Session,
    done: Done,
    hooks: Hooks,
    *,
    members: Client | None = None,
    rounds: int = 5,
    choose: Callable[[Plan], Plan] = lambda made: made,
) -> Done:
    """Return how it ended once nothing more is to be done at once: statuses and children follow what the pass has made that is *done*.

    Members are written by *members*, where that isn't the session's client. Of each plan only what *choose* returns is done.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    for _ in range(rounds):
        made = choose(await plan(session, done.target, done.memory))
        if not any(change.writes for change in made.changes) and not made.outcomes.statuses:
            return done
        writer = Writer(session.client, hooks, members=members)
        done = await perform(session, done.target, made, writer, memory=done.memory)
    return done
