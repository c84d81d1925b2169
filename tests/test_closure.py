"""What files use, by their text, and how far they are from a change."""

import pytest

from tests.closure import BY_NAME, TREE, Tree, said

FILES = {
    "ours/__init__.py": "",
    "ours/low.py": "import json",
    "ours/middle.py": "from ours import low",
    "ours/late.py": "def f():\n    from ours.middle import name",
    "ours/named.py": "import importlib\nimportlib.import_module('ours.low')",
    "ours/runs.py": "AGENT = 'ours.agent'\n['python', '-m', AGENT]",
    "ours/relative.py": "from . import low\nfrom .middle import name",
    "ours/foreign.py": "import yaml.nodes\nimport os\nimportlib.import_module(f'kafka.{name}')",
    "ours/agent/__init__.py": "",
    "ours/agent/__main__.py": "from ours import low",
    "ours/reads.py": "CRDS = 'crds'",
    "ours/table/__init__.py": "",
    "tests/conftest.py": "from ours import low\n@fixture\ndef cluster(): ...\n@fixture(name='git')\ndef _git(): ...",
    "tests/test_with.py": "def test_it(cluster): ...",
    "tests/test_renamed.py": "def test_it(git): ...",
    "tests/test_used.py": "@pytest.mark.usefixtures('cluster')\ndef test_it(): ...",
    "tests/test_without.py": "def test_one(): ...\ndef test_two(): ...",
    "tests/core/strategies.py": "from ours import late",
    "tests/core/test_drawn.py": "from strategies import late",
}
USES = {
    "a module of a package": ("ours/middle.py", {"ours/__init__.py", "ours/low.py"}),
    "what a function imports": ("ours/late.py", {"ours/__init__.py", "ours/middle.py"}),
    "what import_module is given": ("ours/named.py", {"ours/__init__.py", "ours/low.py"}),
    "what is run as a program": (
        "ours/runs.py",
        {"ours/__init__.py", "ours/agent/__init__.py", "ours/agent/__main__.py"},
    ),
    "what is imported by dots": ("ours/relative.py", {"ours/__init__.py", "ours/low.py", "ours/middle.py"}),
    "the conftest of a fixture": ("tests/test_with.py", {"tests/conftest.py"}),
    "the conftest of a fixture with a name of its own": ("tests/test_renamed.py", {"tests/conftest.py"}),
    "the conftest of a fixture that is only used": ("tests/test_used.py", {"tests/conftest.py"}),
    "no conftest without its fixtures": ("tests/test_without.py", set()),
    "a module beside a test": ("tests/core/test_drawn.py", {"tests/core/strategies.py"}),
}


@pytest.mark.parametrize(("file", "used"), USES.values(), ids=USES)
def test_a_file_uses(file, used):
    assert Tree(FILES).uses[file] == used


def test_a_closure_goes_on_to_what_is_used_by_what_is_used():
    assert Tree(FILES).closure(["ours/late.py"]) == {
        "ours/late.py",
        "ours/__init__.py",
        "ours/middle.py",
        "ours/low.py",
    }


def test_a_closure_stays_within_its_folders():
    assert Tree(FILES).closure(["tests/core/test_drawn.py"], within=("tests/",)) == {
        "tests/core/test_drawn.py", "tests/core/strategies.py",
    }  # fmt: skip


def test_distances_count_the_steps_to_the_nearest_change():
    far = Tree(FILES).distances(["ours/middle.py"])
    assert far == {
        "ours/middle.py": 0, "ours/late.py": 1, "ours/relative.py": 1, "tests/core/strategies.py": 2, "tests/core/test_drawn.py": 3,
    }  # fmt: skip


def test_a_changed_conftest_concerns_all_below_it():
    far = Tree(FILES).distances(["tests/conftest.py"])
    assert far["tests/test_without.py"] == 1
    assert far["tests/core/test_drawn.py"] == 1


def test_a_change_below_a_conftest_concerns_those_who_take_its_fixtures():
    far = Tree(FILES).distances(["ours/low.py"])
    assert far["tests/test_with.py"] == 2
    assert "tests/test_without.py" not in far


READERS = {
    "who names the folder": ("crds/candies.yaml", {"ours/reads.py"}),
    "the package that data is part of, where nobody names it": ("ours/table/kinds.json", {"ours/table/__init__.py"}),
    "nobody": ("docs/index.md", set()),
}


@pytest.mark.parametrize(("data", "readers"), READERS.values(), ids=READERS)
def test_data_is_read_by(data, readers):
    assert Tree(FILES).readers(data) == readers


def test_packages_of_others_are_told_from_ours_and_from_pythons_own():
    assert Tree(FILES).foreign(["ours/foreign.py", "ours/middle.py"]) == {"yaml", "kafka"}


def test_tests_are_counted():
    assert Tree(FILES).tests_in("tests/test_without.py") == 2


def test_all_files_that_import_by_a_name_they_compute_are_in_the_table():
    computing = {
        file
        for folder in ("kubectl_reconcile", "kubectl_reconcile_operators")
        for path in (TREE / folder).rglob("*.py")
        if said(path.read_text(), file := path.relative_to(TREE).as_posix()).is_open
    }
    assert computing == BY_NAME.keys()
