"""A connection to a port of a pod, for what speaks no HTTP: bytes, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from msgspec import Struct

_LARGEST = 1 << 20
"""Bytes that are taken from one connection: pods are anybody's, and what they say is kept in memory."""


class OpenPodStream(Struct):
    """An open connection; *limited* gives each read and write its time, and says of which pod it is where it fails, *heard* is informed of answers."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    limited: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
    heard: Callable[[], None]
    _taken: int = 0

    async def read(self, most: int) -> bytes:
        """Return what has come, at least a byte.

        Raises:
            SilentPodError: nothing comes, the far side has ended, or it has said more than a mebibyte.
        """
        found: bytes = await self.limited(self._some(most))
        self.heard()
        return found

    async def _some(self, most: int) -> bytes:
        found = await self.reader.read(most)
        self._taken += len(found)
        if self._taken > _LARGEST:
            raise OSError("it answers with more than 1 MiB")
        if not found:
            raise OSError("it ended the connection")
        return found

    async def write(self, content: bytes) -> None:
        """Send *content*.

        Raises:
            SilentPodError: the pod takes no more.
        """
        self.writer.write(content)
        await self.limited(self.writer.drain())
