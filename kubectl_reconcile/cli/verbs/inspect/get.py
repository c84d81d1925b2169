"""``kubectl reconcile get``: Syncs in a table, and in the forms that scripts take, as ``kubectl get`` has them."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import Terminal, table, terminals
from kubectl_reconcile.cli.verbs.inspect import status
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session

_FORMATS = ("wide", "name", "json", "yaml", "jsonpath=")
_FORMATS = ("wide", "name", "json", "yaml", "jsonpath=")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile get -A                    every Sync of the cluster
  kubectl reconcile get -l team=web -o wide   some, with what they follow
  kubectl reconcile get shop -o jsonpath='{{.status.lastAppliedRevision}}'
"""
)
@click.argument("syncs", metavar="[SYNC...]", nargs=-1, type=SYNC_NAME)
@click.option("-A", "--all-namespaces", is_flag=True, help="Syncs in all namespaces.")
@click.option("-l", "--selector", metavar="SELECTOR", default="", help="Syncs with these labels, such as team=web.")
@click.option("-w", "--watch", is_flag=True, help="Keep running, and show each Sync again when it changes.")
@click.option("--no-headers", is_flag=True, help="Leave out the column headers.")
@output(*_FORMATS)
@colour
@common
def get(
    connection: Connection,
    syncs: Sequence[str],
    *,
    all_namespaces: bool,
    selector: str,
    watch: bool,
    no_headers: bool,
    output: str | None,
    color: str,
) -> int:
    """Show Syncs in a table. Writes nothing.

    REF is what each Sync follows; after rollback, it is a commit. To see one Sync in full, use the command status.
    """
    from kubectl_reconcile.cli.session import run_until_interrupted

    if syncs and (all_namespaces or selector):
        raise click.UsageError("a named Sync is in one namespace: leave out -A and -l, or the names")
    if watch and output not in {None, "wide", "name"}:
        raise click.UsageError("--watch shows rows of a table: use it without -o, or with -o wide or name")
    place = _Scope(syncs, selector, everywhere=all_namespaces)
    show = _Table(*terminals(color), output or "", everywhere=all_namespaces, headers=not no_headers)
    return run_until_interrupted(connection, functools.partial(_get, place=place, show=show, watch=watch))


