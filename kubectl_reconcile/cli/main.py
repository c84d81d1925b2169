"""The program: has a verb run as the command line says, and turns what happens into an exit status."""

from __future__ import annotations

import atexit
import gc
import importlib
import sys
from collections.abc import Sequence

import click

from kubectl_reconcile.cli.output.failures import exit_status
from kubectl_reconcile.cli.root import PROGRAM, reconcile

_COMPLETE = "__complete"
"""The word by which the scripts of ``completion`` ask, as cobra's programs have it; nobody types it."""


def run(arguments: Sequence[str]) -> int:
    """Return the exit status of one command line, having done what it says."""
    words = list(arguments)
    return exit_status(lambda: _invoked(words), debug="--debug" in words)


def _invoked(words: list[str]) -> object:
    """Return what the verb returns. click's own entry would exit with 1, ``diff``'s status, where a pipe breaks."""
    try:
        with reconcile.make_context(PROGRAM, words) as context:
            return reconcile.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code


def main() -> None:
    """Run the command line of this process, and end it."""
    gc.set_threshold(100_000, 20, 10)  # what we make is needed until the end, so looking for garbage finds little
    atexit.register(gc.freeze)  # nor does the interpreter then look through all of it once more
    if sys.argv[1:2] == [_COMPLETE]:
        importlib.import_module("kubectl_reconcile.cli.complete").main(sys.argv[2:])  # no verb needs it
        return
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
