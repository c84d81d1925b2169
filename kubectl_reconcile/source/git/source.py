"""Desired state in a Git repository: one path of it, at a branch, a tag or a commit.

Each URL has one bare *clone* in the cache folder, shared by all who follow it, in this process
and others. A clone is fetched by ref with that ref's whole history (it answers *which commit* changed a line),
and only when the server says that the ref moved (``asking``, else ``git ls-remote``): an unchanged remote costs one small
request. Where git and the server allow it, of the files only those below the path come along, in one request more;
older ones when somebody asks what they held. A rewritten branch is followed; a clone that turns out damaged is recreated.

Files are read from git's object store by blob id. Nothing is ever checked out, so no filter,
hook or attribute of a repository has a say. Symbolic links are followed within the commit; those that lead out of it, and
submodules, are left out, with a problem.

All calls block and may be made from any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Commit, Revision
from kubectl_reconcile.core.manifests.tree import TreeEntry
from kubectl_reconcile.core.rendering.rendered import still_holds
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.source.base import Verified
from kubectl_reconcile.source.errors import SourceError, SourceFault
from kubectl_reconcile.source.git.cloned.clone import Clone
from kubectl_reconcile.source.git.cloned.entries import Entry
from kubectl_reconcile.source.git.cloned.folders import CommitFolders
from kubectl_reconcile.source.git.cloned.objects import Place
from kubectl_reconcile.source.git.followed_ref import HASH, FollowedRef
from kubectl_reconcile.source.git.missing_files import MissingFiles
from kubectl_reconcile.source.git.server_refs import Ref, RefKind
from kubectl_reconcile.source.git.tree import (
    ListedFiles,
    blobs_at,
    commit_of,
    differs,
    listed,
    listed_after,
    read_at,
    rfc3339,
    way_inputs_at,
    weighed,
)
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.remote import Credentials, Repository, check_path
from kubectl_reconcile.source.render.trees import CommitTree

__all__ = ["Credentials", "GitSource", "Ref", "RefKind", "Repository", "SourceError", "SourceFault"]


_FolderIn = tuple[Place | None, tuple[str, str]]
"""A folder in a clone: which clone, and the folder's mode and id."""

_NOTHING = "0" * 40


