"""``kubectl reconcile events`` and ``logs``: what daemons say of their work, as a list or live."""

from __future__ import annotations

import datetime as dt
import functools
import json
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import Line, Span, Terminal, Tone, clean, line

if TYPE_CHECKING:  # these import all that talks to clusters, which help and completion do without
    from kubectl_reconcile.engine.commands.event_stream import StreamedEvent
    from kubectl_reconcile.engine.sync.session import Session

_NARROWEST = 40


@dataclass(frozen=True, slots=True)
class _EventsOptions:
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
  kubectl reconcile events -A                   all of the cluster
  kubectl reconcile events shop -n shop -f      of one Sync, live
  kubectl reconcile logs -A --follow            the same verb
  kubectl reconcile events --warnings -o json   one JSON object a line
"""
)
@click.argument("sync", required=False, metavar="[SYNC]")
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@click.option("-f", "--follow", is_flag=True, help="Go on, and show what is said as it is said.")
@click.option("--since", type=options.DURATION, metavar="DURATION", help="Nothing older than this, as in 10m.")
@click.option("--warnings", is_flag=True, help="Only what needs somebody's attention.")
@options.output("json")
@options.colour
@options.common
def events(
    connection: options.Connection,
    sync: str | None,
    *,
    all_namespaces: bool,
    since: float | None,
    warnings: bool,
    output: str | None,
    follow: bool,
    color: str,
) -> int:
    """Show what daemons said of Syncs and custom resources. Writes nothing.

    These are Kubernetes Events, which the cluster keeps for an hour or so; the newest is last. What a daemon logs
    in full is with its pod: kubectl logs -n reconcile-system deploy/kubectl-reconcile.
    """
    if sync and all_namespaces:
        raise click.UsageError("SYNC is looked up in one namespace; drop -A, or drop SYNC")
    screens = options.screens(color)
    wishes = _EventsOptions(sync or "", all_namespaces, follow, since or 0.0, warnings, output or "", *screens)
    return connection.run_until_interrupted(functools.partial(_told, wishes=wishes))


logs = events
"""The other name of the verb, for those who look for what a program does among its logs."""


async def _told(session: Session, *, wishes: _EventsOptions) -> int:
    from kubectl_reconcile.engine.commands.event_stream import Stream  # noqa: PLC0415 - imports all that talks to clusters

    sync = await options.live_sync(session, wishes.sync) if wishes.sync else None
    stream = Stream(session, "" if wishes.everywhere else session.client.namespace, sync)
    past, version = await stream.past()
    shown = [said for said in past if _is_wanted(said, wishes)]
    for said in shown:
        _show(said, wishes)
    if not (shown or wishes.follow):
        where = wishes.sync or ("the cluster" if wishes.everywhere else f"namespace {session.client.namespace}")
        wishes.err.write([line(f"nothing was said of {where} lately", Tone.ASIDE)], options.stderr())
    if wishes.follow:
        async for said in stream.following(version):
            if _is_wanted(said, wishes):
                _show(said, wishes)
    return ExitStatus.OK


def _is_wanted(said: StreamedEvent, wishes: _EventsOptions) -> bool:
    if wishes.warnings and said.kind != "Warning":
        return False
    return not wishes.since_s or _age_s(said) <= wishes.since_s


def _age_s(said: StreamedEvent) -> float:
    try:
        return (dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(said.time)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def _show(said: StreamedEvent, wishes: _EventsOptions) -> None:
    wishes.out.write([line(_json(said))] if wishes.output == "json" else _lines(said, wishes))


def _json(said: StreamedEvent) -> str:
    ref = said.about
    about = {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    found = {"time": said.time, "type": said.kind, "reason": said.reason, "object": about, "message": said.note}
    return json.dumps({**found, "daemon": said.daemon})


def _lines(said: StreamedEvent, wishes: _EventsOptions) -> Iterator[Line]:
    """Yield one event: when, of what, why; where a screen is narrow, its message goes on below."""
    when = _clock(said.time)
    place = f"{said.about.namespace}/" if wishes.everywhere and said.about.namespace else ""
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
    room = max((wishes.out.width or 0) - indent, _NARROWEST) if wishes.out.width else 0
    taken = sum(len(clean(span.text)) for span in head) - indent
    first, *rest = _wrapped(clean(said.note), room, taken)
    yield (*head, Span(first))
    yield from (line(f"{' ' * indent}{text}") for text in rest)


def _wrapped(text: str, room: int, taken: int) -> list[str]:
    """Return *text* in lines of *room* characters, the first of which has *taken* less; 0 is no limit."""
    if not room or len(text) + taken <= room:
        return [text]
    if taken >= room:
        return ["", *textwrap.wrap(text, room)]
    made = textwrap.wrap(text, room, initial_indent=" " * taken)
    return [made[0][taken:], *made[1:]]


def _clock(time: str) -> str:
    """Return a time as people here read it: of today the clock, else the date too."""
    try:
        then = dt.datetime.fromisoformat(time).astimezone()
    except (ValueError, TypeError):
        return time or "-"
    today = then.date() == dt.datetime.now().astimezone().date()
    return then.strftime("%H:%M:%S" if today else "%Y-%m-%d %H:%M:%S")
