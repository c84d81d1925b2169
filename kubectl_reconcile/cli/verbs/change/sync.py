"""Declares ``kubectl reconcile sync``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.origin import origin
from kubectl_reconcile.cli.options.output import FORMATS, output
from kubectl_reconcile.cli.options.selection import selection
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded_while_asking


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile sync shop -n shop           now, not at the next interval
  kubectl reconcile sync shop deploy/web        one of its objects
  kubectl reconcile sync -f . --name shop -y    a folder, without questions
  kubectl reconcile diff shop -o json > plan.json
  kubectl reconcile sync --plan plan.json       exactly what was shown
"""
)
@origin
@selection
@click.option("-A", "--all-namespaces", is_flag=True, help="All Syncs in all namespaces, one after another.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation. Without a terminal, there is no question.")
@click.option("--install", is_flag=True, help="Install the CRDs of kubectl-reconcile if they are missing.")
@click.option(
    "--plan",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Apply exactly this plan, which diff -o json has written. If the source or the cluster has changed, do nothing.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, as diff does, and write nothing.")
@click.option(
    "--wait/--no-wait",
    default=True,
    show_default=True,
    help="Wait until the daemon has synced, and everything is healthy.",
)
@click.option(
    "--timeout",
    type=DURATION,
    metavar="DURATION",
    help="How long to wait for the daemon, or for objects to be healthy.  [default: 5m with a daemon, else spec.timeout of the Sync]",
)
@output(*FORMATS)
@colour
@common
@loaded_while_asking
def sync() -> None:
    """Make the cluster match the source of SYNC. Writes to the cluster.

    Without SYNC, -f or --repo, the only Sync in the namespace is used. On a terminal, sync asks before it deletes
    anything.

    OBJECT is TYPE/NAME, or the path of a file or folder/ in the repository. With OBJECT, this command writes only these
    objects and their children, even if a daemon is running.
    """