class _Scope:
    """Which Syncs are meant."""

    def __init__(self, names: Sequence[str], selector: str, *, everywhere: bool) -> None:
        self.names, self.selector, self.everywhere = tuple(names), selector, everywhere

    async def found(self, session: Session) -> tuple[list[Manifest], str]:
        """Return the Syncs meant, and from where to watch on."""
        from kubectl_reconcile.cli.session import live_sync

        items, version = await session.client.list(self._path(session), labelSelector=self.selector or None)
        if self.names:
            return [await live_sync(session, name) for name in self.names], version
        return sorted(items, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"])), version

    async def nothing(self, session: Session) -> str:
        """Return what to say where there are none."""
        from kubectl_reconcile.engine.sync import targets

        if self.everywhere or self.selector:
            return f"no Syncs in {'the cluster' if self.everywhere else 'this namespace'}"
        return await targets.none_here(session)

    async def changes(self, session: Session, version: str) -> AsyncIterator[tuple[str, Manifest]]:
        """Yield what happens to them from now on, for as long as the server lets a watch live."""
        from kubectl_reconcile.cluster.client import SHORT_WATCH_S

        path, selector = self._path(session), self.selector or None
        watch = session.client.watch(
            path, labelSelector=selector, resourceVersion=version, timeoutSeconds=SHORT_WATCH_S
        )
        async for kind, live in watch:
            if not self.names or live["metadata"]["name"] in self.names:
                yield kind, live

    def _path(self, session: Session) -> str:
        from kubectl_reconcile.engine.api.sync_requests import SYNCS

        return f"{SYNCS}/syncs" if self.everywhere else f"{SYNCS}/namespaces/{session.client.namespace}/syncs"


class _Table:
    """How they are shown."""

    def __init__(self, out: Terminal, err: Terminal, output: str, *, everywhere: bool, headers: bool) -> None:
        self.out, self.err, self.output = out, err, output
        self.everywhere, self.headers = everywhere, headers

    def write(self, found: Sequence[Manifest], *, one: bool, nothing: str) -> None:
        """Write all of *found*, or say *nothing*; *one* is meant where a single Sync was named."""
        if not found and self.output not in {"json", "yaml"} and not self.output.startswith("jsonpath="):
            self.err.write([line(nothing, Tone.ASIDE)])
        self.out.write(self._lines(found, one=one))

    def again(self, live: Manifest, *, gone: bool) -> None:
        """Write the row of a Sync that has changed."""
        rows = list(self._lines([live], one=True))
        self.out.write(rows[-1:] if not gone else [(*rows[-1], Span("  (deleted)", Tone.WARNING))])

    def _lines(self, found: Sequence[Manifest], *, one: bool) -> Iterable[Line]:
        if self.output and self.output != "wide":
            return status.documents(found, self.output, one=one)
        return self._table(found) if found else ()

    def _table(self, found: Sequence[Manifest]) -> list[Line]:
        from kubectl_reconcile.views.ages import current_time

        wide = self.output == "wide"
        now = current_time()
        titles = [
            "NAME",
            "READY",
            "REF",
            "REVISION",
            "OBJECTS",
            "AGE",
            *(["HEALTH", "URL", "PATH"] if wide else []),
            "STATUS",
        ]
        rows = [row(sync, now, wide=wide) for sync in found]
        if self.everywhere:
            titles = ["NAMESPACE", *titles]
            rows = [[Span(sync["metadata"]["namespace"]), *row] for sync, row in zip(found, rows, strict=True)]
        lines = table(titles, rows, None if wide else self.out.width)
        return lines if self.headers else lines[1:]


def row(sync: Manifest, now: str, *, wide: bool) -> list[Span]:
    """Return what a table shows of one Sync; *wide* tells what it follows, too."""
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.core.resources.source import address_of
    from kubectl_reconcile.engine.commands import suspend_resume
    from kubectl_reconcile.views import syncs
    from kubectl_reconcile.views.ages import age_of

    found, url = map_at(sync, "status"), address_of(sync)
    word, tone = syncs.readiness(sync)
    kind, _, ref = suspend_resume.follows_text(sync).partition(" ")
    followed = syncs.chart_of(sync) or (ref if kind != "the" else "(default)")
    if suspend_resume.is_pinned(sync):
        followed = f"{followed} (rolled back)"
    age = age_of(sync["metadata"].get("creationTimestamp", ""), now).removesuffix(" ago")
    return [
        Span(sync["metadata"]["name"]),
        Span(word, tone),
        Span(followed if url else "-"),
        Span(syncs.short(str(found.get("lastAppliedRevision") or "")) or "-"),
        Span(str(map_at(found, "summary").get("total", "-"))),
        Span(age or "-"),
        *(_wide(sync, url) if wide else []),
        Span(syncs.message_of(sync)),
    ]


def _wide(sync: Manifest, url: str) -> list[Span]:
    """Return how its members are, and what it follows."""
    from kubectl_reconcile.core.redaction import without_credentials
    from kubectl_reconcile.core.resources.source import path_of
    from kubectl_reconcile.views import syncs

    return [Span(syncs.health_of(sync)), Span(without_credentials(url) or "-"), Span(path_of(sync) if url else "-")]


async def _get(session: Session, *, place: _Scope, show: _Table, watch: bool) -> int:
    from kubectl_reconcile.cluster.errors import Gone, SilentWatch
    from kubectl_reconcile.engine.sync import targets

    targets.require_installed(session)
    found, version = await place.found(session)
    show.write(found, one=len(place.names) == 1, nothing="" if found else await place.nothing(session))
    while watch:
        try:
            async for kind, live in place.changes(session, version):
                version = live["metadata"]["resourceVersion"]
                show.again(live, gone=kind == "DELETED")
        except SilentWatch:
            continue  # from where it was
        except Gone:
            _, version = await place.found(session)
    return ExitStatus.OK
