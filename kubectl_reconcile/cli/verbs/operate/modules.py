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
    """List, show, create and test domain modules."""


_FROM = click.option(
    "--from",
    "place",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Use the modules of this Python file, too.",
)


@modules.command("list")
@_FROM
@colour
@loaded
def list_() -> None:
    """List the installed modules, and the hooks that KUBECTL_RECONCILE_WEBHOOKS names. Writes nothing.

    For a hook, kinds are listed by their plural name, because its manifest doesn't have the kind.

    Exit status: 0 all could be loaded, 6 some could not, and standard error says why.
    """


@modules.command()
@click.argument("name")
@_FROM
@colour
@loaded
def show() -> None:
    """Show what the module NAME does, what it reads and creates, and its rights. Writes nothing."""


@modules.command()
@click.argument("name")
@click.option("--kind", required=True, metavar="KIND", help="The kind of its custom resource.")
@click.option("--api", default="example.com/v1alpha1", show_default=True, metavar="GROUP/VERSION", help="Its API.")
@click.option("--folder", metavar="FOLDER", help="Where to write it.  [default: a new folder NAME]")
@colour
@loaded
def new() -> None:
    """Create a module: the module itself, its CRD, an example, and tests that pass."""


@modules.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False), metavar="CASE...")
@_FROM
@click.option("--update", is_flag=True, help="Write the new outcomes into the files.")
@colour
@loaded
def test() -> None:
    """Run modules on each recorded CASE, and show what differs from the recorded outcome.

    Exit status: 0 nothing differs, 6 something differs or a module fails.
    """
