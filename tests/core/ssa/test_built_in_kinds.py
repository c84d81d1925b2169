"""Three-way merge of built-in kinds, whose Go code sets defaults that no schema shows: when a difference is sure."""

import pytest
from strategies import entry, living

from kubectl_reconcile.core.objects import FIELD_MANAGER as US
from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, IgnoreRule, Reason, Verdict, three_way
from kubectl_reconcile.core.ssa.typed import fields_of
from tests.core.ssa.built_in_schemas import SCHEMAS


def schema_of(manifest):
    return SCHEMAS[GroupVersionKind.of(manifest)]


def fields(manifest):
    return fields_of(manifest, schema_of(manifest).root) - STRIPPED


def built_in(kind, **content):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "web"}, **content}


def service(**spec):
    return built_in("Service", spec=spec)


def ours(manifest):
    return entry(US, fields(manifest), api_version="v1")


def edited(*found, manager="kubectl-edit", operation="Update", **more):
    return entry(manager, FieldSet.of(found), operation=operation, api_version="v1", **more)


def judge(desired, live, **more):
    return three_way(desired=desired, live=live, schema=schema_of(desired), **more)


def held(applied, *others, **now):
    """What the server holds after we applied a Service: *now* is what its spec has come to."""
    return living({**applied, "spec": {**applied["spec"], **now}}, ours(applied), *others)


DEFAULTS = "defaults of the server may explain the difference"
SURE, UNSURE = (Verdict.SAME, ""), (Verdict.UNSURE, DEFAULTS)
DIFFERENT = (Verdict.DIFFERENT, "")
CASES = {
    "what the server added is no difference": ({"ports": [{"port": 80}]}, {"type": "ClusterIP"}, SURE),
    "a zero that the server replaced may be none": ({"type": ""}, {"type": "ClusterIP"}, UNSURE),
    "an empty struct that the server filled is none": ({"strategy": {}}, {"strategy": {"type": "Rolling"}}, SURE),
    "a zero within a struct that the server replaced may be none": (
        {"strategy": {"size": 0, "type": "x"}},
        {"strategy": {"size": 1, "type": "x"}},
        UNSURE,
    ),
    "another value is one": ({"type": "NodePort"}, {"type": "ClusterIP"}, DIFFERENT),
    "another selector is one": ({"selector": {"app": "a"}}, {"selector": {"app": "b"}}, DIFFERENT),
    "another entry is one": ({"labels": {"a": ""}}, {"labels": {"a": "x"}}, DIFFERENT),
}


@pytest.mark.parametrize(("applied", "now", "verdict"), CASES.values(), ids=CASES)
def test_of_what_we_applied_once(applied, now, verdict):
    result = judge(service(**applied), held(service(**applied), **now))
    assert (result.verdict, result.doubt) == verdict


def test_a_zero_that_the_server_replaced_when_we_applied_it_is_no_difference():
    applied = service(type="")
    live = held(applied, type="ClusterIP")
    assert judge(applied, live, base=applied).verdict is Verdict.SAME
    assert judge(service(type="", labels={"a": "b"}), live, base=applied).verdict is Verdict.DIFFERENT
    assert judge(applied, live, base=service(type="NodePort")).verdict is Verdict.UNSURE


def test_a_base_that_is_not_what_we_applied_proves_nothing():
    applied = service(type="")
    live = held(applied, type="ClusterIP")
    assert judge(applied, live, base=service(type="", selector={"a": "b"})).verdict is Verdict.UNSURE


def test_a_zero_that_somebody_took_from_us_is_a_conflict():
    applied = service(type="")
    live = living(service(type="NodePort"), edited(("f:spec", "f:type"), manager="other"))
    result = judge(applied, live, base=applied)
    assert [conflict.manager for conflict in result.conflicts] == ["other"]
    assert result.verdict is Verdict.DIFFERENT


def test_a_zero_that_the_server_dropped_is_no_difference():
    applied = service(type="", labels={"a": "b"})
    live = held(applied)
    del live["spec"]["type"]
    assert judge(applied, live).verdict is Verdict.SAME


def test_a_value_that_is_gone_though_it_is_ours_may_have_been_dropped_by_the_server():
    applied = service(type="NodePort", labels={"a": "b"})
    live = held(applied)
    del live["spec"]["type"]
    assert (judge(applied, live).verdict, judge(applied, live).doubt) == UNSURE


