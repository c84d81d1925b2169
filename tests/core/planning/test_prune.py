"""What is deleted, what waits for a person, and what a deletion leaves for last."""

import pytest

from kubectl_reconcile.core.annotations import SOURCE
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import GroupKind, ObjectRef, Problem
from kubectl_reconcile.core.planning.endings.cascade import Listed, Listing
from kubectl_reconcile.core.planning.hold import approval_of_all
from kubectl_reconcile.core.planning.inputs import Unseen
from kubectl_reconcile.core.planning.plan import Change, Op, Plan
from kubectl_reconcile.core.planning.planner import build_removal
from kubectl_reconcile.core.planning.prune import holders_of, parted, without_rights
from kubectl_reconcile.core.resources.applyset import PART_OF, Contents, applyset_id, member
from kubectl_reconcile.core.resources.source import GitSpec, SourceSpec
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from tests.core.planning.shop import KINDS, built_in, cache, inputs_of, live, plan


def test_what_holds_a_sync_goes_last_and_by_itself():
    home, daemon = ObjectRef("", "Namespace", "", "gitops"), ObjectRef("", "Namespace", "", "reconcile-system")
    kind = ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", "syncs.reconcile.dev")
    others = [ObjectRef("", "Namespace", "", "shop"), ObjectRef("", "ConfigMap", "gitops", "web")]
    changes = [Change(ref, Op.DELETE).gated(needs=(others[1],)) for ref in (others[0], home, kind, daemon, others[1])]
    made = Plan(ObjectRef("reconcile.dev", "Sync", "gitops", "shop"), "", tuple(changes))
    first, last = parted(made, holders_of(Sync("shop", "gitops"), "reconcile-system"))
    assert [change.ref for change in first.changes] == others
    assert [change.ref for change in last.changes] == [home, kind, daemon]
    assert not any(change.gate.needs for change in last.changes)


GROUP = "rbac.authorization.k8s.io"
RIGHTS_KINDS = [
    built_in("v1", "ServiceAccount", "serviceaccounts"),
    built_in(f"{GROUP}/v1", "Role", "roles"),
    built_in(f"{GROUP}/v1", "RoleBinding", "rolebindings"),
]


def named(api_version, kind, name):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}}


CHILD = named("reconcile.dev/v1alpha1", "Sync", "child")
RIGHTS = [
    named("v1", "ServiceAccount", "team"),
    named(f"{GROUP}/v1", "Role", "team"),
    named(f"{GROUP}/v1", "RoleBinding", "team"),
]


@pytest.fixture(autouse=True)
def _kinds(monkeypatch):
    for kind in RIGHTS_KINDS:
        monkeypatch.setitem(KINDS, kind.gvk, kind)


def deletions(made):
    return {change.ref.kind: change for change in made.changes if change.op is Op.DELETE}


def test_accounts_and_rights_wait_until_a_child_sync_is_gone():
    members = [live(each) for each in (CHILD, *RIGHTS)]
    found = deletions(plan([cache("sessions")], [live(cache("sessions")), *members]))
    child = found.pop("Sync")
    assert child.writes
    assert set(found) == {"ServiceAccount", "Role", "RoleBinding"}
    for change in found.values():
        assert change.gate.needs == (child.ref,)
        assert change.gate.wave > child.gate.wave


def test_accounts_and_rights_of_a_child_sync_that_is_going_are_left_to_a_later_pass():
    going = live(CHILD, deletionTimestamp="2026-11-20T12:00:00Z")
    found = deletions(plan([cache("sessions")], [live(cache("sessions")), going, *(live(each) for each in RIGHTS)]))
    assert set(found) == {"ServiceAccount", "Role", "RoleBinding"}
    for change in found.values():
        assert not change.writes
        assert change.gate.waits == "the end of Sync.reconcile.dev shop/child"


def test_without_child_syncs_accounts_and_rights_wait_for_nobody():
    found = deletions(plan([cache("sessions")], [live(cache("sessions")), *(live(each) for each in RIGHTS)]))
    assert all(change.writes and not change.gate.needs for change in found.values())
    assert len(found) == len(RIGHTS)


def test_what_says_what_accounts_may_do_is_deleted_by_itself():
    made = build_removal(inputs_of([], [live(each) for each in (CHILD, cache("sessions"), *RIGHTS)]))
    others, rights = without_rights(made)
    assert {change.ref.kind for change in others.changes} == {"Sync", "Memcached"}
    assert {change.ref.kind for change in rights.changes} == {"ServiceAccount", "Role", "RoleBinding"}
    assert not any(change.gate.needs for change in rights.changes)


