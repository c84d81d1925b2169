"""What tests share is in plain modules and fixtures: nothing imports a test module or a conftest, and nothing hides that it does. No imports form a circle."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.closure import said

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("tests", "benchmarks") for path in (ROOT / folder).rglob("*.py"))
COLLECTED = {path.stem for path in FILES if path.name.startswith("test_") or path.name == "conftest.py"}
HIDDEN = re.compile(r"# noqa:.*\bF(401|811)\b")


def collected_by_name(text, collected):
    """Imports of a module that name what pytest collects by itself; text that only looks like one, in a string, is none."""
    if collected.isdisjoint(re.findall(r"\w+", text)):
        return []  # most name none of them anywhere: to parse all takes many times as long
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    return [ast.unparse(each) for each in imports if not collected.isdisjoint(named_by(each))]


def named_by(node):
    places = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
    return {part for place in places for part in place.split(".")}


COLLECTED_BY_NAME = {
    "a name of a test module": "from tests.core.test_words import found",
    "a test module": "import tests.core.test_words",
    "a test module of a folder": "from tests.core import lines, test_words as words",
    "a neighbour": "from .test_words import found",
    "a neighbour itself": "from . import test_words",
    "one of many": "from tests.core import (\n    lines,\n    test_words as words,\n)",
    "a conftest": "from tests.conftest import home",
    "within a function": "def f():\n    from tests import conftest",
}
OTHERS = {
    "a plain module": "from tests.waiting import patiently",
    "a part of a package that is called alike": "from aiohttp.test_utils import TestServer",
    "a fixture of that name": "def f(conftest):\n    return conftest",
    "a suite that a test writes": "SUITE = 'from conftest import home'",
}


@pytest.mark.parametrize("line", COLLECTED_BY_NAME.values(), ids=COLLECTED_BY_NAME)
def test_an_import_of_what_pytest_collects_is_found(line):
    assert collected_by_name(line, {"test_words", "conftest"})


@pytest.mark.parametrize("line", OTHERS.values(), ids=OTHERS)
def test_other_imports_are_not(line):
    assert not collected_by_name(line, {"test_words", "conftest"})


def test_nothing_imports_a_test_module_or_a_conftest():
    found = {
        str(path.relative_to(ROOT)): lines
        for path in FILES
        if (lines := collected_by_name(path.read_text(), COLLECTED))
    }
    assert not found, (
        f"{found} (hint: move what is shared to a plain module beside them, or a fixture to a conftest.py)"
    )


def test_no_import_of_a_fixture_is_hidden():
    found = {str(path.relative_to(ROOT)): count for path in FILES if (count := len(HIDDEN.findall(path.read_text())))}
    assert not found, f"{found} (hint: pytest finds a fixture in a conftest.py or in tests/fixtures without an import)"


SOURCES = re.compile(r"isinstance\([^()]*, *\(?[^)]*\b\w+Source\b")


def test_nobody_but_sources_asks_which_kind_of_source_one_is():
    package = ROOT / "kubectl_reconcile"
    asking = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in sorted(package.rglob("*.py"))
        if not path.is_relative_to(package / "source") and (found := SOURCES.search(path.read_text()))
    ]
    assert asking == [], "ask for a capability: see kubectl_reconcile/source/base.py"


def imports_of(texts):
    """Which modules each module imports: at its top, within a function, for types alone, or by ``import_module``; a package without its modules."""

    def module(name):
        """The longest part of a name that is a module."""
        while name and name not in texts:
            name = name.rpartition(".")[0]
        return name

    return {
        name: {module(each) for each in said(text, name.replace(".", "/") + ".py").imports} - {"", name}
        for name, text in texts.items()
    }


def circle_in(graph):
    """The modules of one circle, in the order in which they import each other; nothing where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


CIRCLES = {
    "of two": {"a.one": "from a import two", "a.two": "from a.one import name"},
    "by a function": {"a.one": "def f():\n    from a.two import name", "a.two": "import a.one"},
    "for types alone": {"a.one": "if TYPE_CHECKING:\n    from a.two import Name", "a.two": "from a.one import name"},
    "by name": {"a.one": "import_module('a.two')", "a.two": "from a.one import name"},
    "of three": {"a.one": "import a.two", "a.two": "import a.three", "a.three": "import a.one"},
}


@pytest.mark.parametrize("texts", CIRCLES.values(), ids=CIRCLES)
def test_a_circle_of_imports_is_found(texts):
    assert set(circle_in(imports_of(texts))) == texts.keys()


def test_no_imports_form_a_circle():
    packages = ("kubectl_reconcile", "kubectl_reconcile_operators", "releasing")
    files = [path.relative_to(ROOT) for package in packages for path in (ROOT / package).rglob("*.py")]
    texts = {
        ".".join(file.with_suffix("").parts).removesuffix(".__init__"): (ROOT / file).read_text() for file in files
    }
    assert circle_in(imports_of(texts)) == [], "each imports the next: move what both need below both, or hand it over"


NOT_OF_A_SOURCE = {
    "engine/commands/install.py": "our own CRDs",
    "engine/modules/metacontroller.py": "controllers that whoever runs a daemon gives it",
}
TREES = {"source/render/trees.py", "source/render/mounted.py", "source/charts/archive.py"}
"""What a tree is read by itself."""


def parsing(text):
    """Whether a module parses files, or reads them of a tree to have them parsed, without the one place that stands before that."""
    if "manifests.parse" not in text and "tree.read(" not in text:
        return False
    names = {name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) for name in imported(node)}
    is_read = "tree.read(" in text and "kubectl_reconcile.source.contents" not in names
    return is_read or "kubectl_reconcile.core.manifests.parse.parse" in names


def imported(node):
    return {f"{node.module}.{alias.name}" for alias in node.names}


def test_what_a_file_of_a_source_holds_is_parsed_by_way_of_one_place():
    package = ROOT / "kubectl_reconcile"
    there = {str(path.relative_to(package)): path for path in sorted(package.rglob("*.py"))}
    outside = {name for name in there if not name.startswith("core/")} - {
        "source/contents.py",
        *NOT_OF_A_SOURCE,
        *TREES,
    }
    found = [name for name in sorted(outside) if parsing(there[name].read_text())]
    assert found == [], "read it by way of kubectl_reconcile/source/contents.py"
    assert all(parsing(there[name].read_text()) for name in ("source/contents.py", *NOT_OF_A_SOURCE, *TREES))
