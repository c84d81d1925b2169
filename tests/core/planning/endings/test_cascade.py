"""What a deletion takes along, from lists and caches, and what of it is held."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.annotations import SOURCE
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FIELD_MANAGER, GroupKind, ObjectRef
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing, cascade_of
from kubectl_reconcile.core.planning.kinds import CLAIM
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.planner import build
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, applyset_id, member
from kubectl_reconcile.core.resources.sync import SYNC, DeleteLimit, Sync
from tests.core.planning.changes import known
from tests.core.planning.shop import KINDS, NOW, SHOP, SHOP_ID, live, written

CONFIG_MAP = GroupKind("", "ConfigMap")
ENTRY = {
    "manager": FIELD_MANAGER,
    "operation": "Apply",
    "fieldsV1": {"f:metadata": {"f:labels": {f"f:{PART_OF}": {}}, "f:annotations": {f"f:{SOURCE}": {}}}},
}


def thing(name, kind="ConfigMap", api_version="v1", namespace="shop", owner="", controller="", **more):
    metadata = {"name": name, "uid": f"uid-{kind}-{name}", "resourceVersion": "1"} | (
        {"namespace": namespace} if namespace else {}
    )
    if owner or controller:
        api_of, _, kind_of = controller.partition(" ")
        reference = {
            "uid": owner or "uid-controller",
            "apiVersion": api_of or "example.com/v1",
            "kind": kind_of or "Thing",
            "name": "x",
        }
        metadata["ownerReferences"] = [reference | ({"controller": True} if controller else {})]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def a_sync(name, policy="Prune", kinds=(CONFIG_MAP,), *, suspend=False):
    ref = ObjectRef(SYNC.group, SYNC.kind, "shop", name)
    found = thing(name, SYNC.kind, SYNC.api_version, spec={"deletionPolicy": policy, "suspend": suspend})
    found["metadata"] |= Contents(frozenset(kinds), frozenset({"shop"})).metadata(ref, "kubectl-reconcile/1")
    return found


def set_of(name):
    return applyset_id(ObjectRef(SYNC.group, SYNC.kind, "shop", name))


def a_member(name, of, **more):
    found = member(thing(name, **more), set_id=set_of(of), source="a.yaml")
    found["metadata"]["managedFields"] = [ENTRY]
    return found


def taken(root, listed=None, cluster=()):
    return {ref.name for ref in cascade_of(root, listed or {}, Objects(cluster)).taken}


SHOP_LIST, MEMBERS = Listing(None, "shop"), Listing(CONFIG_MAP, "shop", set_of("child"))


def test_a_set_that_prunes_takes_its_members_and_nothing_that_merely_bears_its_label():
    copied = {**a_member("copied", "child"), "kind": "Service"}
    copied["metadata"].pop("managedFields")
    kept, asking = a_member("kept", "child"), a_member("asking", "child")
    kept["metadata"]["annotations"]["reconcile.dev/prune"] = "false"
    asking["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = "Delete=confirm"
    listed = {MEMBERS: Listed((a_member("a", "child"), a_member("b", "child"), copied, kept, asking))}
    assert taken(a_sync("child"), listed) == {"a", "b"}


@pytest.mark.parametrize(
    "child", [a_sync("child", "Orphan"), a_sync("child", suspend=True)], ids=["orphans", "is suspended"]
)
def test_a_set_that_leaves_its_members_takes_nothing_and_asks_for_nothing(child):
    found = cascade_of(child, {MEMBERS: Listed((a_member("a", "child"),))}, Objects())
    assert (found.taken, found.lacking, found.uncounted) == ({}, set(), set())


def test_sets_within_sets_are_followed_level_by_level():
    outer = a_sync("child", kinds=[SYNC.group_kind])
    inner = a_sync("inner")
    inner["metadata"]["labels"] |= {PART_OF: set_of("child")}
    inner["metadata"]["managedFields"] = [ENTRY]
    first, second = Listing(SYNC.group_kind, "shop", set_of("child")), Listing(CONFIG_MAP, "shop", set_of("inner"))
    assert cascade_of(outer, {}, Objects()).lacking == {first}
    found = cascade_of(outer, {first: Listed((inner,))}, Objects())
    assert ({ref.name for ref in found.taken}, found.lacking) == ({"inner"}, {second})
    assert taken(outer, {first: Listed((inner,)), second: Listed((a_member("deep", "inner"),))}) == {"inner", "deep"}


def test_a_namespace_takes_what_is_in_it_but_what_comes_and_goes_by_itself():
    listed = {
        SHOP_LIST: Listed(
            (
                thing("settings"),
                thing("web", "Deployment", "apps/v1"),
                thing("web-1", "ReplicaSet", "apps/v1", controller="apps/v1 Deployment"),
                thing("web-1-x", "Pod", controller="apps/v1 ReplicaSet"),
                thing("lone", "Pod"),
                thing("data-0", "PersistentVolumeClaim", controller="apps/v1 StatefulSet"),
                thing("made", controller="example.com/v1"),
                thing("kube-root-ca.crt"),
                thing("default", "ServiceAccount"),
                thing("happened", "Event"),
                thing("web-abc", "EndpointSlice", "discovery.k8s.io/v1"),
            )
        )
    }
    assert taken(thing("shop", "Namespace", namespace=""), listed) == {"settings", "web", "lone", "data-0", "made"}


@pytest.mark.parametrize(
    ("kind", "api_version", "controller"),
    [
        ("MyDatabase", "example.com/v1", "v1 ConfigMap"),
        ("VolumeSnapshot", "snapshot.storage.k8s.io/v1", "batch/v1 CronJob"),
        ("Secret", "v1", "apps/v1 Deployment"),
        ("Pod", "v1", "v1 ConfigMap"),
        ("PersistentVolumeClaim", "v1", "batch/v1 Job"),
    ],
)
def test_what_nobody_makes_again_counts_whatever_kind_its_controller_is_of(kind, api_version, controller):
    owner = thing("owner")
    owned = thing("owned", kind, api_version, owner="uid-ConfigMap-owner", controller=controller)
    assert taken(owner, {SHOP_LIST: Listed((owner, owned))}) == {"owned"}


def test_an_account_takes_its_tokens_which_nobody_owns():
    account = thing("robot", "ServiceAccount")

    def token(name, of="robot", uid="uid-ServiceAccount-robot", kind="Secret"):
        found = thing(name, kind)
        notes = {"kubernetes.io/service-account.name": of, "kubernetes.io/service-account.uid": uid}
        found["metadata"]["annotations"] = {name: text for name, text in notes.items() if text}
        return found

    others = (token("of-another", "other"), token("of-one-before", uid="other"), token("no-secret", kind="ConfigMap"))
    listed = {SHOP_LIST: Listed((account, token("its"), token("new", uid=""), *others, thing("plain", "Secret")))}
    assert taken(account, listed) == {"its", "new"}


def test_a_kind_takes_its_objects_and_these_what_they_own():
    crd = thing("widgets.example.com", "CustomResourceDefinition", "apiextensions.k8s.io/v1", "")
    crd["spec"] = {"group": "example.com", "names": {"kind": "Widget"}}
    widget = thing("w", "Widget", "example.com/v1")
    listed = {
        Listing(GroupKind("example.com", "Widget")): Listed((widget,)),
        SHOP_LIST: Listed(
            (widget, thing("owned", owner="uid-Widget-w"), thing("other", owner="uid-Widget-v"), thing("free"))
        ),
    }
    assert taken(crd, listed) == {"w", "owned"}


def test_objects_of_a_kind_that_is_not_served_are_uncounted():
    crd = thing("widgets.example.com", "CustomResourceDefinition", "apiextensions.k8s.io/v1", "")
    listed = {Listing(GroupKind("example.com", "Widget")): Listed()}
    for served, uncounted in ((True, set()), (False, {"Widget.example.com"})):
        versions = [{"name": "v1", "served": served}, {"name": "v1beta1", "served": False}]
        crd["spec"] = {"group": "example.com", "names": {"kind": "Widget"}, "versions": versions}
        assert cascade_of(crd, listed, Objects()).uncounted == uncounted


def test_a_custom_resource_takes_what_it_alone_owns_as_lists_and_caches_show_it():
    widget = thing("w", "Widget", "example.com/v1")
    shared = thing("shared", owner="uid-Widget-w")
    shared["metadata"]["ownerReferences"].append(
        {"uid": "somebody", "apiVersion": "v1", "kind": "ConfigMap", "name": "s"}
    )
    cached = thing("cached", owner="uid-Widget-w", controller="example.com/v1")
    listed = {SHOP_LIST: Listed((thing("listed", owner="uid-Widget-w"), shared))}
    assert taken(widget, listed, [cached]) == {"listed", "cached"}
    assert cascade_of(widget, {SHOP_LIST: Listed(unseen=(GroupKind("", "Secret"),))}, Objects()).uncounted == set()


class Watched(dict):
    """An object that counts how often it is looked at."""

    looks = 0

    def __getitem__(self, key):
        Watched.looks += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("roots", [10, 200])
def test_however_many_go_at_once_an_object_of_a_list_is_looked_at_a_few_times(roots):
    Watched.looks = 0
    widgets = [thing(f"w{at}", "Widget", "example.com/v1") for at in range(roots)]
    owned = [Watched(thing(f"c{at}", owner=f"uid-Widget-w{at}")) for at in range(roots)]
    strangers = [Watched(thing(f"s{at}", owner="uid-somebody")) for at in range(100)]
    listed = {SHOP_LIST: Listed((*owned, *strangers))}
    assert [taken(each, listed) for each in widgets] == [{f"c{at}"} for at in range(roots)]
    assert Watched.looks < 30 * (len(owned) + len(strangers))


@given(st.lists(st.sets(st.integers(0, 7), max_size=3), min_size=8, max_size=8), st.sets(st.integers(0, 7)))
def test_what_goes_is_what_nobody_owns_any_more(owners_of, custom):
    def one(at):
        made = thing(f"t{at}", *(("Widget", "example.com/v1") if at in custom else ()))
        references = [
            {"uid": f"uid-{'Widget' if of in custom else 'ConfigMap'}-t{of}", "kind": "x", "name": "x"}
            for of in owners_of[at] - {at}
        ]
        return made | {"metadata": made["metadata"] | ({"ownerReferences": references} if references else {})}

    objects = [one(at) for at in range(8)]
    found = taken(objects[0], {SHOP_LIST: Listed(tuple(objects))})
    for at in range(1, 8):
        if f"t{at}" in found:
            assert owners_of[at] - {at}
            assert {f"t{of}" for of in owners_of[at] - {at}} <= found | {"t0"}
        else:
            assert not (0 in custom and owners_of[at] - {at} == {0})


@pytest.mark.parametrize(
    ("root", "asked"),
    [
        (thing("a"), SHOP_LIST),
        (thing("web", "Deployment", "apps/v1"), SHOP_LIST),
        (thing("r", "ClusterRole", "rbac.authorization.k8s.io/v1", ""), Listing(CLAIM)),
        (thing("w", "Widget", "example.com/v1", ""), Listing(None)),
    ],
    ids=["an object", "a workload", "a built-in kind in no namespace", "a custom resource in no namespace"],
)
def test_whatever_goes_may_own_others_and_nobody_is_held_up_where_these_cant_be_seen(root, asked):
    found = cascade_of(root, {}, Objects())
    assert (found.lacking, found.uncounted, found.blind) == ({asked}, set(), set())


def test_what_could_not_be_listed_is_uncounted():
    namespace = thing("shop", "Namespace", namespace="")
    assert cascade_of(namespace, {}, Objects()).uncounted == {"objects in namespace shop"}
    seen = {SHOP_LIST: Listed((thing("a"),), (GroupKind("", "Secret"), GroupKind("example.com", "Widget")))}
    found = cascade_of(namespace, seen, Objects())
    assert found.uncounted == {"Secret in namespace shop", "Widget.example.com in namespace shop"}
    assert {ref.name for ref in found.taken} == {"a"}


owners = st.sampled_from(["uid-ConfigMap-a", "uid-ConfigMap-b", "uid-ConfigMap-c", "uid-Namespace-shop", ""])


@given(st.dictionaries(st.sampled_from("abc"), owners))
def test_owners_in_a_ring_end_and_nobody_takes_itself(owned):
    objects = tuple(thing(name, owner=owner) for name, owner in owned.items())
    root = thing("shop", "Namespace", namespace="")
    assert taken(root, {SHOP_LIST: Listed(objects)}) == set(owned)
    assert "a" not in taken(thing("a"), {SHOP_LIST: Listed(objects)}, objects)


# --- what is held -------------------------------------------------------------------------------------


def plan(doomed, listed, sync=SHOP, stays="stays"):
    kept = thing(stays)
    cluster = [live(kept, path="a.yaml"), *doomed]
    inputs = known(
        sync=sync, revision=Revision("c" * 40, NOW, {}), desired=[written(kept, "a.yaml")], live=Objects(cluster),
        kinds=KINDS, now=NOW, listed=listed,
    )  # fmt: skip
    return build(inputs)


def doomed_sync(**more):
    child = a_sync("child", **more)
    child["metadata"] |= {"managedFields": [ENTRY]}
    child["metadata"]["labels"] |= {PART_OF: SHOP_ID}
    return child


def members_of_child(number):
    return {MEMBERS: Listed(tuple(a_member(f"m{at}", "child") for at in range(number)))}


def test_what_goes_along_counts_and_is_listed_and_held_with_what_takes_it():
    made = plan([doomed_sync()], members_of_child(35))
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.refs], len(hold.along)) == ("TooManyDeletes", ["child"], 35)
    assert (
        hold.message
        == "1 of 2 members would be deleted, and with them 35 other objects, more than spec.maxDeletes allows"
    )
    along = [change for change in made.changes if change.gate.cascade]
    assert {(change.op, change.gate.held, change.provenance.owner.name) for change in along} == {
        (Op.DELETE, True, "child")
    }
    assert not any(change.writes for change in made.changes if change.op is Op.DELETE)


def test_an_approval_of_what_takes_others_along_outlives_a_change_among_those():
    held = plan([doomed_sync()], members_of_child(35))
    approved = Sync(name="shop", namespace="shop", approved_plan=held.approval)
    made = plan([doomed_sync()], members_of_child(36), approved)
    assert made.holds == ()
    assert [change.ref.name for change in made.changes if change.writes and change.op is Op.DELETE] == ["child"]


def test_few_that_go_along_are_shown_and_not_held():
    made = plan([doomed_sync()], members_of_child(3))
    assert made.holds == ()
    assert {change.ref.name for change in made.changes if change.op is Op.DELETE} == {"child", "m0", "m1", "m2"}
    none = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(number=3))
    assert [hold.reason for hold in plan([doomed_sync()], members_of_child(3), none).holds] == ["TooManyDeletes"]


def test_a_share_is_one_of_all_that_the_set_holds_and_not_of_its_members_alone():
    quarter = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(percent=25))
    of_ours = {"controller": "example.com/v1"}
    owned = [thing(f"{of}-{at}", owner=f"uid-{of}", **of_ours) for of in ("stays", "goes") for at in range(3)]
    doomed = live(thing("goes"), path="b.yaml")
    (hold,) = plan([doomed, *owned], {}, quarter).holds
    assert (
        hold.message
        == "1 of 2 members would be deleted, and with them 3 other objects, more than spec.maxDeletes allows"
    )
    half = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(percent=50))
    assert plan([doomed, *owned], {}, half).holds == ()


def test_a_claim_among_what_goes_along_needs_consent():
    claims = {MEMBERS: Listed((a_member("disk", "child", kind="PersistentVolumeClaim"),))}
    assert [hold.reason for hold in plan([doomed_sync()], claims).holds] == ["NeedsConsent"]


@pytest.mark.parametrize(
    "noted", [{"reconcile.dev/prune": "false"}, {"argocd.argoproj.io/sync-options": "Delete=confirm"}]
)
def test_what_says_that_it_stays_or_is_to_be_asked_about_goes_along_with_nothing_unasked(noted):
    owner, owned = live(thing("owner"), path="b.yaml", uid="o"), thing("owned", owner="o")
    owned["metadata"]["annotations"] = noted
    (hold,) = plan([owner], {SHOP_LIST: Listed((owner, owned))}).holds
    assert (hold.reason, [ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (
        "NeedsConsent",
        ["owner"],
        ["owned"],
    )
    assert hold.message.endswith("annotated to stay, or to be asked about: ConfigMap shop/owned")


def test_what_nobody_could_count_is_held_and_said():
    unseen = {MEMBERS: Listed((), (CONFIG_MAP,))}
    (hold,) = plan([doomed_sync()], unseen).holds
    assert hold.reason == "Uncounted"
    assert hold.message.endswith("uncounted, because they can't be listed: ConfigMap in namespace shop")
    made = plan([doomed_sync()], {})
    assert (made.lacking, [hold.reason for hold in made.holds]) == (frozenset({MEMBERS}), ["Uncounted"])


def test_what_carries_the_mark_where_the_set_has_never_been_does_not_go_along():
    parent, places = a_sync("child"), {"shop", *(f"n{number}" for number in range(20))}
    ref = ObjectRef(SYNC.group, SYNC.kind, "shop", "child")
    parent["metadata"] |= Contents(frozenset([CONFIG_MAP]), frozenset(places)).metadata(ref, "kubectl-reconcile/1")
    everywhere = Listing(CONFIG_MAP, "", set_of("child"))  # so many namespaces are listed at once
    found = Listed((a_member("own", "child", namespace="n3"), a_member("forged", "child", namespace="elsewhere")))
    assert taken(parent, {everywhere: found}) == {"own"}
