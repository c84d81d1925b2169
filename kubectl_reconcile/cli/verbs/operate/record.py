"""Declares ``kubectl reconcile record``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Example:
  kubectl reconcile record memcached/sessions -n shop -o sessions.json
  kubectl reconcile modules test sessions.json
"""
)
@click.argument("name", metavar="KIND/NAME")
@click.option("-o", "--output", "target", metavar="FILE", default="-", help="Where to write it; - is standard output.")
@colour
@common
@loaded
def record() -> None:
    """Record what the module of KIND/NAME sees and returns, for ``modules test``. Writes nothing to the cluster.

    The file has the custom resource, the objects around it, what was observed outside, and the outcome. Values of Secrets
    are left out.
    """
