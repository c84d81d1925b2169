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
        click.option("--branch", metavar="NAME", default="", help="Push a commit to this branch, which may be new."),
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
    """Write drift back into the manifests. Writes files, or pushes a commit.

    Comments and layout of the files are kept. Fields that were changed in Git too, and values of Secrets, are left alone.

    In an overlay, accept changes the patch that sets the field, or adds a new patch to the kustomization. It never
    changes a base. In a chart, it changes a value in a values file, if this value sets only this field. Everything is
    rendered again to check the result.
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
@click.option("--sync", "sync", metavar="[NAMESPACE/]NAME", required=True, help="Sync to add them to.")
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
    """Write manifests for live objects, to add them to a Sync. Writes files, or pushes a commit.

    OBJECT is TYPE/NAME, in the target namespace of the Sync. If the objects are in another namespace, name it with -n,
    and write --sync NAMESPACE/NAME. Fields that the server, controllers and tools added are left out.

    Nothing changes in the cluster until the next sync, which adopts the objects. Without --local or --branch, the
    manifests are only printed.
    """
