"""What the daemon sees of the cluster, and as whom: every feed is listed once and watched from then on, and shared.

- A Sync's members are watched with the daemon's own rights where it has them: one watch a kind serves every Sync. Else they are
  watched as the Sync's account, namespace by namespace; Secrets always, for the daemon may have no right to all of them.
- Members of Syncs that other replicas work on are held bare. What comes to be ours is read again before it is looked at: by one
  list a feed, however many Syncs come at a time.
- Whatever is watched on behalf of others, a Sync sees its own members of it, and nothing else.
- What a module makes and reads is watched as the module's account; what it reads of whole namespaces, for as long as a CR is there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextvars import Context
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Resource
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotHeld
from kubectl_reconcile.core.module.call import Ask
from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.planning.snapshot import OwnSet, Snapshot
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.access_reviews import may
from kubectl_reconcile.engine.daemon.sources.variables_watch import VariablesWatch
from kubectl_reconcile.engine.sync.view import NOTHING, without_absent
from kubectl_reconcile.engine.telemetry.logs import event

log = logging.getLogger("kubectl_reconcile.daemon")

_SYNCED_WITHIN_S = 30.0
_SECRET = GroupKind("", "Secret")
_READINGS = 5
_READ_AGAIN_S = 0.1
"""After how long what is still not held whole is read once more: it is going, which the watch is about to tell."""


async def followed(cache: Cache, feeds: Iterable[Feed]) -> dict[Feed, ApiError]:
    """Follow these feeds; return those that could not be read within half a minute, and why."""
    wanted = list(feeds)
    for feed in wanted:
        cache.follow(feed)
    await cache.wait_synced(wanted, timeout_s=_SYNCED_WITHIN_S)
    late = ApiError(f"not listed within {_SYNCED_WITHIN_S:.0f} s")
    return {feed: cache.failure(feed) or late for feed in wanted if not cache.synced(feed)}


@dataclass(slots=True)
class OwnRights:
    """What the daemon itself may watch in all namespaces. Asked once, and again when it turns out to be otherwise."""

    client: Client
    _known: dict[Resource, bool] = field(default_factory=dict)

    async def may_watch(self, resource: Resource) -> bool:
        """Tell whether all objects of a kind may be listed and watched; of Secrets they never are.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        if resource.gvk.group_kind == _SECRET:
            return False
        if resource not in self._known:
            rights = (Right(resource.gvk.group, resource.plural, verb) for verb in ("list", "watch"))
            self._known[resource] = all(await asyncio.gather(*(may(self.client, "", right) for right in rights)))
        return self._known[resource]

    def forget(self, resource: Resource) -> None:
        """Ask again: what was allowed has been refused."""
        self._known.pop(resource, None)


@dataclass(slots=True)
class FeedUsers:
    """Who needs which feeds; one that nobody needs any more ends."""

    cache: Cache
    _needed: dict[ObjectRef, frozenset[Feed]] = field(default_factory=dict)
    _users: Counter[Feed] = field(default_factory=Counter)
    _ending: set[asyncio.Task[None]] = field(default_factory=set)

    def use(self, ref: ObjectRef, feeds: frozenset[Feed]) -> None:
        """Note which feeds an item needs from now on, and end those that it was the last to need."""
        before = self._needed.pop(ref, frozenset())
        if feeds:
            self._needed[ref] = feeds
        self._users.update(feeds - before)
        for feed in before - feeds:
            self._users[feed] -= 1
            if not self._users[feed]:
                del self._users[feed]
                self._end(feed)

    def _end(self, feed: Feed) -> None:
        task = asyncio.ensure_future(self._unfollow(feed))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _unfollow(self, feed: Feed) -> None:
        """Release a feed, unless somebody has come to need it since that was decided."""
        if feed not in self._users:
            await self.cache.unfollow(feed)


