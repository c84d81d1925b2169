"""The Syncs that one person may see, of those that are watched once for all.

Nothing of what was watched is told to anybody by the rights of whoever watches. The API server is asked, with the person's own token,
whether they may list Syncs: in all namespaces, else in each one that has some. What it says counts for half a minute. So an open page
costs nothing as long as nothing changes, and who has lost a right is told nothing more after that time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.resources.sync import SYNC
from kubectl_reconcile.engine.api import access_reviews
from kubectl_reconcile.views.fleet import PushedDocument
from kubectl_reconcile.views.syncs import RowDocument
from kubectl_reconcile.web.errors import Refused
from kubectl_reconcile.web.fleet_feed import FleetChange, FleetFeed

REVIEWED_S = 30.0
"""How old the API server's word on what somebody may see is at most, when they are told something by it."""
_AT_ONCE = 16
_LIST = Right(SYNC.group, "syncs", "list")
_EVERYWHERE = ""


@dataclass(slots=True)
class SeenFleet:
    """What *client* may see of *feed*."""

    feed: FleetFeed
    client: Client
    _words: dict[str, tuple[float, bool]] = field(default_factory=dict)
    _asking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    @property
    def era(self) -> str:
        """What numbers of changes belong to."""
        return self.feed.era

    @property
    def number(self) -> int:
        """The number of the latest change."""
        return self.feed.number

    @property
    def place(self) -> str:
        """The only namespace that is shown; empty for all."""
        return self.feed.place

    async def rows(self) -> Sequence[RowDocument]:
        """Return the rows that may be seen, as they are now.

        Raises:
            Refused: there is none that may be seen.
            ApiError: the server refuses, or doesn't answer.
        """
        rows = await self.feed.rows()
        seen = await self._seen({str(row.namespace) for row in rows})
        if not seen and not await self._may_list(_EVERYWHERE):
            hint = "ask for the rights get, list and watch on syncs.reconcile.dev"
            raise Refused(403, "there is no Sync that you may list", hint)
        return [row for row in rows if row.namespace in seen]

    def since(self, number: int) -> list[FleetChange] | None:
        """Return what changed after change *number*, whoever may see it; None where that isn't known any more."""
        return self.feed.since(number)

    async def wait(self, number: int, timeout_s: float) -> None:
        """Return once something has changed after change *number*, or after that time."""
        await self.feed.wait(number, timeout_s)

    async def told(self, changes: Sequence[FleetChange]) -> PushedDocument:
        """Return those of *changes* that may be seen, as a browser is informed of them.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        seen = await self._seen({change.key[0] for change in changes})
        return await self.feed.told([change for change in changes if change.key[0] in seen])

    async def _seen(self, namespaces: Iterable[str]) -> set[str]:
        """Return those of *namespaces* whose Syncs may be listed."""
        wanted = sorted(namespaces)
        if await self._may_list(_EVERYWHERE):
            return set(wanted)
        words = await asyncio.gather(*map(self._may_list, wanted))
        return {namespace for namespace, may in zip(wanted, words, strict=True) if may}

    async def _may_list(self, namespace: str) -> bool:
        async with self._asking:
            asked_s = time.monotonic()
            known = self._words.get(namespace)
            if known is None or asked_s - known[0] > REVIEWED_S:
                known = self._words[namespace] = (
                    asked_s,
                    await access_reviews.may(self.client, namespace, _LIST),
                )
            return known[1]
