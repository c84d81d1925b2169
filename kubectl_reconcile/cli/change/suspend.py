"""``kubectl reconcile suspend`` and ``resume``: Syncs told to leave the cluster as it is, and to go on."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli import options
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus
from kubectl_reconcile.cli.output.terminal import Terminal, Tone, line

if TYPE_CHECKING:  # these import all that talks to clusters, which help and completion do without
    from kubectl_reconcile.core.objects import Manifest
    from kubectl_reconcile.engine.sync.session import Session


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile suspend shop -n shop    drift stays, too
  kubectl reconcile suspend shop blog       several
  kubectl reconcile suspend --all           all of the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All Syncs of the namespace.")
@options.colour
@options.common
def suspend(connection: options.Connection, syncs: Sequence[str], *, everyone: bool, color: str) -> int:
    """Tell Syncs to leave the cluster as it is. Writes spec.suspend.

    Nothing is synced and no drift is put back until somebody resumes them.
    """
    return _steered(connection, syncs, everyone=everyone, color=color, verb="suspend")


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile resume shop -n shop    after suspend or rollback
  kubectl reconcile resume --all           all of the namespace
"""
)
@click.argument("syncs", metavar="SYNC...", nargs=-1)
@click.option("--all", "everyone", is_flag=True, help="All Syncs of the namespace.")
@options.colour
@options.common
def resume(connection: options.Connection, syncs: Sequence[str], *, everyone: bool, color: str) -> int:
    """Tell Syncs to go on. Writes their spec, and an annotation that the daemon heeds.

    Ends what suspend and rollback began, and a back-off that the daemon called because somebody else keeps
    writing the same fields.
    """
    return _steered(connection, syncs, everyone=everyone, color=color, verb="resume")


def _steered(connection: options.Connection, syncs: Sequence[str], *, everyone: bool, color: str, verb: str) -> int:
    if everyone and syncs:
        raise click.UsageError("--all means all Syncs of the namespace; drop it, or drop the names")
    if not (everyone or syncs):
        raise click.UsageError(f"which Sync? name it, or {verb} all of the namespace with --all")
    return connection.run(functools.partial(_steer, names=syncs, color=color, verb=verb))


async def _steer(session: Session, *, names: Sequence[str], color: str, verb: str) -> int:
    from kubectl_reconcile.engine.api import sync_requests  # noqa: PLC0415 - imports all that talks to clusters
    from kubectl_reconcile.engine.sync import targets  # noqa: PLC0415 - imports all that talks to clusters

    out, err = options.screens(color)
    found: Sequence[Manifest]
    if names:
        found = [await options.live_sync(session, name) for name in names]
    else:
        targets.require_installed(session)
        found, _ = await session.client.list(f"{sync_requests.SYNCS}/namespaces/{session.client.namespace}/syncs")
    for live in found:
        text = await (_suspended if verb == "suspend" else _resumed)(session, live)
        out.write([line(f"{live['metadata']['namespace']}/{live['metadata']['name']}: {text}")])
        warn_of_keeper(live, err)
    if not found:
        err.write([line("no Syncs in this namespace", Tone.ASIDE)], options.stderr())
    return ExitStatus.OK


async def _suspended(session: Session, live: Manifest) -> str:
    from kubectl_reconcile.engine.commands import suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    if (live.get("spec") or {}).get("suspend"):
        return "was suspended already"
    await suspend_resume.suspend(session.client, live)
    return "suspended"


async def _resumed(session: Session, live: Manifest) -> str:
    from kubectl_reconcile.engine.commands import suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    await suspend_resume.resume(session.client, live)
    if suspend_resume.is_pinned(live):
        return f"follows {suspend_resume.ref_text(suspend_resume.followed_before(live))} again"
    return "resumed" if (live.get("spec") or {}).get("suspend") else "goes on"


def warn_of_keeper(live: Manifest, err: Terminal) -> None:
    """Warn that what was changed of a Sync will be put back, where the Sync is itself kept by another."""
    from kubectl_reconcile.core.annotations import MemberOptions  # noqa: PLC0415 - the core, which help does without
    from kubectl_reconcile.engine.commands import suspend_resume  # noqa: PLC0415 - imports all that talks to clusters

    if suspend_resume.is_kept_by_another(live):
        file = MemberOptions.of(live).source or "a file"
        name = live["metadata"]["name"]
        advice = f"{name} is itself kept by a Sync, from {file}, which may put this back; change it there, too"
        err.write([line(f"warning: {advice}", Tone.WARNING)], options.stderr())
