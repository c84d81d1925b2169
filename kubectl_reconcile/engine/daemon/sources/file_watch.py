"""Hears of changes to files of this machine: repositories that are followed here, and mounted configuration.

Any change counts, hidden files included: git replaces its refs, kubelet a hidden link beside what it mounts. Whoever is called looks
for itself what changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from pathlib import Path

from msgspec import Struct, field
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver, ObservedWatch

from kubectl_reconcile.engine.telemetry.logs import event

_REST_S = 0.1
_CHANGES = frozenset({"created", "modified", "moved", "deleted", "closed"})

log = logging.getLogger(__name__)


class FileWatch(Struct):
    """Watches folders for as long as it isn't closed. Calls come in the event loop that made it, one for each burst."""

    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _observer: BaseObserver | None = None
    _watches: dict[Path, ObservedWatch] = field(default_factory=dict)
    _callbacks: dict[Path, dict[Hashable, Callable[[], None]]] = field(default_factory=dict)
    _resting: dict[Path, asyncio.TimerHandle] = field(default_factory=dict)

    def watch(self, folder: Path, who: Hashable, callback: Callable[[], None]) -> None:
        """Call *callback* of *who* after something changed below *folder*.

        A folder that can't be watched is logged, and looked at as often as without this.
        """
        self._callbacks.setdefault(folder, {})[who] = callback
        if folder in self._watches:
            return
        if self._observer is None:
            self._observer = Observer()
            self._observer.start()
        heard = _FileHandler(lambda: self._loop.call_soon_threadsafe(self._touched, folder))
        try:
            self._watches[folder] = self._observer.schedule(heard, str(folder), recursive=True)
        except OSError as error:
            event(log, logging.WARNING, "folder not watched", folder=folder, error=error.strerror)

    def unwatch(self, who: Hashable) -> None:
        """Call *who* no more."""
        for folder, callbacks in list(self._callbacks.items()):
            callbacks.pop(who, None)
            if not callbacks:
                del self._callbacks[folder]
                if self._observer is not None and folder in self._watches:
                    self._observer.unschedule(self._watches.pop(folder))

    async def close(self) -> None:
        """End all watches."""
        for waiting in self._resting.values():
            waiting.cancel()
        if self._observer is not None:
            self._observer.stop()
            await asyncio.to_thread(self._observer.join)

    def _touched(self, folder: Path) -> None:
        if waiting := self._resting.pop(folder, None):
            waiting.cancel()
        self._resting[folder] = self._loop.call_later(_REST_S, self._rested, folder)

    def _rested(self, folder: Path) -> None:
        self._resting.pop(folder, None)
        for callback in tuple(self._callbacks.get(folder, {}).values()):
            callback()


class _FileHandler(FileSystemEventHandler):
    def __init__(self, touched: Callable[[], object]) -> None:
        self._touched = touched

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Pass on what changed; reading changes nothing."""
        if event.event_type in _CHANGES:
            self._touched()
