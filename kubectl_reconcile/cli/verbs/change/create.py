"""Declares ``kubectl reconcile create``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import rendering
from kubectl_reconcile.cli.options.output import output
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
@click.argument("name", metavar="SYNC")
@click.option(
    "--url", required=True, metavar="URL", help="Address of the repository: https, http, ssh or user@host:path."
)
@click.option("--branch", metavar="NAME", help="Branch to follow.  [default: the repository's own]")
@click.option("--tag", metavar="NAME", help="Tag to stay at, instead of a branch.")
@click.option("--commit", metavar="SHA", help="Commit to stay at, all 40 digits, instead of a branch.")
@click.option("--path", default=".", show_default=True, metavar="PATH", help="Folder or file in the repository.")
@rendering("How the files at the path become objects.")
@click.option(
    "--interval", default="1m", show_default=True, metavar="DURATION", help="How often to check for new commits."
)
@click.option("--secret", metavar="NAME", help="Secret of the namespace with the repository's credentials.")
@click.option(
    "--verify-secret", metavar="NAME", help="Secret of the namespace with the keys by which commits must be signed."
)
@click.option("--verify-configmap", metavar="NAME", help="ConfigMap with these keys, instead of a Secret.")
@click.option(
    "--verify-mode", type=click.Choice(["Commit", "Tag", "CommitOrTag", "CommitAndTag"]),
    help="What must be signed.  [default: Commit]",
)  # fmt: skip
@click.option(
    "--target-namespace", metavar="NAME", help="Where objects go that name no namespace.  [default: the Sync's]"
)
@click.option("--field-manager", metavar="NAME", help="Field manager to apply as.  [default: kubectl-reconcile]")
@click.option("--prune/--no-prune", default=True, show_default=True, help="Delete objects whose file goes.")
@click.option(
    "--drift", type=click.Choice(["Correct", "Report", "Ask"]), help="What becomes of drift.  [default: Correct]"
)
@click.option(
    "--conflicts",
    type=click.Choice(["Override", "Yield", "Fail"]),
    help="What becomes of fields that somebody else owns.  [default: Override]",
)
@click.option(
    "--service-account",
    metavar="NAME",
    help="ServiceAccount of the namespace as which to apply.  [default: kubectl-reconcile]",
)
@click.option(
    "--grant/--no-grant",
    "give",
    default=None,
    help="Give that account what the source needs, as the verb grant does.  [default: ask on a terminal]",
)
@click.option("--suspend", is_flag=True, help="Don't sync before somebody resumes it.")
@click.option("--check/--no-check", default=True, show_default=True, help="Read repository and path first.")
@click.option("--dry-run", is_flag=True, help="Check all, have the server try it, and write nothing.")
@output("name", "json", "yaml")
@colour
@common
@loaded
def create() -> None:
    """Create the Sync SYNC, once its repository and path have been read. Writes the Sync.

    Where its Secret doesn't say yet which repositories it is for, that is written into it too: https and ssh alone.

    With --dry-run -o yaml it prints the manifest, to be kept in Git itself.
    """
