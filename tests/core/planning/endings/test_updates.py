"""What ends because an object is updated: an object whose owners aren't there, claims of replicas that are taken away."""

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.module.api import module
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import GroupKind
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing
from kubectl_reconcile.core.planning.endings.replacements import with_replacements
from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.planning.rights.writes import rights_to_make
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from tests.core.planning.shop import KINDS, MEMCACHED, SHOP, built_in, cache, live, plan

CONFIG_MAP, CLAIM = GroupKind("", "ConfigMap"), GroupKind("", "PersistentVolumeClaim")
OWNER = Listing(CONFIG_MAP, "shop", name="owner")


@pytest.fixture(autouse=True)
def _kinds(monkeypatch):
    for kind in (
        built_in("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
        built_in("apps/v1", "StatefulSet", "statefulsets"),
    ):
        monkeypatch.setitem(KINDS, kind.gvk, kind)


# --- owners ---------------------------------------------------------------------------------------


def claim(*owners, **metadata):
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid} for uid in owners]
    more = {"ownerReferences": references} if references else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop", **more, **metadata},
    }


def config(name, uid="there", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop", "uid": uid, **metadata},
    }


def told(*found, unseen=()):
    return {OWNER: Listed(found, tuple(unseen))}


def the_claim(made):
    (change,) = [each for each in made.changes if each.ref.name == "data"]
    return change


def test_whether_owners_are_there_is_looked_up_before_it_is_judged():
    assert plan([claim("there")], [live(claim())]).lacking == {OWNER}
    assert plan([claim()], [live(claim())]).lacking == frozenset()


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (told(), "metadata.ownerReferences names ConfigMap owner, which isn't there in namespace shop;"),
        (told(config("owner", "another")), "names ConfigMap owner with the uid there, and the one in namespace shop has another;"),
        (told(config("owner", deletionTimestamp="2026-11-28T00:00:00Z")), "names ConfigMap owner, which is being deleted;"),
        (told(unseen=[CONFIG_MAP]), "names ConfigMap owner in namespace shop, which can't be looked at, so nobody knows whether it is there;"),
    ],
    ids=["isn't there", "is another by now", "is going", "can't be seen"],
)  # fmt: skip
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "updated"])
def test_an_object_whose_owner_is_not_there_is_refused_since_it_would_be_deleted(found, why, is_new):
    change = the_claim(plan([claim("there")], [] if is_new else [live(claim())], listed=found))
    assert why in change.gate.blocked
    assert "the cluster's garbage collector deletes objects whose owners aren't there (hint: " in change.gate.blocked
    assert not change.writes


def test_an_owner_that_is_not_there_is_refused_beside_one_that_is():
    """The garbage collector would take it off again, and the object would go with the other."""
    change = the_claim(plan([claim("gone", "there")], [live(claim())], listed=told(config("owner"))))
    assert "with the uid gone, and the one in namespace shop has another" in change.gate.blocked


def test_an_owner_that_went_meanwhile_is_no_reason_to_leave_an_object_that_keeps_another():
    change = the_claim(plan([claim("gone", "there")], [live(claim("gone"))], listed=told(config("owner"))))
    assert (change.op, change.gate.blocked) == (Op.UPDATE, "")


def test_owners_that_stay_as_they_are_are_nobodys_business():
    owned = claim("gone")
    made = plan([{**claim("gone"), "spec": {"volumeName": "x"}}], [live(owned)])
    assert (the_claim(made).op, the_claim(made).gate.blocked, made.lacking) == (Op.UPDATE, "", frozenset())


