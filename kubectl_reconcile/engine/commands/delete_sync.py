"""A Sync deleted, and what happens to its members.

Vocabulary: members *stay* where ``spec.deletionPolicy`` is Orphan, where the Sync is suspended, or where somebody wants them
kept. Else they *go*: a daemon deletes them before it lets its Sync go, by a finalizer. No daemon follows a Sync that is kept
by hand, so there whoever deletes it deletes its members first, with rights of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.errors import ApiError, Conflict, Forbidden, NotFound
from kubectl_reconcile.core.annotations import PRUNE_FINALIZER
from kubectl_reconcile.core.apply.results import Result, ResultState
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupKind, Manifest, ObjectRef, map_at
from kubectl_reconcile.core.planning import planner, prune
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing, cascade_of_all
from kubectl_reconcile.core.planning.inputs import Coverage, Inputs
from kubectl_reconcile.core.planning.plan import Plan, set_id_of
from kubectl_reconcile.core.planning.snapshot import Snapshot, members_in
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.sync import SYNC, DeletionPolicy, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text, sync_path
from kubectl_reconcile.engine.apply.writer import Writer
from kubectl_reconcile.engine.sync import gather
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.view import OneShotView

_LOOK_AGAIN_S = 0.2
_MANAGER = "kubectl-reconcile-cli"


class Deletion(Struct, frozen=True):
    """What deleting a Sync would do. *members* are all that could be listed, *plan* deletes those that may go.

    *unlisted* are kinds of which nobody knows here whether they have members. *along* is what goes with the members that
    go, and *uncounted* says what of that can't be listed.
    """

    sync: Sync
    live: Manifest
    plan: Plan
    members: tuple[ObjectRef, ...]
    orphan: bool
    unlisted: tuple[GroupKind, ...] = ()
    along: tuple[ObjectRef, ...] = ()
    uncounted: tuple[str, ...] = ()

    @property
    def prunes(self) -> bool:
        """Whether members go with the Sync."""
        return not (self.orphan or self.sync.suspend) and self.sync.deletion is DeletionPolicy.PRUNE

    @property
    def is_under_way(self) -> bool:
        """Whether somebody has deleted the Sync already, and it isn't gone yet."""
        return bool(self.live["metadata"].get("deletionTimestamp"))

    @property
    def goes(self) -> tuple[ObjectRef, ...]:
        """The members that are deleted, too."""
        return tuple(change.ref for change in self.plan.changes) if self.prunes else ()

    @property
    def syncs(self) -> tuple[Sync, ...]:
        """The Sync, and those among its members that go with it."""
        return (self.sync, *(Sync(ref.name, ref.namespace) for ref in self.goes if ref.group_kind == SYNC.group_kind))

    @property
    def places(self) -> frozenset[str]:
        """The namespaces that it wrote to, and those of the Syncs that go."""
        return frozenset(Contents.recorded(self.live).namespaces) | {each.namespace for each in self.syncs}

    @property
    def by_daemon(self) -> bool:
        """Whether a daemon deletes what goes."""
        return (
            self.prunes and bool(self.goes or self.unlisted) and (self.sync.source is not None or _is_held(self.live))
        )


async def foresee(session: Session, live: Manifest, *, orphan: bool) -> Deletion:
    """Return what deleting a live Sync would do; with *orphan*, its members stay whatever it says. Writes nothing.

    Raises:
        SyncSpecError: the Sync can't be meant as it is written.
        ApiError: the server doesn't answer.
    """
    sync, view = Sync.of(live), OneShotView(Cache(session.client))
    recorded = Contents.recorded(live)
    kinds = gather.member_kinds(session, recorded, ())
    feeds = gather.member_feeds(session, kinds, view.selects(set_id_of(sync)))
    unlisted = _unlisted(await view.ensure(feeds, Contents.looked_for(live)))
    inputs = Inputs(
        sync=sync,
        revision=Revision("", "", {}),
        desired=(),
        live=view.snapshot(),
        kinds=await session.kinds(kinds),
        now=now_text(),
        coverage=Coverage(places=recorded.namespaces),
    )
    members = tuple(sorted(each.ref for each in members_in(inputs.live, set_id_of(sync), recorded.namespaces)))
    found = Deletion(sync, live, planner.build_removal(inputs), members, orphan, unlisted)
    return await _with_cascades(session, found, view.snapshot()) if found.goes else found


