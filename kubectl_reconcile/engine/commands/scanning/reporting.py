"""A report on a namespace or a Sync, as far as whoever asks may see it. Writes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from kubectl_reconcile.cluster.errors import Forbidden, NotFound
from kubectl_reconcile.core.report.contents import REPORTED, ReportScope, report_of
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.commands.scanning.listing import listed
from kubectl_reconcile.engine.sync.session import Session


async def reported(session: Session, *, name: str, since: str = "") -> dict[str, Any]:
    """Return the report on the Sync *name*, or where there is none on the namespace of that name.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    scope = await _scope(session, name, since)
    lists = await asyncio.gather(*(listed(session, api, kind, scope.namespace) for api, kind in REPORTED))
    objects = [each for found in lists for each in found or ()]
    report = report_of(objects, scope, now_text())
    unread = [kind for (_, kind), found in zip(REPORTED, lists, strict=True) if found is None]
    return {**report, "unread": unread} if unread else report


async def _scope(session: Session, name: str, since: str) -> ReportScope:
    here = session.client.namespace
    resource = session.discovery.find("reconcile.dev/v1alpha1", "Sync")
    if name and resource is not None:
        try:
            await session.client.get(resource.path(here, name))
            return ReportScope(here, name, since)
        except (NotFound, Forbidden):
            pass
    return ReportScope(name or here, since=since)
