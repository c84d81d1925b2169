"""What a CR's status says after its module was asked, what stands in its children's way, and what becomes of those that go."""

import pytest

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.module.api import Observation, module
from kubectl_reconcile.core.module.outcome import Action, Outcome, in_turn
from kubectl_reconcile.core.objects import Condition, FieldPath, GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Contention, Op
from kubectl_reconcile.core.planning.planner import build, build_children
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import applyset_id, member
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from kubectl_reconcile.core.ssa.merge import three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import known

NOW, BEFORE = "2026-11-20T12:00:00Z", "2026-11-01T12:00:00Z"
CACHE = GroupVersionKind("example.com", "v1", "Cache")
REF = ObjectRef("example.com", "Cache", "shop", "web")
PROPERTIES = {"data": {"type": "object", "additionalProperties": {"type": "string"}}}
THINGS = {
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": PROPERTIES}}}],
    }
}
KINDS = {
    **kinds_of_crd(THINGS),
    CACHE: Kind(CACHE, "caches", namespaced=True, schema=UNKNOWN, custom=True, has_status=True),
    **{
        (gvk := GroupVersionKind.parse("v1", kind)): Kind(gvk, f"{kind.lower()}s", namespaced=True, schema=UNKNOWN)
        for kind in ("ConfigMap", "Pod")
    },
}


def cache(name="web", *, status=None, deleted=False, finalizers=(), generation=2, **annotations):
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"uid-{name}",
        "generation": generation,
        "resourceVersion": "5",
    }
    metadata |= {"annotations": annotations, "finalizers": list(finalizers)}
    metadata |= {"deletionTimestamp": NOW} if deleted else {}
    return {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": metadata, "spec": {}, "status": status or {}}


def child(name="a", kind="Thing", **content):
    api = "v1" if kind == "Pod" else "example.com/v1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **content}


def live(manifest, *, controller="uid-web", manager="kubectl-reconcile-cache", labels=None, **metadata):
    """A child as it stands in the cluster after a pass."""
    labels = {"reconcile.dev/module": "cache"} if labels is None else labels
    metadata = {**manifest["metadata"], "namespace": "shop", "labels": labels, **metadata}
    if controller:
        owner = {"apiVersion": "example.com/v1", "kind": "Cache", "name": "web", "uid": controller}
        metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    body = {**manifest, "metadata": metadata}
    schema = KINDS[GroupVersionKind.of(body)].schema
    stated = {**body, "metadata": {name: value for name, value in metadata.items() if name != "deletionTimestamp"}}
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": body["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": three_way(desired=stated, live=None, schema=schema, manager=manager).owned.to_wire(),
    }
    found = {**metadata, "uid": f"uid-{metadata['name']}", "resourceVersion": "7", "managedFields": [entry]}
    return {**body, "metadata": found}


def a_module(reconcile, **more):
    methods = {"reconcile": lambda _, *given: reconcile(*given)}
    methods |= {name: (lambda _, *given, do=do: do(*given)) for name, do in more.items()}
    owns = ["example.com/v1/Thing", "v1/Pod", "example.com/v1/Cache"]
    return module(api="example.com/v1", kind="Cache", owns=owns, name="cache")(type("Cache", (), methods))


def wants(*children, **more):
    return a_module(lambda *_: Outcome(children, **more))


def plan(one, cr, *cluster, **more):
    inputs = known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects(cluster),
        kinds=KINDS | more.pop("kinds", {}),
        modules={CACHE: one},
        now=NOW,
        grouped=False,
        observed={REF: Observation()},
        **more,
    )
    return build_children(inputs, cr)


def status_of(made):
    (written,) = made.outcomes.statuses
    return written.after["status"]


def conditions(made):
    return {each["type"]: each for each in status_of(made)["conditions"]}


WANTED = child(data={"x": "1"})
HERE = live(WANTED)


# --- what a module sees ---


def test_a_module_is_told_of_the_children_that_its_cr_owns_and_of_no_others():
    seen = []

    def look(_cr, owned, *_):
        seen.extend(one["metadata"]["name"] for one in owned)
        return Outcome()

    plan(a_module(look), cache(), HERE, live(child("b"), controller="uid-other"))
    assert seen == ["a"]


