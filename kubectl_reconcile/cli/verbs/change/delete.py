"""``kubectl reconcile delete``: a Sync goes, and its members with it or not, as its deletion policy says."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, ExitStatus, Failure
from kubectl_reconcile.cli.output.prompt import confirmed, may_ask
from kubectl_reconcile.cli.output.terminal import terminals
from kubectl_reconcile.cli.verbs.change.suspend import warn_of_keeper
from kubectl_reconcile.views.text import Line, Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest, ObjectRef
    from kubectl_reconcile.engine.commands.delete_sync import Deletion
    from kubectl_reconcile.engine.commands.rights.granting import GrantStep
    from kubectl_reconcile.engine.sync.session import Session

_SHOWN = 20


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile delete shop -n shop     says what happens, and asks
  kubectl reconcile delete shop --orphan    its members stay
"""
)
@click.argument("sync", metavar="SYNC", type=SYNC_NAME)
@click.option("--orphan", is_flag=True, help="Keep the members, even if spec.deletionPolicy is Prune.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask. Needed without a terminal.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the Sync is gone.")
@click.option(
    "--timeout",
    type=DURATION,
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long to wait; 0 means no limit.",
)
@colour
@common
def delete(
    connection: Connection, sync: str, *, orphan: bool, yes: bool, wait: bool, timeout: float, color: str
) -> int:
    """Delete the Sync SYNC, and its members if its spec.deletionPolicy is Prune. Writes to the cluster.

    It first says which members are deleted and which stay. The daemon deletes them; for a Sync that is applied by hand
    (sync -f), this command does. Members of a suspended Sync stay. If the Sync is itself a member of another Sync, it
    is recreated, unless you remove its file, too.
    """
    from kubectl_reconcile.cli.session import run

    work = functools.partial(
        _delete, name=sync, orphan=orphan, yes=yes, timeout_s=timeout if wait else None, color=color
    )
    return run(connection, work)


async def _delete(session: Session, *, name: str, orphan: bool, yes: bool, timeout_s: float | None, color: str) -> int:
    from kubectl_reconcile.cli.output.results import result_line
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.engine.commands import delete_sync
    from kubectl_reconcile.engine.commands.rights import granting

    out, err = terminals(color)
    live = await live_sync(session, name)
    deletion = await delete_sync.foresee(session, live, orphan=orphan)
    granted: dict[ObjectRef, Manifest] = {}
    for each in deletion.syncs:
        granted |= await granting.granted(session, each, deletion.places)
    err.write(_foretold(deletion))
    if granted:
        err.write([line("the rights that were granted to it are revoked, too:", Tone.WARNING)])
        err.write(line(f"  {ref}", Tone.REMOVED) for ref in granted)
    warn_of_keeper(live, err)
    await _require_daemon(session, deletion)
    _require_consent(deletion, yes=yes)
    if deletion.prunes and deletion.unlisted and not deletion.by_daemon:
        raise Failure(
            f"members that can't be listed can't be deleted, so Sync {_named(deletion)} stays",
            "ask somebody who may list these kinds to delete it, or keep the members with --orphan",
        )
    if deletion.goes and not deletion.by_daemon:
        results = await delete_sync.delete_members(session, deletion)
        out.write(result_line(result) for result in results)
        _require_success(deletion, len(delete_sync.failed(results)))
    await delete_sync.delete(session, deletion)
    if timeout_s is not None:
        await _wait(session, deletion, timeout_s)
        out.write([await _revoked(session, step) for step in map(granting.removal, granted, granted.values())])
    elif granted:
        names = " ".join(
            f"{ref.kind.lower()}/{ref.name}{f' -n {ref.namespace}' if ref.namespace else ''}" for ref in granted
        )
        err.write([line(f"to revoke its rights once it is gone: kubectl delete {names}", Tone.WARNING)])
    told = "deleted " if timeout_s is not None else "deletion requested: "
    out.write([line(f"{told} Sync {_named(deletion)}", Tone.REMOVED)])
    return ExitStatus.OK


async def _revoked(session: Session, step: GrantStep) -> Line:
    """Remove one object of a grant, and return how that ended; whoever may not can have somebody else do so."""
    from kubectl_reconcile.cluster.errors import ApiError
    from kubectl_reconcile.engine.commands.rights import granting

    try:
        await granting.apply(session, step)
    except ApiError as error:
        return line(f"not deleted: {step.ref}: {error}", Tone.BAD)
    return line(f"deleted  {step.ref}", Tone.REMOVED)


