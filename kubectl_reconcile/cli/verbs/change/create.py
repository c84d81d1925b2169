"""Declares ``kubectl reconcile create``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import rendering
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile create shop --url https://git.example.com/shop.git
  kubectl reconcile create shop --url … --path apps/shop --secret shop-git
  kubectl reconcile create shop --url … --verify-secret keys
  kubectl reconcile create shop --url … --dry-run -o yaml > shop.yaml
"""
)
@click.argument("name", metavar="SYNC", type=SYNC_NAME)
@click.option(
    "--url", required=True, metavar="URL", help="Address of the repository: https, http, ssh or user@host:path."
)
@click.option("--branch", metavar="NAME", help="Branch to follow.  [default: the repository's own]")
@click.option("--tag", metavar="NAME", help="Tag to follow, instead of a branch.")
@click.option("--commit", metavar="SHA", help="Commit to apply, all 40 digits, instead of a branch.")
@click.option("--path", default=".", show_default=True, metavar="PATH", help="Folder or file in the repository.")
@rendering("How the files at the path become objects.")
@click.option(
    "--interval", default="1m", show_default=True, metavar="DURATION", help="How often to check for new commits."
)
@click.option("--secret", metavar="NAME", help="Secret in the namespace with the repository's credentials.")
@click.option(
    "--verify-secret", metavar="NAME", help="Secret in the namespace with the keys that commits must be signed with."
)
@click.option("--verify-configmap", metavar="NAME", help="ConfigMap with these keys, instead of a Secret.")
@click.option(
    "--verify-mode", type=click.Choice(["Commit", "Tag", "CommitOrTag", "CommitAndTag"]),
    help="What must be signed.  [default: Commit]",
)  # fmt: skip
@click.option(
    "--target-namespace", metavar="NAME", help="Namespace of objects that don't name one.  [default: the Sync's]"
)
@click.option("--field-manager", metavar="NAME", help="Field manager to apply as.  [default: kubectl-reconcile]")
@click.option("--prune/--no-prune", default=True, show_default=True, help="Delete objects whose file is removed.")
@click.option(
    "--drift", type=click.Choice(["Correct", "Report", "Ask"]), help="What happens to drift.  [default: Correct]"
)
@click.option(
    "--conflicts",
    type=click.Choice(["Override", "Yield", "Fail"]),
    help="What happens to fields that another manager owns.  [default: Override]",
)
@click.option(
    "--service-account",
    metavar="NAME",
    help="ServiceAccount in the namespace to apply as.  [default: kubectl-reconcile]",
)
@click.option(
    "--grant/--no-grant",
    "give",
    default=None,
    help="Grant that account the rights that the source needs, like the command grant.  [default: ask on a terminal]",
)
@click.option("--suspend", is_flag=True, help="Don't sync until somebody resumes it.")
@click.option("--check/--no-check", default=True, show_default=True, help="Check the repository and the path first.")
@click.option("--dry-run", is_flag=True, help="Check everything, including a dry run, and write nothing.")
@output("name", "json", "yaml")
@colour
@common
@loaded
def create() -> None:
    """Create the Sync SYNC, after checking its repository and path. Writes the Sync.

    If the Secret doesn't say yet for which repositories it may be used, create annotates it with this URL (only for
    https and ssh).

    --dry-run -o yaml prints the manifest, for example to keep it in Git.
    """
