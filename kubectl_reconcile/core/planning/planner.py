"""Everything known -> Plan: what a sync would write, and why.

Preview and daemon call the same functions, and the same inputs give the same plan, byte for byte.
Members and children are judged by the same three-way merge; a problem with one object never
hides or stops another.

Pure: asks the snapshot, never the cluster; time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from kubectl_reconcile.core.annotations import HookPoint
from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef, Severity, errors_among
from kubectl_reconcile.core.planning import children, difference, members, namespaces, prune
from kubectl_reconcile.core.planning.arrangement import DesiredMember
from kubectl_reconcile.core.planning.builder import PlanBuilder
from kubectl_reconcile.core.planning.difference import Footing
from kubectl_reconcile.core.planning.endings import updates
from kubectl_reconcile.core.planning.endings.new_revision import with_approval
from kubectl_reconcile.core.planning.endings.scale_in import scale_in
from kubectl_reconcile.core.planning.inputs import Inputs
from kubectl_reconcile.core.planning.module_call import Parent
from kubectl_reconcile.core.planning.plan import Change, Op, Plan


def build(inputs: Inputs) -> Plan:
    """Return the plan that brings the cluster to the desired state of *inputs*."""
    return build_on(inputs, None)[0]


def build_on(inputs: Inputs, footing: Footing | None) -> tuple[Plan, Footing | None]:
    """Return the same plan, and the footing for the next one: what the last build has settled isn't looked at again.

    A plan of a part says nothing about the whole, which stands as it did.
    """
    builder = PlanBuilder.of(inputs)
    difference.stand_on(builder, footing)
    wanted = members.wanted(builder)
    if difference.has_slipped(builder, wanted):
        builder = PlanBuilder.of(inputs)
        wanted = members.wanted(builder)
    namespaces.make(builder, wanted)
    for each in wanted.values():
        _member(builder, each)
    scale_in(builder, prune.WantedByGit(wanted, builder.standing.members))
    pruning = prune.prune(builder, wanted)
    _finalize_previews(builder)
    _tell_of_emptiness(builder)
    made = with_approval(inputs, builder.finish(pruning.holds, pruning.marked, pruning.lacking))
    return made, difference.footing_of(builder, wanted) if inputs.whole else footing


def explain(inputs: Inputs, made: Plan, about: Collection[ObjectRef]) -> Plan:
    """Return *made* with what only *inputs* know by now *about* some objects: the manifests applied last, and the Syncs of foreign ones.

    They change no judgement, only what is said of it, so nothing else is looked at again.
    """
    unclear = {
        change.ref
        for change in (made.acting() if about else ())
        if change.ref in about and not change.provenance.owner and _is_explained(inputs, change)
    }
    if not unclear:
        return made
    builder = PlanBuilder.of(inputs.remembering(bases=inputs.lookups.recalled))
    files = {change.provenance.file for change in made.acting() if change.ref in unclear}
    place = {(each.path, each.line): each for each in inputs.desired if each.path in files}
    explained = {
        id(change): members.explained(builder, change, located)
        for change in made.acting()
        if change.ref in unclear
        and (located := place.get((change.provenance.file, change.provenance.line))) is not None
    }
    return made.with_changes(map(explained.get, map(id, made.changes), made.changes))


def _is_explained(inputs: Inputs, change: Change) -> bool:
    """Tell whether there is something to say of a change that wasn't said; of an object of another set not before that was asked for."""
    is_recalled = change.ref in inputs.lookups.recalled
    if change.provenance.foreign:
        return change.ref in inputs.asked.foreign and (is_recalled or bool(inputs.memory.sets))
    return is_recalled


def build_children(inputs: Inputs, cr: Manifest) -> Plan:
    """Return the plan of one live CR's children and status, as its module wants them."""
    builder, gvk = PlanBuilder.of(inputs), GroupVersionKind.of(cr)
    parent = Parent(inputs.modules.by_kind[gvk], builder.kinds[gvk], ObjectRef.of(cr), cr, cr, (0, 0, 0))
    children.reconcile(builder, parent)
    return builder.finish()


def build_removal(inputs: Inputs) -> Plan:
    """Return the plan that deletes every member of the set."""
    builder = PlanBuilder.of(inputs)
    prune.remove_all(builder)
    return builder.finish()


def _tell_of_emptiness(builder: PlanBuilder) -> None:
    """A source without any object is most likely the wrong path, and never merely nothing to do.

    Who has approved that all members go knows: it is said on, and the Sync is well.
    """
    inputs = builder.inputs
    approved = bool(inputs.sync.approved_plan)
    if inputs.whole and not inputs.desired and (approved or not builder.changes) and not errors_among(inputs.problems):
        severity = Severity.WARNING if approved else Severity.ERROR
        builder.problems.append(replace(inputs.revision.emptiness(), severity=severity))


def _finalize_previews(builder: PlanBuilder) -> None:
    """Show what modules do outside before the CRs that are to be deleted are gone."""
    for key, change in list(builder.changes):
        module = builder.inputs.modules.by_kind.get(change.kind.gvk) if change.kind else None
        if module and change.kind and change.op is Op.DELETE and change.before and not change.gate.cascade:
            live = change.before
            children.preview_finalize(builder, Parent(module, change.kind, change.ref, live, live, key[1:]))


def _with_endings(builder: PlanBuilder, change: Change) -> Change:
    """Return a change of which it is known whether its owners are there: refused where none is."""
    if change.op is Op.UNCHANGED or change.gate.blocked:
        return change
    listed = builder.inputs.lookups.listed
    if updates.is_rewired(change):
        asked = updates.owner_listings(change)
        builder.ends.lacking.update(each for each in asked if each not in listed)
        return change.gated(blocked=updates.owners_fault(change, listed))
    return change


def _member(builder: PlanBuilder, each: DesiredMember) -> None:
    """Plan one member, and what its module makes of it."""
    change, place = _with_endings(builder, members.compare(builder, each)), builder.when.places[each.ref]
    if change.gate.hook and not builder.inputs.whole:
        return
    if change.gate.hook == HookPoint.SYNC_FAIL:
        if change.op is not Op.UNCHANGED:
            builder.fallbacks.append(change)
        return
    builder.add(change, place)
    module = builder.inputs.modules.by_kind.get(each.kind.gvk)
    if module is None or change.gate.blocked:
        return
    live = builder.live(each.ref)
    after = change.after if change.after is not None else live
    cr = after or members.marked(builder, each)
    children.reconcile(builder, Parent(module, each.kind, each.ref, cr, live, place))
