"""Who asks, and what they are answered with.

Vocabulary: an *asker* is a person at a browser, with the session that has their rights: whatever they see and do is read and
written with it. A *door* says who asks a request.

The application knows no other identity: where it runs, and by what people are known there, is the door's business.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from aiohttp import web

from kubectl_reconcile.core.objects import ACCOUNT_USERS
from kubectl_reconcile.engine.api.access_reviews import name_of
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.views.fleet import PushedDocument
from kubectl_reconcile.views.syncs import RowDocument
from kubectl_reconcile.web.fleet_feed import FleetChange
from kubectl_reconcile.web.rate_limit import RateLimit

_KINDS_S = 30.0


class FleetSeen(Protocol):
    """The Syncs that somebody may see, and what happens to them; ``FleetFeed`` says what each of it means."""

    @property
    def era(self) -> str:
        """What numbers of changes belong to."""

    @property
    def number(self) -> int:
        """The number of the latest change."""

    @property
    def place(self) -> str:
        """The only namespace that is shown; empty for all."""

    async def rows(self) -> Sequence[RowDocument]:
        """Return all rows that may be seen, as they are now."""

    def since(self, number: int) -> list[FleetChange] | None:
        """Return what changed after change *number*; None where that isn't known any more."""

    async def wait(self, number: int, timeout_s: float) -> None:
        """Return once something has changed after change *number*, or after that time."""

    async def told(self, changes: Sequence[FleetChange]) -> PushedDocument:
        """Return those of *changes* that may be seen, as a browser is informed of them."""


@dataclass(slots=True)
class FreshKinds:
    """Has sessions that share what they know of kinds know those that the cluster had half a minute ago at the latest: CRDs come and go.

    However many people ask, the server is asked once.
    """

    _looked_s: float = field(default_factory=time.monotonic)
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def known_to(self, session: Session) -> Session:
        """Return *session*, which knows them.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        async with self._looking:
            if time.monotonic() - self._looked_s > _KINDS_S:
                await session.refresh()
                self._looked_s = time.monotonic()
        return session


@dataclass(slots=True)
class Asker:
    """A person at a browser: the session with their rights, and the Syncs that they may see.

    *name* is that by which the cluster knows them, empty where nobody has asked. What they have done is told by *events*. A *guest* is
    served by a process that isn't theirs, as fast as *limit* allows, until the clock is at *ends_s*; once they have *left*, they are known
    no more.
    """

    session: Session
    fleet: FleetSeen
    events: Events
    name: str = ""
    guest: bool = False
    limit: RateLimit = field(default_factory=RateLimit)
    ends_s: float = math.inf
    left: bool = False
    kinds: FreshKinds = field(default_factory=FreshKinds)

    @property
    def person(self) -> str:
        """Return what tells them from others whom the same process serves; empty where there are none."""
        return self.name if self.guest else ""

    @property
    def tenant(self) -> str:
        """Return with whom they share what there is little of, so that others get theirs; empty where there are no others."""
        return tenant_of(self.person)

    @property
    def gone(self) -> bool:
        """Whether they are known no more."""
        return self.left or time.monotonic() > self.ends_s

    async def known_as(self) -> str:
        """Return the name that the cluster knows them by.

        Raises:
            ApiError: the server refuses to say, or doesn't answer.
        """
        self.name = self.name or await name_of(self.session.client)
        return self.name

    async def knowing_kinds(self) -> Session:
        """Return the session, which knows the kinds that the cluster has.

        Raises:
            ApiError: the server refuses, or doesn't answer.
        """
        return await self.kinds.known_to(self.session)


def tenant_of(name: str) -> str:
    """Return who is behind a *name*: for all ServiceAccounts of a namespace, which somebody there makes as they like, the namespace."""
    namespace, is_account, _ = name.removeprefix(ACCOUNT_USERS).partition(":")
    return f"{ACCOUNT_USERS}{namespace}" if name.startswith(ACCOUNT_USERS) and is_account else name


class Door(Protocol):
    """Says who asks."""

    @property
    def page_is_public(self) -> bool:
        """Whether anybody is sent the page itself, which tells nothing."""

    def unknown(self) -> web.Response:
        """Return what somebody is answered whom nobody knows."""

    def refusal(self, request: web.Request) -> str:
        """Return why a request is none that a page of ours makes; empty where it may be one."""

    async def asker(self, request: web.Request) -> Asker | None:
        """Return who asks, or None where nobody knows them."""

    async def enter(self, request: web.Request) -> web.StreamResponse | None:
        """Let somebody in who shows what is asked for at ``/start``, and return where they go; None where it isn't that."""
