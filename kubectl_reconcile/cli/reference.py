"""The reference of the command line as Markdown, made from the commands themselves: ``docs/cli.md``.

Run as a module it writes the page to standard output; ``make manifests`` keeps the page current.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator

import click

from kubectl_reconcile.cli.main import PROGRAM, VERBS, command, reconcile
from kubectl_reconcile.cli.options import common_flags
from kubectl_reconcile.cli.output.failures import ExitStatus

_HEAD = """\
# Command line

`kubectl reconcile VERB …`; made from the commands' own help by `make manifests`.
"""


def page() -> str:
    """Return the whole reference."""
    return "\n".join([_HEAD, *_verbs(), *_everywhere(), *_statuses(), *_environment()])


def _verbs() -> Iterator[str]:
    for name in VERBS:
        if (verb := command(name)) is not None:
            yield from _verb(verb, f"{PROGRAM} {name}", "##")


def _verb(verb: click.Command, path: str, level: str) -> Iterator[str]:
    context = click.Context(verb, info_name=path, parent=None)
    usage = " ".join(verb.collect_usage_pieces(context))
    yield f"{level} {path.removeprefix(f'{PROGRAM} ')}\n\n```\n{path} {usage}\n```\n\n{_text(verb.help or '')}\n"
    flags = [flag for flag in verb.params if isinstance(flag, click.Option) and flag.name not in _COMMON]
    if flags:
        yield "\n".join(_table(flags, context)) + "\n"
    if verb.epilog:
        yield f"```\n{_plain(verb.epilog)}\n```\n"
    if isinstance(verb, click.Group):
        for name, below in sorted(verb.commands.items()):
            yield from _verb(below, f"{path} {name}", f"{level}#")


_COMMON = {flag.name for flag in common_flags()}


def _table(flags: list[click.Option], context: click.Context) -> Iterator[str]:
    yield from ("| flag | meaning |", "|---|---|")
    for flag in flags:
        names, meaning = flag.get_help_record(context) or (", ".join(flag.opts), flag.help or "")
        yield f"| `{_cell(names)}` | {_cell(meaning)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")


def _text(text: str) -> str:
    """Return a help text as paragraphs."""
    return inspect.cleandoc(text).replace("\b\n", "")


def _plain(text: str) -> str:
    return inspect.cleandoc(text.replace("\b\n", "\n")).replace("\n\n\n", "\n\n")


def _everywhere() -> Iterator[str]:
    yield "## Flags of all verbs\n\nBefore the verb or after it; what stands after it wins.\n"
    context = click.Context(reconcile)
    shown = [
        click.Option(flag.opts, metavar=flag.metavar, is_flag=flag.is_flag, help=flag.help) for flag in common_flags()
    ]
    yield "\n".join(_table(shown, context)) + "\n"


def _statuses() -> Iterator[str]:
    meanings = inspect.getsource(ExitStatus).split('"""')[3::2]
    rows = [f"| {status.value} | {_cell(meaning)} |" for status, meaning in zip(ExitStatus, meanings, strict=False)]
    yield "\n".join(["## Exit statuses\n", "| status | meaning |", "|---|---|", *rows]) + "\n"


def _environment() -> Iterator[str]:
    rows = {
        "KUBECONFIG": "kubeconfig files, with colons between; the first that sets a value wins",
        "KUBECTL_EXTERNAL_DIFF": "program that compares two folders, for `diff`",
        "PAGER": "program that shows long output on a terminal; `less` if it isn't set, none if it is empty or `cat`",
        "NO_COLOR": "no colour, unless `--color=always`",
        "COLUMNS": "width of the screen, where it can't be asked for",
        "HTTPS_PROXY, HTTP_PROXY, NO_PROXY": "the way to the API server",
        "XDG_CACHE_HOME": "where clones and schemas are kept, in `kubectl-reconcile/`",
    }
    yield "\n".join(
        ["## Environment\n", "| variable | meaning |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in rows.items())]
    )


def main() -> None:
    """Write the page."""
    sys.stdout.write(f"{page().rstrip()}\n")


if __name__ == "__main__":
    main()
