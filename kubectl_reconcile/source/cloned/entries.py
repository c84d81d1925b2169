"""The entries of a folder of a commit: which of them count, and what is behind links."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, Self

from msgspec import Struct

from kubectl_reconcile.core.manifests.files import IGNORE_FILE, SourceIgnore, is_manifest_path, is_renderer_path
from kubectl_reconcile.source.cloned.clone import Clone
from kubectl_reconcile.source.cloned.folders import (
    FOLDER_MODE,
    LINK_MODE,
    NOTHING,
    SUBMODULE_MODE,
    CommitFolders,
)
from kubectl_reconcile.source.limits import Counted

NOWHERE: Final = "a symbolic link to nothing in the repository, which isn't followed"
"""What is said of a link that leads out of the repository, to nothing or round in circles."""
NOWHERE_HINT: Final = f"link within the repository, commit the file, or list it in {IGNORE_FILE}"
"""What to do about it."""

Entry = tuple[str, str, str]
"""Mode, id and path of a file, a folder or a link."""


def counts(mode: str, file: str, path: str) -> bool:
    """Return whether an entry is read, is the reason why others aren't, or deserves a word."""
    return mode != FOLDER_MODE and (
        is_read(mode, file, path) or mode in {LINK_MODE, SUBMODULE_MODE} or is_renderer_path(inside(file, path))
    )


def where_of(clone: Clone, path: str) -> str:
    """Return what errors call a path of a repository."""
    return f"{clone.repository}, {path}" if path not in {"", "."} else f"{clone.repository}"


def is_read(mode: str, file: str, path: str) -> bool:
    """Return whether the content of *file* counts when the revision at *path* is read."""
    wanted = file == path or is_manifest_path(inside(file, path)) or is_ignore_file(mode, file)
    return wanted and mode not in {FOLDER_MODE, LINK_MODE, SUBMODULE_MODE}


def is_ignore_file(mode: str, path: str) -> bool:
    """Return whether an entry says what is to be left out."""
    return path.rpartition("/")[2] == IGNORE_FILE and mode not in {"", FOLDER_MODE, LINK_MODE, SUBMODULE_MODE}


def inside(path: str, root: str) -> str:
    """Return *path* as seen from the followed folder; a file that is followed itself goes by its name."""
    return path[len(root) + 1 :] if root and path != root else path.rpartition("/")[2] if root else path


class Linked(Struct, frozen=True):
    """The *own* entries of a folder, and those *through* its links, each with the path where it really is; *links* are the paths of all links.

    What a link leads to is an entry at the link's own path, and what is in a folder that it leads to is below that. Links that lead
    nowhere are among the own.
    """

    own: tuple[Entry, ...]
    through: tuple[tuple[Entry, str], ...]
    links: tuple[str, ...]
    root: str = ""

    @classmethod
    def of(cls, folders: CommitFolders, entries: Sequence[Entry], path: str, counted: Counted) -> Self:
        """Follow the links among *entries*; no folder is read twice, and what is behind links is *counted* with the rest.

        Raises:
            SourceError: there is too much behind them.
        """
        waiting = deque(each for each in entries if each[0] == LINK_MODE)
        if not waiting:
            return cls(tuple(entries), (), ())
        own = [each for each in entries if each[0] != LINK_MODE]
        through: list[tuple[Entry, str]] = []
        links: list[str] = []
        read: set[str] = set()
        while waiting:
            link = waiting.popleft()
            links.append(link[2])
            real = None if _is_hidden(inside(link[2], path)) else folders.real(link[2])
            mode, found = folders.at(real) if real is not None else NOTHING
            if real is None or not mode or mode == LINK_MODE:
                own.append(link)
            elif mode != FOLDER_MODE:
                through.append(((mode, found, link[2]), real))
            elif real not in read and not _is_within(folders.real(link[2].rpartition("/")[0]) or "", real):
                read.add(real)
                for below in folders.below(found, f"{link[2]}/"):
                    counted.take(below[2], is_folder=below[0] == FOLDER_MODE)
                    if below[0] == LINK_MODE:
                        waiting.append(below)
                    elif counts(below[0], below[2], path):
                        through.append((below, f"{real}{below[2][len(link[2]) :]}".lstrip("/")))
        return cls(tuple(own), tuple(through), tuple(links), folders.real(path) or "")

    def read_once(self, path: str, ignore: SourceIgnore) -> list[Entry]:
        """Return the entries without those that are read where they really are, or through another link."""
        read = {
            f"{self.root}{file[len(path) :]}".lstrip("/")
            for mode, _, file in self.own
            if self.through and _is_wanted(mode, file, path) and not ignore.matches(file)
        }
        found = list(self.own)
        for entry, real in self.through:
            if real not in read and not ignore.matches(entry[2]):
                read.add(real)
                found.append(entry)
        return sorted(found, key=_place_of) if self.through else found


def _place_of(entry: Entry) -> bytes:
    return entry[2].encode(errors="surrogateescape")


def _is_wanted(mode: str, file: str, path: str) -> bool:
    """Tell whether a file is read as manifests, or is a renderer's."""
    return is_read(mode, file, path) or is_renderer_path(inside(file, path))


def _is_within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))
