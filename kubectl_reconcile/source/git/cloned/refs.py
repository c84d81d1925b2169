"""What the refs of a clone are at. They bear the server's names; see ``git``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.cloned.objects import ObjectFacts

T = TypeVar("T")


class ClonedRefs:
    """The refs and commits of a clone, as far as they are here; a damaged one has none."""

    def __init__(self, clone: Clone) -> None:
        self._clone = clone

    def at(self, name: str) -> str:
        """Return the commit that our ref *name* (below ``refs/``) is at; empty where there is none."""
        if not self._clone.exists():
            return ""
        found = self._facts(f"refs/{name}^{{commit}}")
        return found.name if found else ""

    def has(self, sha: str) -> bool:
        """Return whether the commit *sha* is here and whole enough to be looked at."""
        return self._clone.exists() and self._facts(f"{sha}^{{commit}}") is not None

    def tag_at(self, name: str) -> str:
        """Return the annotated tag that our ref *name* (below ``refs/``) is at; empty where it is at anything else."""
        found = self._facts(f"refs/{name}") if self._clone.exists() else None
        return found.name if found and found.kind == b"tag" else ""

    def tips(self) -> frozenset[str]:
        """Return what our refs point at, whether or not it is there."""
        listing = ["for-each-ref", "--format=%(objectname)"]
        listed = _unless_damaged(lambda: self._clone.run(listing).decode()) if self._clone.exists() else None
        return frozenset((listed or "").split())

    def is_other_than_commit(self, name: str) -> bool:
        """Return whether our ref *name* points at a file or a folder instead of a commit."""
        found = self._facts(f"refs/{name}^{{}}")
        return found is not None and found.kind in {b"blob", b"tree"}

    def _facts(self, name: str) -> ObjectFacts | None:
        return _unless_damaged(lambda: self._clone.reader.facts([name])[0])


def _unless_damaged(look: Callable[[], T]) -> T | None:
    """Return what *look* finds; None where the clone can't be read."""
    try:
        return look()
    except SourceError as error:
        if error.fault is SourceFault.ENDED:
            raise
        return None
