"""Declares ``kubectl reconcile version``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(epilog="Example: kubectl reconcile version -o json")
@output("json", "yaml")
@common
@loaded
def version() -> None:
    """Show the version. Writes nothing, and needs no cluster."""
