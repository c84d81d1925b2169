"""Declares ``kubectl reconcile grant``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import source
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded

SENSITIVE = ("bind", "escalate", "impersonate", "wildcards")
"""Rights by which others can be had."""

DAEMON = "reconcile-system/kubectl-reconcile"
"""The ServiceAccount of an installed daemon."""


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile grant shop -n shop           what it needs, as YAML
  kubectl reconcile grant shop | kubectl apply -f -
  kubectl reconcile grant shop --apply           show it, ask, give it
  kubectl reconcile grant shop --missing -o summary
  kubectl reconcile grant shop --revision refs/pull/12/head
  kubectl reconcile grant -f . --name shop       before there is a Sync
"""
)
@source
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(SENSITIVE),
    help="Give this, too, where the source's Roles ask for it: whoever holds it can come by other rights. May be repeated.",
)
@click.option("--missing", is_flag=True, help="Only what the account lacks, as access reviews tell.")
@click.option("--apply", "write", is_flag=True, help="Show what is new, ask, and apply it with your own rights.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask. Needed without a terminal.")
@click.option(
    "--service-account",
    metavar="NAME",
    help="The account of a Sync that isn't there yet, with -f or --repo.  [default: kubectl-reconcile]",
)
@click.option(
    "--daemon",
    default=DAEMON,
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="ServiceAccount of the daemon, which is let act as the account unless that is called kubectl-reconcile.",
)
@output("yaml", "summary")
@colour
@common
@loaded
def grant() -> None:
    """Print the rights that the account of SYNC needs for its source; with --apply, give them.

    A Sync's members are written as a ServiceAccount of its namespace (spec.serviceAccountName, else
    kubectl-reconcile), which needs a Role in each namespace. They are found by reading the source and
    the Roles that it refers to, with your rights. What isn't needed any more, --apply takes away.

    RBAC lets nobody give rights that they don't hold: so the account needs those within the source's own
    Roles, and you need all of these to apply the grant. Rights to escalate, bind or impersonate, and
    wildcards, are left out and told unless you --allow them.
    """
