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
"""Rights with which other rights can be gained."""

DAEMON = "reconcile-system/kubectl-reconcile"
"""The ServiceAccount of an installed daemon."""


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile grant shop -n shop           the rights, as YAML
  kubectl reconcile grant shop | kubectl apply -f -
  kubectl reconcile grant shop --apply           show, ask, apply
  kubectl reconcile grant shop --apply --plan-hash H    just what was shown
  kubectl reconcile grant --all --apply          all Syncs of the namespace
  kubectl reconcile grant shop --missing -o summary
  kubectl reconcile grant shop --revision refs/pull/12/head
  kubectl reconcile grant -f . --name shop       before the Sync exists
"""
)
@source
@click.option(
    "--all", "everyone", is_flag=True, help="All Syncs in the namespace: all is shown before anything is granted."
)
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(SENSITIVE),
    help="Also grant this, if the source's Roles need it. Anyone who has it can get other rights. May be repeated.",
)
@click.option("--missing", is_flag=True, help="Only the rights that the account lacks, according to access reviews.")
@click.option(
    "--apply", "write", is_flag=True, help="Show the new rights, ask for confirmation, and grant them as you."
)
@click.option("-y", "--yes", is_flag=True, help="Don't ask. Without a terminal, this or --plan-hash is needed.")
@click.option(
    "--plan-hash",
    metavar="HASH",
    help="Grant only what was shown with this hash, without asking. If it would be anything else by now, nothing is granted.",
)
@click.option(
    "--service-account",
    metavar="NAME",
    help="The account of a Sync that doesn't exist yet, with -f or --repo.  [default: kubectl-reconcile]",
)
@click.option(
    "--daemon",
    default=DAEMON,
    show_default=True,
    metavar="NAMESPACE/NAME",
    help="ServiceAccount of the daemon. The grant lets it act as the account, if that isn't kubectl-reconcile.",
)
@output("yaml", "summary")
@colour
@common
@loaded
def grant() -> None:
    """Print the rights that the account of SYNC needs for its source. With --apply, grant them.

    A Sync's members are written as a ServiceAccount in its namespace (spec.serviceAccountName, or kubectl-reconcile).
    This account needs a Role in each namespace. To find out which rights it needs, grant reads the source, and the Roles
    that the source refers to, with your rights. --apply also revokes rights that aren't needed any more. The Syncs that
    the source itself holds are included.

    RBAC doesn't let anybody grant rights that they don't have. So the account needs all rights in the source's own
    Roles, and you need them to apply the grant. Rights to escalate, bind or impersonate, and wildcards, are only listed,
    and not granted unless you --allow them.
    """
