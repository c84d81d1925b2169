"""What would be known once a plan has been carried out and everything has settled, object by object."""

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import ACTIONS
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress
from kubectl_reconcile.core.module.api import Module, Observation
from kubectl_reconcile.core.module.outcome import Action, Outcome
from kubectl_reconcile.core.objects import GroupKind, GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.children import ADD_FINALIZER, REMOVE_FINALIZER
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.module_call import BY_DAEMON
from kubectl_reconcile.core.planning.outlook.simulation import after, passes
from kubectl_reconcile.core.planning.plan import Op, Outcomes, Plan, StatusWrite
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import a_change, known

NOW = "2026-11-20T12:00:00Z"
STORE = GroupVersionKind("example.com", "v1", "Store")


def kind_of(api_version, kind):
    return Kind(GroupVersionKind.parse(api_version, kind), f"{kind.lower()}s", namespaced=True, schema=UNKNOWN)


KINDS = {
    "ConfigMap": kind_of("v1", "ConfigMap"), "Pod": kind_of("v1", "Pod"), "Deployment": kind_of("apps/v1", "Deployment"),
    "StatefulSet": kind_of("apps/v1", "StatefulSet"), "DaemonSet": kind_of("apps/v1", "DaemonSet"), "Job": kind_of("batch/v1", "Job"),
    "PersistentVolumeClaim": kind_of("v1", "PersistentVolumeClaim"), "Store": kind_of("example.com/v1", "Store"),
}  # fmt: skip


def body(kind, name="web", **content):
    metadata = {"name": name, "namespace": "shop", **content.pop("metadata", {})}
    return {"apiVersion": KINDS[kind].gvk.api_version, "kind": kind, "metadata": metadata, **content}


def change(op, manifest, **more):
    return a_change(ObjectRef.of(manifest), op, KINDS[manifest["kind"]], **more)


def made(manifest, **more):
    return change(Op.CREATE, manifest, intent=manifest, **more)


def ahead(*changes, live=(), modules=None, observed=None, statuses=()):
    """The inputs of the pass that follows these changes."""
    inputs = known(
        sync=Sync(name="shop", namespace="shop"), revision=Revision("c0ffee", NOW, {}), desired=[], live=Objects(live),
        kinds={kind.gvk: kind for kind in KINDS.values()}, modules=modules or {}, now=NOW, observed=observed or {},
        verdicts={ObjectRef("", "ConfigMap", "shop", "web"): ("a", "b")},
    )  # fmt: skip
    return after(inputs, Plan(None, "c0ffee", changes, outcomes=Outcomes(statuses=tuple(statuses))))


def there(inputs, manifest):
    """The object as it would be, None where it would be gone."""
    stored = inputs.live.stored(ObjectRef.of(manifest))
    return stored.manifest() if stored else None


# --- what is written ------------------------------------------------------------------------------


