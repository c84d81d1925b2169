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
@click.option(
    "--ui", is_flag=True, help="Have the daemon serve the page to people. They sign in with a token of the cluster."
)
@click.option(
    "--ui-url", multiple=True, metavar="URL",
    help="Address of that page: https, through a proxy. May be repeated.  [default: only localhost, by port-forward]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Don't write to the cluster, and don't read from it.")
@output("yaml")
@colour
@common
@loaded
def install() -> None:
    """Install CRDs, rights and the daemon. Writes to the cluster.

    -n names the daemon's namespace (default: reconcile-system). To upgrade, run install again: Syncs and their members
    don't change. Syncs apply their objects as ServiceAccounts of their own namespaces. To give these accounts rights,
    use kubectl reconcile grant.
    """


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile uninstall              the daemon and its rights
  kubectl reconcile uninstall --crds -y    also all Syncs and CRs
"""
)
@click.option(
    "--crds",
    is_flag=True,
    help="Remove the CRDs, too, and with them every Sync and every custom resource of our modules; delete those with finalizers before.",
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@colour
@common
@loaded
def uninstall() -> None:
    """Remove the daemon and its rights. The objects that it applied stay.

    -n names the daemon's namespace (default: reconcile-system), which is removed, too. Without a terminal, --yes is
    required.
    """
