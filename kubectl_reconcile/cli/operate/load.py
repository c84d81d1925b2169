"""``kubectl reconcile load``: requests at a steady rate, and how long they took. As a Job's program it ends with that as its termination message."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import signal
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.load.arrivals import LoadPlan, LoadResult, carried_out
from kubectl_reconcile.load.http import requests_to

TERMINATION_LOG = Path("/dev/termination-log")


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
    """Send GET requests to *url* at a steady rate, and tell how long they took."""
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
