"""Declares ``kubectl reconcile events``, also called ``logs``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile events -A                   all of the cluster
  kubectl reconcile events shop -n shop -f      of one Sync, live
  kubectl reconcile logs -A --follow            the same verb
  kubectl reconcile events --warnings -o json   one JSON object a line
"""
)
@click.argument("sync", required=False, metavar="[SYNC]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@click.option("-f", "--follow", is_flag=True, help="Go on, and show what is said as it is said.")
@click.option("--since", type=DURATION, metavar="DURATION", help="Nothing older than this, as in 10m.")
@click.option("--warnings", is_flag=True, help="Only what needs somebody's attention.")
@output("json")
@colour
@common
@loaded
def events() -> None:
    """Show what daemons said of Syncs and custom resources. Writes nothing.

    These are Kubernetes Events, which the cluster keeps for an hour or so; the newest is last. What a daemon logs
    in full is with its pod: kubectl logs -n reconcile-system deploy/kubectl-reconcile.
    """


logs = events
"""The other name of the verb, for those who look for what a program does among its logs."""
