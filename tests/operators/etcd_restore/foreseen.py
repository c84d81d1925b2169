"""The steps that a preview of a cluster and its restore shows."""

import itertools

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import ObjectRef, annotations_of
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.outlook.simulation import passes
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd.situation import ASIDE
from kubectl_reconcile_operators.etcd_restore import EtcdRestore
from tests.core.planning.changes import known

KINDS = {
    gvk: Kind(gvk, f"{gvk.kind.lower()}s", namespaced=True, schema=UNKNOWN)
    for gvk in (*EtcdCluster.owns, *EtcdRestore.owns)
}


def foreseen(world, *live):
    """The steps that a preview of both files shows, before either is there, or where *live* is there."""
    wanted = [{name: one[name] for name in ("apiVersion", "kind", "spec")} for one in (world.cr, world.restore)]
    for one, name in zip(wanted, ("db", "again"), strict=True):
        one["metadata"] = {"name": name, "namespace": "shop"}
    inputs = known(
        sync=Sync(name="shop", namespace="shop"),
        revision=Revision("", "", {}),
        desired=[Located.of(one, "x.yaml", line) for line, one in enumerate(wanted, 1)],
        live=Objects([world.backup, *live]),
        kinds=KINDS,
        modules={one.gvk: one for one in (EtcdCluster, EtcdRestore)},
        now=world.now,
        grouped=False,
        observed={ObjectRef.of(wanted[0]): Observation(world.facts() if live else {})},
    )
    first, shown, idle = build(inputs), [], 0
    for plan in itertools.chain([first], passes(inputs, first, build)):
        steps = [*dict.fromkeys(step for change in plan.changes if change.writes and (step := step_of(change)))]
        shown += steps
        idle = 0 if steps else idle + 1
        if idle == 4:  # the schemas of pods aren't known here, so each pass would like to write them once more
            break
    return shown


def step_of(change):
    if change.action:
        slot = change.action.parameters.get("slot", "")
        return f"{change.action.verb} {slot}" if slot else ""
    if change.ref.kind == "PersistentVolumeClaim" and change.op is Op.DELETE:
        return f"delete volume {change.ref.name.removesuffix('-data')}"
    if is_aside(change.after) != is_aside(change.before):
        return "put aside"
    is_step = change.ref.kind in {"Pod", "Job"} and change.op in {Op.CREATE, Op.DELETE}
    return f"{change.op.value} {change.ref.name}" if is_step else ""


def is_aside(claim):
    return ASIDE in annotations_of(claim or {})
