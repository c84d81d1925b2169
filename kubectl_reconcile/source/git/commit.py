"""Putting files into a repository by a commit that is pushed to a branch, without checking anything out.

The commit follows the one that was looked at, and differs from it in the given files alone. It is made by whoever is
at the keyboard, with their name, their git configuration and their credentials. A branch that has moved on
in the meantime is never overwritten: git refuses the push.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.source import GitSource, Ref, RefKind
from kubectl_reconcile.source.remote import Repository, check_path, check_ref

_FILE = "100644"
_PUSH_TIMEOUT_S = 120.0


class FilesCommit(Struct, frozen=True):
    """Where to put files: onto *branch* of the repository at *url*, on top of the commit *parent*; *signed* by whoever is at the keyboard."""

    url: str
    parent: str
    branch: str
    signed: bool = False

    def commit(self, files: Mapping[str, bytes], message: str, cache_dir: Path) -> str:
        """Commit *files*, push, and return the new commit.

        Raises:
            SourceError: the repository can't be read or pushed to, or the branch has moved on.
        """
        branch = check_ref(self.branch)
        repository = Repository.of(self.url, allow_local=True, user_config=True)
        GitSource(repository, Ref(RefKind.COMMIT, self.parent), cache_dir=cache_dir).require(self.parent)
        clone = Clone(repository, cache_dir)
        tree = self._tree(clone, files)
        made = _said(clone, "commit-tree", *["-S"] * self.signed, tree, "-p", self.parent, "-m", message)
        refs = f"{made}:refs/heads/{branch}"
        try:
            clone.talk(["push", "--quiet", "--", repository.url, refs], _PUSH_TIMEOUT_S)
        except SourceError as error:
            if "somebody pushed" in str(error):
                message = f"{repository}: branch {branch} has commits that {self.parent[:7]} lacks"
                raise SourceError(SourceFault.REFUSED, message, "give another --branch, and merge it there") from None
            raise
        return made

    def _tree(self, clone: Clone, files: Mapping[str, bytes]) -> str:
        """Return the tree of the parent with *files* put into it."""
        blobs = {check_path(path): _blob(clone, data) for path, data in files.items()}
        with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            clone.run(["read-tree", self.parent], environment=index)
            lines = "".join(f"{_FILE} {blob}\t{path}\0" for path, blob in blobs.items()).encode()
            clone.run(["update-index", "--add", "-z", "--index-info"], stdin=lines, environment=index)
            return clone.run(["write-tree", "--missing-ok"], environment=index).decode().strip()


def _blob(clone: Clone, data: bytes) -> str:
    return clone.run(["hash-object", "-w", "--stdin"], stdin=data).decode().strip()


def _said(clone: Clone, *arguments: str) -> str:
    return clone.run(list(arguments)).decode().strip()
