"""One pass of one Sync, up to its plan: read, gather, plan. Writes nothing.

Preview and sync share all of it; ``dry_run`` lets the server judge the plan, ``perform`` makes it so. The same
functions serve the daemon and the command line; they differ in the *view* they bring, a cache that
follows the cluster or one filled once.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, Problem, map_at, maps_in
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.difference import Footing
from kubectl_reconcile.core.planning.inputs import Inputs, Memory, Modules
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.namespaces import NAMESPACES
from kubectl_reconcile.core.planning.outlook.unhealthy import with_health
from kubectl_reconcile.core.planning.plan import Contentions, Plan, set_id_of
from kubectl_reconcile.core.planning.questions import Answers, Questions
from kubectl_reconcile.core.rendering.substitution import NO_VALUES, Values
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.history import current_of, is_of_other_settings
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.modules.ceilings import ceilings
from kubectl_reconcile.engine.sync import gather, lookups
from kubectl_reconcile.engine.sync.answers import ClusterAnswers, Overwritten, Sight, nobody_overwrites, together
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader, with_values
from kubectl_reconcile.engine.sync.revisions.recalled import helm_of, recalled
from kubectl_reconcile.engine.sync.revisions.strangers import strangers_among
from kubectl_reconcile.engine.sync.rounds import planned
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import warnings_of
from kubectl_reconcile.engine.sync.variables import Lines
from kubectl_reconcile.engine.sync.view import ClusterView, OneShotView
from kubectl_reconcile.source.base import Followed, Source
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.running.threads import in_thread

T = TypeVar("T")

_AT_ONCE = 1_000
"""Of more members a plan is built in a thread: a second's work would hold up whatever else the event loop does."""


class Locally(Protocol):
    """Reads clones of this machine in a thread."""

    def __call__(self, work: Callable[[], T], otherwise: T) -> Awaitable[T]:
        """Return what *work* reads; *otherwise* where that takes too long."""


class Target(Struct, frozen=True):
    """What to sync: a Sync and the source it follows. *parent* is the live Sync object, None where there is none, and between the turns of a daemon.

    *grouped* is False for files previewed outside any Sync. *locally* reads clones where a plan mustn't wait for a server. *values* are those of
    the variables that the Sync declares.
    """

    sync: Sync
    source: Source
    grouped: bool = True
    parent: Manifest | None = None
    reader: ManifestReader = field(default_factory=ManifestReader)
    locally: Locally | None = None
    values: Values = NO_VALUES

    def read(self) -> Desired:
        """Return what the source asks for now, with the values of variables in it. Blocks.

        Raises:
            SourceError: the source can't be read.
        """
        desired = self.reader.read(self.source, self.sync)
        return self.reader.filled(desired, self.values, Lines(self.source, desired.revision))

    def follows_same(self, other: Target) -> bool:
        """Tell whether both have what they follow from the same repository, with the same credentials."""
        mine, theirs = self.source.followed, other.source.followed
        return mine is not None and theirs is not None and mine.server is theirs.server

    def has_moved(self) -> bool:
        """Tell whether the source asks for something else, by what its server was heard to say last; asks nobody. Blocks."""
        return self.source.followed is None or self.reader.has_moved(self.source.followed)


class PassMemory(Struct, frozen=True):
    """What a pass leaves to the next: which objects it found as they should be (*verdicts*), under which *kinds*, and the *footing* of its plan."""

    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    kinds: Mapping[GroupVersionKind, Kind] = field(default_factory=dict)
    footing: Footing | None = None

    def under(self, kinds: Mapping[GroupVersionKind, Kind]) -> Mapping[ObjectRef, tuple[str, str]]:
        """Return the verdicts that hold under *kinds*: what a schema of before had no fields for may be missing by that of now."""
        others = {gvk.group_kind for gvk, kind in kinds.items() if self.kinds.get(gvk, kind) is not kind}
        if not others:
            return self.verdicts
        return {ref: each for ref, each in self.verdicts.items() if ref.group_kind not in others}

    def after(self, known: Inputs, made: Plan, footing: Footing | None) -> PassMemory:
        """Return what is remembered once a plan was *made* of all that is *known*; one of a part of a set says nothing about the others."""
        if not known.whole:
            return self.adding(made.verdicts)
        return PassMemory(made.verdicts, {**self.kinds, **known.kinds}, footing)

    def adding(self, verdicts: Mapping[ObjectRef, tuple[str, str]]) -> PassMemory:
        """Return this with more verdicts."""
        return replace(self, verdicts={**self.verdicts, **verdicts})


