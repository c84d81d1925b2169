"""``kubectl reconcile help`` and ``options``: what is known of all verbs without running one."""

from __future__ import annotations

import click

from kubectl_reconcile.cli.options.flags import common_flags


@click.command(epilog="Example: kubectl reconcile help modules new")
@click.argument("words", nargs=-1, metavar="[VERB...]")
@click.pass_context
def help(context: click.Context, words: tuple[str, ...]) -> None:  # noqa: A001 - the verb's name
    """Show how to use VERB, or list all verbs. Writes nothing."""
    found, path = context.find_root().command, context.find_root().info_name or ""
    inner = context.find_root()
    for word in words:
        if not isinstance(found, click.Group):
            raise click.UsageError(f"{path} has no verb {word!r}", inner)
        _, below, _ = found.resolve_command(inner, [word])
        if below is None:
            raise click.UsageError(f"{path} has no verb {word!r}", inner)
        found, path = below, f"{path} {word}"
        inner = click.Context(found, info_name=word, parent=inner)
    click.echo(found.get_help(inner))


@click.command(epilog="Example: kubectl reconcile diff shop --context production -n shop")
def options() -> None:
    """List the flags that all verbs take, before or after the verb. Writes nothing."""
    formatter = click.HelpFormatter()
    with formatter.section("Flags of all verbs"):
        formatter.write_dl([(", ".join(flag.opts) + _metavar(flag), flag.help or "") for flag in common_flags()])
    click.echo(formatter.getvalue(), nl=False)


def _metavar(flag: click.Option) -> str:
    return "" if flag.is_flag else f" {flag.metavar}"
