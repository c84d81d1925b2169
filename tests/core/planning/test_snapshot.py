"""Views of live objects: just some of them, two laid over each other, and what one set may see."""

import pytest

from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.snapshot import Objects, Overlay, OwnSet, is_marked, members_in
from kubectl_reconcile.core.resources.applyset import PART_OF

MAP = GroupKind("", "ConfigMap")


def config(name, namespace="shop", *, owner="", data=None, **labels):
    metadata = {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": "7", "labels": labels}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True, "kind": "ConfigMap", "name": "x"}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


def ref(name, namespace="shop"):
    return ObjectRef("", "ConfigMap", namespace, name)


def names(found):
    return [each.ref.name for each in found]


A, B, C = config("a", app="web"), config("b", owner="u-a", app="web"), config("c", "bar", owner="u-a")
VIEW = Objects([B, C, A])


def test_a_view_finds_objects_by_name_owner_label_and_kind():
    found = VIEW.stored(ref("a"))
    assert (found.manifest(), found.uid, found.resource_version, found.version) == (A, "u-a", "7", "")
    assert found.labels == {"app": "web"}
    assert VIEW.stored(ref("a", "bar")) is None
    assert names(VIEW.owned_by("u-a")) == ["c", "b"]
    assert names(VIEW.labelled("app", "web")) == ["a", "b"]
    assert names(VIEW.of_kind(MAP, "shop")) == ["a", "b"]
    assert VIEW.owned_by("") == VIEW.labelled("app", "api") == VIEW.of_kind(GroupKind("", "Secret"), "shop") == ()
    assert (len(VIEW), set(VIEW.refs())) == (3, {ref("a"), ref("b"), ref("c", "bar")})


def test_an_object_that_isnt_made_yet_has_neither_uid_nor_version():
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}
    found = Objects([bare]).stored(ref("a"))
    assert (found.uid, found.resource_version, found.labels) == ("", "", {})


def test_a_reference_that_controls_nothing_makes_no_child():
    stray = config("b")
    stray["metadata"]["ownerReferences"] = [{"uid": "u-a", "kind": "ConfigMap", "name": "a"}]
    assert Objects([stray]).owned_by("u-a") == ()


def test_what_changed_between_two_views_is_what_isnt_the_same_in_both():
    later = Objects([A, config("b", data={"x": "1"}), config("d")])
    assert later.changed_since(VIEW.moment([MAP])) == {ref("b"), ref("c", "bar"), ref("d")}
    assert VIEW.changed_since(VIEW.moment([])) == set()
    assert VIEW.changed_since("another kind of moment") is None


def test_where_both_views_know_an_object_the_one_below_counts():
    newer = config("a", data={"x": "1"}, app="web")
    both = Overlay(Objects([newer]), VIEW)
    assert both.stored(ref("a")).manifest() == newer
    assert both.stored(ref("b")).manifest() == B
    assert both.stored(ref("z")) is None
    assert [each.manifest() for each in both.labelled("app", "web")] == [newer, B]
    assert names(both.of_kind(MAP, "shop")) == ["a", "b"]
    assert names(both.owned_by("u-a")) == ["c", "b"]


def test_what_the_view_below_lost_an_owner_or_a_label_of_isnt_found_above():
    below = Objects([config("b")])
    both = Overlay(below, VIEW)
    assert names(both.owned_by("u-a")) == ["c"]
    assert names(both.labelled("app", "web")) == ["a"]


def test_what_was_found_besides_may_always_have_changed():
    below = Objects([A])
    both = Overlay(below, Objects([B]))
    assert both.moment([MAP]) is None
    assert both.changed_since(below) == {ref("b")}
    assert both.changed_since(Objects()) == {ref("a"), ref("b")}
    assert both.changed_since("unknown") is None


MEMBER = config("m", **{PART_OF: "one", "app": "web"})
OTHER = config("o", **{PART_OF: "two", "app": "web"})
ALL = Objects([MEMBER, OTHER, config("child", owner="u-m")])
OWN = OwnSet(ALL, PART_OF, "one")


def test_a_set_sees_its_members_and_what_these_own():
    assert OWN.stored(ref("m")).manifest() == MEMBER
    assert OWN.stored(ref("o")) is OWN.stored(ref("child")) is OWN.stored(ref("z")) is None
    assert names(OWN.labelled(PART_OF, "one")) == ["m"]
    assert OWN.labelled(PART_OF, "two") == ()
    assert names(OWN.labelled("app", "web")) == ["m"]
    assert names(OWN.of_kind(MAP, "shop")) == ["m"]
    assert names(OWN.owned_by("u-m")) == ["child"]


def test_a_sets_view_is_compared_with_a_later_one_as_that_of_all():
    assert OWN.moment([MAP]) is ALL
    assert OwnSet(Objects(), PART_OF, "one").changed_since(OWN.moment([])) == {ref("m"), ref("o"), ref("child")}


PLACES = {
    "anywhere, where nothing is known": (None, ["x", "y"]),
    "where it has been": ({"shop"}, ["x"]),
    "nowhere else": (set(), []),
}


@pytest.mark.parametrize(("places", "expected"), PLACES.values(), ids=PLACES)
def test_members_are_found_where_a_set_may_have_some(places, expected):
    found = Objects([config("x", **{PART_OF: "one"}), config("y", "bar", **{PART_OF: "one"}), OTHER])
    assert sorted(names(members_in(found, "one", places))) == expected


def test_cluster_scoped_members_are_members_wherever_a_set_has_been():
    node = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {PART_OF: "one"}}}
    assert names(members_in(Objects([node, config("y", "bar", **{PART_OF: "one"})]), "one", {"shop"})) == ["n"]


def test_a_mark_is_that_of_one_set():
    assert is_marked(ALL, "one", ref("m"))
    assert not is_marked(ALL, "one", ref("o"))
    assert not is_marked(ALL, "one", ref("z"))
