"""What a person may have done to a Sync from the page: each the same that a verb of the command line does, by their own rights, told in a sentence.

What they approve or go back to is named in full, as they were shown it: where it isn't so any more, nothing is done.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from kubectl_reconcile.cluster.errors import ApiError, printable
from kubectl_reconcile.core.annotations import APPROVED_ACTIONS
from kubectl_reconcile.core.module.action_journal import approving
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.resources.sync import SYNC, Sync
from kubectl_reconcile.engine.api import access_reviews, sync_requests
from kubectl_reconcile.engine.apply import dry_run
from kubectl_reconcile.engine.commands import custom_resource, history, suspend_resume
from kubectl_reconcile.engine.sync import gather, reconcile, targets
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.signed_sources import require_verified
from kubectl_reconcile.engine.telemetry.logs import event
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.errors import Refused

_LOG = logging.getLogger(__name__)

Asked = Mapping[str, Any]
"""What a page sends with what it wants done."""

Doing = Callable[[Session, Manifest, Asked], Awaitable[str]]
"""What has something done, and says what that was."""


async def may_write(session: Session, live: Manifest, verb: str = "patch") -> bool:
    """Tell whether somebody may have anything done to a Sync, which takes the right to *verb* it.

    Raises:
        ApiError: the server refuses to say, or doesn't answer.
    """
    metadata = live["metadata"]
    right = Right(SYNC.group, "syncs", verb, metadata["name"])
    return await access_reviews.may(session.client, metadata["namespace"], right)


async def check_right(who: Asker, session: Session, live: Manifest) -> None:
    """Return if somebody may patch an object, which everything takes that they may have done to it.

    Raises:
        Refused: they may not.
        ApiError: the server refuses to say, or doesn't answer.
    """
    gvk, metadata = GroupVersionKind.of(live), live["metadata"]
    resource = session.discovery.find(gvk.api_version, gvk.kind)
    if resource is None:
        raise Refused(404, f"the cluster serves no kind {gvk.kind} any more")
    right = Right(gvk.group, resource.plural, "patch", metadata["name"])
    if not await access_reviews.may(session.client, metadata.get("namespace", ""), right):
        raise Refused(403, f"{printable(await who.known_as())} may not patch {ObjectRef.of(live)}")


async def sync(session: Session, live: Manifest, _asked: Asked) -> str:
    """Ask the daemon for a sync.

    Raises:
        Refused: the Sync is applied by hand, or no daemon follows it.
        ApiError: the server refuses, or doesn't answer.
    """
    wanted, place = Sync.of(live), live["metadata"]["namespace"]
    if wanted.source is None:
        raise Refused(409, "it is applied by hand, so a sync needs its files", "sync -f FOLDER on a terminal")
    if await sync_requests.daemon_alive(session.client, place) is False:
        hint = f"on a terminal: kubectl reconcile sync {wanted.name} -n {place}"
        raise Refused(409, "no daemon follows it, and this page doesn't sync by itself", hint)
    await sync_requests.request_sync(session.client, wanted)
    return "asked for a sync"


async def suspend(session: Session, live: Manifest, _asked: Asked) -> str:
    """Have the Sync leave the cluster as it is.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    await suspend_resume.suspend(session.client, live)
    return "suspended"


async def resume(session: Session, live: Manifest, _asked: Asked) -> str:
    """Have the Sync go on, and follow again what it followed before it was rolled back.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    await suspend_resume.resume(session.client, live)
    pinned = suspend_resume.is_pinned(live)
    return f"follows {suspend_resume.ref_text(suspend_resume.followed_before(live))} again" if pinned else "resumed"


async def approve(session: Session, live: Manifest, asked: Asked) -> str:
    """Let just those held deletions through that have the hash ``approval``.

    Raises:
        Refused: others are held by now, or none.
        SourceError: what it follows can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    shown, metadata = _text(asked, "approval"), live["metadata"]
    target = await targets.sync_target(session, metadata["name"], metadata["namespace"])
    made = await dry_run.confirm(
        session.client, await reconcile.plan(session, target), target.sync, along=gather.lister(session)
    )
    if not made.holds or made.approval != shown:
        raise Refused(
            409, "the held changes have changed since you saw them; nothing was approved", "look at the plan again"
        )
    await sync_requests.approve(session.client, target.sync, shown)
    return f"approved {shown}"


