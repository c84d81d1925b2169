"""Desired state in a local folder, or a single file: what the command line's ``-f`` names.

A folder is read with all below it, in the order of paths, under the same rules as a repository:
only manifest files, no dot-files, nothing that ``.reconcileignore`` lists. A file that is named
itself is read whatever its name. Blob ids are git's own, so a file in a folder and the same file
in a repository have one id; the digest of an unchanged file (same size, time and inode) is
remembered for as long as the source lives.

A symbolic link is followed as in a repository: as long as it stays within the working tree, or within the folder where that is in
none (kubelet mounts a ConfigMap that way). What is read where it really is isn't read again. One that leads nowhere there is a problem. Sockets,
pipes and devices are never opened. A file that can't be read is a problem and hides no other.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.manifests.which_files import (
    SourceIgnore,
    is_renderer_path,
)
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.ways import TELLING, undecided, way
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.folder.walk import FoundFiles, Walk, content_of, not_there, too_much_in
from kubectl_reconcile.source.limits import MEBIBYTE, GitLimits
from kubectl_reconcile.source.remote import check_path
from kubectl_reconcile.source.render.reach import reached_from, root_of
from kubectl_reconcile.source.render.trees import FolderTree

if TYPE_CHECKING:  # most looks at a folder are one look
    from kubectl_reconcile.source.folder.watch import Consulted, Watch

_CLOCK_STEP_NS = 100_000_000
"""Two writes closer than this may leave the same time on a file, so a digest that young isn't kept."""

_DEFAULTS = GitLimits()

_OVERLAY_SHA = "worktree-"
"""The sha of an overlay before it was rendered: which files it consists of is known after that."""


