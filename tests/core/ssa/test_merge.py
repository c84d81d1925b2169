"""Three-way merge: laws, policies, reasons and takeover. That it is the server's merge is the oracle's to say."""

import copy
import re

import pytest
from hypothesis import assume, given
from msgspec import structs
from strategies import CRD, PUBLISHED, SCHEMA, entry, field_sets, living, objects

from kubectl_reconcile.core.objects import FIELD_MANAGER as US
from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.csa_upgrade import TakeOver, taken_from
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.ignore import IgnoreFrom
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import (
    ConflictPolicy,
    FieldConflict,
    IgnoreRule,
    MergeError,
    Reason,
    Verdict,
    three_way,
)
from kubectl_reconcile.core.ssa.ownership import handover_of
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd
from kubectl_reconcile.core.ssa.typed import ABSENT, fields_of
from kubectl_reconcile.core.ssa.values import same
from kubectl_reconcile.core.ssa.verdict import confirmed


def thing(**spec):
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec}


def fields(manifest):
    return fields_of(manifest, SCHEMA.root) - STRIPPED


def texts(found):
    return [*map(str, found)]


def judge(desired, live, **more):
    return three_way(desired=desired, live=live, schema=SCHEMA, **more)


def after_apply(desired, *others):
    """The object as it is after we applied *desired*, beside what *others* own."""
    created = judge(desired, None)
    ours = [entry(US, created.owned)] if created.owned else []
    return living(created.merged, *ours, *others)


# --- laws ----------------------------------------------------------------------------------------------


@given(objects())
def test_applying_twice_changes_nothing(desired):
    result = judge(desired, after_apply(desired, entry("x", FieldSet.of([("f:status",)]), operation="Update")))
    assert result.verdict is Verdict.SAME
    assert result.changes == ()


@given(objects(), objects())
def test_after_an_apply_we_own_what_we_state(first, second):
    assert judge(second, after_apply(first)).owned == fields(second)


@given(objects(), objects(), objects(), field_sets)
def test_inputs_are_never_mutated_and_answers_are_repeatable(base, desired, held, theirs):
    live = after_apply(held, entry("m1", theirs))
    before = copy.deepcopy((base, desired, live))
    one = judge(desired, live, base=base, policy=ConflictPolicy.YIELD)
    other = judge(desired, live, base=base, policy=ConflictPolicy.YIELD)
    assert (base, desired, live) == before
    assert one == other


@given(objects(), objects(), field_sets)
def test_same_means_that_nothing_differs(desired, held, theirs):
    live = after_apply(held, entry("m1", theirs))
    result = judge(desired, live)
    if result.verdict is Verdict.SAME:
        assert result.owned == fields(held)
        assert all(result.merged[part] == live[part] for part in ("metadata", "spec"))


@given(objects(), objects(), field_sets)
def test_yielding_leaves_no_conflict(desired, held, theirs):
    live = after_apply(held, entry("m1", theirs))
    result = judge(desired, live, policy=ConflictPolicy.YIELD)
    assert judge(result.intent, live).conflicts == ()


@given(objects(), objects(), objects())
def test_fields_of_others_survive(desired, held, theirs):
    live = after_apply(held)
    merged = judge(theirs, living(live, *live["metadata"]["managedFields"]), manager="m1").merged
    live = living(merged, *after_apply(held)["metadata"].get("managedFields", ()), entry("m1", fields(theirs)))
    result = judge(desired, live)
    taken = FieldSet.of(conflict.path for conflict in result.conflicts)
    for path in fields(theirs).leaves().recursive_difference(taken):
        if value_at(live, path, SCHEMA.root) not in (ABSENT, {}) and value_at(theirs, path, SCHEMA.root) != {}:
            assert value_at(result.merged, path, SCHEMA.root) is not ABSENT


# --- what changes ------------------------------------------------------------------------------------------


@given(objects(), objects())
def test_a_change_that_the_answer_of_a_dry_run_does_not_make_is_none(desired, held):
    live = after_apply(held)
    result = judge(desired, live)
    assert confirmed(result.changes, live, live, SCHEMA) == ()
    assert confirmed(result.changes, live, result.merged, SCHEMA) == result.changes


def test_of_two_changes_the_one_that_the_server_makes_is_left():
    live = after_apply(thing(text="x", size=1))
    foreseen = judge(thing(text="y", size=2), live)
    answer = {**live, "spec": {**live["spec"], "size": 2}}
    assert [str(change.path) for change in confirmed(foreseen.changes, live, answer, SCHEMA)] == [".spec.size"]


def test_a_field_that_leaves_git_is_removed():
    result = judge(thing(table={"a": "1"}), after_apply(thing(text="x", table={"a": "1", "b": "2"})))
    assert result.merged["spec"] == {"table": {"a": "1"}, "size": 3}
    assert [(str(change.path), change.op) for change in result.changes] == [
        (".spec.text", "remove"),
        (".spec.table.b", "remove"),
    ]


