"""Watches the ConfigMaps and Secrets that hold values of variables or of charts, each by its name and as the Sync's account.

They are in a cache of their own: what one Sync's account may see is no business of any other. An account that may read such an object
and not watch it has its values read whenever the source is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec import Struct

from kubectl_reconcile.cluster.cache import Cache, Event, Feed
from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.rendering.substitution import Values
from kubectl_reconcile.core.resources.helm import ValuesFrom
from kubectl_reconcile.core.resources.substitute import NO_SUBSTITUTION, Holder, SubstituteSpec
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.session import Session

_Declared: TypeAlias = tuple[SubstituteSpec, tuple[ValuesFrom, ...]]
"""What of a Sync says which values there are, and where."""


class _User(Struct):
    """A Sync with such values: what it calls when one of its objects changed, what it declared, and the versions that it read for that."""

    changed: Callable[[], None]
    declared: _Declared
    versions: Mapping[tuple[Holder, str], str]


@dataclass(slots=True)
class VariablesWatch:
    """The feeds of what holds values for all Syncs, each for as long as some Sync needs it."""

    session: Session
    cache: Cache = field(init=False)
    _users: dict[Feed, dict[ObjectRef, _User]] = field(default_factory=dict)
    _ending: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Listen to the cache."""
        self.cache = Cache(self.session.client)
        self.cache.subscribe(self._heard)

    def follow(self, sync: Sync, values: Values, changed: Callable[[], None]) -> None:
        """Have *changed* called when an object that a Sync's values come from isn't any more as *values* were read of it."""
        holders = sync.source.holders if sync.source else ()
        wanted = {feed for holder, name in holders if (feed := self._feed(sync, holder, name)) is not None}
        for feed in wanted:
            self._users.setdefault(feed, {})[sync.ref] = _User(changed, _declared(sync), values.versions)
            if feed not in self.cache.feeds:
                self.cache.follow(feed)
        self._leave(sync.ref, but=wanted)

    def is_current(self, sync: Sync) -> bool:
        """Tell whether the watches show all that a Sync's values come from as it was read last: then nobody has to ask."""
        holders = sync.source.holders if sync.source else ()
        return bool(holders) and all(self._is_as_read(sync, *each) for each in holders)

    def _is_as_read(self, sync: Sync, holder: Holder, name: str) -> bool:
        feed = self._feed(sync, holder, name)
        user = self._users.get(feed, {}).get(sync.ref) if feed else None
        if feed is None or user is None or user.declared != _declared(sync) or not self.cache.synced(feed):
            return False
        stored = self.cache.snapshot_of([feed]).stored(ObjectRef("", holder.value, sync.namespace, name))
        return (stored.resource_version if stored else "") == user.versions.get((holder, name), "")

    def forget(self, ref: ObjectRef) -> None:
        """Release what only this Sync needed."""
        self._leave(ref)

    async def close(self) -> None:
        """End all watches."""
        await asyncio.gather(*self._ending, return_exceptions=True)
        await self.cache.close()

    def _feed(self, sync: Sync, holder: Holder, name: str) -> Feed | None:
        resource = self.session.resource(GroupKind("", holder.value))
        return None if resource is None else Feed(resource, namespace=sync.namespace, user=sync.account, name=name)

    def _leave(self, ref: ObjectRef, but: frozenset[Feed] | set[Feed] = frozenset()) -> None:
        for feed in [feed for feed, users in self._users.items() if ref in users and feed not in but]:
            users = self._users[feed]
            del users[ref]
            if not users:
                del self._users[feed]
                task = asyncio.ensure_future(self.cache.unfollow(feed))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def _heard(self, happened: Event) -> None:
        version = happened.new.resource_version if happened.new else ""
        holder = Holder(happened.ref.kind)
        for user in tuple(self._users.get(happened.feed, {}).values()):
            if user.versions.get((holder, happened.ref.name), "") != version:
                user.changed()


def _declared(sync: Sync) -> _Declared:
    source = sync.source
    return (source.substitute, source.helm.values_from) if source else (NO_SUBSTITUTION, ())
