"""How large folders, modules, classes and records are: counts that `make check` prints for whoever is beyond what CONTRIBUTING advises."""

import ast
import functools
from collections import Counter
from pathlib import Path

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


ADVICE = {
    "modules in a folder": (folders, 15),
    "lines in a module": (lines, 450),
    "methods of a class": (methods, 20),
    "fields of a record": (fields, 14),
    "classes of a name": (names, 1),
}


def beyond():
    """Who is beyond what is advised, the largest first: lines to print."""
    for what, (measure, most) in ADVICE.items():
        found = {who: count for who, count in measure().items() if count > most}
        for who, count in sorted(found.items(), key=lambda each: -each[1]):
            yield f"{what}: {who} has {count} (advised: {most})"


if __name__ == "__main__":
    print("\n".join(beyond()))  # noqa: T201 - a program that prints
