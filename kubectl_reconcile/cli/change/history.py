"""``kubectl reconcile history`` and ``rollback``: what a Sync has applied, and how it goes back to that."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.change import suspend
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Line, Span, Tone, line, table

if TYPE_CHECKING:  # these import all that talks to clusters, which help and completion do without
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.engine.commands.history import HistoryEntry
    from kubectl_reconcile.engine.sync.session import Session

_COUNTS = ("created", "updated", "deleted", "failed")


# --- history ----------------------------------------------------------------------------------------------------------


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile history shop -n shop    what was applied when, and whose
  kubectl reconcile history shop -o json    the same for a program
"""
)
@click.argument("sync", required=False, metavar="[SYNC]")
@options.output("wide", "name", "json", "yaml")
@options.colour
@options.common
def history(connection: options.Connection, sync: str | None, *, output: str | None, color: str) -> int:
    """Show which revisions SYNC has applied, the newest first. Writes nothing.

    The one that the cluster is at has a star. Authors and subjects are read from Git, where it can be reached.
    """
    live, entries, why = connection.run(functools.partial(_read, name=sync or ""))
    out, err = options.screens(color)
    if why:
        err.write([line(f"warning: authors and subjects can't be told: {why}", Tone.WARNING)], options.stderr())
    if not entries and output not in {"json", "yaml"}:
        name = f"{live['metadata']['namespace']}/{live['metadata']['name']}"
        err.write([line(f"{name} has applied nothing yet", Tone.ASIDE)], options.stderr())
    out.write(_shown(live, entries, output, out.width))
    return ExitStatus.OK


async def _read(session: Session, *, name: str) -> tuple[Manifest, list[HistoryEntry], str]:
    from kubectl_reconcile.engine.commands import history  # noqa: PLC0415 - imports all that talks to clusters

    live = await options.live_sync(session, name)
    return live, *await history.with_commits(session, live, history.entries_of(live))


def _shown(live: Manifest, entries: Sequence[HistoryEntry], output: str | None, width: int | None) -> Iterator[Line]:
    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner

    match output:
        case "json":
            yield from render.json_lines(_document(live, entries))
        case "yaml":
            yield from render.yaml_lines(_document(live, entries))
        case "name":
            yield from (line(entry.revision) for entry in entries)
        case _ if entries:
            yield _title(live)
            yield from _table(entries, width, wide=output == "wide")


def _title(live: Manifest) -> Line:
    from kubectl_reconcile.engine.commands import suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    name = Span(f"{live['metadata']['namespace']}/{live['metadata']['name']}", Tone.TITLE)
    if suspend_resume.is_pinned(live):
        before = suspend_resume.ref_text(suspend_resume.followed_before(live))
        return (
            name,
            Span(
                f" was rolled back to {suspend_resume.ref_text(suspend_resume.ref_of(live))}; before, it followed {before}"
            ),
        )
    followed = bool((live.get("spec") or {}).get("source"))
    return (
        name,
        Span(f" follows {suspend_resume.ref_text(suspend_resume.ref_of(live))}" if followed else " is kept by hand"),
    )


def _table(entries: Sequence[HistoryEntry], width: int | None, *, wide: bool) -> list[Line]:
    now = options.now()
    titles = ["", "REVISION", "APPLIED", "RESULT", "OBJECTS", "AUTHOR", "SUBJECT"]
    return table(titles, [_row(entry, now, wide=wide) for entry in entries], None if wide else width)


def _row(entry: HistoryEntry, now: str, *, wide: bool) -> list[Span]:
    from kubectl_reconcile.cli.inspect import status  # noqa: PLC0415 - imports the planner
    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner

    commit, revision = entry.commit, entry.revision if wide else status.short(entry.revision)
    good = entry.result == "Synced"
    return [
        Span("*" if entry.is_current else " ", Tone.GOOD),
        Span(revision or "-"),
        Span(render.age(entry.time, now) or "-"),
        Span(entry.result or "-", Tone.GOOD if good else Tone.WARNING),
        Span(_counts(entry)),
        Span(commit.author if commit else "-"),
        Span(commit.subject if commit else "-" if good else entry.message),
    ]


def _counts(entry: HistoryEntry) -> str:
    did = ", ".join(f"{entry.counts[word]} {word}" for word in _COUNTS if entry.counts.get(word))
    return f"{entry.counts.get('total', '-')}{f' ({did})' if did else ''}"


