"""``kubectl reconcile history`` and ``rollback``: what a Sync has applied, and how it goes back to that."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.origin import Origin
from kubectl_reconcile.cli.options.output import OutputOptions, output
from kubectl_reconcile.cli.options.selection import EVERYTHING
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.prompt import confirmed, may_ask
from kubectl_reconcile.cli.output.terminal import table, terminals
from kubectl_reconcile.cli.verbs.change import suspend
from kubectl_reconcile.cli.verbs.change.sync import SyncOptions, synced
from kubectl_reconcile.views.text import Line, Span, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.core.planning.plan import Plan
    from kubectl_reconcile.engine.commands.history import EarlierState, HistoryEntry
    from kubectl_reconcile.engine.sync.session import Session

_COUNTS = ("created", "updated", "deleted", "failed")


# --- history ----------------------------------------------------------------------------------------------------------


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile history shop -n shop    what was applied, and when
  kubectl reconcile history shop -o json    the same for a program
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@output("wide", "name", "json", "yaml")
@colour
@common
def history(connection: Connection, sync: str | None, *, output: str | None, color: str) -> int:
    """Show which revisions SYNC has applied, newest first. Writes nothing.

    A star marks the current one. Authors and subjects are read from Git, if it can be reached.
    """
    from kubectl_reconcile.cli.session import run

    live, entries, why = run(connection, functools.partial(_read, name=sync or ""))
    out, err = terminals(color)
    if why:
        err.write([line(f"warning: can't read authors and subjects: {why}", Tone.WARNING)])
    if not entries and output not in {"json", "yaml"}:
        name = f"{live['metadata']['namespace']}/{live['metadata']['name']}"
        err.write([line(f"{name} has applied nothing yet", Tone.ASIDE)])
    out.write(_shown(live, entries, output, out.width))
    return ExitStatus.OK


async def _read(session: Session, *, name: str) -> tuple[Manifest, list[HistoryEntry], str]:
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.commands import history as engine

    live = await live_sync(session, name)
    return live, *await engine.with_commits(session, live, engine.entries_of(live))


def _shown(live: Manifest, entries: Sequence[HistoryEntry], output: str | None, width: int | None) -> Iterator[Line]:
    from kubectl_reconcile.cli.output.data.structured import json_lines, yaml_lines
    from kubectl_reconcile.views import history as views

    match output:
        case "json":
            yield from json_lines(views.document(live, entries))
        case "yaml":
            yield from yaml_lines(views.document(live, entries))
        case "name":
            yield from (line(entry.revision) for entry in entries)
        case _ if entries:
            yield _title(live)
            yield from _table(entries, width, wide=output == "wide")


def _title(live: Manifest) -> Line:
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.engine.commands import suspend_resume

    name = Span(f"{live['metadata']['namespace']}/{live['metadata']['name']}", Tone.TITLE)
    if suspend_resume.is_pinned(live):
        before = suspend_resume.ref_text(suspend_resume.followed_before(live))
        return (
            name,
            Span(
                f" was rolled back to {suspend_resume.ref_text(suspend_resume.ref_of(live))}; before, it followed {before}"
            ),
        )
    followed = bool(map_at(live, "spec").get("source"))
    return (
        name,
        Span(f" follows {suspend_resume.follows_text(live)}" if followed else " is applied by hand"),
    )


def _table(entries: Sequence[HistoryEntry], width: int | None, *, wide: bool) -> list[Line]:
    from kubectl_reconcile.views.ages import current_time

    now = current_time()
    signed = any(entry.counts.get("signer") for entry in entries)
    signers = ["SIGNER", *(["KEY"] if wide else [])] if signed else []
    told = [name for name in ("tag", "chart") if any(entry.counts.get(name) for entry in entries)]
    titles = ["", "REVISION", *map(str.upper, told), "APPLIED", "RESULT", "OBJECTS", *signers, "AUTHOR", "SUBJECT"]
    columns = len(signers)
    rows = [_row(entry, now, columns, told, wide=wide) for entry in entries]
    return table(titles, rows, None if wide else width)


def _row(entry: HistoryEntry, now: str, signers: int, told: Sequence[str], *, wide: bool) -> list[Span]:
    from kubectl_reconcile.views import syncs
    from kubectl_reconcile.views.ages import age_of

    commit, revision = entry.commit, entry.revision if wide else syncs.short(entry.revision)
    good = entry.result == "Synced"
    return [
        Span("*" if entry.is_current else " ", Tone.GOOD),
        Span(revision or "-"),
        *(Span(str(entry.counts.get(name) or "-")) for name in told),
        Span(age_of(entry.time, now) or "-"),
        Span(entry.result or "-", Tone.GOOD if good else Tone.WARNING),
        Span(_counts(entry)),
        *(Span(str(entry.counts.get(name) or "-")) for name in ("signer", "key")[:signers]),
        Span(commit.author if commit else "-"),
        Span(commit.subject if commit else "-" if good else entry.message),
    ]


def _counts(entry: HistoryEntry) -> str:
    did = ", ".join(f"{entry.counts[word]} {word}" for word in _COUNTS if entry.counts.get(word))
    return f"{entry.counts.get('total', '-')}{f' ({did})' if did else ''}"


# --- rollback ---------------------------------------------------------------------------------------------------------


class _Prepared(Struct, frozen=True):
    """A rollback that was looked at: to which state, and what that would do."""

    live: Manifest
    state: EarlierState
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
@click.argument("sync", metavar="SYNC", type=SYNC_NAME)
@click.option(
    "--to",
    "revision",
    metavar="REV",
    help="Commit (its first digits are enough), tag or branch.  [default: the last one with other objects]",
)
@click.option(
    "--commit", "in_git", is_flag=True, help="Restore the files with a new commit on the branch, and push it."
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask for confirmation. Without a terminal, there is no question.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until it is done.")
@colour
@common
def rollback(
    connection: Connection,
    sync: str,
    *,
    revision: str | None,
    in_git: bool,
    dry_run: bool,
    yes: bool,
    wait: bool,
    color: str,
) -> int:
    """Roll SYNC back to a commit, and the cluster with it. Writes the Sync, or with --commit the repository.

    The Sync is pinned to the commit: nothing newer is applied, and drift is still corrected. To follow the branch again,
    use resume. With --commit, rollback restores the files instead, in a new commit with your own git credentials.

    If there is no such commit, or nothing was applied before, the exit status is 4 and nothing is written.
    """
    from kubectl_reconcile.cli.output import render
    from kubectl_reconcile.cli.session import run
    from kubectl_reconcile.views import changes
    from kubectl_reconcile.views.ages import current_time

    prepared = run(connection, functools.partial(_prepared, name=sync, revision=revision or ""))
    out, err = terminals(color)
    view = changes.PlanView(current_time())
    asks = not yes and may_ask()
    if dry_run or asks:
        screen = out if dry_run else err
        screen.write([*render.overview(prepared.plan, view), *render.attention(prepared.plan)])
        screen.write([render.summary(prepared.plan)])
    if dry_run:
        return ExitStatus.OK
    if asks and not confirmed(_question(sync, prepared.state, in_git=in_git)):
        raise Failure("nothing was rolled back", status=ExitStatus.HELD)
    said = run(connection, functools.partial(_restored if in_git else _pinned, prepared=prepared))
    out.write([line(said)])
    suspend.warn_of_keeper(prepared.live, err)
    options = SyncOptions(
        Origin(sync), EVERYTHING, yes=True, install=False, dry_run=False, wait=wait, timeout_s=None, plan="",
        look=OutputOptions("", color), out=out, err=err,
    )  # fmt: skip
    return synced(connection, options)


def _question(sync: str, state: EarlierState, *, in_git: bool) -> str:
    then = "commit that to its branch" if in_git else "pin it there"
    return f"Take {sync} back to {state}, and {then}?"


async def _prepared(session: Session, *, name: str, revision: str) -> _Prepared:
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.apply import dry_run
    from kubectl_reconcile.engine.commands import history as engine
    from kubectl_reconcile.engine.sync import gather, reconcile
    from kubectl_reconcile.engine.sync.signed_sources import require_verified

    live = await live_sync(session, name)
    state = await engine.resolve(session, live, revision)
    target = await engine.target_at(session, live, state)
    plan = await reconcile.preview(session, target)
    await require_verified(target, state.revision)
    plan = await dry_run.confirm(session.client, plan, target.sync, along=gather.lister(session))
    return _Prepared(live, state, plan)


async def _pinned(session: Session, *, prepared: _Prepared) -> str:
    from kubectl_reconcile.engine.commands import suspend_resume

    live = prepared.live
    after = await suspend_resume.pin(session.client, live, prepared.state.revision, prepared.state.helm)
    before, name = suspend_resume.ref_text(suspend_resume.followed_before(after)), live["metadata"]["name"]
    place = f"{live['metadata']['namespace']}/{name}"
    again = f"kubectl reconcile resume {name} -n {live['metadata']['namespace']}"
    return f"{place} is pinned to {_named(prepared.state)}; to follow {before} again: {again}"


def _named(state: EarlierState) -> str:
    from kubectl_reconcile.core.revisions import is_packed

    return str(state) if is_packed(state.revision) else f"commit {state}"


async def _restored(session: Session, *, prepared: _Prepared) -> str:
    from kubectl_reconcile.core.resources.source import path_of
    from kubectl_reconcile.core.revisions import short_of
    from kubectl_reconcile.engine.commands import history as engine
    from kubectl_reconcile.engine.commands import suspend_resume

    made, branch = await engine.restore(session, prepared.live, prepared.state)
    if suspend_resume.is_pinned(prepared.live):
        await suspend_resume.resume(session.client, prepared.live)
    path = path_of(prepared.live)
    if not made:
        return f"{path} on branch {branch} is the same as at {short_of(prepared.state.revision)}; nothing to commit"
    return f"pushed {made[:7]} to {branch}: {path} is as it was at {short_of(prepared.state.revision)}"
