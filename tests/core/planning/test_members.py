"""What becomes of each object that Git asks for, by what it says of itself: sentences, marks, places and verdicts."""

import pytest
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.revision import Revision
from kubectl_reconcile.core.objects import FIELD_MANAGER, FieldPath, GroupVersionKind, ObjectRef, Severity
from kubectl_reconcile.core.planning.kinds import CRD, Kind, kinds_of_crd
from kubectl_reconcile.core.planning.plan import Contention, Op
from kubectl_reconcile.core.planning.planner import build_removal
from kubectl_reconcile.core.planning.snapshot import Objects
from kubectl_reconcile.core.resources.applyset import PART_OF, member
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, Reason, three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd
from tests.core.planning.changes import known
from tests.core.planning.services import KINDS, NOW, OTHER, OTHER_ID, SHOP, SHOP_ID, live, only, plan, service

SERVICES = GroupVersionKind("", "v1", "Service")
WEB = ObjectRef("", "Service", "shop", "web")


def sized(text, **more):
    return {**service(**more), "spec": {"type": text}}


# --- where it stands ---


HERE = live(sized("x"), source="b.yaml")


@pytest.mark.parametrize("cluster", [[], [HERE], [live(sized("y"))]], ids=["new", "there", "changed"])
def test_a_change_names_its_file_and_line(cluster):
    change = only(plan([service("first"), sized("x")], cluster))
    assert (change.provenance.file, change.provenance.line) == ("b.yaml", 2)


def test_problems_are_told_at_the_object_that_has_them():
    made = plan([service("first"), service("late", wave="soon"), service("odd", depends_on="nonsense")])
    told = [(each.path, each.line) for each in made.problems]
    assert told == [("b.yaml", 2), ("c.yaml", 3)]
    assert {each.severity for each in made.problems} == {Severity.ERROR}
    assert made.problems[0].message.startswith("Service shop/late: ")
    assert made.problems[0].hint.endswith("; until then 0 is used")
    assert made.problems[1].hint.endswith("; until then the object is left alone")
    assert sorted(change.ref.name for change in made.changes) == ["first", "late"]


TWICE = "Service shop/web is also in a.yaml:1"


def test_what_is_asked_for_twice_is_told_at_the_second_and_neither_written_nor_deleted():
    made = plan([service(), service(), service("other")], [live(service())])
    assert [(each.path, each.line, each.message, each.hint) for each in made.problems] == [
        ("b.yaml", 2, TWICE, "keep one of the two")
    ]
    assert [change.ref.name for change in made.changes] == ["other"]


def noted_by_helm(manifest, **noted):
    names = {f"helm.sh/{name.replace('_', '-')}": text for name, text in noted.items()}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": names}}


HOOK_AND_MEMBER = {
    "the hook first": (lambda hook, plain: [hook, plain], "a.yaml"),
    "the member first": (lambda hook, plain: [plain, hook], "b.yaml"),
}


@pytest.mark.parametrize(("order", "told"), HOOK_AND_MEMBER.values(), ids=HOOK_AND_MEMBER)
def test_of_a_hook_and_a_member_of_one_name_the_member_is_applied_where_the_hook_would_be(order, told):
    hook = noted_by_helm(sized("ExternalName"), hook="pre-install,pre-upgrade")
    made = plan([*order(hook, sized("ClusterIP")), service("other")])
    change = only(made)
    assert (change.op, change.after["spec"]["type"]) == (Op.CREATE, "ClusterIP")
    assert change.gate.wave < only(made, "other").gate.wave
    assert [(each.path, each.severity) for each in made.problems] == [(told, Severity.WARNING)]


def test_a_hook_after_all_else_takes_no_member_of_its_name_along():
    made = plan([sized("ClusterIP"), noted_by_helm(sized("ExternalName"), hook="post-install"), service("other")])
    assert only(made).gate.wave == only(made, "other").gate.wave


def test_a_hook_that_never_runs_here_leaves_the_member_of_its_name_alone():
    made = plan([noted_by_helm(service(), hook="pre-delete"), sized("ClusterIP")], [live(sized("ExternalName"))])
    assert (only(made).op, only(made).provenance.file) == (Op.UPDATE, "b.yaml")
    assert not [each for each in made.problems if "is also in" in each.message]


def test_a_hook_that_never_runs_here_is_never_deleted_either():
    made = plan([noted_by_helm(service(), hook="pre-delete"), service("other")], [live(service())])
    assert [change.ref.name for change in made.changes] == ["other"]


def test_a_job_that_runs_and_a_member_of_its_name_are_both_left_alone():
    job = service("load", "batch/v1/Job")
    made = plan([noted_by_helm(job, hook="pre-install"), job, service("other")])
    assert [change.ref.name for change in made.changes] == ["other"]
    assert [each.severity for each in made.problems if "is also in" in each.message] == [Severity.ERROR]


