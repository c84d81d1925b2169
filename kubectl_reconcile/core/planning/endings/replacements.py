"""Replacements: objects that are deleted to be recreated, and all that ends with their deletion.

That an update becomes a replacement is what the server says, by its dry run, so this completes a plan that is made already. The old
object ends as any that is deleted: what goes along is named, counts, and waits for a person where it has to. What Git asks
for among it is recreated, too, by the sync that follows.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import (
    Cascade,
    Listed,
    Listing,
    bound_to_go,
    cascade_of_all,
    owners_in,
    parting_from,
)
from kubectl_reconcile.core.planning.endings.holds import Doom, others_along
from kubectl_reconcile.core.planning.endings.rewiring import going_in
from kubectl_reconcile.core.planning.endings.updates import BOUND_TO_GO, is_rewired
from kubectl_reconcile.core.planning.hold import Hold
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Change, Gate, Op, Plan, Provenance
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync

_REASON = "TooManyReplacements"


def with_replacements(made: Plan, sync: Sync, listed: Mapping[Listing, Listed]) -> Plan:
    """Return *made* with what its replacements end, as far as *listed* shows it; it says what is *lacking* to know more."""
    going = {each.ref for each in made.acting() if each.op is Op.DELETE}
    beside = going_in(made.acting())
    roots = {
        each.ref: each.before
        for each in made.acting()
        if each.op is Op.REPLACE and not each.gate.hook and each.writes and each.before is not None
    }
    if not roots:
        return made
    if orphans := _orphans(made, roots, beside):
        return with_replacements(_left(made, orphans), sync, listed)
    rewired = {
        each.ref: each.after
        for each in made.acting()
        if each.writes and each.after and is_rewired(each) and each.before
    }
    parting = _parting(made, roots, rewired)
    rewired = {ref: each for ref, each in rewired.items() if ref not in parting.late}
    nobody = Objects()
    cascade = cascade_of_all(roots.values(), listed, nobody, rewired, beside)
    cascade.taken = {ref: each for ref, each in cascade.taken.items() if ref not in going}
    staying = {each.ref for each in made.changes if each.op is not Op.DELETE and not each.is_child}
    ends = Doom(sync, roots, cascade, staying)
    holds = tuple(_holds(made, ends))
    held = {ref for hold in holds for ref in hold.refs}
    free = [*(body for ref, body in roots.items() if ref not in held), *beside]
    lost = bound_to_go(free, listed, nobody, rewired)
    rewired = {ref: each for ref, each in rewired.items() if ref not in lost}
    now = cascade_of_all(free, listed, nobody, rewired)
    told = cascade_of_all(roots.values(), listed, nobody, rewired, beside)
    told.taken = {ref: each for ref, each in told.taken.items() if ref not in going}
    gated = made.with_changes(
        each.gated(blocked=BOUND_TO_GO)
        if each.ref in lost
        else each.gated(held=each.ref in held, needs=(*each.gate.needs, *parting.first.get(each.ref, ())))
        if each.ref in roots
        else each
        for each in made.changes
    )
    changes = tuple(_changes(gated, told, now, staying))
    return replace(made, changes=changes, holds=(*made.holds, *holds), lacking=made.lacking | cascade.lacking)


def _orphans(made: Plan, roots: Mapping[ObjectRef, Manifest], beside: Iterable[Manifest]) -> set[ObjectRef]:
    """Return what would be recreated with owners that all go in this very sync: the garbage collector would delete it again."""
    going = {str(body["metadata"].get("uid")) for body in (*roots.values(), *beside)}
    owners = {each.ref: owners_in(each.after or {}) for each in made.acting() if each.ref in roots}
    return {ref for ref, found in owners.items() if found and found <= going}


def _left(made: Plan, refs: Collection[ObjectRef]) -> Plan:
    return made.with_changes(each.gated(blocked=BOUND_TO_GO) if each.ref in refs else each for each in made.changes)


class _Parting(Struct, frozen=True):
    """Objects that a replaced one doesn't own any more by then: which of them change *first*, by what is replaced, and which too *late* for that."""

    first: Mapping[ObjectRef, tuple[ObjectRef, ...]]
    late: frozenset[ObjectRef]


def _parting(made: Plan, roots: Mapping[ObjectRef, Manifest], rewired: Mapping[ObjectRef, Manifest]) -> _Parting:
    changes = {each.ref: each for each in made.acting() if each.ref in roots or each.ref in rewired} if rewired else {}
    before = {ref: changes[ref].before or {} for ref in rewired}
    found = {ref: parting_from([body], before, rewired) for ref, body in roots.items()} if rewired else {}
    late = {part for ref, parts in found.items() for part in parts if changes[part].gate.wave != changes[ref].gate.wave}
    return _Parting(
        {ref: tuple(each for each in parts if each not in late) for ref, parts in found.items()}, frozenset(late)
    )


def _holds(made: Plan, ends: Doom) -> Iterator[Hold]:
    sync, roots, along = ends.sync, ends.roots, len(ends.cascade.taken)
    if ends.is_approved(roots):
        return
    members, deletions = max(made.members, 1), _deletions(made, sync)
    gone = ends.number + deletions
    if not (sync.max_deletes.allows(gone, members) or sync.max_deletes.allows(gone, members + along)):
        message = f"{len(roots)} of {made.members} members would be deleted and recreated{others_along(along)}, more than spec.maxDeletes allows"
        yield ends.hold(_REASON, message, roots)
    elif hold := ends.consent("replacing"):
        yield hold


def _deletions(made: Plan, sync: Sync) -> int:
    """Return how many objects are deleted besides; those that are too many by themselves aren't held because a person has agreed to them."""
    number = sum(
        1
        for each in made.acting()
        if each.op is Op.DELETE
        and not (each.gate.held or each.gate.blocked)
        and (each.gate.cascade or not each.is_child)
    )
    return number if sync.max_deletes.allows(number, max(made.members, 1)) else 0


def _changes(made: Plan, cascade: Cascade, now: Cascade, staying: set[ObjectRef]) -> Iterator[Change]:
    """Yield the changes of *made*, each replacement followed by what goes along; what goes now isn't told as it was planned."""
    along: dict[ObjectRef, list[ObjectRef]] = {}
    for ref in cascade.along:
        along.setdefault(cascade.roots[ref], []).append(ref)
    kinds = {each.kind.gvk.group_kind: each.kind for each in made.changes if each.kind is not None}
    for change in made.changes:
        if change.op is not Op.REPLACE:
            if change.ref not in now.taken or change.op is Op.CREATE:
                yield change
            continue
        yield change
        for ref in along.get(change.ref, ()):
            goes = ref in now.taken
            if goes or ref not in staying:
                yield _along(ref, cascade, kinds.get(ref.group_kind), wave=change.gate.wave, held=not goes)


def _along(ref: ObjectRef, cascade: Cascade, kind: Kind | None, *, wave: int, held: bool) -> Change:
    manifest, carrier = cascade.taken[ref]
    gate, provenance = Gate(wave, held=held, cascade=True), Provenance(owner=carrier)
    return Change(ref, Op.DELETE, kind, before=manifest, provenance=provenance, gate=gate)
