"""Kafka's protocol over a connection that somebody else opens and limits: one request after the other, each answered.

What requests and answers look like, kafka-python knows, without its clients: these open connections of their own. It is imported when it is needed, since that takes half a second.
"""

from __future__ import annotations

import asyncio
import importlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kubectl_reconcile.module_api import PodStream, shortened

_CLIENT = "kubectl-reconcile"
_BLOCK = 1 << 16
_LARGEST = 1 << 20
_SMALL = 1 << 14
"""So many bytes are read at once; a larger answer is read beside, since a mebibyte may take a fifth of a second."""
_MESSAGE_MAX = 400
_VERSIONS: Mapping[str, tuple[str, int]] = {
    "AlterPartitionReassignments": ("admin", 0),
    "AlterUserScramCredentials": ("admin", 0),
    "ApiVersions": ("metadata", 3),
    "CreatePartitions": ("admin", 3),
    "CreateTopics": ("admin", 7),
    "DeleteTopics": ("admin", 6),
    "DescribeCluster": ("admin", 2),
    "DescribeConfigs": ("admin", 4),
    "DescribeLogDirs": ("admin", 4),
    "DescribeQuorum": ("admin", 2),
    "DescribeTopicPartitions": ("admin", 0),
    "DescribeUserScramCredentials": ("admin", 0),
    "ElectLeaders": ("admin", 2),
    "IncrementalAlterConfigs": ("admin", 1),
    "ListPartitionReassignments": ("admin", 0),
    "UpdateFeatures": ("admin", 1),
}
"""Which version of each request is spoken; every broker that is run here knows it."""
_UNREGISTER, _ADD_VOTER, _REMOVE_VOTER = 64, 80, 81
_TIMEOUT_MS = 20_000
_TEXT_MAX = 300
_ID_SIZE = 16


class KafkaRefusedError(Exception):
    """A broker refuses something, or speaks another language; *code* is Kafka's, -1 where there is none."""

    def __init__(self, message: str, code: int = -1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(slots=True)
class KafkaSession:
    """A session with one broker."""

    stream: PodStream
    _buffer: bytearray = field(default_factory=bytearray)
    _asked: int = 0

    async def ask(self, name: str, **given: Any) -> Any:
        """Return the answer to the request of this *name*; errors within it are for the caller to find.

        Raises:
            KafkaRefusedError: what answers is no broker.
            SilentPodError: it doesn't answer.
        """
        place, version = _VERSIONS[name]
        messages = importlib.import_module(f"kafka.protocol.{place}")
        self._asked += 1
        request = getattr(messages, f"{name}Request")(version=version, **_plain(given))
        request.with_header(correlation_id=self._asked, client_id=_CLIENT)
        await self.stream.write(bytes(request.encode(version=version, header=True, framed=True)))
        answer = await self._answered()
        read = getattr(messages, f"{name}Response").decode
        try:
            if len(answer) <= _SMALL:
                return read(answer, version=version, header=True)
            return await asyncio.to_thread(read, answer, version=version, header=True)
        except Exception as error:  # whatever a decoder says of bytes that aren't an answer
            raise KafkaRefusedError(
                f"its answer to {name} can't be read: {shortened(repr(error), _MESSAGE_MAX)}"
            ) from error

    async def unregister(self, broker: int) -> int:
        """Have the cluster forget a broker that is gone; return Kafka's code."""
        return await self._told(_UNREGISTER, struct.pack(">i", broker))

    async def remove_voter(self, cluster: str, voter: int, directory: str) -> int:
        """Have a controller no longer counted among those that vote; return Kafka's code."""
        return await self._told(_REMOVE_VOTER, _text(cluster) + struct.pack(">i", voter) + _id(directory))

    async def add_voter(self, cluster: str, voter: int, directory: str, listener: tuple[str, str, int]) -> int:
        """Have a controller vote, which the others reach at a *listener*: its name, host and port; return Kafka's code."""
        name, host, port = listener
        own = b"\x02" + _text(name) + _text(host) + struct.pack(">H", port) + b"\0"
        who = _text(cluster) + struct.pack(">ii", _TIMEOUT_MS, voter) + _id(directory)
        return await self._told(_ADD_VOTER, who + own)

    async def _told(self, key: int, body: bytes) -> int:
        """Send a request that kafka-python doesn't know, in its version 0; return the code of the answer, which begins as those of all of these do."""
        self._asked += 1
        client = _CLIENT.encode()
        header = struct.pack(">hhih", key, 0, self._asked, len(client)) + client + b"\0"
        whole = header + body + b"\0"
        await self.stream.write(struct.pack(">i", len(whole)) + whole)
        answer = await self._answered()
        if len(answer) < _CODED.size:
            raise KafkaRefusedError(f"its answer to request {key} can't be read")
        code: int = _CODED.unpack_from(answer)[2]
        return code

    async def _answered(self) -> bytes:
        """Return one answer, which is to be that of the last request."""
        size = struct.unpack(">i", await self._taken(4))[0]
        if not 4 <= size <= _LARGEST:
            raise KafkaRefusedError("what listens there isn't Kafka")
        answer = await self._taken(size)
        if struct.unpack_from(">i", answer)[0] != self._asked:
            raise KafkaRefusedError("it answers what it wasn't asked")
        return answer

    async def _taken(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._buffer += await self.stream.read(_BLOCK)
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


_CODED = struct.Struct(">ibxxxxh")
"""Correlation, no tagged fields, a time that is of no interest, and a code."""


def _text(text: str) -> bytes:
    """Return a short text as requests have it: its length and one, then itself."""
    written = text.encode()
    if len(written) > _TEXT_MAX:
        raise KafkaRefusedError(f"{text[:_TEXT_MAX]}… is too long for a request")
    return (
        bytes([len(written) + 1]) + written
        if len(written) < 127
        else bytes([(len(written) + 1) & 0x7F | 0x80, (len(written) + 1) >> 7]) + written
    )


def _id(text: str) -> bytes:
    """Return the sixteen bytes of an id.

    Raises:
        ValueError: it is none.
    """
    found = bytes.fromhex(text.replace("-", ""))
    if len(found) != _ID_SIZE:
        raise ValueError(f"{text!r} isn't an id of {_ID_SIZE} bytes")
    return found


def load() -> None:
    """Import what messages are read and written by."""
    for place in sorted({place for place, _ in _VERSIONS.values()}):
        importlib.import_module(f"kafka.protocol.{place}")


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request; objects within it, which are given as mappings, as what has their fields."""
    return {name: _inner(value) for name, value in given.items()}


def _inner(value: Any) -> Any:
    if isinstance(value, Mapping):
        return SimpleNamespace(tags=None, unknown_tags=None, **_plain(value))
    return [_inner(each) for each in value] if isinstance(value, (list, tuple)) else value


def malformed(error: Exception) -> str:
    """Return what is said of an answer that makes no sense, of which *error* came."""
    return f"its answer is malformed: {shortened(repr(error), _MESSAGE_MAX)}"


def check(name: str, code: int, message: str | None = "", *, fine: Iterable[int] = ()) -> None:
    """Return where *code* says that something was done, or is among those that are *fine*.

    Raises:
        KafkaRefusedError: it says something else.
    """
    if code in {0, *fine}:
        return
    known = importlib.import_module("kafka.errors").for_code(code)
    said = message or known.description or known.__name__
    raise KafkaRefusedError(f"{name}: {shortened(said, _MESSAGE_MAX)}", code)