def test_an_object_of_a_kind_that_is_not_known_is_not_deleted_by_that():
    unknown = {gvk: kind for gvk, kind in KINDS.items() if gvk.kind != "Job"}
    newer = service("load", "batch/v2/Job")
    made = plan([newer, service()], [live(service("load", "batch/v1/Job"))], kinds=unknown | {})
    assert [change.ref.name for change in made.changes] == ["web"]
    assert made.problems[0].message == "the cluster knows no kind Job batch/v2"


def test_a_namesake_of_another_kind_is_deleted_all_the_same():
    made = plan([service("load", "batch/v2/Job"), service()], [live(service("load"))])
    assert [(change.ref.kind, change.op) for change in made.changes if change.ref.name == "load"] == [
        ("Service", Op.DELETE)
    ]


# --- marks and namespaces ---

NAMESPACES = {
    "its own": ("shop", "ops", "shop"),
    "the one that the Sync targets": ("", "ops", "ops"),
    "that of the Sync": ("", "", "shop"),
}


@pytest.mark.parametrize(("own", "target", "namespace"), NAMESPACES.values(), ids=NAMESPACES)
def test_an_object_goes_to(own, target, namespace):
    sync = Sync(name="shop", namespace="shop", target_namespace=target)
    change = only(plan([service(namespace=own)], sync=sync))
    assert (change.ref.namespace, change.intent["metadata"]["namespace"]) == (namespace, namespace)


def test_a_cluster_scoped_object_goes_to_no_namespace():
    change = only(plan([service("reader", "rbac.authorization.k8s.io/v1/ClusterRole", namespace="")]), "reader")
    assert (change.ref.namespace, "namespace" in change.intent["metadata"]) == ("", False)


def test_a_preview_outside_a_sync_keeps_the_marks_that_are_there_and_adds_none():
    assert "labels" not in only(plan([service()], grouped=False)).intent["metadata"]
    kept = only(plan([sized("x")], [live(sized("y"), source="old.yaml")], grouped=False)).intent["metadata"]
    assert (kept["labels"], kept["annotations"]) == ({PART_OF: SHOP_ID}, {"reconcile.dev/source": "old.yaml"})
    bare = only(plan([sized("x")], [live(sized("y"), set_id="")], grouped=False)).intent["metadata"]
    assert "labels" not in bare


# --- whose it is ---

FOREIGN = "another set, " + OTHER_ID
MOVE = "to move it here, annotate it with reconcile.dev/moved-from: {}, or remove it there first"


def test_an_object_of_another_set_is_left_alone_and_told_how_to_move_it():
    change = only(plan([sized("x")], [live(sized("y"), set_id=OTHER_ID)]))
    assert (change.op, change.provenance.foreign) == (Op.UPDATE, OTHER_ID)
    assert change.gate.blocked == (
        f"it belongs to {FOREIGN}, whose Sync isn't seen; if that was renamed or is gone, "
        f"annotate this object with reconcile.dev/moved-from, or this Sync with reconcile.dev/members-from: {OTHER_ID}"
    )
    known_sync = only(plan([sized("x")], [live(sized("y"), set_id=OTHER_ID)], sets={OTHER_ID: OTHER.ref}))
    assert known_sync.gate.blocked == f"it belongs to Sync shop/other; {MOVE.format('shop/other')}"


def test_an_object_of_another_set_is_told_of_though_nothing_differs():
    change = only(plan([sized("x")], [live(sized("x"), set_id=OTHER_ID)]))
    assert (change.op, bool(change.gate.blocked)) == (Op.UPDATE, True)


def test_an_object_that_says_where_it_comes_from_is_taken():
    change = only(plan([sized("x", moved_from="shop/other")], [live(sized("x"), set_id=OTHER_ID)]))
    assert (change.op, change.gate.blocked, change.provenance.foreign) == (Op.UPDATE, "", "")
    elsewhere = only(plan([sized("x", moved_from="shop/third")], [live(sized("x"), set_id=OTHER_ID)]))
    assert elsewhere.gate.blocked


BY_ID = ObjectRef("reconcile.dev", "Sync", "", OTHER_ID)
RENAMED = {
    "its own word": (sized("x", moved_from=OTHER_ID), SHOP),
    "the word of its Sync for all objects": (sized("x"), replace(SHOP, members_from=BY_ID)),
    "the old name, for all objects": (sized("x"), replace(SHOP, members_from=OTHER.ref)),
}