def test_an_owner_that_goes_in_the_same_sync_takes_along_what_it_comes_to_own():
    going, owner = config("owner"), live(config("owner"), uid="there")
    stays = config("stays", "s")
    cluster = [live(claim()), owner, live(stays, uid="s")]
    listed = {**told(owner), Listing(None, "shop"): Listed((going, claim(uid="uid-data")))}
    (hold,) = plan([claim("there"), stays], cluster, listed=listed).holds
    assert (hold.reason, [ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (
        "NeedsConsent",
        ["owner"],
        ["data"],
    )
    assert hold.message.endswith("1 of these Git still asks for: PersistentVolumeClaim shop/data")


def test_once_the_deletion_of_an_owner_is_approved_nothing_comes_to_be_owned_by_it():
    going, owner, stays = config("owner"), live(config("owner"), uid="there"), config("stays", "s")
    cluster = [live(claim()), owner, live(stays, uid="s")]
    listed = {**told(owner), Listing(None, "shop"): Listed((going, claim(uid="uid-data")))}
    held = plan([claim("there"), stays], cluster, listed=listed)
    agreed = Sync(name="shop", namespace="shop", approved_plan=held.approval)
    made = plan([claim("there"), stays], cluster, listed=listed, sync=agreed)
    assert the_claim(made).gate.blocked.startswith("all that metadata.ownerReferences names goes in this very sync")
    assert [change.ref.name for change in made.changes if change.op is Op.DELETE and change.writes] == ["owner"]


def test_an_owner_goes_alone_once_what_it_owned_is_free_of_it():
    owner, owned = live(config("owner"), uid="there"), live(claim("there"))
    listed = {Listing(None, "shop"): Listed((owner, owned))}
    made = plan([claim()], [owned, owner], listed=listed)
    (deletion,) = [each for each in made.changes if each.op is Op.DELETE]
    assert (deletion.ref.name, deletion.gate.held, made.holds) == ("owner", False, ())
    assert [ref.name for ref in deletion.gate.needs] == ["data"]


def test_who_gives_an_object_other_owners_needs_the_right_to_delete_it():
    made = plan([claim("there")], [live(claim())], listed=told(config("owner")))
    assert "delete" in {right.verb for _, right in rights_to_make(the_claim(made))}
    plain = plan([{**claim(), "spec": {"volumeName": "x"}}], [live(claim())])
    assert "delete" not in {right.verb for _, right in rights_to_make(the_claim(plain))}


# --- replicas that are taken away -----------------------------------------------------------------


def stateful_set(replicas, policy="Delete", start=0):
    spec = {
        "replicas": replicas,
        "ordinals": {"start": start},
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": policy},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "shop"},
        "spec": spec,
    }


CLAIMS = Listing(CLAIM, "shop")


def claims(*names):
    return {
        CLAIMS: Listed(
            tuple({**claim(), "metadata": {"name": name, "namespace": "shop", "uid": name}} for name in names)
        )
    }


def scaled(before, after, listed=None, sync=None):
    return plan([after], [live(before)], listed=listed or {}, **({"sync": sync} if sync else {}))


def test_claims_of_replicas_that_are_taken_away_are_named_and_held():
    known = claims("data-db-0", "data-db-1", "data-db-2", "data-db-3", "data-db-x", "other-db-2", "data-dbx-2")
    made = scaled(stateful_set(3), stateful_set(1), known)
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.along]) == ("NeedsConsent", ["data-db-1", "data-db-2"])
    assert (
        hold.message
        == "2 replicas would go, and their claims with them (persistentVolumeClaimRetentionPolicy.whenScaled is Delete)"
    )
    assert not list(made.waves())
    agreed = Sync(name="shop", namespace="shop", approved_plan=made.approval)
    approved = scaled(stateful_set(3), stateful_set(1), known, agreed)
    assert approved.holds == ()
    assert {each.ref.name: each.gate.cascade for each in approved.changes} == {
        "db": False,
        "data-db-1": True,
        "data-db-2": True,
    }


