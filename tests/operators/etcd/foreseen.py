"""The steps that a preview of an etcd cluster shows."""

import itertools
from pathlib import Path

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import ObjectRef, annotations_of
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.outlook.simulation import passes
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.planner import build_children
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile_operators.etcd import EtcdCluster
from kubectl_reconcile_operators.etcd.situation import ASIDE
from kubectl_reconcile_operators.etcd_backup import EtcdBackup
from tests.core.planning.changes import known

MODULES = {each.gvk: each for each in (EtcdCluster, EtcdBackup)}
OWNED = {gvk for module in MODULES.values() for gvk in module.owns}
KINDS = {gvk: Kind(gvk, f"{gvk.kind.lower()}s", namespaced=True, schema=UNKNOWN) for gvk in OWNED}
for name in ("etcdclusters", "etcdbackups"):
    (CRD,) = parse(
        (Path(__file__).parents[3] / f"crds/{name}.etcd.database.coreos.com.yaml").read_bytes(), ""
    ).manifests
    KINDS |= {gvk: kind for gvk, kind in kinds_of_crd(CRD.manifest).items() if gvk in MODULES}
TO = {"claimName": "backups"}
CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "backups", "namespace": "shop"}}


def foreseen(world, facts=None, unheard=""):
    """The steps that a preview shows, by what it is told: all that is so, unless *facts* say otherwise. *unheard* is why pods that are ready weren't heard."""
    ref = ObjectRef.of(world.cr)
    inputs = known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects([world.cr, CLAIM, *world.objects.values()]),
        kinds=KINDS,
        modules=MODULES,
        now=world.now,
        grouped=False,
        observed={ref: Observation(facts or world.facts(), unheard=unheard)},
    )

    def build(inputs):
        return build_children(inputs, inputs.live.stored(ref).manifest())

    first, shown, idle = build(inputs), [], 0
    for plan in itertools.chain([first], passes(inputs, first, build)):
        steps = [*dict.fromkeys(step for change in plan.changes if change.writes and (step := step_of(change)))]
        shown += steps
        idle = 0 if steps else idle + 1
        if idle == 5:  # the schemas of pods aren't known here, so each pass would like to write them once more
            break
    return shown


def step_of(change):
    kind, name = change.ref.kind, change.ref.name
    if change.action:
        given = change.action.parameters
        return f"{change.action.verb} {given['slot']}" if "slot" in given else ""
    if kind == "PersistentVolumeClaim" and change.op is Op.DELETE:
        return f"delete volume {name.removesuffix('-data')}"
    if kind == "PersistentVolumeClaim" and (ASIDE in annotations_of(change.after or {})) != (
        ASIDE in annotations_of(change.before or {})
    ):
        return "put aside"
    if kind == "EtcdBackup" and change.op is Op.CREATE:
        return f"create {name}"
    return f"{change.op.value} {name}" if kind == "Pod" and change.op in {Op.CREATE, Op.DELETE} else ""