@pytest.mark.parametrize(("wanted", "sync"), RENAMED.values(), ids=RENAMED)
def test_an_object_of_a_sync_that_was_renamed_is_taken_by(wanted, sync):
    there = [live(sized("x"), set_id=OTHER_ID)]
    change = only(plan([wanted], there, sync=sync, gone=frozenset({BY_ID, OTHER.ref})))
    assert (change.op, change.gate.blocked) == (Op.UPDATE, "")
    assert change.after["metadata"]["labels"][PART_OF] == SHOP_ID


def test_the_id_of_a_set_whose_sync_is_there_takes_nothing():
    change = only(plan([sized("x", moved_from=OTHER_ID)], [live(sized("x"), set_id=OTHER_ID)]))
    assert change.gate.blocked == (
        f"it belongs to the set {OTHER_ID}, whose Sync hasn't released it; "
        "annotate it there with reconcile.dev/moved-to: shop/shop, or remove it there first"
    )
    given = live(sized("x", moved_to="shop/shop"), set_id=OTHER_ID)
    assert not only(plan([sized("x", moved_from=OTHER_ID)], [given])).gate.blocked


def test_an_object_that_goes_elsewhere_is_kept_up_until_it_has_moved_and_then_left_alone():
    leaving = [sized("x", moved_to="shop/other")]
    change = only(plan(leaving, [live(sized("y"))]))
    assert change.op is Op.UPDATE
    moved = only(plan(leaving, [live(sized("y"), set_id=OTHER_ID)]))
    assert (moved.op, moved.gate.blocked) == (Op.UNCHANGED, "")
    assert moved.kind is KINDS[SERVICES]
    assert only(plan(leaving)).op is Op.UNCHANGED


def test_an_object_whose_new_home_says_so_is_let_go():
    moved = live(sized("y", moved_from="shop/shop"), set_id=OTHER_ID)
    change = only(plan([sized("x")], [moved]))
    assert (change.op, change.gate.blocked) == (Op.UNCHANGED, "")
    assert change.kind is KINDS[SERVICES]


def test_a_preview_outside_a_sync_says_whose_an_object_is_that_it_would_change():
    def whose(set_id):
        return only(plan([sized("x")], [live(sized("y"), set_id=set_id)], grouped=False)).provenance.foreign

    assert (whose(OTHER_ID), whose("")) == (OTHER_ID, "")


def also_by_helm(**more):
    """We applied it once, and Helm has too."""
    found = live(sized("x"), source="a.yaml", **more)
    entries = found["metadata"]["managedFields"]
    helm = {**entries[0], "manager": "helm", "fieldsV1": {"f:spec": {"f:size": {}}}}
    return {**found, "metadata": {**found["metadata"], "managedFields": [*entries, helm]}}


def test_what_a_known_tool_applied_is_taken_over_from_what_is_no_member_yet_and_from_nothing_else():
    assert only(plan([sized("x")], [also_by_helm(set_id="")])).takeover
    member_already = only(plan([sized("x")], [also_by_helm()]))
    assert (member_already.op, member_already.takeover) == (Op.UNCHANGED, ())
    assert not only(plan([sized("y")], [also_by_helm()])).takeover


def test_why_a_field_changes_is_told_by_what_was_applied_last():
    def reason(base):
        (change,) = only(
            plan([sized("x")], [live(sized("y"))], bases={WEB: member(base, set_id=SHOP_ID, source="")})
        ).fields
        return change.reason

    assert (reason(sized("x")), reason(sized("y"))) == (Reason.DRIFT, Reason.GIT)


# --- what it may ask for ---


def conflicting(manager="rival"):
    """Another manager has the field."""
    held = live(service())
    entry = {**held["metadata"]["managedFields"][0], "manager": manager, "fieldsV1": {"f:spec": {"f:type": {}}}}
    metadata = {**held["metadata"], "managedFields": [*held["metadata"]["managedFields"], entry]}
    return {**held, "spec": {"type": "theirs"}, "metadata": metadata}


def test_an_object_has_its_own_word_on_conflicts():
    assert only(plan([sized("x")], [conflicting()])).intent["spec"] == {"type": "x"}
    yielding = only(plan([sized("x", conflicts="yield")], [conflicting()]))
    assert "spec" not in yielding.intent
    assert only(plan([sized("x", conflicts="fail")], [conflicting()])).gate.blocked
    sync = Sync(name="shop", namespace="shop", conflicts=ConflictPolicy.YIELD)
    assert "spec" not in (only(plan([sized("x")], [conflicting()], sync=sync)).intent or {})


REPLACE = {
    "where the Sync says so": (True, "v1/Service", None, True),
    "not where it doesn't": (False, "v1/Service", None, False),
    "where the object says so": (False, "v1/Service", "true", True),
    "not where the object says no": (True, "v1/Service", "false", False),
    "not what holds other things, whatever the Sync says": (True, "v1/Namespace", None, False),
    "what holds other things, where it says so itself": (False, "v1/Namespace", "true", True),
}


