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
import time
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
from kubectl_reconcile.core.fair.places import places_among
from kubectl_reconcile.core.module.call import Ask
from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import NAMESPACE
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.planning.snapshot import OwnSet, Snapshot
from kubectl_reconcile.core.resources.applyset import MOST_PLACES, PART_OF, Contents
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.api.access_reviews import may
from kubectl_reconcile.engine.daemon.sources.variables_watch import VariablesWatch
from kubectl_reconcile.engine.sync.view import NOTHING, BeyondCeiling, without_absent
from kubectl_reconcile.engine.telemetry.logs import event

log = logging.getLogger("kubectl_reconcile.daemon")

_SYNCED_WITHIN_S = 30.0
_SECRET = GroupKind("", "Secret")
_AT_A_TIME = 32
"""How many feeds are listed at a time for one set: who has many namespaces doesn't take all of the server."""
_MOST_OF_TENANT = 2_000
"""How many feeds, one for each kind and namespace, the Syncs of one namespace have followed as their accounts."""
_REFUSED_S = 60.0
"""For how long a hint isn't followed up again that leads where the account may not list."""
_READINGS = 5
_READ_AGAIN_S = 0.1
"""After how long what is still not held whole is read once more: it is going, which the watch is about to tell."""


async def followed(cache: Cache, feeds: Iterable[Feed]) -> dict[Feed, ApiError]:
    """Follow these feeds, a few at a time; return those that could not be read within half a minute, and why."""
    wanted = list(feeds)
    new = [feed for feed in wanted if not cache.synced(feed)]
    deadline_s = time.monotonic() + _SYNCED_WITHIN_S
    for feed in wanted:
        if cache.synced(feed):
            cache.follow(feed)
    for at in range(0, len(new), _AT_A_TIME):
        some = new[at : at + _AT_A_TIME]
        for feed in some:
            cache.follow(feed)
        await cache.wait_synced(some, timeout_s=max(deadline_s - time.monotonic(), 0.0))
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

    def of_tenant(self, namespace: str, *, without: ObjectRef) -> frozenset[Feed]:
        """Return the feeds that items of *namespace* need as accounts of theirs, *without* those that one alone needs."""
        those = (feeds for ref, feeds in self._needed.items() if ref.namespace == namespace and ref != without)
        return frozenset(feed for feeds in those for feed in feeds if feed.user)

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
    missing: dict[ObjectRef, frozenset[str]] = field(default_factory=dict)
    _refused: dict[Feed, tuple[float, ApiError]] = field(default_factory=dict)
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
        there = {stored.ref.name for stored in self.cache.snapshot().of_kind(NAMESPACE)}  # none if they aren't watched
        found = places_among(
            holds.namespaces - holds.hints, holds.hints, lambda place: not there or place in there, MOST_PLACES
        )
        self.missing[sync.ref] = found.missing
        looked_at = frozenset(found.looked_at)
        real = await asyncio.gather(*(self._real(sync, each, holds, looked_at) for each in asked))
        wanted = dict(zip(asked, real, strict=True))
        needed, left = self._within(sync, [each for some in wanted.values() for each in some])
        self.users.use(sync.ref, needed)
        failures: Mapping[Feed, ApiError] = await followed(self.cache, needed)
        needed = self._without_refused(sync, needed, failures, holds.hints)
        await self._complete(sync, needed - failures.keys())
        for each, why in failures.items():
            if isinstance(why, Forbidden) and not each.user:
                self.rights.forget(each.resource)
        failures = {**failures, **{each: why for each, (_, why) in self._refused.items()}}
        told = {
            replace(feed, namespace=each.namespace): failures[each]
            for feed, some in wanted.items()
            for each in some
            if each in failures
        }
        beyond = _beyond(found.beyond, len(left))
        if beyond is not None:
            told |= {feed: beyond for feed, some in wanted.items() if any(each.user for each in some)}
        return await without_absent(self.rights.client, told)

    def _within(self, sync: Sync, wanted: Collection[Feed]) -> tuple[frozenset[Feed], list[Feed]]:
        """Return what is followed of what is *wanted*, and what is beyond what the Syncs of a namespace may have followed together."""
        now_s = time.monotonic()
        self._refused = {each: known for each, known in self._refused.items() if known[0] > now_s}
        wanted = [each for each in dict.fromkeys(wanted) if each not in self._refused]
        others = self.users.of_tenant(sync.namespace, without=sync.ref)
        room = max(_MOST_OF_TENANT - len(others), 0)
        left = [each for each in wanted if each.user and each not in others][room:]
        return frozenset(wanted).difference(left), left

    def _without_refused(
        self, sync: Sync, needed: frozenset[Feed], failures: Mapping[Feed, ApiError], hints: Collection[str]
    ) -> frozenset[Feed]:
        """Return what is followed on: hints that lead where the Sync's account may not list are given up for a while."""
        refused = {
            each: why for each, why in failures.items() if each.namespace in hints and isinstance(why, Forbidden)
        }
        if not refused:
            return needed
        until_s = time.monotonic() + _REFUSED_S
        self._refused.update({each: (until_s, why) for each, why in refused.items()})
        self.users.use(sync.ref, needed - refused.keys())
        return needed - refused.keys()

    def awaiting(self, namespace: str) -> list[ObjectRef]:
        """Return the Syncs that name a namespace that wasn't there when they were looked at."""
        return [ref for ref, missing in self.missing.items() if namespace in missing]

    def release(self, ref: ObjectRef) -> None:
        """Release what only this Sync needed."""
        self.missing.pop(ref, None)
        self.users.use(ref, frozenset())

    async def _real(self, sync: Sync, feed: Feed, holds: Contents, looked_at: frozenset[str]) -> tuple[Feed, ...]:
        if await self.rights.may_watch(feed.resource):
            return (feed,)
        places = holds.places_of(feed.resource.gvk.group_kind) & looked_at
        narrow = sorted(places) if feed.resource.namespaced else [""]
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


def _beyond(places: int, feeds: int) -> BeyondCeiling | None:
    """Return what is beyond the ceilings of a Sync and of a namespace; None where nothing is."""
    told = [f"{places} more namespaces than the {MOST_PLACES} in which members of one Sync are looked for"] * bool(
        places
    )
    told += [f"{feeds} more watches than the {_MOST_OF_TENANT} that the Syncs of one namespace have"] * bool(feeds)
    return BeyondCeiling(f"members aren't looked for everywhere: {'; '.join(told)}") if told else None


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
