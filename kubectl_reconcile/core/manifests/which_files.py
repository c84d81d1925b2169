"""Which files of a source hold manifests, and which are left unread.

A *manifest file* is named ``*.yaml``, ``*.yml`` or ``*.json``. Dot-files, whatever is below a dot-folder, what
``.reconcileignore`` lists and the values of charts are left out by name alone.

A folder with a ``kustomization.yaml`` or a ``Chart.yaml`` is the *input of a renderer*: what is in it and below it are
patches and templates, not objects, and which of them are objects only the renderer knows. So nothing there is applied,
nothing that came from there is pruned, and a problem says so. Whoever means the files as they are lists the renderer's
own file in ``.reconcileignore``.

Pure: names in, names out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from kubectl_reconcile.core.manifests.ignore_patterns import IgnorePattern, NoPatternError
from kubectl_reconcile.core.manifests.scalars import shown
from kubectl_reconcile.core.objects import Problem

T = TypeVar("T")

IGNORE_FILE: Final = ".reconcileignore"
"""Lists what is no manifest, in .gitignore's syntax; counts for its own folder and those below."""

MOST_PATTERNS: Final = 500
"""Patterns in all ignore files of a source, at most: each is held against each file."""

MOST_IGNORE_FILES: Final = 500
"""Ignore files of a source, at most: no more than there may be patterns in them."""

MOST_IGNORE_BYTES: Final = 1024 * 1024
"""What all ignore files of a source may take together: they are held at once, comments and all."""

_MOST_COMPARED: Final = 10**9
"""Bytes of paths times the weight of the patterns that they are held against: ten seconds for patterns made to be slow, five for
fifty ordinary ones and a hundred thousand files."""

_LONGEST_PATH: Final = 4096  # bytes; no system can check out more

STDIN: Final = "stdin"
"""What standard input is called among files; no ignore file says anything of it."""

_KUSTOMIZE = (
    "a kustomization",
    "it is only rendered if a Sync follows exactly this folder; to apply the other files as they are, list this file in .reconcileignore",
)
_HELM = (
    "a Helm chart",
    "it is only rendered if a Sync follows exactly its folder; to leave it out, list the folder in .reconcileignore",
)

RENDERER_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "kustomization.yaml": _KUSTOMIZE,
    "kustomization.yml": _KUSTOMIZE,
    "Kustomization": _KUSTOMIZE,
    "Chart.yaml": _HELM,
}
"""The files that make a folder the input of a renderer: what such a folder is, and what to do about it."""

LOCK_FILE: Final = "reconcile.lock.yaml"
"""The file that says what is fetched to render its folder."""

_OF_RENDERERS: Final = frozenset(("Chart.yml", "values.yaml", "values.yml", "values.schema.json", LOCK_FILE))


def is_manifest_path(path: str) -> bool:
    """Return whether the file at *path* is to be read as manifests. *path* is relative to the followed folder."""
    name = path.rpartition("/")[2]
    return (
        name.lower().endswith((".yaml", ".yml", ".json"))
        and name not in RENDERER_FILES
        and name not in _OF_RENDERERS
        and not _is_hidden(path)
    )


def is_renderer_path(path: str) -> bool:
    """Return whether the file at *path* makes its folder the input of a renderer."""
    return path.rpartition("/")[2] in RENDERER_FILES and not _is_hidden(path)


def matters(path: str) -> bool:
    """Return whether a change of the file at *path* may change what a source asks for."""
    return is_manifest_path(path) or is_renderer_path(path) or path.rpartition("/")[2] == IGNORE_FILE


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


# ---------------------------------------------------------------------------- what is to be rendered


class UsableFiles(Struct, Generic[T], frozen=True):
    """The files to be read, the folders that would have to be rendered first, and a problem for each of those."""

    files: Mapping[str, T]
    unrendered: tuple[str, ...]
    problems: tuple[Problem, ...]


def without_unrendered(files: Mapping[str, T], renderers: Iterable[str]) -> UsableFiles[T]:
    """Return *files*, by path, but for those at or below a folder of *renderers*, the paths of renderers' own files.

    There is one problem for each such folder; folders below another are reported with it.
    """
    found: dict[str, str] = {}
    for path in sorted(renderers, key=lambda path: (path.count("/"), path)):
        folder = path.rpartition("/")[0]
        if folder not in found and not is_below(folder, found):
            found[folder] = path
    left = {path: above for path in files if (above := folder_above(path, found)) is not None}
    others = Counter(above for path, above in left.items() if path != found[above])
    kept = {path: file for path, file in files.items() if path not in left}
    problems = tuple(_unrendered(path, others[folder]) for folder, path in sorted(found.items()))
    return UsableFiles(kept, tuple(sorted(found)), problems)


def is_below(path: str, folders: Container[str]) -> bool:
    """Return whether *path* is in one of *folders*, or below it; ``""`` is the root."""
    return folder_above(path, folders) is not None


def folder_above(path: str, folders: Container[str]) -> str | None:
    """Return the nearest of *folders* that *path* is in or below; None if there is none.

    Folders are looked up one by one, never compared with all of them: a repository may have a hundred thousand.
    """
    while path:
        path = path.rpartition("/")[0]
        if path in folders:
            return path
    return None


def _unrendered(path: str, others: int) -> Problem:
    what, hint = RENDERER_FILES[path.rpartition("/")[2]]
    left = f"nothing in its folder is applied or pruned, {others} manifest file{'' if others == 1 else 's'}"
    return Problem(path, 0, f"{what}, which isn't rendered here: {left if others else left.partition(',')[0]}", hint)


