"""The parts of an operator, and a digest of each."""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import importlib.metadata
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.closure import TREE, Tree, files_of

LOCK = "requirements-dev.lock"
ENGINE = tuple(f"kubectl_reconcile/engine/{folder}/*" for folder in ("modules", "apply", "daemon"))
"""What carries out what an operator says."""
PODS = (
    *(f"kubectl_reconcile/sandbox/{folder}/*" for folder in ("pods", "runtime")),
    "kubectl_reconcile/sandbox/images/*.py",
)
"""What runs the pods of an operator when it is tried."""
PRODUCT = ("kubectl_reconcile/", "kubectl_reconcile_operators/")
NOT_READ = ("*.md", "*/py.typed", "kubectl_reconcile/core/health/kinds/*.yaml")
"""What no program reads when it runs: the rules of health are written into one file of JSON, which is."""


@dataclass(frozen=True)
class Operator:
    """Modules that are proven together: their *packages*, *crds* and *images*, and the *tests* that run them for real (patterns of files).

    *optional* ones of these need what few machines have; a proof says which of them were skipped.
    """

    packages: tuple[str, ...]
    crds: tuple[str, ...]
    images: tuple[str, ...]
    tests: tuple[str, ...]
    optional: tuple[str, ...] = ()


HOME = "kubectl_reconcile_operators"
REAL = "tests/operators/real"
OPERATORS = {
    "etcd": Operator(
        packages=tuple(f"{HOME}/{package}/*" for package in ("etcd", "etcd_backup", "etcd_restore")),
        crds=("crds/etcd*.yaml",),
        images=("kubectl_reconcile/sandbox/images/etcd/*",),
        tests=(f"{REAL}/etcd/test_*.py",),
    ),
    "postgres": Operator(
        packages=(f"{HOME}/postgres/*",),
        crds=("crds/mydatabases.*.yaml",),
        images=("kubectl_reconcile/sandbox/images/postgres/*",),
        tests=(f"{REAL}/postgres/test_*.py",),
        optional=(
            f"{REAL}/postgres/test_mydatabase_versions.py",
        ),  # of other major versions than the one that is installed
    ),
    "kafka": Operator(
        packages=(f"{HOME}/kafka/*",),
        crds=("crds/kafka*.yaml",),
        images=("kubectl_reconcile/sandbox/images/kafka/*",),
        tests=(f"{REAL}/kafka/test_*.py",),
    ),
}
"""By the name that ``make prove OPERATOR=`` takes."""


def operator_of(file: str) -> str:
    """The operator whose real tests *file* holds; nothing where it holds none of them."""
    return next((name for name, one in OPERATORS.items() if _matches(file, one.tests)), "")


def is_optional(file: str) -> bool:
    """Whether the real tests in *file* need what few machines have."""
    return any(_matches(file, one.optional) for one in OPERATORS.values())


def parts_of(operator: Operator, tree: Tree, root: Path = TREE) -> dict[str, str]:
    """A digest by part: of files by their way, of distributions as in ``requirements-dev.lock aiohttp``."""
    files = files_in(operator, tree, root)
    foreign = tree.foreign(file for file in files if file.startswith(PRODUCT) and file in tree.files)
    return {file: digest((root / file).read_bytes()) for file in sorted(files)} | dict(
        locked(foreign, (root / LOCK).read_text(encoding="utf-8"), _origins())
    )


@functools.cache
def _origins() -> Mapping[str, list[str]]:
    """The distributions that packages come with in this environment."""
    return importlib.metadata.packages_distributions()


def files_in(operator: Operator, tree: Tree, root: Path = TREE) -> set[str]:
    """The files that are parts of *operator*, of the work tree at *root*, which *tree* was read from."""
    there = [file for file in files_of(root) if not _matches(file, NOT_READ)]
    own = {file for file in there if _matches(file, operator.packages)}
    beside = {
        file
        for file in there
        if _matches(file, (*operator.crds, *operator.images, *ENGINE, *PODS)) and not _is_of_another(file, operator)
    }
    tests = {file for file in there if _matches(file, operator.tests)}
    imported = tree.closure(own, within=PRODUCT)
    data = {file for file in there if not file.endswith(".py") and _is_beside(file, imported)}
    return own | beside | imported | data | tree.closure(tests, within=("tests/",)) | tests


def _is_of_another(file: str, operator: Operator) -> bool:
    """Whether *file* gets the programs of another operator's pods."""
    others = [one for one in OPERATORS.values() if one != operator]
    return any(
        file.startswith(f"{folder}_") for one in others for folder in (posixpath.dirname(image) for image in one.images)
    )


def _is_beside(file: str, imported: Iterable[str]) -> bool:
    """Whether *file* is data of a package that is *imported*."""
    return f"{posixpath.dirname(file)}/__init__.py" in imported


def _matches(file: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(file, pattern) for pattern in patterns)


def locked(packages: Iterable[str], lock: str, origins: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Digests of what *lock* says of the distributions that *packages* come with: version and hashes, not who wants them."""
    lines = "".join(line for line in lock.splitlines(keepends=True) if not line.lstrip().startswith("#"))
    entries = {entry.partition("==")[0]: entry for entry in re.split(r"\n(?=\S)", lines)}
    names = {normal(name) for package in packages for name in origins.get(package, [package])}
    for name in sorted(names):
        yield f"{LOCK} {name}", digest(entries.get(name, "not locked").strip().encode())


def normal(name: str) -> str:
    """The *name* of a distribution as lock files write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def digest(content: bytes) -> str:
    """Twelve figures, which tell two states of one part apart."""
    return hashlib.sha256(content).hexdigest()[:12]
