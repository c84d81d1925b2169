"""Taking a path of a repository back to what it held at an earlier commit, by a new commit that is pushed.

Nothing is checked out and no history is rewritten: the new commit follows the branch's tip and differs from it at the
path alone. It is made by whoever is at the keyboard, with their name, their git configuration and their credentials.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.source import GitSource, Ref, RefKind
from kubectl_reconcile.source.remote import Repository, check_path, check_ref

_GONE = "0" * 40
_SUBMODULE = "160000"
_PUSH_TIMEOUT_S = 120.0


class RestoreCommit(Struct, frozen=True):
    """What to take back: *path* on *branch* (empty: the default branch) to what it held at *sha*, by a commit that is signed if *signed*."""

    url: str
    branch: str
    path: str
    sha: str
    signed: bool = False

    def commit(self, message: str, cache_dir: Path) -> tuple[str, str]:
        """Commit and push; return the new commit and the branch. Returns "" for the commit if nothing would change.

        Raises:
            SourceError: the repository can't be read or pushed to, or has nothing at the path.
        """
        repository = Repository.of(self.url, allow_local=True, user_config=True)
        clone = Clone(repository, cache_dir)
        branch = check_ref(self.branch or _default_branch(clone, repository))
        source = GitSource(repository, Ref(RefKind.BRANCH, branch), cache_dir=cache_dir)
        tip = source.fetch()
        tree = self._tree(clone, tip)
        source.files.bring(_files(_listed(clone, self.sha, check_path(self.path))))
        if tree == _asked(clone, "rev-parse", f"{tip}^{{tree}}"):
            return "", branch
        made = _asked(clone, "commit-tree", *["-S"] * self.signed, tree, "-p", tip, "-m", message)
        clone.talk(["push", "--quiet", "--", repository.url, f"{made}:refs/heads/{branch}"], _PUSH_TIMEOUT_S)
        return made, branch

    def _tree(self, clone: Clone, tip: str) -> str:
        """Return the tree of *tip* with the path as it was at the earlier commit."""
        path = check_path(self.path)
        before, after = _listed(clone, tip, path), _listed(clone, self.sha, path)
        if not after:
            raise SourceError(
                SourceFault.NO_SUCH_PATH, f"{without_credentials(self.url)}: there is no {path} at {self.sha[:7]}"
            )
        removed = (f"0 {_GONE}\t{name}" for name in before.keys() - after.keys())
        put = (f"{entry}\t{name}" for name, entry in after.items())
        with tempfile.TemporaryDirectory(prefix="kubectl-reconcile-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            clone.run(["read-tree", tip], environment=index)
            lines = "".join(f"{line}\0" for line in (*removed, *put)).encode(errors="surrogateescape")
            clone.run(["update-index", "-z", "--index-info"], stdin=lines, environment=index)
            return clone.run(["write-tree", "--missing-ok"], environment=index).decode().strip()


def _listed(clone: Clone, sha: str, path: str) -> dict[str, str]:
    """Return all entries at or below *path* in a commit: mode and id by name."""
    where = ["--", path] if path else []
    output = clone.run(["ls-tree", "-r", "-z", "--full-tree", sha, *where]).decode(errors="surrogateescape")
    entries = (line.partition("\t") for line in output.split("\0") if line)
    return {name: f"{facts.split(' ')[0]} {facts.split(' ')[2]}" for facts, _, name in entries}


def _files(entries: Mapping[str, str]) -> list[str]:
    """Return the ids of the files among *entries*; a submodule's is a commit of another repository."""
    return [entry.partition(" ")[2] for entry in entries.values() if not entry.startswith(_SUBMODULE)]


def _default_branch(clone: Clone, repository: Repository) -> str:
    answer = clone.talk(["ls-remote", "--symref", "--", repository.url, "HEAD"], _PUSH_TIMEOUT_S)
    for line in answer.decode(errors="replace").splitlines():
        if line.startswith("ref: refs/heads/") and line.endswith("\tHEAD"):
            return line.removeprefix("ref: refs/heads/").removesuffix("\tHEAD")
    raise SourceError(SourceFault.NO_SUCH_REF, f"{repository}: it doesn't say which branch is its default")


def _asked(clone: Clone, *arguments: str) -> str:
    return clone.run(list(arguments)).decode().strip()
