"""What a plan in the making does to owners, and what follows for other changes of it.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.endings.cascade import parting_from
from kubectl_reconcile.core.planning.endings.updates import BOUND_TO_GO, is_rewired
from kubectl_reconcile.core.planning.plan import Change, Op


def rewired_by(builder: PlanBuilder) -> dict[ObjectRef, Manifest]:
    """Return the objects whose owners a plan changes, as they are by then."""
    return {
        change.ref: change.after
        for _, change in builder.changes
        if change.after is not None and change.before is not None and change.writes and is_rewired(change)
    }


def going_in(changes: Iterable[Change]) -> list[Manifest]:
    """Return what goes with *changes*, whoever asks for that: what others own together with it goes, too."""
    return [
        change.before
        for change in changes
        if change.op is Op.DELETE and change.before is not None and not (change.gate.held or change.gate.blocked)
    ]


def gate(builder: PlanBuilder, refs: Collection[ObjectRef], **gate: Any) -> None:
    """Give the changes of objects another gate."""
    if refs:
        builder.changes = [(key, each.gated(**gate) if each.ref in refs else each) for key, each in builder.changes]


def leave(builder: PlanBuilder, refs: Collection[ObjectRef]) -> None:
    """Leave objects as they are that would come to be owned by what goes in this very sync: they would go, too."""
    gate(builder, refs, blocked=BOUND_TO_GO)


def part(builder: PlanBuilder, rewired: Mapping[ObjectRef, Manifest]) -> None:
    """Have the deletion of an owner wait for objects that it doesn't own any more: should these not change, it would take them along."""
    before = {ref: builder.live(ref) or {} for ref in rewired}
    for at, (key, change) in enumerate(builder.changes) if rewired else ():
        if change.op is Op.DELETE and change.before is not None:
            parting = parting_from([change.before], before, rewired)
            builder.changes[at] = key, change.gated(needs=(*change.gate.needs, *parting)) if parting else change


def overtake(builder: PlanBuilder, refs: Collection[ObjectRef]) -> None:
    """Forget what was planned for objects that go along with others: they end, whatever Git asks for."""
    if not refs:
        return
    gone, standing = set(refs), builder.standing
    builder.changes = [(key, change) for key, change in builder.changes if change.ref not in gone]
    settled = [each.number for ref in gone if (each := standing.members.get(ref))]
    for ref in {*gone, *standing.let_go(settled)}:
        builder.verdicts.pop(ref, None)