@pytest.mark.parametrize(("by_sync", "kind", "own", "allowed"), REPLACE.values(), ids=REPLACE)
def test_deleting_and_making_anew_is_allowed(by_sync, kind, own, allowed):
    sync = Sync(name="shop", namespace="shop", replace=by_sync)
    wanted = service("web", kind, "" if kind.endswith("Namespace") else "shop", **({"replace": own} if own else {}))
    assert only(plan([wanted], sync=sync)).gate.replaceable is allowed


def test_the_manager_is_the_one_that_the_sync_names():
    sync = Sync(name="shop", namespace="shop", field_manager="team-a")
    assert only(plan([service()], sync=sync)).provenance.manager == "team-a"
    assert (
        only(plan([service("load", "batch/v1/Job", hook="pre-sync")], sync=sync), "load").provenance.manager == "team-a"
    )


# --- verdicts ---


def test_a_verdict_is_kept_by_file_place_and_version_and_spares_the_merge():
    made = plan([sized("x")], [live(sized("x"))])
    ((ref, (key, version)),) = made.verdicts.items()
    assert (ref, version) == (ObjectRef("", "Service", "shop", "web"), "7")
    assert key.startswith("blob-a.yaml:a.yaml:1:")
    again = plan([sized("x")], [live(sized("y"))], verdicts=made.verdicts)
    assert (only(again).op, again.verdicts) == (Op.UNCHANGED, made.verdicts)
    assert only(again).labels == {}
    assert (only(again).provenance.file, only(again).provenance.line) == ("a.yaml", 1)


def test_what_a_verdict_spares_is_still_waited_for_and_still_a_hook():
    wanted = [service(), service("b", depends_on="Service/web")]
    cluster = [live(wanted[0]), live(wanted[1], source="b.yaml")]
    made = plan(wanted, cluster)
    again = only(plan(wanted, cluster, verdicts=made.verdicts), "b")
    assert (again.op, again.gate.needs, again.gate.hook) == (
        Op.UNCHANGED,
        (ObjectRef("", "Service", "shop", "web"),),
        "",
    )
    assert again.gate == only(made, "b").gate


def test_a_hook_that_a_verdict_spares_is_a_hook_all_the_same():
    ran = only(plan([hook()]), "load").after
    ran = {**ran, "metadata": {**ran["metadata"], "uid": "u", "resourceVersion": "7"}}
    made = plan([hook()], [ran])
    again = only(plan([hook()], [ran], verdicts=made.verdicts), "load")
    assert (again.op, again.gate) == (Op.UNCHANGED, only(made, "load").gate)
    assert again.gate.hook == "pre-sync"
    assert again.kind is KINDS[GroupVersionKind("batch", "v1", "Job")]


def test_what_a_verdict_spares_is_told_with_its_kind_and_its_labels():
    wanted = {**sized("x"), "metadata": {**sized("x")["metadata"], "labels": {"app": "web"}}}
    made = plan([wanted], [live(wanted)])
    again = only(plan([wanted], [live(wanted)], verdicts=made.verdicts))
    assert (again.op, again.labels) == (Op.UNCHANGED, {"app": "web"})
    assert again.kind is KINDS[GroupVersionKind("", "v1", "Service")]


def test_what_can_not_be_read_is_told_with_its_kind_file_and_line():
    ref = ObjectRef("", "Service", "shop", "web")
    change = only(plan([service("first"), sized("x")], unreadable={ref: "services is forbidden"}))
    assert (change.op, change.gate.blocked) == (Op.UNCHANGED, "it can't be read: services is forbidden")
    assert (change.provenance.file, change.provenance.line) == ("b.yaml", 2)
    assert change.kind is KINDS[ref_kind(ref)]


def ref_kind(ref):
    return GroupVersionKind(ref.group, "v1", ref.kind)


def test_what_the_server_must_refuse_is_left_as_it_is_and_told_with_its_file():
    change = only(plan([service("first"), {**service(), "spec": {"nonsense": 1}}], [live(sized("y"))]))
    assert (change.op, change.gate.blocked) == (Op.UNCHANGED, ".spec.nonsense: no such field in the schema")
    assert change.before == change.after == live(sized("y"))
    assert (change.provenance.file, change.provenance.line) == ("b.yaml", 2)


def test_an_update_tells_what_was_before_what_comes_after_and_what_is_sent():
    there = live(sized("y"))
    change = only(plan([sized("x")], [there]))
    assert (change.before, change.after["spec"], change.intent["spec"]) == (there, {"type": "x"}, {"type": "x"})


# --- kinds that a revision brings, or changes ---