def _foretold(deletion: Deletion) -> Iterator[Line]:
    """Yield what happens to the members, and why."""
    goes, there = deletion.goes, len(deletion.members)
    if goes:
        by = "the daemon deletes" if deletion.by_daemon else "deleted from here:"
        yield line(f"deletionPolicy is Prune: {by} {_counted(len(goes))} of {_named(deletion)}, too", Tone.WARNING)
        yield from (line(f"  {ref}", Tone.REMOVED) for ref in goes[:_SHOWN])
        if len(goes) > _SHOWN:
            yield line(f"  and {len(goes) - _SHOWN} more", Tone.REMOVED)
    yield from _taken_along(deletion)
    if left := there - len(goes):
        yield line(f"{_counted(left)} of {_named(deletion)} stay{'s' * (left == 1)}: {_reason(deletion)}")
        if deletion.orphan and deletion.is_under_way:
            yield from (line(f"  {ref}") for ref in deletion.members[:_SHOWN])
            if there > _SHOWN:
                yield line(f"  and {there - _SHOWN} more")
    if deletion.unlisted:
        kinds = ", ".join(map(str, deletion.unlisted))
        yield line(f"you may not list all kinds, so members of {_named(deletion)} of these kinds aren't shown: {kinds}")
    elif not there:
        yield line(f"{_named(deletion)} has no members")


def _taken_along(deletion: Deletion) -> Iterator[Line]:
    """Yield what goes along with members, and what of that isn't known."""
    if along := deletion.along:
        objects = "1 other object" if len(along) == 1 else f"{len(along)} other objects"
        yield line(f"{objects} will be deleted, too:", Tone.WARNING)
        yield from (line(f"  {ref}", Tone.REMOVED) for ref in along[:_SHOWN])
        if len(along) > _SHOWN:
            yield line(f"  and {len(along) - _SHOWN} more", Tone.REMOVED)
    if deletion.uncounted:
        yield line(f"not counted, because they can't be listed: {', '.join(deletion.uncounted)}", Tone.WARNING)


_STAYS = "annotated to be kept, already being deleted, or without a record of who applied them"


def _reason(deletion: Deletion) -> str:
    from kubectl_reconcile.core.resources.sync import DeletionPolicy

    if deletion.goes:
        return _STAYS
    if deletion.orphan:
        return "--orphan"
    if deletion.sync.deletion is DeletionPolicy.PRUNE:
        return "the Sync is suspended" if deletion.sync.suspend else _STAYS
    return "deletionPolicy is Orphan"


async def _require_daemon(session: Session, deletion: Deletion) -> None:
    """Return unless it is known that nobody would delete the members: the Sync would hang in its deletion."""
    from kubectl_reconcile.engine.api import sync_requests

    alive = await sync_requests.daemon_alive(session.client, deletion.sync.namespace) if deletion.by_daemon else True
    if alive is False:
        raise Failure(
            f"no daemon is running to delete the members of {_named(deletion)}",
            "start one, or keep the members with --orphan",
        )


def _require_consent(deletion: Deletion, *, yes: bool) -> None:
    if yes:
        return
    if not may_ask():
        raise Failure("nothing was deleted", "without a terminal, add --yes", status=ExitStatus.USAGE)
    along = f" and {_counted(len(deletion.goes))}" if deletion.goes else ""
    if not confirmed(f"Delete Sync {_named(deletion)}{along}?"):
        raise Failure("nothing was deleted", "--orphan keeps the members" * bool(along), status=ExitStatus.HELD)


def _require_success(deletion: Deletion, failed: int) -> None:
    if failed:
        raise Failure(
            f"{_counted(failed)} couldn't be deleted, so Sync {_named(deletion)} stays",
            "fix the cause and delete the Sync again, or keep the remaining members with --orphan",
        )


async def _wait(session: Session, deletion: Deletion, timeout_s: float) -> None:
    from kubectl_reconcile.engine.commands import delete_sync

    try:
        await delete_sync.until_gone(session, deletion, timeout_s=timeout_s)
    except TimeoutError:
        raise Failure(
            f"Sync {_named(deletion)} is being deleted, but still exists after {timeout_s:g} s",
            f"see what it waits for: kubectl get sync {deletion.sync.name} -n {deletion.sync.namespace} -o yaml",
        ) from None


def _named(deletion: Deletion) -> str:
    return f"{deletion.sync.namespace}/{deletion.sync.name}"


def _counted(number: int) -> str:
    return f"{number} member{'s' * (number != 1)}"
