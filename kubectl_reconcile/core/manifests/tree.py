"""All files of one revision, for what has to look around in them: which is there, and what it holds.

A symbolic link that stays within the tree is followed, wherever it stands; one that leads out, to nothing or round in circles is a
*link* that leads nowhere. Submodules are never followed.

Pure: what a tree is; the ones that there are read a clone or a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct


class EntryKind(StrEnum):
    """What is at a path of a tree."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    """A symbolic link that leads nowhere in the tree, or a submodule: neither is followed."""
    ABSENT = "absent"


class TreeEntry(Struct, frozen=True):
    """What is at a path, and the *blob_id* of a file: equal ids mean equal bytes."""

    kind: EntryKind
    blob_id: str = ""


ABSENT: Final = TreeEntry(EntryKind.ABSENT)
FOLDER: Final = TreeEntry(EntryKind.FOLDER)
LINK: Final = TreeEntry(EntryKind.LINK)


class Tree(Protocol):
    """All files of one revision, by their paths from the root of the repository or the working tree; ``""`` is the root."""

    def look(self, path: str) -> TreeEntry:
        """Return what is at *path*, through links that stay within the tree.

        Raises:
            SourceError: the revision can't be read; or a link must be brought first (``NotHereError``, with its path).
        """

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name; nothing where none is there, or it is a link that leads nowhere.

        Raises:
            SourceError: the revision can't be read.
        """

    def read(self, path: str) -> bytes | None:
        """Return what the file at *path* holds, None where it must be brought first; of one too large, one byte more than may be read.

        Raises:
            SourceError: it can't be read.
        """

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch what the files at *paths* hold, and what is likely to be asked for next.

        Raises:
            SourceError: it can't be read.
        """


MOST_LINK_BYTES: Final = 4096
"""How long the text of a link may be."""
_MOST_LINKS: Final = 40
"""How many links are followed on one way, as in Linux."""
_MOST_STEPS: Final = 4096
"""How many names there may be on one way, with those in the texts of its links."""


def resolved(path: str, link_at: Callable[[str], str | None]) -> str | None:
    """Return the path of what is at *path* once links are followed; None where one leads out of the tree, round in circles, or too far round.

    *link_at* returns the text of the link at a path without links above it, None where no link is. A text that begins with a slash leads out.
    """
    rest, there, links, steps = [*reversed(path.split("/"))], list[str](), 0, 0
    while rest:
        name = rest.pop()
        steps += 1
        if steps > _MOST_STEPS:
            return None
        if name in {"", "."}:
            continue
        if name == "..":
            if not there:
                return None
            there.pop()
            continue
        place = "/".join([*there, name])
        text = link_at(place)
        if text is None:
            there.append(name)
            continue
        links += 1
        if links > _MOST_LINKS or not text or text.startswith("/"):
            return None
        rest += reversed(text.split("/"))
    return "/".join(there)
