"""What the account of a Sync needs, from what the Sync follows: the source is read, and what it refers to in the cluster.

Read with the rights of whoever asks: what they may not see is said, and left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.annotations import MemberOptions, translated
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, ObjectRef, Problem, map_at
from kubectl_reconcile.core.planning.endings.cascade import Listing
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.planning.rights.needs import Needs, RightsInputs, Sensitive, needs_of, roles_to_read
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.resources.applyset import Contents, is_marked_by_us, may_be_member
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.commands import install
from kubectl_reconcile.engine.sync import gather, lookups, reconcile
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target

_AT_ONCE = 16


class Needed(Struct, frozen=True):
    """What the account of *sync* needs at *revision*. *problems* are those of the source and of what refers to roles.

    *coming* are namespaces that aren't there and that the source makes; *absent* those that nobody makes, or that were deleted since the Sync made them.
    *syncs* are those that the source itself holds and that follow something, each with its namespace.
    """

    sync: Sync
    revision: str
    needs: Needs
    problems: tuple[Problem, ...] = ()
    coming: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    syncs: tuple[Manifest, ...] = ()

    def beside(self, made: frozenset[str]) -> Needed:
        """Return the same where another source makes the namespaces *made*."""
        return replace(self, coming=self.coming | (self.absent & made), absent=self.absent - made)

    @property
    def givable(self) -> Needs:
        """The needs but for those in namespaces that nobody makes: no Role can be there."""
        here = {place: rights for place, rights in self.needs.here.items() if place not in self.absent}
        modules = {key: rights for key, rights in self.needs.of_modules.items() if key[0] not in self.absent}
        return replace(self.needs, here=here, of_modules=modules)


async def needed(session: Session, target: Target, allowed: Collection[Sensitive] = ()) -> Needed:
    """Return what the account of *target*'s Sync needs, with the sensitive rights that are *allowed*. Writes nothing.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server doesn't answer.
    """
    desired = await reconcile.read(session, target, shown=False)  # which rights it lacks is what is asked
    applied = (
        [] if _is_going(target) else [each for each in desired.manifests if not translated(each.manifest).left_out]
    )
    inputs = RightsInputs(
        target.sync,
        applied,
        served_kinds(session, (located.gvk for located in applied)),
        await readable(session, roles_to_read(target.sync, applied)),
        allowed=frozenset(allowed),
        modules=session.modules,
        looked_up=lookups.rights_to_read(session, target.reader.asked()),
        entrusted=install.entrusted(located.gvk.group_kind for located in applied),
    )
    needs = needs_of(inputs)
    if leftovers := await _leftovers(session, target, needs):
        needs = needs_of(inputs.having(leftovers))
    gone = await _absent(session, needs.here)
    coming = (gone & needs.made) - _left(target)
    problems = (*desired.problems, *needs.problems)
    held = [
        each for each in applied if each.gvk.group_kind == SYNC.group_kind and map_at(each.manifest, "spec", "source")
    ]
    syncs = tuple(_placed(each.manifest, each.ref.namespace or target.sync.default_namespace) for each in held)
    return Needed(target.sync, desired.revision.sha, needs, problems, coming, gone - coming, syncs)


def _placed(manifest: Manifest, namespace: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def served_kinds(session: Session, wanted: Iterable[GroupVersionKind]) -> dict[GroupVersionKind, Kind]:
    """Return those of the *wanted* kinds that the cluster serves, without their schemas."""
    found = {gvk: session.discovery.find(gvk.api_version, gvk.kind) for gvk in set(wanted)}
    return {
        gvk: Kind(gvk, each.plural, namespaced=each.namespaced, schema=UNKNOWN) for gvk, each in found.items() if each
    }


async def readable(session: Session, refs: Iterable[ObjectRef]) -> dict[ObjectRef, Manifest]:
    """Return those of the objects that are there and may be read, whole.

    Raises:
        ApiError: the server doesn't answer.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def read(ref: ObjectRef) -> Manifest | None:
        resource = session.resource(ref.group_kind)
        if resource is None:
            return None
        async with slots:
            try:
                return await session.client.get(resource.path(ref.namespace, ref.name))
            except (Forbidden, NotFound):
                return None

    wanted = sorted(refs)
    found = await asyncio.gather(*map(read, wanted))
    return {ref: live for ref, live in zip(wanted, found, strict=True) if live is not None}


