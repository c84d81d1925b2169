"""Replicas of a StatefulSet that are taken away, and the claims that go with them: these are named, and wait for a person.

Where a module wants its child so, it has decided that: what goes is named, and waits for nobody, since nobody could agree to it by a Sync.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from kubectl_reconcile.core.objects import Manifest, ObjectRef
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.endings.cascade import Cascade, Listed, bound_to_go, cascade_of_all, parting_from
from kubectl_reconcile.core.planning.endings.holds import Doom
from kubectl_reconcile.core.planning.endings.rewiring import gate, leave, overtake, rewired_by
from kubectl_reconcile.core.planning.endings.updates import (
    claims_listing,
    condemned_claims,
    ends_claims,
    replicas_gone,
    scale_states,
)
from kubectl_reconcile.core.planning.hold import is_approved
from kubectl_reconcile.core.planning.kinds import CLAIM
from kubectl_reconcile.core.planning.order import Place
from kubectl_reconcile.core.planning.plan import Change


def scale_in(builder: PlanBuilder, asked: Collection[ObjectRef]) -> None:
    """Hold the updates of *builder* that take claims away, unless a person has agreed; show what goes along. *asked* is what Git asks for."""
    for key, change in [(key, each) for key, each in builder.changes if ends_claims(each) and each.writes]:
        _scale_in(builder, change, key[1:], asked)


def _scale_in(builder: PlanBuilder, change: Change, place: Place, asked: Collection[ObjectRef]) -> None:
    inputs, listing = builder.inputs, claims_listing(change)
    listed, answer = inputs.lookups.listed, inputs.lookups.listed.get(listing)
    claims = condemned_claims(change, answer or Listed())
    rewired = _rewired(builder, claims)
    cascade = _below(change, claims, cascade_of_all(claims, listed, inputs.live, rewired))
    if answer is None:
        cascade.lacking.add(listing)
    is_blind = answer is None or bool(answer.unseen)
    builder.ends.lacking |= cascade.lacking
    if not cascade.taken and not is_blind:
        return
    states = scale_states(change)
    held = not change.is_child and not is_approved(inputs.sync, (change.ref,), states)
    if held:
        more = (
            f"; uncounted, because they can't be listed: {CLAIM} in namespace {change.ref.namespace}"
            if is_blind
            else ""
        )
        ends = Doom(inputs.sync, {change.ref: change.before or {}}, cascade, asked)
        hold = ends.hold("NeedsConsent", f"{replicas_gone(change)}{more}", (change.ref,))
        builder.ends.holds.append(replace(hold, states=states))
        gate(builder, (change.ref,), held=True)
    else:
        leave(builder, bound_to_go(claims, listed, inputs.live, rewired))
        cascade = _below(change, claims, cascade_of_all(claims, listed, inputs.live, _rewired(builder, claims)))
        overtake(builder, [ref for ref in cascade.taken if ref in asked])
    for ref, (body, carrier) in cascade.taken.items():
        if not held or ref not in asked:
            builder.add_cascade(ref, body, carrier, place, held=held)


def _rewired(builder: PlanBuilder, claims: Collection[Manifest]) -> dict[ObjectRef, Manifest]:
    """Return the objects that have other owners by then; one that a claim doesn't own any more may be too late for that, and counts as it is."""
    found = rewired_by(builder)
    late = parting_from(claims, {ref: builder.live(ref) or {} for ref in found}, found)
    return {ref: body for ref, body in found.items() if ref not in late}


def _below(change: Change, claims: Collection[Manifest], cascade: Cascade) -> Cascade:
    """Return a cascade that begins with claims as one that begins with what takes these along."""
    cascade.taken = {**{ObjectRef.of(each): (each, change.ref) for each in claims}, **cascade.taken}
    cascade.roots = dict.fromkeys([change.ref, *cascade.roots], change.ref)
    return cascade