NOTHING_KNOWN: Final = PassMemory()
"""What the first pass has from earlier ones."""


def read_with_bases(target: Target, applied: str) -> Desired:
    """Return what the source asks for now, having fetched what the revision *applied* last held. Blocks.

    So that plans tell git from drift without a server.

    Raises:
        SourceError: the source can't be read.
    """
    desired = target.read()
    if applied and applied != desired.revision.sha and target.source.followed is not None:
        if desired.revision.overlay is None:
            target.source.followed.bring(applied)
        else:
            with suppress(SourceError):
                target.reader.rendered_at(target.source, applied, desired.revision)
    return desired


def read_at(target: Target, sha: str, reader: ManifestReader) -> Desired | None:
    """Return what the source asked for at an earlier commit, None where that can't be read, or has to be signed. Blocks."""
    source = target.source.followed
    if not sha or source is None or target.source.verified is not None:
        return None
    with suppress(SourceError):
        desired = reader.read(_AtCommit(source, sha), target.sync)
        return with_values(desired, target.values, Lines(target.source, desired.revision))
    return None


class _AtCommit(Struct, frozen=True):
    """A source as it was at the commit *sha*."""

    source: Followed
    sha: str

    def revision(self) -> Revision:
        """Return the revision of the commit."""
        return self.source.revision_at(self.sha)

    def read(self, blob_id: str) -> bytes:
        """Return the content of one of its files."""
        return self.source.read(blob_id)

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the contents of some of its files."""
        return self.source.read_many(blob_ids)

    def tree(self, sha: str) -> AbstractContextManager[Tree]:
        """Return all files of a commit, for the time of a block."""
        return self.source.tree(sha)


async def read(session: Session, target: Target, *, shown: bool = True) -> Desired:
    """Return what the source asks for now, fetching where that is needed, and reading what a chart looks up.

    Unless it isn't *shown* to anybody, a chart is told no more than the Sync's account may look up as well.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server doesn't answer.
    """
    behalf = lookups.Behalf.of(session, target.sync, target.parent) if shown else None
    return await lookups.answered(session, [target.reader], lambda: in_thread(target.read), behalf)


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

    inputs = await begun(desired)
    if remembered:
        inputs = inputs.knowing(chart=desired.looked_up)

    footing = memory.footing

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


class SyncAnswers(Struct):
    """Answers what a plan of *target* calls for: from the source what that knows, all else from the *cluster*.

    *desired* is what the source asks for by now, and *begun* what is known from the beginning of a plan of that.
    """

    session: Session
    target: Target
    desired: Desired
    begun: Callable[[Desired], Awaitable[Inputs]]
    cluster: ClusterAnswers

    async def __call__(self, asked: Questions, inputs: Inputs) -> Answers:
        """Answer what was asked.

        Raises:
            SourceError: a chart can't be rendered any more.
            ApiError: the server doesn't answer.
        """
        is_of_source = bool(asked.updates or asked.unasked or asked.draws)
        parts = self.cluster.begun(asked) + ([self._of_source(asked, inputs)] if is_of_source else [])
        return await together([*parts, self._told_now(asked.lookups)] if asked.lookups else parts)

    async def _of_source(self, asked: Questions, inputs: Inputs) -> dict[str, Any]:
        """Answer what earlier revisions tell, one after the other: all of it reads the same clone."""
        target, said = self.target, dict[str, Any]()
        if asked.updates:
            said["recalled"] = await recalled(target, inputs.revision, asked.updates)
        if asked.unasked:
            said["strangers"] = await strangers_among(target, inputs.revision, asked.unasked)
        if asked.draws:
            said["desired"] = await self._drawn(inputs.desired)
        return said

    async def _drawn(self, chosen: Iterable[Located]) -> tuple[Located, ...] | None:
        """Return what is *chosen* with values drawn that no other plan has, a password that somebody deleted mustn't come back; None where it has such."""
        desired, target = self.desired, self.target
        if not desired.draw.used:
            desired.draw.used = True
            return None

        def redrawn() -> tuple[Located, ...]:
            fresh = replace(desired, manifests=target.reader.drawn_anew(target.source, desired))
            return with_values(fresh, target.values, Lines(target.source, desired.revision)).manifests

        with suppress(SourceError):
            places = {(each.path, each.line) for each in chosen}
            return tuple(each for each in await in_thread(redrawn) if (each.path, each.line) in places)
        return None

    async def _told_now(self, asked: tuple[str, ...]) -> dict[str, Any]:
        """Return what is known from the beginning where a chart finds something else by now in what it *asked* for."""
        before, release = self.desired, self.desired.release
        if release is None or await lookups.answers_of(self.session, asked) == release.answers.of(asked):
            return {}
        beside = self.session.reader()
        beside.chart = self.target.reader.chart
        beside.answers = await lookups.answers_of(self.session, before.looked_up)

        def told() -> Desired:
            found = beside.told_anew(self.target.source, before, self.target.sync)
            return with_values(found, self.target.values, Lines(self.target.source, found.revision))

        self.desired = await lookups.answered(self.session, [beside], lambda: in_thread(told))
        return {"begun": await self.begun(self.desired)}


