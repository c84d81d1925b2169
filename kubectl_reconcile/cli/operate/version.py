"""``kubectl reconcile version``: what is installed, without asking anybody."""

from __future__ import annotations

import platform

import click

import kubectl_reconcile
from kubectl_reconcile.cli import options


@click.command(epilog="Example: kubectl reconcile version -o json")
@options.output("json", "yaml")
@options.common
def version(output: str | None, connection: options.Connection) -> None:  # noqa: ARG001 - takes kubectl's flags like every verb
    """Show the version. Writes nothing, asks no cluster."""
    facts = {
        "version": kubectl_reconcile.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
    match output:
        case "json":
            import json  # noqa: PLC0415 - the plain answer does without

            click.echo(json.dumps(facts, indent=2))
        case "yaml":
            click.echo("".join(f"{key}: {value!r}\n" for key, value in facts.items()), nl=False)
        case _:
            click.echo(f"kubectl-reconcile {facts['version']} (Python {facts['python']}, {facts['platform']})")