@dataclass(slots=True)
class MemberFeeds:
    """The feeds by which members are followed, each for as long as some Sync needs it."""

    cache: Cache
    rights: OwnRights
    users: FeedUsers = field(init=False)
    _completing: dict[Feed, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with no users."""
        self.users = FeedUsers(self.cache)

    async def ensure(self, sync: Sync, feeds: Iterable[Feed], holds: Contents) -> Mapping[Feed, ApiError]:
        """Follow what shows these kinds' members where the set *holds* some; return the feeds that could not be read, and why.

        Raises:
            ApiError: the server doesn't say what the daemon may watch, or what came from another replica can't be read.
        """
        asked = list(feeds)
        wanted = dict(zip(asked, await asyncio.gather(*(self._real(sync, each, holds) for each in asked)), strict=True))
        needed = frozenset(real for each in wanted.values() for real in each)
        self.users.use(sync.ref, needed)
        failures = await followed(self.cache, needed)
        await self._complete(sync, needed - failures.keys())
        for real, why in failures.items():
            if isinstance(why, Forbidden) and not real.user:
                self.rights.forget(real.resource)
        found = {
            replace(feed, namespace=real.namespace): failures[real]
            for feed, each in wanted.items()
            for real in each
            if real in failures
        }
        return await without_absent(self.rights.client, found)

    def release(self, ref: ObjectRef) -> None:
        """Release what only this Sync needed."""
        self.users.use(ref, frozenset())

    async def _real(self, sync: Sync, feed: Feed, holds: Contents) -> tuple[Feed, ...]:
        if await self.rights.may_watch(feed.resource):
            return (feed,)
        narrow = sorted(holds.places_of(feed.resource.gvk.group_kind)) if feed.resource.namespaced else [""]
        return tuple(replace(feed, namespace=place, user=sync.account) for place in narrow)

    async def _complete(self, sync: Sync, feeds: Collection[Feed]) -> None:
        """Have all members of a Sync held whole: until now it may have been another replica's.

        Raises:
            ApiError: they can't be read; or the Sync is another replica's again.
        """
        set_id = set_id_of(sync)
        for number in range(_READINGS):
            lacking = [feed for feed in feeds if self._lacks(feed, set_id)]
            if not lacking:
                return
            await asyncio.sleep(number * _READ_AGAIN_S)
            await asyncio.gather(*map(self._read_again, lacking))
        raise NotHeld(f"members of {sync.ref} were another replica's, and can't be read; they are read again")

    def _lacks(self, feed: Feed, set_id: str) -> bool:
        """Tell whether some member of a set is held bare in *feed*."""
        shown = self.cache.snapshot_of([feed])
        return shown.has_bare and not all(stored.is_whole for stored in shown.labelled(PART_OF, set_id))

    async def _read_again(self, feed: Feed) -> None:
        """Read a feed once more, or wait until that is done where it is under way for somebody else."""
        if (reading := self._completing.get(feed)) is None:
            reading = asyncio.create_task(self.cache.complete(feed), name=f"complete {feed}", context=Context())
            self._completing[feed] = reading
            reading.add_done_callback(lambda _: self._completing.pop(feed, None))
        await asyncio.shield(reading)


class MembersView(Struct, frozen=True):
    """One Sync's view: its members, and nothing of anybody else's."""

    sync: Sync
    feeds: MemberFeeds
    ask: Ask

    def selects(self, _set_id: str) -> str:
        """Return the selector of all sets' members: one watch serves many Syncs."""
        return PART_OF

    async def ensure(self, feeds: Iterable[Feed], holds: Contents = NOTHING) -> Mapping[Feed, ApiError]:
        """Follow these feeds as the daemon, or else as the Sync's account where the set *holds* members; return those that could not be read."""
        return await self.feeds.ensure(self.sync, feeds, holds)

    def snapshot(self) -> Snapshot:
        """Return the live members."""
        return OwnSet(self.feeds.cache.snapshot(), PART_OF, set_id_of(self.sync))


@dataclass(slots=True)
class FollowingView:
    """What the daemon itself sees; each Sync sees its part of it, by feeds of *members*; *variables* are watched apart.

    *readers* are the CRs whose modules read whole namespaces.
    """

    cache: Cache
    ask: Ask
    members: MemberFeeds
    variables: VariablesWatch
    readers: FeedUsers = field(init=False)
    _told: set[Feed] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with no readers."""
        self.readers = FeedUsers(self.cache)

    def of(self, sync: Sync) -> MembersView:
        """Return what a Sync sees."""
        return MembersView(sync, self.members, self.ask)

    async def ensure(self, feeds: Iterable[Feed]) -> Mapping[Feed, ApiError]:
        """Follow these feeds; return those that could not be read, and why, which is logged once of each."""
        wanted = list(feeds)
        failures = await followed(self.cache, wanted)
        for feed in failures.keys() - self._told:
            event(log, logging.ERROR, "not followed", kind=feed.resource.gvk.group_kind, error=failures[feed])
        self._told.difference_update(wanted)
        self._told.update(failures)
        return failures

    def snapshot(self) -> Snapshot:
        """Return the live objects of all feeds so far."""
        return self.cache.snapshot()

    def shown(self, feeds: Iterable[Feed]) -> Snapshot:
        """Return the live objects of these feeds alone: no Sync's members, which are watched as accounts of theirs."""
        return self.cache.snapshot_of(feeds)