class GitSource(FollowedRef):
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
        guarded: bool = False,
    ) -> None:
        super().__init__(repository, ref or Ref(), cache_dir, limits, timeout_s, fetch_timeout_s, guarded=guarded)
        self._render = render
        self.path = check_path(path)
        self._state = threading.Lock()
        self._listed: ListedFiles | None = None
        self._listed_in: Place | None = None
        self._sizes: dict[str, int] = {}
        self.came_along: _FolderIn | None = None
        """The folder at the path whose files somebody else's request has brought."""
        self.files = MissingFiles(self._clone, repository, self._fetch_timeout_s, lambda: self._renew(partial=False))

    @property
    def followed(self) -> Self:
        """This very source: a server moves it."""
        return self

    @property
    def past(self) -> Self:
        """This very source: its earlier commits can be read."""
        return self

    @property
    def history(self) -> Self:
        """This very source: it remembers."""
        return self

    @property
    def commits(self) -> Self:
        """This very source: its revisions are commits."""
        return self

    @property
    def verified(self) -> Verified | None:
        """None: nobody asks for signatures."""
        return None

    @property
    def folder(self) -> None:
        """None: it isn't a folder."""

    def has_moved(self, read: Revision, consulted: Mapping[str, TreeEntry]) -> bool:
        """Tell whether something else is asked for than the revision *read*, by what the server was heard to say; asks nobody. Blocks.

        What was rendered hangs on all that was *consulted* for it. Where that isn't known, it may have moved. Where it hasn't, the ref counts as read.
        """
        now = self.seen()
        if now is None:
            return True
        try:
            if self._asks_for_else(read, now.sha, consulted):
                return True
        except SourceError:
            return True
        self.is_at(now)
        return False

    def _asks_for_else(self, read: Revision, sha: str, consulted: Mapping[str, TreeEntry]) -> bool:
        if read.overlay is None:
            return self.differs(read.sha, sha)
        if not consulted or self.way_at(read.sha) != self.way_at(sha):
            return True
        with self.tree(sha) as tree:
            return not still_holds(consulted, tree)

    def bring(self, sha: str) -> None:
        """Fetch what the commit *sha* holds at the path, as far as it can be read; tried once for each."""
        self.files.bring_revision(sha, self.path)

    def way_at(self, sha: str) -> tuple[Entry, ...]:
        """Return all that decides how the folder at the path becomes objects in the commit *sha*, by ids.

        Raises:
            SourceError: the commit isn't in the clone.
        """
        return way_inputs_at(self._clone, sha, self.path)

    def differs(self, one: str, other: str) -> bool:
        """Tell whether something that decides which manifests a commit has at the path isn't the same in two commits.

        Raises:
            SourceError: a commit isn't in the clone.
        """
        known = self._listed
        links = known.links if known is not None and known.revision.sha in {one, other} else ()
        return differs(self._clone, one, other, self.path, links)

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
            if self._listed is None or self._listed.revision.sha != sha:
                self.require(sha)
                before = self._listed if self._listed_in == self._clone.reader.place() else None
                self._listed = None
                found = self._clone.repairing(lambda: self._list(sha, before), renew=self._renew)
                self.files.has_brought(sha)
                self._sizes = weighed(self._clone, found.revision, {**self._sizes, **self.files.sizes})
                self._listed_in = self._clone.reader.place()
                self._listed = found
            revision, tag = self._listed.revision, self.tag_of(sha)
            if tag and revision.commit is not None:
                return replace(revision, commit=replace(revision.commit, tag=tag))
            return revision

    def _list(self, sha: str, before: ListedFiles | None) -> ListedFiles:
        """Return what the commit *sha* has at the path, by difference from what was listed *before* where that will do."""

        def bring(ids: Iterable[str]) -> None:
            self._bring(ids, sha)

        found = listed_after(before, self._clone, sha, self.path, bring) if before else None
        return found or listed(self._clone, sha, self.path, bring, self._render)

    def _bring(self, blob_ids: Iterable[str], sha: str) -> None:
        """Fetch files of the commit *sha*, together with those that others are about to read who follow the same ref."""
        known = self._sizes if self._listed_in == self._clone.reader.place() else {}
        along: list[tuple[GitSource, _FolderIn]] = []
        self.files.bring((each for each in blob_ids if each not in known), lambda: self._read_by_others(sha, along))
        for other, folder in along:
            other.came_along = folder

    def _read_by_others(self, sha: str, along: list[tuple[GitSource, _FolderIn]]) -> Iterator[str]:
        """Yield the files of others, and note in *along* whose. Those that an earlier request brought are left out, so that each request brings others."""
        folders, place = CommitFolders(self._clone, sha), self._clone.reader.place()
        for other in self._server.followers():
            if other is self or not isinstance(other, GitSource) or other.ref != self.ref:
                continue
            with contextlib.suppress(SourceError):  # which they will be told themselves
                folder = place, folders.at(other.path)
                if folder != other.came_along and not other.has_listed(folders):
                    yield from read_at(self._clone, folders, other.path)
                    along.append((other, folder))

    def has_listed(self, folders: CommitFolders) -> bool:
        """Tell whether the path was listed before as it is in *folders*, of whichever commit."""
        return self._listed is not None and folders.at(self.path) == self._listed.top[:2]

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
            SourceError: it isn't there, or the text isn't a full hash.
        """
        if not HASH.fullmatch(sha):
            raise SourceError(SourceFault.REFUSED, f"'{sha}' isn't a full hash of a commit")
        if not self._may_look() or (not self._refs.has(sha) and not self._promised(sha)):
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
        """Return what the file at *path* held in the commit *sha*, or None where either can't be read; *offline* asks no server."""
        path = check_path(path)
        if not HASH.fullmatch(sha) or not path or not self._may_look():
            return None
        [data] = self._clone.objects([f"{sha}:{path}"])
        if data is None and self._clone.is_partial and not offline:
            self.files.bring_revision(sha, self.path)
            data = next(self.versions(path, [sha]))
        return data

    def versions(self, path: str, shas: Sequence[str]) -> Iterator[bytes | None]:
        """Yield what the file at *path* held in each of these commits, None where either isn't in the clone."""
        path = check_path(path)
        if not path or not all(map(HASH.fullmatch, shas)) or not self._may_look():
            return iter([None] * len(shas))
        if not self._clone.is_partial:
            return self._clone.objects([f"{sha}:{path}" for sha in shas])
        ids = blobs_at(self._clone, path, shas)
        with contextlib.suppress(SourceError):  # without the network, the versions that are here have to do
            self.files.bring(dict.fromkeys(filter(None, ids)))
        return self._clone.objects([blob or _NOTHING for blob in ids])

    def commit(self, sha: str) -> Commit | None:
        """Return who made the commit *sha*, when and why; None where it isn't in the clone."""
        if not HASH.fullmatch(sha) or not self._may_look() or not self._refs.has(sha):
            return None
        return _commit(self._clone, sha)

    def commits_touching(self, path: str, sha: str, *, since: str = "", limit: int = 100) -> tuple[Commit, ...]:
        """Return the commits up to *sha* that changed *path* (a file, a folder, or ``""``), newest first.

        Those that *since* has already are left out. Empty where the clone doesn't hold the commits.
        """
        path = check_path(path)
        if not all(HASH.fullmatch(each) for each in (sha, since) if each) or not self._may_look():
            return ()
        span = [sha, f"^{since}"] if since else [sha]
        where = ["--", path] if path else []
        command = ["log", f"--max-count={limit}", "--format=%H", *span, *where]
        try:
            output = self._clone.run(command)
        except SourceError:
            return ()
        return tuple(_commit(self._clone, each) for each in output.decode().split())


def _present(repository: Repository, blob_id: str, data: bytes | None) -> bytes:
    if data is None:
        raise SourceError(SourceFault.CORRUPT, f"{repository}: the local clone has no blob {blob_id}")
    return data


def _commit(clone: Clone, sha: str) -> Commit:
    """Return who made a commit, when and why. One that nobody can read is nobody's, and of 1970, as git shows it: it hides no other."""
    try:
        return commit_of(clone, sha)
    except SourceError:
        return Commit(sha, "", rfc3339("0"), "")
