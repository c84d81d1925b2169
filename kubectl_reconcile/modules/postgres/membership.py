"""Which instances there are to be.

Pure.
"""

from __future__ import annotations

from itertools import islice

from kubectl_reconcile.module_api import Context
from kubectl_reconcile.modules.postgres.situation import DatabaseState
from kubectl_reconcile.modules.postgres.spec import MyDatabaseSpec

SLOTS = 100
"""Slots are numbered below this."""


def members(spec: MyDatabaseSpec, s: DatabaseState, ctx: Context) -> list[str]:
    """Return the slots that there are to be, the primary first: those that there are, then new ones. One whose volume was set aside is none."""
    there = {*s.instances, *s.volumes} - {*s.kept}
    known = sorted(there, key=lambda slot: (slot != s.named_primary, ctx.number_of(slot)))
    free = (slot for slot in (ctx.name(str(at)) for at in range(SLOTS)) if slot not in there and slot not in s.kept)
    return [*known[: spec.replicas], *islice(free, max(spec.replicas - len(known), 0))]
