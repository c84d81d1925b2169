"""One pass of one Sync: gather, plan, write, report.

Preview and sync share everything up to the plan; ``confirm`` lets the server judge it by dry
runs, ``perform`` makes it so. The same functions serve the daemon and the command line; they
differ in the *view* they bring, a cache that follows the cluster or one filled once.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import kubectl_reconcile
from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError
from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.apply.results import Result, report_of, untouched, verdicts_of
from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.manifests.revision import Source
from kubectl_reconcile.core.module.call import Ask
from kubectl_reconcile.core.objects import FIELD_MANAGER, Manifest, ObjectRef, mapping_of, maps_in
from kubectl_reconcile.core.planning import planner, simulation
from kubectl_reconcile.core.planning.inputs import Inputs, Memory, Modules
from kubectl_reconcile.core.planning.kinds import CRD
from kubectl_reconcile.core.planning.plan import Change, Contentions, Op, Plan, set_id_of
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents
from kubectl_reconcile.core.resources.history import current_of
from kubectl_reconcile.core.resources.status import ConditionReason, Report, sync_status
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text, sync_path
from kubectl_reconcile.engine.apply.dry_run import confirm_before_writing, trouble
from kubectl_reconcile.engine.apply.guarded import patched
from kubectl_reconcile.engine.apply.object_writer import write_status
from kubectl_reconcile.engine.apply.writer import Hooks, Writer
from kubectl_reconcile.engine.modules.action_runner import ActionRunner, look
from kubectl_reconcile.engine.modules.purity import Sampling
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader
from kubectl_reconcile.engine.sync.session import Session

_SHARE_FOR_WRITING = 0.9
"""Of a Sync's timeout; the rest is for telling how it went."""

TOOLING = f"kubectl-reconcile/v{kubectl_reconcile.__version__}"


class ClusterView(Protocol):
    """Where live objects come from."""

    def selects(self, set_id: str) -> str:
        """Return the label selector by which members of this set are listed."""

    async def ensure(self, feeds: Iterable[Feed]) -> Mapping[Feed, ApiError]:
        """Bring these feeds in; return those that could not be had, and why."""

    def snapshot(self) -> Snapshot:
        """Return the live objects of all feeds so far."""

    @property
    def ask(self) -> Ask:
        """How modules are asked about what is seen."""


@dataclass(slots=True)
class OneShotView:
    """A view for one look: each feed is listed once and never watched."""

    cache: Cache
    ask: Ask = field(default_factory=Sampling)

    def selects(self, set_id: str) -> str:
        """Return the selector of this set alone."""
        return f"{PART_OF}={set_id}"

    async def ensure(self, feeds: Iterable[Feed]) -> Mapping[Feed, ApiError]:
        """List these feeds; return those that could not be had, and why."""
        wanted = list(feeds)
        await self.cache.fill(wanted)
        return {feed: failure for feed in wanted if (failure := self.cache.failure(feed))}

    def snapshot(self) -> Snapshot:
        """Return the live objects of all feeds so far."""
        return self.cache.snapshot()


@dataclass(slots=True)
class Target:
    """What to sync: a Sync and the source it follows. *parent* is the live Sync object, None where there is none.

    *grouped* is False for files previewed outside any Sync. *contentions* are fields to be left alone. *digest* is that of
    what was planned last, if that was all that the source asks for.
    """

    sync: Sync
    source: Source
    grouped: bool = True
    parent: Manifest | None = None
    reader: ManifestReader = field(default_factory=ManifestReader)
    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    contentions: Contentions = field(default_factory=dict)
    digest: str = ""


async def read(target: Target) -> Desired:
    """Return what the source asks for now, fetching where that is needed.

    Raises:
        SourceError: the source can't be read.
    """
    return await asyncio.to_thread(target.reader.read, target.source)


