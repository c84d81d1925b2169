"""What a chart depends on: which charts it has fetched, in which versions, and which it finds in its repository.

Vocabulary: a dependency is *vendored* where ``charts/`` has it; nothing is fetched of that. Of others, ``Chart.yaml`` says which versions would do, and
``Chart.lock`` which one it is. In old charts (``apiVersion: v1``) the two are ``requirements.yaml`` and ``requirements.lock``.

Rules: the version is the one that the lock says, and without a lock only an exact one will do: nobody looks for the newest. A repository is a URL; a folder of
the same repository (``file://../common``) is taken from there. An alias of a repository stands in somebody's own configuration of Helm, so it names nothing here.

Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.charts import CHART_FILE
from kubectl_reconcile.core.rendering.entries import first_tree, line_of
from kubectl_reconcile.core.rendering.pinned.needed import Needed
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.oci.reference import SCHEME
from kubectl_reconcile.core.resources.semver import RangeError, Version, VersionRange

LISTS: Final = ((CHART_FILE, "Chart.lock"), ("requirements.yaml", "requirements.lock"))
"""Where dependencies are listed, and where their versions are."""

_LOCAL: Final = "file://"
_MOST: Final = 200
"""How many dependencies a chart may have."""
_UPDATE: Final = "helm dependency update writes it again"


class Local(Struct, frozen=True):
    """A chart *name* that is taken from the *folder* of the same repository, because of what stands in *file* at *line*."""

    name: str
    folder: str
    file: str
    line: int


class Needs(Struct, frozen=True):
    """What a chart needs besides what it has, and what is wrong with how it says that."""

    fetched: tuple[Needed, ...] = ()
    local: tuple[Local, ...] = ()
    problems: tuple[Problem, ...] = ()


class Vendored(Struct, frozen=True):
    """What ``charts/`` has: *folders* with charts of these names, and these *files*."""

    folders: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Tell whether a chart *name* is there, in whichever version: Helm says if that won't do."""
        archive = re.compile(rf"{re.escape(name)}-v?[0-9].*\.tgz")
        return name in self.folders or any(archive.fullmatch(file) for file in self.files)


NOTHING_VENDORED: Final = Vendored()


def depends(files: Iterable[bytes]) -> bool:
    """Tell whether any of *files* lists a dependency."""
    return any(map(_dependencies, files))


def needs_of(folder: str, files: Mapping[str, bytes], vendored: Vendored = NOTHING_VENDORED) -> Needs:
    """Return what the chart in *folder* needs besides what is *vendored*, by those of *files* that list dependencies."""
    fetched: list[Needed] = []
    local: list[Local] = []
    problems: list[Problem] = []
    for listed, locked in LISTS:
        path, lock = posixpath.join(folder, listed), posixpath.join(folder, locked)
        if path not in files:
            continue
        versions = _Versions(lock, files.get(lock))
        for dependency in _listed(files[path]):
            if not dependency.name or not dependency.repository or vendored.has(dependency.name):
                continue
            line = line_of(files[path], (0, "dependencies", dependency.at))
            try:
                found = _found(dependency, folder, versions)
            except _WrongError as error:
                problems.append(Problem(error.path or path, 0 if error.path else line, str(error), error.hint))
            else:
                if isinstance(found, ChartSpec):
                    fetched.append(Needed(found, path, line))
                else:
                    local.append(Local(dependency.name, found, path, line))
    return Needs(tuple(_once(fetched)), tuple(local), tuple(problems))


class _Dependency(Struct, frozen=True):
    """An entry of a list: the one *at* that number of it."""

    name: str
    repository: str
    version: str
    at: int


class _WrongError(Exception):
    """Why a dependency can't be fetched; *path* is the file to correct where it isn't the one that lists it."""

    def __init__(self, said: str, hint: str = "", path: str = "") -> None:
        super().__init__(said)
        self.hint, self.path = hint, path


def _once(fetched: Sequence[Needed]) -> Iterator[Needed]:
    """Yield each chart once, however many aliases it has."""
    seen = set()
    for each in fetched:
        if each.wanted not in seen:
            seen.add(each.wanted)
            yield each


def _dependencies(data: bytes) -> Sequence[Mapping[str, Any]]:
    tree = first_tree(data)
    listed = tree.get("dependencies") if isinstance(tree, dict) else None
    return [each if isinstance(each, dict) else {} for each in listed][:_MOST] if isinstance(listed, list) else []


def _listed(data: bytes) -> Iterator[_Dependency]:
    for at, fields in enumerate(_dependencies(data)):
        name, repository, version = (str(fields.get(field) or "") for field in ("name", "repository", "version"))
        yield _Dependency(name, repository, version, at)


def _found(dependency: _Dependency, folder: str, versions: _Versions) -> ChartSpec | str:
    """Return the chart that a dependency is, or the folder that it is in.

    Raises:
        _WrongError: it is neither.
    """
    name, repository = dependency.name, dependency.repository
    if repository.startswith(_LOCAL):
        path = posixpath.normpath(posixpath.join(folder, repository.removeprefix(_LOCAL)))
        if path.startswith(("../", "/")) or path in {"..", "."} or repository.startswith(f"{_LOCAL}/"):
            raise _WrongError(f"dependencies: {name}: {repository} isn't a folder of this repository")
        return path
    if not repository.startswith((SCHEME, "https://", "http://")):
        said = f"dependencies: {name}: {repository} is an alias in somebody's configuration of Helm"
        raise _WrongError(said, "write the URL of the repository")
    version = versions.of(dependency)
    try:
        return ChartSpec.of({"repository": repository, "name": name, "version": version}, f"dependencies: {name}")
    except SyncSpecError as error:
        said = str(error)
        if versions.hint and error.field.endswith(".version"):
            said = f"dependencies: {name} {version} from {repository} isn't in charts/, and nothing says which version that is"
        raise _WrongError(said, versions.hint) from None


class _Versions:
    """Which versions the lock of a chart says, which is at *path*; None where there is none."""

    def __init__(self, path: str, data: bytes | None) -> None:
        self._path = path
        self._entries = None if data is None else _dependencies(data)
        self.hint = (
            f"helm dependency update writes {posixpath.basename(path)}, which says one version of each"
            if data is None
            else ""
        )

    def of(self, wanted: _Dependency) -> str:
        """Return the version of a dependency.

        Raises:
            _WrongError: the lock doesn't say, or says one that won't do.
        """
        if self._entries is None:
            return wanted.version
        same = [each for each in self._entries if each.get("name") == wanted.name]
        there = self._entries[wanted.at] if wanted.at < len(self._entries) else None
        entry = there if there in same else same[0] if same else None
        if entry is None:
            raise _WrongError(f"it says no version of {wanted.name}, so it is older than the list", _UPDATE, self._path)
        version = str(entry.get("version") or "")
        if not _fits(version, wanted.version):
            said = f"it says {wanted.name} {version}, and {wanted.version} is wanted"
            raise _WrongError(said, _UPDATE, self._path)
        return version


def _fits(version: str, wanted: str) -> bool:
    """Tell whether a version is one of those that are *wanted*, as far as that can be read; Helm looks again."""
    found = Version.of(version)
    try:
        return found is None or not wanted or VersionRange.of(wanted).has(found)
    except RangeError:
        return True
