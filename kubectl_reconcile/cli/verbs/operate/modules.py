"""Declares ``kubectl reconcile modules`` and the verbs below it."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.verbs.loading import loaded


@click.group(
    epilog="""
\b
Examples:
  kubectl reconcile modules list
  kubectl reconcile modules show candy
  kubectl reconcile modules new shop --kind Shop
  kubectl reconcile modules test case.json
"""
)
def modules() -> None:
    """List, show, begin and test domain modules."""


_FROM = click.option(
    "--from",
    "place",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Take the modules of this Python file too.",
)


@modules.command("list")
@_FROM
@colour
@loaded
def list_() -> None:
    """List the installed modules, and the hooks that KUBECTL_RECONCILE_WEBHOOKS names. Writes nothing.

    Of a hook's kinds its manifest says the plural name; the kind itself only a server knows.
    """


@modules.command()
@click.argument("name")
@_FROM
@colour
@loaded
def show() -> None:
    """Show what the module NAME is, makes, reads and may do. Writes nothing."""


@modules.command()
@click.argument("name")
@click.option("--kind", required=True, metavar="KIND", help="The kind of custom resource that it owns.")
@click.option("--api", default="example.com/v1alpha1", show_default=True, metavar="GROUP/VERSION", help="Its API.")
@click.option("--folder", metavar="FOLDER", help="Where to write it; by default a new folder NAME.")
@colour
@loaded
def new() -> None:
    """Begin a module: the module itself, its CRD, an example, and tests that pass."""


@modules.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="CASE...")
@_FROM
@click.option("--update", is_flag=True, help="Write the new outcomes into the files.")
@colour
@loaded
def test() -> None:
    """Ask modules again what they said when each CASE was recorded, and show what differs.

    Exit status: 0 all the same, 6 something differs or a module fails.
    """
