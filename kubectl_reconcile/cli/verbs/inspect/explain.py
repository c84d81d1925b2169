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
Verdicts of a field:
  same      in sync           left     left to its owner by a rule,
  drift     changed in the cluster             or because it is contended
  git       changed in Git            other    Git doesn't mention it
  both      changed in both           default  nobody owns it
  adopt     never applied yet
If Git can't be read, or the files of a Sync that is applied by hand aren't
given: applied (as it was applied last), or unknown.

\b
Examples:
  kubectl reconcile explain deploy/web                  all fields
  kubectl reconcile explain deploy/web.spec.replicas    one field in full
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
    help="Files with the object, for a Sync that is applied by hand; - is standard input.",
)
@click.option(
    "-R/ ",
    "--recursive/--no-recursive",
    default=True,
    help="Whether to read subfolders of -f, too.  [default: yes]",
)
@output("wide", "json", "yaml")
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@colour
@common
@loaded
def explain() -> None:
    """Show who owns the fields of an object, which file and commit set them, and whether they drifted. Writes nothing.

    The verdict says what the next sync would do. Fields of the status are left out, unless you name one.
    """
