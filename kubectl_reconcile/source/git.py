"""Desired state in a Git repository: one path of it, at a branch, a tag or a commit.

Each URL has one bare *clone* in the cache folder, shared by all who follow it, in this process
and others. A clone is fetched by ref with that ref's whole history (it answers *which commit* changed a line),
and only when ``git ls-remote`` says that the ref moved: an unchanged remote costs one small
request. Where git and the server allow it, of the files only those below the path come along, in one request more;
older ones when somebody asks what they held. A rewritten branch is followed; a clone that turns out damaged is recreated.

Files are read from git's object store by blob id. Nothing is ever checked out, so no filter,
hook or attribute of a repository has a say, and no link leads anywhere: symbolic links and
submodules are left out, with a problem.

All calls block and may be made from any thread.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.resources.sync import Render
from kubectl_reconcile.source.cloned.clone import Clone
from kubectl_reconcile.source.cloned.refs import ClonedRefs
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.missing_files import MissingFiles
from kubectl_reconcile.source.remote import Credentials, Repository, check_path, check_ref
from kubectl_reconcile.source.render.trees import CommitTree
from kubectl_reconcile.source.tree import blobs_at, listed, rfc3339, weighed

__all__ = ["Credentials", "GitSource", "Ref", "RefKind", "Repository", "SourceError", "SourceFault"]


class RefKind(StrEnum):
    """What a ref's name names."""

    BRANCH = "branch"
    """Follow the branch, wherever it is moved."""
    TAG = "tag"
    """The commit that the tag points at, annotated or not; followed should it be moved."""
    COMMIT = "commit"
    """One commit by its full hash, for ever."""
    ANY = "any"
    """The branch of that name, else the tag, else the commit, also by its first digits. Without a name, the default branch.

    A name that begins with ``refs/`` is that very ref; ``pull/12/head`` and the like are found too.
    """


@dataclass(frozen=True, slots=True)
class Ref:
    """What to follow in a repository."""

    kind: RefKind = RefKind.ANY
    name: str = ""

    @classmethod
    def of(cls, *, branch: str = "", tag: str = "", commit: str = "") -> Self:
        """Return the one that is given, as in a Sync; the commit before the tag before the branch."""
        if commit:
            return cls(RefKind.COMMIT, commit)
        if tag:
            return cls(RefKind.TAG, tag)
        return cls(RefKind.BRANCH, branch) if branch else cls()

    def __str__(self) -> str:
        if not self.name:
            return "the default branch"
        return f'"{self.name}"' if self.kind is RefKind.ANY else f'{self.kind} "{self.name}"'


_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_DIGITS = re.compile(r"[0-9a-f]{4,64}")
_NOTHING = "0" * 40
_COMMIT_FORM = "%H%x1f%an%x1f%ct%x1f%s"


@dataclass(frozen=True, slots=True)
class _RemoteRef:
    """Where a ref is on the server: its full *name*, its commit, and the annotated *tag* in between, if any. A commit is its own name."""

    name: str
    sha: str
    tag: str = ""


