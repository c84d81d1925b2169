"""One state of the source: which manifest files there are, and what each holds.

A *revision* is a commit of a Git repository, one archive of a chart, or a local folder as it is now. It lists *files*:
path -> *blob id*, the name of the file's content. Equal ids mean equal bytes, so whatever is
derived from a file (its manifests, its problems) is computed once per blob id and kept.

Paths are relative to the root of the repository (or of the folder), with ``/`` between names,
and hold no control characters. Only files that may hold manifests are listed; what was left out
and deserves a word (a symbolic link out of the repository, a submodule, an unreadable file) is among the *problems*.

A *source* yields revisions. Its calls block, for as long as its own timeouts allow; call them
in a thread. Sources never execute or expand anything that a repository holds, and follow nothing of it to anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct, field

from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.revisions import is_folder, short_of


class Revision(Struct, frozen=True):
    """The manifest files of one commit, or of a folder.

    *sha* is the commit, for a chart alone ``1.2.3@sha256:…``, or for a folder ``worktree-`` and a digest of its files; equal shas mean
    equal files. *committed_at* is the committer's time in RFC 3339 and UTC
    (``2026-11-20T23:43:10Z``), empty where there is none. *files* is ordered by path. *unrendered* are the
    folders of which nothing is listed, since they are the input of a renderer (kustomize, Helm).
    *stamps* tell, by path, the values of variables apart that stand in a file. *path* is what was looked at, as problems name it. Of an *overlay*, a folder by its path from the root, nothing is listed before
    it was rendered: what it renders to is in files that it doesn't hold. Then *files* are those that objects come from, and
    their ids are of what came from each. One that *is_chart* is rendered by Helm. Where it *is_over*, what the Sync itself says changes the objects; one that *is_plain* are manifests
    even so. *folder* is what was looked at by its path from the root of the tree. *commit* says who made it, None for a folder. Of what can't be rendered, *tried* tells apart
    what was read for that: somebody may have meant it to help.
    """

    sha: str
    committed_at: str
    files: Mapping[str, str]
    problems: tuple[Problem, ...] = ()
    unrendered: tuple[str, ...] = ()
    path: str = "."
    stamps: Mapping[str, str] = field(default_factory=dict)
    overlay: str | None = None
    is_chart: bool = False
    is_over: bool = False
    is_plain: bool = False
    folder: str = ""
    commit: Commit | None = None
    tried: str = ""

    @property
    def short(self) -> str:
        """The revision as people quote it."""
        return short_of(self.sha)

    @property
    def is_of_folder(self) -> bool:
        """Whether these are files as they are now, which somebody may change."""
        return is_folder(self.sha)

    def emptiness(self) -> Problem:
        """Return the problem that there is no object, for who found none in the files."""
        if self.files:
            hint = "is the path right? to apply nothing, delete or suspend the Sync"
            return Problem(self.path, 0, f"there are no objects in its manifest files ({len(self.files)})", hint)
        if self.is_chart:
            hint = "do its values switch everything off? to apply nothing, delete or suspend the Sync"
            return Problem(self.path, 0, "the chart renders to no objects", hint)
        hint = "is the path right? manifests are files named *.yaml, *.yml or *.json"
        return Problem(self.path, 0, "there are no manifest files at this path", hint)


class Commit(Struct, frozen=True):
    """Who changed something in Git, when and why; *subject* is the message's first line, *tag* what led to it where a range of versions is followed.

    Author, subject and tag hold no control characters and are safe to show.
    """

    sha: str
    author: str
    committed_at: str
    subject: str
    tag: str = ""


class ReadableSource(Protocol):
    """Where desired state comes from: a Git repository at a ref, or a local folder."""

    def revision(self) -> Revision:
        """Return the newest revision, fetching it where that is needed.

        Raises:
            SourceError: it can't be read; the message says why and the hint what to do.
        """

    def read(self, blob_id: str) -> bytes:
        """Return the content that a revision of this source listed as *blob_id*.

        Raises:
            SourceError: no revision of this source listed it, or it is gone since.
        """

    def tree(self, sha: str) -> AbstractContextManager[Tree]:
        """Return all files of the revision *sha*, for the time of a block.

        Raises:
            SourceError: it isn't there.
        """

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each of *blob_ids* with its content, faster than one ``read`` each.

        Raises:
            SourceError: as ``read``.
        """


class History(Protocol):
    """A source that remembers."""

    def commits_touching(self, path: str, sha: str, *, since: str = "", limit: int = 100) -> tuple[Commit, ...]:
        """Return the commits up to *sha* that changed *path*, newest first, without those that *since* has."""

    def versions(self, path: str, shas: Sequence[str]) -> Iterator[bytes | None]:
        """Yield what the file at *path* held in each of these commits."""