# --- what is written ---


def test_a_status_is_written_by_the_module_s_manager_to_the_cr_that_was_looked_at():
    made = plan(wants(status={"nodes": ["a"]}, conditions=(Condition("Ready", "True", "AllUp", "all up"),)), cache())
    (written,) = made.outcomes.statuses
    assert (written.ref, written.manager, written.uid, written.is_first) == (
        REF,
        "kubectl-reconcile-cache",
        "uid-web",
        True,
    )
    assert written.kind is KINDS[CACHE]
    status = written.after["status"]
    assert {**written.after, "status": {**status, "conditions": []}} == {
        "apiVersion": "example.com/v1",
        "kind": "Cache",
        "metadata": {"name": "web", "namespace": "shop"},
        "status": {"nodes": ["a"], "observedGeneration": 2, "conditions": []},
    }
    assert status["conditions"][0] == {
        "type": "Ready",
        "status": "True",
        "reason": "AllUp",
        "message": "all up",
        "observedGeneration": 2,
        "lastTransitionTime": NOW,
    }


def test_a_status_that_was_there_is_not_the_first():
    assert not plan(wants(status={"nodes": ["b"]}), cache(status={"nodes": ["a"]})).outcomes.statuses[0].is_first


def test_a_status_that_says_nothing_new_is_not_written():
    ready = Condition("Ready", "True", "AllUp")
    first = status_of(plan(wants(WANTED, conditions=(ready,)), cache(), HERE))
    assert not plan(wants(WANTED, conditions=(ready,)), cache(status=first), HERE).outcomes.statuses


def test_the_status_of_a_cluster_scoped_cr_names_no_namespace():
    wide = Kind(CACHE, "caches", namespaced=False, schema=UNKNOWN, custom=True, has_status=True)
    cr = cache()
    del cr["metadata"]["namespace"]
    (written,) = plan(wants(status={"nodes": ["a"]}), cr, kinds={CACHE: wide}).outcomes.statuses
    assert written.after["metadata"] == {"name": "web"}


def test_a_kind_without_a_status_gets_none():
    mute = Kind(CACHE, "caches", namespaced=True, schema=UNKNOWN, custom=True, has_status=False)
    assert not plan(wants(status={"nodes": ["a"]}), cache(), kinds={CACHE: mute}).outcomes.statuses


SPEAKS = {
    "of the newest spec, once all children are as they should be": (wants(WANTED), [HERE], 2),
    "of the spec before, while a child is to be made": (wants(WANTED), [], 1),
    "of the spec before, while a child is to be changed": (wants(child(data={"x": "2"})), [HERE], 1),
    "of the newest spec, where children stay whatever they are": (wants(WANTED, keep_children=True), [], 2),
    "of the spec before, while a child is in the way": (wants(WANTED), [live(WANTED, controller="uid-other")], 1),
}


@pytest.mark.parametrize(("one", "cluster", "generation"), SPEAKS.values(), ids=SPEAKS)
def test_a_status_speaks(one, cluster, generation):
    made = plan(one, cache(status={"observedGeneration": 1, "conditions": []}), *cluster)
    said = made.outcomes.statuses[0].after["status"] if made.outcomes.statuses else {"observedGeneration": 1}
    assert said["observedGeneration"] == generation


def test_a_status_of_a_new_cr_speaks_of_no_spec_until_its_children_are_there():
    assert status_of(plan(wants(WANTED), cache()))["observedGeneration"] == 0


@pytest.mark.parametrize("after_s", [None, 30.0])
def test_a_module_is_asked_again_when_it_wants_to_be(after_s):
    assert plan(wants(requeue_after_s=after_s), cache()).outcomes.requeue_after_s == after_s


@pytest.mark.parametrize("urgent", [False, True])
def test_a_module_says_whether_somebody_waits_for_what_follows(urgent):
    assert plan(wants(urgent=urgent), cache()).outcomes.is_urgent is urgent


