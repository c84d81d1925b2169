"""``kubectl reconcile options``: what is known of all verbs without running one."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.flags import common_flags


@click.command(epilog="Example: kubectl reconcile diff shop --context production -n shop")
def options() -> None:
    """List the flags that all verbs take, before or after the verb. Writes nothing."""
    formatter = click.HelpFormatter()
    with formatter.section("Flags of all verbs"):
        formatter.write_dl([(", ".join(flag.opts) + _metavar(flag), flag.help or "") for flag in common_flags()])
    click.echo(formatter.getvalue(), nl=False)


def _metavar(flag: click.Option) -> str:
    return "" if flag.is_flag else f" {flag.metavar}"
