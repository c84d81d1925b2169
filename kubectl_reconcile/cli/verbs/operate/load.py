"""``kubectl reconcile load``: requests at a steady rate, and how long they took. As a Job's program it ends with that as its termination message."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import DURATION
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import ExitStatus

if TYPE_CHECKING:
    from kubectl_reconcile.load.arrivals import LoadPlan, LoadResult

TERMINATION_LOG = Path("/dev/termination-log")


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
def load(
    url: str,
    *,
    rate: float,
    duration: float,
    connections: int,
    give_up: float,
    connect_to: str | None,
    output: str | None,
    connection: Connection,  # noqa: ARG001 - takes kubectl's flags like every verb
) -> int:
    """Send GET requests to URL at a steady rate, and measure how long the answers take. Needs no cluster.

    Each request is sent when it is due, even if earlier ones have no answer yet, and is timed from that moment. So if
    the server stalls, the requests that have to wait count with their whole wait. Redirects aren't followed. The Jobs of
    Checkups run this command.
    """
    import asyncio

    from kubectl_reconcile.load.arrivals import LoadPlan

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise click.BadParameter(f"must be a URL such as http://web.shop.svc:80/, not {url!r}", param_hint="URL")
    try:
        address = ipaddress.ip_address(connect_to) if connect_to else None
    except ValueError:
        raise click.BadParameter(f"{connect_to!r} isn't an IP address", param_hint="--connect-to") from None
    if duration <= 0 or give_up <= 0:
        raise click.BadParameter("must be more than 0", param_hint="--duration and --timeout")
    if sys.platform != "win32":
        signal.signal(signal.SIGTERM, _end)
    found = asyncio.run(_loaded(url, str(address or ""), LoadPlan(rate, duration, connections, give_up))).tree()
    line = json.dumps(found)
    click.echo(line if output == "json" else _told(found))
    with contextlib.suppress(OSError):  # outside of a pod there is none
        if TERMINATION_LOG.exists():
            TERMINATION_LOG.write_text(line)
    return ExitStatus.OK


async def _loaded(url: str, address: str, plan: LoadPlan) -> LoadResult:
    from kubectl_reconcile.load.arrivals import carried_out
    from kubectl_reconcile.load.http import requests_to

    async with requests_to(url, plan.connections, address) as send:
        return await carried_out(plan, send)


def _end(*_: object) -> None:
    """End at once; the first process of a container isn't ended by a signal otherwise."""
    sys.exit(128 + signal.SIGTERM)


def _told(found: dict[str, Any]) -> str:
    quantiles = "  ".join(f"{name.removesuffix('_ms')} {found[name]:g} ms" for name in found if name.endswith("_ms"))
    counts = {**found.get("statuses", {}), **found.get("faults", {})}
    became = ", ".join(f"{count} {name}" for name, count in counts.items())
    return f"{found['requests']} requests, {found['errors']} errors, {found['rate']:g} answers a second ({became})\n{quantiles}"