def test_what_is_made_has_what_the_server_gives_to_it():
    config = body("ConfigMap", data={"a": "b"})
    found = there(ahead(made(config)), config)
    (owner,) = found["metadata"].pop("managedFields")
    assert owner.pop("fieldsV1")["f:data"] == {".": {}, "f:a": {}}
    assert owner == {"manager": "kubectl-reconcile", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    assert found["data"] == {"a": "b"}
    assert found["metadata"] == {
        "name": "web", "namespace": "shop", "uid": "planned ConfigMap shop/web", "resourceVersion": "+", "generation": 1,
        "creationTimestamp": NOW,
    }  # fmt: skip


OTHERS = {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:c": {}}}}
OURS = {"manager": "kubectl-reconcile", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}}
LIVE = body(
    "ConfigMap",
    data={"a": "b", "c": "d"},
    metadata={
        "uid": "u-1", "resourceVersion": "7", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [OTHERS, OURS],
    },
)  # fmt: skip


def test_what_is_updated_stays_the_same_object_at_another_version():
    wanted = body("ConfigMap", data={"a": "x"})
    found = there(ahead(change(Op.UPDATE, LIVE, before=LIVE, intent=wanted), live=[LIVE]), LIVE)
    assert found["data"] == {"a": "x", "c": "d"}
    metadata = found["metadata"]
    assert [each["manager"] for each in metadata["managedFields"]] == ["kubectl", "kubectl-reconcile"]
    assert metadata["managedFields"][0] == OTHERS
    assert (metadata["uid"], metadata["resourceVersion"], metadata["generation"]) == ("u-1", "7+", 4)
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_what_is_replaced_is_another_object():
    wanted = body("ConfigMap", data={"a": "x"})
    found = there(ahead(change(Op.REPLACE, LIVE, before=LIVE, intent=wanted), live=[LIVE]), LIVE)
    assert found["data"] == {"a": "x"}
    assert (found["metadata"]["uid"], found["metadata"]["generation"]) == ("planned ConfigMap shop/web", 1)


def test_what_is_deleted_is_gone_and_so_is_what_the_garbage_collector_takes():
    other = body("ConfigMap", "other")
    changes = change(Op.DELETE, LIVE), change(Op.DELETE, other, cascade=True)
    inputs = ahead(*changes, live=[LIVE, other])
    assert (there(inputs, LIVE), there(inputs, other)) == (None, None)
    assert list(inputs.live.of_kind(GroupKind("", "ConfigMap"), "shop")) == []


STAYS = {
    "what is as it should be": change(Op.UNCHANGED, LIVE, before=LIVE),
    "what is blocked": change(Op.DELETE, LIVE, blocked="it is another's"),
    "what waits for a person": change(Op.DELETE, LIVE, held=True),
    "what waits for another object": change(Op.DELETE, LIVE, waits="Deployment.apps shop/web"),
}


@pytest.mark.parametrize("stays", STAYS.values(), ids=STAYS)
def test_what_nobody_writes_stays_as_it_is(stays):
    assert there(ahead(stays, live=[LIVE]), LIVE) == LIVE


def test_what_only_the_daemon_may_do_happens_too():
    assert there(ahead(change(Op.DELETE, LIVE, waits=BY_DAEMON), live=[LIVE]), LIVE) is None


def test_the_others_are_seen_beside_what_is_written():
    other = body("ConfigMap", "other", metadata={"labels": {"app": "web"}, "uid": "u-2"})
    new = body("ConfigMap", "new", metadata={"labels": {"app": "web"}})
    inputs = ahead(made(new), live=[LIVE, other])
    assert {each.ref.name for each in inputs.live.of_kind(GroupKind("", "ConfigMap"), "shop")} == {
        "web",
        "other",
        "new",
    }
    assert {each.ref.name for each in inputs.live.labelled("app", "web")} == {"other", "new"}
    assert inputs.live.stored(ObjectRef.of(other)).manifest() == other
    assert inputs.live.moment([GroupKind("", "ConfigMap")]) is None
    assert inputs.live.changed_since("then") is None
    assert inputs.memory.verdicts == {}


def owned_by(uid, owner="db"):
    return {"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Store", "name": owner, "uid": uid, "controller": True}]}  # fmt: skip


def test_a_child_of_what_is_made_in_the_same_plan_gets_its_uid():
    store = body("Store", "db")
    child = body("ConfigMap", "child", metadata=owned_by(""))
    inputs = ahead(made(store), made(child, owner=ObjectRef.of(store)))
    uid = there(inputs, store)["metadata"]["uid"]
    assert [each.ref.name for each in inputs.live.owned_by(uid)] == ["child"]


def test_a_status_that_a_module_gives_is_there():
    store = body("Store", "db", status={"size": 1}, metadata={"uid": "u"})
    write = StatusWrite(ObjectRef.of(store), KINDS["Store"], {**store, "status": {"size": 2}}, "m", "u")
    assert there(ahead(live=[store], statuses=[write]), store)["status"] == {"size": 2}
    assert there(ahead(statuses=[write]), store) is None


# --- what others make of it -----------------------------------------------------------------------

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web"}]}}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_workloads_roll_out_and_their_pods_are_ready(kind):
    workload = body(kind, spec={"replicas": 2, "template": TEMPLATE})
    inputs = ahead(made(workload))
    assert there(inputs, workload)["status"] == {
        "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "currentReplicas": 2,
        "observedGeneration": 1, "currentRevision": "planned", "updateRevision": "planned",
        "conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    }  # fmt: skip
    assert [there(inputs, body("Pod", f"web-{number}")) for number in range(3)] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-{number}", "labels": {"app": "web"}, "uid": f"planned web-{number}", "resourceVersion": "+",
                "namespace": "shop",
            },
            "spec": TEMPLATE["spec"],
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }
        for number in range(2)
    ] + [None]  # fmt: skip