# --------------------------------------------------------------------------------- what is left out


class _IgnoreFile(Struct, frozen=True):
    """What one ignore file says. *prefix* is its folder, with a slash; where it can't be followed, *all_of_it* is left out.

    *weight* is how long its patterns are together, in sixteenths of a byte but never less than one each.
    """

    prefix: bytes
    patterns: Sequence[IgnorePattern]
    weight: int = 0
    all_of_it: bool = False

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Return whether a file or folder below this one is to be left out; None where nothing is said of it."""
        if self.all_of_it:
            return True
        below = path[len(self.prefix) :]
        for pattern in reversed(self.patterns):
            if pattern.matches(below, is_folder=is_folder):
                return not pattern.takes_back
        return None


class SourceIgnore:
    """What a source leaves out: the ``.reconcileignore`` files of a folder and those below it.

    As with .gitignore, a deeper file wins over one above it and a later line over an earlier one; ``!`` takes back in,
    but nothing of a folder that is left out itself. Lines that are no pattern are among the *problems*. A file
    with a pattern that is too long, or that brings the patterns of the source beyond MOST_PATTERNS, can't be followed: to
    apply what it was to keep away would be worse than to apply nothing of its folder, and that is what happens. The same
    happens to a source whose patterns and paths together are too much to compare.
    """

    __slots__ = ("_files", "_folders", "_problems", "_room")

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        """Take the ignore files by folder (``""`` is the root)."""
        problems: list[Problem] = []
        room = MOST_PATTERNS
        self._files: dict[bytes, _IgnoreFile] = {}
        for folder in sorted(texts, key=lambda folder: (folder.count("/"), folder)):  # those further up come first
            file = _ignore_file(folder, texts[folder], room, problems)
            room -= len(file.patterns)
            self._files[file.prefix] = file
        self._folders: dict[bytes, bool] = {b"": False}
        self._room = _MOST_COMPARED
        self._problems = problems

    @property
    def problems(self) -> Sequence[Problem]:
        """What is wrong with the ignore files, as far as they were held against paths."""
        return tuple(self._problems)

    def matches(self, path: str) -> bool:
        """Return whether the file at *path* is to be left out."""
        if not self._files:
            return False
        name = path.encode(errors="surrogateescape")
        if len(name) > _LONGEST_PATH:
            return False
        folder = name.rpartition(b"/")[0]
        return self._without_folder(folder) or self._verdict(name, is_folder=False)

    def leaves_out(self, folder: str) -> bool:
        """Return whether all of *folder* is to be left out."""
        name = folder.encode(errors="surrogateescape")
        return bool(self._files) and len(name) <= _LONGEST_PATH and self._without_folder(name)

    def _without_folder(self, folder: bytes) -> bool:
        """Return whether a folder, or one above it, is left out; then nothing in it is asked about."""
        asked = []
        while folder not in self._folders:
            asked.append(folder)
            folder = folder.rpartition(b"/")[0]
        known = self._folders[folder]
        for each in reversed(asked):
            known = self._folders[each] = known or self._verdict(each, is_folder=True)
        return known

    def _verdict(self, path: bytes, *, is_folder: bool) -> bool:
        if self._room <= 0:
            return True
        files = list(self._files_above(path))
        self._room -= sum(len(path) * file.weight for file in files)
        if self._room <= 0:
            message = "too many ignore patterns for this many long paths; nothing of the source is applied"
            self._problems.append(Problem(IGNORE_FILE, 0, message, "leave out folders rather than files"))
            return True
        verdicts = (file.verdict(path, is_folder=is_folder) for file in files)
        return next((verdict for verdict in verdicts if verdict is not None), False)

    def _files_above(self, path: bytes) -> Iterator[_IgnoreFile]:
        """Yield the ignore files of the folders that *path* is in, the deepest first."""
        while path:
            path = path.rpartition(b"/")[0]
            if (file := self._files.get(path + b"/" if path else b"")) is not None:
                yield file


def _ignore_file(folder: str, text: bytes, room: int, problems: list[Problem]) -> _IgnoreFile:
    path = f"{folder}/{IGNORE_FILE}" if folder else IGNORE_FILE
    prefix = f"{folder}/".encode(errors="surrogateescape") if folder else b""
    lines = [line.removesuffix(b"\r") for line in text.removeprefix(b"\xef\xbb\xbf").split(b"\n")]
    said = [(number, line) for number, line in enumerate(lines, start=1) if line.strip() and not line.startswith(b"#")]
    if len(said) > room:
        message = f"the source has more than {MOST_PATTERNS} ignore patterns; nothing of this folder is applied"
        problems.append(Problem(path, said[room][0], message, "leave out folders rather than files"))
        return _IgnoreFile(prefix, (), all_of_it=True)
    patterns, hides = [], False
    for number, line in said:
        try:
            patterns.append(IgnorePattern.parse(line))
        except NoPatternError as error:
            shortened = shown(line.decode(errors="replace"))
            problems.append(Problem(path, number, f"{shortened} {error}", "write it in .gitignore's syntax"))
            hides = hides or error.hides
    weight = sum(1 + len(line) // 16 for _, line in said)
    return _IgnoreFile(prefix, [pattern for pattern in patterns if pattern is not None], weight, all_of_it=hides)
