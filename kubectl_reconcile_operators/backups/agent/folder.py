"""Backups in a folder: written under a temporary name, checked, and renamed; what breaks off leaves nothing that looks like a backup."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kubectl_reconcile_operators.backups.agent.kinds import BackupKind, DamagedError, NoRoomError, Written

_PART = ".part"
_MARGIN = 1 << 16
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of the backups of one thing."""

    path: Path
    kind: BackupKind

    @property
    def label(self) -> str:
        """Return what it is called in messages and in the status."""
        return self.path.name

    def check_room(self, needed: int) -> None:
        """Refuse to begin where so many bytes don't fit.

        Raises:
            NoRoomError: they don't.
        """
        at = os.statvfs(self.path)
        free = at.f_bavail * at.f_frsize
        if free < needed + _MARGIN:
            raise NoRoomError(f"it needs {needed} bytes, and {free} are free")

    def write(self, parts: Iterable[bytes], began: datetime, *, least: int = 0, of: str = "") -> Written:
        """Write a backup, check it, and give it its name. Its number is *least* at least; *of* says what it is of.

        Raises:
            DamagedError: what came isn't a whole backup; nothing is left of it.
            NoRoomError: the volume is full; nothing is left of it.
        """
        part = self.path / f"{began:%Y%m%dT%H%M%S}-{os.getpid()}-{time.monotonic_ns()}{_PART}"
        try:
            with _full_disk(), part.open("xb") as file:
                for each in parts:
                    file.write(each)
                file.flush()
                os.fsync(file.fileno())
            found = self.kind.checked(part, began, of)
            if found.number < least:
                raise DamagedError(f"it holds {found.number}, and should hold at least {least}")
            part.rename(self.path / found.name)
        finally:
            part.unlink(missing_ok=True)
        self._sync()
        return found

    def take(self, name: str, size: int, parts: Iterable[bytes]) -> Path:
        """Write a file of *size* bytes under its name, unchecked; return it.

        Raises:
            NoRoomError: it doesn't fit; nothing is left of it.
        """
        file = self.path / name
        self.check_room(size)
        try:
            with _full_disk(), file.open("wb") as target:
                for each in parts:
                    target.write(each)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        return file

    def names(self) -> list[str]:
        """Return the names of the backups that are there, the oldest first."""
        return self.kind.names.in_order_of_time(each.name for each in self.path.iterdir())

    def fetched(self, name: str) -> Path:
        """Return the file of a backup."""
        return self.path / name

    def delete(self, names: Iterable[str]) -> None:
        """Delete backups; one that is gone already is none to delete."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)
        self._sync()

    def sweep(self, older_than_s: float) -> None:
        """Delete what broke off so long ago that nobody can be writing it any more."""
        for each in self.path.glob(f"*{_PART}"):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - each.stat().st_mtime > older_than_s:
                    each.unlink()

    def _sync(self) -> None:
        at = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(at)
        finally:
            os.close(at)


@contextlib.contextmanager
def _full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise NoRoomError(f"the volume is full: {error.strerror}") from error
        raise


def opened(path: Path, kind: BackupKind) -> Folder:
    """Return the folder, made where it isn't there."""
    path.mkdir(parents=True, exist_ok=True)
    return Folder(path, kind)
