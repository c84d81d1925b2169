"""Which rights a planned change takes, and what is said where they are missing."""

import pytest

from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.plan import Op, fingerprint
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.planning.rights.writes import (
    by_name,
    denial_of,
    is_by_account,
    right_instead,
    rights_given_by,
    rights_to_make,
    told,
)
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.changes import a_change

RBAC = "rbac.authorization.k8s.io"
SHOP = Sync(name="shop", namespace="shop")
READING = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
WRITING = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}
SCOPES = {
    "ConfigMap": "",
    "Namespace": "",
    "Role": RBAC,
    "ClusterRole": RBAC,
    "RoleBinding": RBAC,
    "ClusterRoleBinding": RBAC,
}
CLUSTER = {"Namespace", "ClusterRole", "ClusterRoleBinding"}


def a(kind, op, **rest):
    """a("ConfigMap", Op.CREATE, after=…): a change of one called web, in namespace shop where it has one."""
    gvk = GroupVersionKind(SCOPES[kind], "v1", kind)
    known = Kind(gvk, f"{kind.lower()}s", namespaced=kind not in CLUSTER, schema=UNKNOWN)
    return a_change(ObjectRef(gvk.group, kind, "" if kind in CLUSTER else "shop", "web"), op, known, **rest)


def words(rights):
    return sorted(f"{place}: {right}" for place, right in rights)


TAKES = {
    "to create": (a("ConfigMap", Op.CREATE), ["create", "get", "patch"]),
    "to update": (a("ConfigMap", Op.UPDATE), ["get", "patch"]),
    "to take over": (a("ConfigMap", Op.UPDATE, takeover=({"op": "test"},)), ["get", "patch", "update"]),
    "to replace": (a("ConfigMap", Op.REPLACE), ["create", "delete", "get", "patch"]),
    "to delete": (a("ConfigMap", Op.DELETE), ["delete"]),
    "to leave alone": (a("ConfigMap", Op.UNCHANGED), []),
}


@pytest.mark.parametrize(("change", "verbs"), TAKES.values(), ids=TAKES)
def test_rights_on_objects_of_a_namespace_are_on_all_of_their_kind(change, verbs):
    assert words(rights_to_make(change)) == [f"shop: {verb} configmaps" for verb in verbs]


def test_rights_on_cluster_scoped_objects_are_by_name_but_for_creating():
    assert words(rights_to_make(a("Namespace", Op.CREATE))) == [
        ": create namespaces",
        ": get namespaces web",
        ": patch namespaces web",
    ]


def test_a_right_on_all_of_a_kind_has_one_on_the_name_below_it_where_rbac_knows_that():
    change = a("ConfigMap", Op.CREATE)
    assert by_name(change, ("shop", Right("", "configmaps", "patch"))) == (
        "shop",
        Right("", "configmaps", "patch", "web"),
    )
    assert by_name(change, ("shop", Right("", "configmaps", "create"))) is None
    assert by_name(change, ("", Right("", "namespaces", "get", "web"))) is None


