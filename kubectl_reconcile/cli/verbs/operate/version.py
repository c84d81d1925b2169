"""``kubectl reconcile version``: what is installed, without asking anybody."""

from __future__ import annotations

import json
import platform

import click

import kubectl_reconcile
from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.output import output


@click.command(epilog="Example: kubectl reconcile version -o json")
@output("json", "yaml")
@common
def version(output: str | None, connection: Connection) -> None:  # noqa: ARG001 - takes kubectl's flags like every verb
    """Show the version. Writes nothing, and needs no cluster."""
    facts = {
        "version": kubectl_reconcile.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    match output:
        case "json":
            click.echo(json.dumps(facts, indent=2))
        case "yaml":
            click.echo("".join(f"{key}: {value!r}\n" for key, value in facts.items()), nl=False)
        case _:
            click.echo(f"kubectl-reconcile {facts['version']} (Python {facts['python']}, {facts['platform']})")