def test_a_paused_cr_keeps_its_status_and_the_generation_that_it_spoke_of():
    before = {
        "nodes": ["a"],
        "observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "True", "reason": "AllUp", "lastTransitionTime": BEFORE}],
    }
    made = plan(wants(WANTED), cache(status=before, **{"reconcile.dev/paused": "true"}))
    assert (status_of(made)["nodes"], status_of(made)["observedGeneration"]) == (["a"], 1)
    assert conditions(made)["Paused"]["message"] == "reconcile.dev/paused is true; nothing is changed"
    assert conditions(made)["Ready"]["lastTransitionTime"] == BEFORE


def was(type_, status="True"):
    return {"conditions": [{"type": type_, "status": status, "reason": "X", "lastTransitionTime": BEFORE}]}


@pytest.mark.parametrize("type_", ["Stalled", "Paused", "Contended"])
def test_a_condition_that_the_engine_keeps_ends_with_its_reason(type_):
    found = conditions(plan(wants(), cache(status=was(type_))))[type_]
    assert (found["status"], found["reason"], found["lastTransitionTime"]) == ("False", "AsExpected", NOW)
    assert type_ not in conditions(plan(wants(), cache()))


@pytest.mark.parametrize("type_", ["Stalled", "Paused", "Contended"])
def test_a_condition_that_ended_before_is_left_as_it_is(type_):
    found = conditions(plan(wants(), cache(status=was(type_, "False"))))[type_]
    assert (found["reason"], found["lastTransitionTime"]) == ("X", BEFORE)


@pytest.mark.parametrize("cluster", [[], [live(WANTED, controller="uid-other")]], ids=["none", "a child in the way"])
def test_what_a_module_says_of_a_condition_wins(cluster):
    said = Condition("Stalled", "False", "Fine")
    made = plan(wants(WANTED, conditions=(said,)), cache(status=was("Stalled")), *cluster)
    assert (conditions(made)["Stalled"]["status"], conditions(made)["Stalled"]["reason"]) == ("False", "Fine")


def test_a_child_that_is_still_in_the_way_is_still_told():
    made = plan(wants(WANTED), cache(status=was("Stalled")), live(WANTED, controller="uid-other"))
    found = conditions(made)["Stalled"]
    assert (found["status"], found["reason"], found["lastTransitionTime"]) == ("True", "ChildInTheWay", BEFORE)


def test_a_pause_ends_though_a_child_is_in_the_way():
    made = plan(wants(WANTED), cache(status=was("Paused")), live(WANTED, controller="uid-other"))
    assert (conditions(made)["Paused"]["status"], conditions(made)["Stalled"]["status"]) == ("False", "True")


THING = ObjectRef("example.com", "Thing", "shop", "a")
CONTESTS = tuple(Contention(THING, FieldPath.fields("data", name), "rival", 10, BEFORE) for name in "xy")


def test_fields_of_children_that_are_left_to_others_are_named():
    there = live(child(data={"x": "9", "y": "9"}))
    made = plan(wants(child(data={"x": "1", "y": "1"})), cache(), there, contentions={THING: CONTESTS})
    found = conditions(made)["Contended"]
    assert (found["status"], found["reason"]) == ("True", "BackedOff")
    assert found["message"] == "; ".join(map(str, CONTESTS))


def test_a_contention_that_is_over_is_not_named():
    made = plan(wants(WANTED), cache(), HERE, contentions={THING: CONTESTS[:1]})
    assert "Contended" not in conditions(made)
    assert made.settled == CONTESTS[:1]


# --- what stands in the way ---


