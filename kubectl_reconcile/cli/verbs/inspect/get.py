"""Declares ``kubectl reconcile get``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded

_FORMATS = ("wide", "name", "json", "yaml", "jsonpath=")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile get -A                    every Sync of the cluster
  kubectl reconcile get -l team=web -o wide   some, with what they follow
  kubectl reconcile get shop -o jsonpath='{{.status.lastAppliedRevision}}'
"""
)
@click.argument("syncs", metavar="[SYNC...]", nargs=-1, type=SYNC_NAME)
@click.option("-A", "--all-namespaces", is_flag=True, help="Syncs in all namespaces.")
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Syncs with these labels, such as team=web.")
@click.option("-w", "--watch", is_flag=True, help="Keep running, and show each Sync again when it changes.")
@click.option("--no-headers", is_flag=True, help="Leave out the column headers.")
@output(*_FORMATS)
@colour
@common
@loaded
def get() -> None:
    """Show Syncs in a table. Writes nothing.

    REF is what each Sync follows; after rollback, it is a commit. To see one Sync in full, use the command status.
    """
