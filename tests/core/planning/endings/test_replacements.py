"""What ends with a replacement: named, counted, and held as with a deletion."""

import pytest

from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing
from kubectl_reconcile.core.planning.endings.replacements import with_replacements
from kubectl_reconcile.core.planning.hold import Marked
from kubectl_reconcile.core.planning.plan import Op, Plan
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from tests.core.planning.changes import a_change

SHOP = Sync(name="shop", namespace="shop")
WIDGET = GroupKind("example.com", "Widget")


def thing(kind, name, api_version="v1", namespace="shop", owner="", **more):
    references = (
        {"ownerReferences": [{"uid": owner, "kind": "x", "name": "x", "apiVersion": "apps/v1"}]} if owner else {}
    )
    metadata = {"name": name, "uid": f"uid-{name}", **({"namespace": namespace} if namespace else {}), **references}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


DB = thing("StatefulSet", "db", "apps/v1")
CLAIMS = [thing("PersistentVolumeClaim", f"data-db-{at}", owner="uid-db") for at in range(2)]
IN_SHOP = Listing(None, "shop")
CRD = thing("CustomResourceDefinition", "widgets.example.com", "apiextensions.k8s.io/v1", "") | {
    "spec": {"group": "example.com", "names": {"kind": "Widget"}}
}


def change(body, op=Op.REPLACE, **more):
    return a_change(ObjectRef.of(body), op, before=body, **more)


def plan_of(*changes, members=3, **more):
    return Plan(SHOP.ref, "c" * 40, changes, marked=Marked(members), **more)


def judged(*changes, listed=None, sync=SHOP, **more):
    return with_replacements(plan_of(*changes, **more), sync, listed or {})


def names(refs):
    return [ref.name for ref in refs]


def test_the_claims_of_a_stateful_set_are_named_and_held_with_its_replacement():
    made = judged(change(DB), listed={IN_SHOP: Listed((DB, *CLAIMS))})
    (hold,) = made.holds
    assert (hold.reason, names(hold.refs), names(hold.along)) == ("NeedsConsent", ["db"], ["data-db-0", "data-db-1"])
    assert hold.message == "replacing these deletes everything in them, too"
    assert [(each.ref.name, each.op, each.gate.held, each.gate.cascade) for each in made.changes] == [
        ("db", Op.REPLACE, True, False),
        ("data-db-0", Op.DELETE, True, True),
        ("data-db-1", Op.DELETE, True, True),
    ]
    assert not list(made.waves())


def test_an_approval_lets_just_this_replacement_through_and_not_the_next():
    held = judged(change(DB), listed={IN_SHOP: Listed((DB, *CLAIMS))})
    agreed = Sync(name="shop", namespace="shop", approved_plan=held.approval)
    made = judged(change(DB), listed={IN_SHOP: Listed((DB, *CLAIMS))}, sync=agreed)
    assert made.holds == ()
    assert [(each.ref.name, each.writes, each.gate.held) for each in made.changes] == [
        ("db", True, False), ("data-db-0", False, False), ("data-db-1", False, False),
    ]  # fmt: skip
    again = thing("StatefulSet", "db", "apps/v1") | {"metadata": {**DB["metadata"], "uid": "uid-of-the-next"}}
    others = [thing("PersistentVolumeClaim", "data-db-0", owner="uid-of-the-next")]
    assert judged(change(again), listed={IN_SHOP: Listed((again, *others))}, sync=agreed).holds != ()


def test_a_stateful_set_whose_claims_stay_is_replaced_without_a_question():
    kept = [thing("PersistentVolumeClaim", "data-db-0")]
    made = judged(change(DB), listed={IN_SHOP: Listed((DB, *kept))})
    assert (made.holds, len(made.changes)) == ((), 1)


@pytest.mark.parametrize(
    "body",
    [
        thing("PersistentVolumeClaim", "data"),
        CRD,
        thing("MyDatabase", "one", "example.com/v1"),
        thing("Kafka", "one", "kafka.strimzi.io/v1beta2"),
        thing("VolumeSnapshot", "one", "snapshot.storage.k8s.io/v1"),
    ],
    ids=["a claim", "a kind", "a database", "a database of another operator", "a snapshot"],
)
def test_what_holds_others_is_never_replaced_unasked(body):
    listed = {IN_SHOP: Listed((body,)), Listing(WIDGET): Listed()}
    (hold,) = judged(change(body), listed=listed).holds
    assert (hold.reason, names(hold.refs)) == ("NeedsConsent", [body["metadata"]["name"]])


def test_everybodys_objects_of_a_kind_are_named_and_those_that_git_asks_for_are_told_apart():
    ours, foreign = thing("Widget", "ours", "example.com/v1"), thing("Widget", "foreign", "example.com/v1", "other")
    listed = {Listing(WIDGET): Listed((ours, foreign)), IN_SHOP: Listed((ours,)), Listing(None, "other"): Listed()}
    quiet = a_change(ObjectRef.of(ours), Op.UNCHANGED)
    made = judged(change(CRD), quiet, listed=listed)
    (hold,) = made.holds
    assert (names(hold.along), names(hold.asked)) == (["foreign", "ours"], ["ours"])
    assert hold.message.endswith("1 of these Git still asks for: Widget.example.com shop/ours")
    assert [each.op for each in made.changes if each.ref == quiet.ref] == [
        Op.UNCHANGED
    ]  # while it is held, it stays as it is
    agreed = Sync(name="shop", namespace="shop", approved_plan=made.approval)
    approved = judged(change(CRD), quiet, listed=listed, sync=agreed)
    assert [(each.op, each.gate.cascade) for each in approved.changes if each.ref == quiet.ref] == [(Op.DELETE, True)]


