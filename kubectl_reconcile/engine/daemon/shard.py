"""Several daemons on one cluster: each works on its share, and on one item never two do.

Every replica renews a *Lease* of its own; one more Lease holds the *group*: the members, their leader, and
the generation, in ``spec.leaseTransitions``. The leader writes the group, whoever it is; others take the lead when it is gone.
What follows from that is decided in ``core/shares``.

The *fence*: a replica writes only while its own Lease, the very one that it made, was renewed a short while ago by
its own clock. Nobody else takes over its share before the time that the Lease promises is over, which is longer, and before
the Lease is deleted, so that a replica that was merely stopped can't renew it: it has to join anew.

Rules:

- Time is what this process measured since it saw a Lease change; no clocks are compared.
- A Lease is deleted only in the version that was seen to be old. Who renewed it meanwhile stays.
- Told to end, a replica says so on its Lease, and the others go on at once.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.cluster.cache import Cache, Event, Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubectl_reconcile.core.annotations import ACKNOWLEDGED_GENERATION, COMPONENT, FOLLOWS, LEAVING, MEMBERS, PROCESS
from kubectl_reconcile.core.daemon.sharding import Group, Member, Share
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, Manifest, annotations_of, labels_of
from kubectl_reconcile.engine.api.identity import identity, is_gone, proof
from kubectl_reconcile.engine.telemetry.logs import News, event

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

DURATION_S = 12
"""How long after the last sign of life a replica's share goes to others."""

