"""Declares ``kubectl reconcile approve``."""

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
  kubectl reconcile approve shop -n shop          shows what is held, and asks
  kubectl reconcile approve shop --plan-hash H    as sync and diff print it
  kubectl reconcile approve candy/sweet -n shop   held actions of a CR
"""
)
@click.argument("sync", metavar="SYNC|KIND/NAME", type=SYNC_NAME)
@click.option("--plan-hash", metavar="HASH", help="Approve the deletions with this hash, and no others.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@colour
@common
@loaded
def approve() -> None:
    """Approve the held deletions of SYNC, or the held actions of KIND/NAME. Writes an annotation; the daemon does the rest.

    Without a terminal, --plan-hash or --yes is required. A Sync that is applied by hand (sync -f) needs --plan-hash, and
    continues when somebody syncs again from the same files.
    """