async def _absent(session: Session, places: Iterable[str]) -> frozenset[str]:
    """Return those of the namespaces that aren't there; one that may not be read is taken to be."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def is_absent(place: str) -> bool:
        async with slots:
            try:
                await session.client.get(f"/api/v1/namespaces/{place}")
            except NotFound:
                return True
            except Forbidden:
                return False
            return False

    wanted = sorted(places)
    return frozenset(
        place for place, gone in zip(wanted, await asyncio.gather(*map(is_absent, wanted)), strict=True) if gone
    )


# --- what is still there and not asked for any more ---------------------------------------------------------------------


async def _leftovers(session: Session, target: Target, needs: Needs) -> list[tuple[ObjectRef, Kind]]:
    """Return members of the set of kinds and in places that the source doesn't ask for any more: they are yet to be pruned.

    Only where the Sync says that it has members, and only what was applied as the Sync: anybody can write a label.
    """
    if target.parent is None or not (target.sync.prune or _is_going(target)):
        return []
    recorded = Contents.recorded(target.parent)
    kinds = [kind for kind in recorded.kinds if _may_have_more(session, kind, recorded, needs)]
    return [*await members_of(session, target.sync, kinds, recorded), *where_to_look(session, recorded)]


def where_to_look(session: Session, recorded: Contents) -> list[tuple[ObjectRef, Kind]]:
    """Return what stands for the members of a kind in each namespace where a Sync says that it has some: nothing is pruned where the account can't look."""
    found = []
    for kind in sorted(recorded.kinds) if recorded.is_detailed else ():
        resource = session.resource(kind)
        if resource is not None and resource.namespaced:
            whole = Kind(resource.gvk, resource.plural, namespaced=True, schema=UNKNOWN)
            found += [(ObjectRef(*kind, place, ""), whole) for place in sorted(recorded.places_of(kind))]
    return found


def _is_going(target: Target) -> bool:
    """Tell whether the Sync is being deleted: then nothing is applied any more, and only what is there still concerns its account."""
    return bool(map_at(target.parent or {}, "metadata").get("deletionTimestamp"))


def _left(target: Target) -> frozenset[str]:
    """Return the namespaces that the Sync has had members in: of these one that isn't there was deleted, and isn't made again by a grant."""
    parent = target.parent
    has_synced = bool(map_at(parent or {}, "status").get("lastAppliedRevision"))
    return Contents.recorded(parent).namespaces if parent is not None and has_synced else frozenset()


async def members_of(
    session: Session, sync: Sync, kinds: Iterable[GroupKind], recorded: Contents
) -> list[tuple[ObjectRef, Kind]]:
    """Return the members of a set of these *kinds*, cluster-scoped or where they are *recorded* to be, as far as they may be listed.

    Only what was applied as the Sync: anybody can write a label. What is to be kept when its file goes isn't among them.

    Raises:
        ApiError: the server doesn't answer.
    """
    ours = await live_members_of(session, sync, kinds, recorded)
    refs = {ObjectRef.of(one): GroupVersionKind.of(one) for one in ours if not MemberOptions.of(one).kept}
    known = served_kinds(session, refs.values())
    return [(ref, known[gvk]) for ref, gvk in sorted(refs.items()) if may_be_member(ref, recorded.namespaces)]


async def live_members_of(
    session: Session, sync: Sync, kinds: Iterable[GroupKind], recorded: Contents
) -> list[Manifest]:
    """Return the live objects of these *kinds* that were applied as the Sync, cluster-scoped or where they are *recorded* to be, as far as they may be listed.

    Raises:
        ApiError: the server doesn't answer.
    """
    set_id = set_id_of(sync)
    wide = await gather.list_along(session, {Listing(kind, set_id=set_id) for kind in kinds})
    unseen = [one for one, answer in wide.items() if answer.unseen]
    narrow = {Listing(one.kind, place, set_id) for one in unseen if one.kind for place in recorded.places_of(one.kind)}
    answers = [*wide.values(), *(await gather.list_along(session, narrow)).values()]
    return [one for answer in answers for one in answer.objects if is_marked_by_us(one, sync.field_manager)]


def _may_have_more(session: Session, kind: GroupKind, recorded: Contents, needs: Needs) -> bool:
    """Tell whether there may be members of *kind* that the needs so far don't cover."""
    resource = session.resource(kind)
    if resource is None or not resource.namespaced:
        return resource is not None
    listing = Right(kind.group, resource.plural, "list")
    return any(listing not in needs.here.get(place, ()) for place in recorded.namespaces)
