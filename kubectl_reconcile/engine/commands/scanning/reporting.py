"""A report on a namespace or a Sync, as far as whoever asks may see it. Writes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.report.contents import REPORTED, ReportScope, report_of
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.commands.owner_tree import members_of
from kubectl_reconcile.engine.commands.scanning.listing import listed
from kubectl_reconcile.engine.sync.session import Session


async def reported(session: Session, *, name: str, since: str = "") -> dict[str, Any]:
    """Return the report on the Sync *name*, or where there is none on the namespace of that name.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    scope, sync = await _scope(session, name, since)
    lists = await asyncio.gather(*(listed(session, api, kind, scope.namespace) for api, kind in REPORTED))
    members, unseen = await members_of(session, sync) if sync is not None else ([], ())
    objects = {each["metadata"]["uid"]: each for found in (*lists, members) for each in found or ()}
    report = report_of(objects.values(), scope, now_text())
    unread = {kind for (_, kind), found in zip(REPORTED, lists, strict=True) if found is None}
    unread |= {each.kind for each in unseen}
    return {**report, "unread": sorted(unread)} if unread else report


async def _scope(session: Session, name: str, since: str) -> tuple[ReportScope, Manifest | None]:
    """Return what the report is about, and the live Sync if it is one."""
    here = session.client.namespace
    resource = session.discovery.find("reconcile.dev/v1alpha1", "Sync")
    if name and resource is not None:
        try:
            live = await session.client.get(resource.path(here, name))
            return ReportScope(here, name, since, Contents.recorded(live).namespaces | {""}), live
        except (NotFound, Forbidden):
            pass
    return ReportScope(name or here, since=since), None
