"""The table of attacks is true: each class names tests that exist, and each file of attacks is in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROWS = re.findall(r"^\| (.+?) \| (`.+`) \|$", (HERE / "README.md").read_text(), re.MULTILINE)
NAMED = {name for _, tests in ROWS for name in re.findall(r"`(.+?)`", tests)}


def functions_of(file: str) -> set[str]:
    tree = ast.parse((HERE.parent / file).read_text())
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_named_test_exists():
    assert len(ROWS) > 20
    lost = [name for name in sorted(NAMED) if name.partition("::")[2] not in functions_of(name.partition("::")[0])]
    assert lost == []


def test_each_file_of_attacks_is_named():
    files = {f"security/{each.name}" for each in HERE.glob("test_*.py")} - {f"security/{Path(__file__).name}"}
    assert files <= {name.partition("::")[0] for name in NAMED}
