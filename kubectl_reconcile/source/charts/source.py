"""Desired state in a chart of a Helm repository, with nothing beside it: one version, known by the digest of its archive.

Nothing moves: another version is another source. It has no files of its own either, since the chart is put beside them where it is rendered; so its *tree* is empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Self

from msgspec import Struct

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.tree import ABSENT, FOLDER, EntryKind, TreeEntry
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.source.errors import SourceError, SourceFault


class ChartSource(Struct, frozen=True):
    """The chart that *pin* says, and no files beside it."""

    pin: ChartSpec

    @property
    def followed(self) -> None:
        """None: no server moves a version that is pinned."""

    @property
    def past(self) -> Self:
        """This very source: of its only revision there are no files."""
        return self

    @property
    def history(self) -> None:
        """None: an archive doesn't tell who changed what."""

    @property
    def commits(self) -> None:
        """None: a version is no commit."""

    @property
    def verified(self) -> None:
        """None: it is known by its digest. The chart itself may have to be signed (``base.Chart``)."""

    @property
    def folder(self) -> None:
        """None: it isn't a folder."""

    def revision(self) -> Revision:
        """Return the version that is pinned; nobody is asked before it is rendered."""
        return Revision(self.pin.revision, "", {}, overlay="", is_chart=True)

    def read(self, blob_id: str) -> bytes:
        """Return nothing: no revision lists a file.

        Raises:
            SourceError: always.
        """
        raise SourceError(SourceFault.UNREADABLE, f"{self.pin}: no file {blob_id} is beside it")

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield nothing of no files.

        Raises:
            SourceError: one is asked for.
        """
        for each in blob_ids:
            yield each, self.read(each)

    def tree(self, sha: str) -> AbstractContextManager[NoFiles]:
        """Return that there are no files beside the chart.

        Raises:
            SourceError: *sha* is another version, or another archive.
        """
        if sha != self.pin.revision:
            raise SourceError(SourceFault.NO_SUCH_REF, f"{self.pin}: it isn't {sha}")
        return nullcontext(_NO_FILES)

    def read_at(self, sha: str, path: str, *, offline: bool = False) -> bytes | None:  # noqa: ARG002 - nobody is asked
        """Return None: there are no files beside a chart, in whichever version."""
        return None


class NoFiles(Struct, frozen=True):
    """A tree in which nothing is."""

    def look(self, path: str) -> TreeEntry:
        """Return that nothing is at *path*, or its root."""
        return ABSENT if path.strip("/") else FOLDER

    def names(self, path: str) -> Mapping[str, EntryKind]:  # noqa: ARG002 - nothing is anywhere
        """Return nothing."""
        return {}

    def read(self, path: str) -> bytes | None:
        """Return nothing.

        Raises:
            SourceError: always.
        """
        raise SourceError(SourceFault.NO_SUCH_PATH, f"there is no file {path}")

    def bring(self, paths: Sequence[str]) -> None:
        """Fetch nothing."""


_NO_FILES: Final = NoFiles()
