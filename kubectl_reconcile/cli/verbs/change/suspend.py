"""Declares ``kubectl reconcile suspend`` and ``resume``."""

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
  kubectl reconcile suspend shop -n shop    drift stays, too
  kubectl reconcile suspend shop blog       several
  kubectl reconcile suspend --all           all of the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All Syncs of the namespace.")
@colour
@common
@loaded
def suspend() -> None:
    """Tell Syncs to leave the cluster as it is. Writes spec.suspend.

    Nothing is synced and no drift is put back until somebody resumes them.
    """


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile resume shop -n shop    after suspend or rollback
  kubectl reconcile resume --all           all of the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All Syncs of the namespace.")
@colour
@common
@loaded
def resume() -> None:
    """Tell Syncs to go on. Writes their spec, and an annotation that the daemon follows.

    Ends what suspend and rollback began, and a back-off that the daemon called because somebody else keeps
    writing the same fields.
    """
