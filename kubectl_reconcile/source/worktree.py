"""Desired state in a local folder, or a single file: what the command line's ``-f`` names.

A folder is read with all below it, in the order of paths, under the same rules as a repository:
only manifest files, no dot-files, nothing that ``.reconcileignore`` lists. A file that is named
itself is read whatever its name. Blob ids are git's own, so a file in a folder and the same file
in a repository have one id; the digest of an unchanged file (same size, time and inode) is
remembered for as long as the source lives.

A symbolic link to what the folder has elsewhere adds nothing, since that is read where it stands. A
link to a file that isn't read otherwise (kubelet mounts a ConfigMap that way) is followed as long
as it stays within the folder; one that leads out, and one to a hidden folder, is a problem. Sockets,
pipes and devices are never opened. A file that can't be read is a problem and hides no other.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.files import (
    IGNORE_FILE,
    MOST_IGNORE_BYTES,
    SourceIgnore,
    is_manifest_path,
    is_renderer_path,
    without_unrendered,
)
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.ways import TELLING, undecided, way
from kubectl_reconcile.core.resources.sync import Render
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.limits import CEILINGS, MEBIBYTE, GitLimits, IgnoreTexts, too_much, variable
from kubectl_reconcile.source.remote import check_path
from kubectl_reconcile.source.render.reach import reached_from, root_of
from kubectl_reconcile.source.render.trees import FolderTree

if TYPE_CHECKING:  # most looks at a folder are one look
    from kubectl_reconcile.source.watch import Consulted, Watch

_CLOCK_STEP_NS = 100_000_000
"""Two writes closer than this may leave the same time on a file, so a digest that young isn't kept."""

_DEFAULTS = GitLimits()

_OVERLAY_SHA = "worktree-"
"""The sha of an overlay before it was rendered: which files it consists of is known after that."""

_NO_LINK_HINT = f"link within the folder, copy the file, or list it in {IGNORE_FILE}"


class WorktreeSource:
    """The manifest files at *location*, a folder or a file, as they are whenever they are asked for.

    With *below*, a path in the folder, only what is there is read, as in a repository; unless *recursive*, folders
    in it are left out. Paths of its revisions are relative to *location*; a single file goes by its name. What is
    there may be as much as *limits* allow of a revision: entries, depth, bytes of a file and of all. Where it *reaches*, an
    overlay outside a Git working tree may have bases beside its folder.

    Raises:
        SourceError: there is nothing there, or neither a file nor a folder.
    """

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
            raise _not_there(location, error) from None
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
        return Revision(sha, "", files, tuple(problems), found.unrendered, self._label())

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
            data = _content(file, self._limits.file_bytes)
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
        from kubectl_reconcile.source.watch import Watch, Watched  # noqa: PLC0415 - as above

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

    def _single(self) -> _Found:
        if not self.location.is_file():
            raise _not_there(self.location, FileNotFoundError(2, "No such file or directory"))
        path = self._below or self.location.name
        if not is_renderer_path(self.location.name):
            return _Found({path: self.location}).readable()
        found = _Found({path: self.location}, renderers=[path]).readable()
        hint = f"give its folder, {one_line(str(Path(self._name).parent))}"
        found.problems = [replace(each, hint=hint) for each in found.problems]
        return found

    def _walk(self) -> _Walk:
        root = self._root if self._below else self.location
        raw, label = self._render is Render.RAW, self._label()
        return _Walk(root, self._below, recursive=self._recursive, raw=raw, limits=self._limits, label=label)

    def _check_weight(self, weight: int, path: str) -> None:
        """Return if the files up to *path* aren't too large together.

        Raises:
            SourceError: they are.
        """
        most = self._limits.revision_bytes
        if weight > most:
            raise _too_much(
                self._label(), f"with {path} its manifests take more than {most // MEBIBYTE} MiB", "revision_bytes"
            )

    def _digest(self, file: Path, stamp: _Stamp) -> str:
        known = self._digests.get(str(file))
        if known is not None and known[0] == stamp:
            return known[1]
        data = _content(file, self._limits.file_bytes)
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


