"""The files that an overlay may ask for: all of a commit, or all of a working tree; none beyond, and nothing through a link."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kubectl_reconcile.core.manifests.tree import ABSENT, FOLDER, LINK, EntryKind, TreeEntry
from kubectl_reconcile.source.clone import Clone
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.missing_files import MissingFiles
from kubectl_reconcile.source.objects import GitObject, asking
from kubectl_reconcile.source.remote import Repository

_FOLDER_MODE, _LINK_MODES = "40000", frozenset({"120000", "160000"})
_BROUGHT_ALONG: Final = 200
"""Up to so many files of a folder are fetched together when the first is asked for."""

_MOST_FOLDERS: Final = 20_000

Folder = Mapping[str, tuple[str, str]]
"""What a folder of a commit has: mode and id by name."""


class _Folders:
    """Folders of commits by their ids, which are good for ever; those used last are kept."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: OrderedDict[str, Folder] = OrderedDict()
        self._entries = 0

    def find(self, name: str) -> Folder | None:
        with self._guard:
            if (found := self._known.get(name)) is not None:
                self._known.move_to_end(name)
            return found

    def keep(self, name: str, folder: Folder) -> None:
        with self._guard:
            self._entries += len(folder) - len(self._known.get(name, ()))
            self._known[name] = folder
            while self._entries > _MOST_FOLDERS * 10 or len(self._known) > _MOST_FOLDERS:
                _, gone = self._known.popitem(last=False)
                self._entries -= len(gone)


_FOLDERS: Final = _Folders()


class CommitTree:
    """All files of the commit *sha*, read from its clone one by one. Of a partial clone, missing ones are fetched."""

    def __init__(self, clone: Clone, missing: MissingFiles, sha: str, ask: Callable[[str], GitObject | None]) -> None:
        self._clone, self._missing, self._sha, self._ask = clone, missing, sha, ask

    @classmethod
    @contextmanager
    def of(cls, clone: Clone, repository: Repository, missing: MissingFiles, sha: str) -> Iterator[CommitTree]:
        """Yield the tree of a commit; by the end of the block the git that reads it is gone."""
        with asking(clone, repository) as ask:
            yield cls(clone, missing, sha, ask)

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        mode, blob = self._at(path)
        if not mode:
            return ABSENT
        if mode == _FOLDER_MODE:
            return FOLDER
        return LINK if mode in _LINK_MODES else TreeEntry(EntryKind.FILE, blob)

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds; None where it must be fetched first."""
        found = self._ask(self._at(path)[1])
        if found is not None:
            return found.data
        if self._clone.is_partial:
            return None
        raise SourceError(SourceFault.CORRUPT, f"the local clone has no file {path} of {self._sha[:7]}")

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch the files at *paths*, and others of their folders."""
        self._missing.bring(dict.fromkeys(blob for path in paths for blob in (self._at(path)[1], *self._beside(path))))
        for path in paths:
            if self._ask(self._at(path)[1]) is None:
                raise SourceError(SourceFault.CORRUPT, f"the file {path} of {self._sha[:7]} can't be had")

    def _at(self, path: str) -> tuple[str, str]:
        """Return mode and id of what is at *path*; both are empty where nothing is."""
        names = [name for name in path.split("/") if name]
        at: tuple[str, str] = (_FOLDER_MODE, f"{self._sha}^{{tree}}")
        for name in names:
            if at[0] in _LINK_MODES:
                return at
            if at[0] != _FOLDER_MODE:
                return "", ""
            at = self._folder(at[1]).get(name, ("", ""))
        return at

    def _folder(self, name: str) -> Folder:
        if (known := _FOLDERS.find(name)) is not None:
            return known
        found = self._ask(name)
        if found is None or found.kind != b"tree" or len(found.data) > self._clone.limits.file_bytes:
            raise SourceError(SourceFault.CORRUPT, f"a folder of {self._sha[:7]} can't be read from the local clone")
        folder = dict(_entries(found.data, len(self._sha) // 2))
        _FOLDERS.keep(name, folder)
        return folder

    def _beside(self, path: str) -> list[str]:
        """Return the other files of a file's folder: who asks for one asks for others."""
        folder = self._folder(self._at(path.rpartition("/")[0])[1])
        return [blob for mode, blob in folder.values() if mode.startswith("100")][:_BROUGHT_ALONG]


def _entries(tree: bytes, id_bytes: int) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, mode and id of each entry of a folder as git stores it: mode, space, name, zero byte, id, and the next."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + id_bytes
        yield name.decode(errors="surrogateescape"), (mode.decode(errors="replace"), tree[end + 1 : at].hex())


class FolderTree:
    """All files below the folder *root* of this machine, as they are when they are first asked for.

    Of one larger than *most_bytes* only so many are read, and one more.
    """

    def __init__(self, root: Path, most_bytes: int) -> None:
        self._root, self._most = root, most_bytes
        self._known: dict[str, tuple[TreeEntry, bytes]] = {}

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        return self._at(path)[0]

    def read(self, path: str) -> bytes:
        """Return what the file at *path* holds."""
        return self._at(path)[1]

    def bring(self, paths: Sequence[str]) -> None:
        """Do nothing: all files are here."""

    def _at(self, path: str) -> tuple[TreeEntry, bytes]:
        if path not in self._known:
            self._known[path] = self._found(path)
        return self._known[path]

    def _found(self, path: str) -> tuple[TreeEntry, bytes]:
        place = self._root
        for name in ["", *(name for name in path.split("/") if name)]:
            place = place / name
            if name.lower() == ".git":  # it may hold credentials, and is part of no commit
                return ABSENT, b""
            try:
                mode = place.lstat().st_mode
            except (OSError, ValueError):
                return ABSENT, b""
            if stat.S_ISLNK(mode):
                return LINK, b""
        if stat.S_ISDIR(mode):
            return FOLDER, b""
        return self._file(place) if stat.S_ISREG(mode) else (ABSENT, b"")

    def _file(self, place: Path) -> tuple[TreeEntry, bytes]:
        try:
            number = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(number, "rb") as opened:
                data = opened.read(self._most + 1)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return LINK, b""
            raise SourceError(SourceFault.UNREADABLE, f"{place}: {error.strerror}", "check its permissions") from None
        digest = hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        return TreeEntry(EntryKind.FILE, digest), data
