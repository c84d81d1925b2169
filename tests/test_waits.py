"""Nothing sleeps for a fixed time without a reason: what comes true is looked for (``tests/waiting.py``)."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FILES = sorted(path for path in TESTS.rglob("*.py") if path.name.startswith(("test_", "conftest")))
LOOPS = (ast.While, ast.For, ast.AsyncFor)


def sleeps(text):
    """Lines that sleep for a time that is no turn of the event loop, outside of a loop, and give no reason."""
    tree, lines = ast.parse(text), text.splitlines()
    repeated = {id(each) for loop in ast.walk(tree) if isinstance(loop, LOOPS) for each in ast.walk(loop)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"time.sleep", "asyncio.sleep"}
        and not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
        and id(node) not in repeated
        and "#" not in lines[node.lineno - 1]
    ]


CASES = {
    "for a fixed time": ("time.sleep(3)", [1]),
    "for a time that somebody gives": ("import asyncio\nasync def f(s):\n    await asyncio.sleep(s)", [3]),
    "for a reason": ("time.sleep(3)  # gpg tells times in seconds", []),
    "between two looks": ("while not done():\n    time.sleep(0.1)", []),
    "for a turn": ("async def f():\n    await asyncio.sleep(0)", []),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_who_sleeps(text, expected):
    assert sleeps(text) == expected


def test_whoever_sleeps_says_why():
    found = [f"{path.relative_to(TESTS)}:{line}" for path in FILES for line in sleeps(path.read_text())]
    assert found == [], "hint: look for what is to come true with tests.waiting.eventually, or say what the time is for"