# --- what goes, and in which order ----------------------------------------------------------------


def config(name, **annotations):
    noted = {f"reconcile.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop", **({"annotations": noted} if noted else {})},
    }


def asking(name):
    """A ConfigMap whose deletion a person must approve, in the words of another tool."""
    found = config(name)
    found["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Prune=confirm"}
    return found


STAYS = config("stays")
FOLLOWED = SourceSpec(GitSpec("https://git.example.com/shop"))
SHOP_SYNC = {"name": "shop", "namespace": "shop"}


def made_of(*doomed, sync=None, **more):
    """The plan of a source that asks for one object, where others are members too."""
    more.setdefault("desired", [STAYS])
    desired = more.pop("desired")
    return plan(desired, [live(STAYS), *(live(each) for each in doomed)], **({"sync": sync} if sync else {}), **more)


def gone(made):
    return {change.ref.name: change for change in made.changes if change.op is Op.DELETE}


def named_needs(change):
    return [ref.name for ref in change.gate.needs]


def test_members_that_depend_on_each_other_in_a_ring_wait_for_nobody_and_others_still_do():
    ring = config("a", depends_on="ConfigMap/b"), config("b", depends_on="ConfigMap/a")
    found = gone(made_of(*ring, config("base"), config("user", depends_on="ConfigMap/base")))
    assert {name: named_needs(change) for name, change in found.items()} == {
        "a": [],
        "b": [],
        "base": ["user"],
        "user": [],
    }
    assert found["user"].gate.wave < found["base"].gate.wave
    assert all(change.writes for change in found.values())


def test_a_dependency_on_what_stays_or_isnt_there_is_none():
    found = gone(made_of(config("a", depends_on="ConfigMap/stays"), config("b", depends_on="ConfigMap/nowhere")))
    assert [named_needs(change) for change in found.values()] == [[], []]


def test_a_dependency_may_name_the_namespace():
    found = gone(made_of(config("base"), config("user", depends_on="ConfigMap/shop/base")))
    assert named_needs(found["base"]) == ["user"]


def test_members_count_whether_or_not_they_are_deleted():
    assert made_of(config("a")).members == 2
    assert made_of().members == 1
    assert made_of(config("a"), sync=Sync(**SHOP_SYNC, prune=False)).members == 2
    assert made_of(config("a"), grouped=False).members == 0
    assert gone(made_of(config("a"), whole=False)) == {}


# --- what waits for a person ----------------------------------------------------------------------


def hold_of(*doomed, **more):
    (hold,) = made_of(*doomed, **more).holds
    return hold.reason, hold.message, [ref.name for ref in hold.refs]


BROKEN = [Problem("other.yaml", 3, "bad indentation")]
FEW = Sync(**SHOP_SYNC, max_deletes=DeleteLimit(number=1))
HELD = {
    "that a file asks for, as far as anybody knows": (
        (config("a"),), {"problems": BROKEN},
        ("UnreadableFiles", "some files can't be used, and an object may have moved into one of them", ["a"]),
    ),
    "if the source is empty": (
        (config("a"),), {"desired": []},
        ("EmptySource", "no manifest is left at this path; every member would be deleted", ["a", "stays"]),
    ),
    "if there are more than the Sync allows": (
        (config("a"), config("b")), {"sync": FEW},
        ("TooManyDeletes", "2 of 3 members would be deleted, more than spec.maxDeletes allows", ["a", "b"]),
    ),
    "that says so itself": (
        (asking("a"), config("b")), {},
        ("NeedsConsent", "these are annotated so that a person must approve their deletion", ["a"]),
    ),
}  # fmt: skip


def test_as_many_as_the_sync_allows_go_without_a_question():
    assert made_of(config("a"), sync=FEW).holds == ()


def test_who_has_approved_all_that_goes_is_asked_nothing_more():
    held = made_of(config("a"), config("b"), sync=FEW)
    approved = Sync(**SHOP_SYNC, max_deletes=FEW.max_deletes, approved_plan=held.approval)
    assert made_of(config("a"), config("b"), sync=approved).holds == ()
    assert made_of(config("a"), config("c"), sync=approved).holds != ()


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old"}}