async def plan(session: Session, target: Target) -> Plan:
    """Return what a sync of *target* would do, children included. Writes nothing.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    return await plan_for(session, target, await read(target), OneShotView(Cache(session.client)))


async def plan_for(
    session: Session, target: Target, desired: Desired, view: ClusterView, *, children: bool = True
) -> Plan:
    """Return what bringing the cluster to *desired* would do, as seen through *view*.

    Without *children*, what modules make of the members is left out: somebody else looks after it.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    target.digest = desired.digest if desired.whole else ""
    inputs = await _inputs(session, target, desired, view, children=children)
    made = await gather.plan_with_lookups(
        session, inputs, planner.build, _bases(target, inputs), functools.partial(look, session.systems)
    )
    target.verdicts = {**target.verdicts, **made.verdicts}
    return made


async def foresee(session: Session, target: Target) -> list[Plan]:
    """Return what the next sync of *target* would do, and what would follow from it until nothing is left to do.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    known: list[Inputs] = []

    def build(inputs: Inputs) -> Plan:
        known.append(inputs)
        return planner.build(inputs)

    inputs = await _inputs(session, target, await read(target), OneShotView(Cache(session.client)), children=True)
    looking = functools.partial(look, session.systems)
    made = await gather.plan_with_lookups(session, inputs, build, _bases(target, inputs), looking)
    return [made, *simulation.passes(known[-1], made, planner.build)]


async def _inputs(session: Session, target: Target, desired: Desired, view: ClusterView, *, children: bool) -> Inputs:
    recorded = Contents.recorded(target.parent) if target.parent else Contents()
    asked = {located.gvk for located in desired.manifests}
    everyone = gather.member_kinds(session, recorded, asked)
    modules = session.modules if children else {}
    below = gather.modules_below(modules, everyone)
    feeds = gather.child_feeds(session, below)
    if target.grouped:
        feeds += gather.member_feeds(session, everyone, view.selects(set_id_of(target.sync)))
    wanted = everyone | {gvk for module in below for gvk in module.owns}
    kinds, failures = await asyncio.gather(session.kinds(wanted), view.ensure(feeds))
    return Inputs(
        sync=target.sync,
        revision=desired.revision,
        desired=desired.manifests,
        live=view.snapshot(),
        kinds=kinds,
        modules=Modules(modules, view.ask),
        now=now_text(),
        problems=desired.problems,
        unsynced=gather.failures_by_kind(failures),
        memory=Memory(target.verdicts, contentions=target.contentions, settled=_is_settled(target, desired)),
        grouped=target.grouped,
        whole=desired.whole,
        served=session.namesakes(asked - kinds.keys()),
    )


def _is_settled(target: Target, desired: Desired) -> bool:
    """Tell whether the state that is asked for is the one that was synced last."""
    rows = maps_in(mapping_of((target.parent or {}).get("status")).get("history"))
    return bool(desired.digest) and (current_of(rows) or {}).get("digest") == desired.digest


def _bases(target: Target, inputs: Inputs) -> Callable[[Plan], Awaitable[Inputs | None]]:
    """Return what finds the manifests applied last of the objects that a plan updates; they tell git from drift."""

    async def bases(made: Plan) -> Inputs | None:
        applied = ((target.parent or {}).get("status") or {}).get("lastAppliedRevision", "")
        history = getattr(target.source, "read_at", None)
        updates = [
            change
            for change in made.changes
            if change.op is Op.UPDATE and not change.provenance.owner and change.before
        ]
        if not (applied and history and updates):
            return None
        found = await asyncio.to_thread(_manifests_at, history, applied, updates, target.sync.default_namespace)
        return inputs.remembering(bases=found)

    return bases


def _manifests_at(
    history: Callable[[str, str], bytes | None], sha: str, updates: Iterable[Change], namespace: str
) -> dict[ObjectRef, Manifest]:
    """Return the manifests of *updates* as they were at *sha*; what can't be read is left out."""
    refs = {change.ref for change in updates}
    files = {MemberOptions.of(change.before or {}).source or change.provenance.file for change in updates}
    found = {}
    for path in files:
        content = history(sha, path)
        for located in parse(content, path).manifests if content else ():
            ref = located.ref
            for candidate in (ref, ref._replace(namespace=ref.namespace or namespace)):
                if candidate in refs:
                    found[candidate] = located.manifest
    return found


# --- writing ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Done:
    """A plan carried out, as far as it went."""

    plan: Plan
    results: tuple[Result, ...]
    report: Report


