"""Declares ``kubectl reconcile suspend`` and ``resume``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile suspend shop -n shop    drift isn't corrected either
  kubectl reconcile suspend shop blog       several
  kubectl reconcile suspend --all           all in the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1, type=SYNC_NAME)
@click.option("--all", "everyone", is_flag=True, help="All Syncs in the namespace.")
@colour
@common
@loaded
def suspend() -> None:
    """Suspend Syncs: the cluster stays as it is. Writes spec.suspend.

    Until somebody resumes them, nothing is synced, and drift isn't corrected.
    """


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile resume shop -n shop    after suspend or rollback
  kubectl reconcile resume --all           all in the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1, type=SYNC_NAME)
@click.option("--all", "everyone", is_flag=True, help="All Syncs in the namespace.")
@colour
@common
@loaded
def resume() -> None:
    """Resume Syncs after suspend or rollback. Writes their spec, and an annotation for the daemon.

    This also writes contended fields again: fields that the daemon left to another controller, which kept overwriting
    them.
    """
