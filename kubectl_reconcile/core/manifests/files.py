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

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kubectl_reconcile.core.manifests.scalars import shown
from kubectl_reconcile.core.objects import Problem

if TYPE_CHECKING:  # few sources have an ignore file, and it takes longer to import than all else here
    from pathspec import GitIgnoreSpec

T = TypeVar("T")

IGNORE_FILE: Final = ".reconcileignore"
"""Lists what is no manifest, in .gitignore's syntax; counts for its own folder and those below."""

STDIN: Final = "stdin"
"""What standard input is called among files; no ignore file says anything of it."""

_KUSTOMIZE = (
    "a kustomization",
    'apply what "kustomize build" prints, or list this file in .reconcileignore to have the others taken as they are',
)
_HELM = ("a Helm chart", 'apply what "helm template" prints, or list its folder in .reconcileignore to leave it out')

RENDERER_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "kustomization.yaml": _KUSTOMIZE,
    "kustomization.yml": _KUSTOMIZE,
    "Kustomization": _KUSTOMIZE,
    "Chart.yaml": _HELM,
}
"""The files that make a folder the input of a renderer: what such a folder is, and what to do about it."""

_OF_CHARTS: Final = frozenset(("Chart.yml", "values.yaml", "values.yml", "values.schema.json"))


def is_manifest_path(path: str) -> bool:
    """Return whether the file at *path* is to be read as manifests. *path* is relative to the followed folder."""
    name = path.rpartition("/")[2]
    return (
        name.lower().endswith((".yaml", ".yml", ".json"))
        and name not in RENDERER_FILES
        and name not in _OF_CHARTS
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


@dataclass(frozen=True, slots=True)
class UsableFiles(Generic[T]):
    """The files to be read, the folders that would have to be rendered first, and a problem for each of those."""

    files: Mapping[str, T]
    unrendered: tuple[str, ...]
    problems: tuple[Problem, ...]


def without_unrendered(files: Mapping[str, T], renderers: Iterable[str]) -> UsableFiles[T]:
    """Return *files*, by path, but for those at or below a folder of *renderers*, the paths of renderers' own files.

    One problem tells of each such folder; those below another are told of with it.
    """
    found: dict[str, str] = {}
    for path in sorted(renderers, key=lambda path: (path.count("/"), path)):
        folder = path.rpartition("/")[0]
        if folder not in found and not is_below(folder, found):
            found[folder] = path
    kept = {path: file for path, file in files.items() if not is_below(path, found)}
    problems = tuple(_unrendered(path, folder, files) for folder, path in sorted(found.items()))
    return UsableFiles(kept, tuple(sorted(found)), problems)


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether *path* is in one of *folders*, or below it; ``""`` is the root."""
    return any(not folder or path.startswith(f"{folder}/") for folder in folders)


def _unrendered(path: str, folder: str, files: Iterable[str]) -> Problem:
    what, hint = RENDERER_FILES[path.rpartition("/")[2]]
    others = sum(1 for file in files if file != path and is_below(file, (folder,)))
    left = f"nothing of its folder is applied or pruned, {others} manifest file{'' if others == 1 else 's'}"
    return Problem(path, 0, f"{what}, which isn't rendered here: {left if others else left.partition(',')[0]}", hint)


# --------------------------------------------------------------------------------- what is left out


class SourceIgnore:
    """What a source leaves out: the ``.reconcileignore`` files of a folder and those below it.

    As with .gitignore, a deeper file wins over one above it and a later line over an earlier
    one; ``!`` takes back in. Lines that are no pattern are among the *problems*.
    """

    __slots__ = ("_specs", "problems")

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        """Take the ignore files by folder (``""`` is the root)."""
        problems: list[Problem] = []
        specs = [(f"{folder}/" if folder else "", _patterns(folder, text, problems)) for folder, text in texts.items()]
        self._specs = sorted(specs, key=lambda spec: -len(spec[0]))
        self.problems = tuple(problems)

    def matches(self, path: str) -> bool:
        """Return whether the file at *path* is to be left out."""
        for folder, spec in self._specs:
            if path.startswith(folder):
                verdict = spec.check_file(path[len(folder) :]).include
                if verdict is not None:
                    return verdict
        return False


def _patterns(folder: str, text: bytes, problems: list[Problem]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - as above

    path = f"{folder}/{IGNORE_FILE}" if folder else IGNORE_FILE
    good = []
    for number, line in enumerate(text.decode(errors="replace").removeprefix("\ufeff").splitlines(), start=1):
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            problems.append(Problem(path, number, f"{shown(line)} is no pattern", "write it in .gitignore's syntax"))
        else:
            good.append(line)
    return GitIgnoreSpec.from_lines(good)
