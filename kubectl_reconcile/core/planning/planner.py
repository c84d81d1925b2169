"""Everything known -> Plan: what a sync would write, and why.

Preview and daemon call the same functions, and the same inputs give the same plan, byte for byte.
Members and children are judged by the same three-way merge; a problem with one object never
hides or stops another.

Pure: asks the snapshot, never the cluster; time is an argument.
"""

from __future__ import annotations

from dataclasses import replace

from kubectl_reconcile.core.objects import GroupVersionKind, Manifest, ObjectRef
from kubectl_reconcile.core.planning import children, members
from kubectl_reconcile.core.planning.builder import Draft
from kubectl_reconcile.core.planning.hooks import SYNC_FAIL
from kubectl_reconcile.core.planning.plan import Inputs, Op, Plan


def build(inputs: Inputs) -> Plan:
    """Return the plan that brings the cluster to the desired state of *inputs*."""
    draft = Draft.of(inputs)
    wanted = members.wanted(draft)
    for each in wanted.values():
        _member(draft, each)
    holds = members.prune(draft, wanted)
    _farewells(draft)
    return draft.finish(holds)


def explain(inputs: Inputs, made: Plan) -> Plan:
    """Return *made* with what only *inputs* know by now: the manifests applied last, and the Syncs of foreign objects.

    They change no judgement, only what is said of it, so nothing else is looked at again.
    """
    draft = Draft.of(inputs)
    unclear = {
        change.ref for change in made.changes if not change.owner and (change.ref in inputs.bases or change.foreign)
    }
    place = {(each.path, each.line): each for each in inputs.desired}
    changes = (
        members.explained(draft, change, place[change.file, change.line])
        if change.ref in unclear and (change.file, change.line) in place
        else change
        for change in made.changes
    )
    return replace(made, changes=tuple(changes))


def build_children(inputs: Inputs, cr: Manifest) -> Plan:
    """Return the plan of one live CR's children and status, as its module wants them."""
    draft, gvk = Draft.of(inputs), GroupVersionKind.of(cr)
    parent = children.Parent(inputs.modules[gvk], draft.kinds[gvk], ObjectRef.of(cr), cr, cr, (0, 0, 0))
    children.reconcile(draft, parent)
    return draft.finish()


def build_removal(inputs: Inputs) -> Plan:
    """Return the plan that deletes every member of the set."""
    draft = Draft.of(inputs)
    members.remove_all(draft)
    return draft.finish()


def _farewells(draft: Draft) -> None:
    """Show what modules do outside before the CRs that are to be deleted are gone."""
    for key, change in list(draft.changes):
        module = draft.inputs.modules.get(change.kind.gvk) if change.kind else None
        if module and change.kind and change.op is Op.DELETE and change.before and not change.cascade:
            live = change.before
            children.farewell(draft, children.Parent(module, change.kind, change.ref, live, live, key[1:]))


def _member(draft: Draft, each: members.Wanted) -> None:
    """Plan one member, and what its module makes of it."""
    change, place = members.compare(draft, each), draft.places[each.ref]
    if change.hook and not draft.inputs.whole:
        return
    if change.hook == SYNC_FAIL:
        if change.op is not Op.UNCHANGED:
            draft.fallbacks.append(change)
        return
    draft.add(change, place)
    module = draft.inputs.modules.get(each.kind.gvk)
    if module is None or change.blocked:
        return
    live = draft.live(each.ref)
    after = change.after if change.after is not None else live
    cr = after or members.marked(draft, each)
    children.reconcile(draft, children.Parent(module, each.kind, each.ref, cr, live, place))
