"""``kubectl reconcile status``: how Syncs are doing, in a table, and one of them in full."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.output import output
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import table, terminals
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session

_HISTORY_SHOWN = 5
_COUNTS = ("created", "updated", "deleted", "failed")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile status -A               every Sync of the cluster
  kubectl reconcile status shop -n shop     one in full
  kubectl reconcile status shop -o json     the object itself
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@click.option("-A", "--all-namespaces", is_flag=True, help="Syncs in all namespaces.")
@output("wide", "json", "yaml", "name", "jsonpath=")
@colour
@common
def status(connection: Connection, sync: str | None, *, all_namespaces: bool, output: str | None, color: str) -> int:
    """Show the status of Syncs. Writes nothing.

    With SYNC: its conditions, what the last syncs did, and its problems.
    """
    from kubectl_reconcile.cli.session import run

    if sync and all_namespaces:
        raise click.UsageError("SYNC is in one namespace: leave out -A, or SYNC")
    found, nothing = run(connection, functools.partial(_found, name=sync or "", everywhere=all_namespaces))
    out, err = terminals(color)
    if not found:
        err.write([line(nothing, Tone.ASIDE)])
    out.write(_shown(found, output, one=bool(sync), everywhere=all_namespaces, width=out.width))
    return ExitStatus.OK


async def _found(session: Session, *, name: str, everywhere: bool) -> tuple[Sequence[Manifest], str]:
    """Return the Syncs meant, and what to say where there are none."""
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.api import sync_requests
    from kubectl_reconcile.engine.sync import targets

    targets.require_installed(session)
    if name:
        return [await live_sync(session, name)], ""
    place = "" if everywhere else f"/namespaces/{session.client.namespace}"
    items, _ = await session.client.list(f"{sync_requests.SYNCS}{place}/syncs")
    if not items:
        return [], "no Syncs in the cluster" if everywhere else await targets.none_here(session)
    return sorted(items, key=lambda item: (item["metadata"]["namespace"], item["metadata"]["name"])), ""


def _shown(
    found: Sequence[Manifest], output: str | None, *, one: bool, everywhere: bool, width: int | None
) -> Iterable[Line]:
    from kubectl_reconcile.views.ages import current_time

    if output and output != "wide":
        return documents(found, output, one=one)
    if one and found and output != "wide":
        return details(found[0], current_time())
    if found:
        return overview(found, current_time(), wide=output == "wide", everywhere=everywhere, width=width)
    return ()


def documents(found: Sequence[Manifest], output: str, *, one: bool) -> Iterable[Line]:
    """Return Syncs in a form for programs: names, JSON, YAML, or through a JSONPath template."""
    from kubectl_reconcile.cli.output.data.structured import structured
    from kubectl_reconcile.views import syncs

    if output == "name":
        return [line(f"sync.reconcile.dev/{sync['metadata']['name']}") for sync in found]
    return structured(syncs.listed(found, one=one), output)


# --- the table --------------------------------------------------------------------------------------------------------


def overview(
    found: Sequence[Manifest], now: str, *, wide: bool = False, everywhere: bool = False, width: int | None = None
) -> list[Line]:
    """Return a table of Syncs, one a row."""
    titles = ["NAME", "READY", "REVISION", "OBJECTS", "LAST SYNC", *(["HEALTH", "SOURCE"] if wide else []), "MESSAGE"]
    rows = [_row(sync, now, wide=wide) for sync in found]
    if everywhere:
        titles = ["NAMESPACE", *titles]
        rows = [[Span(sync["metadata"]["namespace"]), *row] for sync, row in zip(found, rows, strict=True)]
    return table(titles, rows, None if wide else width)


def _row(sync: Manifest, now: str, *, wide: bool) -> list[Span]:
    from kubectl_reconcile.core.objects import map_at, maps_in
    from kubectl_reconcile.views import syncs

    found = map_at(sync, "status")
    word, tone = syncs.readiness(sync)
    newest = next(iter(maps_in(found.get("history"))), {})
    return [
        Span(sync["metadata"]["name"]),
        Span(word, tone),
        Span(syncs.short(str(found.get("lastAppliedRevision") or "")) or "-"),
        Span(str(map_at(found, "summary").get("total", "-"))),
        Span(_ago(newest.get("time"), now) or "-"),
        *([Span(syncs.health_of(sync)), Span(_source(sync))] if wide else []),
        Span(syncs.message_of(sync)),
    ]


def _source(sync: Manifest) -> str:
    from kubectl_reconcile.core.redaction import without_credentials
    from kubectl_reconcile.core.resources.source import address_of, has_git, has_oci, path_of
    from kubectl_reconcile.engine.commands import suspend_resume
    from kubectl_reconcile.views import syncs

    url, ref = without_credentials(address_of(sync)), suspend_resume.follows_text(sync)
    if not url:
        return "-"
    chart = f", chart {asked}" if (asked := syncs.chart_of(sync)) else ""
    if not (has_git(sync) or has_oci(sync)):
        return f"{url}{chart}"
    kind, _, name = ref.partition(" ")
    return f"{url}{f' {name}' if kind != 'the' else ''} {path_of(sync)}{chart}"


def _ago(then: Any, now: str) -> str:
    from kubectl_reconcile.views.ages import age_of

    return age_of(str(then or ""), now)


# --- one in full ------------------------------------------------------------------------------------------------------


def details(sync: Manifest, now: str) -> Iterator[Line]:
    """Yield everything there is to know of one Sync, each sentence once."""
    from kubectl_reconcile.core.objects import conditions_of, map_at, maps_in
    from kubectl_reconcile.views import syncs

    metadata, found = sync["metadata"], map_at(sync, "status")
    word, tone = syncs.readiness(sync)
    said = syncs.message_of(sync)
    problems = [each for each in syncs.texts(found.get("problems")) if each not in said]
    yield (
        Span(f"{metadata['namespace']}/{metadata['name']}", Tone.TITLE),
        Span("  "),
        Span(word, tone),
        Span(f"  {said}"),
    )
    yield from _facts(sync, found)
    yield from _section("Conditions", list(_told_once(conditions_of(sync), said, now)))
    yield from _section("Unhealthy", list(_unhealthy(found, now)))
    yield from _section("Problems", [line(f"  {each}", Tone.BAD) for each in problems])
    yield from _section("Warnings", [line(f"  {each}", Tone.WARNING) for each in syncs.texts(found.get("warnings"))])
    yield from _section("History", _history(maps_in(found.get("history"))[:_HISTORY_SHOWN], now))


def _facts(sync: Manifest, found: Mapping[str, Any]) -> Iterator[Line]:
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.views import syncs

    applied, tried = (
        syncs.short(str(found.get(key) or "")) for key in ("lastAppliedRevision", "lastAttemptedRevision")
    )
    facts = {
        "Source": _source(sync)
        if map_at(sync, "spec").get("source")
        else "none, applied by hand with sync -f or --repo",
        "Applied": syncs.applied_of(sync) or "-",
        "Tried": tried if tried != applied else "",
        "Objects": _objects(map_at(found, "summary")),
        "Health": syncs.health_of(sync) if "health" in found else "",
    }
    yield from (((Span(f"{name + ':':<9}", Tone.ASIDE), Span(f" {value}")) for name, value in facts.items() if value))


def _unhealthy(found: Mapping[str, Any], now: str) -> Iterator[Line]:
    """Yield a line for each member that is named, the worst first."""
    from kubectl_reconcile.core.objects import map_at, maps_in

    for each in maps_in(map_at(found, "health").get("unhealthy")):
        tone = Tone.BAD if each.get("health") == "Failed" else Tone.WARNING
        yield (
            Span(f"  {each.get('object', '')}  "),
            Span(str(each.get("health", "")), tone),
            Span(f"  {_ago(each.get('since'), now)}", Tone.ASIDE),
            Span(f"  {each.get('message') or ''}"),
        )


def _objects(summary: Mapping[str, Any]) -> str:
    """Return how many objects there are, and how many of them fail.

    What was written is told in the history, which says when: the summary keeps it long after.
    """
    failed = f" ({summary['failed']} failed)" if summary.get("failed") else ""
    return f"{summary.get('total', '-')}{failed}"


def _pass(row: Mapping[str, Any]) -> str:
    """Return what the pass of a row of the history did, and how many objects there were after it."""
    total = row.get("total", 0)
    did = "".join(f", {row[word]} {word}" for word in _COUNTS if row.get(word))
    return f"{total} object{'' if total == 1 else 's'}{did}"


def _told_once(conditions: Iterable[Mapping[str, Any]], said: str, now: str) -> Iterator[Line]:
    """Yield a line for each condition, without the message where that was *said* already."""
    known = {said}
    for one in conditions:
        message = str(one.get("message") or "")
        yield _condition({**one, "message": "" if message in known else message}, now)
        known.add(message)


def _condition(one: Mapping[str, Any], now: str) -> Line:
    good = {"Ready": "True", "Synced": "True", "Healthy": "True", "Reconciling": "False", "Stalled": "False"}.get(
        str(one.get("type"))
    )
    state = str(one.get("status", ""))
    tone = Tone.GOOD if state == good else Tone.WARNING if good else Tone.PLAIN
    since = _ago(one.get("lastTransitionTime"), now)
    text = " ".join(part for part in (str(one.get("reason", "")), str(one.get("message") or "")) if part)
    return (
        Span(f"  {one.get('type', ''):<12}"),
        Span(f"{state:<8}", tone),
        Span(f"{since:<9}", Tone.ASIDE),
        Span(text),
    )


def _history(entries: Sequence[Mapping[str, Any]], now: str) -> list[Line]:
    from kubectl_reconcile.views import syncs

    return [
        (
            Span(f"  {_ago(entry.get('time'), now):<9}", Tone.ASIDE),
            Span(f"{syncs.short(str(entry.get('revision') or '')):<9}"),
            Span(f"{entry.get('result', '')}", Tone.GOOD if entry.get("result") == "Synced" else Tone.WARNING),
            Span(
                f"  {_pass(entry)}{''.join(f', {name} {entry[name]}' for name in ('chart', 'tag') if entry.get(name))}"
            ),
        )
        for entry in entries
    ]


def _section(title: str, lines: Sequence[Line]) -> Iterator[Line]:
    if lines:
        yield line(f"{title}:", Tone.ASIDE)
        yield from lines
