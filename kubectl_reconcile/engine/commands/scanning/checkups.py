"""What Checkups look for in the namespaces that plans change, and what is there. Writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from kubectl_reconcile.core.planning.plan import Plan
from kubectl_reconcile.core.scan.namespace import SCANNED, SCANNED_KINDS
from kubectl_reconcile.core.scan.outlook import CHECKUP, ScannedNamespace, ScanScope, checkups_after, is_written
from kubectl_reconcile.core.scan.rules import ScanRules
from kubectl_reconcile.engine.commands.scanning.listing import listed
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
    live = await asyncio.gather(*(listed(session, CHECKUP.api_version, CHECKUP.kind, place) for place in places))
    wanted = checkups_after((each for found in live for each in found or ()), changes)
    asked = [place for place in places if place in wanted]
    found = await asyncio.gather(*(_scanned(session, place, wanted[place]) for place in asked))
    return ScanScope(namespaces=dict(zip(asked, found, strict=True))) if found else None


async def _scanned(session: Session, namespace: str, checkups: Mapping[str, ScanRules]) -> ScannedNamespace:
    lists = await asyncio.gather(*(listed(session, api, kind, namespace) for api, kind in SCANNED))
    objects = [each for found in lists for each in found or ()]
    return ScannedNamespace(objects, checkups, is_known=None not in lists)
