"""An archive as files, that of a packaged chart or another: unpacked in memory, within bounds, and shown as a folder of the tree that a chart's values files are in.

An archive is input like any other: what it unpacks to is counted while it is unpacked, and whatever isn't a plain file or folder (a link, a device, a path that
leads out, a name twice or in other letters; of a chart, a path that isn't below the chart's own name) refuses it as a whole. Nothing of it touches a disk.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import posixpath
import tarfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from kubectl_reconcile.core.manifests.tree import ABSENT, FOLDER, EntryKind, Tree, TreeEntry
from kubectl_reconcile.source.charts import zstd
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits, raising

MOST_ENTRIES: Final = 10_000
"""How many files and folders an archive may have; popular charts have a few hundred, their subcharts included."""

MOST_UNPACKED_BYTES: Final = 64 * MEBIBYTE
_LONGEST_PATH: Final = 1024


class _Counted(io.RawIOBase):
    """What an archive unpacks to, up to a bound."""

    def __init__(self, unpacked: io.BufferedIOBase | io.RawIOBase, what: str) -> None:
        self._unpacked, self._what = unpacked, what
        self._left = MOST_UNPACKED_BYTES

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._unpacked.read(size if 0 <= size <= MEBIBYTE else MEBIBYTE) or b""
        self._left -= len(data)
        if self._left < 0:
            raise _refused(self._what, f"unpacks to more than {MOST_UNPACKED_BYTES // MEBIBYTE} MiB")
        return data


def unpacked(packed: bytes, name: str, limits: GitLimits) -> dict[str, bytes]:
    """Return the files of the packaged chart *name*, by their paths in it.

    Raises:
        SourceError: it is no archive of that chart, or holds what no chart may hold.
    """
    if not packed.startswith(_GZIP):
        raise _refused(CHART, "isn't a gzipped tar archive")
    files: dict[str, bytes] = {}
    for path, content in files_of(packed, CHART, limits).items():
        top, _, inside = path.partition("/")
        if top != name or not inside:
            raise _refused(CHART, f"has {path[:_SHOWN]!r}, which isn't below {name}/")
        files[inside] = content
    if "Chart.yaml" not in files:
        raise _refused(CHART, f"has no {name}/Chart.yaml")
    return files


CHART: Final = "the chart's archive"


def files_of(packed: bytes, what: str, limits: GitLimits) -> dict[str, bytes]:
    """Return the files of a tar archive, plain or packed by gzip or zstd, by their paths; *what* it is called in an error.

    Raises:
        SourceError: it isn't one, or holds anything but plain files and folders, each once, at most so many and so large.
    """
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    called, stream = _opened(packed)
    try:
        with tarfile.open(fileobj=_Counted(stream, what), mode="r|") as archive:
            for count, entry in enumerate(archive):
                if count >= MOST_ENTRIES:
                    raise _refused(what, f"has more than {MOST_ENTRIES:,} entries")
                path = _path(entry, what)
                if entry.isdir():
                    folders.add(path)
                    continue
                if not entry.isreg() or entry.issparse():
                    raise _refused(what, f"has {entry.name[:_SHOWN]!r}, which is a link or a device, not a file")
                if path in files:
                    raise _refused(what, f"has {path!r} twice")
                if entry.size > limits.file_bytes:
                    said = f"has {path!r} of more than {limits.file_bytes // MEBIBYTE} MiB"
                    raise _refused(what, said, raising("file_bytes"))
                content = archive.extractfile(entry)
                files[path] = content.read() if content is not None else b""
    except RecursionError:  # the library calls itself for each
        raise _refused(what, "has too many headers that belong to one entry") from None
    except (tarfile.TarError, zlib.error, zstd.ZstdError, EOFError, OSError, ValueError) as error:
        raise _refused(what, f"isn't a {called}: {error}") from None
    return checked(files, what, folders)


_GZIP: Final = b"\x1f\x8b"


def _opened(packed: bytes) -> tuple[str, io.BufferedIOBase | io.RawIOBase]:
    """Return what an archive is called that begins so, and what it unpacks to."""
    if packed.startswith(_GZIP):
        return "gzipped tar archive", gzip.GzipFile(fileobj=io.BytesIO(packed))
    if packed.startswith(zstd.MAGIC):
        return "tar archive packed by zstd", zstd.ZstdReader(packed)
    return "tar archive", io.BytesIO(packed)


def checked(files: dict[str, bytes], what: str, folders: Iterable[str] = ()) -> dict[str, bytes]:
    """Return *files* by their paths, if they and the *folders* can lie beside one another on any disk.

    Raises:
        SourceError: one is below another, or the names of two differ by case alone.
    """
    known: dict[str, str] = {}
    for path in (*files, *folders):
        for each in (path, *_above(path)):
            if known.setdefault(each.casefold(), each) != each:
                raise _refused(what, f"has {each!r} and {known[each.casefold()]!r}, which differ by case alone")
    if clash := next((path for path in (*files, *folders) for above in _above(path) if above in files), ""):
        raise _refused(what, f"has {clash!r} below a file")
    if clash := next((path for path in folders if path in files), ""):
        raise _refused(what, f"has {clash!r} twice")
    return files


def _path(entry: tarfile.TarInfo, what: str) -> str:
    """Return the path of an entry; that of the folder which all are in is empty."""
    path = entry.name.removeprefix("./").rstrip("/")
    if entry.isdir() and path in {"", "."}:
        return ""
    return proper_path(path, what)


def proper_path(path: str, what: str) -> str:
    """Return *path* if it is one within an archive or an artifact, in its plain form.

    Raises:
        SourceError: it is absolute, leads out, or isn't a path on any disk.
    """
    is_bad = len(path) > _LONGEST_PATH or not path.isprintable() or "\\" in path
    if is_bad or any(step in {"", ".", ".."} for step in path.split("/")):
        raise _refused(what, f"has the path {path[:_SHOWN]!r}, which isn't one within it")
    return path


def _above(path: str) -> list[str]:
    steps = path.split("/")[:-1]
    return ["/".join(steps[: length + 1]) for length in range(len(steps))]


_SHOWN = 80


def _refused(what: str, why: str, hint: str = "") -> SourceError:
    return SourceError(SourceFault.REFUSED, f"{what} {why}", hint)


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

    def is_of_chart(self, path: str) -> bool:
        """Tell whether what is at *path* is the chart's."""
        return self._inside(path) is not None

    def _inside(self, path: str) -> str | None:
        """Return a path of the chart, None for one of the revision."""
        clean = path.strip("/")
        if clean == self.at:
            return ""
        return clean.removeprefix(f"{self.at}/") if clean.startswith(f"{self.at}/") else None
