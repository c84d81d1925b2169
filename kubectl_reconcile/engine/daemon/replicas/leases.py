"""The Leases by which replicas know of each other: how they are found, read and written.

Every replica has one of its own; one more holds the *group*: its members in an annotation, its leader as holder, its generation
in ``spec.leaseTransitions``. A Lease is only ever written or deleted as the very one that was seen (its uid), and the group
over the very version that was read: of two leaders one wins.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from contextlib import suppress
from typing import Any

from msgspec import Struct

from kubectl_reconcile.cluster.cache import Cache, Event, Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import AlreadyExists, Conflict, NotFound, Unreachable
from kubectl_reconcile.core.annotations import (
    ACKNOWLEDGED_GROUP,
    COMPONENT,
    FOLLOWS,
    LEAVING,
    MEMBERS,
    PROCESS,
    REPLACES,
)
from kubectl_reconcile.core.daemon.sharding import DURATION_S, VALID_S, Expulsion, Group, Member, MemberLease
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, annotations_of, labels_of
from kubectl_reconcile.engine.api.identity import identity, is_gone, proof

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

_TWICE_AFTER_S = 3.0
_MANAGER = "kubectl-reconcile-lease"
_DAEMON, _GROUP = "daemon", "daemon-group"
_NEVER = "1970-01-01T00:00:00.000000Z"


class GroupLease(Struct, frozen=True):
    """The group as it is written, and the Lease that it is written in; ``None`` while there is none."""

    group: Group
    lease: Manifest | None = None


class Leases(Struct, frozen=True):
    """The Leases in *namespace* of all replicas that follow the same part of the cluster (*follows*, empty: all of it)."""

    client: Client
    cache: Cache
    namespace: str
    follows: str

    # What there is ------------------------------------------------------------------------------

    def feed(self, resource: Resource) -> Feed:
        """Return what to follow; *resource* is the server's Lease."""
        return Feed(resource, self._selector, self.namespace)

    async def look(self) -> None:
        """List all Leases that there are now, whatever the watch has told: they count as seen.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        found, _ = await self.client.list(self._path(), labelSelector=self._selector)
        for lease in found:
            self.cache.wrote(lease)

    def members(self) -> list[MemberLease]:
        """Return the Leases of all members, as the cache has them."""
        return [_member_lease(each) for each in self._all(_DAEMON)]

    def group(self) -> GroupLease:
        """Return the group, as the cache has it."""
        return _group_lease(next(iter(self._all(_GROUP)), None))

    def _all(self, component: str) -> list[Manifest]:
        found = (stored.manifest() for stored in self.cache.snapshot().of_kind(LEASE.group_kind, self.namespace))
        return [each for each in found if labels_of(each).get(COMPONENT) == component]

    # Our own ------------------------------------------------------------------------------------

    async def join(self, replaces: str) -> Member:
        """Make our Lease, and return whom it stands for. One of our own name is of an earlier life, or left by a reboot.

        *replaces* is the uid of the run that this process was before, and that writes nothing any more.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        while True:
            try:
                lease = await self.client.create(self._path(), self._own(replaces), manager=_MANAGER)
            except AlreadyExists:
                with suppress(NotFound, Conflict):
                    old = await self.client.get(self._path(identity()))
                    await self.client.delete(self._path(identity()), uid=old["metadata"]["uid"])
                    replaces = old["metadata"]["uid"]
            else:
                self.cache.wrote(lease)
                return Member(identity(), lease["metadata"]["uid"])

    async def renew(self, me: Member, acknowledged: str) -> None:
        """Renew our Lease, saying which group we go by. Along dead connections it is sent once more along a new one.

        Raises:
            NotFound, Conflict: it isn't ours any more: we were expelled.
            ApiError: the server refuses, or doesn't answer.
        """
        await self._patch_own(me, {ACKNOWLEDGED_GROUP: acknowledged}, _now())

    async def say_goodbye(self, me: Member) -> None:
        """Say on our Lease that nothing is written any more.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        await self._patch_own(me, {LEAVING: "true"}, _NEVER)

    async def _patch_own(self, me: Member, annotations: dict[str, str], renewed: str) -> None:
        body = {"metadata": {"uid": me.uid, "annotations": annotations}, "spec": {"renewTime": renewed}}
        path = self._path(me.identity)
        try:
            async with asyncio.timeout(VALID_S):  # later it would be of no use
                lease = await self.client.patch(path, body, manager=_MANAGER, twice_after_s=_TWICE_AFTER_S)
        except TimeoutError:
            raise Unreachable(self.client.server, f"the Lease wasn't renewed within {VALID_S:.0f} s") from None
        self.cache.wrote(lease)

    # Others' ------------------------------------------------------------------------------------

    async def expel(self, expulsion: Expulsion) -> bool:
        """Delete a member's Lease in the version that was judged; tell whether it was there.

        Raises:
            Conflict: it was renewed meanwhile.
            ApiError: the server refuses, or doesn't answer.
        """
        member, was_there = expulsion.lease.member, False
        with suppress(NotFound):
            await self.client.delete(
                self._path(member.identity), uid=member.uid, resource_version=expulsion.lease.version
            )
            was_there = True
        self.cache.deleted(ObjectRef(LEASE.group, LEASE.kind, self.namespace, _name(member.identity)), member.uid)
        return was_there

    async def write_group(self, group: Group, over: Manifest | None) -> None:
        """Write the group *over* the Lease that was read, or create one where there was none.

        Raises:
            AlreadyExists, Conflict, NotFound: somebody else was faster.
            ApiError: the server refuses, or doesn't answer.
        """
        metadata: dict[str, Any] = {
            "name": self._group_name,
            "namespace": self.namespace,
            "labels": self._labels(_GROUP),
        }
        metadata["annotations"] = {MEMBERS: group.text()}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata}
        body["spec"] = {
            "holderIdentity": group.leader, "leaseTransitions": group.generation, "renewTime": _now(),
            "leaseDurationSeconds": DURATION_S,
        }  # fmt: skip
        if over is None:
            written = await self.client.create(self._path(), body, manager=_MANAGER)
        else:  # without the uid the server would create what was deleted meanwhile
            metadata |= {key: over["metadata"][key] for key in ("uid", "resourceVersion")}
            written = await self.client.replace(f"{self._path()}/{self._group_name}", body, manager=_MANAGER)
        self.cache.wrote(written)

    async def group_on_server(self) -> GroupLease:
        """Return the group as the server has it now.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        try:
            return _group_lease(await self.client.get(f"{self._path()}/{self._group_name}"))
        except NotFound:
            return _group_lease(None)

    async def remove_own(self, me: Member) -> None:
        """Delete our Lease.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        await self.client.delete(self._path(me.identity), uid=me.uid)

    # Forms --------------------------------------------------------------------------------------

    @property
    def _group_name(self) -> str:
        return f"kubectl-reconcile-{self.follows or 'all'}-group"

    @property
    def _selector(self) -> str:
        scope = f"{FOLLOWS}={self.follows}" if self.follows else f"!{FOLLOWS}"
        return f"{COMPONENT} in ({_DAEMON},{_GROUP}),{scope}"

    def _path(self, who: str = "") -> str:
        collection = f"/apis/{LEASE.api_version}/namespaces/{self.namespace}/leases"
        return f"{collection}/{_name(who)}" if who else collection

    def _labels(self, component: str) -> dict[str, str]:
        return {COMPONENT: component} | ({FOLLOWS: self.follows} if self.follows else {})

    def _own(self, replaces: str) -> Manifest:
        annotations = {PROCESS: proof()} | ({REPLACES: replaces} if replaces else {})
        metadata = {"name": _name(identity()), "namespace": self.namespace, "labels": self._labels(_DAEMON)}
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {**metadata, "annotations": annotations},
            "spec": {"holderIdentity": identity(), "leaseDurationSeconds": DURATION_S, "renewTime": _now()},
        }


def seen(happened: Event) -> tuple[MemberLease | None, bool]:
    """Return the Lease of a member that an event shows alive, and whether the event is anything but a renewal.

    Events of other kinds are nothing of both.
    """
    stored = happened.new or happened.old
    if happened.ref.group_kind != LEASE.group_kind or stored is None:
        return None, False
    if stored.labels.get(COMPONENT) != _DAEMON or happened.new is None:
        return None, True
    lease = _member_lease(happened.new.manifest(), look=False)
    before = _member_lease(happened.old.manifest(), look=False) if happened.old else None
    is_news = before is None or (lease.member, lease.acknowledged, lease.leaves) != (
        before.member, before.acknowledged, before.leaves,
    )  # fmt: skip
    return lease, is_news


def told_gone(happened: Event) -> Member | None:
    """Return the member whose Lease was deleted as an event of an unbroken watch tells, None where it tells nothing of the kind."""
    stored = happened.old
    is_told = happened.new is None and not happened.own and not happened.after_gap
    if stored is None or not is_told or stored.labels.get(COMPONENT) != _DAEMON:
        return None
    return Member(stored.ref.name.removeprefix(_name("")), stored.uid) if stored.ref.kind == LEASE.kind else None


def _member_lease(lease: Manifest, *, look: bool = True) -> MemberLease:
    """Read a member's Lease; with *look*, see whether its process has ended."""
    metadata, said = lease["metadata"], annotations_of(lease)
    return MemberLease(
        Member(metadata["name"].removeprefix(_name("")), metadata["uid"]),
        metadata["resourceVersion"],
        acknowledged=said.get(ACKNOWLEDGED_GROUP, ""),
        replaces=said.get(REPLACES, ""),
        leaves=bool(said.get(LEAVING)),
        ended=look and is_gone(said.get(PROCESS, "")),
    )


def _group_lease(lease: Manifest | None) -> GroupLease:
    if lease is None:
        return GroupLease(Group())
    spec = lease.get("spec") or {}
    group = Group.parse(
        spec.get("leaseTransitions") or 0, spec.get("holderIdentity") or "", annotations_of(lease).get(MEMBERS, ""),
        lease["metadata"]["uid"],
    )  # fmt: skip
    return GroupLease(group, lease)


def _name(who: str) -> str:
    return f"kubectl-reconcile-{who}"


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