class GitSource:
    """One path of a repository at a ref; see the module. *timeout_s* is for one answer of the server; a fetch has all the time that git may have.

    Raises:
        SourceError: the ref or the path is none that git may be given.
    """

    def __init__(
        self,
        repository: Repository,
        ref: Ref | None = None,
        path: str = "",
        *,
        cache_dir: Path,
        timeout_s: float = 60.0,
        fetch_timeout_s: float | None = None,
        limits: GitLimits | None = None,
        render: Render = Render.AUTO,
    ) -> None:
        self.repository = repository
        self._render = render
        self.ref = ref or Ref()
        self.path = check_path(path)
        if self.ref.name:
            check_ref(self.ref.name)
        if self.ref.kind is RefKind.COMMIT and not _HASH.fullmatch(self.ref.name):
            raise SourceError(SourceFault.REFUSED, f"{self.ref} is no full hash", "give all 40 digits, in lower case")
        self._clone = Clone(repository, cache_dir, limits)
        self._refs = ClonedRefs(self._clone)
        longest_s = self._clone.limits.seconds
        self._timeout_s, self._fetch_timeout_s = min(timeout_s, longest_s), fetch_timeout_s or longest_s
        self._state = threading.Lock()
        self._admitted = False
        self._listed: Revision | None = None
        self._sizes: dict[str, int] = {}
        self.ref_name = self.tip = self.tag = ""
        """The full name of the ref, the commit that it was at when it was asked last, and the annotated tag that it was at, if any."""
        self.files = MissingFiles(self._clone, repository, self._fetch_timeout_s, lambda: self._renew(partial=False))

    def remote_sha(self) -> str:
        """Ask the server which commit the ref is at now. Fetches nothing.

        Raises:
            SourceError: there is no answer, or no such ref.
        """
        return self._remote().sha

    def fetch(self) -> str:
        """Bring the clone up to the ref and return its commit; one small request where nothing moved.

        Raises:
            SourceError: the server can't be reached or refuses, or has no such ref.
        """
        if self.ref.kind is RefKind.COMMIT and self._admitted and self._refs.at(f"commits/{self.ref.name}"):
            self.tip = self.ref.name
            return self.ref.name  # a commit never moves
        remote = self._remote()
        self._admitted = True
        name = self.ref_name = remote.name
        self.tip, self.tag = remote.sha, remote.tag
        if not (name == remote.sha != self.ref.name and self._refs.has(remote.sha)) and not _holds(self._refs, remote):
            self.tip = self._clone.repairing(lambda: self._fetch(name, _ours(name)))
            self.tag = self._refs.tag_at(_ours(name))
        return self.tip

    def revision(self) -> Revision:
        """Return the revision that the ref is at now, fetching what is missing.

        Raises:
            SourceError: as ``fetch``; or the commit has nothing at the path.
        """
        return self.revision_at(self.fetch())

    def revision_at(self, sha: str) -> Revision:
        """Return the revision of the commit *sha*, which must be in the clone: any that the ref has passed.

        Raises:
            SourceError: it isn't there, or has nothing at the path.
        """
        with self._state:
            if self._listed is None or self._listed.sha != sha:
                self.require(sha)
                self._listed = None
                found = self._clone.repairing(
                    lambda: listed(self._clone, sha, self.path, self.files.bring, self._render),
                    renew=self._renew,
                )
                self.files.has_brought(sha)
                self._sizes = weighed(self._clone, found, self._sizes)
                self._listed = found
            return self._listed

    def tree(self, sha: str) -> AbstractContextManager[CommitTree]:
        """Return all files of the commit *sha*, for the time of a block.

        Raises:
            SourceError: it isn't in the clone.
        """
        self.require(sha)
        return contextlib.nullcontext(CommitTree(self._clone, self.files, sha))

    def require(self, sha: str) -> None:
        """Return if the commit *sha* is in the clone, or a damaged clone should have it.

        Raises:
            SourceError: it isn't there, or the text is no full hash.
        """
        if not _HASH.fullmatch(sha):
            raise SourceError(SourceFault.REFUSED, f'"{sha}" is no full hash of a commit')
        if not self._refs.has(sha) and not self._promised(sha):
            message = f"{self.repository}: the local clone has no commit {sha[:7]}"
            raise SourceError(SourceFault.NO_SUCH_REF, message, "was the branch rewritten?")

    def read(self, blob_id: str) -> bytes:
        """Return the content of a file that a revision lists. Of one larger than is parsed, only the beginning.

        Raises:
            SourceError: the clone has no such blob.
        """
        [(_, data)] = self.read_many([blob_id])
        return data

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each of *blob_ids* with its content; 10,000 small ones take about a third of a second.

        Raises:
            SourceError: as ``read``.
        """
        ids = list(dict.fromkeys(blob_ids))
        done = 0
        for last in (False, True):
            try:
                for blob_id, data in zip(ids[done:], self._clone.objects(ids[done:]), strict=True):
                    yield blob_id, _present(self.repository, blob_id, data)
                    done += 1
            except SourceError as error:
                if last or error.fault is not SourceFault.CORRUPT:
                    raise
                self._renew()
                self.files.bring(ids[done:])
            else:
                return

    def read_at(self, sha: str, path: str, *, offline: bool = False) -> bytes | None:
        """Return what the file at *path* held in the commit *sha*, or None where either can't be had; *offline* asks no server."""
        path = check_path(path)
        if not _HASH.fullmatch(sha) or not path or not self._clone.exists():
            return None
        [data] = self._clone.objects([f"{sha}:{path}"])
        if data is None and self._clone.is_partial and not offline:
            self.files.bring_revision(sha, self.path)
            data = next(self.versions(path, [sha]))
        return data

    def versions(self, path: str, shas: Sequence[str]) -> Iterator[bytes | None]:
        """Yield what the file at *path* held in each of these commits, None where either isn't in the clone."""
        path = check_path(path)
        if not path or not all(map(_HASH.fullmatch, shas)) or not self._clone.exists():
            return iter([None] * len(shas))
        if not self._clone.is_partial:
            return self._clone.objects([f"{sha}:{path}" for sha in shas])
        ids = blobs_at(self._clone, path, shas)
        with contextlib.suppress(SourceError):  # without the network, the versions that are here have to do
            self.files.bring(dict.fromkeys(filter(None, ids)))
        return self._clone.objects([blob or _NOTHING for blob in ids])

    def commit(self, sha: str) -> Commit | None:
        """Return who made the commit *sha*, when and why; None where it isn't in the clone."""
        if not _HASH.fullmatch(sha) or not self._refs.has(sha):
            return None
        output = self._clone.run(["log", "-z", "--max-count=1", f"--format={_COMMIT_FORM}", sha])
        return _commit(output.decode(errors="replace").rstrip("\0"))

    def resolve(self, text: str) -> str:
        """Return the full hash of the commit that *text*, its first digits, means among those of the clone; empty if none.

        Raises:
            SourceError: there are several (``REFUSED``).
        """
        if not _DIGITS.fullmatch(text) or not self._clone.exists():
            return ""
        listed = self._clone.run(["rev-parse", f"--disambiguate={text}"]).decode().split()
        found = [each for each in listed if self._refs.has(each)]
        if len(found) > 1:
            raise SourceError(SourceFault.REFUSED, f"{text} may be {' or '.join(found[:3])}", "give more digits")
        return found[0] if found else ""

    def commits_touching(self, path: str, sha: str, *, since: str = "", limit: int = 100) -> tuple[Commit, ...]:
        """Return the commits up to *sha* that changed *path* (a file, a folder, or ``""``), newest first.

        Those that *since* has already are left out. Empty where the clone doesn't hold the commits.
        """
        path = check_path(path)
        if not all(_HASH.fullmatch(each) for each in (sha, since) if each) or not self._clone.exists():
            return ()
        span = [sha, f"^{since}"] if since else [sha]
        where = ["--", path] if path else []
        command = ["log", "-z", f"--max-count={limit}", f"--format={_COMMIT_FORM}", *span, *where]
        try:
            output = self._clone.run(command)
        except SourceError:
            return ()
        return tuple(_commit(line) for line in output.decode(errors="replace").split("\0") if line)

    def _remote(self) -> _RemoteRef:
        """Return where the ref is on the server."""
        name, kind = self.ref.name, self.ref.kind
        wanted = {
            RefKind.BRANCH: [f"refs/heads/{name}"],
            RefKind.TAG: [f"refs/tags/{name}^{{}}", f"refs/tags/{name}"],
            RefKind.COMMIT: [],
            RefKind.ANY: _names_of(name),
        }[kind]
        asked = ["ls-remote", "--quiet", "--", self.repository.url, *(wanted or ["HEAD"])]
        lines = self._clone.talk(asked, self._timeout_s).decode(errors="replace").splitlines()
        found = {full: sha for sha, _, full in (line.partition("\t") for line in lines) if _HASH.fullmatch(sha)}
        for full in wanted:
            if full in found:
                plain = full.removesuffix("^{}")
                self._clone.by_sha256 = len(found[full]) == 64
                return _RemoteRef(plain, found[full], found.get(plain, "") if plain != full else "")
        if kind in {RefKind.COMMIT, RefKind.ANY} and _HASH.fullmatch(name):
            self._clone.by_sha256 = len(name) == 64
            return _RemoteRef(name, name)
        if kind is RefKind.ANY and _DIGITS.fullmatch(name) and (sha := self._abbreviated(name)):
            return _RemoteRef(sha, sha)
        raise self._no_such_ref()

    def _abbreviated(self, digits: str) -> str:
        """Return the commit that begins with *digits*, if the clone has it or the default branch brings it."""
        return self.resolve(digits) or (self._fetch("HEAD", _DEFAULT) and self.resolve(digits))

    def _no_such_ref(self) -> SourceError:
        if not self.ref.name:
            return SourceError(SourceFault.NO_SUCH_REF, f"{self.repository}: it is empty", "push a first commit")
        hints = {
            RefKind.BRANCH: "has it been deleted or renamed?",
            RefKind.TAG: "has it been pushed?",
            RefKind.COMMIT: "is it on any branch of that repository?",
            RefKind.ANY: "give a branch, a tag, a ref such as refs/pull/12/head, or the digits of a commit",
        }
        return SourceError(SourceFault.NO_SUCH_REF, f"{self.repository}: it has no {self.ref}", hints[self.ref.kind])

    def _promised(self, sha: str) -> bool:
        """Return whether a ref of the clone says that it has *sha*: if it hasn't, the clone is damaged."""
        return sha in self._refs.tips()

    def _renew(self, *, partial: bool = True) -> None:
        """Recreate the clone, with this ref in it, and with all its files unless *partial*."""
        with self._clone.locked(self._fetch_timeout_s):
            if partial:
                self._clone.discard()
            else:
                self._clone.begin(partial=False)
        name = self._remote().name
        self._fetch(name, _ours(name))

    def _fetch(self, name: str, ours: str) -> str:
        target = f"refs/{ours}"
        with self._clone.locked(self._fetch_timeout_s):
            self._clone.ready()
            try:
                self._clone.fetch(f"+{name}:{target}", self._fetch_timeout_s)
            except SourceError as error:
                if error.fault is SourceFault.NO_SUCH_REF:
                    raise self._no_such_ref() from None
                raise
            sha = self._refs.at(ours)
            if sha:
                return sha
            if self._refs.is_other_than_commit(ours):
                raise SourceError(SourceFault.NO_SUCH_REF, f"{self.repository}: {self.ref} is no commit")
            raise SourceError(SourceFault.CORRUPT, f"{self.repository}: the local clone is damaged")


