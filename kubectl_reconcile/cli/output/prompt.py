"""Questions to a person at a terminal."""

from __future__ import annotations

import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from kubectl_reconcile.cli.output.failures import Interrupted

_ANSWERS = {"y": True, "yes": True, "n": False, "no": False, "": False}


def may_ask() -> bool:
    """Tell whether a person is there to answer: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Ask on standard error, before anything is written; whatever isn't yes is no.

    Raises:
        Interrupted: the person pressed Ctrl-C.
    """
    try:
        with _heard_signals() as signals:
            answer = None
            while answer is None:
                click.echo(f"{question} [y/N]: ", err=True, nl=False)
                answer = _answer(signals)
            return answer
    except KeyboardInterrupt:
        click.echo(err=True)  # what is said next begins a line of its own
        raise Interrupted("nothing was written") from None


def _answer(signals: socket.socket) -> bool | None:
    """Return what a person answers, None where it can't be understood; the end of input is no."""
    while sys.stdin not in select.select([sys.stdin, signals], [], [])[0]:
        signals.recv(64)  # Ctrl-C is raised by now; other signals are nobody's answer
    line = sys.stdin.readline()
    if not line:
        click.echo(err=True)
    answer = _ANSWERS.get(line.strip().lower())
    if answer is None:
        click.echo("Error: invalid input", err=True)
    return answer


@contextmanager
def _heard_signals() -> Iterator[socket.socket]:
    """Have Ctrl-C raise KeyboardInterrupt, and yield what can be read from once a signal has come.

    An event loop takes Ctrl-C for itself, and only looks at it once the answer is there. And one that comes just before the
    system waits for a line ends that wait only if a signal is waited for beside it (``signal.set_wakeup_fd``).
    """
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.setblocking(False)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        woken = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(woken)
            signal.signal(signal.SIGINT, before)
