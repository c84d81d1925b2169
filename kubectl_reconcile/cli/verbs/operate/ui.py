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
    help="Port of 127.0.0.1 to listen on; 0 chooses one.",
)  # fmt: skip
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in your browser.")
@colour
@common
@loaded
def ui() -> None:
    """Open a page about your Syncs: what is broken, why, and what comes next.

    The page runs on this machine until Ctrl-C, with your kubeconfig and your rights. It changes something only if you
    tell it to, and first says what it will change. Its address works once.
    """
