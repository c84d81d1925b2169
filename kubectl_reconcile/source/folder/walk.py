"""One walk through a local folder: which files are read of it, and what is wrong with others. See ``worktree``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.tree import resolved
from kubectl_reconcile.core.manifests.which_files import (
    IGNORE_FILE,
    MOST_IGNORE_BYTES,
    SourceIgnore,
    is_manifest_path,
    is_renderer_path,
    without_unrendered,
)
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.source.errors import SourceError, SourceFault, one_line
from kubectl_reconcile.source.git.cloned.entries import NOWHERE, NOWHERE_HINT
from kubectl_reconcile.source.limits import CEILINGS, Counted, GitLimits, IgnoreTexts, LinkSteps, too_much, variable
from kubectl_reconcile.source.render.trees import link_text


def content_of(file: Path, most: int) -> bytes:
    """Return what is in a file; of one larger than *most* bytes, which isn't parsed, only the beginning."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe put in its place won't hold us up
    with os.fdopen(descriptor, "rb") as opened:
        size = min(os.fstat(descriptor).st_size, most)
        data = opened.read(size + 1)  # to ask for as much as there may be would set that much memory aside
        return data if len(data) <= size else data + opened.read(most - size)


def too_much_in(where: str, what: str, name: str) -> SourceError:
    """Return the error that there is too much of something in a folder, and the setting that allows more."""
    return too_much(where, what, "give a folder in it", f"set {variable(CEILINGS[name].flag)} to more" if name else "")


def not_there(location: Path, error: Exception) -> SourceError:
    """Return the error that a folder or file can't be read."""
    why = getattr(error, "strerror", None) or str(error)
    fault = (
        SourceFault.NO_SUCH_PATH
        if isinstance(error, FileNotFoundError | NotADirectoryError)
        else SourceFault.UNREADABLE
    )
    return SourceError(fault, f"{location}: {why}", "give a folder or a file of manifests")


class FoundFiles(Struct):
    """What a walk has found: files by the paths that revisions give them, problems, and renderers' files, whose folders are *unrendered*."""

    files: dict[str, Path] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    renderers: dict[str, Path] = field(default_factory=dict)
    unrendered: tuple[str, ...] = ()

    def readable(self, ignore: SourceIgnore | None = None) -> FoundFiles:
        """Return what is to be read of it: neither what is ignored nor what would have to be rendered."""
        ignore = ignore or SourceIgnore({})
        files = {path: file for path, file in self.files.items() if not ignore.matches(path)}
        problems = [problem for problem in self.problems if not ignore.matches(problem.path)]
        chosen = without_unrendered(files, [path for path in self.renderers if not ignore.matches(path)])
        told = [*ignore.problems, *chosen.problems, *problems]
        return FoundFiles(dict(chosen.files), told, unrendered=chosen.unrendered)


class Walk:
    """One walk through a folder, or what is *below* a path in it, which errors call *label*; no further than *limits* allow. Links lead anywhere in *tree*."""

    def __init__(
        self, root: Path, below: str, tree: Path, *, recursive: bool, raw: bool, limits: GitLimits, label: str
    ) -> None:
        self._root, self._below, self._tree, self._recursive, self._raw = root, below, tree, recursive, raw
        self._label = label
        all_files = replace(limits, files=limits.entries)  # others may be here than in a commit
        self._count = Counted(all_files, below, lambda what, name: too_much_in(label, what, name))
        self._steps = LinkSteps(label)
        self._found = FoundFiles()
        self._ignored = IgnoreTexts(label)
        self._links: list[tuple[str, Path]] = []
        self._followed: set[Path] = set()

    def done(self) -> FoundFiles:
        """Walk and return what there is.

        Raises:
            SourceError: the folder itself can't be listed, or there is too much in it.
        """
        top = self._root / self._below
        try:
            os.scandir(top).close()
        except OSError as error:
            raise not_there(top, error) from None
        self._look_above()
        self._folder(top, f"{self._below}/" if self._below else "")
        self._behind_links(Path(os.path.realpath(top)), top)
        if self._raw:  # its own renderer's file says nothing then; those below are other folders' still
            there = self._found.renderers
            self._found.renderers = {each: there[each] for each in there if each.rpartition("/")[0] != self._below}
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
            self._count.take(f"{prefix}{entry.name}", is_folder=entry.is_dir(follow_symlinks=False))
            yield entry

    def _ignore_as(self, folder: str, file: Path) -> None:
        self._ignored.add(folder, content_of(file, MOST_IGNORE_BYTES))

    def _entry(self, entry: os.DirEntry[str], path: str) -> None:
        if entry.name == IGNORE_FILE:
            if entry.is_file(follow_symlinks=False):
                self._ignore_as(path.rpartition("/")[0], Path(entry.path))
        elif entry.name.startswith("."):
            return
        elif is_renderer_path(path) and path.isprintable() and not self._is_folder(entry):
            self._found.renderers[path] = Path(entry.path)
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

    def _behind_links(self, real: Path, top: Path) -> None:
        """Read what is behind the links that were met, by the rule of commits (``Linked.of``); all else is below *top*, which is *real*."""
        if not self._links:
            return
        ignore, found = SourceIgnore(dict(self._ignored.by_folder)), self._found
        read = {
            real / each.relative_to(top)
            for there in (found.files, found.renderers)
            for path, each in there.items()
            if not ignore.matches(path)
        }
        while self._links:
            level, self._links = sorted(self._links, key=lambda each: os.fsencode(each[0])), []
            self._found = FoundFiles(problems=found.problems)
            for path, link in level:
                if not ignore.matches(path):
                    self._link(path, link, is_left_out=ignore.leaves_out(path))
            ignore = SourceIgnore(dict(self._ignored.by_folder))
            for all_of_them, new in (
                (found.files, self._found.files), (found.renderers, self._found.renderers)
            ):  # fmt: skip
                for path, file in new.items():
                    if file not in read and not ignore.matches(path):
                        read.add(file)
                        all_of_them[path] = file
        self._found = found

    def _link(self, path: str, link: Path, *, is_left_out: bool) -> None:
        target = self._target(link)
        if target is None:
            if is_manifest_path(path) or "." not in link.name:
                self._problem(path, NOWHERE, NOWHERE_HINT)
        elif target.is_dir():
            is_around = Path(os.path.realpath(link.parent)).is_relative_to(target)
            if self._recursive and target not in self._followed and not is_left_out and not is_around:
                self._followed.add(target)
                self._folder(target, f"{path}/")
        elif is_manifest_path(path) and target.is_file() and path.isprintable():
            self._found.files[path] = target

    def _target(self, link: Path) -> Path | None:
        """Return what a link leads to; None where that isn't in the tree."""
        inside = link.relative_to(self._tree).as_posix()
        real = resolved(inside, lambda place: self._link_at(place, inside))
        if real is None or ".git" in real.lower().split("/") or not os.path.lexists(self._tree / real):
            return None
        return self._tree / real

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Tell whether there is a folder in the tree, or a link to one."""
        if not entry.is_symlink():
            return entry.is_dir()
        target = self._target(Path(entry.path))
        return target is not None and target.is_dir()

    def _link_at(self, place: str, link: str) -> str | None:
        self._steps.take(place, link)
        return link_text(self._tree / place)

    def _problem(self, path: str, message: str, hint: str) -> None:
        shown = path if path.isprintable() else one_line(path.encode("utf-8", "backslashreplace").decode())
        self._found.problems.append(Problem(shown, 0, message, hint))
