"""``kubectl reconcile events`` and ``logs``: what daemons say of their work, as a list or live."""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, clean, line

if TYPE_CHECKING:
    from kubectl_reconcile.engine.commands.event_stream import StreamedEvent
    from kubectl_reconcile.engine.sync.session import Session

_NARROWEST = 40


class EventsOptions(Struct, frozen=True):
    """Which events are meant, and how they are shown."""

    sync: str
    everywhere: bool
    follow: bool
    since_s: float
    warnings: bool
    output: str
    out: Terminal
    err: Terminal


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile events -A                   the whole cluster
  kubectl reconcile events shop -n shop -f      one Sync, live
  kubectl reconcile logs -A --follow            the same command
  kubectl reconcile events --warnings -o json   one JSON object per line
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-f", "--follow", is_flag=True, help="Keep running, and show new events.")
@click.option("--since", type=DURATION, metavar="DURATION", help="Nothing older than this, such as 10m.")
@click.option("--warnings", is_flag=True, help="Only events that need attention.")
@output("json")
@colour
@common
def events(
    connection: Connection,
    sync: str | None,
    *,
    all_namespaces: bool,
    since: float | None,
    warnings: bool,
    output: str | None,
    follow: bool,
    color: str,
) -> int:
    """Show what daemons report about Syncs and custom resources. Writes nothing.

    These are Kubernetes Events, which the cluster keeps for about an hour. The newest is last. For the full log of a
    daemon, run: kubectl logs -n reconcile-system deploy/kubectl-reconcile
    """
    from kubectl_reconcile.cli.session import run_until_interrupted

    if sync and all_namespaces:
        raise click.UsageError("SYNC is in one namespace: leave out -A, or SYNC")
    screens = terminals(color)
    options = EventsOptions(sync or "", all_namespaces, follow, since or 0.0, warnings, output or "", *screens)
    return run_until_interrupted(connection, functools.partial(_told, options=options))


logs = events
"""The other name of the verb, for those who look for what a program does among its logs."""


async def _told(session: Session, *, options: EventsOptions) -> int:
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.commands.event_stream import Stream

    sync = await live_sync(session, options.sync) if options.sync else None
    stream = Stream(session, "" if options.everywhere else session.client.namespace, sync)
    past, version = await stream.past()
    shown = [said for said in past if _is_wanted(said, options)]
    for said in shown:
        _show(said, options)
    if not (shown or options.follow):
        where = options.sync or ("the cluster" if options.everywhere else f"namespace {session.client.namespace}")
        options.err.write([line(f"no events about {where} lately", Tone.ASIDE)])
    if options.follow:
        async for said in stream.following(version):
            if _is_wanted(said, options):
                _show(said, options)
    return ExitStatus.OK


def _is_wanted(said: StreamedEvent, options: EventsOptions) -> bool:
    if options.warnings and said.kind != "Warning":
        return False
    return not options.since_s or _age_s(said) <= options.since_s


def _age_s(said: StreamedEvent) -> float:
    import datetime as dt

    try:
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(said.time)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _show(said: StreamedEvent, options: EventsOptions) -> None:
    from kubectl_reconcile.views.document import plain
    from kubectl_reconcile.views.events import document

    options.out.write([line(json.dumps(plain(document(said))))] if options.output == "json" else _lines(said, options))


def _lines(said: StreamedEvent, options: EventsOptions) -> Iterator[Line]:
    """Yield one event: when, of what, why; where a screen is narrow, its message goes on below."""
    when = _clock(said.time)
    place = f"{said.about.namespace}/" if options.everywhere and said.about.namespace else ""
    about = f"{said.about.kind}/{place}{said.about.name}"
    tone = Tone.WARNING if said.kind == "Warning" else Tone.GOOD
    head = (
        Span(when, Tone.ASIDE),
        Span("  "),
        Span(about, Tone.TITLE),
        Span("  "),
        Span(said.reason, tone),
        Span(": "),
    )
    indent = len(when) + 2
    room = max((options.out.width or 0) - indent, _NARROWEST) if options.out.width else 0
    taken = sum(len(clean(span.text)) for span in head) - indent
    first, *rest = _wrapped(clean(said.note), room, taken)
    yield (*head, Span(first))
    yield from (line(f"{' ' * indent}{text}") for text in rest)


def _wrapped(text: str, room: int, taken: int) -> list[str]:
    """Return *text* in lines of *room* characters, the first of which has *taken* less; 0 means no limit."""
    if not room or len(text) + taken <= room:
        return [text]
    if taken >= room:
        return ["", *textwrap.wrap(text, room)]
    made = textwrap.wrap(text, room, initial_indent=" " * taken)
    return [made[0][taken:], *made[1:]]


def _clock(time: str) -> str:
    """Return a time as people here read it: of today the clock, else the date too."""
    import datetime as dt

    try:
        then = dt.datetime.fromisoformat(time).astimezone()
    except (ValueError, TypeError):
        return time or "-"
    today = then.date() == dt.datetime.now().astimezone().date()
    return then.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
