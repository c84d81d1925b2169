"""Whose connections come in: who may ask a nodelet may run commands as its user, so other users of the machine may not."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Address = tuple[str, int]

_TABLE = Path("/proc/net/tcp")
_ESTABLISHED = "01"


@web.middleware
async def own_user_only(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn away other users of the machine."""
    assert request.transport is not None  # noqa: S101 - for the type checker
    peer, own = (request.transport.get_extra_info(name) for name in ("peername", "sockname"))
    if peer and own and _owner(peer, own) in {os.geteuid(), 0}:
        return await handler(request)
    return web.Response(status=403, text="this port is for the processes of another user")


def _owner(peer: Address, own: Address) -> int | None:
    try:
        return owner_of(_TABLE.read_text(encoding="ascii"), peer, own)
    except OSError:
        return None


def owner_of(table: str, peer: Address, own: Address) -> int | None:
    """Return the user whose end *peer* of a connection to *own* is, None if *table* (``/proc/net/tcp``) has no such connection.

    Both ends tell it: others may have the same port at another address, or to another place.
    """
    ends = [_written(peer), _written(own)]
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[1:4] == [*ends, _ESTABLISHED]:
            return int(fields[7])
    return None


def _written(address: Address) -> str:
    """Return an address as the kernel writes it in its tables: in the machine's own order of bytes."""
    ip, port = address[:2]
    number = int.from_bytes(ipaddress.IPv4Address(ip).packed, sys.byteorder)
    return f"{number:08X}:{port:04X}"
