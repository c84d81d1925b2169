"""What diff --until-stable shows: the passes that follow, on plain values."""

from __future__ import annotations

from pathlib import Path

from kubectl_reconcile.core.manifests.parse import Located, parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.outlook.simulation import passes
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.modules.candy import Candy
from kubectl_reconcile.modules.memcached import memcached
from kubectl_reconcile.modules.threetierapp import ThreeTierApp
from kubectl_reconcile.modules.webserver import webserver
from tests.core.planning.changes import known

ROOT = Path(__file__).parents[4]
NOW = "2026-11-20T12:00:00Z"
BUILT_IN = {
    (gvk := GroupVersionKind.parse(api, kind)): Kind(gvk, f"{kind.lower()}s", namespaced=True, schema=UNKNOWN)
    for api, kind in (("v1", "Service"), ("v1", "Pod"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"))
}
MODULES = {one.gvk: one for one in (Candy, memcached, ThreeTierApp, webserver)}


def kinds():
    crds = (
        each.manifest
        for file in (ROOT / "crds").glob("*.yaml")
        for each in parse(file.read_bytes(), file.name).manifests
    )
    return BUILT_IN | {gvk: kind for crd in crds for gvk, kind in kinds_of_crd(crd).items()}


def foresee(example, *, cluster=(), observed=None, **metadata):
    (located,) = parse((ROOT / "examples" / example).read_bytes(), example).manifests
    manifest = {**located.manifest, "metadata": {**located.manifest["metadata"], "namespace": "shop", **metadata}}
    inputs = known(
        sync=Sync(name="shop", namespace="shop"),
        revision=Revision("c0ffee", NOW, {}),
        desired=[Located.of(manifest, example, 1)],
        live=Objects(cluster),
        kinds=kinds(),
        modules=MODULES,
        now=NOW,
        grouped=False,
        observed={ObjectRef.of(manifest): observed} if observed else {},
    )
    first = build(inputs)
    return [first, *passes(inputs, first, build)]


def written(plan):
    """What a pass makes, in its order."""
    return [
        change.action.key if change.action else change.ref.name
        for wave in plan.waves()
        for change in wave
        if not change.unsure
    ]


def test_what_is_written_at_once_takes_one_pass():
    first, *_ = foresee("webserver.yaml")
    assert written(first)[1:] == ["hello-pod-0", "hello-pod-1", "hello-pod-2"]


def test_tiers_come_pass_by_pass():
    made = [set(written(plan)) for plan in foresee("threetierapp.yaml")]
    found = [
        next((at for at, names in enumerate(made) if f"store-{tier}" in names), None)
        for tier in ("database", "cache", "backend", "frontend")
    ]
    assert found == [0, 1, 2, 3]


NOTHING = Observation({"exists": False, "sugar": None, "made": 0, "bar": None, "bin": []})


def test_actions_have_the_effect_that_their_module_predicts():
    first, *later = foresee("candy.yaml", observed=NOTHING)
    assert written(first) == ["sweet", "keep-until-cleaned-up", "sugar-0-7", "make-1"]
    assert later == []


def test_what_needs_approval_stays_undone():
    bar = {"id": "bar-1", "flavor": "dark", "sugar": 7, "sweetness": 4}
    seen = Observation({"exists": True, "sugar": 7, "made": 1, "bar": bar, "bin": []})
    first, *later = foresee("candy.yaml", observed=seen)
    assert written(first) == ["sweet", "keep-until-cleaned-up"]
    assert not any(
        change.action and not change.gate.held and not change.gate.waits for plan in later for change in plan.changes
    )


def test_an_approved_disposal_is_followed_by_a_better_bar():
    bar = {"id": "bar-1", "flavor": "dark", "sugar": 7, "sweetness": 4}
    seen = Observation({"exists": True, "sugar": 7, "made": 1, "bar": bar, "bin": []})
    first, *later = foresee("candy.yaml", observed=seen, annotations={"reconcile.dev/approve-actions": "dispose"})
    assert written(first)[2:] == ["dispose-bar-1", "sugar-1-10", "make-2"]
    assert later == []


def test_what_was_applied_by_kubectl_is_taken_over_once():
    (located,) = parse((ROOT / "examples" / "memcached.yaml").read_bytes(), "memcached.yaml").manifests
    said = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    owned = {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}}
    entry = {
        "manager": "kubectl-client-side-apply",
        "operation": "Update",
        "apiVersion": located.manifest["apiVersion"],
    }
    metadata = {"namespace": "shop", "uid": "u-1", "resourceVersion": "5", "generation": 1, "annotations": said}
    metadata |= {"managedFields": [{**entry, "fieldsType": "FieldsV1", "fieldsV1": owned}]}
    live = {**located.manifest, "metadata": {**located.manifest["metadata"], **metadata}}
    first, *later = foresee("memcached.yaml", cluster=[live])
    name = live["metadata"]["name"]
    assert [change.ref.name for change in first.changes if change.takeover] == [name]
    assert [change.ref.name for plan in later for change in plan.changes if change.takeover] == []
