"""Folders of commits, read once: a folder's id names all that is in it, forever, so one that is known is never read again.

Those used last are kept for all who follow a clone, so a new commit costs the folders that it changed. Links that stay within a
commit are followed.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from kubectl_reconcile.core.manifests.tree import MOST_LINK_BYTES, resolved
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.limits import MEBIBYTE, LinkSteps, raising, too_much
from kubectl_reconcile.source.running.budget import PARSING

FOLDER_MODE, LINK_MODE, SUBMODULE_MODE = "040000", "120000", "160000"
"""The modes of what isn't a file."""

NOTHING: Final = ("", "")
"""Mode and id where nothing is."""

Folder = Mapping[str, tuple[str, str]]
"""What a folder of a commit has: mode and id by name, in git's order."""

_MOST_FOLDERS: Final = 20_000
_MOST_ENTRIES: Final = 200_000
_MOST_FETCHES: Final = 100
"""How often links are fetched that lead elsewhere than those that are fetched before."""
_BROUGHT_ALONG: Final = 1000
_MOST_BYTES: Final = 64 * MEBIBYTE
"""How much is read of one folder."""


def too_many_entries(where: str, most: int) -> SourceError:
    """Return the error that there are more than *most* files and folders."""
    what = f"there are more than {most:,} files and folders"
    return too_much(where, what, "follow a folder of it by path", raising("entries"))


class _KnownFolders:
    """Folders by clone and id."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._known: OrderedDict[tuple[Path, str], Folder] = OrderedDict()
        self._entries = 0

    def find(self, key: tuple[Path, str]) -> Folder | None:
        with self._guard:
            if (found := self._known.get(key)) is not None:
                self._known.move_to_end(key)
            return found

    def keep(self, key: tuple[Path, str], folder: Folder) -> None:
        with self._guard:
            self._entries += len(folder) - len(self._known.get(key, ()))
            self._known[key] = folder
            while self._entries > _MOST_ENTRIES or len(self._known) > _MOST_FOLDERS:
                _, gone = self._known.popitem(last=False)
                self._entries -= len(gone)


_KNOWN: Final = _KnownFolders()


_TOPS: Final[dict[tuple[Path, str], str]] = {}
"""The ids of commits' own folders, by clone and commit: a push has all who follow the repository ask for the same two."""
_MOST_TOPS: Final = 1024


class NotHereError(SourceError):
    """What the link at *path* says isn't in the clone yet."""

    def __init__(self, path: str) -> None:
        super().__init__(SourceFault.UNREADABLE, f"the link {path} isn't here yet")
        self.path = path