def _document(live: Manifest, entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    from kubectl_reconcile.engine.commands import suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    return {
        "sync": {"namespace": live["metadata"]["namespace"], "name": live["metadata"]["name"]},
        "follows": suspend_resume.ref_of(live),
        "rolledBackFrom": suspend_resume.followed_before(live) if suspend_resume.is_pinned(live) else None,
        "entries": [_entry(entry) for entry in entries],
    }


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    commit = entry.commit
    made = {"author": commit.author, "committedAt": commit.committed_at, "subject": commit.subject} if commit else None
    return {**entry.counts, "current": entry.is_current, "commit": made}


# --- rollback ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A rollback that was looked at: to which commit, and what that would do."""

    live: Manifest
    sha: str
    plan: Plan


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile rollback shop --to 3f9c2e1 --dry-run   look first
  kubectl reconcile rollback shop                 to what was applied before
  kubectl reconcile resume shop                   follow the branch again
  kubectl reconcile rollback shop --to 3f9c2e1 --commit    for good, in Git
"""
)
@click.argument("sync", metavar="SYNC")
@click.option(
    "--to",
    "revision",
    metavar="REV",
    help="Commit (its first digits will do), tag or branch.  [default: the one before]",
)
@click.option("--commit", "in_git", is_flag=True, help="Restore the files by a new commit on the branch, and push it.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing. Without a terminal nothing is asked either.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it is done.")
@options.colour
@options.common
@click.pass_context
def rollback(
    ctx: click.Context,
    /,
    connection: options.Connection,
    sync: str,
    *,
    revision: str | None,
    in_git: bool,
    dry_run: bool,
    yes: bool,
    wait: bool,
    color: str,
) -> int:
    """Take SYNC back to a commit, and the cluster with it. Writes the Sync, or with --commit the repository.

    The Sync is pinned to the commit: nothing newer is applied, drift is still put back, and resume has it follow
    its branch again. With --commit the files go back instead, as a new commit made with your own git credentials.
    """
    prepared = connection.run(functools.partial(_prepared, name=sync, revision=revision or ""))
    out, err = options.screens(color)
    from kubectl_reconcile.cli.output import render  # noqa: PLC0415 - imports the planner

    view = render.PlanView(options.now())
    deletes = any(change.op.value in {"delete", "replace"} for change in prepared.plan.changes)
    asks = deletes and not yes and options.may_ask()
    if dry_run or asks:
        screen, stream = (out, None) if dry_run else (err, options.stderr())
        screen.write([*render.overview(prepared.plan, view), *render.obstacles(prepared.plan)], stream)
        screen.write([render.summary(prepared.plan)], stream)
    if dry_run:
        return ExitStatus.OK
    if asks and not click.confirm(f"Take {sync} back to {prepared.sha[:7]}?", default=False, err=True):
        raise Failure("nothing was rolled back", status=ExitStatus.HELD)
    said = connection.run(functools.partial(_restored if in_git else _pinned, prepared=prepared))
    out.write([line(said)])
    suspend.warn_of_keeper(prepared.live, err)
    from kubectl_reconcile.cli.change.sync import sync as now  # noqa: PLC0415 - imports the planner

    return int(ctx.invoke(now, sync=sync, yes=True, wait=wait, color=color, **connection.flags) or 0)


async def _prepared(session: Session, *, name: str, revision: str) -> _Prepared:
    from kubectl_reconcile.engine.apply import dry_run  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.commands import history  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.sync import reconcile  # noqa: PLC0415 - imports all that talks to clusters

    live = await options.live_sync(session, name)
    sha = await history.resolve(session, live, revision)
    target = await history.target_at(session, live, sha)
    plan = await dry_run.confirm(session.client, await reconcile.plan(session, target), target.sync)
    return _Prepared(live, sha, plan)


async def _pinned(session: Session, *, prepared: _Prepared) -> str:
    from kubectl_reconcile.engine.commands import suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    live = prepared.live
    after = await suspend_resume.pin(session.client, live, prepared.sha)
    before, name = suspend_resume.ref_text(suspend_resume.followed_before(after)), live["metadata"]["name"]
    place = f"{live['metadata']['namespace']}/{name}"
    again = f"kubectl reconcile resume {name} -n {live['metadata']['namespace']}"
    return f"{place} is pinned to commit {prepared.sha[:7]}; to follow {before} again: {again}"


async def _restored(session: Session, *, prepared: _Prepared) -> str:
    from kubectl_reconcile.engine.commands import history, suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    made, branch = await history.restore(session, prepared.live, prepared.sha)
    if suspend_resume.is_pinned(prepared.live):
        await suspend_resume.resume(session.client, prepared.live)
    path = (((prepared.live.get("spec") or {}).get("source") or {}).get("git") or {}).get("path", ".")
    if not made:
        return f"branch {branch} holds at {path} what {prepared.sha[:7]} held; nothing to commit"
    return f"pushed {made[:7]} to {branch}: {path} is as it was at {prepared.sha[:7]}"
