"""The limits that CONTRIBUTING sets to the packages; who is beyond one is named there with a reason, and nobody else."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE, OPERATORS = ROOT / "kubectl_reconcile", ROOT / "kubectl_reconcile_operators"
FILES = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
FILES |= {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(OPERATORS.rglob("*.py"))}
METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)


@functools.cache
def classes():
    """Classes with their files, of all modules: seconds, which whoever only collects the tests doesn't spend."""
    nodes = ((file, node) for file, text in FILES.items() for node in ast.walk(ast.parse(text)))
    return [(file, node) for file, node in nodes if isinstance(node, ast.ClassDef)]


def folders():
    """Modules in each folder; ``__init__`` is the folder's own page."""
    modules = Counter(file.rpartition("/")[0] for file in FILES if not file.endswith("__init__.py"))
    return {f"{folder}/": count for folder, count in modules.items()}


def lines():
    return {file: len(text.splitlines()) for file, text in FILES.items()}


def methods():
    return {f"{file} {each.name}": sum(isinstance(node, METHODS) for node in each.body) for file, each in classes()}


def fields():
    """Fields of each record: names with a type in the body of a class."""
    return {f"{file} {each.name}": sum(_is_field(node) for node in each.body) for file, each in classes()}


def _is_field(node):
    return isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node.annotation)


def names():
    return Counter(each.name for _, each in classes())


LIMITS = {
    "modules in a folder": (folders, 15),
    "lines in a module": (lines, 450),
    "methods of a class": (methods, 20),
    "fields of a record": (fields, 14),
    "classes of a name": (names, 1),
}


def exceptions(limit):
    """What CONTRIBUTING lets go beyond *limit*, with its reasons: rows of ``| limit | `who` | why |``."""
    rows = re.findall(r"^\| ([\w ]+) \| `([^`]+)` \| (.*\S) +\|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    return {who: why for what, who, why in rows if what == limit}


@pytest.mark.parametrize("limit", LIMITS)
def test_only_what_contributing_names_is_beyond_a_limit(limit):
    measure, most = LIMITS[limit]
    beyond = {who: count for who, count in measure().items() if count > most}
    excused = exceptions(limit)
    assert not (new := {who: count for who, count in beyond.items() if who not in excused}), (
        f"more than {most} {limit}: {new} (hint: split it by vocabulary, see CONTRIBUTING.md)"
    )
    assert not (mended := excused.keys() - beyond.keys()), (
        f"no longer beyond {most} {limit}: {sorted(mended)} (hint: take the row out of CONTRIBUTING.md)"
    )


def test_all_exceptions_are_from_a_limit_that_is_measured():
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("| limit |")[2].partition("\n\n")[0]
    assert table
    rows = [row for row in table.splitlines()[2:] if row.startswith("|")]
    assert len(rows) == sum(len(exceptions(limit)) for limit in LIMITS)
