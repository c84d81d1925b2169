"""``kubectl reconcile wait``: returns once a Sync is as somebody needs it, or says why it isn't."""

from __future__ import annotations

import asyncio
import functools

from kubectl_reconcile.cli.options.connection import Connection
from kubectl_reconcile.cli.output.failures import STATUS_OF_REASON, ExitStatus, Failure
from kubectl_reconcile.cli.output.progress import Progress
from kubectl_reconcile.cli.output.terminal import Terminal, Tone, line, terminals
from kubectl_reconcile.cli.session import live_sync, run_until_interrupted
from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.resources.goals import Goal, is_reached, lack_of, message_of
from kubectl_reconcile.engine.api import sync_requests
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.session import Session


def wait(connection: Connection, sync: str | None, *, for_: str, timeout: float | None, color: str) -> int:
    """Wait until SYNC is healthy, synced, ready or deleted."""
    work = functools.partial(_waited, name=sync or "", goal=Goal(for_), timeout_s=timeout, screens=terminals(color))
    return run_until_interrupted(connection, work)


async def _waited(
    session: Session, *, name: str, goal: Goal, timeout_s: float | None, screens: tuple[Terminal, Terminal]
) -> int:
    targets.require_installed(session)
    out, _ = screens
    first = await _found(session, name, goal)
    if first is None:
        out.write([line(f"Sync {session.client.namespace}/{name} is deleted", Tone.GOOD)])
        return ExitStatus.OK
    live, ref, progress = first, ObjectRef.of(first), Progress(*screens)
    try:
        async with progress.drawn(), asyncio.timeout(timeout_s or None):
            async for now in sync_requests.versions(session.client, ref.namespace, ref.name):
                if is_reached(now, goal):
                    break
                if now is None:
                    raise Failure(f"Sync {ref.namespace}/{ref.name} was deleted meanwhile")
                live = now
                progress.note(ref, lack_of(live, goal)[1])
    except TimeoutError:
        raise _late(live, goal, timeout_s or 0.0) from None
    out.write([line(_reached(now, ref, goal), Tone.GOOD)])
    return ExitStatus.OK


async def _found(session: Session, name: str, goal: Goal) -> Manifest | None:
    """Return the live Sync; None where it is gone and that is what is waited for."""
    try:
        return await live_sync(session, name)
    except targets.NoSuchSync:
        if goal is Goal.DELETED and name:
            return None
        raise


def _reached(live: Manifest | None, ref: ObjectRef, goal: Goal) -> str:
    message = message_of(live, goal)
    name = f"Sync {ref.namespace}/{ref.name}"
    return f"{name} is {goal}: {message}" if message else f"{name} is {goal}"


def _late(live: Manifest, goal: Goal, timeout_s: float) -> Failure:
    ref, (reason, why) = ObjectRef.of(live), lack_of(live, goal)
    verb = "tree" if reason in _OF_MEMBERS else "status"
    hint = f"kubectl reconcile {verb} {ref.name} -n {ref.namespace}{' --unhealthy' if verb == 'tree' else ''}"
    status = STATUS_OF_REASON.get(reason, ExitStatus.FAILED)
    return Failure(
        f"Sync {ref.namespace}/{ref.name} isn't {goal} after {timeout_s:g} s: {why}",
        hint,
        status=status or ExitStatus.FAILED,
    )


_OF_MEMBERS = frozenset({"InProgress", "Failed"})
