"""The books of a set, on its Sync: what it may hold, which approvals are spent, and how a pass went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

import kubectl_reconcile
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.core.annotations import APPROVED_PLAN
from kubectl_reconcile.core.apply.results import Result
from kubectl_reconcile.core.health.summary import HealthSummary
from kubectl_reconcile.core.objects import FIELD_MANAGER, Manifest, ObjectRef, annotations_of, map_at
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.resources.status import Report, sync_status
from kubectl_reconcile.core.resources.sync import SYNC, ApprovalPolicy, Sync
from kubectl_reconcile.engine.api.sync_requests import now_text, sync_path
from kubectl_reconcile.engine.apply.guarded import patched
from kubectl_reconcile.engine.apply.object_writer import write_status
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.engine.sync.target import Target

TOOLING = f"kubectl-reconcile/v{kubectl_reconcile.__version__}"


async def record(
    client: Client, target: Target, wanted: Contents, recorded: Callable[[Manifest], None], *, exact: bool
) -> Target:
    """Note on the parent which kinds and namespaces its members have: all before writing, no more than that after."""

    def marks_for(parent: Manifest) -> Manifest | None:
        recorded, ref = Contents.recorded(parent), target.sync.ref
        marks = (wanted if exact else wanted | recorded).metadata(ref, TOOLING)
        enough = marks == recorded.metadata(ref, TOOLING) and (recorded.is_detailed or not exact)
        return None if enough and _has(parent, marks) else {"metadata": marks}

    return await noted(client, target, marks_for, recorded)


async def noted(
    client: Client,
    target: Target,
    note: Callable[[Manifest], Manifest | None],
    recorded: Callable[[Manifest], None],
) -> Target:
    """Return *target* with its Sync as it is once *note* was taken of something on it; where there is none, nothing is."""
    if target.parent is None:
        return target
    parent = await patched(client, sync_path(target.sync), target.parent, note)
    if parent is target.parent:
        return target
    recorded(parent)
    return replace(target, parent=parent)


def _has(parent: Manifest, marks: Mapping[str, Any]) -> bool:
    carried = parent["metadata"].get("labels") or {}
    return all(carried.get(key) == value for key, value in marks["labels"].items())


def spends_approvals(sync: Sync, made: Plan) -> bool:
    """Tell whether a sync that has carried out all of *made* leaves nothing that its approvals are still for.

    Those of revisions stay, and so does that of an empty source: without it, that would be an error again.
    """
    is_empty = not any(change.op is not Op.DELETE for change in made.changes)
    return bool(sync.approved_plan) and sync.approval is not ApprovalPolicy.ALWAYS and not is_empty


def without(approvals: str) -> Callable[[Manifest], Manifest | None]:
    """Return what takes these approvals off a Sync, unless others have come since."""

    def patch(parent: Manifest) -> Manifest | None:
        spent = annotations_of(parent).get(APPROVED_PLAN) == approvals
        return {"metadata": {"annotations": {APPROVED_PLAN: None}}} if spent else None

    return patch


def still_there(made: Plan, results: Iterable[Result]) -> list[ObjectRef]:
    """Return members that nobody asks for and that exist anyway: what has no place in the books is never looked for."""
    waiting = [change.ref for change in made.changes if change.op is Op.DELETE and change.gate.waits]
    return [*waiting, *(each.change.ref for each in results if each.is_left)]


def status_after(
    live: Manifest, report: Report, answers: str, health: HealthSummary | None = None, observed: str = ""
) -> Manifest:
    """Return the status of a live Sync after a pass that ended so, and that was asked for by the request *answers*.

    *health* is how the members are, None where nobody watches them; *observed* as in ``sync_status``.
    """
    return sync_status(
        map_at(live, "status"), report,
        generation=live["metadata"]["generation"], requested_at=answers, now=now_text(), health=health, observed=observed,
    )  # fmt: skip


async def write_sync_status(session: Session, live: Manifest, status: Manifest) -> Manifest:
    """Give a Sync its status, and return it as the server now holds it.

    Raises:
        ApiError: the server refuses, or doesn't answer; Conflict and NotFound where it is another one by now.
    """
    kind, metadata = await session.kind(SYNC), live["metadata"]
    body = {
        "apiVersion": SYNC.api_version,
        "kind": SYNC.kind,
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "status": status,
    }
    return await write_status(
        session.client, kind, body, manager=FIELD_MANAGER, uid=metadata["uid"],
        version=metadata["resourceVersion"],
    )  # fmt: skip


async def tell(session: Session, target: Target, report: Report) -> Target:
    """Write how a pass went onto the target's Sync, where it has one; return the target with that.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    if target.parent is None:
        return target
    status = status_after(target.parent, report, target.sync.requested_at)
    if status == map_at(target.parent, "status"):
        return target
    return replace(target, parent=await write_sync_status(session, target.parent, status))
