"""How verbs are declared: what their flags give is what they take, and to load one imports nothing that takes time."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import click
import pytest

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.origin import origin, source
from kubectl_reconcile.cli.options.output import look
from kubectl_reconcile.cli.options.selection import selection
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.root import VERBS, command
from kubectl_reconcile.cli.verbs.change.importing import import_options
from tests.closure import TREE, said

ABOUT_VERBS = {"help", "options"}
GIVEN = (
    ("options", import_options),
    ("origin", origin),
    ("origin", source),
    ("chosen", selection),
    ("look", look),
    ("connection", common),
)


def declared():
    """Every verb, and every verb of a group."""
    for verb in VERBS.keys() - ABOUT_VERBS:
        found = command(verb)
        for name, one in found.commands.items() if isinstance(found, click.Group) else [("", found)]:
            yield pytest.param(one, id=f"{verb} {name}".strip())


def flags_of(decorate):
    return {flag.name for flag in decorate(lambda: None).__click_params__}


@pytest.mark.parametrize("one", sorted(declared(), key=lambda case: case.id))
def test_what_the_flags_of_a_verb_give_is_what_it_takes(one):
    names = {flag.name for flag in one.params}
    for value, decorate in GIVEN:
        if flags_of(decorate) <= names:
            names = names - flags_of(decorate) | {value}
    assert set(inspect.signature(inspect.unwrap(one.callback)).parameters) == names


def test_each_argument_that_names_a_sync_takes_what_kubectl_writes():
    arguments = [
        (each.id, argument.type)
        for each in declared()
        for argument in each.values[0].params
        if isinstance(argument, click.Argument) and "SYNC" in (argument.metavar or "")
    ]
    assert len(arguments) > 10
    assert {type_ for _, type_ in arguments} == {SYNC_NAME}, arguments


LOADS_ALL = """
import sys
from kubectl_reconcile.cli.root import VERBS, command

for name in VERBS:
    command(name)
print(*sorted(sys.modules))
"""
QUICK = re.compile(
    r"kubectl_reconcile(\.(cache_folder|sandbox(\.names)?|views(\.text)?|cli(\.(root|(options|output|verbs)(\..+)?))?))?"
)
SLOW = {"aiohttp", "asyncio", "deepdiff", "orjson", "ssl", "tempfile", "yaml"}


def test_loading_all_verbs_imports_nothing_that_takes_time():
    loaded = set(
        subprocess.run([sys.executable, "-c", LOADS_ALL], capture_output=True, text=True, check=True).stdout.split()
    )
    ours = {name for name in loaded if name.partition(".")[0] == "kubectl_reconcile"}
    assert {name for name in ours if not QUICK.fullmatch(name)} == set()
    assert loaded & SLOW == set()
    assert len(ours) > len(VERBS) / 2


IMPORTED_MEANWHILE = """
import importlib, sys
from kubectl_reconcile.cli.verbs.{verb} import _TAKEN

for name in _TAKEN:
    importlib.import_module(name)
print(*sys.modules)
"""
FOR_SOME = {
    "kubectl_reconcile.engine.commands.between_revisions",
    "kubectl_reconcile.engine.commands.nested",
    "kubectl_reconcile.engine.commands.scanning",
    "kubectl_reconcile.engine.sync.foresight",
    "kubectl_reconcile.engine.sync.nowhere",
}
"""What a verb takes for one flag, or where something changes."""


@pytest.mark.parametrize("verb", ["inspect.diff", "change.sync"])
def test_what_a_verb_takes_is_imported_while_the_server_is_asked(verb):
    code = IMPORTED_MEANWHILE.format(verb=verb)
    there = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    file = f"kubectl_reconcile/cli/verbs/{verb.replace('.', '/')}.py"
    taken = {module_of(name) for name in said((TREE / file).read_text(), file).imports if name.startswith("kubectl_")}
    assert len(taken) > 20
    assert taken - there <= FOR_SOME


def module_of(name):
    """The module that a name is of, or is."""
    place = TREE / name.replace(".", "/")
    return name if place.with_suffix(".py").exists() or place.is_dir() else name.rpartition(".")[0]
