"""Declares ``kubectl reconcile report``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile report shop                 the namespace shop
  kubectl reconcile report web -n shop          the Sync web in it
  kubectl reconcile report shop -o json
"""
)
@click.argument("name", metavar="[NAMESPACE|SYNC]", required=False)
@click.option(
    "--since", metavar="TIME", default="", help="Tell of changes after this moment only, as in 2026-11-20T12:00:00Z."
)
@output("markdown", "json", default="markdown")
@common
@loaded
def report() -> None:
    """Report on a namespace or a Sync: what there is, how it is, and what has changed. Writes nothing.

    It tells of what isn't healthy, images and their versions, the commits that Syncs have applied, drift, fields that somebody
    else keeps changing, what waits for somebody, and certificates that end soon. Without a name it is of the namespace of -n.
    A Sync of that name in the namespace of -n comes before a namespace.
    """
