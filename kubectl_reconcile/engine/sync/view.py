"""Where a pass has live objects from: what it asks of whoever holds them, and one that lists each feed once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.errors import ApiError, Forbidden, NotFound
from kubectl_reconcile.core.fair.places import places_among
from kubectl_reconcile.core.module.call import Ask
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources.applyset import MOST_PLACES, PART_OF, Contents
from kubectl_reconcile.engine.modules.purity import Sampling

NOTHING: Final = Contents()
"""A set that has no members anywhere."""


async def without_absent(client: Client, failures: Mapping[Feed, ApiError]) -> dict[Feed, ApiError]:
    """Return *failures* but for those to read namespaces that aren't there, as far as *client* may see that: nothing is in them.

    Raises:
        ApiError: the server doesn't answer.
    """
    asked = sorted({feed.namespace for feed, why in failures.items() if feed.namespace and isinstance(why, Forbidden)})
    gone = dict(zip(asked, await asyncio.gather(*(_is_absent(client, place) for place in asked)), strict=True))
    return {feed: why for feed, why in failures.items() if not gone.get(feed.namespace)}


async def _is_absent(client: Client, place: str) -> bool:
    try:
        await client.get(f"/api/v1/namespaces/{place}")
    except NotFound:
        return True
    except Forbidden:
        return False
    return False


class BeyondCeiling(ApiError):  # noqa: N818 - says what it is
    """More is asked for than may be looked at; what is beyond wasn't asked of the server."""


class ClusterView(Protocol):
    """Where live objects come from."""

    def selects(self, set_id: str) -> str:
        """Return the label selector by which members of this set are listed."""

    async def ensure(self, feeds: Iterable[Feed], holds: Contents = NOTHING) -> Mapping[Feed, ApiError]:
        """Bring these feeds in; return those that could not be read, and why.

        What can't be read of all namespaces is read from those where the set *holds* members of that kind; what of these can't be read is returned as
        a feed of that namespace. In a namespace that is gone there is nothing to read.
        """

    def snapshot(self) -> Snapshot:
        """Return the live objects of all feeds so far."""

    @property
    def ask(self) -> Ask:
        """How modules are asked about what is seen."""


class ModulesView(Protocol):
    """Where live objects come from when modules are asked."""

    async def ensure(self, feeds: Iterable[Feed]) -> Mapping[Feed, ApiError]:
        """Bring these feeds in; return those that could not be read, and why."""

    @property
    def ask(self) -> Ask:
        """How modules are asked about what is seen."""

    def shown(self, feeds: Iterable[Feed]) -> Snapshot:
        """Return the live objects of these feeds alone: what others watch, as accounts of theirs, is nothing to a module."""


class OneShotView(Struct):
    """A view for one look: each feed is listed once and never watched."""

    cache: Cache
    ask: Ask = field(default_factory=Sampling)

    def selects(self, set_id: str) -> str:
        """Return the selector of this set alone."""
        return f"{PART_OF}={set_id}"

    async def ensure(self, feeds: Iterable[Feed], holds: Contents = NOTHING) -> Mapping[Feed, ApiError]:
        """List these feeds, those that we may not list of all namespaces in each where the set *holds* members; return those that could not be read."""
        failures = await self._filled(feeds)
        refused = [
            feed
            for feed, why in failures.items()
            if isinstance(why, Forbidden) and feed.resource.namespaced and not feed.namespace
        ]
        looked_at = frozenset(
            places_among(holds.namespaces - holds.hints, holds.hints, lambda _: True, MOST_PLACES).looked_at
        )
        places = {feed: holds.places_of(feed.resource.gvk.group_kind) & looked_at for feed in refused}
        narrow = [replace(feed, namespace=place) for feed, found in places.items() for place in sorted(found)]
        rest = {feed: why for feed, why in failures.items() if not places.get(feed)}
        return {**rest, **await without_absent(self.cache.client, await self._filled(narrow))}

    async def _filled(self, feeds: Iterable[Feed]) -> dict[Feed, ApiError]:
        wanted = list(feeds)
        await self.cache.fill(wanted)
        return {feed: failure for feed in wanted if (failure := self.cache.failure(feed))}

    def snapshot(self) -> Snapshot:
        """Return the live objects of all feeds so far."""
        return self.cache.snapshot()

    def shown(self, feeds: Iterable[Feed]) -> Snapshot:
        """Return the live objects of these feeds alone."""
        return self.cache.snapshot_of(feeds)
