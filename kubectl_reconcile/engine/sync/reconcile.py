"""One pass of one Sync, up to its plan: read, gather, plan. Writes nothing.

Preview and sync share all of it; ``dry_run`` lets the server judge the plan, ``perform`` makes it so. The same
functions serve the daemon and the command line; they differ in the *view* they bring, a cache that
follows the cluster or one filled once.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.core.annotations import MemberOptions
from kubectl_reconcile.core.manifests.parse import Located, parse
from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, Problem, map_at, maps_in
from kubectl_reconcile.core.planning import planner
from kubectl_reconcile.core.planning.difference import Footing
from kubectl_reconcile.core.planning.inputs import Inputs, Memory, Modules
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.namespaces import NAMESPACES
from kubectl_reconcile.core.planning.outlook.unhealthy import with_health
from kubectl_reconcile.core.planning.plan import Change, Contentions, Op, Plan, set_id_of
from kubectl_reconcile.core.rendering.holding import is_to_be_drawn
from kubectl_reconcile.core.rendering.lookups import about
from kubectl_reconcile.core.rendering.substitution import NO_VALUES, Values, substituted
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.history import current_of, is_of_other_settings
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.modules.action_runner import look
from kubectl_reconcile.engine.modules.ceilings import ceilings
from kubectl_reconcile.engine.sync import gather, lookups
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader, with_values
from kubectl_reconcile.engine.sync.revisions.strangers import strangers_among
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


class Target(Struct):
    """What to sync: a Sync and the source it follows. *parent* is the live Sync object, None where there is none, and between the turns of a daemon.

    *grouped* is False for files previewed outside any Sync. *contentions* are fields to be left alone. *digest* is that of
    what was planned last, if that was all that the source asks for. *locally* reads clones where a plan mustn't wait for a server. *values* are those of
    the variables that the Sync declares. *footing* is what the plan before leaves to the next, and *kinds* are those that its *verdicts* rest on.
    *commit* is that of what was planned last.
    """

    sync: Sync
    source: Source
    grouped: bool = True
    parent: Manifest | None = None
    reader: ManifestReader = field(default_factory=ManifestReader)
    verdicts: Mapping[ObjectRef, tuple[str, str]] = field(default_factory=dict)
    contentions: Contentions = field(default_factory=dict)
    digest: str = ""
    locally: Locally | None = None
    values: Values = NO_VALUES
    footing: Footing | None = None
    kinds: Mapping[GroupVersionKind, Kind] = field(default_factory=dict)
    commit: Commit | None = None
    _filled: tuple[Desired, Values, Desired] | None = None

    def filled(self, desired: Desired) -> Desired:
        """Return what the source asks for with the values of variables in it; the same as before for the same. Blocks."""
        before = self._filled
        if before is not None and before[0] is desired and before[1].is_same_as(self.values):
            return before[2]
        self._filled = desired, self.values, with_values(desired, self.values, Lines(self.source, desired.revision))
        return self._filled[2]

    def follows_same(self, other: Target) -> bool:
        """Tell whether both have what they follow from the same repository, with the same credentials."""
        mine, theirs = self.source.followed, other.source.followed
        return mine is not None and theirs is not None and mine.server is theirs.server

    def has_moved(self) -> bool:
        """Tell whether the source asks for something else, by what its server was heard to say last; asks nobody. Blocks."""
        return self.source.followed is None or self.reader.has_moved(self.source.followed)


def read_with_bases(target: Target, applied: str) -> Desired:
    """Return what the source asks for now, having fetched what the revision *applied* last held. Blocks.

    So that plans tell git from drift without a server.

    Raises:
        SourceError: the source can't be read.
    """
    desired = target.filled(target.reader.read(target.source, target.sync))
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

    def filled() -> Desired:
        return target.filled(target.reader.read(target.source, target.sync))

    behalf = lookups.Behalf.of(session, target.sync, target.parent) if shown else None
    return await lookups.answered(session, [target.reader], lambda: in_thread(filled), behalf)


async def by_lookups_of_now(session: Session, target: Target, desired: Desired, made: Plan) -> Desired | None:
    """Return what the revision of *desired* asks for by what its chart finds in the cluster now; None where that needn't be asked for.

    It is where the plan *made* of it writes or deletes what the chart looked up, and that isn't any more as the chart was told. Else drift
    were restored to a value that the chart itself takes from the object.

    Raises:
        SourceError: it can't be rendered any more.
        ApiError: the server doesn't answer.
    """
    release = desired.release
    if release is None or not desired.looked_up:
        return None
    concerned = about(desired.looked_up, (each.ref for each in made.acting() if each.writes))
    if not concerned:
        return None
    if await lookups.answers_of(session, concerned) == release.answers.of(concerned):
        return None
    beside = session.reader()
    beside.chart = target.reader.chart
    beside.answers = await lookups.answers_of(session, desired.looked_up)

    def told() -> Desired:
        found = beside.told_anew(target.source, desired, target.sync)
        return with_values(found, target.values, Lines(target.source, found.revision))

    return await lookups.answered(session, [beside], lambda: in_thread(told))


async def plan(session: Session, target: Target) -> Plan:
    """Return what a sync of *target* would do, children included. Writes nothing.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    return await plan_for(session, target, await read(session, target), OneShotView(Cache(session.client)))


