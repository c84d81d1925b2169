"""What a source asked for at an earlier commit, and what it asks for now beside that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress

from msgspec import Struct

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import Tree
from kubectl_reconcile.engine.sync.desired import Desired, ManifestReader, with_values
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.engine.sync.variables import Lines
from kubectl_reconcile.source.base import Followed
from kubectl_reconcile.source.errors import SourceError


def read_with_bases(target: Target, applied: str) -> Desired:
    """Return what the source asks for now, having fetched what the revision *applied* last held. Blocks.

    So that plans tell git from drift without a server.

    Raises:
        SourceError: the source can't be read.
    """
    desired = target.read()
    if applied and applied != desired.revision.sha and target.source.followed is not None:
        if desired.revision.overlay is None:
            target.source.followed.bring(applied)
        else:
            with suppress(SourceError):
                target.reader.rendered_at(target.source, applied, desired.revision)
    return desired


def read_at(target: Target, sha: str, reader: ManifestReader) -> Desired | None:
    """Return what the source asked for at an earlier commit, None where that can't be read, or has to be signed. Blocks."""
    source = target.source.followed
    if not sha or source is None or target.source.verified is not None:
        return None
    with suppress(SourceError):
        desired = reader.read(_AtCommit(source, sha), target.sync, target.values.held)
        return with_values(desired, target.values, Lines(target.source, desired.revision))
    return None


class _AtCommit(Struct, frozen=True):
    """A source as it was at the commit *sha*."""

    source: Followed
    sha: str

    def revision(self) -> Revision:
        """Return the revision of the commit."""
        return self.source.revision_at(self.sha)

    def read(self, blob_id: str) -> bytes:
        """Return the content of one of its files."""
        return self.source.read(blob_id)

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the contents of some of its files."""
        return self.source.read_many(blob_ids)

    def tree(self, sha: str) -> AbstractContextManager[Tree]:
        """Return all files of a commit, for the time of a block."""
        return self.source.tree(sha)
