"""The walk through the program in the documentation: each function that it names is there, and called by the one that it stands below."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
TITLE = "## A manifest, from Git to the wire"
_STEP = re.compile(r"^( *)- `([\w.]+)`", re.MULTILINE)


def walk(text: str) -> Iterator[tuple[str, str]]:
    """Yield each step and the one that it stands below, which is empty for the first."""
    _, title, rest = text.partition(TITLE)
    assert title, f"{PAGE} has no walk"
    above: list[tuple[int, str]] = []
    for indent, name in _STEP.findall(re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]):
        while above and above[-1][0] >= len(indent):
            above.pop()
        yield name, above[-1][1] if above else ""
        above.append((len(indent), name))


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def function(name: str) -> ast.AST | None:
    """Return the function that a dotted name means, None where there is none."""
    parts = name.split(".")
    at = next((at for at in range(len(parts), 0, -1) if _file(parts[:at]).is_file()), 0)
    found: ast.AST | None = parsed(_file(parts[:at])) if 0 < at < len(parts) else None
    for part in parts[at:]:
        found = next(
            (each for each in getattr(found, "body", ()) if getattr(each, "name", "") == part and _is_code(each)), None
        )
    return found if isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef) else None


def _file(parts: list[str]) -> Path:
    return ROOT.joinpath("kubectl_reconcile", *parts).with_suffix(".py")


def _is_code(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def calls(caller: ast.AST, name: str) -> bool:
    """Tell whether a function calls what has this name, or hands it to somebody who does."""
    return any(
        name == (each.attr if isinstance(each, ast.Attribute) else each.id if isinstance(each, ast.Name) else "")
        for each in ast.walk(caller)
    )


STEPS = list(walk(PAGE.read_text()))


@pytest.mark.parametrize(("step", "above"), STEPS, ids=[step for step, _ in STEPS])
def test_a_step_of_the_walk_is_called_by_the_one_that_it_stands_below(step, above):
    assert function(step) is not None, f"there is no function {step}"
    caller = function(above) if above else None
    assert not above or (caller is not None and calls(caller, step.rpartition(".")[2])), f"{above} doesn't call {step}"


def test_the_walk_goes_from_an_event_to_a_request():
    names = [step for step, _ in STEPS]
    assert names[0].endswith("_drive")
    assert {"core.manifests.parse.parse", "core.ssa.merge.three_way", "cluster.client.Client.apply"} < set(names)


def test_a_step_that_is_not_there_or_not_called_is_noticed():
    assert function("engine.sync.reconcile.no_such_step") is None
    assert function("engine.sync.no_such_file.read") is None
    caller = function("engine.sync.reconcile.perform")
    assert caller is not None
    assert calls(caller, "judge")
    assert not calls(caller, "three_way")