def test_a_field_that_is_new_in_git_is_a_difference():
    result = judge(service(type="NodePort", labels={"a": "b"}), held(service(labels={"a": "b"})))
    assert (result.verdict, [(str(each.path), each.op, each.reason) for each in result.changes]) == (
        Verdict.DIFFERENT,
        [(".spec.type", "add", Reason.GIT)],
    )


def namespace(labels=None):
    manifest = built_in("Namespace")
    return {**manifest, "metadata": {**manifest["metadata"], **({"labels": labels} if labels else {})}}


NAMED = {"kubernetes.io/metadata.name": "web"}


def test_of_labels_that_all_go_the_one_that_the_server_puts_back_is_no_change_to_show():
    owned = namespace({**NAMED, "team": "a"})
    result = judge(namespace(), living(owned, ours(owned)))
    assert (result.verdict, [(str(each.path), each.op) for each in result.changes]) == (
        Verdict.DIFFERENT,
        [(".metadata.labels.team", "remove")],
    )


def test_what_only_the_server_would_put_back_is_left_to_its_dry_run():
    owned = namespace(NAMED)
    result = judge(namespace(), living(owned, ours(owned)))
    assert (result.verdict, result.changes) == (Verdict.DIFFERENT, ())


def test_a_zero_that_was_stored_so_is_not_shown_though_its_list_is_reordered():
    applied = service(ports=[{"port": 80, "name": ""}, {"port": 81, "name": "b"}])
    live = held(
        applied, ports=[{"port": 81, "name": "b", "protocol": "TCP"}, {"port": 80, "name": "a", "protocol": "TCP"}]
    )
    result = judge(applied, live, base=applied)
    assert [str(each.path) for each in result.changes] == [".spec.ports"]


def pod(**spec):
    return built_in("Pod", spec=spec)


A, B = {"key": "a"}, {"key": "b"}
TOLERATIONS = {
    "what admission appended is no sure difference": ({"tolerations": [A]}, {"tolerations": [A, B]}, Verdict.UNSURE),
    "what isn't there is one": ({"tolerations": [A, B]}, {"tolerations": [A]}, Verdict.DIFFERENT),
    "another one is one": ({"tolerations": [A]}, {"tolerations": [B, A]}, Verdict.DIFFERENT),
    "items appended to another list are one": ({"others": [A]}, {"others": [A, B]}, Verdict.DIFFERENT),
}


@pytest.mark.parametrize(("wanted", "now", "verdict"), TOLERATIONS.values(), ids=TOLERATIONS)
def test_of_a_pod_s_tolerations(wanted, now, verdict):
    assert judge(pod(**wanted), living(pod(**now), ours(pod(**wanted)))).verdict is verdict


def test_what_nobody_tracks_belongs_to_before_first_apply_but_for_what_go_never_omits():
    live = living(service(type="ClusterIP", strategy={"type": "Rolling"}))
    result = judge(service(type="NodePort", strategy={"type": "x"}), live)
    assert {(str(each.path), each.manager) for each in result.conflicts} == {
        (".spec.type", "before-first-apply"),
        (".spec.strategy.type", "before-first-apply"),
    }
    assert {each.reason for each in result.changes} == {Reason.ADOPT}


def test_an_untracked_struct_that_go_never_omits_belongs_to_nobody_while_it_is_empty():
    live = living(service(type="ClusterIP", strategy={}))
    result = judge(service(type="ClusterIP", strategy={"type": "x"}), live)
    assert result.conflicts == ()


# --- ports that were renumbered by hand ---

RENUMBERED = ("f:spec", "f:ports", 'k:{"port":81,"protocol":"TCP"}')
WEB = service(ports=[{"port": 80, "name": "web"}])


def renumbered(**how):
    by_hand = service(ports=[{"port": 81, "name": "web", "protocol": "TCP"}])
    edit = edited(RENUMBERED, (*RENUMBERED, "f:name"), (*RENUMBERED, "f:port"), **how)
    return living(by_hand, ours(WEB), edit)


def test_a_port_renumbered_by_hand_goes_and_ours_comes_back():
    result = judge(WEB, renumbered())
    assert result.merged["spec"]["ports"] == [{"port": 80, "name": "web"}]
    (value, version) = result.takeover
    assert [each["manager"] for each in value["value"]] == [US]
    assert RENUMBERED in FieldSet.of_wire(value["value"][0]["fieldsV1"])
    assert version["value"] == "7"
    assert {each.manager for each in result.changes if each.op == "remove"} == {"kubectl-edit"}


