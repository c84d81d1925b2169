"""Connections that are kept between questions: each for those alone who ask the same server with the same credentials."""

from __future__ import annotations

import resource
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from kubectl_reconcile.source.destination import Destination
from kubectl_reconcile.source.http.connection import HttpConnection, Server
from kubectl_reconcile.source.remote import Credentials

_IDLE_S: Final = 90.0
"""How long a connection is kept that nobody uses: longer than a Sync's usual interval."""
_MOST: Final = 500


class Whose(Struct, frozen=True):
    """Which server, and whose credentials are shown to it."""

    server: Server
    credentials: Credentials


class KeptConnections:
    """Connections that wait to be used again; from any thread."""

    def __init__(self, most: int = _MOST) -> None:
        self._guard = threading.Lock()
        self._most = most
        self._waiting: OrderedDict[Whose, list[tuple[HttpConnection, float]]] = OrderedDict()
        self._count = 0

    @contextmanager
    def one(self, whose: Whose, there: Destination) -> Iterator[HttpConnection]:
        """Yield a connection that was used before if there is one, to an address that *there* may be, else a new one.

        After the block it is kept if it is still good.
        """
        connection = self._taken(whose, there) or HttpConnection(whose.server, there)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if not connection.is_open:
            connection.close()
            return
        with self._guard:
            self._waiting.setdefault(whose, []).append((connection, time.monotonic()))
            self._waiting.move_to_end(whose)
            self._count += 1
            self._trim()

    def _taken(self, whose: Whose, there: Destination) -> HttpConnection | None:
        with self._guard:
            self._trim()
            if whose not in self._waiting or (
                whose.server.proxy is None and there.why_not(self._waiting[whose][-1][0].address)
            ):
                return None
            connection = self._without(whose, at=-1)
        if connection.is_open:
            return connection
        connection.close()
        return None

    def _trim(self) -> None:
        """End what has waited for too long, and what is too much, of those first whose connections were used longest ago."""
        now_s = time.monotonic()
        while self._waiting:
            whose, ((_, since_s), *_) = next(iter(self._waiting.items()))
            if self._count <= self._most and now_s - since_s < _IDLE_S:
                return
            self._without(whose, at=0).close()

    def _without(self, whose: Whose, at: int) -> HttpConnection:
        connections = self._waiting[whose]
        connection, _ = connections.pop(at)
        self._count -= 1
        if not connections:
            del self._waiting[whose]
        return connection


def _room() -> int:
    """Return how many may be kept, of the files that this process may have open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if most == resource.RLIM_INFINITY else min(_MOST, most // 4)


KEPT: Final = KeptConnections(_room())
"""Those of this process."""
