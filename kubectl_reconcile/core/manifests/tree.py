"""All files of one revision, for what has to look around in them: which is there, and what it holds.

Pure: what a tree is; the ones that there are read a clone or a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct


class EntryKind(StrEnum):
    """What is at a path of a tree."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    """A symbolic link or a submodule: neither is followed."""
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
        """Return what is at *path*; nothing is beyond a link.

        Raises:
            SourceError: the revision can't be read.
        """

    def names(self, path: str) -> Mapping[str, EntryKind]:
        """Return what is in the folder at *path* by name; nothing where none is there, or it is a link.

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
