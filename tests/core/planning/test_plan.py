"""The planner, on plain values: what is created, changed, deleted, held, and in which order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.annotations import MODULE_LABEL, SOURCE
from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FieldPath, GroupVersionKind, ObjectRef, Problem, Severity
from kubectl_reconcile.core.planning.kinds import Phase
from kubectl_reconcile.core.planning.plan import Contention, Op
from kubectl_reconcile.core.planning.planner import build, build_children
from kubectl_reconcile.core.planning.questions import Answers, decide, take
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from kubectl_reconcile.core.resources.sync import DeleteLimit, Sync
from kubectl_reconcile.modules.memcached import memcached
from tests.core.planning.changes import known
from tests.core.planning.shop import (
    CRDS,
    KINDS,
    MEMCACHED,
    NOW,
    SHOP,
    SHOP_ID,
    cache,
    config,
    hook,
    inputs_of,
    live,
    plan,
    written,
)


def ops(made):
    return {change.ref.name: change.op for change in made.changes}


def test_what_is_missing_is_created_with_the_marks_of_a_member():
    (change,) = plan([cache("sessions")]).changes
    assert change.op is Op.CREATE
    assert change.intent["metadata"]["labels"] == {PART_OF: SHOP_ID}
    assert change.intent["metadata"]["annotations"] == {SOURCE: "caches.yaml"}


def test_what_is_as_it_should_be_is_unchanged():
    assert ops(plan([cache("sessions")], [live(cache("sessions"))])) == {"sessions": Op.UNCHANGED}


def test_a_changed_field_is_an_update_that_names_it():
    (change,) = plan([cache("sessions", size=5)], [live(cache("sessions", size=2))]).changes
    assert change.op is Op.UPDATE
    assert [(str(field.path), field.before, field.after) for field in change.fields] == [(".spec.size", 2, 5)]


def test_a_verdict_spares_the_merge_as_long_as_neither_side_moves():
    first = plan([cache("sessions")], [live(cache("sessions"))])
    again = plan([cache("sessions")], [live(cache("sessions"))], verdicts=first.verdicts)
    assert again.changes[0].before is None
    assert again.verdicts == first.verdicts
    moved = live(cache("sessions", size=9), resourceVersion="8")
    assert ops(plan([cache("sessions")], [moved], verdicts=first.verdicts)) == {"sessions": Op.UPDATE}


def test_a_member_that_no_file_asks_for_is_deleted():
    made = plan([cache("sessions")], [live(cache("sessions")), live(cache("pages"))])
    assert ops(made) == {"sessions": Op.UNCHANGED, "pages": Op.DELETE}


KEPT = {
    "prune is off": (live(cache("pages")), {"sync": Sync(name="shop", namespace="shop", prune=False)}),
    "it asks to be kept": (live(cache("pages", annotations={"reconcile.dev/prune": "false"})), {}),
    "it belongs to another set": (live(cache("pages"), set_id="applyset-other-v1"), {}),
    "it belongs to none": (live(cache("pages"), set_id=""), {}),
    "another controller copied the label": (live(cache("pages"), manager="endpoints-controller"), {}),
    "its kind could not be listed": (live(cache("pages")), {"unsynced": frozenset({MEMCACHED.group_kind})}),
    "it is going already": (live(cache("pages"), deletionTimestamp=NOW), {}),
    "no Sync is meant": (live(cache("pages")), {"grouped": False}),
}


@pytest.mark.parametrize(("pages", "more"), KEPT.values(), ids=KEPT)
def test_an_object_is_never_deleted_when(pages, more):
    assert "pages" not in ops(plan([cache("sessions")], [live(cache("sessions")), pages], **more))


def test_deletions_wait_while_a_file_cannot_be_read():
    broken = [Problem("other.yaml", 3, "bad indentation")]
    made = plan([cache("sessions")], [live(cache("sessions")), live(cache("pages"))], problems=broken)
    assert [hold.reason for hold in made.holds] == ["UnreadableFiles"]
    assert not any(change.writes for change in made.changes)


def test_an_empty_source_is_held_rather_than_obeyed():
    made = plan([], [live(cache("sessions"))])
    assert [hold.reason for hold in made.holds] == ["EmptySource"]


def test_more_deletions_than_allowed_are_held_until_just_these_are_approved():
    cluster = [live(cache(f"cache-{number}")) for number in range(20)]
    few = Sync(name="shop", namespace="shop", max_deletes=DeleteLimit(number=3))
    held = plan([cache("cache-0")], cluster, sync=few)
    assert [hold.reason for hold in held.holds] == ["TooManyDeletes"]
    assert not any(change.writes for change in held.changes)
    approved = Sync(name="shop", namespace="shop", max_deletes=few.max_deletes, approved_plan=held.approval)
    assert sum(change.writes for change in plan([cache("cache-0")], cluster, sync=approved).changes) == 19
    assert plan([cache("cache-0"), cache("cache-1")], cluster, sync=approved).holds


@pytest.mark.parametrize(
    "body",
    [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
        {"apiVersion": "example.com/v1alpha1", "kind": "MyDatabase", "metadata": {"name": "shop", "namespace": "shop"}},
    ],
    ids=["a namespace", "a database"],
)
def test_what_holds_others_or_data_is_deleted_only_with_consent(body):
    made = plan([cache("sessions")], [live(cache("sessions")), live(body)])
    assert [(hold.reason, [ref.name for ref in hold.refs]) for hold in made.holds] == [("NeedsConsent", ["shop"])]


def test_the_same_object_in_two_files_is_a_problem_and_left_alone():
    twice = [written(cache("sessions", size=1), "a.yaml"), written(cache("sessions", size=2), "b.yaml", 4)]
    made = plan(twice, [live(cache("sessions"))])
    assert made.changes == ()
    assert str(made.problems[0]) == (
        "b.yaml:4: Memcached.cache.example.com shop/sessions is also in a.yaml:1 (hint: keep one of the two)"
    )


def test_an_unknown_kind_is_a_problem_and_others_go_on():
    odd = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "odd"}}
    made = plan([odd, cache("sessions")])
    assert ops(made) == {"sessions": Op.CREATE}
    assert "Gadget example.com/v1" in str(made.problems[0])


def test_a_kind_that_the_same_revision_brings_is_planned_in_full():
    crd = parse((CRDS / "memcacheds.cache.example.com.yaml").read_bytes(), "crd.yaml").manifests[0]
    served = {gvk: kind for gvk, kind in KINDS.items() if gvk != MEMCACHED}
    inputs = known(
        sync=SHOP,
        revision=Revision("c" * 40, NOW, {}),
        desired=[written(cache("sessions")), crd],
        live=Objects(),
        kinds=served,
        modules={},
        now=NOW,
    )
    made = build(inputs)
    assert [(change.op, change.ref.kind) for change in made.changes] == [
        (Op.CREATE, "CustomResourceDefinition"),
        (Op.CREATE, "Memcached"),
    ]
    assert made.changes[0].gate.wave < made.changes[1].gate.wave


def test_an_object_of_another_set_is_blocked_and_the_set_named():
    (change,) = plan([cache("sessions", size=9)], [live(cache("sessions"), set_id="applyset-other-v1")]).changes
    assert "applyset-other-v1" in change.gate.blocked
    assert not change.writes


def test_a_preview_without_a_sync_leaves_the_marks_as_they_are():
    made = plan([cache("sessions")], [live(cache("sessions"))], grouped=False)
    assert ops(made) == {"sessions": Op.UNCHANGED}


def test_objects_without_a_namespace_go_to_the_target_namespace():
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
    (change,) = plan([bare], sync=Sync(name="shop", namespace="ops", target_namespace="shop")).changes
    assert change.ref == ObjectRef("", "ConfigMap", "shop", "web")
    assert change.intent["metadata"]["namespace"] == "shop"


def test_a_cluster_scoped_object_with_a_namespace_is_applied_without_it_and_warned_of():
    odd = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "namespace": "shop"}}
    made = plan([odd, cache("sessions")], [live(cache("pages"))])
    assert ops(made) == {"shop": Op.CREATE, "sessions": Op.CREATE, "pages": Op.DELETE}
    [change] = [change for change in made.changes if change.ref.name == "shop"]
    assert "namespace" not in change.intent["metadata"]
    assert [(str(each), each.is_error) for each in made.problems] == [
        (
            "caches.yaml:1: Namespace shop is cluster-scoped; its metadata.namespace is ignored (hint: remove metadata.namespace)",
            False,
        )
    ]
    assert made.holds == ()


def test_a_source_without_any_object_is_a_problem_and_never_no_changes():
    made = plan([])
    assert [problem.is_error for problem in made.problems] == [True]
    assert "there are no manifest files at this path" in str(made.problems[0])
    assert not made.is_clean


def test_a_set_that_was_emptied_with_approval_is_well_and_still_says_that_it_is_empty():
    held = plan([], [live(cache("sessions"))])
    approved = Sync(name="shop", namespace="shop", approved_plan=held.approval)
    emptying, emptied = plan([], [live(cache("sessions"))], sync=approved), plan([], sync=approved)
    assert (ops(emptying), emptying.holds, emptied.is_clean) == ({"sessions": Op.DELETE}, (), True)
    assert [problem.is_error for made in (emptying, emptied) for problem in made.problems] == [False, False]


def test_a_source_whose_files_cannot_be_read_is_not_called_empty_too():
    broken = Problem("other.yaml", 3, "bad indentation")
    assert plan([], problems=[broken]).problems == (broken,)


def test_a_warning_holds_no_deletion_and_leaves_the_plan_clean():
    odd = [Problem("caches.yaml", 3, "odd", severity=Severity.WARNING)]
    assert ops(plan([cache("sessions")], [live(cache("pages"))], problems=odd))["pages"] is Op.DELETE
    assert plan([cache("sessions")], [live(cache("pages"))], problems=odd).holds == ()
    assert plan([cache("sessions")], [live(cache("sessions"))], problems=odd).is_clean


UNCLEAR = {
    "its folder would have to be rendered": Revision("c0ffee" + "0" * 34, NOW, {}, unrendered=("over",)),
    "its file has an error": Revision("c0ffee" + "0" * 34, NOW, {"over/x.yaml": "blob"}),
}


@pytest.mark.parametrize("revision", UNCLEAR.values(), ids=UNCLEAR)
def test_an_object_is_not_even_held_for_deletion_where(revision):
    problem = [Problem("over/x.yaml", 1, "it can't be read")]
    cluster = [live(cache("pages"), path="over/x.yaml"), live(cache("stale"), path="gone.yaml")]
    made = plan([cache("sessions")], cluster, revision=revision, problems=problem)
    assert ops(made) == {"sessions": Op.CREATE, "stale": Op.DELETE}
    assert [hold.refs for hold in made.holds] == [tuple(ref for ref in made.holds[0].refs if ref.name == "stale")]


SERVED = {
    "in another version": (
        "policy/v1beta1",
        {("policy", "v1")},
        "the cluster serves it as policy/v1: change apiVersion",
    ),
    "in another group": (
        "extensions/v1beta1",
        {("policy", "v1")},
        "the cluster serves PodDisruptionBudget as policy/v1: change apiVersion to that, or apply the CRD of this one first",
    ),
    "in none": ("policy/v1beta1", set(), "apply its CRD first, or correct apiVersion"),
}


@pytest.mark.parametrize(("api_version", "served", "hint"), SERVED.values(), ids=SERVED)
def test_a_kind_that_is_not_served_is_told_with_where_it_is_served(api_version, served, hint):
    budget = {"apiVersion": api_version, "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}
    kinds = frozenset(GroupVersionKind(group, version, "PodDisruptionBudget") for group, version in served)
    [problem] = plan([budget], served=kinds).problems
    assert problem.hint.startswith(hint)


def test_waves_write_foundations_first_and_delete_them_last():
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}}
    early = cache("early", annotations={"reconcile.dev/wave": "-1"})
    early["metadata"]["namespace"] = "default"
    gone = live({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone", "namespace": "shop"}})
    made = plan([cache("sessions"), early, config, namespace], [gone])
    assert [[change.ref.name for change in wave] for wave in made.waves()] == [
        ["early"], ["shop"], ["web"], ["sessions"], ["gone"],
    ]  # fmt: skip


# --- what waits for what -------------------------------------------------------------------------


def written_order(made):
    return [sorted(change.ref.name for change in wave) for wave in made.waves()]


def test_an_object_is_written_after_those_that_it_depends_on():
    made = plan([config("a", depends_on="ConfigMap/shop/b"), config("b", depends_on="ConfigMap/c"), config("c")])
    assert written_order(made) == [["c"], ["b"], ["a"]]
    assert [change.gate.needs for change in made.changes if change.ref.name == "b"] == [
        (ObjectRef("", "ConfigMap", "shop", "c"),)
    ]


def test_an_object_never_comes_before_the_namespace_that_the_same_plan_makes():
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    assert written_order(plan([config("early", wave="-5"), namespace])) == [["shop"], ["early"]]


def test_a_cycle_is_named_from_file_to_file_and_the_rest_goes_on():
    made = plan(
        [config("a", depends_on="ConfigMap/b"), config("b", depends_on="ConfigMap/a"), config("c")],
        [live(config("a")), live(config("b"))],
    )
    assert written_order(made) == [["c"]]
    assert [change.op for change in made.changes] == [Op.CREATE]  # neither of the two is deleted
    (problem,) = made.problems
    assert "ConfigMap shop/a -> ConfigMap shop/b -> ConfigMap shop/a" in str(problem)
    assert str(problem).startswith("caches.yaml:1:")


def test_depending_on_what_no_file_asks_for_is_a_problem():
    made = plan([config("a", depends_on="Deployment.apps/shop/web"), config("c")])
    assert ops(made) == {"c": Op.CREATE}
    assert "depends on Deployment.apps shop/web, which isn't in this source" in str(made.problems[0])


def test_what_depends_on_an_unusable_object_is_blocked_and_says_so():
    made = plan([config("a", depends_on="ConfigMap/b"), config("b", depends_on="nonsense")])
    (change,) = made.changes
    assert "it depends on ConfigMap shop/b" in change.gate.blocked


def test_a_part_of_the_source_waits_for_nothing_outside_and_runs_no_hook():
    made = plan([config("a", depends_on="Deployment.apps/shop/web", wave="2"), hook("pre-sync")], whole=False)
    assert ops(made) == {"a": Op.CREATE}
    assert (made.problems, made.schedule.barriers) == ((), frozenset())


def test_waves_are_barriers_and_phases_are_not_but_for_admission():
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}}
    made = plan([config("a"), deployment, cache("sessions"), config("later", wave="1")])
    assert written_order(made) == [["a"], ["web"], ["sessions"], ["later"]]
    assert made.schedule.barriers == {3}


def workload(name, **labels):
    template = {"metadata": {"labels": {"app": name, **labels}}}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template}}


SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "hooks", "namespace": "shop"},
    "spec": {"selector": {"app": "hooks"}},
}
WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "hooks"},
    "webhooks": [{"clientConfig": {"service": {"namespace": "shop", "name": "hooks"}}}],
}
BACKEND = ObjectRef("apps", "Deployment", "shop", "hooks")


def needs_of_webhook(made):
    return next(
        change.gate.needs for change in made.changes if change.ref.name == "hooks" and "Webhook" in change.ref.kind
    )


def test_a_webhook_waits_for_the_workload_behind_its_own_service_and_for_nothing_else():
    made = plan([WEBHOOK, SERVICE, workload("hooks"), workload("slow"), cache("sessions")])
    assert needs_of_webhook(made) == (BACKEND,)
    assert made.schedule.barriers == frozenset()


def test_a_new_webhook_waits_for_a_workload_that_an_interrupted_sync_made_and_one_that_changes_does_not():
    there = [live(SERVICE), live(workload("hooks"))]
    asked = [WEBHOOK, SERVICE, workload("hooks")]
    unsure = plan(asked, there)  # the schemas of built-in kinds aren't known here
    verdicts = {change.ref: (change.provenance.key, "7") for change in unsure.changes}
    made = plan(asked, there, verdicts=verdicts)
    assert needs_of_webhook(made) == (BACKEND,)
    assert [change.ref for change in made.schedule.awaited] == [BACKEND]  # it has no status yet
    changed = [*there, live({**WEBHOOK, "webhooks": []}, resourceVersion="8")]
    assert needs_of_webhook(plan(asked, changed, verdicts=verdicts)) == ()
    changed = [WEBHOOK, SERVICE, workload("hooks", version="2")]
    assert needs_of_webhook(plan(changed, [*there, live({**WEBHOOK, "webhooks": []})])) == (BACKEND,)


def test_deletions_run_backwards_through_waves_and_dependencies():
    gone = [
        live(config("base")),
        live(config("user", depends_on="ConfigMap/base")),
        live(config("late", wave="3")),
    ]
    made = plan([cache("stays")], [*gone, live(cache("stays"))])
    assert written_order(made) == [["late"], ["user"], ["base"]]
    (base,) = [change for change in made.changes if change.ref.name == "base"]
    assert base.gate.needs == (ObjectRef("", "ConfigMap", "shop", "user"),)


# --- hooks -----------------------------------------------------------------------------------------


def test_hooks_stand_before_and_after_all_else():
    made = plan([config("a", wave="-9"), hook("pre-sync"), hook("post-sync", "notify"), config("z", wave="9")])
    assert written_order(made) == [["migrate"], ["a"], ["z"], ["notify"]]
    assert made.schedule.barriers == {1, 2, 3}


def test_a_hook_that_ran_for_these_files_is_no_difference_whatever_became_of_it():
    first = plan([hook("pre-sync")])
    ran = live(first.changes[0].intent)
    touched = {**ran, "spec": {"template": {"changed": True}}}
    assert ops(plan([hook("pre-sync")], [touched])) == {"migrate": Op.UNCHANGED}
    other_files = plan([written(hook("pre-sync"), "other.yaml")], [touched])
    assert ops(other_files) == {"migrate": Op.REPLACE}


def test_a_hook_for_failures_is_no_change_but_kept_at_hand():
    made = plan([config("a"), hook("sync-fail")])
    assert ops(made) == {"a": Op.CREATE}
    assert [change.ref.name for change in made.schedule.fallbacks] == ["migrate"]


ODD_HOOKS = {
    "another kind": ({**config("x", hook="pre-sync")}, "only a Job can be a hook"),
    "another word": (hook("before"), "pre-sync, sync, post-sync, sync-fail"),
    "a Job that vanishes": (
        {**hook("pre-sync"), "spec": {"ttlSecondsAfterFinished": 5}},
        "the Job is the record that the hook ran",
    ),
}


@pytest.mark.parametrize(("manifest", "said"), ODD_HOOKS.values(), ids=ODD_HOOKS)
def test_a_hook_that_cannot_work_is_a_problem(manifest, said):
    made = plan([manifest])
    assert made.changes == ()
    assert said in str(made.problems[0])


# --- other sets ------------------------------------------------------------------------------------

OTHER = Sync(name="other", namespace="shop")
OTHER_ID = applyset_id(OTHER.ref)


def test_another_set_is_named_by_its_sync_where_that_is_known():
    there = [live(config("a"), set_id=OTHER_ID)]
    (change,) = plan([config("a", color="x")], there, sets={OTHER_ID: OTHER.ref}).changes
    assert change.provenance.foreign == OTHER_ID
    assert "it belongs to Sync shop/other" in change.gate.blocked
    assert "reconcile.dev/moved-from: shop/other" in change.gate.blocked


def test_a_preview_outside_any_set_says_whose_an_object_is_that_it_would_change():
    there = [live(config("a"), set_id=OTHER_ID)]
    asked = [config("a", color="x")]
    (change,) = plan(asked, there, grouped=False).changes
    assert (change.op, change.provenance.foreign, change.gate.blocked) == (Op.UPDATE, OTHER_ID, "")
    inputs = inputs_of(asked, there, grouped=False)
    made = build(inputs)
    _, explained = take(inputs, made, decide(inputs, made), Answers(sets={OTHER_ID: OTHER.ref}))
    (told,) = explained.changes
    assert told.provenance.foreign == "Sync shop/other"


def test_what_cannot_be_read_is_neither_created_nor_called_unchanged():
    made = plan(
        [config("a"), config("b")], unreadable={ObjectRef("", "ConfigMap", "shop", "a"): "configmaps is forbidden"}
    )
    refused, new = made.changes
    assert (refused.op, refused.gate.blocked, refused.writes) == (
        Op.UNCHANGED,
        "it can't be read: configmaps is forbidden",
        False,
    )
    assert (new.ref.name, new.op) == ("b", Op.CREATE)
    assert not made.is_clean


def test_a_child_that_cannot_be_read_is_said_to_be_in_the_way():
    cr = live(cache("sessions"))
    deployment = ObjectRef("apps", "Deployment", "shop", "sessions")
    made = children_plan(cr, [cr], unreadable={deployment: "deployments is forbidden"})
    (refused,) = [change for change in made.changes if change.ref == deployment]
    assert (refused.op, refused.gate.blocked) == (Op.UNCHANGED, "it can't be read: deployments is forbidden")
    conditions = {each["type"]: each for each in made.outcomes.statuses[0].after["status"]["conditions"]}
    assert "can't be read" in conditions["Stalled"]["message"]


def test_an_object_moves_here_if_it_says_from_where():
    there = [live(config("a"), set_id=OTHER_ID)]
    (change,) = plan([config("a", moved_from="shop/other")], there).changes
    assert (change.op, change.gate.blocked) == (Op.UPDATE, "")
    assert change.intent["metadata"]["labels"][PART_OF] == SHOP_ID
    (refused,) = plan([config("a", moved_from="shop/third")], there).changes
    assert refused.gate.blocked


def test_its_old_home_lets_go_without_deleting_whatever_comes_first():
    moved = live(config("a", moved_from="shop/shop"), set_id=OTHER_ID)
    assert ops(plan([config("a")], [moved])) == {"a": Op.UNCHANGED}  # the file is still there
    assert ops(plan([cache("b")], [moved, live(cache("b"))])) == {"b": Op.UNCHANGED}  # the file has gone
    leaving = [config("a", moved_to="shop/other")]
    assert ops(plan(leaving)) == {"a": Op.UNCHANGED}
    assert ops(plan(leaving, [live(config("a"), set_id=OTHER_ID)])) == {"a": Op.UNCHANGED}  # taken over


def test_who_gives_an_object_away_writes_onto_it_to_whom():
    (change,) = plan([config("a", moved_to="far/other")], [live(config("a"))]).changes
    assert change.op is Op.UPDATE
    assert change.intent["metadata"]["annotations"]["reconcile.dev/moved-to"] == "far/other"
    stolen = [live(config("a", moved_from="shop/shop"), set_id=applyset_id(Sync(name="thief", namespace="far").ref))]
    (refused,) = plan([config("a", moved_to="far/other")], stolen).changes
    assert refused.gate.blocked, "it went elsewhere than was said"


FAR = Sync(name="far", namespace="elsewhere")
FAR_ID = applyset_id(FAR.ref)


def test_an_object_of_another_namespaces_sync_is_taken_only_if_that_gives_it_away():
    arriving = [config("a", moved_from="elsewhere/far")]
    (refused,) = plan(arriving, [live(config("a"), set_id=FAR_ID)]).changes
    assert not refused.writes
    assert refused.gate.blocked == (
        "it belongs to Sync elsewhere/far, which hasn't released it; annotate it there with reconcile.dev/moved-to: shop/shop, "
        "or remove it there first"
    )
    given = [live(config("a", moved_to="shop/shop"), set_id=FAR_ID)]
    (taken,) = plan(arriving, given).changes
    assert (taken.op, taken.gate.blocked) == (Op.UPDATE, "")
    to_another = [live(config("a", moved_to="shop/another"), set_id=FAR_ID)]
    assert plan(arriving, to_another).changes[0].gate.blocked


def test_an_object_of_a_sync_that_is_gone_is_taken():
    arriving, there = [config("a", moved_from="elsewhere/far")], [live(config("a"), set_id=FAR_ID)]
    (taken,) = plan(arriving, there, gone=frozenset({FAR.ref})).changes
    assert (taken.op, taken.gate.blocked) == (Op.UPDATE, "")
    another = frozenset({Sync(name="another", namespace="elsewhere").ref})
    assert plan(arriving, there, gone=another).changes[0].gate.blocked


def test_what_holds_other_things_is_replaced_only_if_it_says_so_itself():
    replacing = Sync(name="shop", namespace="shop", replace=True)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"a": "b"}}}
    said = {**namespace, "metadata": {**namespace["metadata"], "annotations": {"reconcile.dev/replace": "true"}}}
    assert [change.gate.replaceable for change in plan([config("a"), namespace], sync=replacing).changes] == [
        False,
        True,
    ]
    assert [change.gate.replaceable for change in plan([said]).changes] == [True]
    (never,) = plan([config("a", replace="false")], sync=replacing).changes
    assert not never.gate.replaceable


def test_phases_of_kinds():
    assert KINDS[MEMCACHED].phase is Phase.CUSTOM
    assert KINDS[GroupVersionKind("", "v1", "Namespace")].phase is Phase.FOUNDATION
    assert KINDS[GroupVersionKind("apps", "v1", "Deployment")].phase is Phase.WORKLOAD


MODULES = {memcached.gvk: memcached}


def test_a_preview_of_a_new_cr_shows_the_children_that_its_module_makes():
    made = plan([cache("sessions", size=3)], modules=MODULES)
    children = {change.ref.kind: change for change in made.changes if change.provenance.owner}
    assert set(children) == {"Deployment", "Service"}
    assert children["Deployment"].after["spec"]["replicas"] == 3
    assert children["Deployment"].provenance.manager == "kubectl-reconcile-memcached"
    assert children["Deployment"].after["metadata"]["labels"][MODULE_LABEL] == "memcached"


def children_of(cr):
    """The CR and its children, as the cluster holds them after a sync."""
    made = plan([cr], [live(cr)], modules=MODULES)
    changes = [change for change in made.changes if change.provenance.owner]
    return [live(change.after, uid=change.ref.kind, set_id="", manager=change.provenance.manager) for change in changes]


def test_a_changed_size_shows_in_the_deployment_too():
    before = cache("sessions", size=2)
    made = plan([cache("sessions", size=5)], [live(before), *children_of(before)], modules=MODULES)
    changed = {
        str(change.ref.kind): [str(field.path) for field in change.fields]
        for change in made.changes
        if change.op is Op.UPDATE
    }
    assert changed["Memcached"] == [".spec.size"]
    assert ".spec.replicas" in changed["Deployment"]


def test_deleting_a_cr_shows_what_the_garbage_collector_takes_along():
    before = cache("sessions")
    made = plan([cache("pages")], [live(before), *children_of(before), live(cache("pages"))])
    gone = {change.ref.kind: change.gate.cascade for change in made.changes if change.op is Op.DELETE}
    assert gone == {"Memcached": False, "Deployment": True, "Service": True}


def test_a_child_that_somebody_else_controls_is_blocked():
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sessions", "namespace": "shop"}}
    owner = {"apiVersion": "v1", "kind": "Other", "name": "boss", "uid": "b", "controller": True}
    taken = live(foreign, set_id="", ownerReferences=[owner])
    made = plan([cache("sessions")], [taken], modules=MODULES)
    (service,) = [change for change in made.changes if change.ref.kind == "Service"]
    assert service.gate.blocked == "it is controlled by Other boss, not by Memcached.cache.example.com shop/sessions"


def children_plan(cr, cluster, **more):
    inputs = known(
        sync=Sync(name="", namespace="shop"),
        revision=Revision("", "", {}),
        desired=(),
        live=Objects(cluster),
        kinds=KINDS,
        modules=MODULES,
        now=NOW,
        grouped=False,
        **more,
    )
    return build_children(inputs, cr)


def test_an_invalid_spec_leaves_children_alone_and_says_so_in_the_status():
    cr = live(cache("sessions", size=2))
    bad = {**cr, "spec": {"size": -1}}
    made = children_plan(bad, [bad, *children_of(cache("sessions", size=2))])
    assert made.changes == ()
    assert ".spec.size" in str(made.problems[0])
    conditions = {each["type"]: each for each in made.outcomes.statuses[0].after["status"]["conditions"]}
    assert conditions["Degraded"]["status"] == "True"
    assert ".spec.size" in conditions["Degraded"]["message"]


def test_a_status_that_says_nothing_new_is_not_written():
    cr = live(cache("sessions"))
    first = children_plan(cr, [cr, *children_of(cache("sessions"))])
    told = {**cr, "status": first.outcomes.statuses[0].after["status"]}
    assert children_plan(told, [told, *children_of(cache("sessions"))]).outcomes.statuses == ()


names = st.lists(st.sampled_from([f"cache-{number}" for number in range(6)]), unique=True)


@given(names, names, st.integers(0, 3))
def test_the_same_inputs_give_the_same_plan(desired, existing, size):
    cluster = [live(cache(name)) for name in existing]
    first, again = (plan([cache(name, size) for name in desired], cluster) for _ in range(2))
    assert first == again
    assert first.hash == again.hash


@given(names, names)
def test_a_plan_creates_what_is_missing_and_deletes_what_is_left_over(desired, existing):
    made = plan([cache(name) for name in desired], [live(cache(name)) for name in existing])
    found = ops(made)
    assert {name for name, op in found.items() if op is Op.CREATE} == set(desired) - set(existing)
    assert {name for name, op in found.items() if op is Op.DELETE} == set(existing) - set(desired)


# --- fields that somebody else keeps overwriting ---


def overwritten(size):
    """The cache as it is after a rival set its size."""
    found = live(cache("sessions", size=size))
    mine, of_rival = found["metadata"]["managedFields"][0], {"f:spec": {"f:size": {}}}
    kept = {name: below for name, below in mine["fieldsV1"].items() if name != "f:spec"}
    entries = [{**mine, "fieldsV1": kept}, {**mine, "manager": "rival", "operation": "Update", "fieldsV1": of_rival}]
    return {**found, "metadata": {**found["metadata"], "managedFields": entries}}


SESSIONS = ObjectRef("cache.example.com", "Memcached", "shop", "sessions")
CONTEST = Contention(SESSIONS, FieldPath.fields("spec", "size"), "rival", 10, NOW)


def test_a_contended_field_is_left_out_and_the_others_are_put_back():
    desired = cache("sessions", size=2)
    desired["spec"]["image"] = "memcached:1"
    (change,) = plan([desired], [overwritten(9)], contentions={SESSIONS: (CONTEST,)}).changes
    assert [str(field.path) for field in change.fields] == [".spec.image"]
    assert change.intent["spec"] == {"image": "memcached:1"}
    assert ops(plan([desired], [overwritten(9)])) == {"sessions": Op.UPDATE}


def test_a_contest_over_a_field_that_is_as_it_should_be_is_settled():
    made = plan([cache("sessions", size=2)], [overwritten(2)], contentions={SESSIONS: (CONTEST,)})
    assert made.settled == (CONTEST,)
    assert made.changes[0].intent["spec"] == {"size": 2}
    assert plan([cache("sessions", size=2)], [overwritten(9)], contentions={SESSIONS: (CONTEST,)}).settled == ()


def test_a_verdict_under_a_ceasefire_holds_only_as_long_as_that():
    desired = [cache("sessions", size=2)]
    left = plan(desired, [overwritten(9)], contentions={SESSIONS: (CONTEST,)})
    at_rest = live(cache("sessions", size=9))
    at_rest["metadata"]["managedFields"][0]["fieldsV1"].pop("f:spec")
    left = plan(desired, [at_rest], contentions={SESSIONS: (CONTEST,)})
    assert ops(left) == {"sessions": Op.UNCHANGED}
    assert ops(plan(desired, [at_rest], verdicts=left.verdicts)) == {"sessions": Op.UPDATE}


BAD_OPTIONS = {
    "a wave that isn't a number is taken as 0": ({"wave": "soon"}, "must be an integer, not 'soon'", {"a": Op.CREATE}),
    "a flag with a capital": ({"prune": "False"}, '"true" or "false", not \'False\'', {}),
    "a move from nowhere": ({"moved_from": "old"}, "NAMESPACE/NAME", {}),
    "a policy that there isn't": ({"conflicts": "Win"}, "Override, Yield or Fail", {}),
}


@pytest.mark.parametrize(("annotations", "words", "written"), BAD_OPTIONS.values(), ids=BAD_OPTIONS)
def test_an_annotation_that_cannot_be_meant_is_a_problem_with_its_line(annotations, words, written):
    made = plan([config("z"), config("a", **annotations)])
    (problem,) = made.problems
    assert words in str(problem)
    assert str(problem).startswith("caches.yaml:11: ConfigMap shop/a: ")
    assert ops(made) == {"z": Op.CREATE, **written}


def test_an_object_with_such_an_annotation_is_not_deleted_either():
    assert plan([config("z"), config("a", prune="no")], [live(config("a"))]).counts()[Op.DELETE] == 0


@pytest.mark.parametrize(
    ("policy", "blocked", "fields"),
    [(None, False, 1), ("Override", False, 1), ("Yield", False, 0), ("Fail", True, 1)],
)
def test_an_object_may_have_a_policy_of_its_own_for_conflicts(policy, blocked, fields):
    annotations = {"conflicts": policy} if policy else {}
    asked = {**config("a", **annotations), "data": {"color": "red"}}
    held = live(asked)
    theirs = {
        "manager": "another", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:color": {}}},
    }  # fmt: skip
    [ours] = held["metadata"]["managedFields"]
    rest = {**ours, "fieldsV1": {name: below for name, below in ours["fieldsV1"].items() if name != "f:data"}}
    metadata = {**held["metadata"], "managedFields": [rest, theirs]}
    made = plan([asked], [{**held, "data": {"color": "blue"}, "metadata": metadata}])
    (change,) = made.changes
    data = [each for each in change.fields if each.path[0] == "f:data"]
    assert (bool(change.gate.blocked), len(data)) == (blocked, fields)


def test_an_object_with_our_label_where_the_set_has_never_been_is_no_member():
    forged = live(cache("pages"))
    assert "pages" in ops(plan([cache("sessions")], [live(cache("sessions")), forged], places={"shop"}))
    assert "pages" not in ops(plan([cache("sessions")], [live(cache("sessions")), forged], places={"elsewhere"}))
