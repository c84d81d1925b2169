"""Declares ``kubectl reconcile doctor``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile doctor               everything, and all Syncs
  kubectl reconcile doctor -n shop       the Syncs and rights of one namespace
  kubectl reconcile doctor -o json       one JSON object per line
"""
)
@output("json")
@colour
@common
@loaded
def doctor() -> None:
    """Check versions, modules, cluster, clock, CRDs, rights, daemon, and the repository of each Sync. Writes nothing.

    Each line begins with ok, warn or fail; the line below it says what to do. The exit status is 3 if the cluster can't be
    reached, 6 if anything else fails, and 0 otherwise.
    """
