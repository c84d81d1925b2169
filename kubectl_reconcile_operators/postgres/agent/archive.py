"""Copies of a server as one file each: a tar, compressed, of what ``pg_basebackup`` has written.

The copy brings a list of its files with their SHA-256 (``backup_manifest``), by which the whole file is checked: what is missing, other than listed, or listed nowhere (the log aside, which the copy
needs and the list leaves out) makes it no backup. A backup is called by the timeline and the system that it is of, as in ``20261123T030000Z-t1-7312345678901234567.tar.gz``.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, Written
from kubectl_reconcile_operators.backups.retention import COPY_NAMES

_AT_ONCE, _BLOCK = 1 << 20, 512
_GZIP = 31
"""What zlib calls gzip's format, with the largest window."""
_LIST, _LOG, _VERSION, _CONTROL = "backup_manifest", "pg_wal/", "PG_VERSION", "global/pg_control"
_SYSTEM = 8
"""A server's control file begins with the identifier of its system, in so many bytes, as the machine has them."""
_LIST_MAX = 1 << 28


def archived(copy: Path) -> Iterator[bytes]:
    """Yield the file that a copy becomes.

    Raises:
        DamagedError: it holds what can't be kept, such as a tablespace.
    """
    packer = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    for path in sorted(copy.rglob("*")):
        info = tarfile.TarInfo(path.relative_to(copy).as_posix())
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise DamagedError(f"{info.name} isn't a file: tablespaces can't be backed up")
        if path.is_dir():
            info.type, info.mode = tarfile.DIRTYPE, 0o700
            yield packer.compress(info.tobuf())
            continue
        info.mode, info.size = 0o600, path.stat().st_size
        yield packer.compress(info.tobuf())
        with path.open("rb") as source:
            while some := source.read(_AT_ONCE):
                yield packer.compress(some)
        yield packer.compress(bytes(-info.size % _BLOCK))
    yield packer.compress(bytes(2 * _BLOCK))
    yield packer.flush()


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a copy."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CopyContent:
    """What is in a file: all files of the copy, its list of them, the major version that has written it, and the identifier of the system that it is of, empty where it has none."""

    files: Mapping[str, ListedFile]
    listed: Mapping[str, Any]
    major: str
    system: str = ""

    def check(self) -> None:
        """Hold the files against the list.

        Raises:
            DamagedError: it isn't as listed.
        """
        wanted = {str(each.get("Path")): each for each in self.listed.get("Files") or () if isinstance(each, Mapping)}
        for name, each in wanted.items():
            found = self.files.get(name)
            if found is None:
                raise DamagedError(f"{name} is missing")
            if each.get("Checksum-Algorithm") != "SHA256" or each.get("Checksum") != found.sha256:
                raise DamagedError(f"{name} isn't as it was copied")
        if not any(name.startswith(_LOG) for name in self.files):
            raise DamagedError("it lacks the WAL that it needs to start")
        if strays := [each for each in self.files if each not in {*wanted, _LIST} and not each.startswith(_LOG)]:
            raise DamagedError(f"{strays[0]} isn't among what was copied")

    @property
    def timeline(self) -> int:
        """The timeline that the copy ends on."""
        ranges = self.listed.get("WAL-Ranges")
        found = ranges[-1].get("Timeline") if isinstance(ranges, list) and ranges else None
        if not isinstance(found, int) or found < 1:
            raise DamagedError("its list of files names no timeline")
        return found


class PostgresCopies:
    """The kind of backup that a MyDatabase makes."""

    names = COPY_NAMES

    def checked(self, file: Path, began: datetime, of: str = "") -> Written:
        """Return what a file holds, having read all of it and held it against its own list; it isn't renamed.

        Raises:
            DamagedError: it isn't a whole copy.
        """
        content = content_of(file)
        content.check()
        with file.open("rb") as source:
            digest = hashlib.file_digest(source, "sha256").hexdigest()
        timeline, system = content.timeline, content.system or of
        name = self.names.name_of(began, timeline, system)
        return Written(name, timeline, file.stat().st_size, digest, system)


COPIES = PostgresCopies()


def content_of(file: Path) -> CopyContent:
    """Return what a file says and holds, unchecked.

    Raises:
        DamagedError: it is no whole archive of a copy.
    """
    files: dict[str, ListedFile] = {}
    kept: dict[str, bytes] = {}
    try:
        with gzip.open(file) as whole, tarfile.open(fileobj=whole, mode="r|") as tar:
            for member in tar:
                if member.isdir():
                    continue
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or member.name in files:
                    raise DamagedError(f"{member.name} isn't a plain file, or is there twice")
                files[member.name], kept_part = _read(content, member.name)
                kept.update(kept_part)
            while whole.read(_AT_ONCE):
                pass  # its checksum comes last
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DamagedError(f"it isn't a whole archive: {error}") from error
    try:
        listed = json.loads(kept.get(_LIST, b""))
    except ValueError as error:
        raise DamagedError("it isn't a copy that pg_basebackup made") from error
    return CopyContent(
        files,
        listed if isinstance(listed, Mapping) else {},
        kept.get(_VERSION, b"").decode(errors="replace").strip(),
        _system_in(kept.get(_CONTROL, b"")),
    )


def _system_in(control: bytes) -> str:
    """Return the identifier of the system that a control file is of, empty where it is none."""
    found = int.from_bytes(control[:_SYSTEM], sys.byteorder) if len(control) >= _SYSTEM else 0
    return str(found) if found else ""


def _read(content: IO[bytes], name: str) -> tuple[ListedFile, dict[str, bytes]]:
    digest, size, kept = hashlib.sha256(), 0, bytearray()
    while some := content.read(_AT_ONCE):
        digest.update(some)
        size += len(some)
        if name in {_LIST, _VERSION, _CONTROL} and size <= _LIST_MAX:
            kept += some
    return ListedFile(size, digest.hexdigest()), {name: bytes(kept)} if kept else {}


def unpacked(file: Path, folder: Path) -> None:
    """Make a folder of a file that was checked; nobody but its owner gets in."""
    folder.mkdir(mode=0o700)
    with tarfile.open(file, "r|gz") as tar:
        tar.extractall(folder, filter="data")
    folder.chmod(0o700)
