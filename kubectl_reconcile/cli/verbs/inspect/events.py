"""Declares ``kubectl reconcile events``, also called ``logs``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile events -A                   the whole cluster
  kubectl reconcile events shop -n shop -f      one Sync, live
  kubectl reconcile logs -A --follow            the same command
  kubectl reconcile events --warnings -o json   one JSON object per line
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-f", "--follow", is_flag=True, help="Keep running, and show new events.")
@click.option("--since", type=DURATION, metavar="DURATION", help="Nothing older than this, such as 10m.")
@click.option("--warnings", is_flag=True, help="Only events that need attention.")
@output("json")
@colour
@common
@loaded
def events() -> None:
    """Show what daemons report about Syncs and custom resources. Writes nothing.

    These are Kubernetes Events, which the cluster keeps for about an hour. The newest is last. For the full log of a
    daemon, run: kubectl logs -n reconcile-system deploy/kubectl-reconcile
    """


logs = events
"""The other name of the verb, for those who look for what a program does among its logs."""