async def inputs_of(
    session: Session, target: Target, desired: Desired, view: ClusterView, memory: PassMemory, *, children: bool
) -> Inputs:
    """Return what a plan is built from, before its builder asks for more.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    recorded = Contents.recorded(target.parent) if target.parent else Contents()
    pairs = set(map(attrgetter("gvk", "ref.namespace"), desired.manifests))
    asked = {gvk for gvk, _ in pairs}
    everyone = gather.member_kinds(session, recorded, asked)
    modules = session.modules if children else {}
    below = gather.modules_below(modules, everyone)
    feeds = gather.child_feeds(session, below)
    if target.grouped:
        feeds += gather.member_feeds(session, everyone, view.selects(set_id_of(target.sync)))
    wanted = everyone | {gvk for module in below for gvk in module.owns}
    wanted |= {NAMESPACES} if target.sync.create_namespace else set()
    named = {(gvk, namespace or target.sync.default_namespace) for gvk, namespace in pairs}
    feeds += _read_whole(session, modules, named)
    looked_for = Contents.looked_for(target.parent) if target.parent else Contents()
    holds = looked_for | Contents.of(ObjectRef(gvk.group, gvk.kind, place, "") for gvk, place in named)
    kinds, failures = await asyncio.gather(session.kinds(wanted), view.ensure(feeds, holds))
    return Inputs(
        sync=replace(target.sync, health=session.health_of(target.sync)),
        revision=desired.revision,
        desired=desired.manifests,
        live=view.snapshot(),
        kinds=kinds,
        modules=Modules(modules, view.ask, ceilings=ceilings()),
        now=now_text(),
        problems=(
            *desired.problems,
            *target.sync.former_fields,
            *warnings_of(target.source),
            *_lost_modules(session, asked, kinds, modules),
            *gather.beyond(target.parent, failures),
        ),
        coverage=gather.coverage_of(failures, holds.namespaces, recorded, session.discovery.unavailable),
        memory=_memory(target, desired, memory.under(kinds)),
        grouped=target.grouped,
        whole=desired.whole,
        served=session.namesakes(asked - kinds.keys()),
        digest=desired.digest,
    )


def _lost_modules(
    session: Session,
    asked: Iterable[GroupVersionKind],
    kinds: Mapping[GroupVersionKind, Kind],
    modules: Mapping[GroupVersionKind, Module],
) -> list[Problem]:
    """Return what keeps this from being the whole truth: modules that can't be imported, where there are custom resources that nobody else has one for.

    Where *modules* aren't asked, somebody else does.
    """
    lost = session.modules.lost() if modules else []
    if not any(gvk not in modules and (kind := kinds.get(gvk)) and kind.custom for gvk in asked if lost):
        return []
    return [
        Problem("modules", 0, f"{each.why}; which kinds it is for isn't known", each.hint, in_source=False)
        for each in lost
    ]


def _read_whole(
    session: Session, modules: Mapping[GroupVersionKind, Module], named: Iterable[tuple[GroupVersionKind, str]]
) -> list[Feed]:
    """Return what shows the namespaces that modules of CRs among what is *named* read all of."""
    found = (
        gather.reading_feeds(session, gather.modules_below(modules, [gvk]), place)
        for gvk, place in sorted(named)
        if gvk in modules
    )
    return list(dict.fromkeys(feed for feeds in found for feed in feeds))


def _memory(target: Target, desired: Desired, verdicts: Mapping[ObjectRef, tuple[str, str]]) -> Memory:
    """Return what is known of earlier syncs: whether one ended well, and whether that was of the state that is asked for."""
    status = map_at(target.parent or {}, "status")
    newest = current_of(maps_in(status.get("history")))
    applied = status.get("lastAppliedRevision") == desired.revision.sha
    settled = bool(desired.digest) and (newest or {}).get("digest") == desired.digest
    return Memory(
        verdicts, settled=settled, installed=newest is not None,
        applied=applied and not is_of_other_settings(newest, helm_of(target)),
    )  # fmt: skip
