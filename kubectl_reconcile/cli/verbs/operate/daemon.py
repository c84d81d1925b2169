"""Declares ``kubectl reconcile daemon``."""

from __future__ import annotations

from pathlib import Path

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}

\b
Examples:
  kubectl reconcile daemon                      all Syncs of the cluster
  kubectl reconcile daemon -n shop              those of one namespace
"""
)
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT",
    help="Where to serve /healthz, /readyz and /metrics; port 0 chooses one.",
)  # fmt: skip
@click.option(
    "--listen-hooks", default="", metavar="HOST:PORT",
    help="Where Git servers may tell of pushes, at /hooks/NAMESPACE/NAME.  [default: nowhere]",
)  # fmt: skip
@click.option(
    "--lease-namespace",
    metavar="NAME",
    help="Namespace of the Leases by which daemons share the work.  [default: that of -n, else reconcile-system]",
)
@click.option(
    "--module-accounts", is_flag=True,
    help="Act for custom resources as their modules' own ServiceAccounts, kubectl-reconcile-module-NAME in the namespace of the "
    "Lease. Without, as whoever the daemon is.",
)  # fmt: skip
@click.option(
    "--repositories", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="FOLDER",
    help="Let Syncs follow repositories below this folder, by file:///… URLs.",
)  # fmt: skip
@click.option(
    "--git-max-memory", type=click.IntRange(min=64), default=2048, show_default=True, metavar="MIB",
    help="Memory of each git process; a repository that takes more isn't followed.",
)  # fmt: skip
@click.option(
    "--git-max-clone", type=click.IntRange(min=1), default=5120, show_default=True, metavar="MIB",
    help="Disk of the clone of one repository; one that takes more isn't followed.",
)  # fmt: skip
@click.option(
    "--git-max-files", type=click.IntRange(min=1), default=100_000, show_default=True, metavar="COUNT",
    help="Files at the path of one Sync; one with more isn't followed.",
)  # fmt: skip
@click.option(
    "--require-verify", is_flag=True,
    help="Follow no Sync that doesn't say whose signatures count (spec.source.git.verify).",
)  # fmt: skip
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@common
@loaded
def daemon() -> None:
    """Follow all Syncs of a cluster, and all custom resources that a module knows. Writes to the cluster.

    With -n only those of one namespace. SIGTERM and Ctrl-C end it cleanly: requests under way are
    finished, the next daemon goes on from there.
    """
