"""What the model says ends with others is what a garbage collector removes: of worlds that are drawn."""

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.objects import GroupKind, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing, cascade_of_all, listings_of
from kubectl_reconcile.core.planning.snapshot import Objects

PLACES = ("one", "two")
KINDS = (("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"), ("apps/v1", "StatefulSet"), ("example.com/v1", "Widget"))
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com", "uid": "crd"},
    "spec": {"group": "example.com", "names": {"kind": "Widget"}},
}


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": f"ns-{name}"}}


@st.composite
def worlds(draw):
    """Namespaces, a kind, and objects of which some own others of their namespace, also in rings; and what is deleted of all that."""
    places = [draw(st.sampled_from(PLACES)) for _ in range(draw(st.integers(1, 9)))]
    objects = []
    for at, place in enumerate(places):
        api_version, kind = draw(st.sampled_from(KINDS))
        near = [other for other in range(len(places)) if other != at and places[other] == place]
        owners = draw(st.sets(st.sampled_from(near), max_size=3)) if near else set()
        references = [{"uid": f"u{owner}", "kind": "any", "name": f"o{owner}"} for owner in sorted(owners)]
        metadata = {"name": f"o{at}", "namespace": place, "uid": f"u{at}"}
        objects.append(
            {
                "apiVersion": api_version,
                "kind": kind,
                "metadata": metadata | ({"ownerReferences": references} if references else {}),
            }
        )
    world = [*map(namespace, PLACES), WIDGETS, *objects]
    return world, draw(
        st.lists(st.sampled_from(world), min_size=1, max_size=3, unique_by=lambda each: each["metadata"]["uid"])
    )


def collected(world, doomed):
    """What is left of nothing: all that a garbage collector and the controller of namespaces remove, one after the other."""
    gone = {each["metadata"]["uid"] for each in doomed}
    while True:
        more = {each["metadata"]["uid"] for each in world if is_garbage(each, gone)} - gone
        if not more:
            return gone
        gone |= more


def is_garbage(each, gone):
    owners = {owner["uid"] for owner in each["metadata"].get("ownerReferences", ())}
    of_kind = each["kind"] == "Widget" and "crd" in gone
    return bool(owners and owners <= gone) or of_kind or f"ns-{each['metadata'].get('namespace')}" in gone


def found_in(world, listing):
    return Listed(
        tuple(
            each
            for each in world
            if listing.kind in {None, ObjectRef.of(each).group_kind}
            and (not listing.namespace or each["metadata"].get("namespace") == listing.namespace)
        )
    )


def listed_as_asked(world, doomed):
    """The cascade of what is doomed, once all has been listed that it asks for."""
    listed = {}
    while (cascade := cascade_of_all(doomed, listed, Objects())).lacking:
        listed |= {listing: found_in(world, listing) for listing in cascade.lacking}
    return cascade


@given(worlds())
def test_what_ends_is_what_a_garbage_collector_removes(drawn):
    world, doomed = drawn
    cascade = listed_as_asked(world, doomed)
    named = {each["metadata"]["uid"] for each, _ in cascade.taken.values()} | {
        each["metadata"]["uid"] for each in doomed
    }
    assert named == collected(world, doomed)


@given(worlds())
def test_each_that_goes_along_is_told_with_one_that_takes_it_and_with_where_that_began(drawn):
    world, doomed = drawn
    cascade, roots = listed_as_asked(world, doomed), {ObjectRef.of(each) for each in doomed}
    for ref, (_, carrier) in cascade.taken.items():
        assert carrier in roots | set(cascade.taken)
        assert cascade.roots[ref] in roots


def test_an_object_of_two_owners_goes_once_both_do_and_with_neither_alone():
    both = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "one", "uid": "b"}}
    both["metadata"]["ownerReferences"] = [{"uid": "x"}, {"uid": "y"}]
    x, y = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "namespace": "one", "uid": n}} for n in "xy"
    )
    assert [set(listed_as_asked([x, y, both], doomed).taken) for doomed in ([x], [y])] == [set(), set()]
    assert {ref.name for ref in listed_as_asked([x, y, both], [x, y]).taken} == {"b"}


def test_what_one_that_goes_anyway_owns_together_with_another_goes_along_with_that_one():
    """Nobody is asked about the first, so it is the second that has to be asked about."""
    sure, chosen, below, both = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": n, "namespace": "one", "uid": n}} for n in "scdb"
    )
    below["metadata"]["ownerReferences"] = [{"uid": "s"}]
    both["metadata"]["ownerReferences"] = [{"uid": "c"}, {"uid": "d"}]
    listed = {Listing(None, "one"): Listed((sure, chosen, below, both))}
    found = cascade_of_all([chosen], listed, Objects(), beside=[sure])
    assert {ref.name: found.roots[ref].name for ref in found.taken} == {"d": "s", "b": "c"}


def test_a_claim_of_a_pod_that_comes_and_goes_is_nothing_to_ask_about_and_one_that_such_a_pod_merely_owns_is():
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "one", "uid": "d"},
    }

    def owned(kind, name, owner, by="v1 Pod", **how):
        api_version, _, of = by.partition(" ")
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "one", "uid": name, "ownerReferences": [{"uid": owner, "apiVersion": api_version, "kind": of, **how}]}}  # fmt: skip

    pod = owned("Pod", "p", "d", "apps/v1 ReplicaSet", controller=True)
    scratch, data = owned("PersistentVolumeClaim", "s", "p", controller=True), owned("PersistentVolumeClaim", "c", "p")
    assert {ref.name for ref in listed_as_asked([workload, pod, scratch, data], [workload]).taken} == {"c"}


def test_owners_that_are_about_to_change_count_as_they_will_be():
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "one", "uid": "x"}}
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "one", "uid": "b"}}
    bound = {**owned, "metadata": {**owned["metadata"], "ownerReferences": [{"uid": "x"}]}}
    ref, everything = ObjectRef.of(owned), Listing(None, "one")
    came = cascade_of_all([owner], {everything: Listed((owner, owned))}, Objects(), {ref: bound})
    went = cascade_of_all([owner], {everything: Listed((owner, bound))}, Objects(), {ref: owned})
    assert (set(came.taken), set(went.taken)) == ({ref}, set())


def test_where_a_namespace_goes_its_contents_are_asked_for_once():
    assert listings_of(namespace("one")) == (Listing(None, "one"),)
    assert listings_of(WIDGETS) == (Listing(GroupKind("example.com", "Widget")),)
