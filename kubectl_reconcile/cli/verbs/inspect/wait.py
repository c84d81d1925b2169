"""``kubectl reconcile wait``: returns once a Sync is as somebody needs it, or says why it isn't."""

from __future__ import annotations

import functools
import re
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from kubectl_reconcile.cli.options.connection import Connection, common
from kubectl_reconcile.cli.options.flags import DURATION, colour
from kubectl_reconcile.cli.options.sync_name import SYNC_NAME
from kubectl_reconcile.cli.output.failures import EXIT_STATUSES, STATUS_OF_REASON, ExitStatus, Failure
from kubectl_reconcile.cli.output.terminal import Terminal, terminals
from kubectl_reconcile.views.text import Tone, line

if TYPE_CHECKING:
    from kubectl_reconcile.core.objects import Manifest, ObjectRef
    from kubectl_reconcile.core.resources.goals import Goal
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.sync.session import Session


@click.command(
    epilog=f"""{EXIT_STATUSES}
\b
Examples:
  kubectl reconcile wait shop -n shop             until everything is healthy
  kubectl reconcile wait shop --for synced        until it is applied
  kubectl reconcile wait shop --revision $SHA     at that commit
  kubectl reconcile wait shop --for deleted
"""
)
@click.argument("sync", required=False, metavar="[SYNC]", type=SYNC_NAME)
@click.option(
    "--for",
    "for_",
    type=click.Choice(["healthy", "synced", "ready", "deleted"]),
    default="healthy",
    show_default=True,
    help="What to wait for; ready is the same as kubectl wait --for=condition=Ready.",
)
@click.option(
    "--revision",
    default="",
    metavar="SHA",
    help="Also wait until this commit, or this version or digest of a chart or artifact, was processed. The first digits are enough. Asks the daemon to sync.",
)
@click.option(
    "--timeout", type=DURATION, default="5m", show_default=True, metavar="DURATION", help="How long to wait at most."
)
@colour
@common
def wait(
    connection: Connection, sync: str | None, *, for_: str, revision: str, timeout: float | None, color: str
) -> int:
    """Wait until SYNC is healthy, synced, ready or deleted. Writes nothing, except that --revision requests a sync.

    Healthy means that everything in the current spec is applied and healthy, down to the pods. If time runs out,
    the error names what isn't healthy, and the exit status is 5 if it is held or suspended, 4 if the source can't be used, else 6.

    If a commit changes nothing that the Sync reads, only --revision makes the daemon record it at once.
    """
    from kubectl_reconcile.cli.session import run_until_interrupted
    from kubectl_reconcile.core.resources.goals import Goal
    from kubectl_reconcile.core.revisions import is_packed

    goal, wanted = Goal(for_), revision.strip()
    wanted = wanted if is_packed(wanted) else wanted.lower()
    if wanted and (goal is Goal.DELETED or not (is_packed(wanted) or _HASH.fullmatch(wanted))):
        hint = "give at least four digits of a commit's hash, or a version or digest of what isn't in Git; --for deleted takes no revision"
        raise Failure(f"'{revision}' isn't a commit to wait for", hint, status=ExitStatus.USAGE)
    screens = terminals(color)
    work = functools.partial(_waited, name=sync or "", goal=goal, wanted=wanted, timeout_s=timeout, screens=screens)
    return run_until_interrupted(connection, work)


_HASH = re.compile(r"[0-9a-f]{4,64}")
_ASK_AGAIN_S = 5.0
"""How often the daemon is asked for a commit that it hasn't seen yet."""


