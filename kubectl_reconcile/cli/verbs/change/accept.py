"""Declares ``kubectl reconcile accept`` and ``adopt``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour, given
from kubectl_reconcile.cli.options.origin import origin
from kubectl_reconcile.cli.options.selection import selection
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


def _destination(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say where its files go, besides --local."""
    flags = (
        click.option("--branch", metavar="NAME", default="", help="Push a commit to this branch, new or of that name."),
        click.option("-m", "--message", metavar="TEXT", default="", help="Message of that commit."),
    )
    return given(flags, command)


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile accept shop --local .                    into its files
  kubectl reconcile accept shop deploy/web --branch keep-7   as a commit
  kubectl reconcile accept -f shop --name shop               into a folder
"""
)
@origin
@selection
@_destination
@click.option("--dry-run", is_flag=True, help="Show what would be written, and write nothing.")
@colour
@common
@loaded
def accept() -> None:
    """Write what drifted in the cluster into the files that ask for it. Writes files, or pushes a commit.

    Comments and layout of the files stay. A field that was changed in Git too, and the values of Secrets, are left. Of an overlay, the
    patch that owns a field is written, else a new one that its kustomization lists; never a base; of a chart,
    the value of a values file that sets the field alone. All is rendered again to prove it.
    """


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile adopt deploy/web svc/web --sync shop         shows
  kubectl reconcile adopt deploy/web --sync shop --local .       writes
  kubectl reconcile adopt deploy/web --sync shop --branch adopt  pushes
  kubectl reconcile adopt deploy/web --sync gitops/shop -n shop  of another
"""
)
@click.argument("objects", nargs=-1, required=True, metavar="OBJECT...")
@click.option("--sync", "sync", metavar="[NAMESPACE/]NAME", required=True, help="Sync under which they are brought.")
@click.option(
    "--local",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False),
    help="Write into this working tree of the Sync's repository.",
)
@_destination
@colour
@common
@loaded
def adopt() -> None:
    """Write manifests for live objects, to bring them under a Sync. Writes files, or pushes a commit.

    OBJECT is TYPE/NAME, in the namespace to which the Sync's objects go; with NAMESPACE/NAME of a Sync, -n may say another.
    What the server, controllers and tools added is left out. The next sync then takes the
    objects over; until then nothing changes in the cluster. Without --local or --branch the manifests are shown.
    """
