"""All that a plan is built from, before it calls for more: what the source asks for, what the caches show, and what earlier passes found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from operator import attrgetter

from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Feed
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef, Problem, map_at, maps_in
from kubectl_reconcile.core.planning.inputs import Inputs, Memory, Modules
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.namespaces import NAMESPACES
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.history import current_of, is_of_other_settings
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.modules.ceilings import ceilings
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.desired import Desired
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import warnings_of
from kubectl_reconcile.engine.sync.target import PassMemory, Target
from kubectl_reconcile.engine.sync.view import ClusterView


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
            *warnings_of(target),
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
        applied=applied and not target.reader.is_given_values and not is_of_other_settings(newest, target.settings),
    )  # fmt: skip
