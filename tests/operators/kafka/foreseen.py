"""The steps that a preview of a Kafka cluster shows."""

import itertools

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.outlook.simulation import passes
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.planner import build_children
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile_operators.kafka import Kafka
from tests.core.planning.changes import known
from tests.operators.kafka.world import NOW

KINDS = {gvk: Kind(gvk, f"{gvk.kind.lower()}s", namespaced=True, schema=UNKNOWN) for gvk in Kafka.owns}


def foreseen(world):
    """The steps that a preview shows."""
    ref = ObjectRef.of(world.cr)
    inputs = known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects([world.cr, *world.objects.values()]),
        kinds=KINDS,
        modules={Kafka.gvk: Kafka},
        now=NOW,
        grouped=False,
        observed={ref: Observation(world.facts())},
    )

    def build(inputs):
        return build_children(inputs, inputs.live.stored(ref).manifest())

    first, shown, idle = build(inputs), [], 0
    for plan in itertools.chain([first], passes(inputs, first, build)):
        steps = [step for change in plan.changes if change.writes and (step := told(change))]
        shown += steps
        idle = 0 if steps else idle + 1
        if idle == 3:  # the schemas of pods aren't known here, so each pass would like to write them once more
            break
    return shown


def told(change):
    if change.action:
        return change.action.key
    if change.ref.kind == "PersistentVolumeClaim" and change.op is Op.DELETE:
        return f"delete volume {change.ref.name.removesuffix('-data').rpartition('-')[2]}"
    is_one = change.ref.kind == "Pod" and change.op in {Op.CREATE, Op.DELETE}
    return f"{change.op.value} {change.ref.name}" if is_one else ""
