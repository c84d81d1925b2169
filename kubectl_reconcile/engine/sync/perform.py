"""One pass of one Sync, from its plan on: have the server try it, write, report.

What is written to members and children goes through the writer; here are the set's parent, which says beforehand what
the set may hold, and the Sync's status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import kubectl_reconcile
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.annotations import APPROVED_PLAN
from kubectl_reconcile.core.apply.results import Result, ResultState, report_of, untouched, verdicts_of, with_earlier
from kubectl_reconcile.core.health.summary import HealthSummary
from kubectl_reconcile.core.objects import FIELD_MANAGER, Manifest, ObjectRef, annotations_of, map_at
from kubectl_reconcile.core.planning.kinds import CRD
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.status import ConditionReason, Report, sync_status
from kubectl_reconcile.core.resources.sync import SYNC, ApprovalPolicy, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text, sync_path
from kubectl_reconcile.engine.apply.dry_run import confirm_before_writing, trouble
from kubectl_reconcile.engine.apply.guarded import patched
from kubectl_reconcile.engine.apply.object_writer import write_status
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.modules.action_runner import ActionRunner
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.reconcile import NOTHING_KNOWN, PassMemory, Target, plan
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import require_verified, verification_of

_SHARE_FOR_WRITING = 0.9
"""Of a Sync's timeout; the rest is for telling how it went."""

TOOLING = f"kubectl-reconcile/v{kubectl_reconcile.__version__}"


