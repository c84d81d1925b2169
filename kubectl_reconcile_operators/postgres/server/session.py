"""A session with one server, over a connection that somebody else opens and limits."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from kubectl_reconcile.module_api import PodStream
from kubectl_reconcile_operators.postgres.server.protocol import (
    PostgresError,
    Proof,
    ProtocolError,
    Proved,
    ServerMessage,
    query,
    sasl_first,
    sasl_next,
    startup,
    taken,
)

_BLOCK = 1 << 16

Apart: TypeAlias = Callable[[Callable[[bytes], Proved], bytes], Awaitable[Proved]]
"""How something is called that takes a while, beside all else."""


@dataclass(slots=True)
class PostgresSession:
    """A session: one question after the other."""

    stream: PodStream
    _buffer: bytearray = field(default_factory=bytearray)

    @classmethod
    async def begin(cls, stream: PodStream, parameters: Mapping[str, str], proof: Proof, apart: Apart) -> Self:
        """Begin a session with these *parameters*, user and database among them. A password goes by SCRAM-SHA-256 or not at all.

        What is to be proved is worked out *apart*, since how much work that is, is the server's to say, within limits.

        Raises:
            PostgresError: the server lets us not in.
            ProtocolError: it speaks another language, or wants the password in another way.
            SilentPodError: it doesn't answer.
        """
        session = cls(stream)
        await stream.write(startup(parameters))
        await session._authenticate(proof, apart)
        while (await session._next()).kind != "Z":
            pass
        return session

    async def ask(self, sql: str) -> list[tuple[str | None, ...]]:
        """Return the rows that *sql* gives; it is one statement.

        Raises:
            PostgresError: the server refuses it.
            ProtocolError: it speaks another language.
            SilentPodError: it doesn't answer.
        """
        await self.stream.write(query(sql))
        rows: list[tuple[str | None, ...]] = []
        error: PostgresError | None = None
        while (message := await self._message()).kind != "Z":
            if message.kind == "D":
                rows.append(message.row())
            elif message.kind == "E":
                error = message.error()
        if error is not None:
            raise error
        return rows

    async def _authenticate(self, proof: Proof, apart: Apart) -> None:
        proved: Proved | None = None
        is_checked = False
        while True:
            message = await self._next()
            if message.kind != "R":
                raise ProtocolError("it doesn't ask who we are as PostgreSQL does")
            match message.number:
                case 0 if is_checked:
                    return
                case 10 if b"SCRAM-SHA-256\0" in message.payload:
                    await self.stream.write(sasl_first(proof.first()))
                case 11 if proved is None:
                    proved = await apart(proof.proved, message.payload[4:])
                    await self.stream.write(sasl_next(proved.final))
                case 12 if proved is not None:
                    proved.check(message.payload[4:])
                    is_checked = True
                case _:
                    raise ProtocolError("it doesn't ask for SCRAM-SHA-256, and passwords are proven in no other way")

    async def _next(self) -> ServerMessage:
        """Return the next message that isn't an error or a notice.

        Raises:
            PostgresError: it is an error.
        """
        while True:
            message = await self._message()
            if message.kind == "E":
                raise message.error()
            if message.kind not in {"N", "S"}:
                return message

    async def _message(self) -> ServerMessage:
        while (found := taken(self._buffer)) is None:
            self._buffer += await self.stream.read(_BLOCK)
        return found


def answer_of(rows: list[tuple[str | None, ...]], shape: Mapping[str, type]) -> dict[str, Any]:
    """Return what the one value of an answer says as JSON: an object that has these keys with values of these types.

    Raises:
        ProtocolError: it says no such thing.
    """
    try:
        found = json.loads(rows[0][0] or "")
    except (ValueError, IndexError, RecursionError) as error:
        raise ProtocolError("its answer isn't what was asked for") from error
    if not isinstance(found, dict) or not all(isinstance(found.get(name), type_) for name, type_ in shape.items()):
        raise ProtocolError("its answer isn't what was asked for")
    return found