_DEFAULT = "default/HEAD"
"""What the server's default branch is called in the clone, below ``refs/``."""


def _present(repository: Repository, blob_id: str, data: bytes | None) -> bytes:
    if data is None:
        raise SourceError(SourceFault.CORRUPT, f"{repository}: the local clone has no blob {blob_id}")
    return data


def _names_of(name: str) -> list[str]:
    """Return the full names that *name* may stand for, the likeliest first."""
    if not name:
        return ["HEAD"]
    if name.startswith("refs/"):
        return [f"{name}^{{}}", name]
    return [f"refs/heads/{name}", f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/{name}"]


def _ours(name: str) -> str:
    """Return what a ref of the server is called in the clone, below ``refs/``."""
    return f"commits/{name}" if _HASH.fullmatch(name) else name.removeprefix("refs/")


def _holds(refs: ClonedRefs, remote: _RemoteRef) -> bool:
    """Tell whether the clone has what the ref is at now; a tag may be another one at the same commit."""
    ours = _ours(remote.name)
    return refs.at(ours) == remote.sha and (not remote.tag or refs.tag_at(ours) == remote.tag)


def _commit(line: str) -> Commit:
    sha, author, when, subject = line.strip("\n").split("\x1f", 3)
    return Commit(sha, one_line(author), rfc3339(when), one_line(subject))
