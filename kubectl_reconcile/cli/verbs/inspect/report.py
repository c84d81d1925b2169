"""Declares ``kubectl reconcile report``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
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
@click.argument("name", metavar="[NAMESPACE|SYNC]", required=False, type=SYNC_NAME)
@click.option("--since", metavar="TIME", default="", help="Only changes after this time, such as 2026-11-20T12:00:00Z.")
@output("markdown", "json", default="markdown")
@common
@loaded
def report() -> None:
    """Report on a namespace or a Sync: what there is, whether it is healthy, and what has changed. Writes nothing.

    The report lists unhealthy objects, images with their versions, commits that Syncs have applied, drift, contended
    fields, changes that wait for approval, and certificates that expire soon.

    Without a name, the report covers the namespace of -n. If the namespace of -n has a Sync of this name, the report
    covers that Sync; otherwise, the name is that of a namespace.
    """