OTHERS = {
    "nothing to do": a("ConfigMap", Op.UNCHANGED),
    "an action": a("ConfigMap", Op.ACT),
    "a module's child": a("ConfigMap", Op.CREATE, owner=ObjectRef("x", "Y", "shop", "z")),
    "what is blocked anyway": a("ConfigMap", Op.UPDATE, blocked="it is being deleted"),
    "what goes along": a("ConfigMap", Op.DELETE, cascade=True),
    "an unknown kind": a_change(ObjectRef("x", "Y", "shop", "z"), Op.DELETE),
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
def test_what_the_account_does_not_write_takes_none_of_its_rights(change):
    assert not is_by_account(change)


def test_what_is_held_for_a_person_takes_its_rights_all_the_same():
    assert is_by_account(a("ConfigMap", Op.DELETE, held=True))


def ref_to(kind, name="web"):
    return {"apiGroup": RBAC, "kind": kind, "name": name}


ROLE_REF, CLUSTER_ROLE_REF = ObjectRef(RBAC, "Role", "shop", "web"), ObjectRef(RBAC, "ClusterRole", "", "web")
ROLES = {ROLE_REF: {"rules": [READING]}, CLUSTER_ROLE_REF: {"rules": [WRITING]}}
BOUND = {"roleRef": ref_to("Role"), "subjects": [{"kind": "User", "name": "ann"}]}
GIVES = {
    "a new Role": (a("Role", Op.CREATE, after={"rules": [READING]}), ["shop: get pods"]),
    "a Role with other rules": (
        a("Role", Op.UPDATE, before={"rules": [READING]}, after={"rules": [READING, WRITING]}),
        ["shop: create pods", "shop: get pods"],
    ),
    "a Role whose rules stay": (a("Role", Op.UPDATE, before={"rules": [READING]}, after={"rules": [READING]}), []),
    "a Role that goes": (a("Role", Op.DELETE, before={"rules": [READING]}), []),
    "a ClusterRole": (a("ClusterRole", Op.CREATE, after={"rules": [READING]}), [": get pods"]),
    "a ClusterRole that gathers others": (
        a("ClusterRole", Op.CREATE, after={"aggregationRule": {}}), [": * *", ": * *.*"],
    ),
    "a binding to a Role": (a("RoleBinding", Op.CREATE, after=BOUND), ["shop: get pods"]),
    "a binding to a ClusterRole": (
        a("RoleBinding", Op.CREATE, after={"roleRef": ref_to("ClusterRole")}), ["shop: create pods"],
    ),
    "a binding for the cluster": (
        a("ClusterRoleBinding", Op.CREATE, after={"roleRef": ref_to("ClusterRole")}), [": create pods"],
    ),
    "a binding that stays": (a("RoleBinding", Op.UPDATE, before=BOUND, after=BOUND), []),
    "a binding for others": (a("RoleBinding", Op.UPDATE, before={**BOUND, "subjects": []}, after=BOUND), ["shop: get pods"]),
    "a binding to nobody knows what": (a("RoleBinding", Op.CREATE, after={"roleRef": ref_to("Role", "lost")}), []),
    "no RBAC": (a("ConfigMap", Op.CREATE, after={"rules": [READING]}), []),
}  # fmt: skip


@pytest.mark.parametrize(("change", "rights"), GIVES.values(), ids=GIVES)
def test_whoever_gives_rights_must_hold_them(change, rights):
    assert words(rights_given_by(change, ROLES)) == rights


def test_to_escalate_a_role_or_to_bind_it_stands_for_holding_its_rights():
    assert words([right_instead(a("Role", Op.CREATE, after={}))]) == [f"shop: escalate roles.{RBAC} web"]
    assert words([right_instead(a("RoleBinding", Op.CREATE, after=BOUND))]) == [f"shop: bind roles.{RBAC} web"]
    assert right_instead(a("ConfigMap", Op.CREATE, after={})) is None
    assert right_instead(a("RoleBinding", Op.CREATE, after={})) is None


def test_a_denial_says_who_may_not_do_what_and_which_command_mends_it():
    lacking = [("shop", Right("", "configmaps", verb)) for verb in ("patch", "create")] + [
        ("", Right("", "namespaces", "get", "web"))
    ]
    assert denial_of(SHOP, lacking, []) == (
        "ServiceAccount shop/kubectl-reconcile may not get namespaces; create, patch configmaps in namespace shop "
        "(hint: kubectl reconcile grant shop -n shop)"
    )


def test_a_denial_of_what_is_given_says_that_it_is_not_held():
    not_held = [("shop", Right("", f"{sort}s", "get")) for sort in ("pod",)]
    assert denial_of(SHOP, [], not_held) == (
        "ServiceAccount shop/kubectl-reconcile may not grant rights that it doesn't have itself: get pods in namespace shop "
        "(hint: kubectl reconcile grant shop -n shop)"
    )


def test_a_denial_of_much_shows_the_first():
    places = [(place, Right("", "pods", "get")) for place in "abcde"]
    assert "get pods in namespace c; and 2 more (hint: " in denial_of(SHOP, places, [])


def test_what_is_denied_is_no_part_of_a_plan_s_fingerprint():
    change = a("ConfigMap", Op.CREATE, after={"data": {}})
    assert fingerprint(change.gated(denied="it may not")) == fingerprint(change)
    assert fingerprint(change.gated(blocked="it may not")) != fingerprint(change)
    assert change.gated(denied="it may not").in_wave(7).gate.denied == "it may not"


def test_rights_are_told_once_for_each_place_and_sort_whatever_their_names():
    def right(name, **where):
        return Right("apps", "deployments", "get", name, **where)

    assert told({("shop", right("web")), ("shop", right("api"))}) == ["get deployments.apps in namespace shop"]


def test_rights_on_urls_and_on_everything_of_a_place_are_told():
    rights = {
        ("", Right("", "", "get", url="/metrics")),
        ("bar", Right("", "pods", "list")),
        ("bar", Right("", "secrets", "list")),
    }
    assert told(rights) == ["get /metrics", "list pods, secrets in namespace bar"]


def test_three_places_are_told_and_more_are_counted():
    rights = [(place, Right("", "pods", "get")) for place in "abcde"]
    three = [f"get pods in namespace {place}" for place in "abc"]
    assert told(rights[:3]) == three
    assert told(rights) == [*three, "and 2 more"]
