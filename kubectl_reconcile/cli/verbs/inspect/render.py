"""``kubectl reconcile render``: the objects that a source asks for, as a sync would apply them."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import Origin, source
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.views.text import Line, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.core.resources.decryption import Decryption
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync.session import Session
    from kubectl_reconcile.source.base import Source


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile render shop -n shop            what a Sync applies
  kubectl reconcile render shop --local .          with the files here
  kubectl reconcile render -f charts/web           without any cluster
  kubectl reconcile render -f prod --settings syncs/shop.yaml -o json
"""
)
@source
@click.option(
    "--settings",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Manifest of the Sync that says how the files of -f are applied: variables, values of a chart, namespace.",
)
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets.")
@output("yaml", "json", "name", default="yaml")
@colour
@common
def render(
    connection: Connection,
    origin: Origin,
    *,
    settings: str | None,
    show_secrets: bool,
    output: str,
    color: str,
) -> int:
    """Print the objects that a sync of SYNC would apply, whatever is in the cluster. Writes nothing.

    Overlays and charts are rendered, variables are replaced, and objects have the labels that the Sync gives them. With
    -f and without --name, no cluster is needed, unless FILE names ConfigMaps or Secrets, or has a chart look up objects.
    Values of Secrets are hidden unless you ask for them.
    """
    if settings and (not origin.file or origin.name):
        raise click.UsageError("--settings is for -f without --name: other Syncs have their own settings")
    out, err = terminals(color)
    plan = _plan(connection, origin, settings)
    shown, is_hidden = _objects(plan, show_secrets=show_secrets)
    out.write(_written(shown, output))
    err.write(_told(plan))
    if is_hidden and output != "name":
        err.write([line("values of Secrets are hidden: --show-secrets shows them", Tone.ASIDE)])
    return ExitStatus.SOURCE if plan.errors else ExitStatus.OK


def _plan(connection: Connection, origin: Origin, settings: str | None) -> Plan:
    """Return what a sync would do to a cluster that has nothing yet."""
    import asyncio

    from kubectl_reconcile.cli.chart_flags import pin_of, values_given
    from kubectl_reconcile.cli.session import readable, run
    from kubectl_reconcile.core.resources.source import Render
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync import nowhere
    from kubectl_reconcile.engine.sync.decryption import own_decryption
    from kubectl_reconcile.source.charts.source import ChartSource
    from kubectl_reconcile.source.folder.worktree import WorktreeSource

    with readable(origin) as read:
        if not (read.file or read.chart) or read.name:
            return run(connection, functools.partial(_of_target, origin=read))
        given = values_given(read.values, read.sets)
        keys = own_decryption(read.decrypt, os.environ)
        place = connection.namespace or "default"
        sync = _said_by(settings, place) if settings else Sync("", place)
        render = Render(read.render)
        if render is Render.AUTO and sync.source:
            render = sync.source.render
        if read.chart:
            pin = pin_of(read)
            return asyncio.run(nowhere.plan_by(sync, ChartSource(pin), given, pin, keys))
        files = WorktreeSource(Path(read.file), recursive=read.recursive, render=render, reaches=True)
        if nowhere.takes_cluster(sync):
            return run(connection, functools.partial(_of_files, sync=sync, files=files, given=given, keys=keys))
        return asyncio.run(nowhere.plan_by(sync, files, given, decryption=keys))


async def _of_target(session: Session, *, origin: Origin) -> Plan:
    from kubectl_reconcile.cli.session import target_of
    from kubectl_reconcile.engine.sync import nowhere, reconcile

    target = await target_of(session, origin)
    return nowhere.created(await reconcile.read(session, target), target, session.discovery)


async def _of_files(
    session: Session, *, sync: Sync, files: Source, given: Mapping[str, Any], keys: Decryption | None
) -> Plan:
    from kubectl_reconcile.engine.sync import nowhere, reconcile, targets

    session.decryption = keys
    target = await targets.target_of(session, sync, files, None)
    target.reader.give(given)
    return nowhere.created(await reconcile.read(session, target), target, session.discovery)


def _said_by(settings: str, namespace: str) -> Sync:
    """Return the Sync whose manifest is in a file, in *namespace* where it doesn't name one.

    Raises:
        Failure: there isn't just one.
        SourceError, SyncSpecError: the file can't be read, or the Sync can't be meant as it is written.
    """
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.core.resources.source import Render
    from kubectl_reconcile.core.resources.sync import SYNC, Sync
    from kubectl_reconcile.engine.sync.desired import ManifestReader
    from kubectl_reconcile.source.folder.worktree import WorktreeSource

    read = ManifestReader().read(WorktreeSource(Path(settings), render=Render.RAW))
    found = [each.manifest for each in read.manifests if each.gvk.group_kind == SYNC.group_kind]
    if len(found) != 1:
        there = "no Sync" if not found else f"{len(found)} Syncs"
        problem = next((f": {each}" for each in read.problems if each.is_error), "")
        raise Failure(f"{settings} has {there}, not one{problem}", status=ExitStatus.USAGE)
    metadata = {"namespace": namespace, **map_at(found[0], "metadata")}
    return Sync.of({**found[0], "metadata": metadata})


def _objects(plan: Plan, *, show_secrets: bool) -> tuple[Sequence[Manifest], bool]:
    """Return the objects of a plan in the order in which they are applied, and whether a value in them is hidden."""
    from kubectl_reconcile.views.masking import masked

    asked = [change for change in plan.changes if change.intent is not None]
    shown = asked if show_secrets else [masked(change) for change in asked]
    objects = [change.intent for change in shown if change.intent is not None]
    return objects, shown != asked


def _written(objects: Sequence[Manifest], output: str) -> Iterator[Line]:
    from kubectl_reconcile.cli.output.data.structured import json_lines
    from kubectl_reconcile.cli.output.render import name_of
    from kubectl_reconcile.core.objects import ObjectRef
    from kubectl_reconcile.views.yamltext import dump_object

    if output == "json":
        yield from json_lines({"apiVersion": "v1", "kind": "List", "items": [*objects]})
        return
    for number, each in enumerate(objects):
        if output == "name":
            yield line(name_of(ObjectRef.of(each)))
            continue
        if number:
            yield line("---")
        yield from map(line, dump_object(each))


def _told(plan: Plan) -> Iterator[Line]:
    from kubectl_reconcile.core.apply import causes
    from kubectl_reconcile.core.objects import warnings_among

    yield from (line(text, Tone.BAD) for text in causes.of_problems(plan.errors))
    yield from (line(f"warning: {text}", Tone.WARNING) for text in causes.of_problems(warnings_among(plan.problems)))