def test_a_kind_that_nobody_knows_is_a_problem_and_the_other_children_go_on():
    strange = {"apiVersion": "nowhere.example.com/v1", "kind": "Strange", "metadata": {"name": "s"}}
    made = plan(
        module(
            api="example.com/v1",
            kind="Cache",
            owns=["nowhere.example.com/v1/Strange", "example.com/v1/Thing"],
            name="cache",
        )(lambda *_: Outcome((strange, WANTED))),
        cache(),
    )
    (problem,) = made.problems
    assert (
        "module cache wants Strange.nowhere.example.com shop/s, a kind that the cluster doesn't know" in problem.message
    )
    assert problem.hint == "install its CRD"
    assert [change.ref.name for change in made.changes] == ["a"]
    stalled = conditions(made)["Stalled"]
    assert (stalled["status"], stalled["reason"]) == ("True", "ChildInTheWay")
    assert stalled["message"] == "Strange.nowhere.example.com shop/s: the cluster doesn't know its kind"


UNTOUCHED = ("Thing.example.com/a",)
AS_IT_IS = {
    "it can't be read": (wants(WANTED), {"unreadable": {ObjectRef("example.com", "Thing", "shop", "a"): "forbidden"}}),
    "its module leaves it untouched": (wants(child(data={"x": "2"}), untouched=UNTOUCHED), {}),
}


@pytest.mark.parametrize(("one", "more"), AS_IT_IS.values(), ids=AS_IT_IS)
def test_a_child_is_told_with_its_kind_owner_and_manager_though(one, more):
    (change,) = plan(one, cache(), HERE, **more).changes
    assert (change.op, change.provenance.owner, change.provenance.manager) == (
        Op.UNCHANGED,
        REF,
        "kubectl-reconcile-cache",
    )
    assert change.kind is KINDS[GroupVersionKind("example.com", "v1", "Thing")]


def test_the_first_child_in_the_way_is_the_one_that_is_named():
    others = [live(child(name, data={"x": "1"}), controller="uid-other") for name in "ab"]
    made = plan(wants(*(child(name, data={"x": "1"}) for name in "ab")), cache(), *others)
    assert [change.gate.blocked for change in made.changes] == [
        "it is controlled by Cache web, not by Cache.example.com shop/web"
    ] * 2
    assert conditions(made)["Stalled"]["message"].startswith("Thing.example.com shop/a: it is controlled by")


def test_a_stranger_is_named_with_what_makes_it_the_module_s():
    made = plan(wants(WANTED), cache(), live(WANTED, controller="", labels={}, manager="somebody"))
    assert made.changes[0].op is Op.UPDATE
    assert made.changes[0].gate.blocked == (
        "it exists, but doesn't belong to Cache.example.com shop/web; delete it, or give it the label reconcile.dev/module"
        " and the other labels of this child"
    )


# --- order ---


WAITS = {
    "its making": ([], "Thing.example.com shop/a, which must be created first"),
    "its change": ([live(child(data={"x": "2"}))], "Thing.example.com shop/a, which must be updated first"),
    "what is in its way": (
        [live(WANTED, controller="uid-other")],
        "Thing.example.com shop/a: it is controlled by Cache web, not by Cache.example.com shop/web",
    ),
}


@pytest.mark.parametrize(("cluster", "why"), WAITS.values(), ids=WAITS)
def test_a_child_waits_for_the_one_before_and_says_for(cluster, why):
    second = child("b", data={"x": "1"})
    made = plan(wants(WANTED, second, after=in_turn([WANTED], [second])), cache(), *cluster)
    assert {change.ref.name: change.gate.waits for change in made.changes}["b"] == why


def test_a_child_waits_for_one_that_is_deleted_to_be_recreated():
    second, changed = child("b", data={"x": "1"}), child(data={"x": "2"})
    made = plan(wants(changed, second, after=in_turn([changed], [second]), recreated=("Thing",)), cache(), HERE)
    assert {change.ref.name: (change.op, change.gate.waits) for change in made.changes} == {
        "a": (Op.DELETE, ""),
        "b": (Op.CREATE, "Thing.example.com shop/a, which must be deleted first"),
    }
    assert [change.provenance.owner for change in made.changes] == [REF, REF]


def test_a_child_that_is_healthy_holds_up_nobody():
    pod, second = child("p", "Pod", spec={}), child("b", data={"x": "1"})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    made = plan(wants(pod, second, after=in_turn([pod], [second])), cache(), {**live(pod), "status": ready})
    assert {change.ref.name: change.gate.waits for change in made.changes}["b"] == ""


