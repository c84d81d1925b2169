"""``kubectl reconcile record``: keeps what the module of a live custom resource sees and says, as a test case."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import click

from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.output.failures import ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.cli.session import run
from kubectl_reconcile.engine.commands import custom_resource
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views.text import Tone, line


def record(connection: Connection, name: str, *, target: str, color: str) -> int:
    """Record what the module of KIND/NAME sees and says, for ``modules test``."""
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
    case = await custom_resource.record(session, await custom_resource.find(session, name))
    return case.tree()
