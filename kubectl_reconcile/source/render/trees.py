"""The files that an overlay or a chart may ask for: all of a commit, or all of a working tree; none beyond, whatever links there are."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from kubectl_reconcile.core.manifests.tree import (
    ABSENT,
    FOLDER,
    LINK,
    MOST_LINK_BYTES,
    EntryKind,
    Tree,
    TreeEntry,
    resolved,
)
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.cloned.folders import FOLDER_MODE, LINK_MODE, SUBMODULE_MODE, CommitFolders
from kubectl_reconcile.source.git.missing_files import MissingFiles
from kubectl_reconcile.source.limits import LinkSteps

_LINK_MODES: Final = frozenset({LINK_MODE, SUBMODULE_MODE})
_BROUGHT_ALONG: Final = 200
"""Up to so many files of a folder are fetched together when the first is asked for."""


class CommitTree:
    """All files of the commit *sha*, read from its clone one by one. Of a partial clone, missing ones are fetched when they are brought, and never else."""

    def __init__(self, clone: Clone, missing: MissingFiles, sha: str) -> None:
        self._clone, self._missing, self._sha = clone, missing, sha
        self._folders = CommitFolders(clone, sha, must=True)

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        mode, blob = self._folders.at(path)
        if not mode:
            return ABSENT
        if mode == FOLDER_MODE:
            return FOLDER
        return LINK if mode in _LINK_MODES else TreeEntry(EntryKind.FILE, blob)

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name."""
        mode, folder = self._folders.at(path)
        if mode != FOLDER_MODE:
            return {}
        below = f"{path}/" if path else ""
        return {
            name: self.look(f"{below}{name}").kind if mode == LINK_MODE else _kind(mode)
            for name, (mode, _) in self._folders.folder(folder).items()
        }

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds; None where it must be fetched first."""
        found = self._clone.reader.ask(self._folders.at(path)[1])
        if found is not None:
            return found.data
        if self._clone.is_partial:
            return None
        raise SourceError(SourceFault.CORRUPT, f"the local clone has no file {path} of {self._sha[:7]}")

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch the files at *paths*, and others of their folders; with the links that lead there."""
        folders = CommitFolders(self._clone, self._sha, self._missing.bring)
        there = {path: folders.at(path)[1] for path in paths}
        self._missing.bring(
            dict.fromkeys(blob for path in paths for blob in (there[path], *self._beside(path, folders)))
        )
        for path, blob in there.items():
            if self._clone.reader.ask(blob) is None:
                raise SourceError(SourceFault.CORRUPT, f"the file {path} of {self._sha[:7]} can't be read")

    def _beside(self, path: str, folders: CommitFolders) -> list[str]:
        """Return the other files of the folder where a file really is: who asks for one asks for others."""
        real = folders.real(path)
        folder = folders.folder(folders.at((path if real is None else real).rpartition("/")[0])[1])
        return [blob for mode, blob in folder.values() if mode.startswith("100")][:_BROUGHT_ALONG]


def _kind(mode: str) -> EntryKind:
    if mode == FOLDER_MODE:
        return EntryKind.FOLDER
    return EntryKind.LINK if mode in _LINK_MODES else EntryKind.FILE


class FolderTree:
    """All files below the folder *root* of this machine, as they are when they are first asked for.

    Of one larger than *most_bytes* only so many are read, and one more.
    """

    def __init__(self, root: Path, most_bytes: int) -> None:
        self._root, self._most = root, most_bytes
        self._steps = LinkSteps(f"{root}")
        self._known: dict[str, tuple[TreeEntry, bytes]] = {}
        self._named: dict[str, dict[str, EntryKind]] = {}

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        return self._at(path)[0]

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name; what is neither file, folder nor link isn't there."""
        if self.look(path).kind is not EntryKind.FOLDER:
            return {}
        if path not in self._named:
            real = self._real(path)
            self._named[path] = dict(self._inside(self._root / (real or ""), f"{path}/" if path else ""))
        return self._named[path]

    def _inside(self, place: Path, below: str) -> Iterator[tuple[str, EntryKind]]:
        try:
            with os.scandir(place) as entries:
                for each in entries:
                    if each.is_symlink():
                        if (kind := self.look(f"{below}{each.name}").kind) is not EntryKind.ABSENT:
                            yield each.name, kind
                    elif each.is_dir() and each.name.lower() != ".git":
                        yield each.name, EntryKind.FOLDER
                    elif each.is_file():
                        yield each.name, EntryKind.FILE
        except OSError as error:
            raise SourceError(SourceFault.UNREADABLE, f"{place}: {error.strerror}", "check its permissions") from None

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
        real = self._real(path)
        if real is None or (real != path and not self._is_there(real)):
            return (LINK if self._is_there(path) else ABSENT), b""
        names = [name for name in real.split("/") if name]
        if any(name.lower() == ".git" for name in names):  # it may hold credentials, and is part of no commit
            return ABSENT, b""
        place = self._root.joinpath(*names)
        try:
            mode = place.lstat().st_mode
        except (OSError, ValueError):
            return ABSENT, b""
        if stat.S_ISDIR(mode):
            return FOLDER, b""
        return self._file(place) if stat.S_ISREG(mode) else (ABSENT, b"")

    def _is_there(self, path: str) -> bool:
        """Tell whether something is at *path*, a link included."""
        return os.path.lexists(self._root / path)

    def _real(self, path: str) -> str | None:
        return resolved(path, lambda place: self._link_at(place, path))

    def _link_at(self, place: str, link: str) -> str | None:
        self._steps.take(place, link)
        return link_text(self._root / place)

    def _file(self, place: Path) -> tuple[TreeEntry, bytes]:
        try:
            number = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(number, "rb") as opened:
                data = opened.read(self._most + 1)
        except OSError as error:
            if error.errno == errno.ELOOP:
                return LINK, b""
            raise SourceError(SourceFault.UNREADABLE, f"{place}: {error.strerror}", "check its permissions") from None
        return TreeEntry(EntryKind.FILE, _blob_id(data)), data


def link_text(place: Path) -> str | None:
    """Return what a link says, nothing of one that says too much; None where no link is."""
    try:
        text = str(place.readlink())
    except (OSError, ValueError):
        return None
    return text if len(os.fsencode(text)) <= MOST_LINK_BYTES else ""


class EditedTree:
    """The files of *tree*, of which some hold something else, or are new: *files*."""

    def __init__(self, tree: Tree, files: Mapping[str, bytes]) -> None:
        self._tree, self._files = tree, files

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*."""
        return TreeEntry(EntryKind.FILE, _blob_id(self._files[path])) if path in self._files else self._tree.look(path)

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name."""
        new = (name for file in self._files if (folder := file.rpartition("/"))[0] == path and (name := folder[2]))
        return {**self._tree.names(path), **dict.fromkeys(new, EntryKind.FILE)}

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds; None where it must be brought first."""
        return self._files[path] if path in self._files else self._tree.read(path)

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch what isn't here."""
        self._tree.bring([path for path in paths if path not in self._files])


def _blob_id(data: bytes) -> str:
    """Return the name that git gives to these bytes."""
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
