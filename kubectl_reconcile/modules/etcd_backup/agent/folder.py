"""Backups in a folder: written under a temporary name, checked, and renamed; what breaks off leaves nothing that looks like a backup."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kubectl_reconcile.modules.etcd_backup.agent.database import DIGEST_SIZE, DamagedError, check_size, revision_of
from kubectl_reconcile.modules.etcd_backup.agent.retention import in_order_of_time, name_of, surplus

_PART = ".part"
_AT_ONCE = 1 << 20
_MARGIN = 1 << 16
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class NoRoomError(Exception):
    """The volume has no room left."""


@dataclass(frozen=True, slots=True)
class Written:
    """A backup that was written and checked; *sha256* is of the file as it is."""

    name: str
    revision: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one EtcdBackup."""

    path: Path

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
            raise NoRoomError(f"the snapshot needs {needed} bytes, and {free} are free")

    def write(self, parts: Iterable[bytes], began: datetime, *, least_revision: int) -> Written:
        """Write a snapshot, check it, and give it its name. It holds *least_revision* at least.

        Raises:
            DamagedError: what came isn't a whole snapshot; nothing is left of it.
            NoRoomError: the volume is full; nothing is left of it.
        """
        part = self.path / f"{began:%Y%m%dT%H%M%S}-{os.getpid()}-{time.monotonic_ns()}{_PART}"
        try:
            with _full_disk(), part.open("xb") as file:
                for each in parts:
                    file.write(each)
                file.flush()
                os.fsync(file.fileno())
            found = checked(part, began)
            if found.revision < least_revision:
                raise DamagedError(f"it holds revision {found.revision}, and etcd is at {least_revision}")
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
        return in_order_of_time(each.name for each in self.path.iterdir())

    def fetched(self, name: str) -> Path:
        """Return the file of a backup."""
        return self.path / name

    def retain(self, *, keep: int, max_age_days: int, now: datetime) -> list[str]:
        """Delete the backups that are too many or too old; return their names."""
        going = surplus((each.name for each in self.path.iterdir()), keep=keep, max_age_days=max_age_days, now=now)
        for name in going:
            (self.path / name).unlink(missing_ok=True)
        self._sync()
        return going

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


def opened(path: Path) -> Folder:
    """Return the folder, made where it isn't there."""
    path.mkdir(parents=True, exist_ok=True)
    return Folder(path)


def checked(file: Path, began: datetime) -> Written:
    """Return what a file holds, having checked size, digest and database; it isn't renamed.

    Raises:
        DamagedError: it isn't a whole snapshot.
    """
    size = file.stat().st_size
    check_size(size)
    content, whole = hashlib.sha256(), hashlib.sha256()
    with file.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as data:
        end = size - DIGEST_SIZE
        for at in range(0, end, _AT_ONCE):
            some = data[at : min(at + _AT_ONCE, end)]
            content.update(some)
            whole.update(some)
        digest = data[end:]
        whole.update(digest)
        if content.digest() != digest:
            raise DamagedError("its digest isn't that of its content")
        revision = revision_of(data)
    return Written(name_of(began.astimezone(UTC), revision), revision, size, whole.hexdigest())
