"""Verbs that ask the server what it has before anything else: it is asked while what they take is imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.options.origin import Origin


def asking_meanwhile(*modules: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return what has the server asked for a verb while *modules* are imported, which are slow to import and all that it takes.

    Not where requests are to be logged, which the verb sets up; nor where a person may type what is applied, for as long as
    they like; nor where revisions are compared, which takes no server.
    """

    def decorate(verb: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(verb)
        def run(connection: Connection, origin: Origin, **values: Any) -> int:
            if connection.verbosity or origin.file == "-" or values.get("base"):
                return verb(connection, origin, **values)
            from kubectl_reconcile.cli import early

            with early.imported_meanwhile(connection, modules):
                return verb(connection, origin, **values)

        return run

    return decorate
