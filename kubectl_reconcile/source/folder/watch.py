"""Being told when the files change that a local source consists of, in bursts.

Of manifests these are the files at the source's *location* that count by their names; of an overlay all that was *consulted*
for it, wherever in the working tree that is and whatever its name. What was consulted is known once it was rendered, and other
after the next edit: so whoever renders has the watch *follow* it.

Importing this brings in what talks to the operating system about files, which a single look does without.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

from msgspec import Struct
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from kubectl_reconcile.core.manifests.tree import EntryKind, TreeEntry
from kubectl_reconcile.core.manifests.which_files import IGNORE_FILE, matters
from kubectl_reconcile.source.errors import SourceError, SourceFault

_EVENTS: Final = frozenset(("created", "modified", "moved", "deleted", "closed"))
_WITHIN: Final = frozenset(("modified", "closed"))
"""Of a folder these say that something in it is another, which has an event of its own."""

Consulted = Callable[[], Mapping[str, TreeEntry]]
"""What was consulted for the newest rendering, by path from the top of the working tree; nothing where there is none."""


class Watched(Struct, frozen=True):
    """What is watched: a *location* in the working tree at *top*, a file if *alone*, and what was *consulted* to render it."""

    location: Path
    alone: bool
    top: Path
    consulted: Consulted

    def folder(self) -> Path:
        """Return the folder in which all of it is."""
        if self.alone:
            return self.location.parent
        places = [self.location]
        for path, entry in self.consulted().items():
            at = self.top / path.removesuffix("/")  # of the top itself that is all there is
            places.append(at if entry.kind is EntryKind.FOLDER else at.parent)
        found = Path(os.path.commonpath(places))
        return next(each for each in (found, *found.parents) if each.is_dir())

    def counts(self, path: str, event: FileSystemEvent) -> bool:
        """Return whether an event at *path* may change what the source asks for."""
        inside = os.path.relpath(path, self.location)
        if self.alone:
            return inside == "."
        if consulted := self.consulted():
            return self._is_consulted(os.path.relpath(path, self.top), event, consulted)
        if event.is_directory:
            return not any(part.startswith(".") for part in Path(inside).parts)
        return matters(inside)

    @staticmethod
    def _is_consulted(path: str, event: FileSystemEvent, consulted: Mapping[str, TreeEntry]) -> bool:
        if event.event_type in _WITHIN:
            return not event.is_directory and (path in consulted or path.rpartition("/")[2] == IGNORE_FILE)
        folder, _, name = path.rpartition("/")
        known = path in consulted or any(each.startswith(f"{path}/") for each in consulted)
        return known or name == IGNORE_FILE or (folder in consulted and not name.startswith("."))


class Watch:
    """A running watch; close it, or use it as a context manager.

    Raises:
        SourceError: the folder can't be watched.
    """

    def __init__(self, watched: Watched, callback: Callable[[], None], quiet_s: float) -> None:
        self._watched, self._callback, self._quiet_s = watched, callback, quiet_s
        self._lock = threading.Lock()
        self._calling = threading.RLock()  # held while the callback runs; close() may be called from within
        self._timer: threading.Timer | None = None
        self._closed = False
        self._observer = Observer()
        self._heard = _Handler(watched, self._touched)
        self._folder = watched.folder()
        self._start(self._observer.start)

    def follow(self) -> bool:
        """Watch what was consulted by now; tell whether that is elsewhere than before: then what happened there wasn't heard of.

        Raises:
            SourceError: it can't be watched.
        """
        folder = self._watched.folder()
        if folder == self._folder:
            return False
        self._folder = folder
        self._observer.unschedule_all()
        self._start(lambda: None)
        return True

    def _start(self, begin: Callable[[], None]) -> None:
        try:
            self._observer.schedule(self._heard, str(self._folder), recursive=not self._watched.alone)
            begin()
        except OSError as error:
            hint = "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances"
            raise SourceError(
                SourceFault.UNREADABLE, f"{self._folder}: can't be watched: {error.strerror}", hint
            ) from None

    def close(self) -> None:
        """End the watch; returns once no call is running, and none comes after."""
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
        self._observer.stop()
        self._observer.join()
        with self._calling:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _touched(self) -> None:
        with self._lock:
            if self._closed:
                return
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(self._quiet_s, self._rested)
            self._timer.daemon = True
            self._timer.start()

    def _rested(self) -> None:
        with self._calling:
            if not self._closed:
                self._callback()


class _Handler(FileSystemEventHandler):
    """Hears of what may change the revision: not of reading, and not of hidden files such as git's."""

    def __init__(self, watched: Watched, touched: Callable[[], None]) -> None:
        self._watched, self._touched = watched, touched

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Pass on a change of a file that counts."""
        places = (os.fsdecode(path) for path in (event.src_path, event.dest_path) if path)
        if event.event_type in _EVENTS and any(self._watched.counts(path, event) for path in places):
            self._touched()