def test_what_a_claim_owns_goes_with_its_replica_and_nothing_may_come_to_be_owned_by_it_then():
    owned = config("snapshot", "s")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "data-db-1", "uid": "data-db-1"}
    ]
    taken = claims("data-db-1")
    known = {
        **taken,
        Listing(None, "shop"): Listed((*taken[CLAIMS].objects, owned)),
        Listing(CLAIM, "shop", name="data-db-1"): taken[CLAIMS],
    }
    mine = config("mine", "m")
    del mine["metadata"]["uid"]
    bound = {**mine, "metadata": {**mine["metadata"], "ownerReferences": owned["metadata"]["ownerReferences"]}}
    cluster = [live(stateful_set(2)), live(mine)]
    made = plan([stateful_set(1), bound], cluster, listed=known)
    (hold,) = made.holds
    assert [ref.name for ref in hold.along] == ["mine", "snapshot", "data-db-1"]
    agreed = Sync(name="shop", namespace="shop", approved_plan=made.approval)
    approved = {
        each.ref.name: each for each in plan([stateful_set(1), bound], cluster, listed=known, sync=agreed).changes
    }
    assert approved["snapshot"].gate.cascade
    assert approved["mine"].gate.blocked.startswith("all that metadata.ownerReferences names goes in this very sync")


def test_what_a_claim_owns_together_with_what_is_deleted_goes_with_them():
    both, gone = config("both", "b"), config("gone")
    both["metadata"]["ownerReferences"] = [{"uid": "data-db-1"}, {"uid": "uid-gone"}]
    taken, stays = claims("data-db-1"), live(config("stays"))
    known = {**taken, Listing(None, "shop"): Listed((*taken[CLAIMS].objects, both))}
    cluster = [live(stateful_set(2)), live(gone, uid="uid-gone"), stays]
    desired = [stateful_set(1), config("stays")]
    held = plan(desired, cluster, listed=known)
    assert "both" not in {change.ref.name for change in held.changes}
    agreed = Sync(name="shop", namespace="shop", approved_plan=held.approval)
    made = plan(desired, cluster, listed=known, sync=agreed)
    assert {change.ref.name for change in made.changes if change.gate.cascade} == {"data-db-1", "both"}


def test_an_approval_to_scale_in_is_for_once():
    made = scaled(stateful_set(3), stateful_set(1), claims("data-db-2"))
    agreed = Sync(name="shop", namespace="shop", approved_plan=made.approval)
    later = plan([stateful_set(1)], [live(stateful_set(3), generation=4)], listed=claims("data-db-2"), sync=agreed)
    assert [hold.reason for hold in later.holds] == ["NeedsConsent"]
    assert scaled(stateful_set(3), stateful_set(0), claims("data-db-2"), agreed).holds != ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (stateful_set(1), stateful_set(3)),
        (stateful_set(3, "Retain"), stateful_set(1, "Retain")),
        (stateful_set(3), stateful_set(1, "Retain")),
    ],
    ids=["more replicas", "claims that stay", "claims that are to stay from now on"],
)
def test_what_takes_no_claims_away_asks_for_nothing(before, after):
    made = scaled(before, after)
    assert (made.lacking, made.holds) == (frozenset(), ())


def test_another_first_ordinal_takes_the_claims_before_it():
    (hold,) = scaled(
        stateful_set(3), stateful_set(3, start=2), claims("data-db-0", "data-db-1", "data-db-2", "data-db-4")
    ).holds
    assert [ref.name for ref in hold.along] == ["data-db-0", "data-db-1"]


def test_claims_that_cannot_be_listed_are_held_for():
    made = scaled(stateful_set(2), stateful_set(1))
    assert (made.lacking, [hold.reason for hold in made.holds]) == ({CLAIMS}, ["NeedsConsent"])
    unseen = scaled(stateful_set(2), stateful_set(1), {CLAIMS: Listed((), (CLAIM,))})
    (hold,) = unseen.holds
    assert hold.message.endswith("uncounted, because they can't be listed: PersistentVolumeClaim in namespace shop")


def test_a_million_replicas_are_no_more_work_than_two():
    (hold,) = scaled(stateful_set(10**9), stateful_set(1), claims("data-db-7")).holds
    assert hold.message.startswith("999999999 replicas would go")


# --- finalizers -----------------------------------------------------------------------------------

GOING = {"deletionTimestamp": "2026-11-28T00:00:00Z"}


def kept_by(*finalizers, body=None):
    body = body or claim()
    return {**body, "metadata": {**body["metadata"], **({"finalizers": list(finalizers)} if finalizers else {})}}


