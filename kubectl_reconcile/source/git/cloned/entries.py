"""The entries of a folder of a commit: which of them count, and what is behind links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Self

from msgspec import Struct, field

from kubectl_reconcile.core.manifests.which_files import IGNORE_FILE, SourceIgnore, is_manifest_path, is_renderer_path
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.cloned.folders import (
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
    """The *entries* of a folder with those behind its links, none of which is ignored or read elsewhere; *links* are the paths of all links.

    What a link leads to is an entry at the link's own path, and what is in a folder that it leads to is below that. Links that lead
    nowhere are among the entries.
    """

    entries: tuple[Entry, ...]
    links: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        folders: CommitFolders,
        entries: Sequence[Entry],
        path: str,
        counted: Counted,
        ignoring: Callable[[Sequence[Entry]], SourceIgnore],
    ) -> Self:
        """Follow the links among *entries*, those in folders behind links after them, each time in the order of their paths.

        A file is read where it really is, else through the first link that leads there and isn't ignored. No folder is read through
        two links. What is behind links is *counted* with the rest. *ignoring* takes in links and ignore files as they are met, all at
        once, and returns what is left out by now.

        Raises:
            SourceError: there is too much behind them.
        """
        if all(each[0] != LINK_MODE for each in entries):
            return cls(tuple(entries))
        following = _Following(folders, path, counted)
        following.begin(entries, ignoring(entries))
        while following.waiting:
            behind = following.level()
            met = [*following.waiting, *(each.entry for each in behind)]
            following.take(behind, ignoring(met))
        return cls(tuple(sorted(following.found, key=_place_of)), tuple(following.links))


class _Behind(Struct, frozen=True):
    """An entry behind a link, and where it really is; of a renderer's file that is a link, where the link is."""

    entry: Entry
    real: str


class _Following(Struct):
    """One walk behind the links of a folder, level by level."""

    folders: CommitFolders
    path: str
    counted: Counted
    found: list[Entry] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    waiting: list[Entry] = field(default_factory=list)
    _read: set[str] = field(default_factory=set)
    _entered: set[str] = field(default_factory=set)
    _ignore: SourceIgnore = field(default_factory=lambda: SourceIgnore({}))

    def begin(self, entries: Sequence[Entry], ignore: SourceIgnore) -> None:
        """Take in what the folder itself has."""
        self._ignore, root = ignore, self.folders.real(self.path) or ""
        self.waiting = [each for each in entries if each[0] == LINK_MODE]
        self.found = [each for each in entries if each[0] != LINK_MODE]
        wanted = (file for mode, _, file in self.found if _is_wanted(mode, file, self.path))
        here = (file for file in wanted if not ignore.matches(file))
        self._read = {f"{root}{file[len(self.path) :]}".lstrip("/") for file in here}

    def level(self) -> list[_Behind]:
        """Return what is behind the links that wait; those among it wait next."""
        level, self.waiting = sorted(self.waiting, key=_place_of), []
        behind: list[_Behind] = []
        for link in level:
            self.links.append(link[2])
            if _is_hidden(inside(link[2], self.path)):
                self.found.append(link)
            elif not self._ignore.matches(link[2]):
                behind += self._behind(link)
        return behind

    def take(self, behind: Iterable[_Behind], ignore: SourceIgnore) -> None:
        """Take in what is neither ignored nor read elsewhere."""
        self._ignore = ignore
        for each in behind:
            if each.real not in self._read and not ignore.matches(each.entry[2]):
                self._read.add(each.real)
                self.found.append(each.entry)

    def _behind(self, link: Entry) -> Iterator[_Behind]:
        place = link[2]
        real = self.folders.real(place)
        mode, blob = self.folders.at(real) if real is not None else NOTHING
        is_nowhere = real is None or not mode or mode == LINK_MODE
        if mode != FOLDER_MODE and is_renderer_path(inside(place, self.path)):
            folder, _, name = place.rpartition("/")
            yield _Behind(
                link if is_nowhere else (mode, blob, place), f"{self.folders.real(folder) or ''}/{name}".lstrip("/")
            )
        elif real is None or is_nowhere:
            self.found.append(link)
        elif mode != FOLDER_MODE:
            yield _Behind((mode, blob, place), real)
        elif self._enters(place, real):
            for below in self.folders.below(blob, f"{place}/"):
                self.counted.take(below[2], is_folder=below[0] == FOLDER_MODE)
                if below[0] == LINK_MODE:
                    self.waiting.append(below)
                elif counts(below[0], below[2], self.path):
                    yield _Behind(below, f"{real}{below[2][len(place) :]}".lstrip("/"))

    def _enters(self, link: str, real: str) -> bool:
        """Tell whether a folder is read through a link: unless it is ignored there, was read before, or the link is in it."""
        if real in self._entered or self._ignore.leaves_out(link):
            return False
        if _is_within(self.folders.real(link.rpartition("/")[0]) or "", real):
            return False
        self._entered.add(real)
        return True


def _place_of(entry: Entry) -> bytes:
    return entry[2].encode(errors="surrogateescape")


def _is_wanted(mode: str, file: str, path: str) -> bool:
    """Tell whether a file is read as manifests, or is a renderer's."""
    return is_read(mode, file, path) or is_renderer_path(inside(file, path))


def _is_within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))