def listed(*names, unseen=()):
    found = tuple(
        {**config(name), "metadata": {"name": name, "namespace": "old", "uid": f"u-{name}"}} for name in names
    )
    return {Listing(None, "old"): Listed(found, tuple(GroupKind("", kind) for kind in unseen))}


def test_what_holds_others_waits_with_all_that_it_holds():
    made = made_of(NAMESPACE, config("a"), listed=listed("x", "y"))
    (hold,) = made.holds
    assert (hold.reason, hold.message) == ("NeedsConsent", "deleting these deletes everything in them, too")
    assert ([ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (["old"], ["x", "y"])
    found = gone(made)
    assert {name: change.gate.held for name, change in found.items()} == {"old": True, "x": True, "y": True, "a": False}
    assert [found[name].gate.cascade for name in ("old", "x", "y")] == [False, True, True]
    approved = Sync(**SHOP_SYNC, approved_plan=made.approval)
    assert not any(
        change.gate.held for change in gone(made_of(NAMESPACE, config("a"), listed=listed("x"), sync=approved)).values()
    )


def test_what_couldnt_be_listed_is_said_with_the_hold_five_kinds_at_most():
    kinds = ("A", "B", "C", "D", "E", "F", "G")
    for count, told in ((5, "A, B, C, D, E"), (7, "A, B, C, D, E and 2 more")):
        (hold,) = made_of(NAMESPACE, listed=listed(unseen=kinds[:count])).holds
        names = told.replace(",", " in namespace old,").replace("E", "E in namespace old")
        assert (
            hold.message
            == f"deleting these deletes everything in them, too; uncounted, because they can't be listed: {names}"
        )


def test_a_set_whose_members_couldnt_be_listed_waits_with_those_that_could():
    child = {**CHILD, "spec": {"deletionPolicy": "Prune"}}
    contents = Contents(frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Service")}), frozenset({"shop"}))
    recorded = contents.metadata(ObjectRef.of(CHILD), "kubectl-reconcile/1")["annotations"]
    of = applyset_id(ObjectRef.of(CHILD))
    marked = member(config("x"), set_id=of, source="a.yaml")
    entry = {"manager": "kubectl-reconcile", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{PART_OF}": {}}, "f:annotations": {f"f:{SOURCE}": {}}}}}  # fmt: skip
    marked["metadata"] |= {"managedFields": [entry], "uid": "u-x"}
    answers = {
        Listing(GroupKind("", "ConfigMap"), "shop", of): Listed((marked,)),
        Listing(GroupKind("", "Service"), "shop", of): Listed((), (GroupKind("", "Service"),)),
    }
    there = live(child)
    there["metadata"]["annotations"] = {**there["metadata"]["annotations"], **recorded}
    (hold,) = plan([STAYS], [live(STAYS), there], listed=answers).holds
    assert (hold.reason, [ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (
        "Uncounted",
        ["child"],
        ["x"],
    )
    assert hold.message == (
        "it isn't known which other objects are deleted with these; uncounted, because they can't be listed: Service in namespace shop"
    )


@pytest.mark.parametrize(("doomed", "more", "expected"), HELD.values(), ids=HELD)
def test_a_deletion_waits_for_a_person(doomed, more, expected):
    assert hold_of(*doomed, **more) == expected
    assert not any(
        change.writes for change in gone(made_of(*doomed, **more)).values() if change.ref.name in expected[2]
    )


# --- what goes along though Git asks for it ---------------------------------------------------------


def in_old(name):
    return {**config(name), "metadata": {"name": name, "namespace": "old", "uid": f"uid-{name}"}}


def dropped(*wanted, sync=SHOP_SYNC, foreign=()):
    """The plan of a source that has dropped a Namespace, and still asks for objects in it."""
    members = [live(STAYS), live(NAMESPACE), live(in_old("x"))]
    return plan([STAYS, *map(in_old, wanted)], members, listed=listed("x", *foreign), sync=Sync(**sync))


def test_a_namespace_that_goes_says_which_objects_in_it_git_still_asks_for():
    made = dropped("x", foreign=("y",))
    (hold,) = made.holds
    assert ([ref.name for ref in hold.along], [ref.name for ref in hold.asked]) == (["x", "y"], ["x"])
    assert hold.message == (
        "deleting these deletes everything in them, too; 1 of these Git still asks for: ConfigMap old/x"
    )
    assert [change.op for change in made.changes if change.ref.name == "x"] == [Op.UPDATE]  # as long as it waits


def test_what_went_along_is_not_told_as_unchanged_and_what_would_be_new_there_is_refused():
    held = dropped("x", "new")
    made = dropped("x", "new", sync={**SHOP_SYNC, "approved_plan": held.approval})
    assert made.holds == ()
    (gone_along,) = [change for change in made.changes if change.ref.name == "x"]
    assert (gone_along.op, gone_along.gate.cascade, gone_along.provenance.owner.name) == (Op.DELETE, True, "old")
    (new,) = [change for change in made.changes if change.ref.name == "new"]
    assert new.gate.blocked == "its Namespace old is deleted by this sync, since Git doesn't ask for it any more"
    assert "x" not in {ref.name for ref in made.refs()}


def test_an_owner_that_would_take_along_what_git_asks_for_waits_for_a_person():
    owned = live(config("owned"))
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "uid-a"}]
    answers = {Listing(None, "shop"): Listed((owned,))}
    made = plan([STAYS, config("owned")], [live(STAYS), owned, live(config("a"))], listed=answers)
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.refs]) == ("NeedsConsent", ["a"])
    assert hold.message == "deleting these deletes what they own; 1 of these Git still asks for: ConfigMap shop/owned"


def test_an_approval_is_of_these_objects_and_not_of_their_names_for_ever():
    made = made_of(NAMESPACE, listed=listed("x"))
    approved = Sync(**SHOP_SYNC, approved_plan=made.approval)
    assert made_of(NAMESPACE, listed=listed("x"), sync=approved).holds == ()
    again = live(NAMESPACE, uid="another")
    assert plan([STAYS], [live(STAYS), again], listed=listed("x"), sync=approved).holds != ()


# --- a Sync among its own members -----------------------------------------------------------------


def a_sync(name, policy="Prune"):
    found = named("reconcile.dev/v1alpha1", "Sync", name)
    contents = Contents(frozenset({GroupKind("reconcile.dev", "Sync")}), frozenset({"shop"}))
    marks = contents.metadata(ObjectRef.of(found), "kubectl-reconcile/1")
    return {**found, "metadata": {**found["metadata"], **marks}, "spec": {"deletionPolicy": policy}}


def kept_as(manifest, **more):
    there = live(manifest, **more)
    for field in ("labels", "annotations"):
        there["metadata"][field] = {**manifest["metadata"].get(field, {}), **there["metadata"].get(field, {})}
    return there


@pytest.mark.parametrize("policy", ["Prune", "Orphan"])
def test_a_sync_that_would_delete_itself_waits_for_a_person(policy):
    of = Listing(GroupKind("reconcile.dev", "Sync"), "shop", applyset_id(ObjectRef.of(a_sync("shop"))))
    made = plan([STAYS], [live(STAYS), kept_as(a_sync("shop", policy))], listed={of: Listed()})
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.refs]) == ("NeedsConsent", ["shop"])
    own = ObjectRef("reconcile.dev", "Sync", "shop", "shop")
    assert hold.message == f"this Sync itself would be deleted, and nothing would follow {own} any more"


