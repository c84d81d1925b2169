"""Which files of tests a change concerns, and in what order they run."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.closure import Tree

PURE = (
    "tests/core/",
    "tests/modules/",
    "tests/operators/",
    "tests/cli/",
    "tests/load/",
    "tests/test_",
)
"""Where tests are that need nothing."""
REAL = ("tests/operators/real/",)
"""What of those needs a control plane nevertheless."""
LONG = REAL
"""What takes minutes a test: it has commands of its own."""


def is_test(file: str) -> bool:
    """Whether *file* holds tests."""
    return file.startswith("tests/") and posixpath.basename(file).startswith("test_") and file.endswith(".py")


def is_pure(file: str) -> bool:
    """Whether the tests of *file* need nothing but Python."""
    return file.startswith(PURE) and not file.startswith(REAL)


def concerned(tree: Tree, changed: Iterable[str]) -> dict[str, int]:
    """The files of tests that use one of *changed*, and how far away it is."""
    return {file: far for file, far in tree.distances(changed).items() if is_test(file)}


def in_order(files: Mapping[str, int], seconds: Mapping[str, float]) -> list[str]:
    """*files* with the pure ones first, of those the nearest, of those the ones that took the fewest *seconds* when they last ran."""
    return sorted(files, key=lambda file: (not is_pure(file), files[file], seconds.get(file, 0.0), file))


def by_folder(files: Mapping[str, int]) -> str:
    """How many tests are left in which folders, by *files* and their numbers of tests: the largest first."""
    counts: Counter[str] = Counter()
    for file, number in files.items():
        counts["/".join(posixpath.dirname(file).split("/")[:2])] += number
    return ", ".join(f"{folder} {number}" for folder, number in counts.most_common())
