"""What diff --until-stable shows of a cluster that begins with a backup, and of its restore, is what is done, step by step."""

import itertools
from pathlib import Path

import pytest

from kubectl_reconcile.core.manifests.parse import Located, parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef, annotations_of
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
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
from tests.operators.etcd_restore.world import RestoreWorld

ROOT = Path(__file__).parents[3]
KINDS = {
    gvk: Kind(gvk, f"{gvk.kind.lower()}s", namespaced=True, schema=UNKNOWN)
    for gvk in (*EtcdCluster.owns, *EtcdRestore.owns)
}
for file in sorted((ROOT / "crds").glob("etcd*.yaml")):
    for located in parse(file.read_bytes(), "").manifests:
        KINDS |= dict(kinds_of_crd(located.manifest))


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


def test_the_kinds_are_known():
    assert GroupVersionKind.parse("batch/v1", "Job") in KINDS
    assert EtcdRestore.gvk in KINDS


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_way_to_a_restored_cluster_is_shown_to_its_last_member(size):
    world = RestoreWorld(size)
    shown = foreseen(world)
    world.settle_both()
    assert shown == world.taken
    assert len(shown) == 2 + 3 * (size - 1)


def test_of_what_is_in_the_way_nothing_is_shown_but_the_volume():
    world = RestoreWorld()
    world.backup["status"]["history"] = []
    assert foreseen(world) == []