async def preview(session: Session, target: Target) -> Plan:
    """Return the same for whoever reads it: with the objects that aren't well before the sync, for which all are judged.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    view = OneShotView(Cache(session.client))
    made = await plan_for(session, target, await read(session, target), view)
    return with_health(made, view.snapshot(), session.health_of(target.sync), now_text())


async def plan_for(
    session: Session,
    target: Target,
    desired: Desired,
    view: ClusterView,
    *,
    children: bool = True,
    unseen: bool = False,
) -> Plan:
    """Return what bringing the cluster to *desired* would do, as seen through *view*.

    Without *children*, what modules make of the members is left out: somebody else manages it. *unseen*, what is new may be
    planned without a look for others of its name; it is to be written by a provisional run.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    target.digest, target.commit = desired.digest if desired.whole else "", desired.revision.commit
    inputs = await inputs_of(session, target, desired, view, children=children)

    def live(ref: ObjectRef) -> Manifest | None:
        stored = inputs.live.stored(ref)
        return stored.manifest() if stored else None

    if is_to_be_drawn(inputs.desired, live, inputs.sync.default_namespace):
        inputs = await _with_a_draw_of_its_own(target, desired, inputs)

    async def build(known: Inputs) -> Plan:
        is_long = len(known.desired) > _AT_ONCE and not known.modules.by_kind
        work = functools.partial(planner.build_on, known, target.footing)
        found, target.footing = await in_thread(work) if is_long else work()
        return found

    made = await gather.plan_with_lookups(
        session,
        inputs,
        build,
        bases_of(target, inputs),
        functools.partial(look, session.reach),
        strangers=functools.partial(strangers_among, target, inputs.revision),
        unseen=unseen,
    )
    target.verdicts, target.kinds = {**target.verdicts, **made.verdicts}, {**target.kinds, **inputs.kinds}
    return made


async def _with_a_draw_of_its_own(target: Target, desired: Desired, inputs: Inputs) -> Inputs:
    """Return *inputs* with values drawn that no other plan has: a password that somebody deleted mustn't come back."""
    if not desired.draw.used:
        desired.draw.used = True
        return inputs

    def redrawn() -> tuple[Located, ...]:
        fresh = replace(desired, manifests=target.reader.drawn_anew(target.source, desired))
        return with_values(fresh, target.values, Lines(target.source, desired.revision)).manifests

    with suppress(SourceError):
        chosen = {(each.path, each.line) for each in inputs.desired}
        found = await in_thread(redrawn)
        return replace(inputs, desired=tuple(each for each in found if (each.path, each.line) in chosen))
    return inputs


async def inputs_of(session: Session, target: Target, desired: Desired, view: ClusterView, *, children: bool) -> Inputs:
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
            *warnings_of(target.source),
            *_lost_modules(session, asked, kinds, modules),
            *gather.beyond(target.parent, failures),
        ),
        coverage=gather.coverage_of(failures, holds.namespaces, recorded, session.discovery.unavailable),
        memory=_memory(target, desired, kinds),
        grouped=target.grouped,
        whole=desired.whole,
        served=session.namesakes(asked - kinds.keys()),
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


