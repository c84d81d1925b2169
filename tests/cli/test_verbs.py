"""How verbs are declared: what their flags give is what the code that does them takes."""

from __future__ import annotations

import importlib
import inspect

import click
import pytest

from kubectl_reconcile.cli.main import VERBS, command
from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.origin import origin, source
from kubectl_reconcile.cli.options.output import look
from kubectl_reconcile.cli.options.selection import selection
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME

ABOUT_VERBS = {"help", "options"}
GIVEN = (("origin", origin), ("origin", source), ("chosen", selection), ("look", look), ("connection", common))


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
    declaration = inspect.unwrap(one.callback)
    module = importlib.import_module(declaration.__module__.replace(".verbs.", "."))
    assert set(inspect.signature(getattr(module, declaration.__name__)).parameters) == names


def test_each_argument_that_names_a_sync_takes_what_kubectl_writes():
    arguments = [
        (each.id, argument.type)
        for each in declared()
        for argument in each.values[0].params
        if isinstance(argument, click.Argument) and "SYNC" in (argument.metavar or "")
    ]
    assert len(arguments) > 10
    assert {type_ for _, type_ in arguments} == {SYNC_NAME}, arguments
