"""Declares ``kubectl reconcile wait``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile wait shop -n shop             until all of it is well
  kubectl reconcile wait shop --for synced        until it is applied
  kubectl reconcile wait shop --revision $SHA     at that commit
  kubectl reconcile wait shop --for deleted
"""
)
@click.argument("sync", required=False, metavar="[SYNC]")
@click.option(
    "--for",
    "for_",
    type=click.Choice(["healthy", "synced", "ready", "deleted"]),
    default="healthy",
    show_default=True,
    help="What to wait for; ready is what kubectl wait --for=condition=Ready asks.",
)
@click.option(
    "--revision",
    default="",
    metavar="SHA",
    help="Wait until this commit, by its hash or its first digits, was looked at, too. Asks the daemon to sync.",
)
@click.option(
    "--timeout", type=DURATION, default="5m", show_default=True, metavar="DURATION", help="How long to wait at most."
)
@colour
@common
@loaded
def wait() -> None:
    """Wait until SYNC is as you need it. Writes nothing, but with --revision a request onto the Sync.

    Healthy is what the source asks for, applied and well down to the pods; what was true of an older spec doesn't
    count. A commit that changes nothing that the Sync reads isn't noted on it, unless --revision asks for it. When time runs out, the exit status is 6 and the error names what isn't well.
    """
