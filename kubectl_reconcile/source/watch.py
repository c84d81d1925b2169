"""Being told when the files of a local folder change, in bursts.

Importing this brings in what talks to the operating system about files, which a single look does without.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from kubectl_reconcile.core.manifests.files import matters
from kubectl_reconcile.source.errors import SourceError, SourceFault


class Watch:
    """A running watch of a folder or a file; close it, or use it as a context manager."""

    def __init__(self, location: Path, callback: Callable[[], None], quiet_s: float) -> None:
        self._callback, self._quiet_s = callback, quiet_s
        self._lock = threading.Lock()
        self._calling = threading.RLock()  # held while the callback runs; close() may be called from within
        self._timer: threading.Timer | None = None
        self._closed = False
        self._observer = Observer()
        alone = location.is_file()
        folder = location.parent if alone else location
        heard = _FolderHandler(folder, location.name if alone else "", self._touched)
        try:
            self._observer.schedule(heard, str(folder), recursive=not alone)
            self._observer.start()
        except OSError as error:
            hint = "raise fs.inotify.max_user_watches and fs.inotify.max_user_instances"
            raise SourceError(SourceFault.UNREADABLE, f"{folder}: can't be watched: {error.strerror}", hint) from None

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


class _FolderHandler(FileSystemEventHandler):
    """Hears of what may change the revision: not of reading, and not of hidden files such as git's."""

    def __init__(self, folder: Path, only: str, touched: Callable[[], None]) -> None:
        self._folder, self._only, self._touched = str(folder), only, touched

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Pass on a change of a file that counts."""
        if event.event_type in {"created", "modified", "moved", "deleted", "closed"} and any(
            self._counts(os.fsdecode(path), event.is_directory) for path in (event.src_path, event.dest_path) if path
        ):
            self._touched()

    def _counts(self, path: str, is_folder: bool) -> bool:  # noqa: FBT001 - watchdog's own word
        inside = os.path.relpath(path, self._folder)
        if self._only:
            return inside == self._only
        if is_folder:
            return not any(part.startswith(".") for part in Path(inside).parts)
        return matters(inside)
