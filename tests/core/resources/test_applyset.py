"""Which objects belong to a Sync: the marks of members, and what the parent says of them."""

import pytest

from kubectl_reconcile.core.annotations import MEMBER_NAMESPACES, SOURCE
from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.resources.applyset import (
    ID,
    MOST_PLACES,
    PART_OF,
    Contents,
    applyset_id,
    is_marked_by_us,
    may_be_in,
    may_be_member,
    member,
    places_beyond,
)

SHOP = ObjectRef("reconcile.dev", "Sync", "shop", "web")
MAPS, DEPLOYMENTS = GroupKind("", "ConfigMap"), GroupKind("apps", "Deployment")
WHOLE = Contents(frozenset({MAPS, DEPLOYMENTS}), frozenset({"shop", "bar", "foo"}))
KINDS, PLACES = "applyset.kubernetes.io/contains-group-kinds", "applyset.kubernetes.io/additional-namespaces"


def test_the_id_of_a_set_is_that_of_the_kep():
    # printf 'web.shop.Sync.reconcile.dev' | openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d '='
    assert applyset_id(SHOP) == "applyset-uwPRn_JCV0qh9ZwbTUZiRlXX5xF44QmcmPl1Aiyxa08-v1"
    assert len({applyset_id(SHOP._replace(**{part: "x"})) for part in SHOP._fields} | {applyset_id(SHOP)}) == 5


def test_a_parent_says_which_kinds_and_further_namespaces_members_may_have():
    assert WHOLE.metadata(SHOP, "kubectl-reconcile/1") == {
        "labels": {ID: applyset_id(SHOP)},
        "annotations": {
            "applyset.kubernetes.io/tooling": "kubectl-reconcile/1",
            KINDS: "ConfigMap,Deployment.apps",
            PLACES: "bar,foo",
            MEMBER_NAMESPACES: "",
        },
    }


def parent(namespace="shop", **annotations):
    return {"metadata": {"name": "web", **({"namespace": namespace} if namespace else {}), "annotations": annotations}}


def test_what_a_parent_says_is_read_as_it_was_written():
    noted = WHOLE.metadata(SHOP, "kubectl-reconcile/1")["annotations"]
    assert Contents.recorded(parent(**noted)) == WHOLE


RECORDED = {
    "nothing": ({"metadata": {"name": "web"}}, Contents()),
    "its own namespace alone": (parent(), Contents(frozenset(), frozenset({"shop"}))),
    "entries with spaces and without text": (
        parent("", **{KINDS: " ConfigMap , ,Deployment.apps", PLACES: ",bar ,"}),
        Contents(frozenset({MAPS, DEPLOYMENTS}), frozenset({"bar"})),
    ),
    "what one that was written before says": (
        parent(**{KINDS: "ConfigMap", PLACES: "bar"}),
        Contents(frozenset({MAPS}), frozenset({"shop", "bar"}), is_detailed=False),
    ),
    "places of kinds, and some that can't be meant": (
        parent(
            **{
                KINDS: "ConfigMap,Deployment.apps",
                PLACES: "bar",
                MEMBER_NAMESPACES: "ConfigMap=bar,elsewhere; =bar;Deployment.apps=;x",
            }
        ),
        Contents(frozenset({MAPS, DEPLOYMENTS}), frozenset({"shop", "bar"}), {MAPS: frozenset({"bar"})}),
    ),
}


@pytest.mark.parametrize(("live", "contents"), RECORDED.values(), ids=RECORDED)
def test_a_parent_may_say_little(live, contents):
    assert Contents.recorded(live) == contents


def test_contents_are_those_of_members_and_grow():
    refs = [
        ObjectRef("", "ConfigMap", "shop", "a"),
        ObjectRef("", "Namespace", "", "bar"),
        ObjectRef("", "ConfigMap", "bar", "b"),
    ]
    one = Contents.of(refs)
    spaces = GroupKind("", "Namespace")
    assert one == Contents(frozenset({MAPS, spaces}), frozenset({"shop", "bar"}), {spaces: frozenset()})
    other = Contents(frozenset({DEPLOYMENTS}), frozenset({"foo"}))
    both = one | other
    assert (both.kinds, both.namespaces) == (one.kinds | other.kinds, {"shop", "bar", "foo"})
    assert (both.places_of(MAPS), both.places_of(DEPLOYMENTS)) == ({"shop", "bar"}, {"foo"})
    assert one <= (one | other)
    assert not (one | other) <= one
    assert not Contents(frozenset(), frozenset({"foo"})) <= one
    assert not Contents(frozenset({DEPLOYMENTS})) <= one


def test_a_kind_is_only_where_it_has_been_and_the_parent_says_so():
    secrets = GroupKind("", "Secret")
    refs = [
        ObjectRef("", "Secret", "bar", "a"),
        ObjectRef("", "ConfigMap", "shop", "b"),
        ObjectRef("", "ConfigMap", "bar", "c"),
    ]
    noted = Contents.of(refs).metadata(SHOP, "kubectl-reconcile/1")["annotations"]
    assert noted[MEMBER_NAMESPACES] == "Secret=bar"
    found = Contents.recorded(parent(**noted))
    assert found.is_detailed
    assert (found.places_of(secrets), found.places_of(MAPS)) == ({"bar"}, {"shop", "bar"})
    assert found | Contents.of(refs) == found
    assert not Contents.of([ObjectRef("", "Secret", "shop", "a")]) <= found