def test_a_port_that_somebody_applied_stays():
    result = judge(WEB, renumbered(manager="other", operation="Apply"))
    assert result.takeover == ()
    assert [each["port"] for each in result.merged["spec"]["ports"]] == [81, 80]


@pytest.mark.parametrize("policy", [ConflictPolicy.YIELD, ConflictPolicy.FAIL])
def test_a_renumbered_port_stays_where_others_are_not_overridden(policy):
    assert judge(WEB, renumbered(), policy=policy).takeover == ()


def test_a_port_of_another_name_stays():
    named = service(ports=[{"port": 80, "name": "admin"}])
    live = renumbered()
    live["metadata"]["managedFields"][0] = ours(named)
    assert judge(named, live).takeover == ()


# --- policies ---

TYPE = ("f:spec", "f:type")


def test_under_fail_all_is_sent_and_the_conflict_says_why_it_will_be_refused():
    live = living(service(type="ClusterIP"), edited(TYPE, manager="other"))
    result = judge(service(type="NodePort"), live, policy=ConflictPolicy.FAIL)
    assert result.intent == service(type="NodePort")
    assert [(str(each.path), each.manager, each.live, each.desired) for each in result.conflicts] == [
        (".spec.type", "other", "ClusterIP", "NodePort")
    ]


def test_yielding_keeps_name_and_namespace_of_what_is_sent():
    desired = {**service(type="NodePort"), "metadata": {"name": "web", "namespace": "shop"}}
    live = living(
        {**service(type="ClusterIP"), "metadata": {"name": "web", "namespace": "shop"}}, edited(TYPE, manager="other")
    )
    result = judge(desired, live, policy=ConflictPolicy.YIELD)
    assert result.intent == {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}


SECRET_RULES = ["/stringData/key", "/data/key"]


@pytest.mark.parametrize("rule", SECRET_RULES)
def test_text_of_a_secret_is_ignored_by_either_of_its_places(rule):
    desired = built_in("Secret", stringData={"key": "new", "more": "x"})
    live = living(built_in("Secret", data={"key": "b2xk", "more": "eA=="}), ours(desired))
    result = judge(desired, live, ignores=[IgnoreRule.parse(rule)])
    assert result.merged["data"] == {"key": "b2xk", "more": "eA=="}


def test_kubectl_s_own_apply_is_left_to_the_server():
    live = living(
        {
            **service(),
            "metadata": {"name": "web", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
        }
    )
    result = judge(service(type="x"), live, manager="kubectl")
    assert (result.verdict, result.doubt) == (
        Verdict.UNSURE,
        "the server has rules of its own for kubectl and its last-applied annotation",
    )
    assert judge(service(type="x"), live).doubt == ""


def test_a_manager_at_a_version_that_only_the_server_converts_leaves_a_difference_to_it():
    theirs = {**edited(("f:spec", "f:labels"), manager="old"), "apiVersion": "v0"}
    live = held(service(type="NodePort"), theirs)
    assert judge(service(type="x"), live).doubt == "old wrote v0, which only the server can convert"
    assert judge(service(type="NodePort"), live).verdict is Verdict.SAME


# --- reasons ---


def drifted(**now):
    how = {"manager": "somebody", "time": "2026-02-02T00:00:00Z"}
    return held(
        service(type="NodePort"),
        edited(TYPE, **how),
        edited(TYPE, manager="before", time="2026-01-02T00:00:00Z"),
        **now,
    )


REASONS = {
    "Git": (service(type="LoadBalancer"), {"type": "NodePort"}, service(type="NodePort"), Reason.GIT),
    "drift": (service(type="NodePort"), {"type": "ClusterIP"}, service(type="NodePort"), Reason.DRIFT),
    "both": (service(type="LoadBalancer"), {"type": "ClusterIP"}, service(type="NodePort"), Reason.BOTH),
    "Git, where nothing is known of before but who else wrote it": (
        service(type="LoadBalancer"),
        {"type": "ClusterIP"},
        None,
        Reason.DRIFT,
    ),
}


@pytest.mark.parametrize(("desired", "now", "base", "reason"), REASONS.values(), ids=REASONS)
def test_a_field_changes_because_of(desired, now, base, reason):
    (change,) = judge(desired, drifted(**now), base=base).changes
    assert (change.reason, change.op) == (reason, "replace")
    assert (change.before, change.after) == (now["type"], desired["spec"]["type"])
    culprit = ("somebody", "2026-02-02T00:00:00Z", "Update") if reason is not Reason.GIT else ("", "", "")
    assert (change.manager, change.time, change.operation) == culprit