async def perform(session: Session, target: Target, made: Plan, writer: Writer | None = None) -> Done:
    """Carry out *made*, and return how it went.

    What the server hasn't tried yet it tries first, so that what it refuses is known before anything is
    written. Then the set's parent says what it may hold, and only then is anything written.

    Raises:
        ApiError: the parent could not be brought up to date; nothing was written.
    """
    sync = target.sync
    writer = replace(
        writer or Writer(session.client),
        rules=sync.health, timeout_s=sync.timeout_s * _SHARE_FOR_WRITING, atomic=sync.atomic,
    )  # fmt: skip
    writer.act = writer.act or ActionRunner(session.client, session.systems, session.modules).run
    if not made.confirmed:
        made = await confirm_before_writing(session.client, made, sync, pace=writer.pace)
    if sync.atomic and (reason := trouble(made)):
        results = untouched(made, reason)
    else:
        if target.grouped:
            await _record(session.client, target, made, exact=False)
        results = tuple(await writer.run(made))
    report = report_of(made, results, stopped=writer.stopping.is_set())
    report = report if made.partial else replace(report, digest=target.digest)
    target.verdicts = {**target.verdicts, **made.verdicts, **verdicts_of(results)}
    if target.grouped and report.reason is ConditionReason.SYNCED and not made.partial:
        await _record(session.client, target, made, exact=True)
    if any(result.change.ref.group_kind == CRD and result.wrote for result in results):
        await session.refresh()
    return Done(made, results, report)


async def _record(client: Client, target: Target, made: Plan, *, exact: bool) -> None:
    """Note on the parent which kinds and namespaces its members have: all before writing, no more than that after."""
    if target.parent is None:
        return
    wanted = Contents.of(made.refs())

    def marks_for(parent: Manifest) -> Manifest | None:
        recorded = Contents.recorded(parent)
        enough = (wanted | home(target.sync)) == recorded if exact else wanted <= recorded
        marks = (wanted if exact else wanted | recorded).metadata(target.sync.ref, TOOLING)
        return None if enough and _has(parent, marks) else {"metadata": marks}

    target.parent = await patched(client, sync_path(target.sync), target.parent, marks_for)


def home(sync: Sync) -> Contents:
    """Return what a set contains before it has members: its parent's own namespace."""
    return Contents(frozenset(), frozenset({sync.namespace}))


def _has(parent: Manifest, marks: Mapping[str, Any]) -> bool:
    carried = parent["metadata"].get("labels") or {}
    return all(carried.get(key) == value for key, value in marks["labels"].items())


async def write_sync_status(session: Session, live: Manifest, status: Manifest) -> Manifest:
    """Give a Sync its status, and return it as the server now holds it.

    Raises:
        ApiError: the server refuses, or doesn't answer; Conflict and NotFound where it is another one by now.
    """
    kinds, metadata = await session.kinds([SYNC]), live["metadata"]
    body = {
        "apiVersion": SYNC.api_version,
        "kind": SYNC.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }
    return await write_status(
        session.client, kinds[SYNC], body, manager=FIELD_MANAGER, uid=metadata["uid"],
        version=metadata["resourceVersion"],
    )  # fmt: skip


async def tell(session: Session, target: Target, report: Report) -> None:
    """Write how a pass went onto the target's Sync, where it has one.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    if target.parent is None:
        return
    live, sync = target.parent, target.sync
    status = sync_status(
        live.get("status") or {}, report,
        generation=live["metadata"]["generation"], requested_at=sync.requested_at, now=now_text(),
    )  # fmt: skip
    if status != (live.get("status") or {}):
        target.parent = await write_sync_status(session, live, status)


async def settle(
    session: Session,
    target: Target,
    hooks: Hooks,
    *,
    rounds: int = 5,
    choose: Callable[[Plan], Plan] = lambda made: made,
) -> Done | None:
    """Go on until nothing more is to be done at once: statuses and children follow what a pass has made.

    Of each plan only what *choose* returns is done. Returns the last round that wrote something, None where none did.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    last = None
    for _ in range(rounds):
        made = choose(await plan(session, target))
        if not any(change.writes for change in made.changes) and not made.outcomes.statuses:
            return last
        last = await perform(session, target, made, Writer(session.client, hooks))
    return last
