"""Declares ``kubectl reconcile install`` and ``uninstall``."""

from __future__ import annotations

import click

from kubectl_reconcile import IMAGE
from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded

IMAGE_DIGEST = ""
"""Where a release writes the digest of its image (``@sha256:…``); no other build has an image whose digest it could know."""


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile install --image registry.example.com/reconcile:0.1.0
  kubectl reconcile install --dry-run -o yaml > reconcile.yaml   to review
"""
)
@click.option("--image", metavar="IMAGE", help=f"Image of the daemon.  [default: {IMAGE.rpartition(':')[0]}:VERSION]")
@click.option(
    "--replicas", type=click.IntRange(min=1), default=1, show_default=True, help="How many daemons share the work."
)
@click.option("--dry-run", is_flag=True, help="Write nothing to the cluster, and ask it nothing.")
@output("yaml")
@colour
@common
@loaded
def install() -> None:
    """Install CRDs, rights and the daemon. Writes to the cluster.

    -n says where the daemon lives (default: reconcile-system). Running it again brings all of it up to
    date; Syncs and what belongs to them aren't touched. What Syncs apply they apply as ServiceAccounts
    of theirs: kubectl reconcile grant gives these their rights.
    """


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile uninstall              the daemon and its rights
  kubectl reconcile uninstall --crds -y    all Syncs and CRs, too
"""
)
@click.option("--crds", is_flag=True, help="Remove the CRDs too, and with them every Sync and every CR of our domains.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@colour
@common
@loaded
def uninstall() -> None:
    """Remove the daemon and its rights. What it applied stays, as it is.

    -n says where the daemon lives (default: reconcile-system); that namespace goes too. Without a terminal,
    --yes is needed.
    """
