"""Carries TCP from the addresses of Services to the pods behind them, and to the API server.

A Service without a ready endpoint has no listener, so whoever asks is refused at once, as elsewhere. Connections that are open when
an endpoint goes stay open. Only TCP: name service is the only UDP there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_reconcile.sandbox.runtime.channel import readable

Address = tuple[str, int]
Table = Mapping[Address, Sequence[Address]]
"""Address of a Service and port -> endpoints. The endpoint ``("", port)`` is that port of the machine's own loopback."""

_CONNECT_S = 3.0
_BLOCK = 1 << 16


class Outside:
    """Asks for connections to the machine's loopback, which can't be reached from in here."""

    def __init__(self, asking: socket.socket) -> None:
        asking.setblocking(False)
        self._asking = asking
        self._one_at_a_time = asyncio.Lock()

    async def connect(self, port: int) -> socket.socket:
        """Return a connection to *port* of the machine's loopback.

        Raises:
            OSError: nobody listens there.
        """
        loop = asyncio.get_running_loop()
        async with self._one_at_a_time:
            await loop.sock_sendall(self._asking, f"{port}\n".encode())
            await readable(self._asking)
            _, files, _, _ = socket.recv_fds(self._asking, 1, 1)
        if not files:
            raise ConnectionRefusedError(f"no process listens on port {port}")
        connection = socket.socket(fileno=files[0])
        connection.setblocking(False)
        return connection


async def connect(address: Address, timeout_s: float) -> socket.socket:
    """Return a connection to *address* of the pods' network.

    Raises:
        OSError: nobody listens there, or it took longer than *timeout_s*.
    """
    connection = socket.socket()
    connection.setblocking(False)
    try:
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(connection, address), timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


class Proxy:
    """Listens at the addresses of Services."""

    def __init__(self, outside: Outside, most: int) -> None:
        """Carry *most* connections at once, half of them for one pod."""
        self._outside = outside
        self._most = most
        self._servers: dict[Address, asyncio.Server] = {}
        self._table: Table = {}
        self._carried: Counter[str] = Counter()
        self._turn = itertools.count(random.randrange(1000))  # noqa: S311 - which comes first is no secret

    async def follow(self, table: Table) -> list[str]:
        """Listen where *table* says and nowhere else; return what could not be done."""
        self._table = table
        complaints = []
        for address in [one for one in self._servers if not table.get(one)]:
            self._servers.pop(address).close()
        for address in [one for one in table if table[one] and one not in self._servers]:
            try:
                self._servers[address] = await self._listen(address)
            except OSError as error:
                complaints.append(f"{address[0]}:{address[1]}: {error}")
        return complaints

    async def _listen(self, address: Address) -> asyncio.Server:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            pod = (writer.get_extra_info("peername") or ("",))[0]
            if self._carried.total() >= self._most or self._carried[pod] >= self._most // 2:
                _reset(writer)
                return
            self._carried[pod] += 1
            try:
                await self._carry(address, reader, writer)
            finally:
                self._carried[pod] -= 1
                self._carried += Counter()  # forgets those that have none

        return await asyncio.start_server(accept, *address)

    async def _carry(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection = await self._any_of(self._table.get(address, ()))
        except OSError:
            _reset(writer)
            return
        there, back = await asyncio.open_connection(sock=connection)
        await asyncio.gather(_copy(reader, back), _copy(there, writer), return_exceptions=True)
        for each in (writer, back):
            each.close()

    async def _any_of(self, endpoints: Sequence[Address]) -> socket.socket:
        first = next(self._turn)
        error: OSError = ConnectionRefusedError("no endpoint is ready")
        for number in range(len(endpoints)):
            ip, port = endpoints[(first + number) % len(endpoints)]
            try:
                return await (connect((ip, port), _CONNECT_S) if ip else self._outside.connect(port))
            except OSError as failed:
                error = failed
        raise error


def _reset(writer: asyncio.StreamWriter) -> None:
    """Refuse a connection that was accepted already."""
    sock: Any = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy until *source* ends, and say so to *target*; a broken connection breaks the other side too."""
    try:
        while data := await source.read(_BLOCK):
            target.write(data)
            await target.drain()
        target.write_eof()
    except OSError:
        target.transport.abort()