def test_a_map_goes_with_the_last_entry_that_is_ours():
    result = judge(thing(text="x"), after_apply(thing(text="x", table={"a": "1"}, names=["n"])))
    assert result.merged["spec"] == {"text": "x", "size": 3}


def test_where_the_server_will_forget_an_owner_something_changes_though_no_field_does():
    both = entry("m1", fields(thing(table={"a": "1"}))), entry("m1", fields(thing(plain=["a"])))
    live = after_apply(thing(text="x"), *both)
    result = judge(thing(text="x"), live)
    assert (result.verdict, result.changes) == (Verdict.DIFFERENT, ())
    assert judge(thing(text="x"), after_apply(thing(text="x"), both[1])).verdict is Verdict.SAME


def test_status_is_sent_where_it_is_no_subresource():
    crd = copy.deepcopy(CRD)
    del crd["spec"]["versions"][0]["subresources"]
    desired = {**thing(text="x"), "status": {"ready": True}}
    assert three_way(desired=desired, live=None, schema=schema_of_crd(crd, "v1")).intent == desired


def test_a_field_that_another_manager_owns_too_stays():
    live = after_apply(thing(text="x"), entry("m1", FieldSet.of([("f:spec", "f:text")])))
    result = judge(thing(), live)
    assert result.merged["spec"]["text"] == "x"
    assert result.verdict is Verdict.DIFFERENT  # it was ours, and is no more


def test_a_struct_stated_empty_goes_where_only_an_empty_list_is_left_in_it():
    live = living(thing(names=[], size=3), entry(US, FieldSet.of([("f:spec",)])))
    result = judge(thing(), live)
    assert (result.verdict, "spec" in result.merged) == (Verdict.DIFFERENT, False)


def test_a_removed_default_comes_back():
    result = judge(thing(text="x"), after_apply(thing(text="x", size=5)))
    assert result.merged["spec"]["size"] == 3


def test_an_apply_at_another_version_of_the_same_schema_changes_the_owner_once():
    versions = [{**CRD["spec"]["versions"][0], "name": name} for name in ("v1", "v2")]
    schema = schema_of_crd({**CRD, "spec": {**CRD["spec"], "versions": versions}}, "v1")
    created = three_way(desired=thing(text="x"), live=None, schema=schema)
    at_v2 = living(created.merged, entry(US, created.owned, api_version="example.com/v2"))
    result = three_way(desired=thing(text="x"), live=at_v2, schema=schema)
    assert (result.verdict, result.changes) == (Verdict.DIFFERENT, ())
    at_v1 = living(created.merged, entry(US, created.owned))
    assert three_way(desired=thing(text="x"), live=at_v1, schema=schema).verdict is Verdict.SAME


EMPTY_METADATA = {
    "labels": {"labels": {}},
    "annotations": {"annotations": {}},
    "finalizers": {"finalizers": []},
    "owner references": {"ownerReferences": []},
    "all of them": {"labels": {}, "annotations": {}, "finalizers": [], "ownerReferences": []},
}


@pytest.mark.parametrize("schema", [SCHEMA, PUBLISHED], ids=["from the CRD", "from OpenAPI"])
@pytest.mark.parametrize("empty", EMPTY_METADATA.values(), ids=EMPTY_METADATA)
def test_empty_metadata_of_a_custom_resource_is_stored_by_nobody_and_no_change(schema, empty):
    desired = {**thing(text="x"), "metadata": {"name": "one", **empty}}
    created = three_way(desired=desired, live=None, schema=schema)
    assert created.merged["metadata"] == {"name": "one"}
    live = living(created.merged, entry(US, created.owned))
    result = three_way(desired=desired, live=live, schema=schema)
    assert (result.verdict, result.changes) == (Verdict.SAME, ())


def test_items_are_found_by_their_keys_not_by_their_place():
    live = after_apply(thing(ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]))
    assert judge(thing(ports=[{"port": 1, "protocol": "TCP", "name": "a"}, {"port": 2, "name": "b"}]), live).merged[
        "spec"
    ]["ports"] == [
        {"port": 1, "name": "a", "protocol": "TCP"},
        {"port": 2, "name": "b", "protocol": "TCP"},
    ]


def test_a_reordered_list_map_is_a_change_of_order_only():
    live = after_apply(thing(ports=[{"port": 1}, {"port": 2}]))
    result = judge(thing(ports=[{"port": 2}, {"port": 1}]), live)
    assert [str(change.path) for change in result.changes] == [".spec.ports"]


def test_two_items_with_one_key_are_refused():
    with pytest.raises(MergeError) as refused:
        judge(thing(ports=[{"port": 1}, {"port": 1, "protocol": "TCP"}]), after_apply(thing()))
    assert str(refused.value) == '.spec.ports[port=1,protocol="TCP"]: two items with the same key'


