"""Declares ``kubectl reconcile diff``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.origin import origin
from kubectl_reconcile.cli.options.output import look
from kubectl_reconcile.cli.options.selection import selection
from kubectl_reconcile.cli.verbs.loading import loaded_while_asking


@click.command(
    epilog="""\b
Exit status: 0 no changes, 1 changes pending, 2 or more an error:
  2 usage or kubeconfig, 3 cluster unreachable or unauthorised,
  4 source or one of its files unusable, 6 the cluster would refuse a change,
  7 new findings (with --fail-on).

\b
Examples:
  kubectl reconcile diff                    the only Sync in the namespace
  kubectl reconcile diff shop -n shop       the Sync shop
  kubectl reconcile diff shop deploy/web    one object and its children
  kubectl reconcile diff shop --only drift  what was changed by hand
  kubectl reconcile diff shop --revision refs/pull/12/head -o github
  kubectl reconcile diff shop --local . --watch    after each save
  kubectl reconcile diff -f . --scan restricted --fail-on new-findings
  kubectl reconcile diff -f examples/shop/prod    a folder, as if applied
  kubectl reconcile diff -f . --name shop   as a new state of shop
"""
)
@origin
@selection
@click.option("-A", "--all-namespaces", is_flag=True, help="All Syncs in all namespaces.")
@click.option(
    "--offline",
    is_flag=True,
    help="Don't check the changes in a dry run. The output then lacks the effects of defaults and webhooks. With -f, no cluster needs to be configured.",
)
@click.option(
    "--until-stable",
    is_flag=True,
    help="Show further passes, too, assuming that workloads roll out and actions succeed. Implies --offline.",
)
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Keep running, and show the changes again whenever you save a file of -f or --local.",
)
@click.option("--accept", is_flag=True, help="Write drift into the files of -f or --local, like the command accept.")
@click.option(
    "--scan",
    type=click.Choice(["baseline", "restricted"]),
    help="List security findings that the sync would add or fix.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["new-findings"]),
    help="Exit with 7 if --scan, or a Checkup of a namespace that changes, finds something new.",
)
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@click.option("--show-managed-fields", is_flag=True, help="Show metadata.managedFields.")
@look
@common
@loaded_while_asking
def diff() -> None:
    """Show what the next sync of SYNC would change. Writes nothing.

    Without SYNC, -f or --repo, the only Sync in the namespace is used. OBJECT is TYPE/NAME, or the path of a file or
    folder/ in the repository. You can name several objects.
    """
