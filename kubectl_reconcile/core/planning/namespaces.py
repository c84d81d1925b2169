"""Namespaces that a Sync makes for its objects where they aren't there (``spec.createNamespace``).

Such a namespace is no member: it isn't recorded, nothing of it but its being there is asked for, and it is never deleted by us. One that the source holds itself is a
member like others. Of one that may not be looked at it is taken for granted that it is there.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.arrangement import DesiredMember
from kubectl_reconcile.core.planning.builder import NO_RULES, PlanBuilder
from kubectl_reconcile.core.planning.kinds import NAMESPACE, Phase
from kubectl_reconcile.core.planning.order import Stage
from kubectl_reconcile.core.planning.plan import Change, Op, Plan, Provenance

NAMESPACES = GroupVersionKind("", "v1", NAMESPACE.kind)


def make(builder: PlanBuilder, wanted: Mapping[ObjectRef, DesiredMember]) -> None:
    """Plan the namespaces that are missing, before all that is in them."""
    sync, kind = builder.inputs.sync, builder.kinds.get(NAMESPACES)
    if not sync.create_namespace or kind is None:
        return
    places = {ref.namespace for ref in wanted} - {"", sync.namespace}
    missing = [ref for place in sorted(places) if _is_missing(builder, ref := _ref(place)) and ref not in wanted]
    for ref in missing:
        desired = {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": ref.name}}
        provenance = Provenance(owner=sync.ref, manager=sync.field_manager)
        change = builder.judge(ref, kind, desired, None, rules=NO_RULES, provenance=provenance)
        before = any(stage is Stage.BEFORE for stage in builder.when.stages.values())
        builder.when.stages[ref] = Stage.BEFORE if before else Stage.WRITE
        first = min((place[0] for place in builder.when.places.values()), default=0)
        builder.add(change, (first, Phase.FOUNDATION, -1))


def _ref(name: str) -> ObjectRef:
    return ObjectRef(NAMESPACE.group, NAMESPACE.kind, "", name)


def _is_missing(builder: PlanBuilder, ref: ObjectRef) -> bool:
    return builder.inputs.live.stored(ref) is None and ref not in builder.inputs.lookups.unreadable


def made_for(plan: Plan) -> list[Change]:
    """Return the namespaces that a plan makes for objects, and that nobody asks for otherwise."""
    return [
        change
        for change in plan.acting()
        if change.op is Op.CREATE and change.ref.group_kind == NAMESPACE and change.provenance.owner == plan.sync
    ]
