"""``kubectl reconcile import``: what Argo CD or Flux apply, as Syncs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour, given
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.views.text import Line, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.importing.tools import Gathered, Tool
    from kubectl_reconcile.core.importing.units import Imported
    from kubectl_reconcile.core.objects import Problem
    from kubectl_reconcile.engine.sync.session import Session

_PROBLEMS_SHOWN = 5


class ImportOptions(Struct, frozen=True):
    """Where the objects are, and what is to be made of them."""

    file: str | None
    write: str | None
    pin: bool
    suspend: bool
    output: str
    color: str
    url: str = ""
    into: str = ""


@click.group(
    "import",
    epilog="""
\b
Examples:
  kubectl reconcile import argocd
  kubectl reconcile import flux -f fleet --pin --write syncs
""",
)
def importing() -> None:
    """Translate what Argo CD or Flux apply into Syncs. Writes files at most."""


_STATUSES = """\b
Exit status: 0 all units for this cluster become Syncs, 2 usage or
  kubeconfig, 3 cluster unreachable or no access to it, 4 files unusable,
  5 some units aren't possible, 6 failed.
"""


def import_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that importing takes from any tool; it is called with *options*."""
    flags = (
        click.option("-f", "--filename", "file", metavar="FILE|FOLDER", type=click.Path(exists=True, allow_dash=True), help="Read objects from files, - is standard input.  [default: from the cluster]"),
        click.option("--write", metavar="FOLDER", type=click.Path(file_okay=False), help="Write the Syncs to files in FOLDER, with a report."),
        click.option("--pin", is_flag=True, help="Ask the repositories of charts for the digests that aren't known."),
        click.option("--suspend", is_flag=True, help="Suspend the Syncs, so that they can be previewed before they act."),
        output("yaml", "json", "name", default="yaml"),
        colour,
    )  # fmt: skip

    def shared(
        *, file: str | None, write: str | None, pin: bool, suspend: bool, output: str, color: str, **rest: Any
    ) -> Any:
        return command(options=ImportOptions(file, write, pin, suspend, output, color), **rest)

    functools.update_wrapper(shared, command)
    return given(flags, shared)


@importing.command(
    epilog=f"""{_STATUSES}
\b
Examples:
  kubectl reconcile import argocd                    from the cluster
  kubectl reconcile import argocd --pin --suspend --write syncs
  kubectl reconcile import argocd -f apps            from files
  kubectl get applications -A -o yaml | kubectl reconcile import argocd -f -
"""
)
@click.option(
    "--into", metavar="NAMESPACE", default="", help="Namespace of the Syncs.  [default: that of each Application]"
)
@import_options
@common
def argocd(connection: Connection, options: ImportOptions, *, into: str) -> int:
    """Translate Applications into Syncs. Writes nothing to the cluster.

    Syncs go to standard output, or with --write to files: those of a file in one of the same path. What to know of fields,
    and the commands that make Secrets and grant rights, go to standard error, or to a report beside the files. Values of
    Secrets are in none of them. Without -n, all namespaces are read; with -f, it is the namespace of objects that name none.
    """
    from msgspec.structs import replace

    from kubectl_reconcile.core.importing.tools import Tool

    return _import(connection, Tool.ARGOCD, replace(options, into=into))


@importing.command(
    epilog=f"""{_STATUSES}
\b
Examples:
  kubectl reconcile import flux                      from the cluster
  kubectl reconcile import flux --pin --suspend --write syncs
  kubectl reconcile import flux -f fleet --url https://git.example.com/fleet
"""
)
@click.option("--url", metavar="URL", default="", help="Repository of GitRepositories that aren't among what is read.")
@import_options
@common
def flux(connection: Connection, options: ImportOptions, *, url: str) -> int:
    """Translate Kustomizations and HelmReleases into Syncs. Writes nothing to the cluster.

    Syncs go to standard output, or with --write to files: those of a file in one of the same path. What to know of fields,
    and the commands that make Secrets and grant rights, go to standard error, or to a report beside the files. Values of
    Secrets are in none of them. Without -n, all namespaces are read; with -f, it is the namespace of objects that name none.
    """
    from msgspec.structs import replace

    from kubectl_reconcile.core.importing.tools import Tool

    return _import(connection, Tool.FLUX, replace(options, url=url))