def test_a_sync_that_would_go_with_another_that_contains_it_waits_for_a_person():
    child = kept_as(a_sync("child"))
    of_child = Listing(GroupKind("reconcile.dev", "Sync"), "shop", applyset_id(ObjectRef.of(child)))
    own = kept_as(a_sync("shop"), set_id=applyset_id(ObjectRef.of(child)))
    of_own = Listing(GroupKind("reconcile.dev", "Sync"), "shop", applyset_id(ObjectRef.of(own)))
    answers = {of_child: Listed((own,)), of_own: Listed((child,))}
    (hold,) = plan([STAYS], [live(STAYS), child], listed=answers).holds
    assert ([ref.name for ref in hold.refs], [ref.name for ref in hold.along]) == (["child"], ["shop"])
    assert hold.message.startswith("this Sync itself would be deleted")


def test_a_sync_does_not_wait_for_itself_nor_for_those_that_contain_it():
    own, above = (
        ObjectRef("reconcile.dev", "Sync", "gitops", "shop"),
        ObjectRef("reconcile.dev", "Sync", "gitops", "all"),
    )
    assert {own, above} <= holders_of(Sync("shop", "gitops"), "", [above])


# --- what nobody can be sure of -------------------------------------------------------------------


def test_what_a_file_that_cant_be_read_once_asked_for_stays():
    revision = Revision("c0ffee", "2026-11-20T12:00:00Z", {"broken.yaml": "b", "caches.yaml": "c"})
    cluster = [live(STAYS), live(config("a"), path="broken.yaml"), live(config("b"))]
    made = plan([STAYS], cluster, problems=[Problem("broken.yaml", 1, "bad")], revision=revision)
    assert set(gone(made)) == {"b"}