REFUSED = {
    "a field that nobody declares": (thing(nonsense=1), ".spec.nonsense: no such field in the schema"),
    "a number for a text": (thing(text=1), ".spec.text: expected a string, not a number"),
    "true for a number": (thing(size=True), ".spec.size: expected a number, not true or false"),
    "an object for a list": (thing(ports={}), ".spec.ports: expected a list, not an object"),
    "an item without its key": (thing(ports=[None]), ".spec.ports[0]: an item must be an object with port, protocol"),
    "a null in a set": (thing(names=[None]), ".spec.names[0]: a set holds only scalars"),
}


@pytest.mark.parametrize(("desired", "message"), REFUSED.values(), ids=REFUSED)
def test_what_the_server_must_refuse(desired, message):
    with pytest.raises(MergeError) as refused:
        judge(desired, None)
    assert str(refused.value) == message


def test_duplicates_are_tolerated_live():
    live = after_apply(thing(text="x"))
    live = {**live, "spec": {**live["spec"], "names": ["a", "a"]}}
    assert judge(thing(text="y"), live).merged["spec"]["names"] == ["a", "a"]


def test_what_the_server_ignores_is_never_sent():
    desired = {**thing(text="x"), "status": {"ready": True}}
    desired["metadata"] = {**desired["metadata"], "uid": "u", "resourceVersion": "3", "creationTimestamp": None}
    assert judge(desired, None).intent == thing(text="x")


def test_a_create_tells_each_field_that_comes_its_default_too_and_contests_none():
    result = judge({**thing(text="x", names=["a"]), "metadata": {"name": "one", "labels": {"app": "web"}}}, None)
    assert [(str(change.path), change.op, change.before, change.after) for change in result.changes] == [
        (".metadata.labels.app", "add", None, "web"),
        (".spec.text", "add", None, "x"),
        ('.spec.names[="a"]', "add", None, "a"),
        (".spec.size", "add", None, 3),
    ]
    assert {change.reason for change in result.changes} == {Reason.GIT}
    assert (result.verdict, result.conflicts, result.takeover) == (Verdict.DIFFERENT, (), ())
    assert texts(result.owned) == [".metadata.labels.app", '.spec.names[="a"]', ".spec.text"]


def test_a_create_of_a_kind_without_a_schema_sends_all_of_it():
    result = three_way(desired=thing(nonsense=1), live=None, schema=UNKNOWN)
    assert (result.merged, result.verdict) == (thing(nonsense=1), Verdict.DIFFERENT)


def test_an_unchanged_object_is_handed_back_as_it_is():
    live = after_apply(thing(text="x"))
    result = judge(thing(text="x"), live)
    assert result.merged is live


# --- verdicts ---------------------------------------------------------------------------------------------


def test_an_unknown_schema_is_never_sure():
    result = three_way(desired=thing(text="x"), live=after_apply(thing(text="x")), schema=UNKNOWN)
    assert (result.verdict, result.doubt) == (Verdict.UNSURE, "the kind's schema is unknown")


def test_true_is_not_one():
    live = after_apply(thing(free={"a": 1}))
    assert judge(thing(free={"a": True}), live).verdict is Verdict.DIFFERENT
    assert judge(thing(free={"a": 1.0}), live).verdict is Verdict.SAME


def test_our_fields_at_another_version_need_the_server():
    live = living(thing(text="x", size=3), entry(US, fields(thing(text="x")), api_version="example.com/v0"))
    result = judge(thing(text="y"), live)
    assert result.verdict is Verdict.UNSURE
    assert result.doubt == "kubectl-reconcile wrote example.com/v0, which only the server can convert"


def test_our_fields_at_another_version_need_the_server_though_nothing_differs():
    live = living(thing(text="x", size=3), entry(US, fields(thing(text="x")), api_version="example.com/v0"))
    assert judge(thing(text="x"), live).doubt.startswith("kubectl-reconcile wrote example.com/v0")


def foreign(text):
    """What another manager wrote at a version that only the server converts, beside our *text*."""
    return after_apply(thing(text=text), entry("m1", fields(thing(table={"a": "1"})), api_version="example.com/v0"))


def test_fields_of_others_at_another_version_need_the_server_where_something_changes():
    result = judge(thing(text="y"), foreign("x"))
    assert (result.verdict, result.doubt) == (
        Verdict.UNSURE,
        "m1 wrote example.com/v0, which only the server can convert",
    )


def test_fields_of_others_at_another_version_are_no_matter_where_nothing_changes():
    result = judge(thing(text="x"), foreign("x"), ignores=[IgnoreRule.parse("/spec/free")])
    assert (result.verdict, result.doubt) == (Verdict.SAME, "")


