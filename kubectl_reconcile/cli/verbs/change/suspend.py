"""``kubectl reconcile suspend`` and ``resume``: Syncs told to leave the cluster as it is, and to go on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import colour
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile suspend shop -n shop    drift isn't corrected either
  kubectl reconcile suspend shop blog       several
  kubectl reconcile suspend --all           all in the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1, type=SYNC_NAME)
@click.option("--all", "everyone", is_flag=True, help="All Syncs in the namespace.")
@colour
@common
def suspend(connection: Connection, syncs: Sequence[str], *, everyone: bool, color: str) -> int:
    """Suspend Syncs: the cluster stays as it is. Writes spec.suspend.

    Until somebody resumes them, nothing is synced, and drift isn't corrected.
    """
    return _steered(connection, syncs, everyone=everyone, color=color, verb="suspend")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile resume shop -n shop    after suspend or rollback
  kubectl reconcile resume --all           all in the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1, type=SYNC_NAME)
@click.option("--all", "everyone", is_flag=True, help="All Syncs in the namespace.")
@colour
@common
def resume(connection: Connection, syncs: Sequence[str], *, everyone: bool, color: str) -> int:
    """Resume Syncs after suspend or rollback. Writes their spec, and an annotation for the daemon.

    This also writes contended fields again: fields that the daemon left to another controller, which kept overwriting
    them.
    """
    return _steered(connection, syncs, everyone=everyone, color=color, verb="resume")


def _steered(connection: Connection, syncs: Sequence[str], *, everyone: bool, color: str, verb: str) -> int:
    from kubectl_reconcile.cli.session import run

    if everyone and syncs:
        raise click.UsageError("--all means all Syncs in the namespace: leave out --all, or the names")
    if not (everyone or syncs):
        raise click.UsageError(f"name a Sync, or {verb} all Syncs in the namespace with --all")
    return run(connection, functools.partial(_steer, names=syncs, color=color, verb=verb))


async def _steer(session: Session, *, names: Sequence[str], color: str, verb: str) -> int:
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.api import sync_requests
    from kubectl_reconcile.engine.sync import targets

    out, err = terminals(color)
    found: Sequence[Manifest]
    if names:
        found = [await live_sync(session, name) for name in names]
    else:
        targets.require_installed(session)
        found, _ = await session.client.list(f"{sync_requests.SYNCS}/namespaces/{session.client.namespace}/syncs")
    for live in found:
        text = await (_suspended if verb == "suspend" else _resumed)(session, live)
        out.write([line(f"{live['metadata']['namespace']}/{live['metadata']['name']}: {text}")])
        warn_of_keeper(live, err)
    if not found:
        err.write([line("no Syncs in this namespace", Tone.ASIDE)])
    return ExitStatus.OK


async def _suspended(session: Session, live: Manifest) -> str:
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.engine.commands import suspend_resume

    if map_at(live, "spec").get("suspend"):
        return "is already suspended"
    await suspend_resume.suspend(session.client, live)
    return "suspended"


async def _resumed(session: Session, live: Manifest) -> str:
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.engine.commands import suspend_resume

    await suspend_resume.resume(session.client, live)
    if suspend_resume.is_pinned(live):
        return f"follows {suspend_resume.ref_text(suspend_resume.followed_before(live))} again"
    return "resumed" if map_at(live, "spec").get("suspend") else "goes on"


def warn_of_keeper(live: Manifest, err: Terminal) -> None:
    """Warn that what was changed of a Sync will be reverted, where the Sync is itself kept by another."""
    from kubectl_reconcile.core.annotations import MemberOptions
    from kubectl_reconcile.engine.commands import suspend_resume

    if suspend_resume.is_kept_by_another(live):
        file = MemberOptions.of(live).source or "a file"
        name = live["metadata"]["name"]
        advice = f"{name} is itself a member of a Sync, from {file}, which may undo this; change it there, too"
        err.write([line(f"warning: {advice}", Tone.WARNING)])
