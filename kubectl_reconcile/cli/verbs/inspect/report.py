"""``kubectl reconcile report``: what there is in a namespace, or of a Sync, at this moment."""

from __future__ import annotations

import functools
import json

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.views.text import clean


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile report shop                 the namespace shop
  kubectl reconcile report web -n shop          the Sync web in it
  kubectl reconcile report shop -o json
"""
)
@click.argument("name", metavar="[NAMESPACE|SYNC]", required=False, type=SYNC_NAME)
@click.option("--since", metavar="TIME", default="", help="Only changes after this time, such as 2026-11-20T12:00:00Z.")
@output("markdown", "json", default="markdown")
@common
def report(connection: Connection, name: str | None, *, since: str, output: str) -> int:
    """Report on a namespace or a Sync: what there is, whether it is healthy, and what has changed. Writes nothing.

    The report lists unhealthy objects, images with their versions, commits that Syncs have applied, drift, contended
    fields, changes that wait for approval, and certificates that expire soon.

    Without a name, the report covers the namespace of -n. If the namespace of -n has a Sync of this name, the report
    covers that Sync; otherwise, the name is that of a namespace.
    """
    import datetime as dt

    from kubectl_reconcile.cli.session import run
    from kubectl_reconcile.core.report.writing import markdown_of
    from kubectl_reconcile.engine.commands import scanning

    try:
        after = dt.datetime.fromisoformat(since).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if since else ""
    except ValueError as error:
        raise click.BadParameter("must be a time such as 2026-11-20T12:00:00Z", param_hint="--since") from error
    found = run(connection, functools.partial(scanning.reported, name=name or "", since=after))
    text = json.dumps(found, indent=2) if output == "json" else markdown_of(found).rstrip("\n")
    for line in text.splitlines():
        click.echo(clean(line))
    return ExitStatus.OK
