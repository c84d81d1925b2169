"""Waiting without sleeping: for what comes true by itself, on a machine that may be busy with other tests.

Whoever gives up tells what was waited for, and what was seen last. Looks end a wait; only where nothing is to happen does a time.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

from tests.kubectl import KubectlError

PATIENCE_S = 150.0  # a machine may be busy with other tests


def eventually(condition: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.02) -> Any:
    """Return what *condition* returns once that is true; fail, saying *what* didn't come true, after *timeout_s*.

    What kubectl refuses while *condition* looks isn't true yet: an object that nobody has created so far, the
    logs of a container that hasn't begun. Nor is what lacks a part that is still to be written. The failure tells
    what was refused or lacking last.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if result := condition():
                return result
            seen = _seen(result)
        except _NOT_YET as error:
            seen = f"; {type(error).__name__}: {error}"
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}{seen}"
        time.sleep(pause_s)


_NOT_YET = (KubectlError, LookupError, TypeError, ValueError, StopIteration)


def _seen(result: Any) -> str:
    """What a look found that isn't what was waited for, if that says anything."""
    return "" if result is None or result is False else f"; there is {result!r}"


async def until(look: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.05) -> Any:
    """As :func:`eventually`, while an event loop goes on; *look* may be a coroutine function."""
    seen = ""
    try:
        async with asyncio.timeout(timeout_s) as patience:
            while True:
                try:
                    found = look()
                    if result := await found if inspect.isawaitable(found) else found:
                        return result
                    seen = _seen(result)
                except _NOT_YET as error:
                    seen = f"; {type(error).__name__}: {error}"
                await asyncio.sleep(pause_s)
    except TimeoutError:
        if not patience.expired():
            raise
        raise AssertionError(f"not within {timeout_s:g} s: {what}{seen}") from None


def steadily(condition: Callable[[], Any], what: str, *, for_s: float, pause_s: float = 0.1) -> None:
    """Look on for *for_s* seconds, in which *condition* is to stay true; fail, saying *what* it was to be, once it isn't."""
    begun = time.monotonic()
    while True:
        result = condition()
        assert result, f"no longer after {time.monotonic() - begun:.1f} s: {what}{_seen(result)}"
        if time.monotonic() - begun >= for_s:
            return
        time.sleep(pause_s)


async def steadily_meanwhile(condition: Callable[[], Any], what: str, *, for_s: float) -> None:
    """As :func:`steadily`, while an event loop goes on."""
    begun = time.monotonic()
    while True:
        assert condition(), f"no longer after {time.monotonic() - begun:.1f} s: {what}"
        if time.monotonic() - begun >= for_s:
            return
        await asyncio.sleep(0.02)


def patiently(condition: Callable[[], Any], what: str, *, timeout_s: float = PATIENCE_S, pause_s: float = 0.1) -> Any:
    """As :func:`eventually`; a look at what a daemon does may cost more, so it is taken less often."""
    return eventually(condition, what, timeout_s=timeout_s, pause_s=pause_s)
