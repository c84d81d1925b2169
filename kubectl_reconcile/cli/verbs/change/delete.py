"""Declares ``kubectl reconcile delete``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile delete shop -n shop     says what happens, and asks
  kubectl reconcile delete shop --orphan    its members stay
"""
)
@click.argument("sync", metavar="SYNC", type=SYNC_NAME)
@click.option("--orphan", is_flag=True, help="Keep the members, even if spec.deletionPolicy is Prune.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask. Needed without a terminal.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the Sync is gone.")
@click.option(
    "--timeout",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait; 0 means no limit.",
)
@colour
@common
@loaded
def delete() -> None:
    """Delete the Sync SYNC, and its members if its spec.deletionPolicy is Prune. Writes to the cluster.

    It first says which members are deleted and which stay. The daemon deletes them; for a Sync that is applied by hand
    (sync -f), this command does. Members of a suspended Sync stay. If the Sync is itself a member of another Sync, it
    is recreated, unless you remove its file, too.
    """