async def rollback(session: Session, live: Manifest, asked: Asked) -> str:
    """Take the Sync back to the ``revision`` of a row of its history, where it stays until it is resumed.

    Raises:
        Refused: the history has no such row.
        SourceError: the repository can't be read, or the commit isn't signed as the Sync asks.
        ApiError: the server refuses, or doesn't answer.
    """
    sha = _text(asked, "revision")
    if sha not in {entry.revision for entry in history.entries_of(live)}:
        raise Refused(409, "its history has no such revision", "look at the history again")
    state = await history.resolve(session, live, sha)
    target = await history.target_at(session, live, state)
    await reconcile.preview(session, target)
    await require_verified(target, sha)
    await suspend_resume.pin(session.client, live, state.revision, state.helm)
    return f"goes back to {state}"


async def approve_actions(session: Session, live: Manifest, asked: Asked) -> str:
    """Let just the held actions of a custom resource through whose keys are ``keys``.

    Raises:
        Refused: others are held by now, or none.
        ApiError: the server refuses, doesn't answer, or no module handles it.
    """
    keys = asked.get("keys")
    if not (isinstance(keys, list) and keys and all(isinstance(key, str) for key in keys)):
        raise Refused(400, "keys is a list of the actions' keys")
    found = await custom_resource.of_live(session, live)
    made = await custom_resource.preview(session, found.cr)
    held = [change.action.key for change in made.changes if change.action and change.gate.held]
    if sorted(held) != sorted(keys):
        raise Refused(
            409, "the held changes have changed since you saw them; nothing was approved", "look at the plan again"
        )
    await custom_resource.annotate(session, found, {APPROVED_ACTIONS: approving(found.cr, tuple(held))})
    return f"approved {', '.join(held)}"


DOINGS: Mapping[str, Doing] = {
    "sync": sync, "suspend": suspend, "resume": resume, "approve": approve, "rollback": rollback,
}  # fmt: skip
"""What may be done to a Sync, by the name that it is asked for by."""

AT_ONCE = frozenset({sync, suspend, resume})
"""Those that plan nothing, so that they wait for nobody's plan."""


_REASONS: Mapping[Doing, tuple[str, str]] = {
    sync: ("SyncRequested", "Sync"),
    suspend: ("Suspended", "Suspend"),
    resume: ("Resumed", "Resume"),
    approve: ("Approved", "Approve"),
    rollback: ("RolledBack", "Rollback"),
    approve_actions: ("ActionsApproved", "Approve"),
}


async def told(who: Asker, live: Manifest, do: Doing, said: str) -> None:
    """Write an event of what somebody had done, with their name. One that can't be written is lost: what was asked for is still done."""
    reason, action = _REASONS.get(do, ("Done", "Do"))
    try:
        name = await who.known_as()
    except ApiError:
        name = "somebody with an unknown name"
    event(_LOG, logging.INFO, "done from the page", user=name, object=ObjectRef.of(live), what=reason)
    await who.events.normal(live, reason, f"{printable(name)}, from the page: {said}", action=action)


async def asked_of(request: web.Request) -> Asked:
    """Return what a page sends with what it wants done.

    Raises:
        Refused: it is no JSON object.
    """
    if request.content_type != "application/json":
        raise Refused(415, "the request must be JSON")
    try:
        found = await request.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(400, "the request must be a JSON object")
    return found


def _text(asked: Asked, name: str) -> str:
    found = asked.get(name)
    if not (isinstance(found, str) and found.isascii() and found.isalnum() and len(found) <= 64):
        raise Refused(400, f"{name} is missing, or isn't one")
    return found