def _unlisted(failures: Mapping[Feed, ApiError]) -> tuple[GroupKind, ...]:
    """Return the kinds that may not be listed wherever the Sync has members.

    Raises:
        ApiError: some could not be listed for another reason.
    """
    for failure in failures.values():
        if not isinstance(failure, Forbidden):
            raise failure
    return tuple(sorted({feed.resource.gvk.group_kind for feed in failures}))


async def _with_cascades(session: Session, found: Deletion, live: Snapshot) -> Deletion:
    """Return a deletion with what its members take along, as far as whoever asks may list it."""
    roots = [change.before for change in found.plan.changes if change.before is not None]
    listed: dict[Listing, Listed] = {}
    while True:
        cascade = cascade_of_all(roots, listed, live)
        if not cascade.lacking:
            break
        listed |= await gather.list_along(session, cascade.lacking)
    along = tuple(ref for ref in cascade.along if ref not in {*found.goes, found.sync.ref})
    return replace(found, along=along, uncounted=tuple(sorted(cascade.uncounted)))


async def delete_members(session: Session, deletion: Deletion) -> list[Result]:
    """Delete the members that go with a Sync that is applied by hand; return how each ended.

    What the Sync can't outlive, as its own namespace, goes last, and only once the others went.
    """
    writer = Writer(session.client, timeout_s=deletion.sync.timeout_s)
    first, last = prune.parted(deletion.plan, prune.holders_of(deletion.sync))
    results = await writer.run(first)
    return results if failed(results) else [*results, *await writer.run(last)]


async def delete(session: Session, deletion: Deletion) -> None:
    """Delete the Sync, having made sure that its members stay, or that a daemon deletes them first.

    One that went with its own namespace meanwhile is deleted, and so is one that was being deleted already and that only our
    finalizer held.

    Raises:
        NotFound: it was gone already.
        ApiError: the server refuses, or doesn't answer.
    """
    try:
        live = await _prepared(session, deletion)
        await session.client.delete(sync_path(deletion.sync), uid=live["metadata"]["uid"])
    except NotFound:
        if not (deletion.is_under_way or prune.holders_of(deletion.sync).intersection(deletion.goes)):
            raise


async def until_gone(session: Session, deletion: Deletion, *, timeout_s: float) -> None:
    """Return once the Sync is gone.

    Raises:
        TimeoutError: it is still there after *timeout_s*.
        ApiError: the server refuses, or doesn't answer.
    """
    async with asyncio.timeout(timeout_s or None):
        while await _is_there(session, deletion.sync):  # noqa: ASYNC110 - what is waited for is in the cluster
            await asyncio.sleep(_LOOK_AGAIN_S)


def failed(results: list[Result]) -> list[Result]:
    """Return which deletions didn't succeed."""
    return [result for result in results if result.state is not ResultState.SUCCEEDED]


async def _prepared(session: Session, deletion: Deletion) -> Manifest:
    """Bring policy and finalizer of the Sync to what is meant; a daemon that writes them at this moment is waited for."""
    live = deletion.live
    while (body := _preparation(deletion, live)) is not None:
        try:
            return await session.client.patch(sync_path(deletion.sync), body, manager=_MANAGER)
        except Conflict:
            live = await session.client.get(sync_path(deletion.sync))
    return live


def _preparation(deletion: Deletion, live: Manifest) -> Manifest | None:
    """Return the patch before the deletion; None where the Sync is as it should be."""
    finalizers = [each for each in live["metadata"].get("finalizers") or () if each != PRUNE_FINALIZER]
    metadata: dict[str, Any] = {"resourceVersion": live["metadata"]["resourceVersion"], "finalizers": finalizers}
    if deletion.by_daemon:
        metadata["finalizers"] = [*finalizers, PRUNE_FINALIZER]
        return None if _is_held(live) else {"metadata": metadata}
    prunes = map_at(live, "spec").get("deletionPolicy") == DeletionPolicy.PRUNE
    return {"metadata": metadata, "spec": {"deletionPolicy": "Orphan"}} if prunes or _is_held(live) else None


def _is_held(live: Manifest) -> bool:
    return PRUNE_FINALIZER in (live["metadata"].get("finalizers") or ())


async def _is_there(session: Session, sync: Sync) -> bool:
    try:
        return bool((await session.client.get(sync_path(sync)))["metadata"]["uid"] == sync.uid)
    except NotFound:
        return False
