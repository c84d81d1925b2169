"""Declares ``kubectl reconcile tree``."""

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
  kubectl reconcile tree shop -n shop    a Sync, its objects, what they own
  kubectl reconcile tree deploy/web      one object and what it owns
  kubectl reconcile tree shop -o wide    with the file of each object
"""
)
@click.argument("sync", required=False, metavar="[SYNC|KIND/NAME]", type=SYNC_NAME)
@click.option(
    "--unhealthy", is_flag=True, help="Only objects that are neither Current nor Suspended, and their owners."
)
@output("wide", "name", "json", "yaml")
@colour
@common
@loaded
def tree() -> None:
    """Show what belongs to SYNC: objects, their children, and their health. Writes nothing.

    Without SYNC, the only Sync in the namespace is used. The tree names the namespace of objects outside the Sync's own.
    """
