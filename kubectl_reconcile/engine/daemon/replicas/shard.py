"""Several daemons on one cluster: each works on its share, and no item is two replicas' at once.

Every replica renews a *Lease* of its own; one more Lease holds the *group* (``leases.py``). Who leads, who is expelled and what
is whose is decided in ``core/daemon/sharding.py``; here it is seen, written and waited for.

The *fence*: a replica writes only while its own Lease, the very one that it made, was renewed a short while ago by
its own clock, and no write outlives that (``fence.py``). Nobody else takes over its share before the time that the Lease promises
is over, which is longer, and before the Lease is deleted, so that a replica that was merely stopped can't renew it: it has to join again.

Rules:

- Time is what this process measured since it saw a Lease change; no clocks are compared.
- Who is expelled trusts none of its connections any more: it may have seen nothing for a while.
- Told to end, a replica says so on its Lease, and the others go on at once. The Lease stays until the group doesn't name it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from msgspec import Struct, field

from kubectl_reconcile.cluster.cache import Event
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubectl_reconcile.core.daemon.sharding import VALID_S, Expulsion, Group, Member, Roster, Share
from kubectl_reconcile.engine.api.identity import identity
from kubectl_reconcile.engine.daemon.replicas.leases import Leases, seen, told_gone
from kubectl_reconcile.engine.telemetry.logs import News, event

_RENEW_S = 4.0
_AGAIN_S = 1.0
_TICK_S = 0.25
_GOODBYES = 8

log = logging.getLogger(__name__)


class Shard(Struct):
    """This replica among the others that follow the same part of a cluster.

    *changed* is called when the share has changed, *renewed* when it may be written for longer; *let_go* returns when nothing
    that isn't ours is being written any more.
    """

    leases: Leases
    changed: Callable[[], None]
    renewed: Callable[[], None]
    let_go: Callable[[], Awaitable[None]]
    share: Share = field(default_factory=Share)
    valid_until_s: float = 0.0
    _roster: Roster = field(default_factory=Roster)
    _own: asyncio.Lock = field(default_factory=asyncio.Lock)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _news: News = field(default_factory=News)

    # What may be done ---------------------------------------------------------------------------

    def owns(self, key: str) -> bool:
        """Tell whether an item is ours to write now."""
        return time.monotonic() < self.valid_until_s and self.share.holds(key)

    def trouble(self) -> str:
        """Return why this replica works on nothing, or nothing."""
        if time.monotonic() >= self.valid_until_s:
            return "its Lease can't be renewed"
        return "" if self.share.me in self.share.group.members else "it isn't a member of the group yet"

    # Running ------------------------------------------------------------------------------------

    async def run(self, resource: Resource) -> None:
        """Take part, forever; cancel it to stop. *resource* is the server's Lease."""
        cache, feed = self.leases.cache, self.leases.feed(resource)
        cache.subscribe(self._on_event)
        cache.follow(feed)
        async with asyncio.TaskGroup() as tasks:  # should one of the two end, both do, and the daemon says so
            tasks.create_task(self._renewing(), name="lease")
            await cache.wait_synced([feed])
            while True:
                if self.share.me:
                    with suppress(Conflict, AlreadyExists, NotFound):  # somebody else was faster: the watch tells
                        await self._told(self._step(self.share.me))
                await self._news_or_expiry()

    async def leave(self) -> None:
        """Hand over: say that we have left, to the others and to whoever comes later. Nothing may be worked on any more.

        Our Lease, which says so, goes only after our name has gone from the group: a name without a Lease would be waited for.
        """
        me, self.valid_until_s = self.share.me, 0.0
        if me is None:
            return
        with suppress(ApiError):
            await self.leases.say_goodbye(me)
            if await self._write_group_without(me):
                await self.leases.remove_own(me)

    async def _write_group_without(self, me: Member) -> bool:
        """Take ourselves out of the group, as others may at the same moment; tell whether we are out."""
        for _ in range(_GOODBYES):
            found = await self.leases.group_on_server()
            if me not in found.group.members:
                return True
            with suppress(Conflict, NotFound):
                await self.leases.write_group(found.group.without(me), found.lease)
                return True
        return False

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
        due_s = self._roster.due_s(self.share.me) if self.share.me else None
        wait_s = None if due_s is None else max(due_s - time.monotonic(), _TICK_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        self._wake.clear()

    def _on_event(self, happened: Event) -> None:
        """Note signs of life. Called in the loop; must not wait."""
        lease, is_news = seen(happened)
        if lease is not None:
            self._roster.saw(lease, time.monotonic())
        elif (gone := told_gone(happened)) is not None:
            self._roster.told_gone(gone)
        if is_news:
            self._wake.set()

    # Our own Lease ------------------------------------------------------------------------------

    async def _renewing(self) -> None:
        while True:
            sent_s = time.monotonic()
            try:
                async with asyncio.timeout(VALID_S):
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
        was_shut = time.monotonic() >= self.valid_until_s
        self.valid_until_s = sent_s + VALID_S
        self.renewed()
        if was_shut:
            self._roster.was_away(time.monotonic())
            self.changed()
            self._wake.set()

    async def _renew(self) -> None:
        if (me := self.share.me) is None:
            await self._join("")
            return
        try:
            async with self._own:  # two words of ours may not overtake each other
                await self.leases.renew(me, self.share.acknowledged)
        except (NotFound, Conflict):
            event(log, logging.WARNING, "expelled", lease=identity())
            self.valid_until_s = 0.0
            self._roster.is_over(me)
            self.changed()
            self.leases.client.give_up_connections()
            await self._join(me.uid)

    async def _join(self, replaces: str) -> None:
        self.share.join(await self.leases.join(replaces))
        self._wake.set()

    # The group ------------------------------------------------------------------------------------

    async def _step(self, me: Member) -> None:
        """Do what the Leases ask for: lead, follow, acknowledge."""
        await self._lead(me)
        members, group = self.leases.members(), self.leases.group().group
        if self.share.owes(group):
            await self._follow(me, group)
        acknowledged = {lease.member: lease.acknowledged for lease in members}
        if self.share.see({**acknowledged, me: self.share.acknowledged}):
            event(log, logging.INFO, "share settled", generation=group.generation, members=len(group.members))
            self.changed()

    async def _lead(self, me: Member) -> None:
        """Take out who is over, and write down who is there, where that is ours to do and news."""
        listed = Group()
        while True:
            found = self.leases.group()
            verdict = self._roster.judge(me, self.leases.members(), found.group, time.monotonic())
            if verdict.lists and listed != found.group:
                await self.leases.look()
                listed = self.leases.group().group
            elif verdict.group is not None:
                await self.leases.write_group(verdict.group, found.lease)
            elif not verdict.expel or not await self._expel_all(verdict.expel):
                return

    async def _expel_all(self, expulsions: Iterable[Expulsion]) -> bool:
        """Delete these Leases; tell whether all of them are gone now."""
        for expulsion in expulsions:
            try:
                await self._expel(expulsion)
            except Conflict:  # it was renewed, and we haven't seen that
                self._roster.saw(expulsion.lease, time.monotonic())
                return False
        return True

    async def _expel(self, expulsion: Expulsion) -> None:
        """Delete a Lease, and note whether it was us who did."""
        if not await self.leases.expel(expulsion):
            self._roster.found_gone(expulsion, time.monotonic())
            return
        self._roster.expelled(expulsion)
        event(log, logging.WARNING, "took over", lease=expulsion.lease.member.identity, reason=expulsion.reason.value)

    async def _follow(self, me: Member, group: Group) -> None:
        """Go by a new group, and acknowledge it once nothing that isn't ours is being written any more."""
        self.share.adopt(group)
        self.changed()
        await self.let_go()
        if self.share.acknowledge(me, group):
            async with self._own:
                await self.leases.renew(me, group.stamp)