def test_what_is_let_go_ends_as_what_is_replaced_does():
    data = live(kept_by("example.com/keep"), **GOING)
    change = the_claim(plan([kept_by()], [data]))
    assert (change.op, change.gate.blocked, change.writes) == (Op.REPLACE, "", True)
    owned = claim(name="owned", uid="o", ownerReferences=[{"uid": "uid-data"}])
    made = with_replacements(plan([kept_by()], [data]), SHOP, {Listing(None, "shop"): Listed((owned,))})
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (
        "NeedsConsent",
        ["data"],
        ["owned"],
    )
    agreed = replace(SHOP, approved_plan=made.approval)
    assert with_replacements(plan([kept_by()], [data]), agreed, {Listing(None, "shop"): Listed()}).holds == ()


def test_what_is_let_go_counts_as_what_is_replaced_does():
    body = {**config("data"), "metadata": {"name": "data", "namespace": "shop"}}
    made = plan([body], [live(kept_by("example.com/keep", body=body), **GOING)])
    few = replace(SHOP, max_deletes=DeleteLimit(number=0))
    assert [hold.reason for hold in with_replacements(made, few, {}).holds] == ["TooManyReplacements"]
    assert with_replacements(made, SHOP, {Listing(None, "shop"): Listed()}).holds == ()


@pytest.mark.parametrize(
    ("wanted", "before", "more"),
    [
        (kept_by("example.com/keep"), kept_by("example.com/keep"), {}),
        (kept_by(), kept_by(), {"finalizers": ["somebody.example.com/else"]}),
        ({**kept_by("example.com/keep"), "spec": {"volumeName": "x"}}, kept_by("example.com/keep"), {}),
    ],
    ids=["its finalizer stays", "it is kept by somebody else", "something else changes"],
)
def test_what_is_kept_still_is_left_alone(wanted, before, more):
    change = the_claim(plan([wanted], [live(before, **GOING, **more)]))
    assert change.gate.blocked == "it is being deleted; it will be recreated once it is gone"


def test_a_finalizer_that_goes_while_nobody_has_deleted_the_object_is_an_update_as_any_other():
    assert the_claim(plan([kept_by()], [live(kept_by("example.com/keep"))])).op is Op.UPDATE


# --- children of a module ---------------------------------------------------------------------------


def of_module(*wanted):
    methods = {"reconcile": lambda *_: Outcome(wanted)}
    owned = ["apps/v1/StatefulSet", "v1/ConfigMap"]
    kind = MEMCACHED.kind
    return {
        MEMCACHED: module(api=MEMCACHED.api_version, kind=kind, owns=owned, name="cache")(type("Cache", (), methods))
    }


def child(body, uid):
    owner = {"apiVersion": MEMCACHED.api_version, "kind": MEMCACHED.kind, "name": "c", "uid": "uid-c"}
    metadata = {**body["metadata"], "uid": uid, "resourceVersion": "1", "labels": {"reconcile.dev/module": "cache"}}
    metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return {**body, "metadata": metadata}


def cascades(made):
    return {each.ref.name: each.gate.held for each in made.changes if each.gate.cascade}


def test_what_a_child_takes_along_that_goes_beside_a_member_is_named():
    data = claim(uid="d", ownerReferences=[{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db"}])
    old = live(config("old"))
    cluster = [live(cache("c"), uid="uid-c"), child(stateful_set(1), "db"), old]
    made = plan([cache("c")], cluster, modules=of_module(), listed={Listing(None, "shop"): Listed((data, old))})
    assert (cascades(made), made.holds) == ({"data": False}, ())
    assert [each.ref.name for each in made.changes if each.op is Op.DELETE and each.writes] == ["db", "old"]


def test_claims_that_a_child_lets_go_are_named_and_wait_for_nobody():
    """Its module has decided that, and an approval of the Sync says nothing to it."""
    wanted = stateful_set(1)
    cluster = [live(cache("c"), uid="uid-c"), child(stateful_set(3), "db")]
    made = plan([cache("c")], cluster, modules=of_module(wanted), listed=claims("data-db-0", "data-db-2"))
    assert (cascades(made), made.holds) == ({"data-db-2": False}, ())