_WHERE = "name the folder with its manifests, or leave -f out to read the cluster"


def _import(connection: Connection, tool: Tool, options: ImportOptions) -> int:
    from kubectl_reconcile.core.importing.tools import Gathered, Tally, imported, suspended
    from kubectl_reconcile.source.errors import SourceError, SourceFault
    from kubectl_reconcile.views import importing as shown

    out, err = terminals(options.color)
    gathered = Gathered()
    told = [*_gathered(connection, tool, options, gathered)]
    found = imported(tool, gathered, namespace=connection.namespace or "default", url=options.url, into=options.into)
    if options.file and not found.units and not told:
        raise SourceError(SourceFault.NO_SUCH_PATH, f"{options.file} has no objects of {tool.known_as}", _WHERE)
    if options.pin:
        found = _pinned(connection, found)
    if options.suspend:
        found = suspended(found)
    err.write(told)
    if options.write:
        out.write(_written(Path(options.write), found))
        err.write(shown.summary(found))
    else:
        out.write(_manifests(found, options.output))
        err.write(shown.report(found))
        err.write(shown.steps(found))
    tally = Tally.of([found])
    return ExitStatus.OK if tally.translated == tally.here else ExitStatus.HELD


def _gathered(connection: Connection, tool: Tool, options: ImportOptions, gathered: Gathered) -> Iterator[Line]:
    """Read what there is; yield what couldn't be read."""
    from kubectl_reconcile.cli.options.origin import Origin
    from kubectl_reconcile.cli.session import readable, run
    from kubectl_reconcile.engine.commands import importing as engine

    if options.file:
        with readable(Origin(file=options.file)) as read:
            yield from _unread(engine.from_files(Path(read.file), gathered))
        return

    async def asked(session: Session) -> tuple[str, ...]:
        return await engine.from_cluster(session, tool, connection.namespace, gathered)

    yield from (line(f"warning: {text}", Tone.WARNING) for text in run(connection, asked))


def _unread(problems: tuple[Problem, ...]) -> Iterator[Line]:
    yield from (line(f"warning: {each}", Tone.WARNING) for each in problems[:_PROBLEMS_SHOWN])
    if (more := len(problems) - _PROBLEMS_SHOWN) > 0:
        yield line(f"warning: and {more} more files or parts of files can't be read, such as templates", Tone.WARNING)


def _pinned(connection: Connection, found: Imported) -> Imported:
    from kubectl_reconcile.cache_folder import cache_dir
    from kubectl_reconcile.engine.commands import importing as engine
    from kubectl_reconcile.engine.sync.fetching import SyncFetching
    from kubectl_reconcile.source.policy import SourcePolicy

    fetching = SyncFetching(connection.cache_dir or cache_dir(), SourcePolicy.of_person(), person=True)
    return engine.with_digests(found, fetching)


def _written(folder: Path, found: Imported) -> Iterator[Line]:
    from kubectl_reconcile.engine.commands import importing as engine
    from kubectl_reconcile.views import importing as shown

    texts = {name: shown.file_of(units) for name, units in engine.files_of(found.units).items()}
    texts[shown.REPORT] = shown.report_text(found)
    engine.write(folder, texts)
    yield line(
        f"wrote {shown.count(len(texts) - 1, 'file')} with Syncs in {folder}, and {shown.REPORT} with what to know and to do",
        Tone.GOOD,
    )


def _manifests(found: Imported, output: str) -> Iterator[Line]:
    from kubectl_reconcile.cli.output.data.structured import json_lines
    from kubectl_reconcile.views import importing as shown

    if output == "json":
        yield from json_lines({"apiVersion": "v1", "kind": "List", "items": [*found.syncs]})
    elif output == "name":
        yield from (line(f"sync.reconcile.dev/{each['metadata']['name']}") for each in found.syncs)
    elif found.syncs:
        text = shown.file_of(unit for unit in found.units if unit.syncs)
        yield from (line(each) for each in text.removesuffix("\n").split("\n"))