def _verdicts_by(target: Target, kinds: Mapping[GroupVersionKind, Kind]) -> Mapping[ObjectRef, tuple[str, str]]:
    """Return the verdicts that hold under *kinds*: what a schema of before had no fields for may be missing by that of now."""
    others = {gvk.group_kind for gvk, kind in kinds.items() if target.kinds.get(gvk, kind) is not kind}
    return (
        {ref: each for ref, each in target.verdicts.items() if ref.group_kind not in others}
        if others
        else target.verdicts
    )


def _memory(target: Target, desired: Desired, kinds: Mapping[GroupVersionKind, Kind]) -> Memory:
    """Return what is known of earlier syncs: whether one ended well, and whether that was of the state that is asked for."""
    status = map_at(target.parent or {}, "status")
    newest = current_of(maps_in(status.get("history")))
    applied = status.get("lastAppliedRevision") == desired.revision.sha
    settled = bool(desired.digest) and (newest or {}).get("digest") == desired.digest
    return Memory(
        _verdicts_by(target, kinds), contentions=target.contentions, settled=settled, installed=newest is not None,
        applied=applied and not is_of_other_settings(newest, _helm(target)),
    )  # fmt: skip


def bases_of(target: Target, inputs: Inputs) -> Callable[[Plan], Awaitable[Inputs | None]]:
    """Return what finds the manifests applied last of the objects that a plan updates; they tell git from drift."""

    async def bases(made: Plan) -> Inputs | None:
        status = map_at(target.parent or {}, "status")
        applied = status.get("lastAppliedRevision", "")
        if inputs.revision.is_chart and is_of_other_settings(current_of(maps_in(status.get("history"))), _helm(target)):
            return None  # what it was rendered to then can't be told from a commit
        past = target.source.past
        updates = [
            change
            for change in made.acting()
            if change.op is Op.UPDATE and not change.provenance.owner and change.before
        ]
        if not (applied and past is not None and updates):
            return None
        read_at = functools.partial(past.read_at, offline=target.locally is not None)
        namespace = target.sync.default_namespace
        if inputs.revision.overlay is not None:
            look_up = functools.partial(_rendered_at, target, applied, inputs.revision, updates, namespace)
        else:
            look_up = functools.partial(_manifests_at, target.values, read_at, applied, updates, namespace)
        none: dict[ObjectRef, Manifest] = {}
        found = await (target.locally(look_up, none) if target.locally else in_thread(look_up))
        return inputs.remembering(bases=found)

    return bases


def _helm(target: Target) -> Manifest:
    return target.sync.source.told() if target.sync.source else {}


def _manifests_at(
    values: Values, read_at: Callable[[str, str], bytes | None], sha: str, updates: Sequence[Change], namespace: str
) -> dict[ObjectRef, Manifest]:
    """Return the manifests of *updates* as they were at *sha*; what can't be read is left out."""
    files = {MemberOptions.of(change.before or {}).source or change.provenance.file for change in updates}
    contents = ((path, read_at(sha, path)) for path in files)
    located = (each for path, content in contents if content for each in parse(content, path).manifests)
    return _of_updates(_filled_in(located, values), updates, namespace)


def _rendered_at(
    target: Target, sha: str, like: Revision, updates: Sequence[Change], namespace: str
) -> dict[ObjectRef, Manifest]:
    """Return the manifests of *updates* as what is like the revision *like* rendered at *sha*; none where that can't be read any more."""
    try:
        found = target.reader.rendered_at(target.source, sha, like)
        return _of_updates(_filled_in(found, target.values), updates, namespace)
    except SourceError:
        return {}


def _filled_in(located: Iterable[Located], values: Values) -> Iterable[Located]:
    """Return earlier manifests with the values of now, so that only what Git changed of them is told as that."""
    return substituted(located, values, lambda _located, _steps: 0).manifests if values.is_declared else located


def _of_updates(located: Iterable[Located], updates: Iterable[Change], namespace: str) -> dict[ObjectRef, Manifest]:
    refs = {change.ref for change in updates}
    return {
        candidate: each.manifest
        for each in located
        for candidate in (each.ref, each.ref._replace(namespace=each.ref.namespace or namespace))
        if candidate in refs
    }
