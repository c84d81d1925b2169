"""The page as a daemon serves it, to people who sign in with a token of the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.engine.daemon.http import running
from kubectl_reconcile.engine.modules.external_systems import ExternalSystems
from kubectl_reconcile.engine.modules.operands import Operands
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.telemetry.events import Events
from kubectl_reconcile.web.app import application
from kubectl_reconcile.web.asking import Asker, FreshKinds
from kubectl_reconcile.web.fleet_feed import FleetFeed
from kubectl_reconcile.web.guard import PageRunner
from kubectl_reconcile.web.people.people import People
from kubectl_reconcile.web.people.seen_fleet import SeenFleet
from kubectl_reconcile.web.people.token_door import TokenDoor
from kubectl_reconcile.web.rate_limit import RateLimit

_LONGEST_HEADER_BYTES = 16 * 1024
"""Longer than any token that is looked at."""
_BURST, _PER_S = 3000.0, 600.0
"""How many requests everybody together may make; each person has a limit of their own."""


@asynccontextmanager
async def serving_page(address: str, origins: tuple[str, ...], daemon: Session) -> AsyncIterator[str]:
    """Serve the page on *address*, as being at *origins*, and yield the resulting address; no address, no page.

    Raises:
        ListenError: the address is malformed or taken.
        ApiError: the server refuses to say what kinds it has, or doesn't answer.
    """
    if not address:
        yield ""
        return
    session = await _session_beside(daemon)
    async with FleetFeed(session) as fleet, daemon.client.nameless() as nobody:
        events, kinds = Events(daemon.client), FreshKinds()

        def answered(client: Client, name: str) -> Asker:
            own = replace(session, client=client)
            return Asker(own, SeenFleet(fleet, client), events, name, guest=True, kinds=kinds)

        door = TokenDoor(People(nobody, answered), origins)
        app = application(door, RateLimit(_BURST, _PER_S))
        runner = PageRunner(app, max_field_size=_LONGEST_HEADER_BYTES)
        async with running(runner, address, "--ui") as chosen:
            yield chosen


async def _session_beside(daemon: Session) -> Session:
    """Return a session with the policy of the *daemon*, which knows kinds by itself, and by which modules reach nothing but as who asks."""
    found = await Session.over(daemon.client, daemon.sources, daemon.cache_dir)
    found.systems, found.operands = ExternalSystems(urls={}), Operands(directly=False)
    return found