def test_a_parent_whose_members_are_all_beside_it_says_nothing_of_places():
    noted = Contents.of([ObjectRef("", "ConfigMap", "shop", "a")]).metadata(SHOP, "kubectl-reconcile/1")["annotations"]
    assert MEMBER_NAMESPACES not in noted
    assert Contents.recorded(parent(**noted)).is_detailed


def test_so_many_places_that_they_would_fill_the_parent_are_not_told_by_kind():
    refs = [ObjectRef("", "ConfigMap", f"{'team' * 12}-{number}", "a") for number in range(2000)]
    assert (
        Contents.of([*refs, ObjectRef("", "Secret", "shop", "a")]).metadata(SHOP, "x")["annotations"][MEMBER_NAMESPACES]
        == ""
    )


def test_members_are_where_the_set_has_been_or_of_no_namespace():
    assert [may_be_in(place, {"shop"}) for place in ("shop", "bar", "")] == [True, False, True]
    assert may_be_in("bar", None)
    assert may_be_member(ObjectRef("", "ConfigMap", "shop", "a"), {"shop"})
    assert not may_be_member(ObjectRef("", "ConfigMap", "bar", "a"), {"shop"})


def test_a_member_is_marked_beside_what_it_says_itself():
    bare = {"kind": "ConfigMap", "metadata": {"name": "a"}}
    marked = {"labels": {PART_OF: "one"}, "annotations": {SOURCE: "a.yaml"}}
    assert member(bare, set_id="one", source="a.yaml") == {"kind": "ConfigMap", "metadata": {"name": "a", **marked}}
    assert bare == {"kind": "ConfigMap", "metadata": {"name": "a"}}
    busy = {"metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}}}
    found = member(busy, set_id="one", source="a.yaml")["metadata"]
    assert found == {"labels": {"app": "web", PART_OF: "one"}, "annotations": {"note": "x", SOURCE: "a.yaml"}}
    assert member({}, set_id="one", source="a.yaml") == {"metadata": marked}


def entry(manager="kubectl-reconcile", operation="Apply", label=PART_OF, annotation=SOURCE):
    fields = {"f:metadata": {"f:labels": {f"f:{label}": {}}, "f:annotations": {f"f:{annotation}": {}}}}
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


MARKS = {
    "who applied label and annotation": ([entry()], "", True),
    "not who updated them": ([entry(operation="Update")], "", False),
    "not who only has the label": ([entry(annotation="other")], "", False),
    "not who has another label": ([entry(label="other")], "", False),
    "whoever of several did": ([entry(label="other"), entry(operation="Update"), entry()], "", True),
    "the manager of the Sync": ([entry("team")], "team", True),
    "the manager of the Sync, whatever else it says": (
        [entry("team", operation="Update", annotation="other")],
        "team",
        True,
    ),
    "not another manager": ([entry("other")], "team", False),
    "nobody": ([], "", False),
    "not what makes no sense": ([{"fieldsV1": "odd"}, "odd", {}], "", False),
}


@pytest.mark.parametrize(("entries", "manager", "is_ours"), MARKS.values(), ids=MARKS)
def test_the_mark_counts_if_we_put_it_on(entries, manager, is_ours):
    assert is_marked_by_us({"metadata": {"managedFields": entries}}, manager) is is_ours


def test_what_the_status_says_of_members_counts_where_annotations_say_nothing():
    told = {"status": {"contents": {"groupKinds": ["Deployment.apps"], "namespaces": ["shop-a"]}}}
    found = Contents.recorded({"metadata": {"namespace": "shop", "name": "shop"}, **told})
    assert found == Contents(frozenset({GroupKind("apps", "Deployment")}), frozenset({"shop", "shop-a"}))


def test_of_annotations_no_more_is_read_than_may_be_looked_at():
    names = ",".join(f"no-such-{number}" for number in range(3000))
    live = {"metadata": {"namespace": "shop", "annotations": {"applyset.kubernetes.io/additional-namespaces": names}}}
    assert len(Contents.recorded(live).namespaces) == MOST_PLACES + 1
    assert places_beyond(live) == 3000 - MOST_PLACES
    assert Contents.told(live).namespaces == {"shop"}


def test_a_status_says_what_it_was_told_and_no_more_than_there_is_room_for():
    contents = Contents(frozenset({GroupKind("", "ConfigMap")}), frozenset({"shop", *(f"s{n:04}" for n in range(300))}))
    status = contents.noted({"conditions": []}, "shop")
    assert status["conditions"] == []
    assert status["contents"]["groupKinds"] == ["ConfigMap"]
    assert (len(status["contents"]["namespaces"]), "shop" in status["contents"]["namespaces"]) == (MOST_PLACES, False)
    few = Contents(namespaces=frozenset({"shop"}))
    assert Contents.told({"metadata": {"namespace": "shop"}, "status": few.noted({}, "shop")}) == few


def test_who_looks_for_members_knows_which_namespaces_annotations_alone_tell():
    noted = {"applyset.kubernetes.io/additional-namespaces": "bar,baz"}
    live = parent(**noted) | {"status": {"contents": {"groupKinds": ["ConfigMap"], "namespaces": ["bar"]}}}
    found = Contents.looked_for(live)
    assert (found.namespaces, found.hints) == ({"shop", "bar", "baz"}, {"baz"})
    asked = found | Contents.of([ObjectRef("", "ConfigMap", "baz", "web")])
    assert asked.hints == frozenset(), "what the source asks for is no hint"
    assert Contents.recorded(live).hints == frozenset()
