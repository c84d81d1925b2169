"""Declares ``kubectl reconcile wait``."""

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
  kubectl reconcile wait shop -n shop             until everything is healthy
  kubectl reconcile wait shop --for synced        until it is applied
  kubectl reconcile wait shop --revision $SHA     at that commit
  kubectl reconcile wait shop --for deleted
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@click.option(
    "--for",
    "for_",
    type=click.Choice(["healthy", "synced", "ready", "deleted"]),
    default="healthy",
    show_default=True,
    help="What to wait for; ready is the same as kubectl wait --for=condition=Ready.",
)
@click.option(
    "--revision",
    default="",
    metavar="SHA",
    help="Also wait until this commit was processed. The first digits are enough. Asks the daemon to sync.",
)
@click.option(
    "--timeout", type=DURATION, default="5m", show_default=True, metavar="DURATION", help="How long to wait at most."
)
@colour
@common
@loaded
def wait() -> None:
    """Wait until SYNC is healthy, synced, ready or deleted. Writes nothing, except that --revision requests a sync.

    Healthy means that everything in the current spec is applied and healthy, down to the pods. If time runs out,
    the error names what isn't healthy, and the exit status is 5 if it is held or suspended, 4 if the source can't be used, else 6.

    If a commit changes nothing that the Sync reads, only --revision makes the daemon record it at once.
    """
