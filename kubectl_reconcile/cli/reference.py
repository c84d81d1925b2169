"""Pages of the documentation that are made from the program itself, as Markdown.

``docs/cli.md`` is the reference of the command line, from the commands' own help; ``docs/annotations.md`` that of annotations, labels and
finalizers, from their table; `reference_resources` has those of custom resources, conditions and metrics, `reference_formats` those of plan
files and the module API; `reference_importing` what happens to other tools' fields; ``docs/page-api.json`` is the OpenAPI document of the page's API, ``docs/printed.json`` has the schemas of what ``-o json`` prints. Run as a module with the folder ``docs``, it writes all of them there, as ``make manifests`` does; with ``--check`` besides, it ends with status 1 if one of them isn't current.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kubectl_reconcile.cli.options.flags import common_flags
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.reference_formats import module_api_page, plan_fields_page
from kubectl_reconcile.cli.reference_importing import imported_fields_page
from kubectl_reconcile.cli.reference_resources import conditions_page, metrics_page, resources_page
from kubectl_reconcile.cli.root import PROGRAM, VERBS, command, reconcile
from kubectl_reconcile.core.annotations import TABLE
from kubectl_reconcile.core.installation import NAMESPACE, NAMESPACE_VARIABLE
from kubectl_reconcile.core.other_tools import table as other_tools
from kubectl_reconcile.views import schemas
from kubectl_reconcile.web.reference import openapi

_HEAD = """\
# Command line

`kubectl reconcile VERB …`. `make manifests` generates this page from the help of the commands.
"""


def command_line_page() -> str:
    """Return the reference of the command line."""
    return "\n".join([_HEAD, *_verbs(), *_everywhere(), *_statuses(), *_environment()])


_ANNOTATIONS = """\
# Annotations, labels and finalizers

All names that begin with `reconcile.dev/`. `make manifests` generates this page from `kubectl_reconcile/core/annotations.py`.

- Values are text: quote `"true"`, `"false"` and numbers in YAML. An invalid value is a problem with file and line.
- {orders} explains waves, hooks and moves. [Modules](modules.md) explains actions.
- Members of a Sync also have the label `applyset.kubernetes.io/part-of`, as
  [KEP-3659](https://github.com/kubernetes/enhancements/tree/master/keps/sig-cli/3659-kubectl-apply-prune) defines it.
"""


def annotations_page() -> str:
    """Return the reference of annotations, labels and finalizers."""
    rows = (
        f"| `{row.name}` | {row.place} | {row.objects} | {row.writer} | {_cell(row.values) or '-'} | {_cell(row.meaning)} |"
        for row in TABLE
    )
    table = ["| name | is | on | written by | values | meaning |", "|---|---|---|---|---|---|", *rows]
    former = [f"- `{row.former}` is `{row.name}` now." for row in TABLE if row.former]
    intro = _ANNOTATIONS.format(orders="[Order and health](order-and-health.md)")
    earlier = "\n## Names of earlier versions\n\nThey still work until 1.0. The daemon reports them in an event on the object.\n"
    return "\n".join([intro, *table, earlier, *former, *_theirs()])


_THEIRS = """
## Helm's and Argo CD's

These annotations work in manifests, overlays and charts, as far as they mean the same here.

- If an object also has the annotation of ours, ours wins. If it has hooks of both tools, Argo CD's wins.
- A value without a meaning here is a warning with file and line. The same warning is given once.
- Only Jobs run as hooks. Any other object is an ordinary member: it is written when its hook would run, updated when its file changes, and pruned
  when its file is removed.
- `reconcile.dev/hook: ""` makes an object an ordinary member.
"""


def _theirs() -> Iterator[str]:
    """Yield the table of what objects say to other tools."""
    yield from (_THEIRS, "| annotation | value | here | and differs so |", "|---|---|---|---|")
    for row in other_tools.TABLE:
        values = ", ".join(
            f"`{each}`" if each.isascii() and " " not in each else each for each in row.value.split(", ")
        )
        yield f"| `{row.name}` | {values} | {_cell(row.becomes)} | {_cell(row.differs) or '-'} |"


PAGES = {
    "cli.md": command_line_page,
    "annotations.md": annotations_page,
    "resources.md": resources_page,
    "conditions.md": conditions_page,
    "metrics.md": metrics_page,
    "plan-fields.md": plan_fields_page,
    "import-fields.md": imported_fields_page,
    "module-api.md": module_api_page,
    "page-api.json": openapi.text,
    "printed.json": schemas.printed_text,
}


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
    yield "## Flags of all verbs\n\nThey may come before or after the verb. One after the verb wins.\n"
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
        "KUBECONFIG": "kubeconfig files, separated by colons; the first that sets a value wins",
        "KUBECTL_EXTERNAL_DIFF": "program that compares two folders, for `diff`",
        "PAGER": "program that shows long output on a terminal; `less` if it isn't set, none if it is empty or `cat`",
        "NO_COLOR": "no colour, unless `--color=always`",
        "COLUMNS": "width of the terminal, if it can't be determined",
        "HTTPS_PROXY, HTTP_PROXY, NO_PROXY": "proxy for the API server",
        NAMESPACE_VARIABLE: f"namespace of the daemon, if it isn't `{NAMESPACE}`",
        "XDG_CACHE_HOME": "where clones and schemas are kept, in `kubectl-reconcile/`",
    }
    yield "\n".join(
        ["## Environment\n", "| variable | meaning |", "|---|---|", *(f"| `{k}` | {v} |" for k, v in rows.items())]
    )


def page(name: str) -> str:
    """Return a page by its name in `PAGES`, as its file has it."""
    return f"{PAGES[name]().rstrip()}\n"


def stale(folder: Path) -> list[str]:
    """Return the names of the pages that aren't in *folder* as they must be."""
    files = {name: folder / name for name in PAGES}
    return [
        name for name, file in files.items() if not file.is_file() or file.read_text(encoding="utf-8") != page(name)
    ]


def main() -> None:
    """Write the pages that aren't current, or name them."""
    folder, *asked = sys.argv[1:]
    names = stale(Path(folder))
    if asked == ["--check"]:
        sys.exit("\n".join(f"{folder}/{name} isn't current: run make manifests" for name in names) or 0)
    for name in names:
        (Path(folder) / name).write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main()