class WorktreeSource:
    """The manifest files at *location*, a folder or a file, as they are whenever they are asked for.

    With *below*, a path in the folder, only what is there is read, as in a repository; unless *recursive*, folders
    in it are left out. Paths of its revisions are relative to *location*; a single file goes by its name. What is
    there may be as much as *limits* allow of a revision: entries, depth, bytes of a file and of all. Where it *reaches*, an
    overlay outside a Git working tree may have bases beside its folder.

    Raises:
        SourceError: there is nothing there, or neither a file nor a folder.
    """

    followed = past = history = commits = verified = None
    """What a folder can't; see `source.base`."""

    @property
    def folder(self) -> Self:
        """This very source."""
        return self

    def __init__(
        self,
        location: Path,
        below: str = "",
        *,
        recursive: bool = True,
        limits: GitLimits = _DEFAULTS,
        render: Render = Render.AUTO,
        reaches: bool = False,
    ) -> None:
        self._render = render
        self._root, self._below, self._recursive, self._limits = location, check_path(below), recursive, limits
        location = location / self._below
        self._name = str(location)
        try:
            mode = location.stat().st_mode
            self._root = self._root.resolve(strict=True)
            self.location = location.resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise not_there(location, error) from None
        if self._below and not self.location.is_relative_to(self._root):
            raise SourceError(SourceFault.REFUSED, f"{location} is outside {self._root}")
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise SourceError(SourceFault.UNREADABLE, f"{location}: neither a file nor a folder")
        self._is_file = stat.S_ISREG(mode)
        self._reached = reached_from(self.location) if reaches and not self._is_file else self.location
        self._digests: dict[str, tuple[_Stamp, str]] = {}
        self._files: dict[str, Path] = {}
        self._fresh: dict[str, bytes] = {}
        self._fresh_bytes = 0
        self._state = threading.Lock()

    def revision(self) -> Revision:
        """Return the files as they are now. Its sha is a digest of them: it is the same while they are.

        Raises:
            SourceError: the location is gone, the folder itself can't be read, or it holds too much.
        """
        with self._state:
            goes = self._way()
            if goes is Render.AUTO:
                return Revision(_OVERLAY_SHA, "", {}, (undecided(self._overlay()),), ("",), self._label())
            if goes is not Render.RAW:
                is_chart = goes is Render.HELM
                return Revision(_OVERLAY_SHA, "", {}, path=self._label(), overlay=self._overlay(), is_chart=is_chart)
            found = self._single() if self._is_file else self._walk().done()
            files: dict[str, str] = {}
            problems = list(found.problems)
            self._fresh, self._fresh_bytes, weight = {}, 0, 0
            for path, file in sorted(found.files.items()):
                try:
                    stamp = _Stamp.of(file.stat())
                    weight += min(stamp.size, self._limits.file_bytes)  # no more is read of one that is too large
                    self._check_weight(weight, path)
                    files[path] = self._digest(file, stamp)
                except OSError as error:
                    problems.append(Problem(path, 0, f"can't be read: {error.strerror}", "check its permissions"))
            self._files = {blob_id: found.files[path] for path, blob_id in files.items()}
            there = {str(file) for file in found.files.values()}
            self._digests = {name: known for name, known in self._digests.items() if name in there}
        digest = hashlib.sha256("".join(f"{path}\0{blob_id}\n" for path, blob_id in files.items()).encode())
        sha = f"worktree-{digest.hexdigest()[:32]}"
        folder = posixpath.dirname(self._overlay()) if self._is_file else self._overlay()
        return Revision(sha, "", files, tuple(problems), found.unrendered, self._label(), folder=folder)

    @contextmanager
    def tree(self, sha: str) -> Iterator[FolderTree]:  # noqa: ARG002 - a folder has no other revision than that of now
        """Yield all files of the working tree as they are now; see ``root_of``."""
        yield FolderTree(self._top(), self._limits.file_bytes)

    def read(self, blob_id: str) -> bytes:
        """Return the content that the newest revision lists as *blob_id*.

        Raises:
            SourceError: the file has changed since, or can't be read any more.
        """
        if (data := self._fresh.pop(blob_id, None)) is not None:
            return data
        file = self._files.get(blob_id)
        if file is None:
            raise SourceError(SourceFault.UNREADABLE, f"{self.location}: the newest revision has no file {blob_id[:7]}")
        try:
            data = content_of(file, self._limits.file_bytes)
        except OSError as error:
            raise SourceError(SourceFault.UNREADABLE, f"{file}: {error.strerror}") from None
        if _blob_id(data) != blob_id:
            raise SourceError(SourceFault.UNREADABLE, f"{file}: it changed while it was being read", "try again")
        return data

    def read_many(self, blob_ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield each of *blob_ids* with its content.

        Raises:
            SourceError: as ``read``.
        """
        for blob_id in dict.fromkeys(blob_ids):
            yield blob_id, self.read(blob_id)

    def place_of(self, path: str, *, rendered: bool = False) -> Path:
        """Return where the file is that revisions call *path*, whether it is there or not; what is *rendered* is called from the top of the tree.

        Raises:
            SourceError: the path leads out of the folder, or out of the tree.
        """
        if self._is_file:
            return self.location
        root = self._top().resolve() if rendered else self._root
        place = (root / check_path(path)).resolve()
        if not place.is_relative_to(root):
            raise SourceError(SourceFault.REFUSED, f"{path} is outside {root}")
        return place

    def watch(self, callback: Callable[[], None], *, quiet_s: float = 0.1, consulted: Consulted = dict) -> Watch:
        """Call *callback* (in another thread) after files changed and then rested for *quiet_s*.

        A burst of changes makes one call. Changes may be reported that leave the revision as it is. *consulted* says what was
        consulted to render it, as often as it is asked. Close the watch to end it.
        """
        from kubectl_reconcile.source.folder.watch import Watch, Watched  # noqa: PLC0415 - as above

        return Watch(Watched(self.location, self._is_file, self._top(), consulted), callback, quiet_s)

    def _way(self) -> Render:
        """Return which way the location goes, by those of its files that tell and aren't ignored."""
        if self._is_file or self._render is not Render.AUTO:
            return Render.RAW if self._is_file else self._render
        there = [name for name in TELLING if os.path.lexists(self.location / name)]
        if not there:
            return Render.RAW
        prefix = f"{self._below}/" if self._below else ""
        ignore = SourceIgnore(self._walk().ignored_here())
        return way(self._render, (name for name in there if not ignore.matches(prefix + name)))

    def _top(self) -> Path:
        """Return the folder whose files an overlay here may ask for."""
        if self._below:
            return self._root
        top = root_of(self.location)
        return top if os.path.lexists(top / ".git") or self._reached.is_relative_to(top) else self._reached

    def _overlay(self) -> str:
        inside = self.location.relative_to(self._top()).as_posix()
        return "" if inside == "." else inside

    def _label(self) -> str:
        """Return what problems call the location: a single file goes by its name, as in its revisions."""
        return one_line(self.location.name if self._is_file else self._name)

    def _single(self) -> FoundFiles:
        if not self.location.is_file():
            raise not_there(self.location, FileNotFoundError(2, "No such file or directory"))
        path = self._below or self.location.name
        if not is_renderer_path(self.location.name):
            return FoundFiles({path: self.location}).readable()
        found = FoundFiles({path: self.location}, renderers={path: self.location}).readable()
        hint = f"give its folder, {one_line(str(Path(self._name).parent))}"
        found.problems = [replace(each, hint=hint) for each in found.problems]
        return found

    def _walk(self) -> Walk:
        root = self._root if self._below else self.location
        raw, label = self._render is Render.RAW, self._label()
        tree = root_of(root)
        tree = tree if os.path.lexists(tree / ".git") else root
        return Walk(root, self._below, tree, recursive=self._recursive, raw=raw, limits=self._limits, label=label)

    def _check_weight(self, weight: int, path: str) -> None:
        """Return if the files up to *path* aren't too large together.

        Raises:
            SourceError: they are.
        """
        most = self._limits.revision_bytes
        if weight > most:
            raise too_much_in(
                self._label(), f"with {path} its manifests take more than {most // MEBIBYTE} MiB", "revision_bytes"
            )

    def _digest(self, file: Path, stamp: _Stamp) -> str:
        known = self._digests.get(str(file))
        if known is not None and known[0] == stamp:
            return known[1]
        data = content_of(file, self._limits.file_bytes)
        blob_id = _blob_id(data)
        if self._fresh_bytes + len(data) <= self._limits.parsing_bytes:
            self._fresh[blob_id] = data  # it is most likely asked for next
            self._fresh_bytes += len(data)
        if time.time_ns() - max(stamp.modified_ns, stamp.changed_ns) > _CLOCK_STEP_NS:
            self._digests[str(file)] = (stamp, blob_id)
        return blob_id


class _Stamp(Struct, frozen=True):
    """What moves whenever somebody writes to a file."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int

    @classmethod
    def of(cls, facts: os.stat_result) -> Self:
        return cls(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino)


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
