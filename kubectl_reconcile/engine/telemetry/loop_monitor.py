"""Notices what keeps the event loop from turning, and says what that was: a log line and a metric.

A thread asks the loop to answer, again and again. An answer that doesn't come has the thread look at where the loop's own thread is;
where a library holds the interpreter, that is the moment when it lets go of it. Whatever takes over a tenth of a second
is noticed, some of what takes half as long is too.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final

import kubectl_reconcile
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.engine.telemetry.metrics import Metrics

_LATE_S: Final = 0.05
_PAUSE_S: Final = 0.05
_PACKAGE: Final = Path(kubectl_reconcile.__file__ or "").parent

log = logging.getLogger(__name__)


@contextmanager
def watched(metrics: Metrics) -> Iterator[None]:
    """Watch the loop that runs here, until the block ends."""
    monitor = _Monitor(metrics)
    monitor.start()
    try:
        yield
    finally:
        monitor.end()


class _Monitor(threading.Thread):
    """The thread that asks."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(name="loop-monitor", daemon=True)
        self._loop, self._watched = asyncio.get_running_loop(), threading.get_ident()
        self._metrics = metrics
        self._answered, self._ended = threading.Event(), threading.Event()

    def run(self) -> None:
        """Ask until told to end, or until nobody is there to answer."""
        with suppress(RuntimeError):  # the loop is closed
            while not self._ended.wait(_PAUSE_S):
                self._ask()

    def end(self) -> None:
        """Ask no more."""
        self._ended.set()
        self._answered.set()

    def _ask(self) -> None:
        self._answered.clear()
        asked_s = time.monotonic()
        self._loop.call_soon_threadsafe(self._answered.set)
        if self._answered.wait(_LATE_S):
            return
        place, task = self._place(), self._task()
        self._answered.wait()
        if self._ended.is_set():
            return
        took_s = time.monotonic() - asked_s
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