def test_what_goes_along_counts_with_deletions_and_more_than_allowed_are_held():
    owned = [thing("ConfigMap", f"c{at}", owner="uid-w") for at in range(9)]
    widget, other = thing("Widget", "w", "example.com/v1"), thing("ConfigMap", "other")
    listed = {IN_SHOP: Listed((widget, *owned))}
    assert judged(change(widget), listed=listed).holds == ()
    (hold,) = judged(change(widget), change(other, Op.DELETE), listed=listed).holds
    assert (hold.reason, names(hold.refs), len(hold.along)) == ("TooManyReplacements", ["w"], 9)
    assert (
        hold.message
        == "1 of 3 members would be deleted and recreated, and with them 9 other objects, more than spec.maxDeletes allows"
    )


def test_deletions_that_somebody_has_agreed_to_leave_room_for_a_replacement():
    deletions = [change(thing("ConfigMap", f"c{at}"), Op.DELETE) for at in range(30)]
    widget = thing("Widget", "w", "example.com/v1")
    assert judged(change(widget), *deletions, listed={IN_SHOP: Listed()}).holds == ()
    held = [each.gated(held=True) for each in deletions]
    assert judged(change(widget), *held, listed={IN_SHOP: Listed()}).holds == ()


def test_lists_that_are_lacking_are_named_and_till_then_a_kind_is_uncounted():
    made = judged(change(CRD))
    assert made.lacking == {Listing(WIDGET)}
    assert made.holds[0].message.endswith("uncounted, because they can't be listed: Widget.example.com")


def test_a_hook_that_runs_again_is_no_replacement_to_ask_about():
    job = thing("Job", "migrate", "batch/v1")
    few = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(number=0))
    made = judged(change(job, hook="PreSync"), sync=few)
    assert (made.holds, made.lacking, len(made.changes)) == ((), frozenset(), 1)


def test_what_a_replaced_object_owns_together_with_a_deleted_one_goes_with_them():
    widget, other = thing("Widget", "w", "example.com/v1"), thing("ConfigMap", "other")
    both = thing("ConfigMap", "both", owner="uid-w")
    both["metadata"]["ownerReferences"].append({"uid": "uid-other", "kind": "x", "name": "x", "apiVersion": "v1"})
    listed = {IN_SHOP: Listed((widget, other, both))}
    made = judged(change(other, Op.DELETE), change(widget), listed=listed)
    assert [(each.ref.name, each.gate.cascade) for each in made.changes] == [
        ("other", False),
        ("w", False),
        ("both", True),
    ]
    kept = judged(change(other, Op.DELETE, held=True), change(widget), listed=listed)
    assert names([each.ref for each in kept.changes]) == ["other", "w"]


def rewired(before, after, wave=0):
    return a_change(ObjectRef.of(before), Op.UPDATE, before=before, after=after, wave=wave)


def test_nothing_comes_to_be_owned_by_what_is_replaced_in_the_same_sync():
    free, owner = thing("ConfigMap", "c"), thing("Widget", "w", "example.com/v1")
    changes = change(owner), rewired(free, thing("ConfigMap", "c", owner="uid-w"))
    held = judged(*changes, listed={IN_SHOP: Listed((free,))})
    assert [names(hold.asked) for hold in held.holds] == [["c"]]
    agreed = Sync(name="shop", namespace="shop", approved_plan=held.approval)
    made = judged(*changes, listed={IN_SHOP: Listed((free,))}, sync=agreed)
    assert {each.ref.name: bool(each.gate.blocked) for each in made.changes} == {"w": False, "c": True}


@pytest.mark.parametrize(("wave", "goes"), [(0, False), (1, True)], ids=["at once", "in a later wave"])
def test_what_a_replaced_object_no_longer_owns_is_changed_first_or_goes_with_it(wave, goes):
    owned, owner = thing("ConfigMap", "c", owner="uid-w"), thing("Widget", "w", "example.com/v1")
    made = judged(change(owner), rewired(owned, thing("ConfigMap", "c"), wave), listed={IN_SHOP: Listed((owned,))})
    assert [names(each.gate.needs) for each in made.changes if each.op is Op.REPLACE] == [[] if goes else ["c"]]
    assert [names(hold.asked) for hold in made.holds] == ([["c"]] if goes else [])


def test_nothing_is_recreated_whose_owners_all_go_in_the_same_sync():
    """It would be gone again a moment later, and nobody has been told that."""
    owner, other = thing("Widget", "w", "example.com/v1"), thing("ConfigMap", "other")
    owned = thing("ConfigMap", "c", owner="uid-w")
    for gone in (change(owner), change(owner, Op.DELETE)):
        made = judged(gone, change(owned, after=owned), change(other, after=other), listed={IN_SHOP: Listed()})
        found = {each.ref.name: bool(each.gate.blocked) for each in made.changes}
        assert found == {"w": False, "c": True, "other": False}
    kept = judged(change(owner, Op.DELETE, held=True), change(owned, after=owned), listed={IN_SHOP: Listed()})
    assert not any(each.gate.blocked for each in kept.changes)
