"""Declares ``kubectl reconcile ui``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile ui                 opens your browser
  kubectl reconcile ui --no-browser    prints the address
"""
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="PORT",
    help="Port of 127.0.0.1 to serve it at; 0 chooses one.",
)  # fmt: skip
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open it in your browser.")
@colour
@common
@loaded
def ui() -> None:
    """Serve a page about Syncs to yourself: how they are, why, and what comes next.

    It is served on this machine alone, with your kubeconfig and your rights, until Ctrl-C. It writes only what you tell it
    to, and says before what that is. The address counts once.
    """