# --- children that go ---


def test_a_deleted_child_is_told_with_its_owner_and_manager_and_takes_its_own_along():
    below = live(child("below"), controller="uid-a", labels={})
    made = plan(wants(), cache(), HERE, below)
    assert {change.ref.name: (change.op, change.gate.cascade, change.provenance.owner) for change in made.changes} == {
        "a": (Op.DELETE, False, REF),
        "below": (Op.DELETE, True, THING),
    }
    assert made.changes[0].provenance.manager == "kubectl-reconcile-cache"


def test_each_child_that_is_not_wanted_goes_though_others_are():
    stale = live(child("b", data={"x": "1"}))
    made = plan(wants(WANTED), cache(), HERE, stale)
    assert {change.ref.name: change.op for change in made.changes} == {"a": Op.UNCHANGED, "b": Op.DELETE}


LEFT_ALONE = {
    "it is wanted": (wants(WANTED), HERE),
    "it is going already": (wants(), live(WANTED, deletionTimestamp=NOW)),
    "another module made it": (wants(), live(WANTED, labels={"reconcile.dev/module": "other"})),
    "no module made it": (wants(), live(WANTED, labels={})),
    "its module says that children stay": (wants(keep_children=True), HERE),
}


@pytest.mark.parametrize(("one", "there"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_no_child_is_deleted_where(one, there):
    assert not [change for change in plan(one, cache(), there).changes if change.op is Op.DELETE]


# --- the end of a CR ---

FINALIZER = "reconcile.dev/cache"
CLEAN = Action("clean-1", "clean", "clean up")
ACTING = {"observe": lambda *_: {}, "act": lambda *_: None}


def finalizing(outcome, **more):
    return a_module(lambda *_: Outcome((WANTED,)), finalize=lambda *_: outcome, **ACTING, **more)


def going(**annotations):
    return cache(deleted=True, finalizers=[FINALIZER], **annotations)


def test_a_cr_is_kept_until_its_module_has_cleaned_up():
    first = plan(finalizing(Outcome()), cache()).changes[0]
    assert (first.op, first.action.key, first.action.verb, first.gate.is_open) == (
        Op.ACT,
        *["keep-until-cleaned-up"] * 2,
        True,
    )
    assert (first.gate.held, first.gate.waits) == (False, "")
    assert first.action.summary == "keep it, once deleted, until its module has cleaned up"
    assert [change.op for change in plan(finalizing(Outcome()), cache(finalizers=[FINALIZER])).changes] == [Op.CREATE]


GOES = {
    "its module is done and nothing is left": (Outcome(finalized=True), [], ["let-go"]),
    "not while a child is going": (Outcome(finalized=True), [live(WANTED, deletionTimestamp=NOW)], []),
    "not while its module isn't done": (Outcome(), [], []),
    "not while an action is to be run": (Outcome(actions=(CLEAN,), finalized=True), [], ["clean-1"]),
    "not while a child is to be made": (Outcome((WANTED,), finalized=True), [], []),
    "though a child stays that is wanted": (Outcome((WANTED,), finalized=True), [HERE], ["let-go"]),
    "not while a child of its own stays": (Outcome(finalized=True, keep_children=True), [HERE], []),
    "though a stranger stays": (Outcome(finalized=True, keep_children=True), [live(WANTED, labels={})], ["let-go"]),
}


@pytest.mark.parametrize(("outcome", "cluster", "keys"), GOES.values(), ids=GOES)
def test_a_deleted_cr_goes(outcome, cluster, keys):
    made = plan(finalizing(outcome), going(), *cluster)
    assert [change.action.key for change in made.changes if change.action] == keys


def test_why_a_cr_is_let_go_is_said():
    (done,) = plan(finalizing(Outcome(finalized=True)), going()).changes
    assert done.action.summary == "allow its deletion: its module has cleaned up"
    (abandoned,) = plan(finalizing(Outcome()), going(**{"reconcile.dev/abandon": "true"})).changes
    assert abandoned.action.summary == "allow its deletion without cleaning up outside, as its annotation says"
    assert not plan(finalizing(Outcome()), cache(deleted=True, **{"reconcile.dev/abandon": "true"})).changes


def test_children_of_a_cr_that_goes_by_itself_are_the_garbage_collector_s():
    assert not plan(finalizing(Outcome()), cache(deleted=True), HERE).changes
    assert not plan(wants(), cache(deleted=True, finalizers=[FINALIZER]), HERE).changes


# --- children that are CRs ---


def nesting(depth):
    """A module that wants a CR of its own kind, *depth* times."""

    def reconcile(cr, *_):
        at = len(cr["metadata"]["name"])
        return Outcome((child(f"{cr['metadata']['name']}x", "Cache"),) if at < depth else ())

    return a_module(reconcile)


def test_a_plan_shows_the_whole_tree_of_crs_that_do_not_exist_yet():
    made = plan(nesting(4), cache("x"))
    assert [change.ref.name for change in made.changes] == ["xx", "xxx", "xxxx"]
    assert not made.problems


def test_modules_nest_eight_deep_and_no_deeper():
    assert not plan(nesting(8), cache("x")).problems
    (problem,) = plan(nesting(99), cache("x")).problems
    assert "modules nest more than 8 deep" in problem.message
    assert problem.hint == "break the cycle"


# --- what a deletion in Git would make a module do ---

SHOP = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(10))


def deleting(one, cr, *others):
    marked = member(cr, set_id=applyset_id(SHOP.ref), source="caches.yaml")
    entry = {
        "manager": "kubectl-reconcile",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": three_way(desired=marked, live=None, schema=UNKNOWN).owned.to_wire(),
    }
    held = {**marked, "metadata": {**marked["metadata"], "managedFields": [entry]}}
    other = Located.of({**child("other", "Thing"), "metadata": {"name": "other", "namespace": "shop"}}, "other.yaml", 1)
    inputs = known(
        sync=SHOP,
        revision=Revision("c0ffee", NOW, {"other.yaml": "blob"}),
        desired=[other],
        live=Objects([held, *others]),
        kinds=KINDS,
        modules={CACHE: one},
        now=NOW,
        observed={REF: Observation()},
    )
    theirs = [change for change in build(inputs).changes if change.op is not Op.DELETE]
    return [change for change in theirs if change.ref != ObjectRef.of(other.manifest)]


def test_what_a_module_would_make_before_a_cr_goes_is_shown_and_waits_for_the_deletion():
    (change,) = deleting(finalizing(Outcome((WANTED,))), cache(finalizers=[FINALIZER]))
    assert (change.op, change.ref, change.provenance.owner) == (
        Op.CREATE,
        ObjectRef("example.com", "Thing", "shop", "a"),
        REF,
    )
    assert change.gate.waits == "the deletion of Cache.example.com shop/web"


def test_what_is_there_already_when_a_cr_goes_is_no_news():
    assert not deleting(finalizing(Outcome((WANTED,))), cache(finalizers=[FINALIZER]), live(child(data={"x": "2"})))


def test_what_a_module_would_do_to_clean_up_is_shown_and_waits_for_the_deletion():
    (change,) = deleting(finalizing(Outcome(actions=(CLEAN,))), cache(finalizers=[FINALIZER]))
    assert (change.action, change.gate.waits) == (CLEAN, "the deletion of Cache.example.com shop/web")


def test_the_module_is_asked_as_if_the_cr_were_going():
    seen = []
    one = a_module(lambda *_: Outcome(), finalize=lambda cr, *_: seen.append(cr) or Outcome(), **ACTING)
    deleting(one, cache(finalizers=[FINALIZER]))
    assert [cr["metadata"]["deletionTimestamp"] for cr in seen] == [NOW]


def test_nothing_is_shown_of_a_cr_that_is_abandoned():
    abandoned = cache(finalizers=[FINALIZER], **{"reconcile.dev/abandon": "true"})
    assert not deleting(finalizing(Outcome(actions=(CLEAN,))), abandoned)
