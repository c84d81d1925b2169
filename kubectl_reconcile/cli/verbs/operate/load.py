"""Declares ``kubectl reconcile load``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog="""\b
Exit status: 0 the requests were sent, whatever happened to them.

\b
Example:
  kubectl reconcile load http://web.shop.svc:80/ --rate 200 --duration 1m
"""
)
@click.argument("url")
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True, max=100_000), default=50, show_default=True,
    metavar="REQUESTS", help="Requests to send each second.",
)  # fmt: skip
@click.option(
    "--duration", type=DURATION, default="10s", show_default=True, metavar="DURATION", help="How long to send them."
)
@click.option(
    "--connections", type=click.IntRange(min=1, max=10_000), default=10, show_default=True, metavar="COUNT",
    help="How many requests may be in flight; further ones wait.",
)  # fmt: skip
@click.option(
    "--timeout", "give_up", type=DURATION, default="10s", show_default=True, metavar="DURATION",
    help="How long to wait for an answer.",
)  # fmt: skip
@output("json")
@common
@loaded
def load() -> None:
    """Send GET requests to URL at a steady rate, and tell how long they took. Asks no cluster.

    Requests come when they are due, whether those before were answered or not, and each is timed from then on: where the
    server stalls, all that have to wait for it count. Redirections aren't followed. It is what the Jobs of Checkups run.
    """
