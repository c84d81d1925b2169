"""A connection to a port of a pod, for what speaks no HTTP: bytes, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OpenPodStream:
    """An open connection; *limited* gives each read and write its time, and says of which pod it is where it fails, *heard* is told of answers."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    limited: Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
    heard: Callable[[], None]

    async def read(self, most: int) -> bytes:
        """Return what has come, at least a byte.

        Raises:
            SilentPodError: nothing comes, or the far side has ended.
        """
        found: bytes = await self.limited(self._some(most))
        self.heard()
        return found

    async def _some(self, most: int) -> bytes:
        if found := await self.reader.read(most):
            return found
        raise OSError("it ended the connection")

    async def write(self, content: bytes) -> None:
        """Send *content*.

        Raises:
            SilentPodError: the pod takes no more.
        """
        self.writer.write(content)
        await self.limited(self.writer.drain())
