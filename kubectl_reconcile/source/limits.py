"""What a Git server and a repository may make us hold; beyond it a source is refused, and only the Sync that follows it suffers.

Each ceiling has a flag of the daemon, and a variable of that name for commands: ``--git-max-files`` is
``KUBECTL_RECONCILE_GIT_MAX_FILES``. An error names both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Self

from msgspec import Struct, field

from kubectl_reconcile.core.manifests.limits import MAX_BYTES
from kubectl_reconcile.core.manifests.which_files import IGNORE_FILE, MOST_IGNORE_BYTES, MOST_IGNORE_FILES
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.running.ending import ending

MEBIBYTE: Final = 1024 * 1024

SAID_KEPT_BYTES: Final = 64 * 1024
"""How much of what git complains of is kept, to tell what is wrong."""
MOST_OUTPUT_BYTES: Final = 64 * MEBIBYTE
"""How much one git command may print that isn't listened to piece by piece."""
MOST_REFS_BYTES: Final = MEBIBYTE
"""How much a server may say of its refs, of which one is wanted."""
LONGEST_PATH_BYTES: Final = 16 * 1024
"""How long the path of a file may be; no file system has longer ones."""


class Ceiling(NamedTuple):
    """The flag of a ceiling, and how many bytes or things its unit stands for."""

    flag: str
    unit: int = 1


CEILINGS: Final[Mapping[str, Ceiling]] = {
    "memory_bytes": Ceiling("--git-max-memory", MEBIBYTE),
    "clone_bytes": Ceiling("--git-max-clone", MEBIBYTE),
    "seconds": Ceiling("--git-max-seconds"),
    "said_bytes": Ceiling("--git-max-said", MEBIBYTE),
    "entries": Ceiling("--git-max-entries"),
    "depth": Ceiling("--git-max-depth"),
    "files": Ceiling("--git-max-files"),
    "file_bytes": Ceiling("--max-file", MEBIBYTE),
    "revision_bytes": Ceiling("--max-revision", MEBIBYTE),
    "objects": Ceiling("--max-objects"),
    "values": Ceiling("--max-values"),
    "parsing_bytes": Ceiling("--max-parsing", MEBIBYTE),
}
"""The ceilings by the names of their fields."""


def variable(flag: str) -> str:
    """Return the environment variable that says the same as a flag."""
    return f"KUBECTL_RECONCILE_{flag.removeprefix('--').replace('-', '_').upper()}"


def raising(name: str) -> str:
    """Return the hint that says how the ceiling *name* is raised."""
    flag = CEILINGS[name].flag
    return f"start the daemon with a larger {flag}; a command takes {variable(flag)}"


def too_much(where: str, what: str, *ways: str) -> SourceError:
    """Return the error that a source at *where* holds too much of something, with the *ways* out of it."""
    return SourceError(SourceFault.REFUSED, f"{where}: {what}", ", or ".join(way for way in ways if way))


class IgnoreTexts(Struct):
    """The ignore files of the source at *where*, by folder, held while they are few and small enough."""

    where: str
    by_folder: dict[str, bytes] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, folder: str, text: bytes) -> None:
        """Take in the ignore file of *folder*.

        Raises:
            SourceError: it is one too many, or too much with those before.
        """
        self.by_folder[folder] = text
        self._bytes += len(text)
        this, merge = (
            f"with {folder or '.'}/{IGNORE_FILE} there are",
            "use fewer ignore files, in higher folders",
        )
        if len(self.by_folder) > MOST_IGNORE_FILES:
            raise too_much(self.where, f"{this} more than {MOST_IGNORE_FILES} ignore files", merge)
        if self._bytes > MOST_IGNORE_BYTES:
            raise too_much(self.where, f"{this} more than {MOST_IGNORE_BYTES // MEBIBYTE} MiB of ignore files", merge)


class Counted(Struct):
    """How much has been met of what a source holds at a *path*; *beyond* makes the error that there is too much, of a sentence and a ceiling's name.

    What is met through links counts as well: a few bytes may be folders of folders without end, with no file in them.
    """

    limits: GitLimits
    path: str
    beyond: Callable[[str, str], SourceError]
    entries: int = 0
    files: int = 0

    def take(self, file: str, *, is_folder: bool) -> None:
        """Count one more entry, at the path *file*.

        Raises:
            SourceError: it is one too many, too deep, or has too long a name; or nobody waits any more.
        """
        self.entries += 1
        self.files += not is_folder
        if self.entries % _LOOKS_EVERY == 0:
            ending().check()
        if self.entries > self.limits.entries:
            raise self.beyond(f"there are more than {self.limits.entries:,} files and folders", "entries")
        if self.files > self.limits.files:
            raise self.beyond(f"there are more than {self.limits.files:,} files", "files")
        if file.count("/") > self.limits.depth + (self.path.count("/") + 1 if self.path else 0):
            raise self.beyond(f"{file[:_SHOWN]}… is below more than {self.limits.depth} folders", "depth")
        if len(file) > LONGEST_PATH_BYTES:
            raise self.beyond(f"{file[:_SHOWN]}… isn't a path that a file can have", "")


_LOOKS_EVERY: Final = 1000
_SHOWN: Final = 80


class LinkSteps(Struct):
    """How far links of the source at *where* are followed altogether: each may be short, and lead through all others."""

    where: str
    left: int = 300_000

    def take(self, place: str, link: str) -> None:
        """Count a look at *place*, on the way of *link*: so many steps as there are folders above it.

        Raises:
            SourceError: there are too many; or nobody waits any more.
        """
        ending().check()
        self.left -= place.count("/") + 1
        if self.left < 0:
            what = f"too many symbolic links lead through one another, up to {link[:_SHOWN]}"
            raise too_much(self.where, what, "have links lead where the files are")


class GitLimits(Struct, frozen=True):
    """Ceilings.

    Of each git process: *memory_bytes* of data, *seconds* by the clock and of a processor, and *said_bytes* that it, or the server
    through it, complains of. *clone_bytes* are those of one repository on disk. Of one revision at a path: *entries* (files and
    folders), *depth* of folders, *files*, and *revision_bytes* of those that are read; *file_bytes* of one of them.
    *objects* of one Sync, and *values* in their files: each takes some 70 to 200 bytes of memory, and 32 characters of text count as
    one more. *parsing_bytes* are held at a time of files that are being parsed, of all Syncs together.

    Where the kernel can't limit a process's memory (macOS) nothing does.
    """

    memory_bytes: int = 2048 * MEBIBYTE
    clone_bytes: int = 5120 * MEBIBYTE
    files: int = 100_000
    seconds: int = 600
    said_bytes: int = 16 * MEBIBYTE
    entries: int = 500_000
    depth: int = 100
    file_bytes: int = MAX_BYTES
    revision_bytes: int = 256 * MEBIBYTE
    objects: int = 100_000
    values: int = 4_000_000
    parsing_bytes: int = 64 * MEBIBYTE

    @classmethod
    def of_environment(cls) -> Self:
        """Return the ceilings of a command.

        Raises:
            SourceError: a variable holds no number above zero.
        """
        given = {name: os.environ.get(variable(ceiling.flag), "") for name, ceiling in CEILINGS.items()}
        return cls(**{name: _number(name, text) * CEILINGS[name].unit for name, text in given.items() if text})


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        message = f"{variable(CEILINGS[name].flag)} isn't a number above zero"
        raise SourceError(SourceFault.REFUSED, message, f"it stands for {CEILINGS[name].flag} of the daemon")
    return int(text)
