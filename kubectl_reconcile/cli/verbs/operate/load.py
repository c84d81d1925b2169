"""Declares ``kubectl reconcile load``."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.connection import common
from kubectl_reconcile.cli.options.flags import DURATION
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.verbs.loading import loaded


@click.command(
    epilog="""\b
Exit status: 0 the requests were sent, even if they failed.

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
@click.option(
    "--connect-to", metavar="ADDRESS", help="The IP address to connect to, instead of looking up the host of URL."
)
@output("json")
@common
@loaded
def load() -> None:
    """Send GET requests to URL at a steady rate, and measure how long the answers take. Needs no cluster.

    Each request is sent when it is due, even if earlier ones have no answer yet, and is timed from that moment. So if
    the server stalls, the requests that have to wait count with their whole wait. Redirects aren't followed. The Jobs of
    Checkups run this command.
    """
