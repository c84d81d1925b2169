"""What git stores by name, asked for one by one: ``git cat-file`` prints each object behind a line that announces it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from kubectl_reconcile.source.complaints import unread
from kubectl_reconcile.source.limits import MEBIBYTE
from kubectl_reconcile.source.remote import Repository
from kubectl_reconcile.source.running.process import QUIET, GitProcess, running

if TYPE_CHECKING:  # a clone reads its objects by what is here
    from kubectl_reconcile.source.clone import Clone

GONE, ABSENT = b"gone", b"absent"
"""Instead of a kind: git has ended; it has no such object."""


def announced(stream: BinaryIO) -> tuple[bytes, int]:
    """Return kind and size of what ``git cat-file --batch`` prints next."""
    header = stream.readline()
    if not header:
        return GONE, 0
    if header.split()[-1:] in ([b"missing"], [b"ambiguous"]):
        return ABSENT, 0
    kind, size = header.split()[-2:]
    return kind, int(size)


def content(stream: BinaryIO, kept: int, size: int) -> bytes | None:
    """Return the first *kept* bytes of an object of that size, and pass over the others; None if git ends before."""
    data: bytes = stream.read(kept)
    rest = size + 1 - len(data)
    while rest > 0 and (skipped := stream.read(min(rest, MEBIBYTE))):
        rest -= len(skipped)
    return None if rest else data


@dataclass(frozen=True, slots=True)
class GitObject:
    """One object of a clone: its *kind* (``blob``, ``tree``) and what it holds."""

    kind: bytes
    data: bytes


@contextlib.contextmanager
def asking(clone: Clone, repository: Repository) -> Iterator[Callable[[str], GitObject | None]]:
    """Yield what returns one object by its name, None where there is no such; git is started with the first question.

    Of a file larger than may be read, one byte more than that is returned.
    """
    with contextlib.ExitStack() as stack:
        asked: list[_Questions] = []

        def ask(name: str) -> GitObject | None:
            if not asked:
                asked.append(stack.enter_context(_questions(clone, repository)))
            return asked[0].ask(name)

        yield ask


@contextlib.contextmanager
def _questions(clone: Clone, repository: Repository) -> Iterator[_Questions]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stdin, os.fdopen(writing, "wb", buffering=0) as questions:
        place, limits = {**QUIET, **clone.place()}, clone.limits
        with running(["cat-file", "--batch"], place, limits, limits.seconds, stdin) as git:
            yield _Questions(repository, git, questions, limits.file_bytes + 1)


@dataclass(frozen=True, slots=True)
class _Questions:
    """A git that is asked for objects one by one; of each, *most* bytes are kept."""

    repository: Repository
    git: GitProcess
    questions: BinaryIO
    most: int

    def ask(self, name: str) -> GitObject | None:
        try:
            self.questions.write(f"{name}\n".encode())
        except OSError:
            raise unread(self.repository, self.git) from None
        kind, size = announced(self.git.popen.stdout)
        if kind == ABSENT:
            return None
        data = content(self.git.popen.stdout, min(size, self.most), size) if kind != GONE else None
        if data is None:
            raise unread(self.repository, self.git)
        return GitObject(kind, data)
