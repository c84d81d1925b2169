"""Where a pass has live objects from: what it asks of whoever holds them, and one that lists each feed once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.cluster.cache import Cache, Feed
from kubectl_reconcile.cluster.errors import ApiError, Forbidden
from kubectl_reconcile.core.module.call import Ask
from kubectl_reconcile.core.planning.snapshot import Snapshot
from kubectl_reconcile.core.resources.applyset import PART_OF
from kubectl_reconcile.engine.modules.purity import Sampling


class ClusterView(Protocol):
    """Where live objects come from."""

    def selects(self, set_id: str) -> str:
        """Return the label selector by which members of this set are listed."""

    async def ensure(self, feeds: Iterable[Feed], places: Collection[str] = ()) -> Mapping[Feed, ApiError]:
        """Bring these feeds in; return those that could not be read, and why.

        What can't be read of all namespaces is read from the *places* where members may be.
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

    async def ensure(self, feeds: Iterable[Feed], places: Collection[str] = ()) -> Mapping[Feed, ApiError]:
        """List these feeds, those that we may not list of all namespaces in each of *places*; return those that could not be read."""
        failures = await self._filled(feeds)
        refused = [
            feed
            for feed, why in failures.items()
            if isinstance(why, Forbidden) and feed.resource.namespaced and not feed.namespace
        ]
        if not (refused and places):
            return failures
        narrow = {replace(feed, namespace=place): feed for feed in refused for place in places}
        narrowed = await self._filled(narrow)
        rest = {feed: why for feed, why in failures.items() if feed not in refused}
        return {**rest, **{narrow[feed]: why for feed, why in narrowed.items()}}

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
