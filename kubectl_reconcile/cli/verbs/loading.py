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
    module = declaration.__module__.replace(".verbs.", ".")

    @functools.wraps(declaration)
    def run(**values: Any) -> Any:
        return getattr(importlib.import_module(module), declaration.__name__)(**values)

    return run
