"""How a database goes on that is created again on volumes of an earlier one, of which nobody knows which was the primary's last.

Volumes say who was the primary when somebody last looked. Since then a replica may have been promoted by hand, and have taken writes: then the noted one holds an earlier timeline, and
must not serve. So none does before all have been looked at:

1. It is noted that the volumes are gathered, before anything runs on them.
2. An instance is created on each of them, as a standby: it takes no writes, and says how far its log goes.
3. Once all have said so, and none receives anything, the one whose log goes furthest is promoted: the timeline counts first, then the position.

One that can't run is waited for: what it holds may be what was acknowledged last. Somebody who knows better deletes its volume claim. A database of one volume just goes on.

Pure: a state in, steps out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kubectl_reconcile.module_api import Context, map_at
from kubectl_reconcile_operators.postgres.children import Begin
from kubectl_reconcile_operators.postgres.handover import elected, standing_by
from kubectl_reconcile_operators.postgres.situation import DatabaseState
from kubectl_reconcile_operators.postgres.spec import MyDatabaseSpec
from kubectl_reconcile_operators.postgres.steps import DatabaseStep, Do, Why, wait


def gathering(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    """Yield what is next until all volumes of a database that is created again have been looked at, and one of them serves."""
    if s.writable or not s.is_formed:
        return
    if s.handover.is_gathering:
        for step in _gone_on(spec, s, template, ctx):
            yield replace(step, why=Why.RECOVERING, target=step.target or s.handover.to, is_gathering=True)
    elif not map_at(ctx.cr, "status").get("timeline") and not s.instances and len(_held(s)) > 1:
        names = ", ".join(_held(s))
        text = f"look at the volumes of {names} before one of them serves: a replica may have been promoted since somebody last noted that {s.named_primary} is the primary"
        yield replace(wait(text, "Gathering", s), target=s.named_primary, is_gathering=True)


def _held(s: DatabaseState) -> list[str]:
    """Return the slots whose volumes hold data of the database."""
    return sorted(slot for slot, each in s.volumes.items() if each.system and not each.is_going)


def _gone_on(spec: MyDatabaseSpec, s: DatabaseState, template: str, ctx: Context) -> Iterator[DatabaseStep]:
    for slot in _held(s):
        if slot not in s.instances:
            text = f"create {slot} on its volume, as a standby, to see how far its log goes"
            yield DatabaseStep(Do.CREATE_POD, Why.RECOVERING, text, slot, begin=Begin.REPLICA)
    for slot in _held(s):
        yield from standing_by(spec, s, slot, template)
    if any(each.stands_by for each in s.ordered):
        yield from elected(spec, s, ctx, "whose log goes furthest of all volumes there are")