def _content(file: Path, most: int) -> bytes:
    """Return what is in a file; of one larger than *most* bytes, which isn't parsed, only the beginning."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe put in its place won't hold us up
    with os.fdopen(descriptor, "rb") as opened:
        size = min(os.fstat(descriptor).st_size, most)
        data = opened.read(size + 1)  # to ask for as much as there may be would set that much memory aside
        return data if len(data) <= size else data + opened.read(most - size)


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()


def _too_much(where: str, what: str, name: str) -> SourceError:
    return too_much(where, what, "give a folder in it", f"set {variable(CEILINGS[name].flag)} to more")


def _not_there(location: Path, error: Exception) -> SourceError:
    why = getattr(error, "strerror", None) or str(error)
    fault = (
        SourceFault.NO_SUCH_PATH
        if isinstance(error, FileNotFoundError | NotADirectoryError)
        else SourceFault.UNREADABLE
    )
    return SourceError(fault, f"{location}: {why}", "give a folder or a file of manifests")


# ------------------------------------------------------------------------------------- walking


class _Found(Struct):
    files: dict[str, Path] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    renderers: list[str] = field(default_factory=list)
    unrendered: tuple[str, ...] = ()

    def readable(self, ignore: SourceIgnore | None = None) -> _Found:
        """Return what is to be read of it: neither what is ignored nor what would have to be rendered."""
        ignore = ignore or SourceIgnore({})
        files = {path: file for path, file in self.files.items() if not ignore.matches(path)}
        problems = [problem for problem in self.problems if not ignore.matches(problem.path)]
        chosen = without_unrendered(files, [path for path in self.renderers if not ignore.matches(path)])
        told = [*ignore.problems, *chosen.problems, *problems]
        return _Found(dict(chosen.files), told, unrendered=chosen.unrendered)


class _Walk:
    """One walk through a folder, or what is *below* a path in it, which errors call *label*; no further than *limits* allow."""

    def __init__(self, root: Path, below: str, *, recursive: bool, raw: bool, limits: GitLimits, label: str) -> None:
        self._root, self._below, self._recursive, self._raw = root, below, recursive, raw
        self._limits, self._label, self._count = limits, label, 0
        self._deepest = limits.depth + (below.count("/") + 1 if below else 0)
        self._found = _Found()
        self._ignored = IgnoreTexts(label)
        self._links: list[tuple[str, Path]] = []

    def done(self) -> _Found:
        """Walk and return what there is.

        Raises:
            SourceError: the folder itself can't be listed, or there is too much in it.
        """
        top = self._root / self._below
        try:
            os.scandir(top).close()
        except OSError as error:
            raise _not_there(top, error) from None
        self._look_above()
        self._folder(top, f"{self._below}/" if self._below else "")
        read_anyway = set(self._found.files.values())
        for path, target in self._links:
            self._link(path, target, read_anyway)
        if self._raw:  # its own renderer's file says nothing then; those below are other folders' still
            self._found.renderers = [each for each in self._found.renderers if each.rpartition("/")[0] != self._below]
        return self._found.readable(SourceIgnore(self._ignored.by_folder))

    def ignored_here(self) -> Mapping[str, bytes]:
        """Return the ignore files of the folder itself and of those above it, by folder."""
        self._look_above()
        own = self._root / self._below / IGNORE_FILE
        if own.is_file() and not own.is_symlink():
            self._ignore_as(self._below, own)
        return self._ignored.by_folder

    def _look_above(self) -> None:
        """Take in what the folders above the path ignore."""
        parts = self._below.split("/") if self._below else []
        for length in range(len(parts)):
            folder = "/".join(parts[:length])
            file = self._root / folder / IGNORE_FILE
            if file.is_file() and not file.is_symlink():
                self._ignore_as(folder, file)

    def _folder(self, folder: Path, prefix: str) -> None:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(self._counted(listing, prefix), key=lambda entry: entry.name)
        except OSError as error:
            self._problem(prefix.rstrip("/"), f"the folder can't be read: {error.strerror}", "check its permissions")
            return
        for entry in entries:
            try:
                self._entry(entry, prefix + entry.name)
            except OSError as error:
                self._problem(prefix + entry.name, f"can't be read: {error.strerror}", "check its permissions")

    def _counted(self, listing: Iterable[os.DirEntry[str]], prefix: str) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a folder while they aren't too many, or too deep; before all of them are held."""
        for entry in listing:
            self._count += 1
            if self._count > self._limits.entries:
                what = f"up to {prefix}{entry.name} there are more than {self._limits.entries:,} files and folders"
                raise _too_much(self._label, what, "entries")
            if prefix.count("/") > self._deepest:
                what = f"{prefix[:80]}… is below more than {self._limits.depth} folders"
                raise _too_much(self._label, what, "depth")
            yield entry

    def _ignore_as(self, folder: str, file: Path) -> None:
        self._ignored.add(folder, _content(file, MOST_IGNORE_BYTES))

    def _entry(self, entry: os.DirEntry[str], path: str) -> None:
        if entry.name == IGNORE_FILE:
            if entry.is_file(follow_symlinks=False):
                self._ignore_as(path.rpartition("/")[0], Path(entry.path))
        elif entry.name.startswith("."):
            return
        elif is_renderer_path(path) and path.isprintable() and not entry.is_dir():
            self._found.renderers.append(path)
        elif entry.is_symlink():
            self._links.append((path, Path(entry.path)))
        elif entry.is_dir():
            if not self._recursive:
                return
            self._folder(Path(entry.path), f"{path}/")
        elif entry.is_file() and is_manifest_path(path):
            if path.isprintable():
                self._found.files[path] = Path(entry.path)
            else:
                self._problem(path, "a file name with control characters or not in UTF-8", "rename it")

    def _link(self, path: str, link: Path, read_anyway: set[Path]) -> None:
        try:
            target = link.resolve(strict=True)
        except (OSError, RuntimeError):
            if is_manifest_path(path):
                self._problem(path, "a symbolic link to nothing", _NO_LINK_HINT)
            return
        inside = target.is_relative_to(self._root)
        if target.is_dir():
            hidden = inside and any(part.startswith(".") for part in target.relative_to(self._root).parts)
            if hidden or not inside:
                self._problem(path, "a symbolic link to a folder that isn't read", _NO_LINK_HINT)
        elif not is_manifest_path(path) or target in read_anyway:
            return
        elif not inside:
            self._problem(path, "a symbolic link out of the folder, which isn't followed", _NO_LINK_HINT)
        elif target.is_file() and path.isprintable():
            self._found.files[path] = target
            read_anyway.add(target)

    def _problem(self, path: str, message: str, hint: str) -> None:
        shown = path if path.isprintable() else one_line(path.encode("utf-8", "backslashreplace").decode())
        self._found.problems.append(Problem(shown, 0, message, hint))
