"""A working tree beside the repository that it belongs to: what somebody is about to commit, against what is applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Self

from msgspec import Struct

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.git.source import GitSource


class Checkout(Struct, frozen=True):
    """A working tree, with the history of the repository that it belongs to."""

    files: WorktreeSource
    repository: GitSource

    @property
    def followed(self) -> None:
        """None: files change by hand."""

    @property
    def past(self) -> Self:
        """This very source: it has the commits of the repository."""
        return self

    @property
    def history(self) -> None:
        """None: who changed a file that isn't committed is in no history."""

    @property
    def commits(self) -> None:
        """None: what isn't committed is in no commit."""

    @property
    def verified(self) -> None:
        """None: what isn't committed isn't signed."""

    @property
    def folder(self) -> WorktreeSource:
        """The working tree."""
        return self.files

    def revision(self) -> Revision:
        """Return the files as they are now.

        Raises:
            SourceError: the folder can't be read.
        """
        return self.files.revision()

    def read(self, blob_id: str) -> bytes:
        """Return the content that the newest revision lists as *blob_id*.

        Raises:
            SourceError: the file has changed since, or can't be read any more.
        """
        return self.files.read(blob_id)

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each of *blob_ids* with its content.

        Raises:
            SourceError: as ``read``.
        """
        return self.files.read_many(blob_ids)

    def tree(self, sha: str) -> AbstractContextManager[Tree]:
        """Return all files of the folder, or those of the commit *sha*, for the time of a block.

        Raises:
            SourceError: the repository has no such commit.
        """
        return self.files.tree(sha) if sha.startswith("worktree-") else self.repository.tree(sha)

    def read_at(self, sha: str, path: str, *, offline: bool = False) -> bytes | None:
        """Return what the file at *path* held in the commit *sha*, which is fetched where it isn't there; *offline* asks no server."""
        found = self.repository.read_at(sha, path, offline=offline)
        if found is not None or offline:
            return found
        try:
            self.repository.fetch()
        except SourceError:
            return None  # without the network, a preview just doesn't tell drift from what Git asks
        return self.repository.read_at(sha, path)
