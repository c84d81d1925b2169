"""Questions to a person at a terminal."""

from __future__ import annotations

import sys

import click


def may_ask() -> bool:
    """Tell whether a person is there to answer: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Ask on standard error; anything but yes is no."""
    return click.confirm(question, default=False, err=True)
