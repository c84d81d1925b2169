"""Writes one object: what is sent to the server, and what of its answers is tried again.

Every apply is a server-side apply; every deletion is guarded by uid and resource version, so that nothing but the planned
object goes; what is replaced is kept in memory, and restored if its successor is refused. Overload, lost races and outages
are waited out, within bounds. What depends on what is decided elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, BadRequest, Conflict, Invalid, NotFound
from kubectl_reconcile.core.annotations import MODULE_LABEL, MemberOptions
from kubectl_reconcile.core.apply.replace import as_restored
from kubectl_reconcile.core.module.adoption import with_owner_uid
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, labels_of
from kubectl_reconcile.core.planning.builder import is_going
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.core.ssa.csa_upgrade import rebased
from kubectl_reconcile.engine.apply.flow_control import Pacing, patiently
from kubectl_reconcile.engine.apply.guarded import Guard, judged_as
from kubectl_reconcile.engine.apply.owners import at_one_version, with_owners

_RACES = 6
_FRESH_S = 10.0


class ObjectWriter(Struct):
    """Writes objects of one run. A *provisional* one creates only what isn't there, by the server's own judgement.

    *act* runs what modules do outside; *until_gone* waits for the end of a deleted object and says what keeps it;
    *wrote* and *deleted* are informed of what a replacement does on its way. *uids* are those of objects that this run wrote. *new_kinds* tells
    when this run wrote a CRD, and *served* the versions that it serves since.
    """

    client: Client
    pace: Pacing
    provisional: bool
    act: Callable[[Change], Awaitable[Manifest | None]] | None
    until_gone: Callable[[ObjectRef, Kind, str], Awaitable[str]]
    wrote: Callable[[Manifest], None]
    deleted: Callable[[ObjectRef, str], None]
    uids: dict[ObjectRef, str] = field(default_factory=dict)
    new_kinds: dict[tuple[str, str], float] = field(default_factory=dict)
    served: dict[tuple[str, str], Mapping[GroupVersionKind, Kind]] = field(default_factory=dict)

    async def write(self, change: Change) -> Manifest | None:
        """Make one change, and return the object as it is then, None where it is gone.

        Raises:
            ApiError: the server refuses, or doesn't answer for too long.
        """
        if change.op is Op.ACT and self.act is not None:
            return await self.act(change)
        if change.op is Op.DELETE:
            return await self._delete(change)
        if change.kind is None or change.intent is None:
            raise ApiError(f"{change.ref}: the plan has no content for it")
        if change.op is Op.REPLACE:
            return await self._replace(change)
        if change.takeover:
            await self._take_over(change, change.kind.path(change.ref.namespace, change.ref.name))
        return await self._apply(change, change.kind)

    async def get(self, path: str) -> Manifest:
        """Return an object as it is, however long an outage lasts (within bounds).

        Raises:
            ApiError: it is gone, or the server refuses.
        """
        live: Manifest = await self._ask(lambda: self.client.get(path))
        return live

    async def _take_over(self, change: Change, path: str) -> None:
        """Hand the fields of others over to us; a controller that writes a status meanwhile is no reason to give up."""
        patch = change.takeover

        async def attempt() -> Manifest:
            nonlocal patch
            try:
                return await self.client.patch(path, [dict(step) for step in patch])
            except Conflict:
                patch = rebased(change.takeover, change.before or {}, await self.client.get(path)) or patch
                raise

        answer: Manifest = await self._ask(attempt)
        await with_owners(self.client, path, patch, answer)

    async def _apply(self, change: Change, kind: Kind) -> Manifest:
        path, body = kind.path(change.ref.namespace, change.ref.name), self._body(change)
        if self.provisional and change.op is Op.CREATE:
            made: Manifest = await self._ask(lambda: self._made(change, path, body))
            return made
        # For a moment a new kind isn't served, or not yet with its new fields.
        since_s = self.new_kinds.get((kind.gvk.group, kind.plural))
        fresh = since_s is not None and time.monotonic() - since_s < _FRESH_S
        passing = (NotFound, BadRequest, Invalid) if fresh else ()
        judged = None if change.op in {Op.CREATE, Op.REPLACE} else change.before
        guard, manager, force = Guard(self.client, path, judged), change.provenance.manager, change.gate.force

        def apply() -> Awaitable[Manifest]:
            return guard.apply(body, manager=manager, force=force)

        live: Manifest = await self._ask(
            lambda: at_one_version(self.client, path, kind.gvk.api_version, apply), also=passing
        )
        return live

    async def _made(self, change: Change, path: str, body: Manifest) -> Manifest:
        """Apply an object that isn't there.

        Raises:
            AlreadyExists: it is.
        """
        try:
            return await self.client.apply(
                path, judged_as(None, body), manager=change.provenance.manager, force=change.gate.force
            )
        except Conflict as error:
            raise AlreadyExists(str(error), status=error.status, reason=error.reason) from error

    async def _ask(self, attempt: Callable[[], Any], also: tuple[type[ApiError], ...] = ()) -> Any:
        return await patiently(attempt, also=also, pace=self.pace)

    def _body(self, change: Change) -> Manifest:
        """Return the body to send; an owner that this very run made lends its uid."""
        body = change.intent or {}
        uid = self.uids.get(change.provenance.owner, "") if change.provenance.owner else ""
        return with_owner_uid(body, uid) if uid else body

    def learn_kinds(self, crd: Manifest) -> None:
        """Note that the kinds of a CRD have just been Established: for a moment they may not be served everywhere."""
        now = time.monotonic()
        for gvk, kind in (found := kinds_of_crd(crd)).items():
            self.new_kinds[gvk.group, kind.plural], self.served[gvk.group, kind.plural] = now, found

    def _as_served(self, kind: Kind) -> Kind:
        """Return *kind* at a version that is served: this run may have dropped that of an object, which is there nevertheless."""
        found = self.served.get((kind.gvk.group, kind.plural))
        return kind if not found or kind.gvk in found else next(iter(found.values()))

    async def _delete(self, change: Change) -> Manifest | None:
        """Delete what was planned and nothing else; return it while finalizers keep it, None once it is gone.

        The resource version moves with every status update, so a lost race is looked at again:
        the same object, still marked as ours, may go.
        """
        before = change.before or {}
        uid, version = before["metadata"]["uid"], before["metadata"]["resourceVersion"]
        if change.kind is None:
            raise ApiError(f"{change.ref}: its kind is no longer served, so it can't be deleted")
        path = self._as_served(change.kind).path(change.ref.namespace, change.ref.name)
        for _ in range(_RACES):
            try:
                async with self.pace.place():
                    answer = await self.client.delete(
                        path, uid=uid, resource_version=version, grace_s=change.gate.grace_s
                    )
            except NotFound:
                return None
            except Conflict:
                live = await self._still_ours(path, uid, before)
                if live is None:
                    return None
                version = live["metadata"]["resourceVersion"]
            except ApiError as error:
                if error.status not in {0, 429} and error.status < 500:
                    raise
                # Whether it was done is unknown; looking tells, and outlasts the outage.
                live = await self._still_ours(path, uid, before)
                if live is None or live["metadata"].get("deletionTimestamp"):
                    return live
                version = live["metadata"]["resourceVersion"]
            else:
                return None if answer.get("kind") == "Status" else answer
        raise Conflict(f"{change.ref} keeps changing; it is deleted in the next sync", status=409)

    async def _still_ours(self, path: str, uid: str, before: Manifest) -> Manifest | None:
        """Return the live object if it is the planned one and still marked as it was, else None."""
        try:
            live = await self.get(path)
        except NotFound:
            return None
        if live["metadata"]["uid"] != uid:
            return None
        same = all(labels_of(live).get(mark) == labels_of(before).get(mark) for mark in (PART_OF, MODULE_LABEL))
        if not same or (MemberOptions.of(live).kept and not MemberOptions.of(before).kept):
            raise Conflict("somebody changed its membership meanwhile; it is left alone", status=409)
        return live

    async def _replace(self, change: Change) -> Manifest:
        """Delete an object, or let one go that is deleted already, and recreate it; restore the old one if the new one is refused."""
        before, kind = change.before or {}, change.kind
        if kind is None:
            raise ApiError(f"{change.ref}: its kind is no longer served")
        if is_going(before):
            await self._let_go(change, kind)
        else:
            await self._delete(change)
        if why := await self.until_gone(change.ref, kind, before["metadata"]["uid"]):
            raise ApiError(f"it was deleted to be recreated, but {why}; it is recreated once it is gone")
        self.deleted(change.ref, before["metadata"]["uid"])
        try:
            return await self._apply(change, kind)
        except ApiError as error:
            note = "" if change.gate.hook else await self._restored(change, kind, before)
            raise ApiError(f"{error}{note}", status=error.status, reason=error.reason) from error

    async def _let_go(self, change: Change, kind: Kind) -> None:
        """Have the manifest's finalizers be those of an object that is deleted already, unless that is gone by now."""
        path, before = kind.path(change.ref.namespace, change.ref.name), change.before or {}

        async def attempt() -> None:
            live = await self.client.get(path)
            if live["metadata"]["uid"] != before["metadata"]["uid"]:
                raise NotFound(f"{change.ref} is another one by now", status=404)
            await self.client.apply(
                path, judged_as(live, self._body(change)), manager=change.provenance.manager, force=change.gate.force
            )

        with suppress(NotFound):
            await self._ask(attempt)

    async def _restored(self, change: Change, kind: Kind, before: Manifest) -> str:
        """Restore a deleted object; return a note on how that went."""
        try:
            live = await self._ask(lambda: self.client.create(kind.path(change.ref.namespace), as_restored(before)))
        except AlreadyExists:
            return "; somebody else recreated it meanwhile"
        except ApiError as error:
            return f"; the old object couldn't be restored: {error}"
        self.wrote(live)
        return "; the old object was restored"


async def write_status(
    client: Client,
    kind: Kind,
    body: Manifest,
    *,
    manager: str,
    uid: str = "",
    version: str = "",
    pace: Pacing | None = None,
) -> Manifest:
    """Apply a status, and return the object as the server now holds it.

    With *uid*, an object of the same name that was recreated since is left alone (Conflict). With *version* too, what was seen
    there is told to the server behind a fence.
    """
    metadata: dict[str, Any] = dict(body["metadata"]) | ({"uid": uid} if uid else {})
    path = kind.path(metadata.get("namespace", ""), metadata["name"], "status")
    seen = {"metadata": {"uid": uid, "resourceVersion": version}} if uid and version else None
    guard = Guard(client, path, seen, same=True)

    async def apply() -> Manifest:
        told = {**body, "metadata": metadata}
        if seen is None:
            return await client.apply(path, told, manager=manager, force=True)
        return await guard.apply(told, manager=manager, force=True)

    whole, api_version = kind.path(metadata.get("namespace", ""), metadata["name"]), kind.gvk.api_version
    live: Manifest = await patiently(lambda: at_one_version(client, whole, api_version, apply), pace=pace)
    return live