def test_a_workload_that_says_nothing_of_replicas_has_one_pod():
    workload = body("Deployment", spec={})
    inputs = ahead(made(workload))
    assert there(inputs, workload)["status"]["replicas"] == 1
    pod = there(inputs, body("Pod", "web-0"))
    assert (pod["metadata"]["labels"], pod["spec"]) == ({}, {})
    assert there(inputs, body("Pod", "web-1")) is None


def test_pods_become_ready_and_jobs_complete_unless_they_are_suspended():
    pod, job, later = body("Pod"), body("Job", spec={}), body("Job", "later", spec={"suspend": True})
    inputs = ahead(made(pod), made(job), made(later))
    assert there(inputs, pod)["status"] == {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert there(inputs, job)["status"] == {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    assert "status" not in there(inputs, later)


def test_other_workloads_and_what_was_there_before_stay_as_they_are():
    daemons, before = body("DaemonSet", spec={}), body("Job", spec={})
    inputs = ahead(made(daemons), live=[before])
    assert "status" not in there(inputs, daemons)
    assert there(inputs, before) == before


IN_USE = {"deletionTimestamp": NOW, "finalizers": ["kubernetes.io/pvc-protection"]}
CLAIMS = {
    "one that was deleted goes with the pod": (IN_USE, False),
    "one that nothing keeps goes with the pod": ({"deletionTimestamp": NOW}, False),
    "one that nobody has deleted stays": ({"finalizers": IN_USE["finalizers"]}, True),
    "one that something else keeps stays": ({**IN_USE, "finalizers": [*IN_USE["finalizers"], "example.com/backup"]}, True),
}  # fmt: skip


@pytest.mark.parametrize(("metadata", "stays"), CLAIMS.values(), ids=CLAIMS)
def test_a_volume_claim_of_a_pod_that_is_deleted(metadata, stays):
    claim = body("PersistentVolumeClaim", "data", metadata=metadata)
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pod = body("Pod", spec={"volumes": volumes})
    inputs = ahead(change(Op.DELETE, pod), live=[claim, pod])
    assert there(inputs, pod) is None
    assert (there(inputs, claim) is not None) is stays


def test_a_volume_claim_of_another_pod_stays():
    claim, pod = body("PersistentVolumeClaim", "data", metadata=IN_USE), body("Pod", spec={})
    inputs = ahead(change(Op.DELETE, pod), change(Op.DELETE, LIVE), live=[claim, pod, LIVE])
    assert there(inputs, claim) == claim


# --- what modules do ------------------------------------------------------------------------------


def a_module(**more):
    whole = {"owns": (), "reads": (), "reconcile": lambda *_: Outcome(), "docs": ""}
    return {STORE: Module("store", STORE, **{**whole, **more})}


CR = body("Store", "db", metadata={"uid": "u", "finalizers": ["example.com/other"], "annotations": {"note": "a"}})
REF = ObjectRef.of(CR)
FINALIZER = a_module()[STORE].finalizer


def acting(verb, key="grow-1"):
    return change(Op.ACT, CR, action=Action(key, verb, "grow it"), owner=REF)


def test_the_engine_keeps_a_custom_resource_by_a_finalizer_and_lets_it_go():
    kept = there(ahead(acting(ADD_FINALIZER), live=[CR], modules=a_module()), CR)
    assert kept["metadata"]["finalizers"] == ["example.com/other", FINALIZER]
    assert kept["metadata"]["annotations"] == {"note": "a"}
    again = there(ahead(acting(ADD_FINALIZER), live=[kept], modules=a_module()), CR)
    assert again["metadata"]["finalizers"] == ["example.com/other", FINALIZER]
    free = there(ahead(acting(REMOVE_FINALIZER), live=[kept], modules=a_module()), CR)
    assert free["metadata"]["finalizers"] == ["example.com/other"]
    bare = body("Store", "db", metadata={"uid": "u"})
    first = there(ahead(acting(ADD_FINALIZER), live=[bare], modules=a_module()), CR)
    assert first["metadata"]["finalizers"] == [FINALIZER]


def test_an_action_is_noted_as_done_beside_those_before_it():
    earlier = ActionJournal().ended(Action("grow-0", "grow", "grow it"), NOW, ActionProgress.DONE)
    cr = {**CR, "metadata": {**CR["metadata"], "annotations": {"note": "a", ACTIONS: earlier.text()}}}
    found = there(ahead(acting("grow"), live=[cr], modules=a_module()), CR)
    journal = ActionJournal.of(found)
    assert [(each.key, each.progress, each.at) for each in journal.entries] == [
        ("grow-0", ActionProgress.DONE, NOW), ("grow-1", ActionProgress.DONE, NOW),
    ]  # fmt: skip
    assert found["metadata"]["annotations"]["note"] == "a"
    assert found["metadata"]["finalizers"] == ["example.com/other"]


def grown(cr, facts, action):
    return {"size": facts.get("size", 0) + 1, "by": action.key, "of": cr["metadata"]["name"]}


def test_an_action_has_the_effect_that_its_module_predicts():
    inputs = ahead(acting("grow"), live=[CR], modules=a_module(predict=grown), observed={REF: Observation({"size": 4})})
    assert inputs.modules.observed == {REF: Observation({"size": 5, "by": "grow-1", "of": "db"})}
    first = ahead(acting("grow"), live=[CR], modules=a_module(predict=grown))
    assert first.modules.observed[REF].facts["size"] == 1
    seen = {REF: Observation({"size": 4})}
    assert ahead(acting("grow"), live=[CR], modules=a_module(), observed=seen).modules.observed == seen


def test_an_action_for_what_isnt_there_does_nothing():
    assert there(ahead(acting("grow"), modules=a_module()), CR) is None


def counted(cr, owned, facts):
    return {
        **facts,
        "children": [each["metadata"]["name"] for each in owned.of("ConfigMap")],
        "of": cr["metadata"]["name"],
    }


def test_what_a_module_will_observe_follows_from_its_children():
    child = body("ConfigMap", "child", metadata=owned_by("u"))
    modules = a_module(owns=(KINDS["ConfigMap"].gvk,), foresee=counted)
    inputs = ahead(made(child, owner=REF), live=[CR], modules=modules, observed={REF: Observation({"size": 4})})
    assert inputs.modules.observed == {REF: Observation({"size": 4, "children": ["child"], "of": "db"})}


UNFORESEEN = {
    "of what is gone": ((), a_module(foresee=counted), Observation({"size": 4})),
    "of a kind without a module": ((CR,), {}, Observation({"size": 4})),
    "of a module that foresees nothing": ((CR,), a_module(), Observation({"size": 4})),
    "of what couldn't be observed": ((CR,), a_module(foresee=counted), Observation({"size": 4}, error="no answer")),
}


@pytest.mark.parametrize(("live", "modules", "seen"), UNFORESEEN.values(), ids=UNFORESEEN)
def test_what_was_observed_stays(live, modules, seen):
    assert ahead(live=live, modules=modules, observed={REF: seen}).modules.observed == {REF: seen}


# --- passes ---------------------------------------------------------------------------------------


def passes_of(first, *later):
    """The plans that are shown after the first, where each pass makes the next of these."""
    inputs = known(
        sync=Sync(name="shop", namespace="shop"), revision=Revision("c0ffee", NOW, {}), desired=[], live=Objects([LIVE]),
        kinds={}, modules={}, now=NOW,
    )  # fmt: skip
    plans = iter(later)
    return list(passes(inputs, first, lambda _: next(plans)))


def test_passes_end_with_the_first_that_has_nothing_to_do():
    busy = Plan(None, "a", (change(Op.DELETE, LIVE),))
    idle = Plan(None, "a", (change(Op.UNCHANGED, LIVE),))
    assert passes_of(busy, busy, idle) == [busy]
    assert passes_of(idle) == []


def test_a_pass_that_writes_statuses_alone_isnt_shown_and_is_followed_by_another():
    idle = Plan(None, "a", ())
    write = StatusWrite(REF, KINDS["Store"], {"status": {}}, "m", "u")
    telling = replace(idle, outcomes=Outcomes(statuses=(write,)))
    busy = Plan(None, "a", (change(Op.DELETE, LIVE),))
    assert passes_of(busy, telling, busy, idle) == [busy]


def test_passes_without_end_are_looked_ahead_to_an_end():
    busy = Plan(None, "a", (change(Op.DELETE, LIVE),))
    assert len(passes_of(busy, *[busy] * 200)) == 120
