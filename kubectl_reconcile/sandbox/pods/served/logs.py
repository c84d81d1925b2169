"""What containers have printed, as ``kubectl logs`` asks for it. Files are those of the runtime: ``time stream F text``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from kubectl_reconcile.sandbox.pods.decisions.reported import seconds

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which lines are wanted."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: str = ""
    """Nothing that is older; empty for all."""
    limit: int | None = None
    """How many bytes at most."""

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> LogOptions:
        """Return the options that the API server puts into the query of its request.

        Raises:
            ValueError: a number is none.
        """
        since_s = seconds(query["sinceTime"]) if "sinceTime" in query else 0.0
        if "sinceSeconds" in query:
            since_s = max(0.0, time.time() - int(query["sinceSeconds"]))
        return cls(
            query.get("follow") == "true",
            query.get("previous") == "true",
            query.get("timestamps") == "true",
            int(query["tailLines"]) if "tailLines" in query else None,
            datetime.fromtimestamp(since_s, UTC).strftime("%Y-%m-%dT%H:%M:%S") if since_s else "",
            int(query["limitBytes"]) if "limitBytes" in query else None,
        )


async def printed(path: Path, options: LogOptions, runs: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Yield what the run that prints into *path* has printed; to be followed, until it *runs* no more."""
    left = options.limit
    async for text in _wanted(path, options, runs):
        if left is None:
            yield text
            continue
        yield text[:left]
        left -= len(text)
        if left <= 0:
            return


async def _wanted(path: Path, options: LogOptions, runs: Callable[[], bool]) -> AsyncIterator[bytes]:
    with contextlib.ExitStack() as files:
        found = [files.enter_context(one.open("rb")) for one in (path.with_suffix(".old"), path) if one.exists()]
        present = [text for file in found for line in file for text in _text(line, options)]
        for text in present if options.tail is None else present[max(0, len(present) - options.tail) :]:
            yield text
        while options.follow and not options.previous and found:
            last = not runs()  # before looking, so that nothing is missed which came before its end
            full = _is_full(found[-1], path)  # and this, since it is written to until then
            for line in found[-1]:
                for text in _text(line, options):
                    yield text
            if full:
                found.append(files.enter_context(path.open("rb")))
            elif last:
                return
            else:
                await asyncio.sleep(_POLL_S)


def _is_full(file: BinaryIO, path: Path) -> bool:
    """Tell whether another file has begun at *path*."""
    try:
        return not os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:  # for a moment
        return False


def _text(line: bytes, options: LogOptions) -> Iterator[bytes]:
    """Yield what of one line of a file is wanted. Lines are written whole."""
    when, text = _entry(line.rstrip(b"\n"))
    if when >= options.since.encode():
        yield b"%b %b" % (when, text) if options.timestamps else text


def _entry(line: bytes) -> tuple[bytes, bytes]:
    """Return the time and the text of one line of a file; the text ends where the printed line did."""
    when, _, rest = line.partition(b" ")
    _, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    return when, text + (b"\n" if tag == b"F" else b"")