def test_live_at_a_version_that_converts_by_name_is_ours():
    live = {**after_apply(thing(text="x")), "apiVersion": "example.com/v2"}
    schema = structs.replace(SCHEMA, same_versions=frozenset({"example.com/v1", "example.com/v2"}))
    result = three_way(desired=thing(text="y"), live=live, schema=schema)
    assert (result.verdict, [str(change.path) for change in result.changes]) == (Verdict.DIFFERENT, [".spec.text"])


def test_live_at_any_other_version_needs_the_server():
    live = {**after_apply(thing(text="x")), "apiVersion": "example.com/v0"}
    assert judge(thing(text="x"), live).doubt == "live was read at example.com/v0, which only the server can convert"


def test_live_that_does_not_fit_its_schema_needs_the_server():
    live = after_apply(thing(text="x"))
    live = {**live, "spec": {**live["spec"], "ports": [None]}}
    result = judge(thing(text="y"), live)
    assert result.verdict is Verdict.UNSURE
    assert "doesn't fit its schema" in result.doubt
    assert (result.merged, result.changes, result.conflicts) == (live, (), ())


def test_managed_fields_that_nobody_can_read_need_the_server():
    live = living(thing(text="x"), {**entry("m1", FieldSet()), "fieldsType": "FieldsV9"})
    assert "can't be read" in judge(thing(text="y"), live).doubt


def test_sharing_a_value_changes_owners_though_no_value():
    live = living(thing(text="x", size=3), entry("m1", fields(thing(text="x"))))
    result = judge(thing(text="x"), live)
    assert (result.verdict, result.changes, result.conflicts) == (Verdict.DIFFERENT, (), ())


# --- conflicts and policies -----------------------------------------------------------------------------


def scaled():
    """Another manager took .spec.size from us."""
    theirs = entry("hpa", FieldSet.of([("f:spec", "f:size")]), operation="Update", subresource="scale")
    return living(thing(text="x", size=7), entry(US, fields(thing(text="x"))), theirs)


SIZE = FieldPath.fields("spec", "size")


def test_a_conflict_names_its_owner():
    result = judge(thing(text="x", size=1), scaled())
    assert result.conflicts == (FieldConflict(SIZE, "hpa", 7, 1),)
    assert result.merged["spec"]["size"] == 1


def test_who_wrote_a_part_of_what_became_atomic_since_is_asked_for_the_whole():
    part = FieldSet.of([("f:spec", "f:atom", "f:a")])
    live = living(thing(atom={"a": "1", "b": "2"}, size=3), entry("m1", part))
    result = judge(thing(atom={"a": "1"}), live)
    assert result.conflicts == (
        FieldConflict(FieldPath.fields("spec", "atom"), "m1", {"a": "1", "b": "2"}, {"a": "1"}),
    )
    assert judge(thing(atom={"a": "1"}), live, policy=ConflictPolicy.YIELD).intent == {
        part: value for part, value in thing().items() if part != "spec"
    }


def test_yielding_leaves_the_field_and_manages_the_rest():
    result = judge(thing(text="y", size=1), scaled(), policy=ConflictPolicy.YIELD)
    assert result.intent == thing(text="y")
    assert result.merged["spec"] == {"text": "y", "size": 7}
    assert result.conflicts == (FieldConflict(SIZE, "hpa", 7, 1),)


def test_yielding_what_was_yielded_before_changes_nothing():
    assert judge(thing(text="x", size=1), scaled(), policy=ConflictPolicy.YIELD).verdict is Verdict.SAME


def test_yielding_never_sends_an_emptied_container():
    live = living(thing(size=7), entry("hpa", FieldSet.of([("f:spec", "f:size")])))
    assert "spec" not in judge(thing(size=1), live, policy=ConflictPolicy.YIELD).intent


def test_yielding_keeps_labels_and_the_namespace_of_what_is_sent():
    metadata = {"name": "one", "namespace": "shop", "labels": {"app": "web"}}
    result = judge({**thing(text="y", size=1), "metadata": metadata}, scaled(), policy=ConflictPolicy.YIELD)
    assert result.intent == {**thing(text="y"), "metadata": metadata}


def test_failing_sends_all_of_it_and_names_the_conflict_for_which_the_server_will_refuse_it():
    result = judge(thing(text="y", size=1), scaled(), policy=ConflictPolicy.FAIL)
    assert result.intent == thing(text="y", size=1)
    assert result.conflicts == (FieldConflict(SIZE, "hpa", 7, 1),)


