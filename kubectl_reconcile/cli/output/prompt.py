"""Questions to a person at a terminal."""

from __future__ import annotations

import signal
import sys

import click

from kubectl_reconcile.cli.output.failures import Interrupted


def may_ask() -> bool:
    """Tell whether a person is there to answer: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Ask on standard error, before anything is written; whatever isn't yes is no.

    An event loop takes Ctrl-C for itself and only looks at it when the answer is there, so it is taken back meanwhile.

    Raises:
        Interrupted: the person pressed Ctrl-C.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort as abort:
        click.echo(err=True)  # what is said next begins a line of its own
        if isinstance(abort.__context__, EOFError):
            return False
        raise Interrupted("nothing was written") from None
    finally:
        signal.signal(signal.SIGINT, before)
