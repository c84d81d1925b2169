"""Notices what keeps the event loop from turning, and says what that was: a log line and a metric.

A loop of ours notes when it begins to work and when it waits again; a thread looks at that now and then, and where work takes long, at where
the loop's own thread is. Where a library holds the interpreter, that is the moment when it releases it. Whatever takes over a tenth
of a second is noticed, some of what takes half as long is too. A loop at rest is never woken for it, and looked at less often: what keeps it then is noticed
from a quarter of a second on.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import kubectl_reconcile
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

_LATE_S: Final = 0.05
_PAUSE_S: Final = 0.05
_PAUSE_AT_REST_S: Final = 0.2
_RESTED: Final = 20
"""After so many looks in a row at a loop that waits, it is at rest. Each look wakes this process: twenty a second are a third of what a daemon at rest takes."""
_LOOK_S: Final = 0.01
_PACKAGE: Final = Path(kubectl_reconcile.__file__ or "").parent

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Turns(selectors.DefaultSelector):
    """What the loop waits with; *since_s* is when it began to work, 0.0 while it waits."""

    since_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.since_s = 0.0
        try:
            return super().select(timeout)
        finally:
            self.since_s = time.monotonic()


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop that notes when it works."""

    def __init__(self) -> None:
        self.turns = _Turns()
        super().__init__(self.turns)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* in a loop that can be watched."""
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        return runner.run(work)


@contextmanager
def watched(metrics: Metrics) -> Iterator[None]:
    """Watch the loop that runs here until the block ends.

    Raises:
        TypeError: it isn't one of ``run``.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, WatchedLoop):
        raise TypeError("only a loop of ours notes when it works")
    monitor = _Monitor(metrics, loop)
    monitor.start()
    try:
        yield
    finally:
        monitor.end()


class _Monitor(threading.Thread):
    """The thread that looks."""

    def __init__(self, metrics: Metrics, loop: WatchedLoop) -> None:
        super().__init__(name="loop-monitor", daemon=True)
        self._loop, self._watched = loop, threading.get_ident()
        self._metrics = metrics
        self._ended = threading.Event()

    def run(self) -> None:
        """Look until told to end."""
        rested = 0
        while not self._ended.wait(_PAUSE_S if rested < _RESTED else _PAUSE_AT_REST_S):
            since_s = self._loop.turns.since_s
            rested = 0 if since_s else rested + 1
            if since_s and time.monotonic() - since_s > _LATE_S:
                self._late(since_s)

    def end(self) -> None:
        """Look no more."""
        self._ended.set()

    def _late(self, since_s: float) -> None:
        """Tell what the loop is at, once that is over."""
        place, task = self._place(), self._task()
        while self._loop.turns.since_s == since_s:
            if self._ended.wait(_LOOK_S):
                return
        took_s = time.monotonic() - since_s
        self._metrics.loop.blocked.labels(place.partition(":")[0]).observe(took_s)
        event(log, logging.WARNING, "event loop blocked", place=place, task=task, duration_ms=round(took_s * 1000))

    def _place(self) -> str:
        """Return where the loop's thread is now, as ``core/health/cel_rules.py:80 judge``: the innermost place of ours."""
        frame: FrameType | None = sys._current_frames().get(self._watched)  # noqa: SLF001 - how Python offers it
        innermost = frame
        while frame is not None:
            file = Path(frame.f_code.co_filename)
            if file.is_relative_to(_PACKAGE):
                return f"{file.relative_to(_PACKAGE)}:{frame.f_lineno} {frame.f_code.co_name}"
            frame = frame.f_back
        return f"{Path(innermost.f_code.co_filename).name}:{innermost.f_lineno}" if innermost else "unknown"

    def _task(self) -> str:
        """Return the name of the task that runs now; none between two of them."""
        with suppress(RuntimeError):
            if task := asyncio.current_task(self._loop):
                return task.get_name()
        return ""