class CommitFolders:
    """The folders of the commit *sha* in a clone; *bring* fetches links of a partial clone by their ids. Without it they lead nowhere, or are an error where *must* is set."""

    def __init__(
        self, clone: Clone, sha: str, bring: Callable[[Iterable[str]], None] | None = None, *, must: bool = False
    ) -> None:
        self._clone, self._sha, self._bring, self._must = clone, sha, bring, must
        self._fetches = 0
        self._steps = LinkSteps(f"{clone.repository}")
        self._texts: dict[str, str] = {}

    def at(self, path: str) -> tuple[str, str]:
        """Return mode and id of what is at *path*, through links; a link's own where it leads nowhere in the commit, and both empty where nothing is.

        Raises:
            SourceError: the commit can't be read from the clone.
        """
        found = self._plain(path)
        if found[0] != LINK_MODE:
            return found
        real = self.real(path)
        there = self._plain(real) if real is not None else NOTHING
        return found if there == NOTHING else there

    def real(self, path: str) -> str | None:
        """Return the path of what is at *path* once links are followed; None where one leads nowhere in the commit.

        Raises:
            SourceError: the commit can't be read from the clone, or has too many links on the ways that were followed.
        """
        return resolved(path, lambda place: self._link_at(place, path))

    def _plain(self, path: str) -> tuple[str, str]:
        """Return the same without following links: of a path through one, what the link is."""
        found = FOLDER_MODE, self.top()
        for name in filter(None, path.split("/")):
            if found[0] in {LINK_MODE, SUBMODULE_MODE}:
                return found
            if found[0] != FOLDER_MODE:
                return NOTHING
            found = self.folder(found[1]).get(name, NOTHING)
        return found

    def _link_at(self, path: str, link: str) -> str | None:
        self._steps.take(path, link)
        mode, blob = self._plain(path)
        if mode != LINK_MODE:
            return None
        if blob not in self._texts:
            self._texts[blob] = self._text(blob, path)
        return self._texts[blob]

    def _text(self, blob: str, path: str) -> str:
        """Return what a link says, nothing of one that says too much."""
        found = self._clone.reader.ask(blob, MOST_LINK_BYTES + 1)
        if found is None and self._clone.is_partial and self._must and self._bring is None:
            raise NotHereError(path)
        if found is None and self._bring is not None:
            self._fetches += 1
            if self._fetches > _MOST_FETCHES:
                what = f"its symbolic links lead to others that have to be fetched more than {_MOST_FETCHES} times"
                raise too_much(f"{self._clone.repository}", what, "have links lead where the files are")
            self._bring(dict.fromkeys([blob, *self._beside(path)]))
            found = self._clone.reader.ask(blob, MOST_LINK_BYTES + 1)
        text = found.data if found is not None else b""
        return text.decode(errors="surrogateescape") if len(text) <= MOST_LINK_BYTES else ""

    def _beside(self, path: str) -> list[str]:
        """Return the links in the folder of one: who follows one follows others."""
        mode, folder = self._plain(path.rpartition("/")[0])
        links = (blob for kind, blob in self.folder(folder).values() if kind == LINK_MODE)
        return list(itertools.islice(links, _BROUGHT_ALONG)) if mode == FOLDER_MODE else []

    def top(self) -> str:
        """Return the id of the commit's own folder.

        Raises:
            SourceError: the commit can't be read from the clone.
        """
        key = self._clone.folder, self._sha
        if (known := _TOPS.get(key)) is not None:
            return known
        [found] = self._clone.reader.facts([f"{self._sha}^{{tree}}"])
        if found is None:
            raise self._unreadable()
        if len(_TOPS) >= _MOST_TOPS:
            _TOPS.clear()
        _TOPS[key] = found.name
        return found.name

    def _unreadable(self) -> SourceError:
        return SourceError(SourceFault.CORRUPT, f"a folder of {self._sha[:7]} can't be read from the local clone")

    def folder(self, name: str) -> Folder:
        """Return what the folder of that id has.

        Raises:
            SourceError: it can't be read from the clone, or has too many entries.
        """
        key = self._clone.folder, name
        if (known := _KNOWN.find(key)) is not None:
            return known
        found = self._clone.reader.ask(name, _MOST_BYTES)
        if found is None or found.kind != b"tree":
            raise self._unreadable()
        most = self._clone.limits.entries
        with PARSING.room(len(found.data), self._clone.limits.parsing_bytes):
            folder = dict(itertools.islice(_entries(found.data, len(self._sha) // 2), most + 1))
        if len(folder) > most or len(found.data) > _MOST_BYTES:
            raise too_many_entries(f"{self._clone.repository}", most)
        _KNOWN.keep(key, folder)
        return folder

    def below(self, top: str, prefix: str) -> Iterator[tuple[str, str, str]]:
        """Yield mode, id and path of all below the folder of id *top*, a folder before what it has; paths begin with *prefix*.

        Raises:
            SourceError: as ``folder``.
        """
        ways = [(prefix, iter(self.folder(top).items()))]
        while ways:
            where, rest = ways[-1]
            for name, (mode, found) in rest:
                yield mode, found, f"{where}{name}"
                if mode == FOLDER_MODE:
                    ways.append((f"{where}{name}/", iter(self.folder(found).items())))
                    break
            else:
                ways.pop()

    def difference(
        self, before: str, after: str, prefix: str
    ) -> Iterator[tuple[str, tuple[str, str], tuple[str, str]]]:
        """Yield the path of each entry that isn't the same below two folders, by their ids, with what it was and what it is.

        A folder comes before what it has; paths begin with *prefix*. Folders that are the same aren't read. An empty id is of no folder.

        Raises:
            SourceError: as ``folder``.
        """
        was, now = (self.folder(name) if name else {} for name in (before, after))
        for name in {**was, **now} if was != now else ():
            one, other = was.get(name, NOTHING), now.get(name, NOTHING)
            if one != other:
                yield f"{prefix}{name}", one, other
                below = [found if mode == FOLDER_MODE else "" for mode, found in (one, other)]
                yield from self.difference(below[0], below[1], f"{prefix}{name}/") if any(below) else ()


def _entries(tree: bytes, id_bytes: int) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield name, mode and id of each entry of a folder as git stores it: mode, space, name, zero byte, id, and the next."""
    at = 0
    while (end := tree.find(b"\0", at)) >= 0:
        mode, _, name = tree[at:end].partition(b" ")
        at = end + 1 + id_bytes
        yield (
            name.decode(errors="surrogateescape"),
            (mode.decode(errors="replace").zfill(6), tree[end + 1 : at].hex()),
        )
