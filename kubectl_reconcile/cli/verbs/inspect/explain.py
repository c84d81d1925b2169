"""Declares ``kubectl reconcile explain``."""

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
A field is same (as Git asks for), drift (changed in the cluster), git
(changed in Git since the last sync), both, adopt (never applied yet), left
(a rule or a back-off leaves it to its owner), other (Git says nothing of
it), or default (nobody owns it).
Where Git can't be read, or the files of a Sync that is kept by hand aren't
given, it is applied (as it was applied last) or unknown.

\b
Examples:
  kubectl reconcile explain deploy/web                  all fields
  kubectl reconcile explain deploy/web.spec.replicas    one in full
  kubectl reconcile explain deploy/web -f shop/         by these files
  kubectl reconcile explain pod/web '.spec.containers[name=web].image'
"""
)
@click.argument("object_", metavar="KIND/NAME[.FIELD]")
@click.argument("path", required=False, metavar="[FIELD]")
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="PATH",
    help="Files that ask for the object, as for a Sync that is kept by hand; - is standard input.",
)
@click.option(
    "-R/ ",
    "--recursive/--no-recursive",
    default=True,
    help="Whether folders in the folder of -f are read too.  [default: they are]",
)
@output("wide", "json", "yaml")
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@colour
@common
@loaded
def explain() -> None:
    """Show who owns the fields of an object, which file and commit asked for them, and whether they drifted. Writes nothing.

    What is said is what the next sync would do. Fields of status are left out unless asked for.
    """
