"""The first request of a verb, on its way before all that the verb needs is imported.

Every verb that plans first asks the server which kinds it has. That needs the client and nothing else, and importing the rest
takes longer than most servers take to answer: so both happen at once, the imports in a thread. The result is for the verb's
first session, if it opens one; until then nobody is informed of anything that goes wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from kubectl_reconcile import cache_folder
from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.cluster.discovery import Discovery
from kubectl_reconcile.cluster.errors import ApiError, KubeconfigError

_NOT_ACCESS = frozenset({"request_timeout", "cache_dir", "debug", "verbosity"})


class Asked(Struct, frozen=True):
    """A server that was asked what it has: in the event loop of *runner*, for whom these flags were given."""

    connection: Connection
    runner: asyncio.Runner
    client: Client
    discovery: asyncio.Task[Discovery]
    folder: Path
    """Where what is learned is kept."""


_ASKED: list[Asked] = []


def access_of(connection: Connection) -> Access:
    """Return the flags as the cluster's client takes them."""
    given = {name: value for name, value in connection.flags.items() if name not in _NOT_ACCESS}
    return Access.of_flags(**given, request_timeout_s=connection.timeout_s)


def taken(connection: Connection) -> Asked | None:
    """Return the server that was asked for whom these flags were given, to the first who wants it; whoever has it closes its runner."""
    return _ASKED.pop() if _ASKED and _ASKED[0].connection == connection else None


@contextmanager
def imported_meanwhile(connection: Connection, modules: Sequence[str]) -> Iterator[None]:
    """Import *modules* while the server is asked that *connection* names; what it answers is there to take in the context."""
    runner = asyncio.Runner()
    try:
        runner.run(_asked(connection, modules, runner))
        yield
    finally:
        if (left := taken(connection)) is not None:
            runner.run(_closed(left))
        runner.close()  # once more does nothing


async def _asked(connection: Connection, modules: Sequence[str], runner: asyncio.Runner) -> None:
    try:
        client = await Client.connect(access_of(connection))
    except (KubeconfigError, ApiError):  # the verb will meet it, too, and say so in its turn
        return
    folder = connection.cache_dir or cache_folder.cache_dir()
    asked = asyncio.create_task(Discovery.load(client, folder))
    _ASKED.append(Asked(connection, runner, client, asked, folder))
    await asyncio.to_thread(_import, modules)


def _import(modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)


async def _closed(left: Asked) -> None:
    left.discovery.cancel()
    with contextlib.suppress(asyncio.CancelledError, ApiError):
        await left.discovery
    await left.client.close()
