"""How a verb that is declared here finds the code that does it, once it runs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any


def loaded(declaration: Callable[[], None]) -> Callable[..., Any]:
    """Have a declared verb run the function of its own name in the module that does it, imported when the verb runs.

    ``cli.verbs.change.sync`` declares what ``cli.change.sync`` does. The function takes what the flags give as
    keywords, and returns the exit status; the declaration's docstring is the verb's help.
    """
    module = _module_of(declaration)

    @functools.wraps(declaration)
    def run(**values: Any) -> Any:
        return getattr(importlib.import_module(module), declaration.__name__)(**values)

    return run


def loaded_while_asking(declaration: Callable[[], None]) -> Callable[..., Any]:
    """Do the same for a verb that asks the server what it has, before anything else: it is asked meanwhile.

    Not where requests are to be logged, which the verb sets up; nor where a person may type what is applied, for as long as
    they like.
    """
    module = _module_of(declaration)
    at_once = loaded(declaration)

    @functools.wraps(declaration)
    def run(**values: Any) -> Any:
        connection = values["connection"]
        if connection.verbosity or values["origin"].file == "-":
            return at_once(**values)
        early = importlib.import_module("kubectl_reconcile.cli.early")
        with early.imported_meanwhile(connection, module) as found:
            return getattr(found, declaration.__name__)(**values)

    return run


def _module_of(declaration: Callable[[], None]) -> str:
    return declaration.__module__.replace(".verbs.", ".")
