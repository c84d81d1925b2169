"""What becomes of a module's children, actions and CR, on plain values."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.annotations import ACTIONS, APPROVE_ACTIONS, APPROVED_ACTIONS
from kubectl_reconcile.core.health.cel_rules import HealthRules
from kubectl_reconcile.core.health.health import Health, HealthStatus
from kubectl_reconcile.core.module.action_journal import ActionJournal, ActionProgress, approving, is_approved, unmet
from kubectl_reconcile.core.module.api import Observation, module
from kubectl_reconcile.core.module.inputs import Reads, Select
from kubectl_reconcile.core.module.outcome import Action, Outcome, in_turn
from kubectl_reconcile.core.module.specs import SpecError
from kubectl_reconcile.core.objects import Condition, GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.module_call import owned_view
from kubectl_reconcile.core.planning.outlook.simulation import Ahead
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.snapshot import Objects, Overlay, OwnSet
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.family import KINDS, NOW, REF, a_module, cache, child, conditions, live, plan, wants


def ops(made):
    return {change.ref.name: change.op for change in made.changes}


# --- reach ---


def elsewhere(manifest, namespace="kube-system"):
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


ROOT = GroupVersionKind.parse("v1", "Service")


def test_a_child_in_another_namespace_is_a_problem_of_its_cr_and_the_others_go_on():
    made = plan(wants(child("a"), elsewhere(child("b", "Service"))), cache())
    assert ops(made) == {"a": Op.CREATE}
    (problem,) = made.errors
    assert str(REF) == problem.path
    assert "module cache wants Service kube-system/b, in namespace kube-system" in problem.message
    assert conditions(made)["Stalled"] == ("True", "ChildInTheWay")


def test_a_child_that_names_its_crs_own_namespace_is_made():
    assert ops(plan(wants(elsewhere(child("a"), "shop")), cache())) == {"a": Op.CREATE}


@pytest.fixture
def cluster_scoped(monkeypatch):
    monkeypatch.setitem(KINDS, ROOT, Kind(ROOT, "services", namespaced=False, schema=UNKNOWN))


@pytest.mark.usefixtures("cluster_scoped")
def test_a_namespaced_cr_has_no_cluster_scoped_children():
    made = plan(wants(child("a"), child("everything", "Service")), cache())
    assert ops(made) == {"a": Op.CREATE}
    assert "wants Service everything, which is cluster-scoped" in made.errors[0].message


@pytest.mark.usefixtures("cluster_scoped")
def test_a_cluster_scoped_cr_has_cluster_scoped_children():
    cr = cache()
    del cr["metadata"]["namespace"]
    made = plan(wants(child("everything", "Service")), cr)
    assert ops(made) == {"everything": Op.CREATE}
    assert not made.errors


def test_what_another_namespace_claims_to_be_a_child_is_neither_shown_nor_deleted():
    seen = []
    one = a_module(lambda _cr, owned, *_: seen.extend(owned.children) or Outcome(()))
    forged = elsewhere(live(child("forged")), "attacker")
    made = plan(one, cache(), forged)
    assert seen == []
    assert ops(made) == {}


# --- order ---

FIRST, SECOND, THIRD = child("a", data={"x": "1"}), child("b", data={"x": "1"}), child("c", data={"x": "1"})
IN_TURN = in_turn([FIRST], [SECOND], [THIRD])


def test_children_wait_for_those_before_them():
    made = plan(wants(FIRST, SECOND, THIRD, after=IN_TURN), cache())
    assert {change.ref.name: change.gate.waits for change in made.changes} == {
        "a": "",
        "b": "Thing.example.com shop/a, which must be created first",
        "c": "Thing.example.com shop/a, which must be created first",
    }
    assert [change.ref.name for wave in made.waves() for change in wave] == ["a"]


def test_the_next_child_is_written_once_the_one_before_is_there():
    made = plan(wants(FIRST, SECOND, THIRD, after=IN_TURN), cache(), live(FIRST))
    assert [change.ref.name for wave in made.waves() for change in wave] == ["b"]


def test_a_child_waits_for_health_not_only_for_existence():
    pod = child("a", "Pod", spec={"containers": []})
    after = in_turn([pod], [SECOND])
    pending = {**live(pod), "status": {"phase": "Pending"}}
    (change,) = [
        each for each in plan(wants(pod, SECOND, after=after), cache(), pending).changes if each.ref.name == "b"
    ]
    assert change.gate.waits.startswith("Pod shop/a (InProgress")


def test_what_is_as_it_should_be_never_waits():
    made = plan(wants(FIRST, SECOND, after=in_turn([FIRST], [SECOND])), cache(), live(SECOND))
    assert ops(made) == {"a": Op.CREATE, "b": Op.UNCHANGED}


def test_an_order_that_names_a_later_child_is_a_fault_of_the_module():
    made = plan(wants(SECOND, FIRST, after=IN_TURN), cache())
    assert "which must be listed before it" in str(made.problems[0])


# --- adoption ---

STRANGERS = {
    "a stranger is left alone": (
        live(FIRST, owner="", labelled=False, manager="somebody"),
        "doesn't belong to Cache.example.com shop/web;",
    ),
    "another CR's child is left alone": (live(FIRST, owner="u-2"), "it is controlled by Cache web"),
}


@pytest.mark.parametrize(("there", "why"), STRANGERS.values(), ids=STRANGERS)
def test_what_has_the_name_of_a_child(there, why):
    made = plan(wants(FIRST), cache(), there)
    assert why in made.changes[0].gate.blocked
    assert conditions(made)["Stalled"] == ("True", "ChildInTheWay")


ORPHANS = {
    "it carries the labels": live(FIRST, owner="", manager="somebody"),
    "the module made it": live(FIRST, owner="", labelled=False),
}


@pytest.mark.parametrize("there", ORPHANS.values(), ids=ORPHANS)
def test_an_orphan_that_is_the_modules_is_adopted(there):
    (change,) = plan(wants(FIRST), cache(), there).changes
    assert (change.op, change.gate.blocked) == (Op.UPDATE, "")


def test_stalled_goes_with_its_reason():
    stalled = {"type": "Stalled", "status": "True", "reason": "ChildInTheWay", "lastTransitionTime": NOW}
    made = plan(wants(FIRST), cache(status={"conditions": [stalled]}), live(FIRST))
    assert conditions(made)["Stalled"] == ("False", "AsExpected")


# --- children that are to stay, or to be recreated ---


def test_what_is_no_longer_wanted_goes():
    assert ops(plan(wants(), cache(), live(FIRST))) == {"a": Op.DELETE}


def test_an_untouched_child_stays_as_it_is():
    made = plan(wants(child("a", data={"x": "2"}), untouched=("Thing.example.com/a",)), cache(), live(FIRST))
    assert ops(made) == {"a": Op.UNCHANGED}


def test_a_recreated_child_is_deleted_first():
    made = plan(wants(child("a", data={"x": "2"}), recreated=("Thing",)), cache(), live(FIRST))
    assert ops(made) == {"a": Op.DELETE}


# --- pause, faults ---


def test_a_paused_cr_changes_nothing_and_says_so():
    made = plan(wants(FIRST), cache(status={"nodes": ["a"]}, **{"reconcile.dev/paused": "true"}))
    assert not made.changes
    assert conditions(made) == {"Paused": ("True", "ByAnnotation")}
    assert made.outcomes.statuses[0].after["status"]["nodes"] == ["a"]


def test_a_broken_module_leaves_children_alone_and_says_so():
    made = plan(a_module(lambda *_: {}["size"]), cache(), live(FIRST))
    assert not made.changes
    assert conditions(made)["Stalled"] == ("True", "ModuleFailed")


# --- actions ---


def acting(*actions, **more):
    def outcome(*_):
        return Outcome(actions=actions)

    return a_module(outcome, observe=lambda *_: {}, act=lambda *_: None, **more)


STEP, NEXT = Action("step-1", "step", "take a step"), Action("next-1", "next", "take the next")
RISKY = Action("risky-1", "risk", "break it", needs_approval=True)


def test_a_module_that_observes_is_asked_once_somebody_has_looked():
    made = plan(acting(STEP), cache())
    assert list(made.outcomes.unobserved) == [REF]
    assert not made.changes
    assert not plan(acting(STEP), cache(), observed=Observation()).outcomes.unobserved


def test_actions_run_one_after_the_other():
    made = plan(acting(STEP, NEXT), cache(), observed=Observation())
    assert [[change.action.key for change in wave] for wave in made.waves()] == [["step-1"], ["next-1"]]
    assert made.changes[0].ref.name == "web/step-1"


def test_what_needs_approval_is_held_and_the_rest_waits():
    made = plan(acting(RISKY, STEP), cache(), observed=Observation())
    assert [(change.gate.held, change.gate.waits) for change in made.changes] == [
        (True, ""),
        (False, "risky-1, which needs approval"),
    ]
    assert not list(made.waves())


def awaiting(made):
    status = made.outcomes.statuses[0].after["status"] if made.outcomes.statuses else {}
    found = [each for each in status.get("conditions", ()) if each["type"] == "AwaitingApproval"]
    return [(each["status"], each["message"]) for each in found]


def test_what_waits_for_a_person_is_said_on_the_custom_resource_and_taken_back_once_it_may_run():
    made = plan(acting(RISKY, STEP), cache(), observed=Observation())
    said = "break it (risky-1) waits for approval: kubectl reconcile approve cache.example.com/web -n shop"
    assert awaiting(made) == [("True", said)]
    status = made.outcomes.statuses[0].after["status"]
    assert HealthRules().judge({**cache(), "status": status}) == Health(HealthStatus.CURRENT, said)
    approved = cache(status=status, **{APPROVE_ACTIONS: "risk"})
    assert awaiting(plan(acting(RISKY, STEP), approved, observed=Observation())) == [("False", "")]
    assert awaiting(plan(acting(STEP), cache(), observed=Observation())) == []


APPROVALS = {
    "the verb, in Git": {APPROVE_ACTIONS: "other, risk"},
    "the key, in Git": {APPROVE_ACTIONS: "risky-1"},
    "everything, in Git": {APPROVE_ACTIONS: "*"},
    "the key, by hand": {APPROVED_ACTIONS: "risky-0,risky-1"},
}


@pytest.mark.parametrize("annotations", APPROVALS.values(), ids=APPROVALS)
def test_an_approved_action_runs(annotations):
    made = plan(acting(RISKY), cache(**annotations), observed=Observation())
    assert [change.action.key for wave in made.waves() for change in wave] == ["risky-1"]


@pytest.mark.parametrize(
    "annotations",
    [{APPROVE_ACTIONS: "risky"}, {APPROVED_ACTIONS: "risk"}, {APPROVED_ACTIONS: "*"}, {APPROVED_ACTIONS: "risky-2"}],
)
def test_no_other_word_approves(annotations):
    assert not is_approved(RISKY, cache(**annotations))


def test_what_is_done_never_runs_again():
    journal = ActionJournal().started(STEP, NOW).ended(STEP, NOW, ActionProgress.DONE)
    made = plan(acting(STEP, NEXT), cache(**{ACTIONS: journal.text()}), observed=Observation())
    assert [change.action.key for change in made.changes] == ["next-1"]


def test_what_was_begun_or_failed_is_tried_again():
    for journal in (
        ActionJournal().started(STEP, NOW),
        ActionJournal().started(STEP, NOW).ended(STEP, NOW, ActionProgress.FAILED, "no"),
    ):
        assert plan(acting(STEP), cache(**{ACTIONS: journal.text()}), observed=Observation()).changes


def test_a_system_that_does_not_answer_stops_actions_and_keeps_children():
    made = plan(acting(STEP), cache(), live(FIRST), observed=Observation(error="no answer"))
    assert not made.changes
    assert "can't be observed: no answer" in str(made.problems[0])


def test_the_journal_survives_its_own_text():
    journal = (
        ActionJournal().started(STEP, NOW).ended(STEP, NOW, ActionProgress.FAILED, "out of cocoa").started(STEP, NOW)
    )
    assert ActionJournal.of(cache(**{ACTIONS: journal.text()})) == journal
    assert journal.entry("step-1").attempts == 2


@pytest.mark.parametrize(
    "text", ["", "nonsense", "{}", "[1]", '[{"key":"a"}]', '[{"key":"a","verb":"b","progress":"x","at":""}]']
)
def test_a_journal_that_cannot_be_read_is_empty(text):
    assert ActionJournal.of(cache(**{ACTIONS: text})) == ActionJournal()


def test_approving_adds_keys_and_drops_those_that_are_done():
    journal = ActionJournal().started(STEP, NOW).ended(STEP, NOW, ActionProgress.DONE)
    assert (
        approving(cache(**{ACTIONS: journal.text(), APPROVED_ACTIONS: "step-1,other"}), ("risky-1",)) == "other,risky-1"
    )


PRECONDITIONS = {
    "nothing is asked": ({}, ""),
    "it holds": ({"bar.id": "bar-1", "made": 1}, ""),
    "another bar": ({"bar.id": "bar-2"}, 'bar.id is "bar-1", not "bar-2"'),
    "what isn't there is null": ({"bar.taste": None, "bin.x": None}, ""),
}


@pytest.mark.parametrize(("precondition", "why"), PRECONDITIONS.values(), ids=PRECONDITIONS)
def test_a_precondition_is_compared_with_the_facts(precondition, why):
    assert unmet(Action("a", "b", "c", precondition=precondition), {"bar": {"id": "bar-1"}, "made": 1}) == why


FAULTS = {
    "no driver": (a_module(lambda *_: Outcome(actions=(STEP,))), "has no `act`"),
    "the same key twice": (acting(STEP, STEP), "wants action step-1 twice"),
    "a key that isn't a label": (acting(Action("Step 1", "step", "")), "must be a DNS label"),
}


@pytest.mark.parametrize(("one", "message"), FAULTS.values(), ids=FAULTS)
def test_a_wrong_action_is_a_fault_of_the_module(one, message):
    assert message in str(plan(one, cache(), observed=Observation()).problems[0])


# --- finalizers ---


def finalizing(outcome):
    return a_module(lambda *_: Outcome((FIRST,)), finalize=lambda *_: outcome)


def test_a_module_that_finalizes_keeps_its_crs():
    made = plan(finalizing(Outcome()), cache())
    first = next(made.waves())
    assert [change.action.verb for change in first] == ["keep-until-cleaned-up"]


def test_a_cr_goes_once_its_module_says_so_and_its_children_are_gone():
    going = cache(deleted=True, finalizers=["reconcile.dev/cache"])
    assert ops(plan(finalizing(Outcome(finalized=True)), going, live(FIRST))) == {"a": Op.DELETE}
    (change,) = plan(finalizing(Outcome(finalized=True)), going).changes
    assert change.action.verb == "let-go"


def test_a_cr_whose_module_is_not_done_stays():
    going = cache(deleted=True, finalizers=["reconcile.dev/cache"])
    assert not plan(finalizing(Outcome(conditions=(Condition("Ready", "False", "Waits"),))), going).changes


def test_a_cr_without_our_finalizer_goes_by_itself():
    assert not plan(finalizing(Outcome()), cache(deleted=True)).changes


def test_there_is_a_way_out():
    going = cache(deleted=True, finalizers=["reconcile.dev/cache"], **{"reconcile.dev/abandon": "true"})
    (change,) = plan(finalizing(Outcome()), going, live(FIRST)).changes
    assert change.action.verb == "let-go"


# --- reading ---


def test_a_module_reads_objects_by_name_or_label():
    seen = []

    def look(_cr, owned, _facts, _ctx):
        seen.extend(one["metadata"]["name"] for one in owned.read("ConfigMap"))
        return Outcome()

    reads = [Reads("v1", "ConfigMap", of=lambda _: Select(labels={"for": "web"}, names=("by-name",)))]
    one = module(api="example.com/v1", kind="Cache", owns=[], reads=reads, name="cache")(look)
    others = [child(name, "ConfigMap") for name in ("by-name", "neither", "by-label")]
    others[2]["metadata"]["labels"] = {"for": "web"}
    cluster = [{**each, "metadata": {**each["metadata"], "namespace": "shop"}} for each in others]
    elsewhere = {**child("by-name", "ConfigMap"), "metadata": {"name": "by-name", "namespace": "other"}}
    plan(one, cache(), *cluster, elsewhere)
    assert seen == ["by-label", "by-name"]


def test_a_module_reads_the_objects_that_name_its_cr_beside_it():
    seen = []

    def look(_cr, owned, _facts, _ctx):
        seen.extend(one["metadata"]["name"] for one in owned.read("ConfigMap"))
        return Outcome()

    reads = [Reads("v1", "ConfigMap", of=lambda cr: Select.referring(cr["metadata"]["name"], "data", "cache"))]
    one = module(api="example.com/v1", kind="Cache", owns=[], reads=reads, name="cache")(look)
    name = cache()["metadata"]["name"]
    places = {"names-it": ("shop", name), "names-another": ("shop", "another"), "elsewhere": ("other", name)}
    others = [
        {**child(each, "ConfigMap"), "metadata": {"name": each, "namespace": place}, "data": {"cache": named}}
        for each, (place, named) in places.items()
    ]
    odd = {**child("odd", "ConfigMap"), "metadata": {"name": "odd", "namespace": "shop"}, "data": []}
    plan(one, cache(), *others, odd)
    assert seen == ["names-it"]


# --- what a CR says of itself ---


@pytest.mark.parametrize(
    "status", ["ok", [], {"conditions": {"a": 1}}, {"conditions": ["x", {"status": 3}]}, {"observedGeneration": "x"}]
)
@pytest.mark.parametrize("annotations", [{}, {"reconcile.dev/paused": "true"}], ids=["at work", "paused"])
def test_a_status_of_any_shape_is_mended_by_the_next(status, annotations):
    made = plan(wants(FIRST), {**cache(**annotations), "status": status})
    assert conditions(made)
    assert all(isinstance(each, dict) for each in made.outcomes.statuses[0].after["status"]["conditions"])


@pytest.mark.parametrize("status", ["ok", {"conditions": "x"}])
def test_an_invalid_spec_is_told_whatever_the_status_says(status):
    def refuse(*_):
        raise SpecError(".spec.size", "must be 0 or more")

    made = plan(a_module(refuse), {**cache(), "status": status})
    assert conditions(made)["Degraded"] == ("True", "InvalidSpec")


def test_what_a_module_warns_of_is_in_the_plan_and_keeps_nothing_from_happening():
    made = plan(wants(FIRST, warnings=(".spec.size: 7 is too much",)), cache())
    assert [str(each) for each in made.problems] == ["Cache.example.com shop/web: .spec.size: 7 is too much"]
    assert (made.errors, ops(made)) == ((), {"a": Op.CREATE})


# --- whole namespaces ---


def test_what_owns_each_other_in_a_ring_is_shown_once_when_it_goes():
    """Whoever may write objects of the namespace may make such a ring."""
    first, second, third = live(child("a")), live(child("b"), owner="uid-a"), live(child("c"), owner="uid-b")
    fourth = live(child("d"), owner="uid-c")
    fourth["metadata"]["uid"] = "uid-a"
    made = plan(wants(), cache(), first, second, third, fourth)
    assert sorted(each.ref.name for each in made.changes) == ["a", "b", "c", "d"]


POD = GroupVersionKind("", "v1", "Pod")


def a_pod(name, namespace="shop", **labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def test_a_module_that_reads_its_whole_namespace_sees_that_and_no_other():
    seen = module(api="example.com/v1", kind="Cache", owns=[], reads=[Reads("v1", "Pod", whole_namespace=True)])(
        lambda *_: Outcome()
    )
    cr = {"apiVersion": "example.com/v1", "kind": "Cache", "metadata": {"name": "web", "namespace": "shop"}}
    below = Objects([a_pod("b", app="web"), a_pod("x", "stall"), {**a_pod("s"), "kind": "Service"}])
    views = {
        "as it is": (below, ["b"]),
        "with what was found besides": (Overlay(below, Objects([a_pod("a"), a_pod("b")])), ["a", "b"]),
        "as it will be": (
            Ahead(below, Objects([a_pod("c")]), frozenset(map(ObjectRef.of, [a_pod("b"), a_pod("c")]))),
            ["c"],
        ),
        "as a set sees it": (OwnSet(below, "app", "other"), []),
    }
    for what, (view, names) in views.items():
        found = owned_view(view, seen, cr)
        assert [each["metadata"]["name"] for each in found.read("Pod")] == names, what
        assert not found.unread
    refused = {("shop", POD.group_kind): "forbidden", ("stall", POD.group_kind): "too"}
    assert owned_view(below, seen, cr, unread=refused).unread == {"Pod": "forbidden"}
    everywhere = {**cr, "metadata": {"name": "web"}}
    assert owned_view(below, seen, everywhere).read("Pod") == ()
