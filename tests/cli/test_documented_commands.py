"""Every command in the documentation has a verb and flags that there are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kubectl_reconcile.cli.root import reconcile

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
)
BLOCK = re.compile(r"^```(?:sh|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(?:kubectl reconcile|kubectl-reconcile)\b(.*)", re.MULTILINE)
ENDS = {"|", "||", "&&", ";", "&", ">", ">>", "<", "2>"}


def commands(page: Path) -> Iterator[list[str]]:
    for block in BLOCK.findall(page.read_text()):
        for rest in COMMAND.findall(block.replace("\\\n", " ")):
            words = shlex.shlex(rest, posix=True, punctuation_chars=True)
            words.whitespace_split = True
            yield list(until_the_end(words))


def until_the_end(words: Iterator[str]) -> Iterator[str]:
    for word in words:
        if word in ENDS:
            return
        yield word


def unknown(words: list[str]) -> str:
    """The first word that the command line doesn't know, if there is one."""
    command: click.Command = reconcile
    context, known, left = click.Context(command), flags(command), iter(words)
    for word in left:
        if word == "--":
            return ""
        if word.startswith("-") and word != "-":
            name, _, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
            if name not in known:
                return word
            if known[name] and not value:
                next(left, None)
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                return word
            command, context = found, click.Context(found, parent=context)
            known = known | flags(command)
    return ""


def flags(command: click.Command) -> dict[str, bool]:
    """The flags of a command, and whether each takes a value."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    named = {
        name: not each.is_flag and not each.count for each in options for name in (*each.opts, *each.secondary_opts)
    }
    return {**named, "-h": False, "--help": False}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_of_a_page_is_one(page):
    assert [(words, wrong) for words in commands(page) if (wrong := unknown(words))] == []


def test_what_is_not_there_is_found():
    assert unknown(["diff", "--nonsense"]) == "--nonsense"
    assert unknown(["sandbox", "nonsense"]) == unknown(["nonsense"]) == "nonsense"
    assert unknown(["-n", "shop", "sync", "--yes", "--nonsense=1"]) == "--nonsense=1"
    assert unknown(["sandbox", "up", "--name=a"]) == ""
