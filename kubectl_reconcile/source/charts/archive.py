"""A packaged chart as files: unpacked in memory, within bounds, and shown as a folder of the tree that its values files are in.

An archive is input like any other: what it unpacks to is counted while it is unpacked, and whatever isn't a plain file or folder below
the chart's own name (a link, a device, a path that leads out, a name twice) refuses it as a whole. Nothing of it touches a disk.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import posixpath
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.manifests.tree import ABSENT, FOLDER, EntryKind, Tree, TreeEntry
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising

MOST_ENTRIES: Final = 10_000
"""How many files and folders a chart may have, its subcharts included; popular ones have a few hundred."""

MOST_UNPACKED_BYTES: Final = 64 * MEBIBYTE
_LONGEST_PATH: Final = 1024


class _Counted(io.RawIOBase):
    """What an archive unpacks to, up to a bound."""

    def __init__(self, packed: bytes) -> None:
        self._unpacked = gzip.GzipFile(fileobj=io.BytesIO(packed))
        self._left = MOST_UNPACKED_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._unpacked.read(size if 0 <= size <= MEBIBYTE else MEBIBYTE)
        self._left -= len(data)
        if self._left < 0:
            raise _refused(f"unpacks to more than {MOST_UNPACKED_BYTES // MEBIBYTE} MiB")
        return data


def unpacked(packed: bytes, name: str, limits: GitLimits) -> dict[str, bytes]:
    """Return the files of the packaged chart *name*, by their paths in it.

    Raises:
        SourceError: it is no archive of that chart, or holds what no chart may hold.
    """
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=_Counted(packed), mode="r|") as archive:
            for count, entry in enumerate(archive):
                if count >= MOST_ENTRIES:
                    raise _refused(f"has more than {MOST_ENTRIES:,} entries")
                path = _path(entry, name)
                if entry.isdir():
                    continue
                if not entry.isreg():
                    raise _refused(f"has {entry.name[:_SHOWN]!r}, which is a link or a device, not a file")
                if path in files:
                    raise _refused(f"has {path!r} twice")
                if entry.size > limits.file_bytes:
                    raise _refused(
                        f"has {path!r} of more than {limits.file_bytes // MEBIBYTE} MiB", raising("file_bytes")
                    )
                content = archive.extractfile(entry)
                files[path] = content.read() if content is not None else b""
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise _refused(f"isn't a gzipped tar archive: {error}") from None
    if "Chart.yaml" not in files:
        raise _refused(f"has no {name}/Chart.yaml")
    if clash := next((path for path in files for above in _above(path) if above in files), ""):
        raise _refused(f"has {clash!r} below a file")
    return files


def _path(entry: tarfile.TarInfo, name: str) -> str:
    """Return the path of an entry in the chart."""
    path = entry.name.removeprefix("./").rstrip("/")
    steps = path.split("/")
    if (
        len(path) > _LONGEST_PATH
        or not path.isprintable()
        or "\\" in path
        or any(step in {"", ".", ".."} for step in steps)
    ):
        raise _refused(f"has the path {entry.name[:_SHOWN]!r}, which isn't one of a chart")
    if steps[0] != name:
        raise _refused(f"has {entry.name[:_SHOWN]!r}, which isn't below {name}/")
    return "/".join(steps[1:])


def _above(path: str) -> list[str]:
    steps = path.split("/")[:-1]
    return ["/".join(steps[: length + 1]) for length in range(len(steps))]


_SHOWN = 80


def _refused(why: str, hint: str = "") -> SourceError:
    return SourceError(SourceFault.REFUSED, f"the chart's archive {why}", hint)


class Archive(Struct, frozen=True, weakref=True):
    """The files of a chart, by their paths in it."""

    files: Mapping[str, bytes]
    _folders: Mapping[str, Mapping[str, EntryKind]] = field(default_factory=dict)

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> Archive:
        """Find which folders there are, and what is in each."""
        folders: dict[str, dict[str, EntryKind]] = {"": {}}
        for path in files:
            for above in _above(path):
                folders.setdefault(above, {})
                folders[posixpath.dirname(above)][posixpath.basename(above)] = EntryKind.FOLDER
            folders[posixpath.dirname(path)][posixpath.basename(path)] = EntryKind.FILE
        return cls(files, folders)

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path* of the chart."""
        if path in self._folders:
            return FOLDER
        data = self.files.get(path)
        if data is None:
            return ABSENT
        digest = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        return TreeEntry(EntryKind.FILE, digest)

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in a folder of the chart."""
        return self._folders.get(path, {})


class TreeWithChart(Struct, frozen=True):
    """The files of a revision, and those of an *archive* as the folder *at*, whatever the revision has there."""

    tree: Tree
    archive: Archive
    at: str

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        inside = self._inside(path)
        return self.tree.look(path) if inside is None else self.archive.look(inside)

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path*."""
        inside = self._inside(path)
        return self.tree.names(path) if inside is None else self.archive.names(inside)

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds."""
        inside = self._inside(path)
        return self.tree.read(path) if inside is None else self.archive.files.get(inside, b"")

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch what the files of the revision hold; those of the chart are here."""
        if missing := [path for path in paths if self._inside(path) is None]:
            self.tree.bring(missing)

    def _inside(self, path: str) -> str | None:
        """Return a path of the chart, None for one of the revision."""
        clean = path.strip("/")
        if clean == self.at:
            return ""
        return clean.removeprefix(f"{self.at}/") if clean.startswith(f"{self.at}/") else None
