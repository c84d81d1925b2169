"""The Syncs that a session may see, listed once and watched from then on, as rows; and what has happened to them since.

Vocabulary: a *change* is a row that is another than before, or is gone; changes are numbered. Whoever has seen them up to a number
may ask for those since. Only the latest are kept: whoever is further behind looks at everything again.

Who may not list the Syncs of the cluster sees those of their own namespace.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from kubectl_reconcile.cluster.cache import Cache, Event, Feed
from kubectl_reconcile.cluster.errors import ApiError, Forbidden
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views.document import SyncName
from kubectl_reconcile.views.fleet import PushedDocument
from kubectl_reconcile.views.syncs import RowDocument
from kubectl_reconcile.views.syncs import row as row_of

_KEPT = 2000
_PATIENCE_S = 30.0

Key = tuple[str, str]
"""Namespace and name of a Sync."""


@dataclass(frozen=True, slots=True)
class FleetChange:
    """What happened to one Sync; no row where it is gone."""

    number: int
    key: Key
    row: RowDocument | None


class FleetFeed:
    """The rows of a session's Syncs, kept up to date. Use as an async context manager."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cache = Cache(session.client)
        self._rows: dict[Key, RowDocument] = {}
        self._changes: deque[FleetChange] = deque(maxlen=_KEPT)
        self._number = 0
        self._news = asyncio.Event()
        self._opening = asyncio.Lock()
        self._feed: Feed | None = None
        self.era = secrets.token_hex(4)
        """What numbers of changes belong to: those of another process mean nothing here."""

    async def __aenter__(self) -> Self:
        self._cache.subscribe(self._changed)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._cache.close()

    @property
    def number(self) -> int:
        """The number of the latest change."""
        return self._number

    @property
    def place(self) -> str:
        """The only namespace that is shown; empty for all."""
        return self._feed.namespace if self._feed else ""

    async def rows(self) -> Sequence[RowDocument]:
        """Return all rows, as they are now.

        Raises:
            NotInstalled: the cluster doesn't know Syncs.
            ApiError: the server refuses, or doesn't answer.
        """
        await self._opened()
        return list(self._rows.values())

    def since(self, number: int) -> list[FleetChange] | None:
        """Return what changed after change *number*, each Sync once; None where that isn't known any more."""
        first = self._changes[0].number if self._changes else self._number + 1
        if number > self._number or number + 1 < first:
            return None
        latest = {change.key: change for change in self._changes if change.number > number}
        return sorted(latest.values(), key=lambda change: change.number)

    async def wait(self, number: int, timeout_s: float) -> None:
        """Return once something has changed after change *number*, or after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._number <= number:
                    await self._news.wait()

    async def _opened(self) -> None:
        async with self._opening:
            if self._feed is None or not self._cache.synced(self._feed):
                await self._open()

    async def _open(self) -> None:
        if self._session.discovery.find(SYNC.api_version, SYNC.kind) is None:
            await self._session.refresh()
        targets.require_installed(self._session)
        resource = self._session.discovery.find(SYNC.api_version, SYNC.kind)
        assert resource is not None  # noqa: S101 - it is installed
        self._feed = self._feed or Feed(resource)
        failure = await self._followed(self._feed)
        if isinstance(failure, Forbidden) and not self._feed.namespace:
            await self._forget(self._feed)
            self._feed = Feed(resource, namespace=self._session.client.namespace)
            failure = await self._followed(self._feed)
        if failure is not None:
            raise failure

    async def _forget(self, feed: Feed) -> None:
        """Release all that was seen; whoever saw it looks again."""
        await self._cache.unfollow(feed)
        self._rows.clear()
        self._changes.clear()
        self._number += 1
        self.era = secrets.token_hex(4)

    async def _followed(self, feed: Feed) -> ApiError | None:
        self._cache.follow(feed)
        if await self._cache.wait_synced([feed], timeout_s=_PATIENCE_S):
            return None
        return self._cache.failure(feed) or ApiError(f"the API server doesn't list Syncs within {_PATIENCE_S:.0f} s")

    def _changed(self, event: Event) -> None:
        key = (event.ref.namespace, event.ref.name)
        row = row_of(event.new.manifest()) if event.new is not None else None
        if row == self._rows.get(key):
            return
        if row is None:
            del self._rows[key]
        else:
            self._rows[key] = row
        self._number += 1
        self._changes.append(FleetChange(self._number, key, row))
        self._news.set()
        self._news = asyncio.Event()

    async def told(self, changes: Sequence[FleetChange]) -> PushedDocument:
        """Return changes as a browser is informed of them."""
        rows = [change.row for change in changes if change.row is not None]
        gone = [each.key for each in changes if each.row is None]
        return PushedDocument(rows=rows, gone=[SyncName(namespace=place, name=name) for place, name in gone])
