"""How a process that runs for long manages its memory: what is needed no more goes soon, and goes back to the system.

What refers to itself in a circle (tasks, errors with where they came from) stays until Python looks for it. A command leaves that to its end;
a daemon would hold a hundred thousand such objects, with all that they refer to, and its memory would stay as large as it ever was.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import time
from collections.abc import Callable
from typing import Final, cast

_YOUNG: Final = 5_000
"""After so many new objects the new ones are looked through: most of what is needed no more is among them."""
_TIMES: Final = (20, 200)
"""How often that is done before those are looked through that outlived it, and how often these before all: all takes long."""
_BURST: Final = 20
"""After so many looks through the new objects there was a burst, which may have left something behind."""
_SHARE: Final = 0.01
"""So much of the time may go into looking through everything: with a million objects that takes seconds, in which nothing else is done."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Names of glibc's mallopt(3)."""
_LARGE: Final = 128 * 1024
"""From so many bytes on, memory is the system's own, and goes back as soon as it is free. glibc raises this at the first large one otherwise."""


def look_after() -> None:
    """Have what is needed no more found soon. What is there now, mostly code, is never looked through again."""
    _keep_one_heap()
    gc.set_threshold(_YOUNG, *_TIMES)
    gc.collect()
    gc.freeze()


def _keep_one_heap() -> None:
    """Have all threads take memory from one heap: glibc gives each its own otherwise, none of which shrinks while one object in it lives.

    Python holds its lock while it takes memory, mostly, so that threads hardly wait for each other here.
    """
    set_option = _of_glibc("mallopt")
    for option, value in ((_M_ARENA_MAX, 1), (_M_MMAP_THRESHOLD, _LARGE), (_M_TRIM_THRESHOLD, _LARGE)):
        set_option(option, value)


class Tidying:
    """Looks through everything once after a burst, when there is nothing else to do; the longer that takes, the more seldom."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._trim = _trimmer()
        self._clock = clock
        self._was_at_rest = False
        self._not_before_s = 0.0

    async def at_rest(self, *, is_so: bool) -> None:
        """Note whether there is nothing to do just now; the second time in a row after a burst everything is looked through."""
        if is_so and self._was_at_rest and _was_busy() and self._clock() >= self._not_before_s:
            began_s = self._clock()
            gc.collect()
            await asyncio.to_thread(self._trim)
            self._not_before_s = began_s + (self._clock() - began_s) / _SHARE
        self._was_at_rest = is_so


def _was_busy() -> bool:
    """Tell whether many objects were made since all were looked through."""
    _, young, middle = gc.get_count()
    return young + middle * _TIMES[0] >= _BURST


def _trimmer() -> Callable[[], object]:
    """Return what gives memory that is free back to the system: glibc keeps it; others do it by themselves, or have no way."""
    trim = _of_glibc("malloc_trim")
    return lambda: trim(0)


def _of_glibc(name: str) -> Callable[..., object]:
    """Return a function of the C library; one that does nothing where it is another library, which has no such function."""
    try:
        return cast("Callable[..., object]", getattr(ctypes.CDLL(None), name))
    except (AttributeError, OSError):
        return lambda *_: None