_VALID_S = 10.0
_RENEW_S = 4.0
_AGAIN_S = 1.0
_TICK_S = 0.25
_MANAGER = "kubectl-reconcile-lease"
_DAEMON = "daemon"
_GROUP = "daemon-group"
_NEVER = "1970-01-01T00:00:00.000000Z"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Shard:
    """This replica among the others that follow the same part of a cluster, by Leases in *namespace*.

    *follows* is the only namespace whose Syncs are looked after; empty means all. *changed* is called when the share
    has changed; *let_go* returns when nothing that isn't ours is worked on any more.
    """

    client: Client
    cache: Cache
    namespace: str
    follows: str
    changed: Callable[[], None]
    let_go: Callable[[], Awaitable[None]]
    share: Share = field(default_factory=Share)
    _valid_until_s: float = 0.0
    _seen_s: dict[Member, float] = field(default_factory=dict)
    _left: set[Member] = field(default_factory=set)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _news: News = field(default_factory=News)

    # What may be done ---------------------------------------------------------------------------

    def owns(self, key: str) -> bool:
        """Tell whether an item is ours to write now."""
        return time.monotonic() < self._valid_until_s and self.share.holds(key)

    def trouble(self) -> str:
        """Return why this replica works on nothing, or nothing."""
        if time.monotonic() >= self._valid_until_s:
            return "its Lease can't be renewed"
        return "" if self.share.me in self.share.group.members else "it isn't a member of the group yet"

    # Running ------------------------------------------------------------------------------------

    async def run(self, resource: Resource) -> None:
        """Take part, for ever; cancel it to stop. *resource* is the server's Lease."""
        self.cache.subscribe(self._on_event)
        scope = f"{FOLLOWS}={self.follows}" if self.follows else f"!{FOLLOWS}"
        feed = Feed(resource, f"{COMPONENT} in ({_DAEMON},{_GROUP}),{scope}", self.namespace)
        self.cache.follow(feed)
        async with asyncio.TaskGroup() as tasks:  # should one of the two end, both do, and the daemon says so
            tasks.create_task(self._renewing(), name="lease")
            await self.cache.wait_synced([feed])
            while True:
                if self.share.me:
                    with suppress(Conflict, AlreadyExists, NotFound):  # somebody else was faster: the watch tells
                        await self._told(self._step(self.share.me))
                await self._news_or_expiry()

    async def leave(self) -> None:
        """Hand over: say that we have left, to the others and to whoever comes later. Nothing may be worked on any more."""
        me, self._valid_until_s = self.share.me, 0.0
        if me is None:
            return
        with suppress(ApiError):
            await self._patch_own(me, {LEAVING: "true"}, renewed=_NEVER)
            with suppress(Conflict, NotFound):  # another leader has taken us out already
                await self._write_group_without(me)
            await self.client.delete(self._path(me.identity), uid=me.uid)

    async def _told(self, work: Awaitable[None]) -> None:
        """Do *work*; a failure that isn't a lost race is logged, and tried again."""
        try:
            await work
            self._news.of("step", ())
        except (Conflict, AlreadyExists, NotFound):
            raise
        except ApiError as error:
            event(log, self._news.level("step", str(error)), "group not kept", error=error)
            await asyncio.sleep(_AGAIN_S)
            self._wake.set()

    async def _news_or_expiry(self) -> None:
        others = [seen_s for member, seen_s in self._seen_s.items() if member != self.share.me]
        wait_s = max(min(others) + DURATION_S - time.monotonic(), _TICK_S) if others else None
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        self._wake.clear()

    def _on_event(self, happened: Event) -> None:
        """Note signs of life. Called in the loop; must not wait."""
        if happened.ref.group_kind != LEASE.group_kind:
            return
        stored = happened.new or happened.old
        if stored is None or stored.labels.get(COMPONENT) != _DAEMON:
            self._wake.set()
            return
        member, now_s = Member(_identity_of(stored.ref.name), stored.uid), time.monotonic()
        if happened.new is not None:
            self._seen_s[member] = now_s
            if LEAVING.encode() in stored.raw and annotations_of(stored.manifest()).get(LEAVING):
                self._left.add(member)
                self._wake.set()
        if happened.kind != "modified" or not self.share.is_settled:
            self._wake.set()

    # Our own Lease ------------------------------------------------------------------------------

    async def _renewing(self) -> None:
        while True:
            sent_s = time.monotonic()
            try:
                async with asyncio.timeout(_VALID_S):
                    await self._renew()
                self._news.of("lease", ())
            except (ApiError, TimeoutError) as error:
                why = str(error) or "no answer"
                event(log, self._news.level("lease", why), "lease not renewed", lease=identity(), error=why)
                await asyncio.sleep(_AGAIN_S)
                continue
            self._renewed(sent_s)
            await asyncio.sleep(_RENEW_S)

    def _renewed(self, sent_s: float) -> None:
        was_shut = time.monotonic() >= self._valid_until_s
        self._valid_until_s = sent_s + _VALID_S
        if was_shut:  # we were away: what we saw of the others is as old as that
            now_s = time.monotonic()
            self._seen_s = dict.fromkeys(self._seen_s, now_s)
            self.changed()
            self._wake.set()

    async def _renew(self) -> None:
        if self.share.me is not None:
            try:
                await self._patch_own(self.share.me, {ACKNOWLEDGED_GENERATION: str(self.share.acknowledged)})
            except (NotFound, Conflict):
                event(log, logging.WARNING, "expelled", lease=identity())
                self._valid_until_s = 0.0
                self._left.add(self.share.me)
            else:
                return
        lease = await self._created()
        self.share.join(Member(identity(), lease["metadata"]["uid"]))
        self.changed()
        self._wake.set()

    async def _created(self) -> Manifest:
        """Make our Lease. One of our own name is of an earlier life, or was left to us by a machine's reboot."""
        while True:
            try:
                lease = await self.client.create(self._path(), self._lease(), manager=_MANAGER)
            except AlreadyExists:
                with suppress(NotFound, Conflict):
                    old = await self.client.get(self._path(identity()))
                    await self.client.delete(self._path(identity()), uid=old["metadata"]["uid"])
                    self._left.add(Member(identity(), old["metadata"]["uid"]))
            else:
                self.cache.wrote(lease)
                return lease

    async def _patch_own(self, me: Member, annotations: dict[str, str], renewed: str = "") -> None:
        """Renew the Lease of this run, and no other."""
        body = {"metadata": {"uid": me.uid, "annotations": annotations}, "spec": {"renewTime": renewed or _now()}}
        self.cache.wrote(await self.client.patch(self._path(me.identity), body, manager=_MANAGER))

    # The group ------------------------------------------------------------------------------------

    async def _step(self, me: Member) -> None:
        """Do what the Leases ask for: lead, follow, acknowledge."""
        leases = {
            Member(_identity_of(each["metadata"]["name"]), each["metadata"]["uid"]): each for each in self._leases()
        }
        group, lease = self._group()
        self._forget(set(leases) | set(group.members))
        live = {member for member, each in leases.items() if not self._is_dead(member, each)} | {me}
        waiting = {member for member in group.members if member not in leases and not self._is_lost(member)}
        leader = next((member for member in live | waiting if member.identity == group.leader), None)
        if leader == me or (leader is None and me == min(live)):
            await self._lead(me, group, lease, leases, live, waiting)
            group, _ = self._group()
        if self.share.owes(group):
            await self._follow(me, group)
        acknowledged = {member: _generation_in(each) for member, each in leases.items()}
        if self.share.see({**acknowledged, me: self.share.acknowledged}):
            event(log, logging.INFO, "share settled", generation=group.generation, members=len(group.members))
            self.changed()

    async def _lead(
        self, me: Member, group: Group, lease: Manifest | None,
        leases: dict[Member, Manifest], live: set[Member], waiting: set[Member],
    ) -> None:  # fmt: skip
        """Take the dead out, and write down who is there, where that is news."""
        for member in leases.keys() - live:
            try:
                metadata = leases[member]["metadata"]
                await self.client.delete(
                    self._path(member.identity), uid=member.uid, resource_version=metadata["resourceVersion"]
                )
                event(log, logging.WARNING, "took over", lease=member.identity)
            except NotFound:
                pass
            except Conflict:
                live.add(member)
                continue
            self._left.add(member)
        wanted = tuple(sorted(live | waiting))
        if wanted == group.members and group.leader == me.identity:
            return
        await self._write_group(Group(group.generation + 1, wanted, me.identity), lease)

    async def _write_group_without(self, me: Member) -> None:
        group, lease = self._group()
        if me in group.members:
            others = tuple(member for member in group.members if member != me)
            leader = others[0].identity if others and group.leader == me.identity else group.leader
            await self._write_group(Group(group.generation + 1, others, leader), lease)

    async def _write_group(self, group: Group, lease: Manifest | None) -> None:
        """Write the group over the very version that was read; of two leaders one wins."""
        name = f"kubectl-reconcile-{self.follows or 'all'}-group"
        metadata: dict[str, Any] = {"name": name, "namespace": self.namespace, "labels": self._labels(_GROUP)}
        metadata["annotations"] = {MEMBERS: group.text()}
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata}
        body["spec"] = {
            "holderIdentity": group.leader, "leaseTransitions": group.generation, "renewTime": _now(),
            "leaseDurationSeconds": DURATION_S,
        }  # fmt: skip
        path = self._collection
        if lease is None:
            written = await self.client.create(path, body, manager=_MANAGER)
        else:
            metadata["resourceVersion"] = lease["metadata"]["resourceVersion"]
            written = await self.client.replace(f"{path}/{name}", body, manager=_MANAGER)
        self.cache.wrote(written)

    async def _follow(self, me: Member, group: Group) -> None:
        """Go by a new group, and acknowledge it once nothing that isn't ours is worked on any more."""
        self.share.adopt(group)
        self.changed()
        await self.let_go()
        if self.share.acknowledge(me, group):
            await self._patch_own(me, {ACKNOWLEDGED_GENERATION: str(group.generation)})

    def _group(self) -> tuple[Group, Manifest | None]:
        found = [each for each in self._all() if labels_of(each).get(COMPONENT) == _GROUP]
        if not found:
            return Group(), None
        spec = found[0].get("spec") or {}
        members = annotations_of(found[0]).get(MEMBERS, "")
        return Group.parse(spec.get("leaseTransitions") or 0, spec.get("holderIdentity") or "", members), found[0]

    def _leases(self) -> Iterable[Manifest]:
        return (each for each in self._all() if labels_of(each).get(COMPONENT) == _DAEMON)

    def _all(self) -> list[Manifest]:
        kind = GroupKind(LEASE.group, LEASE.kind)
        return [stored.manifest() for stored in self.cache.snapshot().of_kind(kind, self.namespace)]

    def _is_dead(self, member: Member, lease: Manifest) -> bool:
        return member in self._left or self._is_overdue(member) or is_gone(annotations_of(lease).get(PROCESS, ""))

    def _is_lost(self, member: Member) -> bool:
        """Tell whether a member whose Lease is gone may be given up: it said so, or its time is over."""
        return member in self._left or self._is_overdue(member)

    def _is_overdue(self, member: Member) -> bool:
        return time.monotonic() - self._seen_s.setdefault(member, time.monotonic()) > DURATION_S

    def _forget(self, known: set[Member]) -> None:
        self._seen_s = {member: at_s for member, at_s in self._seen_s.items() if member in known}
        self._left &= known

    # Forms ----------------------------------------------------------------------------------------

    @property
    def _collection(self) -> str:
        return f"/apis/{LEASE.api_version}/namespaces/{self.namespace}/leases"

    def _path(self, who: str = "") -> str:
        return f"{self._collection}/kubectl-reconcile-{who}" if who else self._collection

    def _labels(self, component: str) -> dict[str, str]:
        return {COMPONENT: component} | ({FOLLOWS: self.follows} if self.follows else {})

    def _lease(self) -> Manifest:
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {
                "name": f"kubectl-reconcile-{identity()}",
                "namespace": self.namespace,
                "labels": self._labels(_DAEMON),
                "annotations": {PROCESS: proof()},
            },
            "spec": {"holderIdentity": identity(), "leaseDurationSeconds": DURATION_S, "renewTime": _now()},
        }


def _identity_of(name: str) -> str:
    return name.removeprefix("kubectl-reconcile-")


def _generation_in(lease: Manifest) -> int:
    text = annotations_of(lease).get(ACKNOWLEDGED_GENERATION, "")
    return int(text) if text.isdecimal() else 0


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
