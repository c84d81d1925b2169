"""Declares ``kubectl reconcile history`` and ``rollback``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile history shop -n shop    what was applied, and when
  kubectl reconcile history shop -o json    the same for a program
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@output("wide", "name", "json", "yaml")
@colour
@common
@loaded
def history() -> None:
    """Show which revisions SYNC has applied, newest first. Writes nothing.

    A star marks the current one. Authors and subjects are read from Git, if it can be reached.
    """


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile rollback shop --to 3f9c2e1 --dry-run   look first
  kubectl reconcile rollback shop                 to what was applied before
  kubectl reconcile resume shop                   follow the branch again
  kubectl reconcile rollback shop --to 3f9c2e1 --commit    for good, in Git
"""
)
@click.argument("sync", metavar="SYNC", type=SYNC_NAME)
@click.option(
    "--to",
    "revision",
    metavar="REV",
    help="Commit (its first digits are enough), tag or branch.  [default: the last one with other objects]",
)
@click.option(
    "--commit", "in_git", is_flag=True, help="Restore the files with a new commit on the branch, and push it."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation. Without a terminal, there is no question.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it is done.")
@colour
@common
@loaded
def rollback() -> None:
    """Roll SYNC back to a commit, and the cluster with it. Writes the Sync, or with --commit the repository.

    The Sync is pinned to the commit: nothing newer is applied, and drift is still corrected. To follow the branch again,
    use resume. With --commit, rollback restores the files instead, in a new commit with your own git credentials.

    If there is no such commit, or nothing was applied before, the exit status is 4 and nothing is written.
    """