def test_what_a_chart_that_couldnt_be_rendered_once_asked_for_stays():
    revision = Revision("c0ffee", "2026-11-20T12:00:00Z", {"caches.yaml": "c"}, unrendered=("chart",))
    cluster = [live(STAYS), live(config("a"), path="chart/templates/a.yaml"), live(config("b"), path="charts/b.yaml")]
    assert set(gone(plan([STAYS], cluster, revision=revision))) == {"b"}


def test_a_removal_takes_all_members_but_those_that_are_to_be_asked_for():
    cluster = [live(STAYS), live(asking("a")), live(NAMESPACE)]
    made = build_removal(inputs_of([], cluster))
    assert set(gone(made)) == {"stays", "old"}
    assert all(change.writes for change in gone(made).values())


# --- what is lost sight of ------------------------------------------------------------------------


def wiped(manifest, *entries):
    """A member whose managedFields were lost, and who has written to it since."""
    found = live(manifest)
    return {**found, "metadata": {**found["metadata"], "managedFields": list(entries)}}


def labelled_by(manager):
    fields = {"f:metadata": {"f:labels": {f"f:{PART_OF}": {}}}}
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}


LOST = {
    "nobody is recorded to have written": (),
    "the server made up a writer of": (labelled_by("before-first-apply"),),
}


@pytest.mark.parametrize("entries", LOST.values(), ids=LOST)
def test_a_member_that(entries):
    made = plan([STAYS], [live(STAYS), wiped(config("lost"), *entries), live(config("sure"))])
    found = gone(made)
    assert not found["lost"].writes
    assert found["sure"].writes, "nothing else waits for that"
    (hold,) = made.holds
    assert (hold.reason, [ref.name for ref in hold.refs]) == ("OwnersLost", ["lost"])
    approved = Sync(name="shop", namespace="shop", approved_plan=made.approval)
    assert gone(plan([STAYS], [live(STAYS), wiped(config("lost"), *entries)], sync=approved))["lost"].writes


def test_a_copy_of_a_members_marks_is_nobodys_business():
    made = plan([STAYS], [live(STAYS), wiped(config("copy"), labelled_by("endpoint-controller"))])
    assert not gone(made)
    assert not made.holds
    bare = wiped(config("bare"))
    del bare["metadata"]["annotations"]
    assert not gone(plan([STAYS], [live(STAYS), bare]))


def test_the_end_of_a_sync_leaves_what_nobody_is_recorded_to_have_written():
    made = build_removal(inputs_of([], [live(STAYS), wiped(config("lost"))]))
    assert set(gone(made)) == {"stays"}


CONFIG_MAPS = GroupKind("", "ConfigMap")
WHY = "ServiceAccount shop/us may not list configmaps in namespace ops"


def unseen(place, *, recorded=("shop", "ops"), is_detailed=True, **more):
    """What is said of a Sync that has members in some namespaces, where those of one can't be listed."""
    contents = Contents(
        frozenset({CONFIG_MAPS}), frozenset({*recorded, "shop"}), {CONFIG_MAPS: frozenset(recorded)}, is_detailed
    )
    made = plan(
        [STAYS],
        [live(STAYS), live(config("old"))],
        unseen={(CONFIG_MAPS, place): Unseen(WHY, is_refused=True, is_of_account=True)},
        recorded=contents,
        **more,
    )
    return made, [each for each in made.problems if not each.in_source]


def test_where_members_were_applied_and_can_not_be_listed_is_told_and_the_others_go():
    made, (told,) = unseen("ops")
    assert told.is_error
    assert told.message == (
        f"ConfigMap in namespace ops can't be listed, so what Git doesn't ask for any more may be left there: {WHY}"
    )
    assert told.hint == "kubectl reconcile grant shop -n shop shows what its account needs"
    assert gone(made)["old"].writes