RULES = {
    "a JSON pointer": "/spec/size",
    "a path": ".spec.size",
    "any name": "/spec/*",
    "all below": "/spec",
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_ignored_field_of_another_manager_is_left_out(rule):
    result = judge(thing(size=1), scaled(), ignores=[IgnoreRule.parse(rule)])
    assert result.merged["spec"]["size"] == 7
    assert result.conflicts == ()


DRIFT_ALONE = structs.replace(IgnoreRule.parse("/spec/size"), of=IgnoreFrom.DRIFT)
DRIFT = {
    "somebody's change stays": (thing(text="x", size=1), thing(text="x", size=1), Verdict.SAME, 1),
    "Git's own change is written": (thing(text="x", size=3), thing(text="x", size=1), Verdict.DIFFERENT, 0),
    "a field that Git asks for only now is written": (thing(text="x", size=3), thing(text="x"), Verdict.DIFFERENT, 0),
    "somebody's change stays where nobody knows what Git asked for": (thing(text="x", size=1), None, Verdict.SAME, 1),
}


@pytest.mark.parametrize(("desired", "base", "verdict", "left"), DRIFT.values(), ids=DRIFT)
def test_of_a_field_whose_drift_is_ignored(desired, base, verdict, left):
    result = judge(desired, scaled(), base=base, ignores=[DRIFT_ALONE])
    assert (result.verdict, len(result.left)) == (verdict, left)


def test_what_only_we_own_and_git_changes_is_written_though_drift_is_ignored():
    result = judge(thing(size=3), after_apply(thing(size=1)), ignores=[DRIFT_ALONE])
    assert result.verdict is Verdict.DIFFERENT


def test_an_ignored_field_that_only_we_own_keeps_its_live_value():
    live = after_apply(thing(size=5, text="x"))
    result = judge(thing(size=1, text="x"), live, ignores=[IgnoreRule.parse("/spec/size")])
    assert result.intent["spec"] == {"size": 5, "text": "x"}
    assert result.verdict is Verdict.SAME


def test_an_ignored_field_that_only_we_own_keeps_its_live_value_beside_other_managers():
    live = after_apply(thing(size=5, text="x"), entry("m1", fields(thing(table={"a": "1"}))))
    result = judge(thing(size=1, text="x"), live, ignores=[IgnoreRule.parse("/spec/size")])
    assert result.intent["spec"] == {"size": 5, "text": "x"}


def test_an_ignored_field_that_another_manager_owns_as_well_is_left_to_it():
    live = after_apply(thing(size=5, text="x"), entry("m1", fields(thing(size=5))), entry("m2", fields(thing())))
    result = judge(thing(size=1, text="x"), live, ignores=[IgnoreRule.parse("/spec/size")])
    assert (result.intent["spec"], result.merged["spec"]["size"]) == ({"text": "x"}, 5)
    assert texts(result.owned) == [".spec.text"]


def test_an_object_keeps_name_and_namespace_though_all_metadata_is_ignored_and_said_to_be_ours():
    metadata = {"name": "one", "namespace": "shop", "labels": {"app": "web"}}
    names = FieldSet.of([("f:metadata", f"f:{name}") for name in ("name", "namespace")])
    live = living({**thing(text="x", size=3), "metadata": metadata}, entry(US, names))
    desired = {**thing(text="y"), "metadata": {**metadata, "labels": {"app": "api"}}}
    result = judge(desired, live, ignores=[IgnoreRule.parse("/metadata")])
    assert (result.intent["metadata"]["name"], result.intent["metadata"]["namespace"]) == ("one", "shop")
    assert (result.intent["apiVersion"], result.intent["kind"]) == ("example.com/v1", "Thing")


def test_an_ignored_field_in_a_container_that_we_own_empty_stays():
    ours = entry(US, fields(thing(table={}, text="x")))
    live = living(thing(table={"a": "1"}, text="x", size=3), ours)
    result = judge(thing(table={"a": "2"}, text="x"), live, ignores=[IgnoreRule.parse("/spec/table/a")])
    assert result.merged["spec"]["table"] == {"a": "1"}


def test_an_ignored_field_may_have_changed_its_kind():
    live = after_apply(thing(free={"a": {"b": 1}}))
    result = judge(thing(free={"a": [1]}), live, ignores=[IgnoreRule.parse("/spec/free/a")])
    assert result.merged["spec"]["free"] == {"a": {"b": 1}}


def test_an_ignored_container_stays_empty_as_it_is_though_its_last_field_was_ours():
    ours = entry(US, FieldSet.of([("f:spec", "f:free", "f:a", "f:b"), ("f:spec", "f:text")]))
    live = living(thing(free={"a": {}}, text="x", size=3), ours)
    result = judge(thing(free={"a": {}}, text="x"), live, ignores=[IgnoreRule.parse("/spec/free/a")])
    assert result.merged["spec"]["free"] == {"a": {}}


def test_an_ignored_container_that_we_own_empty_keeps_what_another_manager_put_into_it():
    ours = entry(US, FieldSet.of([("f:spec", "f:free", "f:a"), ("f:spec", "f:text")]))
    edit = entry("edit", FieldSet.of([("f:spec", "f:free", "f:a", "f:b")]), operation="Update")
    live = living(thing(free={"a": {"b": 1}}, text="x", size=3), ours, edit)
    result = judge(thing(free={"a": {"b": 2, "c": 3}}, text="x"), live, ignores=[IgnoreRule.parse("/spec/free")])
    assert result.merged["spec"]["free"] == {"a": {"b": 1}}


def test_a_rule_may_mean_one_manager_only():
    rule = IgnoreRule.parse("/spec/size", manager="hpa")
    assert judge(thing(text="x", size=1), scaled(), ignores=[rule]).merged["spec"]["size"] == 7
    other = IgnoreRule.parse("/spec/size", manager="somebody")
    assert judge(thing(text="x", size=1), scaled(), ignores=[other]).merged["spec"]["size"] == 1


PATTERNS = {
    "a key": (".spec.ports[port=1]", True),
    "a key among several": ('.spec.ports[protocol="TCP",port=1]', True),
    "another key": (".spec.ports[port=2]", False),
    "any item": (".spec.ports[*].name", True),
    "without the first dot": ("spec.ports[*]", True),
    "a set's item": ('.spec.names[="a"]', False),
}


@pytest.mark.parametrize(("text", "matches"), PATTERNS.values(), ids=PATTERNS)
def test_patterns(text, matches):
    path = FieldPath(("f:spec", "f:ports", 'k:{"port":1,"protocol":"TCP"}', "f:name"))
    assert IgnoreRule.parse(text).matches(path) is matches


ITEMS = {
    "that item": ('.metadata.finalizers[="a/b"]', True),
    "that item without quotes": (".metadata.finalizers[=a/b]", True),
    "another item": ('.metadata.finalizers[="a"]', False),
    "any item": (".metadata.finalizers[*]", True),
    "an item that is known by a key": (".metadata.finalizers[name=a]", False),
    "a field": (".metadata.finalizers.a", False),
    "one level less": (".metadata", True),
}


@pytest.mark.parametrize(("text", "touches"), ITEMS.values(), ids=ITEMS)
def test_a_pattern_may_mean_an_item_of_a_set(text, touches):
    path = FieldPath(("f:metadata", "f:finalizers", 'v:"a/b"'))
    assert IgnoreRule.parse(text).touches(path) is touches
    assert IgnoreRule.at(path).touches(path)


def test_a_number_and_its_text_are_the_same_item():
    path = FieldPath(("f:spec", "f:ports", "v:80"))
    assert IgnoreRule.parse(".spec.ports[=80]").touches(path)
    assert IgnoreRule.parse('.spec.ports[="80"]').touches(path)


def test_a_pattern_that_cant_be_read_is_shown_from_where_it_cant():
    with pytest.raises(
        ValueError, match=re.escape("'.spec[' can't be read at '[': write .spec.containers[name=web].image")
    ):
        IgnoreRule.parse(".spec[")


@pytest.mark.parametrize("text", ["", ".", ".spec[", ".spec[name"])
def test_what_is_no_pattern_is_said(text):
    with pytest.raises(ValueError, match="write"):
        IgnoreRule.parse(text)


def test_slashes_in_names_are_escaped_in_pointers():
    path = FieldPath.fields("metadata", "annotations", "a/b")
    assert IgnoreRule.parse("/metadata/annotations/a~1b").matches(path)
    assert IgnoreRule.parse('.metadata.annotations["a/b"]').matches(path)


# --- reasons -----------------------------------------------------------------------------------------------


def drifted(value):
    """We applied x; somebody changed it to *value*."""
    theirs = entry("kubectl-edit", FieldSet.of([("f:spec", "f:text")]), operation="Update", time="2026-02-02T00:00:00Z")
    return living(thing(text=value, size=3), entry(US, FieldSet.of([("f:spec", "f:plain")])), theirs)


REASONS = {
    "Git changed it": (thing(text="y"), after_apply(thing(text="x")), thing(text="x"), Reason.GIT, ""),
    "somebody drifted it": (thing(text="x"), drifted("z"), thing(text="x"), Reason.DRIFT, "kubectl-edit"),
    "both": (thing(text="y"), drifted("z"), thing(text="x"), Reason.BOTH, "kubectl-edit"),
    "Git, base unknown": (thing(text="y"), after_apply(thing(text="x")), None, Reason.GIT, ""),
    "drift, base unknown": (thing(text="x"), drifted("z"), None, Reason.DRIFT, "kubectl-edit"),
    "never ours": (thing(text="x"), living(thing(text="z")), None, Reason.ADOPT, ""),
    "Git changed it, of equal values that aren't one": (
        thing(text="".join("yz")),
        after_apply(thing(text="".join("xz"))),
        thing(text="".join("xz")),
        Reason.GIT,
        "",
    ),
    "somebody drifted it, of equal values that aren't one": (
        thing(text="".join("xz")),
        drifted("zz"),
        thing(text="".join("xz")),
        Reason.DRIFT,
        "kubectl-edit",
    ),
    "gone from Git": (thing(), after_apply(thing(text="x")), thing(text="x"), Reason.GIT, ""),
}


@pytest.mark.parametrize(("desired", "live", "base", "reason", "manager"), REASONS.values(), ids=REASONS)
def test_reasons(desired, live, base, reason, manager):
    change = next(change for change in judge(desired, live, base=base).changes if str(change.path) == ".spec.text")
    assert (change.reason, change.manager) == (reason, manager)


def test_drift_says_who_and_when_and_how():
    change = judge(thing(text="x"), drifted("z"), base=thing(text="x")).changes[0]
    assert (change.manager, change.operation, change.time) == ("kubectl-edit", "Update", "2026-02-02T00:00:00Z")


# --- takeover ---------------------------------------------------------------------------------------------


def test_a_client_side_object_is_taken_over_and_what_git_lacks_goes():
    theirs = entry("kubectl-client-side-apply", fields(thing(text="x", table={"a": "1"})), operation="Update")
    live = living(thing(text="x", table={"a": "1"}, size=3), theirs)
    result = judge(thing(table={"a": "1"}), live)
    assert "text" not in result.merged["spec"]
    value = result.takeover[0]["value"]
    assert taken_from(live, result.takeover) == ("kubectl-client-side-apply",)
    assert [(one["manager"], one["operation"]) for one in value] == [(US, "Apply")]
    assert result.takeover[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_whoever_owns_the_last_applied_annotation_is_taken_over_whatever_its_name():
    annotation = FieldSet.of(
        [FieldPath.fields("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")]
    )
    live = after_apply(thing(text="x"), entry("my-tool", annotation, operation="Update"))
    assert judge(thing(text="x"), live).takeover


def test_once_ours_an_edit_is_drift_and_not_taken_over():
    live = after_apply(thing(text="x"), entry("kubectl-edit", FieldSet.of([("f:spec", "f:plain")]), operation="Update"))
    assert judge(thing(text="x"), live).takeover == ()


TOOLS = ("kustomize-controller", "helm", "argocd-controller", "kubectl", "kapp", "configsync")


@pytest.mark.parametrize("tool", TOOLS)
def test_what_a_known_tool_applied_is_taken_over_at_adoption_and_what_git_lacks_goes(tool):
    live = living(thing(text="x", table={"a": "1"}, size=3), entry(tool, fields(thing(text="x", table={"a": "1"}))))
    result = judge(thing(table={"a": "1"}), live)
    assert "text" not in result.merged["spec"]
    assert result.owned == fields(thing(table={"a": "1"}))
    assert taken_from(live, result.takeover) == (tool,)
    assert [(one["manager"], one["operation"]) for one in result.takeover[0]["value"]] == [(US, "Apply")]


def test_adoption_is_the_moment_an_object_isnt_a_member_yet_though_we_applied_it_before():
    live = after_apply(thing(text="x"), entry("helm", fields(thing(text="x", plain=["a"]))))
    assert judge(thing(text="x"), live, adopting=True).takeover
    assert judge(thing(text="x"), live, adopting=False).verdict is Verdict.SAME


KEPT_OUT = {
    "an applier that nobody knows": (entry("operator", FieldSet.of([("f:spec", "f:text")])), ()),
    "a controller": (entry("kube-controller-manager", FieldSet.of([("f:spec", "f:text")])), ()),
    "an autoscaler, by the scale subresource": (
        {**entry("helm", FieldSet.of([("f:spec", "f:size")]), operation="Update"), "subresource": "scale"},
        (),
    ),
    "one that the Sync keeps out": (entry("helm", FieldSet.of([("f:spec", "f:text")])), ("!helm",)),
    "a client-side tool that the Sync keeps out": (
        entry("kubectl-create", FieldSet.of([("f:spec", "f:text")]), operation="Update"),
        ("!kubectl-create",),
    ),
    "whoever it is": (entry("kapp", FieldSet.of([("f:spec", "f:text")])), ("!*",)),
}


@pytest.mark.parametrize(("theirs", "names"), KEPT_OUT.values(), ids=KEPT_OUT)
def test_who_is_never_taken_over(theirs, names):
    result = judge(thing(), living(thing(text="x", size=3), theirs), take_over=TakeOver.parse(names))
    assert (result.takeover, result.merged["spec"]) == ((), {"text": "x", "size": 3})


def test_an_applier_that_a_sync_names_is_taken_over():
    live = living(thing(text="x"), entry("pulumi", FieldSet.of([("f:spec", "f:text")])))
    assert "text" not in judge(thing(plain=["a"]), live, take_over=TakeOver.parse(["pulumi"])).merged["spec"]


def test_all_that_one_tool_wrote_becomes_ours_at_once():
    applied, updated = FieldSet.of([("f:spec", "f:text")]), FieldSet.of([("f:spec", "f:plain")])
    live = living(
        thing(text="x", plain=["a"], size=3), entry("helm", applied), entry("helm", updated, operation="Update")
    )
    result = judge(thing(table={"a": "1"}), live)
    assert result.merged["spec"] == {"table": {"a": "1"}, "size": 3}
    assert result.takeover[0]["value"][0]["fieldsV1"] == (applied | updated).to_wire()


@pytest.mark.parametrize("name", ["", "!", "*", "kube-controller-manager", "horizontal-pod-autoscaler"])
def test_nobody_can_be_named_who_has_no_name_or_is_a_controller(name):
    with pytest.raises(ValueError, match=r"names no field manager|is a controller"):
        TakeOver.parse([name])


def test_what_changes_hands_is_told_where_no_value_changes():
    desired = thing(text="x", plain=["a"])
    live = living(
        thing(text="x", plain=["a"], names=["n"], size=3),
        entry(US, fields(thing(text="x", names=["n"]))),
        entry("m1", fields(thing(plain=["a"], names=["n"]))),
    )
    result = judge(desired, live)
    assert (result.verdict, result.changes) == (Verdict.DIFFERENT, ())
    handed = handover_of(live, result.intent, SCHEMA, US, result.takeover)
    assert (str(handed.gained), str(handed.given_up)) == (".spec.plain", '.spec.names[="n"]')


def test_whoever_applies_for_the_first_time_gains_all_that_is_stated_and_gives_up_nothing():
    live = living(thing(text="x"), entry("m1", fields(thing(text="x"))))
    result = judge(thing(text="x"), live)
    handed = handover_of(live, result.intent, SCHEMA, US, result.takeover)
    assert (str(handed.gained), str(handed.given_up), handed.taken_from) == (".spec.text", "", ())


def test_an_untracked_object_belongs_to_before_first_apply():
    result = judge(thing(text="x"), living(thing(text="z", size=3)))
    assert [conflict.manager for conflict in result.conflicts] == ["before-first-apply"]


def test_an_untracked_custom_resource_has_its_zeros_too_from_before_the_first_apply():
    result = judge(thing(size=1), living(thing(size=0)))
    assert result.conflicts == (FieldConflict(SIZE, "before-first-apply", 0, 1),)


def test_the_merge_of_a_merge_is_itself():
    live = after_apply(thing(text="x", names=["a", "b"]))
    result = judge(thing(text="y", names=["b", "c"]), live)
    assert same(
        judge(thing(text="y", names=["b", "c"]), living(result.merged, entry(US, result.owned))).merged["spec"],
        result.merged["spec"],
    )


# --- owners that were lost -----------------------------------------------------------------------------


def wiped(live):
    return {**live, "metadata": {name: value for name, value in live["metadata"].items() if name != "managedFields"}}


@given(objects(), objects())
def test_a_member_whose_owners_were_lost_becomes_what_it_would_have_become_where_it_is_known_what_was_applied(
    base, desired
):
    live = after_apply(base)
    recalled = judge(desired, wiped(live), base=base, adopting=False)
    assert same(recalled.merged, wiped(judge(desired, live, base=base).merged)) or recalled.verdict is Verdict.UNSURE
    assert all(step["op"] == "add" for step in recalled.takeover[:1])


@given(objects(), objects())
def test_a_member_of_which_only_our_own_record_was_lost_becomes_what_it_would_have_become(base, desired):
    other = entry("m1", FieldSet.of([("f:metadata", "f:labels", "f:theirs")]))
    whole = after_apply(base, other)
    assume(len(whole["metadata"]["managedFields"]) == 2)
    lost = {**whole, "metadata": {**whole["metadata"], "managedFields": [other]}}
    recalled = judge(desired, lost, base=base, adopting=False)
    assert same(wiped(recalled.merged), wiped(judge(desired, whole, base=base).merged)) or (
        recalled.verdict is Verdict.UNSURE
    )
    assert judge(desired, lost, adopting=False).takeover == ()  # nobody knows what to recall


def test_what_leaves_git_goes_once_it_is_recorded_again_who_applied_it():
    live = wiped(after_apply(thing(text="a", names=["x"])))
    (record, seen) = judge(thing(text="a"), live, adopting=False).takeover
    (ours,) = record["value"]
    assert (ours["manager"], ours["operation"], ours["apiVersion"]) == (US, "Apply", "example.com/v1")
    assert [*map(str, FieldSet.of_wire(ours["fieldsV1"]))] == [".spec.text"]
    assert seen["value"] == "7"
    known = judge(thing(text="a"), live, adopting=False, base=thing(text="a", names=["x"]))
    assert [(str(each.path), each.op) for each in known.changes] == [(".spec.names", "remove")]


def test_what_is_no_member_yet_is_taken_as_it_is():
    live = wiped(after_apply(thing(text="a", names=["x"])))
    assert judge(thing(text="a"), live, adopting=True).takeover == ()
    assert judge(thing(text="a"), live).takeover == ()