async def _waited(
    session: Session,
    *,
    name: str,
    goal: Goal,
    wanted: str,
    timeout_s: float | None,
    screens: tuple[Terminal, Terminal],
) -> int:
    import asyncio

    from kubectl_reconcile.cli.output.progress import Progress
    from kubectl_reconcile.core.objects import ObjectRef
    from kubectl_reconcile.core.resources.goals import is_reached, was_tried
    from kubectl_reconcile.core.resources.sync import Sync
    from kubectl_reconcile.engine.api import sync_requests
    from kubectl_reconcile.engine.sync import targets

    targets.require_installed(session)
    out, _ = screens
    first = await _found(session, name, goal)
    if first is None:
        out.write([line(f"Sync {session.client.namespace}/{name} is deleted", Tone.GOOD)])
        return ExitStatus.OK
    live, ref, progress = first, ObjectRef.of(first), Progress(*screens)
    asking = None
    if wanted and not was_tried(first, wanted):
        await sync_requests.request_sync(session.client, Sync.of(first))
        asking = asyncio.create_task(_asked_again(session, Sync.of(first)))
    try:
        async with progress.drawn(), asyncio.timeout(timeout_s or None):
            async for now in sync_requests.versions(session.client, ref.namespace, ref.name):
                is_there = not wanted or was_tried(now, wanted)
                if is_reached(now, goal) and is_there:
                    break
                if is_there and asking is not None:
                    asking.cancel()
                if now is None:
                    raise Failure(f"Sync {ref.namespace}/{ref.name} was deleted meanwhile")
                live = now
                progress.note(ref, _lack(live, goal, wanted)[1])
    except TimeoutError:
        raise _late(live, goal, wanted, timeout_s or 0.0) from None
    finally:
        if asking is not None:
            asking.cancel()
    out.write([line(_reached(now, ref, goal), Tone.GOOD)])
    return ExitStatus.OK


async def _asked_again(session: Session, sync: Sync) -> None:
    """Have the daemon look for a commit again and again, until this is cancelled."""
    import asyncio

    from kubectl_reconcile.cluster.errors import ApiError
    from kubectl_reconcile.engine.api import sync_requests

    with suppress(ApiError):  # the first time it was let through; who waits sees what happens to the Sync
        while True:
            await asyncio.sleep(_ASK_AGAIN_S)
            await sync_requests.request_sync(session.client, sync)


def _lack(live: Manifest, goal: Goal, wanted: str) -> tuple[str, str]:
    """Return why a Sync isn't there yet: the reason in a word, and a sentence."""
    from kubectl_reconcile.core.objects import map_at
    from kubectl_reconcile.core.resources.goals import is_reached, lack_of, was_tried
    from kubectl_reconcile.core.revisions import short_of

    if is_reached(live, goal) and not was_tried(live, wanted):
        tried = str(map_at(live, "status").get("lastAttemptedRevision") or "")
        at = f"it is {goal} at {short_of(tried)}" if tried else "no commit was processed"
        return "", f"{at}, and {short_of(wanted)} isn't what its ref is at"
    return lack_of(live, goal)


async def _found(session: Session, name: str, goal: Goal) -> Manifest | None:
    """Return the live Sync; None where it is gone and that is what is waited for."""
    from kubectl_reconcile.cli.session import live_sync
    from kubectl_reconcile.core.resources.goals import Goal
    from kubectl_reconcile.engine.sync import targets

    try:
        return await live_sync(session, name)
    except targets.NoSuchSync:
        if goal is Goal.DELETED and name:
            return None
        raise


def _reached(live: Manifest | None, ref: ObjectRef, goal: Goal) -> str:
    from kubectl_reconcile.core.resources.goals import message_of

    message = message_of(live, goal)
    name = f"Sync {ref.namespace}/{ref.name}"
    return f"{name} is {goal}: {message}" if message else f"{name} is {goal}"


def _late(live: Manifest, goal: Goal, wanted: str, timeout_s: float) -> Failure:
    from kubectl_reconcile.core.objects import ObjectRef

    ref, (reason, why) = ObjectRef.of(live), _lack(live, goal, wanted)
    verb = "tree" if reason in _OF_MEMBERS else "status"
    hint = f"kubectl reconcile {verb} {ref.name} -n {ref.namespace}{' --unhealthy' if verb == 'tree' else ''}"
    status = STATUS_OF_REASON.get(reason, ExitStatus.FAILED)
    return Failure(
        f"Sync {ref.namespace}/{ref.name} isn't {goal} after {timeout_s:g} s: {why}",
        hint,
        status=status or ExitStatus.FAILED,
    )


_OF_MEMBERS = frozenset({"InProgress", "Failed"})
