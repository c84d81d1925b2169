"""``kubectl reconcile report``: what there is in a namespace, or of a Sync, at this moment."""

from __future__ import annotations

import datetime as dt
import functools
import json

import click

from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.session import run
from kubectl_reconcile.core.report.writing import markdown_of
from kubectl_reconcile.engine.commands import scanning
from kubectl_reconcile.views.text import clean


def report(connection: Connection, name: str | None, *, since: str, output: str) -> int:
    """Report on a namespace or a Sync."""
    try:
        after = dt.datetime.fromisoformat(since).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if since else ""
    except ValueError as error:
        raise click.BadParameter("must be a time such as 2026-11-20T12:00:00Z", param_hint="--since") from error
    found = run(connection, functools.partial(scanning.reported, name=name or "", since=after))
    text = json.dumps(found, indent=2) if output == "json" else markdown_of(found).rstrip("\n")
    for line in text.splitlines():
        click.echo(clean(line))
    return ExitStatus.OK