class Done(Struct, frozen=True):
    """A plan carried out, as far as it went: the *target* with its Sync as that left it, and the *memory* for the next pass."""

    plan: Plan
    results: tuple[Result, ...]
    report: Report
    target: Target
    memory: PassMemory


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

    What the server hasn't tried yet it tries first, so that what it refuses is known before anything is
    written. Then the set's parent says what it may hold, and only then is anything written.

    Raises:
        UnverifiedError: the revision isn't signed as the Sync asks; nothing was written.
        ApiError: the parent could not be brought up to date; nothing was written.
    """
    await require_verified(target.source, made.revision)
    sync = target.sync
    writer = replace(
        writer or Writer(session.client),
        rules=session.health_of(sync), timeout_s=sync.timeout_s * _SHARE_FOR_WRITING, atomic=sync.atomic,
    )  # fmt: skip
    writer.act = writer.act or ActionRunner(session.reach, session.modules).run
    if not made.confirmed:
        made = await confirm_before_writing(
            writer.client, made, sync, along=gather.lister(session), pace=writer.pace, members=writer.members
        )
    contents = Contents.of(made.refs()) if target.grouped else Contents()
    if sync.atomic and (reason := trouble(made)):
        results = untouched(made, reason)
    else:
        if target.grouped:
            target = await _record(session.client, target, contents, recorded, exact=False)
        results = tuple(await writer.run(made))
    report = report_of(made, results, stopped=writer.stopping.is_set())
    report = report if made.partial else replace(report, digest=made.digest)
    report = replace(
        report, verification=verification_of(target.source), helm=sync.source.told() if sync.source else {}
    )
    if made.commit is not None and made.commit.sha == report.revision:
        report = replace(report, author=made.commit.author, subject=made.commit.subject)
    if target.grouped and report.reason is ConditionReason.SYNCED and not made.partial:
        left = Contents.of(_still_there(made, results))
        target = await _record(session.client, target, contents | left, recorded, exact=True)
        if _spends_approvals(sync, made):
            target = await _noted(session.client, target, _without(sync.approved_plan), recorded)
    if any(result.change.ref.group_kind == CRD and result.wrote for result in results):
        await session.refresh()
    return Done(made, results, report, target, memory.adding({**made.verdicts, **verdicts_of(results)}))


def after_provisional(before: Done, done: Done) -> Done:
    """Return how both went: a provisional run, and the one that followed since something was there."""
    created = tuple(each for each in before.results if each.state is ResultState.SUCCEEDED and each.wrote)
    return replace(done, results=(*created, *done.results), report=with_earlier(done.report, before.report))


def _still_there(made: Plan, results: Iterable[Result]) -> list[ObjectRef]:
    """Return members that nobody asks for and that exist anyway: what has no place in the books is never looked for."""
    waiting = [change.ref for change in made.changes if change.op is Op.DELETE and change.gate.waits]
    return [*waiting, *(each.change.ref for each in results if each.is_left)]


def _spends_approvals(sync: Sync, made: Plan) -> bool:
    """Tell whether a sync that has carried out all of *made* leaves nothing that its approvals are still for.

    Those of revisions stay, and so does that of an empty source: without it, that would be an error again.
    """
    is_empty = not any(change.op is not Op.DELETE for change in made.changes)
    return bool(sync.approved_plan) and sync.approval is not ApprovalPolicy.ALWAYS and not is_empty


def _without(approvals: str) -> Callable[[Manifest], Manifest | None]:
    """Return what takes these approvals off a Sync, unless others have come since."""

    def patch(parent: Manifest) -> Manifest | None:
        spent = annotations_of(parent).get(APPROVED_PLAN) == approvals
        return {"metadata": {"annotations": {APPROVED_PLAN: None}}} if spent else None

    return patch


async def _record(
    client: Client, target: Target, wanted: Contents, recorded: Callable[[Manifest], None], *, exact: bool
) -> Target:
    """Note on the parent which kinds and namespaces its members have: all before writing, no more than that after."""

    def marks_for(parent: Manifest) -> Manifest | None:
        recorded, ref = Contents.recorded(parent), target.sync.ref
        marks = (wanted if exact else wanted | recorded).metadata(ref, TOOLING)
        enough = marks == recorded.metadata(ref, TOOLING) and (recorded.is_detailed or not exact)
        return None if enough and _has(parent, marks) else {"metadata": marks}

    return await _noted(client, target, marks_for, recorded)


async def _noted(
    client: Client,
    target: Target,
    note: Callable[[Manifest], Manifest | None],
    recorded: Callable[[Manifest], None],
) -> Target:
    """Return *target* with its Sync as it is once *note* was taken of something on it; where there is none, nothing is."""
    if target.parent is None:
        return target
    parent = await patched(client, sync_path(target.sync), target.parent, note)
    if parent is target.parent:
        return target
    recorded(parent)
    return replace(target, parent=parent)


def _has(parent: Manifest, marks: Mapping[str, Any]) -> bool:
    carried = parent["metadata"].get("labels") or {}
    return all(carried.get(key) == value for key, value in marks["labels"].items())


async def write_sync_status(session: Session, live: Manifest, status: Manifest) -> Manifest:
    """Give a Sync its status, and return it as the server now holds it.

    Raises:
        ApiError: the server refuses, or doesn't answer; Conflict and NotFound where it is another one by now.
    """
    kind, metadata = await session.kind(SYNC), live["metadata"]
    body = {
        "apiVersion": SYNC.api_version,
        "kind": SYNC.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }
    return await write_status(
        session.client, kind, body, manager=FIELD_MANAGER, uid=metadata["uid"],
        version=metadata["resourceVersion"],
    )  # fmt: skip


def status_after(
    live: Manifest, report: Report, answers: str, health: HealthSummary | None = None, observed: str = ""
) -> Manifest:
    """Return the status of a live Sync after a pass that ended so, and that was asked for by the request *answers*.

    *health* is how the members are, None where nobody watches them; *observed* as in ``sync_status``.
    """
    return sync_status(
        map_at(live, "status"), report,
        generation=live["metadata"]["generation"], requested_at=answers, now=now_text(), health=health, observed=observed,
    )  # fmt: skip


async def tell(session: Session, target: Target, report: Report) -> Target:
    """Write how a pass went onto the target's Sync, where it has one; return the target with that.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    if target.parent is None:
        return target
    status = status_after(target.parent, report, target.sync.requested_at)
    if status == map_at(target.parent, "status"):
        return target
    return replace(target, parent=await write_sync_status(session, target.parent, status))


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