def definition(group, kind, plural, spec):
    """A CRD of *kind* whose spec is as the schema *spec* has it."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def crd(*names):
    """The CRD of Things whose spec has fields of these *names*."""
    fields = {"properties": {name: {"type": "string"} for name in names}}
    return definition("example.com", "Thing", "things", fields)


CRDS = GroupVersionKind(CRD.group, "v1", CRD.kind)
OF_CRDS = schema_of_crd(
    definition(CRD.group, CRD.kind, "customresourcedefinitions", {"x-kubernetes-preserve-unknown-fields": True}), "v1"
)
SERVED = kinds_of_crd(crd("text"))
(THING,) = SERVED.values()


def things(*desired, made_by=None):
    """The plan where Things with a text are served already, by the CRD *made_by*."""
    kinds = KINDS | SERVED | {CRDS: Kind(CRDS, "customresourcedefinitions", namespaced=False, schema=OF_CRDS)}
    cluster = [live_crd(made_by)] if made_by else []
    return plan(desired, cluster, kinds=kinds)


def live_crd(manifest):
    marked = member(manifest, set_id=SHOP_ID, source="a.yaml")
    owned = three_way(desired=marked, live=None, schema=OF_CRDS).owned.to_wire()
    entry = {"manager": FIELD_MANAGER, "operation": "Apply", "apiVersion": CRDS.api_version}
    facts = {"uid": "u", "resourceVersion": "7"}
    entries = [{**entry, "fieldsType": "FieldsV1", "fieldsV1": owned}]
    return {**marked, "metadata": {**marked["metadata"], **facts, "managedFields": entries}}


NEWER = {**service("one", "example.com/v1/Thing"), "spec": {"text": "x", "more": "y"}}


def test_a_field_that_a_changed_crd_brings_is_known_to_the_objects_beside_it():
    made = things(crd("text", "more"), NEWER, made_by=crd("text"))
    assert not made.problems
    assert (only(made, "one").op, only(made, "one").intent["spec"]) == (Op.CREATE, NEWER["spec"])
    assert only(made, "one").kind is not THING


def versions(*names):
    """The CRD of Things that serves these versions."""
    one = crd("text")
    found = [{**one["spec"]["versions"][0], "name": name, "storage": name == names[-1]} for name in names]
    return {**one, "spec": {**one["spec"], "versions": found}}


@pytest.mark.parametrize("set_id", [SHOP_ID, "somebody-elses"])
def test_an_object_of_a_version_that_its_crd_stops_to_serve_is_told_and_stays(set_id):
    both = versions("v1", "v2")
    kinds = {
        **KINDS,
        **kinds_of_crd(both),
        CRDS: Kind(CRDS, "customresourcedefinitions", namespaced=False, schema=OF_CRDS),
    }
    definition = live_crd(both)
    definition["metadata"]["labels"] = {PART_OF: set_id}
    old = {**service("one", "example.com/v1/Thing"), "spec": {"text": "x"}}
    there = {**member(old, set_id=SHOP_ID, source="a.yaml")}
    there["metadata"] |= {"namespace": "shop", "uid": "t", "resourceVersion": "1"}
    made = plan([versions("v2"), old], [definition, there], kinds=kinds)
    if set_id == SHOP_ID:
        (told,) = made.problems
        assert told.message == "its CRD stops serving Thing example.com/v1"
        assert told.hint.startswith("the cluster serves it as example.com/v2: ")
        assert [change.ref.name for change in made.changes] == ["things.example.com"]
    else:  # that CRD is left alone, and goes on serving both
        assert not made.problems


def test_where_the_crd_is_what_it_was_its_kind_stays_as_the_server_has_it():
    made = things(crd("text"), {**NEWER, "spec": {"text": "x"}}, made_by=crd("text"))
    assert only(made, "things.example.com").op is Op.UNCHANGED
    assert only(made, "one").kind is THING


def test_an_object_never_comes_before_the_crd_that_the_same_plan_makes():
    late = {**crd("text"), "metadata": {"name": "things.example.com", "annotations": {"reconcile.dev/wave": "5"}}}
    made = things(late, {**NEWER, "spec": {"text": "x"}}, service())
    assert [change.ref.name for change in made.changes] == ["web", "things.example.com", "one"]


def test_a_crd_that_is_not_there_though_its_kind_is_served_changes_nothing_of_it():
    assert only(things(crd("text", "more"), {**NEWER, "spec": {"text": "x"}}), "one").kind is THING


MOVES = {
    "another version of the object": {"cluster": [live(sized("y"), version="8")]},
    "another Sync's rules": {"sync": Sync(name="shop", namespace="shop", conflicts=ConflictPolicy.YIELD)},
    "a contended field": {
        "contentions": {
            ObjectRef("", "Service", "shop", "web"): (
                Contention(ObjectRef("", "Service", "shop", "web"), FieldPath.fields("spec", "size"), "rival", 10, NOW),
            )
        }
    },
}


@pytest.mark.parametrize("moved", MOVES.values(), ids=MOVES)
def test_a_verdict_does_not_outlive(moved):
    verdicts = plan([sized("x")], [live(sized("x"))]).verdicts
    found = {"cluster": [live(sized("y"))], **moved}
    assert only(plan([sized("x")], verdicts=verdicts, **found)).op is Op.UPDATE


def test_nothing_that_changes_is_a_verdict():
    assert plan([sized("x")], [live(sized("y"))]).verdicts == {}
    assert plan([sized("x")], [live(sized("x"), set_id=OTHER_ID)]).verdicts == {}


# --- order ---


def test_what_depends_on_what_can_not_be_used_is_blocked_and_says_why():
    made = plan([service("a", conflicts="nonsense"), service("b", depends_on="Service/shop/a")])
    assert only(made, "b").gate.blocked == "it depends on Service shop/a, which can't be used as it is"
    assert only(made, "b").gate.needs == (ObjectRef("", "Service", "shop", "a"),)


def test_what_is_another_set_s_is_told_so_whatever_it_depends_on():
    wanted = service("b", depends_on="Service/shop/a")
    made = plan([service("a", conflicts="nonsense"), wanted], [live(wanted, set_id=OTHER_ID)])
    assert only(made, "b").gate.blocked.startswith("it belongs to another set")


def test_a_dependency_in_another_namespace_is_not_a_namesake_in_this_one():
    (problem,) = plan([service("a", depends_on="Service/ops/b"), service("b")]).problems
    assert problem.message == "Service shop/a depends on Service ops/b, which isn't in this source"


def test_what_is_as_it_should_be_is_not_blocked_by_what_it_depends_on():
    wanted = service("b", depends_on="Service/shop/a")
    made = plan([service("a", conflicts="nonsense"), wanted], [live(wanted, source="b.yaml")])
    assert (only(made, "b").op, only(made, "b").gate.blocked) == (Op.UNCHANGED, "")
    assert only(made, "b").gate.needs == (ObjectRef("", "Service", "shop", "a"),)


def test_a_dependency_that_nobody_asks_for_is_told_with_what_to_do():
    (problem,) = plan([service(depends_on="Service/shop/ghost"), service("other")]).problems
    assert problem.message == "Service shop/web depends on Service shop/ghost, which isn't in this source"
    assert problem.hint == "add it, or correct the annotation reconcile.dev/depends-on"


def test_a_dependency_without_a_namespace_is_one_in_the_same_namespace_or_in_none():
    role = service("reader", "rbac.authorization.k8s.io/v1/ClusterRole", namespace="")
    named = "Service/b,ClusterRole.rbac.authorization.k8s.io/reader"
    made = plan([service("a", depends_on=named), service("b"), role])
    assert only(made, "a").gate.needs == (
        ObjectRef("", "Service", "shop", "b"),
        ObjectRef("rbac.authorization.k8s.io", "ClusterRole", "", "reader"),
    )
    assert not made.problems


def test_a_cycle_is_told_once_and_its_objects_are_left_alone():
    made = plan([service("a", depends_on="Service/b"), service("b", depends_on="Service/a"), service("c")])
    (problem,) = made.problems
    assert problem.message == "these depend on each other: Service shop/a -> Service shop/b -> Service shop/a"
    assert problem.hint == "remove one reconcile.dev/depends-on"
    assert (problem.path, problem.line) == ("a.yaml", 1)
    assert [change.ref.name for change in made.changes] == ["c"]


# --- hooks ---


def hook(**more):
    return service("load", "batch/v1/Job", hook="pre-sync", **more)


def test_a_hook_runs_once_for_a_state_of_the_source():
    first = only(plan([hook()]), "load")
    assert (first.op, first.gate.hook, first.gate.replaceable, first.before) == (Op.CREATE, "pre-sync", True, None)
    ran = {**first.after, "metadata": {**first.after["metadata"], "uid": "u", "resourceVersion": "7"}}
    again = only(plan([hook()], [ran]), "load")
    assert (again.op, again.gate.hook) == (Op.UNCHANGED, "pre-sync")
    assert again.kind is first.kind is KINDS[GroupVersionKind("batch", "v1", "Job")]
    files = Revision("c0ffee", NOW, {"a.yaml": "another"})
    anew = only(plan([hook()], [ran], revision=files), "load")
    assert (anew.op, anew.gate.replaceable, anew.before["metadata"]["uid"]) == (Op.REPLACE, True, "u")


HOOKS = {
    "a Service": (service("load", hook="pre-sync"), "Service shop/load: only a Job can be a hook"),
    "a Job that removes itself": (
        {**hook(), "spec": {"ttlSecondsAfterFinished": 0}},
        "Job.batch shop/load: a hook can't have ttlSecondsAfterFinished",
    ),
}


@pytest.mark.parametrize(("wanted", "message"), HOOKS.values(), ids=HOOKS)
def test_no_hook_is(wanted, message):
    made = plan(
        [wanted, service()], [live(service("load", "batch/v1/Job" if wanted["kind"] == "Job" else "v1/Service"))]
    )
    assert [problem.message for problem in made.problems] == [message]
    assert [change.ref.name for change in made.changes] == ["web"]


def test_a_hook_whose_verdict_is_known_runs_again_when_another_file_changes():
    ran = only(plan([hook(), service()]), "load").after
    ran = {**ran, "metadata": {**ran["metadata"], "uid": "u", "resourceVersion": "7"}}
    verdicts = plan([hook(), service()], [ran]).verdicts
    assert ObjectRef("batch", "Job", "shop", "load") in verdicts
    files = Revision("c0ffee", NOW, {"a.yaml": "blob-a.yaml", "b.yaml": "another"})
    assert only(plan([hook(), service()], [ran], verdicts=verdicts, revision=files), "load").op is Op.REPLACE


# --- hooks of other tools ---


def theirs(name, event, kind="batch/v1/Job", weight="0", **spec):
    made = service(name, kind, namespace="" if kind.endswith("ClusterRole") else "shop")
    noted = {"helm.sh/hook": event, "helm.sh/hook-weight": weight}
    return {**made, "metadata": {**made["metadata"], "annotations": noted}, **({"spec": spec} if spec else {})}


def order_of(made):
    return [[change.ref.name for change in made.changes if change.gate.wave == wave] for wave in range(9)]


def test_what_a_hook_of_helm_needs_is_written_before_it_by_weight_and_everything_else_after():
    chart = [
        service("app"),
        theirs("migrate", "pre-install,pre-upgrade"),
        theirs("rights", "pre-install,post-install", "rbac.authorization.k8s.io/v1/ClusterRole", "-5"),
        theirs("check", "post-install,post-upgrade"),
    ]
    made = plan(chart)
    assert order_of(made)[:4] == [["rights"], ["migrate"], ["app"], ["check"]]
    assert [change.gate.hook for change in made.changes] == ["", "pre-sync", "", "post-sync"]
    assert made.problems == ()


def test_a_missing_namespace_and_a_missing_crd_come_before_hooks_and_what_is_there_does_not():
    chart = [
        theirs("migrate", "pre-install", weight="-9"),
        service("shop", "v1/Namespace", namespace=""),
        crd("text"),
        service("app"),
    ]
    crds = KINDS | {CRDS: Kind(CRDS, "customresourcedefinitions", namespaced=False, schema=OF_CRDS)}
    made = plan(chart, kinds=crds)
    assert order_of(made)[:3] == [["shop", "things.example.com"], ["migrate"], ["app"]]
    there = plan(chart, [live(chart[1], source="b.yaml"), live_crd(chart[2])], kinds=crds)
    assert order_of(there)[0] == ["migrate"]


def test_what_is_left_out_is_neither_applied_nor_pruned():
    made = plan([theirs("try", "test", "v1/Service"), service()], [live(service("try"))])
    assert [change.ref.name for change in made.changes] == ["web"]


OCCASIONS = {
    "an install hook, before any sync ended well": ("pre-install", False, False, Op.CREATE),
    "an install hook, later": ("pre-install", True, False, Op.UNCHANGED),
    "an upgrade hook, before any sync ended well": ("pre-upgrade", False, False, Op.UNCHANGED),
    "an upgrade hook, at another state": ("pre-upgrade", True, False, Op.CREATE),
    "an upgrade hook, at the state that was synced": ("pre-upgrade", True, True, Op.UNCHANGED),
    "a hook for both": ("pre-install,pre-upgrade", True, True, Op.CREATE),
}


@pytest.mark.parametrize(("event", "installed", "settled", "op"), OCCASIONS.values(), ids=OCCASIONS)
def test_where_no_job_has_run_yet(event, installed, settled, op):
    made = plan([theirs("load", event), service()], installed=installed, settled=settled)
    assert only(made, "load").op is op


def test_an_install_hook_that_ran_stays_as_it_is_and_an_upgrade_hook_runs_for_the_next_state():
    def afterwards(event, **known):
        first = only(plan([theirs("load", event, ttlSecondsAfterFinished=5)], kinds=LENIENT, **known), "load").after
        assert "ttlSecondsAfterFinished" not in first["spec"]
        ran = {**first, "metadata": {**first["metadata"], "uid": "u", "resourceVersion": "7"}}
        files = Revision("c0ffee", NOW, {"a.yaml": "another"})
        return only(plan([theirs("load", event)], [ran], revision=files, kinds=LENIENT, **known), "load").op

    assert afterwards("post-install") is Op.UNCHANGED
    assert afterwards("post-upgrade", installed=True) is Op.REPLACE


def test_what_asks_for_a_person_is_held_when_its_file_goes():
    asking = service("old")
    asking["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": "Prune=confirm"}
    made = plan([service()], [live(asking, source="b.yaml"), live(service("gone"), source="b.yaml")])
    [hold] = made.holds
    assert (hold.reason, [ref.name for ref in hold.refs]) == ("NeedsConsent", ["old"])
    assert hold.message == "these are annotated so that a person must approve their deletion"
    assert {change.ref.name: change.gate.held for change in made.changes if change.op is Op.DELETE} == {
        "old": True,
        "gone": False,
    }
    there = Objects([live(asking), live(service("gone"))])
    removal = build_removal(
        known(sync=SHOP, desired=(), live=there, revision=Revision("", NOW, {}), kinds=KINDS, now=NOW)
    )
    assert [change.ref.name for change in removal.changes] == ["gone"]


# --- Jobs that the cluster removes ---


LENIENT = {gvk: replace(kind, schema=UNKNOWN) for gvk, kind in KINDS.items()}


def passing(name="load", ttl=0):
    return {**service(name, "batch/v1/Job"), "spec": {} if ttl is None else {"ttlSecondsAfterFinished": ttl}}


ABSENT = {
    "the Job of a state that was synced has run": (passing(), True, Op.UNCHANGED),
    "a Job of a new state runs": (passing(), False, Op.CREATE),
    "a Job that nobody removes is missed": (passing(ttl=None), True, Op.CREATE),
    "what is no Job is missed": ({**service("load"), "spec": {"ttlSecondsAfterFinished": 0}}, True, Op.CREATE),
}


@pytest.mark.parametrize(("wanted", "settled", "op"), ABSENT.values(), ids=ABSENT)
def test_of_what_is_not_there(wanted, settled, op):
    assert only(plan([wanted], settled=settled, kinds=LENIENT), "load").op is op


def test_a_later_wave_waits_for_no_job_that_has_run_and_is_gone():
    made = plan([passing(), service("late", wave="1")], settled=True)
    assert only(made, "late").op is Op.CREATE
    assert made.schedule.awaited == ()


def test_a_job_that_is_there_still_is_judged_as_any_other_object():
    made = plan([passing()], [live(service("load", "batch/v1/Job"))], settled=True, kinds=LENIENT)
    assert only(made, "load").op is Op.UPDATE


def test_what_is_asked_for_and_being_deleted_is_never_as_it_should_be():
    going = live(service())
    going["metadata"]["deletionTimestamp"] = NOW
    change = only(plan([service()], [going]))
    assert change.gate.blocked == "it is being deleted; it will be recreated once it is gone"
    assert not change.is_quiet
    assert change.provenance.file == "a.yaml"
    assert only(plan([service()], [live(service())])).is_quiet


def hint_for(api_version, served=(), unavailable=()):
    made = plan(
        [service("odd", f"{api_version}/Thing")],
        served=frozenset(GroupVersionKind.parse(each, "Thing") for each in served),
        unavailable=dict(unavailable),
    )
    return made.problems[0].hint


def test_a_kind_whose_server_is_down_is_told_as_such_and_not_by_others_of_its_name():
    down = {"metrics.example.com/v1": "the server behind this API group doesn't answer"}
    assert hint_for("metrics.example.com/v1", ["other.org/v1"], down.items()) == (
        "the server behind this API group doesn't answer; see kubectl get apiservice v1.metrics.example.com"
    )


NAMESAKES = {
    "another version": ("a.example.com/v1beta1", "a.example.com/v1", "the cluster serves it as a.example.com/v1"),
    "another group of the same people": ("a.example.com/v1", "b.example.com/v1", "the cluster serves Thing as b.example.com/v1"),
    "a group of Kubernetes' own": ("extensions/v1beta1", "networking.k8s.io/v1", "the cluster serves Thing as networking.k8s.io/v1"),
    "a group of somebody else": ("a.example.com/v1", "b.other.org/v1", "apply its CRD first, or correct apiVersion"),
}  # fmt: skip


@pytest.mark.parametrize(("asked", "served", "hint"), NAMESAKES.values(), ids=NAMESAKES)
def test_a_kind_that_isnt_served_is_told_by_those_that_may_be_meant(asked, served, hint):
    assert hint_for(asked, [served]).startswith(hint)
