"""A grant against what is there: what is new, what changes, what isn't needed any more; and making it so.

Everything uses the rights of the person who asks. The server lets nobody give rights that they don't hold themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound
from kubectl_reconcile.core.annotations import GRANTED_TO
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, labels_of, maps_in
from kubectl_reconcile.core.planning.hold import hash_of
from kubectl_reconcile.core.planning.plan import Op, set_id_of
from kubectl_reconcile.core.planning.rights.grant import granted_name, is_granted_name
from kubectl_reconcile.core.planning.rights.needs import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    Needs,
)
from kubectl_reconcile.core.planning.rights.rules import Right, TooManyRights, covers, rights_in
from kubectl_reconcile.core.planning.rights.writes import PlacedRight
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.sync.session import Session

_MANAGER = "kubectl-reconcile-cli"
_AT_ONCE = 16
_RBAC = (CLUSTER_ROLE_BINDING, ROLE_BINDING, CLUSTER_ROLE, ROLE)
"""Bindings go before what they bind."""


class GrantStep(Struct, frozen=True):
    """What happens to one object of a grant: *op* is create, update, unchanged or delete. *more* and *less* are what rights change."""

    op: Op
    ref: ObjectRef
    manifest: Manifest
    live: Manifest | None = None
    more: frozenset[Right] = frozenset()
    less: frozenset[Right] = frozenset()


async def steps_to(session: Session, sync: Sync, wanted: Sequence[Manifest], places: Iterable[str]) -> list[GrantStep]:
    """Return what happens to the objects *wanted*, in their order, and then what of an earlier grant isn't wanted any more.

    Earlier ones are looked for in all namespaces, or where that isn't allowed in *places*. Writes nothing.

    Raises:
        ApiError: the server doesn't answer.
    """
    slots = asyncio.Semaphore(_AT_ONCE)
    live = await asyncio.gather(*(_live(session, manifest, slots) for manifest in wanted))
    steps = [_step(manifest, found) for manifest, found in zip(wanted, live, strict=True)]
    kept = {step.ref for step in steps}
    earlier = await granted(session, sync, places)
    return [*steps, *(removal(ref, role) for ref, role in earlier.items() if ref not in kept)]


async def granted(session: Session, sync: Sync, places: Iterable[str]) -> dict[ObjectRef, Manifest]:
    """Return the Roles and bindings that an earlier grant made for *sync*, as far as they may be seen.

    Anybody can write a label: what isn't called as a grant calls it isn't one.

    Raises:
        ApiError: the server doesn't answer.
    """
    found = await asyncio.gather(*(_labelled(session, sync, kind, set(places)) for kind in _RBAC))
    refs = {ObjectRef.of(one): one for items in found for one in items}
    return {ref: one for ref, one in refs.items() if is_granted_name(sync, ref.namespace, ref.name)}


async def _labelled(session: Session, sync: Sync, kind: Any, places: Collection[str]) -> list[dict[str, Any]]:
    resource, selector = session.resource(kind), f"{GRANTED_TO}={set_id_of(sync)}"
    if resource is None:
        return []
    try:
        return (await session.client.list(resource.collection(), labelSelector=selector))[0]
    except Forbidden:
        paths = [resource.collection(place) for place in sorted(places)] if resource.namespaced else []
    found = []
    for path in paths:
        try:
            found += (await session.client.list(path, labelSelector=selector))[0]
        except Forbidden:
            continue
    return found


async def _live(session: Session, manifest: Manifest, slots: asyncio.Semaphore) -> Manifest | None:
    """Return an object as it is; None where it isn't there, or may not be seen."""
    async with slots:
        try:
            return await session.client.get(_path(session, manifest))
        except (NotFound, Forbidden):
            return None


def _path(session: Session, manifest: Manifest) -> str:
    gvk, ref = GroupVersionKind.of(manifest), ObjectRef.of(manifest)
    resource = session.discovery.find(gvk.api_version, gvk.kind)
    if resource is None:
        raise ApiError(f"the cluster serves no {gvk}, which a grant is made of")
    return resource.path(ref.namespace, ref.name)


def hash_of_steps(steps: Iterable[GrantStep]) -> str:
    """Return a short digest of what is there after *steps*, and of what goes: another where a right more is given."""
    left = [[str(step.ref), None if step.op is Op.DELETE else step.manifest] for step in steps]
    return hash_of(json.dumps(sorted(left, key=lambda each: str(each[0])), sort_keys=True))


# --- what happens to one -------------------------------------------------------------------------


def _step(wanted: Manifest, live: Manifest | None) -> GrantStep:
    ref, after, before = ObjectRef.of(wanted), rights_of(wanted), rights_of(live or {})
    if live is None:
        return GrantStep(Op.CREATE, ref, wanted, more=after)
    same = (
        after == before
        and labels_of(wanted).items() <= labels_of(live).items()
        and _subjects(wanted) == _subjects(live)
    )
    return GrantStep(
        Op.UNCHANGED if same else Op.UPDATE, ref, wanted, live,
        frozenset(one for one in after if not covers(before, one)),
        frozenset(one for one in before if not covers(after, one)),
    )  # fmt: skip


def removal(ref: ObjectRef, live: Manifest) -> GrantStep:
    """Return the step that removes an object of an earlier grant."""
    return GrantStep(Op.DELETE, ref, live, live, less=rights_of(live))


def rights_of(role: Manifest) -> frozenset[Right]:
    """Return the rights that a Role gives; none for what is no Role."""
    try:
        return rights_in(role.get("rules"))
    except TooManyRights:
        return frozenset()


def _subjects(binding: Manifest) -> list[tuple[str, ...]]:
    return sorted(
        tuple(str(one.get(key, "")) for key in ("kind", "namespace", "name"))
        for one in maps_in(binding.get("subjects"))
    )


def kept_and_missing(
    sync: Sync, needs: Needs, missing: Collection[PlacedRight], roles: Mapping[ObjectRef, Manifest]
) -> Needs:
    """Return what a grant must hold so that nothing is *missing*: that, and what an earlier one gives and is still needed.

    What the account has from elsewhere is left to that.
    """
    held = {place: frozenset[Right]() for place in ("", *needs.here)}
    names = {place: granted_name(sync, place) for place in held}
    for ref, role in roles.items():
        if ref.namespace in held and ref.group_kind in {ROLE, CLUSTER_ROLE} and ref.name == names[ref.namespace]:
            held[ref.namespace] = rights_of(role)
    wanted = {(place, one) for place, one in needs.placed() if (place, one) in missing or covers(held[place], one)}
    return needs.only(wanted)


# --- making it so --------------------------------------------------------------------------------


async def apply(session: Session, step: GrantStep) -> None:
    """Make one step. What an earlier grant made is ours to write, whoever has applied it; what others made isn't.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    path = _path(session, step.manifest)
    if step.op is Op.DELETE:
        metadata = step.manifest["metadata"]
        with contextlib.suppress(NotFound):
            await session.client.delete(path, uid=metadata["uid"], resource_version=metadata["resourceVersion"])
    elif step.op is not Op.UNCHANGED:
        ours = step.live is not None and GRANTED_TO in labels_of(step.live)
        await session.client.apply(path, step.manifest, manager=_MANAGER, force=ours)


async def wake(session: Session, sync: Sync) -> bool:
    """Ask whoever follows the Sync for a pass; tell whether that was allowed.

    Raises:
        ApiError: the server doesn't answer.
    """
    try:
        await sync_requests.request_sync(session.client, sync)
    except (Forbidden, NotFound):
        return False
    return True
