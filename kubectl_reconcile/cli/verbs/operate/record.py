"""``kubectl reconcile record``: keeps what the module of a live custom resource sees and says, as a test case."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.engine.sync.session import Session


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
def record(connection: Connection, name: str, *, target: str, color: str) -> int:
    """Record what the module of KIND/NAME sees and returns, for ``modules test``. Writes nothing to the cluster.

    The file has the custom resource, the objects around it, what was observed outside, and the outcome. Values of Secrets
    are left out.
    """
    from kubectl_reconcile.cli.session import run

    if "/" not in name:
        raise click.UsageError("name the custom resource as KIND/NAME, as in memcached/sessions")
    tree = run(connection, functools.partial(_record, name=name))
    text = json.dumps(tree, indent=2, sort_keys=True) + "\n"
    if target == "-":
        click.echo(text, nl=False)
        return ExitStatus.OK
    try:
        Path(target).write_text(text)
    except OSError as error:
        raise Failure(f"{target} can't be written: {error.strerror}") from error
    _, err = terminals(color)
    err.write([line(f"recorded {name} in {target}", Tone.GOOD)])
    return ExitStatus.OK


async def _record(session: Session, *, name: str) -> dict[str, object]:
    from kubectl_reconcile.engine.commands import custom_resource

    case = await custom_resource.record(session, await custom_resource.find(session, name))
    return case.tree()
