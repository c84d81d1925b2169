"""Declares ``kubectl reconcile status``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile status -A               every Sync of the cluster
  kubectl reconcile status shop -n shop     one in full
  kubectl reconcile status shop -o json     the object itself
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@click.option("-A", "--all-namespaces", is_flag=True, help="Syncs in all namespaces.")
@output("wide", "json", "yaml", "name", "jsonpath=")
@colour
@common
@loaded
def status() -> None:
    """Show the status of Syncs. Writes nothing.

    With SYNC: its conditions, what the last syncs did, and its problems.
    """
