"""What there is in a namespace, as far as whoever asks may see it: for the findings of a preview, and for a report. Writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_reconcile.cluster.errors import Forbidden, NotFound, ServerError
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.report.contents import REPORTED, ReportScope, report_of
from kubectl_reconcile.core.resources.applyset import Contents
from kubectl_reconcile.core.scan.namespace import SCANNED, SCANNED_KINDS
from kubectl_reconcile.core.scan.outlook import CHECKUP, ScannedNamespace, ScanScope, checkups_after, is_written
from kubectl_reconcile.core.scan.rules import ScanRules
from kubectl_reconcile.engine.api.sync_requests import now_text
from kubectl_reconcile.engine.commands.owner_tree import members_of
from kubectl_reconcile.engine.sync.session import Session

_LOOKED_AT = {*SCANNED_KINDS, CHECKUP.group_kind}


async def scope_of(session: Session, plans: Sequence[Plan]) -> ScanScope | None:
    """Return by which Checkups the changes of *plans* are to be looked at: an empty scope where none would look at what changes, None where there is none to look.

    A namespace is looked at as far as whoever asks may see it.

    Raises:
        ApiError: the server doesn't answer.
    """
    changes = [change for plan in plans for change in plan.changes if is_written(change)]
    places = sorted({each.ref.namespace for each in changes if each.ref.group_kind in _LOOKED_AT} - {""})
    if not places:
        return ScanScope()
    live = await asyncio.gather(*(_listed(session, CHECKUP.api_version, CHECKUP.kind, place) for place in places))
    wanted = checkups_after((each for found in live for each in found or ()), changes)
    asked = [place for place in places if place in wanted]
    found = await asyncio.gather(*(_scanned(session, place, wanted[place]) for place in asked))
    return ScanScope(namespaces=dict(zip(asked, found, strict=True))) if found else None


async def _scanned(session: Session, namespace: str, checkups: Mapping[str, ScanRules]) -> ScannedNamespace:
    lists = await asyncio.gather(*(_listed(session, api, kind, namespace) for api, kind in SCANNED))
    objects = [each for found in lists for each in found or ()]
    return ScannedNamespace(objects, checkups, is_known=None not in lists)


async def reported(session: Session, *, name: str, since: str = "") -> dict[str, Any]:
    """Return the report on the Sync *name*, or where there is none on the namespace of that name.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    scope, sync = await _scope(session, name, since)
    lists = await asyncio.gather(*(_listed(session, api, kind, scope.namespace) for api, kind in REPORTED))
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


async def _listed(session: Session, api: str, kind: str, namespace: str) -> list[Manifest] | None:
    """Return what there is of a kind in *namespace*, None where that may not be asked, or is answered by somebody who is down.

    Raises:
        ApiError: the server doesn't answer.
    """
    resource = session.discovery.find(api, kind)
    if resource is None:
        return []
    try:
        items, _ = await session.client.list(resource.collection(namespace))
    except NotFound:
        return []
    except (Forbidden, ServerError):
        return None
    return list(items)