def test_where_no_member_has_been_nothing_is_missed():
    assert unseen("ops", recorded=("shop",))[1] == []
    assert unseen("ops", sync=Sync(name="shop", namespace="shop", prune=False))[1] == []


def test_of_a_sync_that_does_not_say_where_its_members_are_it_is_a_warning():
    assert [each.is_error for each in unseen("ops", is_detailed=False)[1]] == [False]


def test_what_a_person_may_not_see_of_what_an_account_applies_is_a_warning():
    denied = Unseen('configmaps is forbidden: User "jane" cannot list resource (403 Forbidden)', is_refused=True)
    recorded = Contents(frozenset({CONFIG_MAPS}), frozenset({"shop", "ops"}))
    for source, is_error in ((FOLLOWED, False), (None, True)):
        sync = Sync(name="shop", namespace="shop", source=source)
        made = plan([STAYS], [live(STAYS)], sync=sync, unseen={(CONFIG_MAPS, "ops"): denied}, recorded=recorded)
        assert [(each.is_error, each.hint) for each in made.problems] == [(is_error, "")]


def test_what_a_reason_merely_quotes_says_nothing_of_who_may_not_look():
    """A server that converts a kind may answer what it likes."""
    quoted = Unseen("conversion webhook failed: ServiceAccount x (403 Forbidden)")
    recorded = Contents(frozenset({CONFIG_MAPS}), frozenset({"shop", "ops"}))
    sync = Sync(name="shop", namespace="shop", source=FOLLOWED)
    (told,) = plan([STAYS], [live(STAYS)], sync=sync, unseen={(CONFIG_MAPS, "ops"): quoted}, recorded=recorded).problems
    assert (told.is_error, told.hint) == (True, "")


def test_a_kind_of_which_nothing_can_be_listed_is_told():
    made, (told,) = unseen("", unsynced=frozenset({CONFIG_MAPS}))
    assert told.message.startswith("ConfigMap can't be listed, ")
    assert not gone(made)


def test_kinds_behind_a_server_that_is_down_are_not_gone():
    lost = GroupKind("away.example.com", "Thing")
    recorded = Contents(frozenset({lost, GroupKind("gone.example.com", "Thing"), CONFIG_MAPS}), frozenset({"shop"}))
    down = {"away.example.com/v1": "no endpoints", "v1": "no endpoints"}
    (told,) = plan([STAYS], [live(STAYS)], recorded=recorded, unavailable=down).problems
    assert told.is_error
    assert told.message.startswith("Thing.away.example.com can't be listed, ")
    assert told.message.endswith(": away.example.com/v1 isn't available: no endpoints")
    assert told.hint == ""


# --- strangers ------------------------------------------------------------------------------------


def strange(*names):
    return frozenset(ObjectRef("", "ConfigMap", "shop", name) for name in names)


def test_what_was_never_asked_for_is_left_alone_and_counts_nowhere():
    forged = [config(f"forged-{number}") for number in range(5)]
    made = made_of(config("a"), *forged, sync=FEW, strangers=strange(*(each["metadata"]["name"] for each in forged)))
    assert (list(gone(made)), made.holds, made.members) == (["a"], (), 2)
    assert [ref.name for ref in made.marked.strangers.refs] == [f"forged-{number}" for number in range(5)]


def test_what_was_never_asked_for_goes_once_somebody_has_agreed_to_that_of_all_of_it():
    made = made_of(config("forged"), strangers=strange("forged"))
    approved = Sync(**SHOP_SYNC, approved_plan=approval_of_all(made.waiting))
    assert list(gone(made_of(config("forged"), strangers=strange("forged"), sync=approved))) == ["forged"]
    more = made_of(config("forged"), config("b"), strangers=strange("forged", "b"), sync=approved)
    assert gone(more) == {}


def test_a_forged_sync_that_never_goes_has_no_account_wait_for_it():
    going = live(CHILD)
    going["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    ref = ObjectRef("reconcile.dev", "Sync", "shop", "child")
    made = plan([], [going, *(live(each) for each in RIGHTS)], strangers=frozenset({ref}))
    assert not any(change.gate.waits for change in deletions(made).values())


def test_what_was_never_asked_for_stays_when_the_sync_goes():
    inputs = inputs_of([], [live(config("a")), live(config("forged"))], strangers=strange("forged"))
    assert list(gone(build_removal(inputs))) == ["a"]
