"""What an account needs: enough for every object of a source, nothing else, and nothing sensitive unasked."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.module.api import UnloadedModule, module
from kubectl_reconcile.core.module.inputs import Reads
from kubectl_reconcile.core.module.outcome import Outcome
from kubectl_reconcile.core.objects import GroupVersionKind, ObjectRef, Severity
from kubectl_reconcile.core.planning.kinds import Kind
from kubectl_reconcile.core.planning.rights.entrusted import EntrustedField
from kubectl_reconcile.core.planning.rights.grant import Account, grant_of, is_granted_name
from kubectl_reconcile.core.planning.rights.needs import Needs, RightsInputs, Sensitive, needs_of, roles_to_read
from kubectl_reconcile.core.planning.rights.rules import Right
from kubectl_reconcile.core.resources.applyset import applyset_id
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from tests.core.planning.rights.rbac_judge import Rbac, allows

RBAC = "rbac.authorization.k8s.io"
SHOP = Sync.of(
    {
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {
            "source": {
                "git": {"url": "https://g/x", "secretRef": {"name": "git"}, "webhookSecretRef": {"name": "hook"}}
            }
        },
    }
)
USER = "system:serviceaccount:shop:kubectl-reconcile"
SERVED = {
    ("v1", "ConfigMap"): ("configmaps", True),
    ("v1", "Secret"): ("secrets", True),
    ("apps/v1", "Deployment"): ("deployments", True),
    ("v1", "Namespace"): ("namespaces", False),
    ("storage.k8s.io/v1", "StorageClass"): ("storageclasses", False),
    (f"{RBAC}/v1", "Role"): ("roles", True),
    (f"{RBAC}/v1", "RoleBinding"): ("rolebindings", True),
    (f"{RBAC}/v1", "ClusterRole"): ("clusterroles", False),
    (f"{RBAC}/v1", "ClusterRoleBinding"): ("clusterrolebindings", False),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): ("customresourcedefinitions", False),
}
KINDS = {
    (gvk := GroupVersionKind.parse(*of)): Kind(gvk, plural, namespaced=namespaced, schema=UNKNOWN)
    for of, (plural, namespaced) in SERVED.items()
}
SCOPES = {kind: namespaced for (_, kind), (_, namespaced) in SERVED.items()}
PLACES = ["shop", "bar", ""]
READING = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


def an(kind, name="web", namespace="", **content):
    """an("ConfigMap", "web", "shop", data=…): an object of one of the kinds that are served."""
    api = next(api for api, known in SERVED if known == kind)
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **place}, **content}


def located(*manifests):
    return [Located.of(manifest, f"{number}.yaml", 1) for number, manifest in enumerate(manifests)]


def needs(*manifests, roles=(), allowed=(), **more):
    known = {ObjectRef.of(role): role for role in roles}
    return needs_of(
        RightsInputs(SHOP, located(*manifests), KINDS, known, allowed=frozenset(map(Sensitive, allowed)), **more)
    )


def bound(kind, role, namespace="", name="bound"):
    return an(kind, name, namespace, roleRef={"apiGroup": RBAC, "kind": role[0], "name": role[1]}, subjects=[])


def said(found: Needs):
    return [problem.message for problem in found.problems]


# --- any source ---------------------------------------------------------------------------------

inner_rules = st.lists(
    st.fixed_dictionaries(
        {
            "apiGroups": st.lists(st.sampled_from(["", "apps"]), min_size=1, max_size=2, unique=True),
            "resources": st.lists(st.sampled_from(["pods", "deployments"]), min_size=1, max_size=2, unique=True),
            "verbs": st.lists(st.sampled_from(["get", "list", "patch", "deletecollection"]), min_size=1, max_size=2),
        },
        optional={"resourceNames": st.lists(st.sampled_from(["web", "db"]), min_size=1, max_size=1)},
    ),
    max_size=2,
)
names = st.sampled_from(["web", "db"])


@st.composite
def objects(draw):
    kind, name, place = draw(st.sampled_from(sorted(SCOPES))), draw(names), draw(st.sampled_from(PLACES))
    namespace = place if SCOPES[kind] else ""
    if kind in {"Role", "ClusterRole"}:
        return an(kind, name, namespace, rules=draw(inner_rules))
    if kind in {"RoleBinding", "ClusterRoleBinding"}:
        role = draw(st.sampled_from(["Role", "ClusterRole"])) if kind == "RoleBinding" else "ClusterRole"
        return bound(kind, (role, draw(st.sampled_from(["web", "db", "live"]))), namespace, name)
    return an(kind, name, namespace)


@st.composite
def sources(draw):
    found = {}
    for each in draw(st.lists(objects(), max_size=7)):
        found[each["kind"], place_of(each), each["metadata"]["name"]] = each
    return list(found.values())


LIVE = [an("ClusterRole", "live", rules=[READING]), an("Role", "live", "shop", rules=[READING])]


def place_of(manifest):
    return (manifest["metadata"].get("namespace") or "shop") if SCOPES[manifest["kind"]] else ""


def given_by(manifests):
    return grant_of(SHOP, needs(*manifests, roles=LIVE))


def rules_asked(manifests):
    """Which rules the server wants whoever writes these to hold, and where; worked out from the objects alone."""
    everything = {(one["kind"], place_of(one), one["metadata"]["name"]): one for one in [*LIVE, *manifests]}
    for each in manifests:
        if each["kind"] in {"Role", "ClusterRole"}:
            yield place_of(each), each["rules"]
        elif "roleRef" in each:
            kind, name = each["roleRef"]["kind"], each["roleRef"]["name"]
            role = everything.get((kind, place_of(each) if kind == "Role" else "", name))
            if role is not None:
                yield place_of(each), role["rules"]


@given(sources())
def test_the_account_may_do_all_that_its_members_need(manifests):
    rbac = Rbac(given_by(manifests))
    for each in manifests:
        group, name = each["apiVersion"].rpartition("/")[0], each["metadata"]["name"]
        plural = SERVED[each["apiVersion"], each["kind"]][0]
        for verb in ("list", "watch", "create"):
            assert rbac.may(USER, verb, group, plural, place_of(each), "")
        for verb in ("get", "update", "patch", "delete", "create"):
            assert rbac.may(USER, verb, group, plural, place_of(each), name)


@given(sources())
def test_the_account_holds_what_the_roles_and_bindings_of_its_source_give(manifests):
    rbac = Rbac(given_by(manifests))
    assert all(rbac.holds(USER, rules, place) for place, rules in rules_asked(manifests))


@given(sources())
def test_the_account_may_do_nothing_else(manifests):
    rbac, asked = Rbac(given_by(manifests)), list(rules_asked(manifests))
    resources = {("", "pods"), *((api.rpartition("/")[0], plural) for (api, _), (plural, _) in SERVED.items())}
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate"]
    for place, (group, plural), verb, name in product(
        [*PLACES, "else"], sorted(resources), verbs, ["web", "other", ""]
    ):
        if rbac.may(USER, verb, group, plural, place, name):
            assert _is_wanted(manifests, asked, verb, group, plural, place, name), (verb, group, plural, place, name)


def _is_wanted(manifests, asked, verb, group, plural, place, name):
    if (verb, group, plural, place) == ("get", "", "secrets", "shop") and name in {"git", "hook"}:
        return True
    has_workload = any(place_of(each) == place for each in manifests if each["kind"] == "Deployment")
    if has_workload and verb == "list" and (group, plural) in {("", "pods"), ("apps", "replicasets")}:
        return True
    for each in manifests:
        kind_of = each["apiVersion"].rpartition("/")[0], SERVED[each["apiVersion"], each["kind"]][0]
        if kind_of == (group, plural) and verb in {"get", "list", "watch", "create", "update", "patch", "delete"}:
            if SCOPES[each["kind"]] and place_of(each) == place:
                return True
            if not SCOPES[each["kind"]] and (verb in {"list", "watch", "create"} or name == each["metadata"]["name"]):
                return True
    return any(
        where in {"", place} and allows(rule, verb, group, plural, name) for where, rules in asked for rule in rules
    )


@given(sources(), st.randoms(use_true_random=False))
def test_the_order_of_the_source_does_not_matter(manifests, random):
    mixed = list(manifests)
    random.shuffle(mixed)
    assert given_by(mixed) == given_by(manifests)


@given(sources())
def test_whatever_refers_to_a_role_that_nobody_can_read_is_said(manifests):
    found = needs_of(RightsInputs(SHOP, located(*manifests), KINDS))
    unread = roles_to_read(SHOP, located(*manifests))
    told = [problem for problem in found.problems if "can't be read" in problem.message]
    assert {ref for ref in unread if any(str(ref) in each.message for each in told)} == unread


# --- what is sensitive --------------------------------------------------------------------------


def role_with(verb="get", resource="pods", **more):
    return an("ClusterRole", "strong", rules=[{"apiGroups": [""], "resources": [resource], "verbs": [verb], **more}])


SENSITIVE = {
    "escalate": role_with("escalate", "clusterroles"),
    "bind": role_with("bind", "clusterroles"),
    "impersonate": role_with("impersonate", "users"),
    "wildcards": role_with("*"),
    "wildcards of resources": role_with("get", "*"),
    "wildcards of scales": role_with("get", "*/scale"),
    "wildcards of urls": an("ClusterRole", "strong", rules=[{"nonResourceURLs": ["/debug/*"], "verbs": ["get"]}]),
}


@pytest.mark.parametrize("what", SENSITIVE)
def test_a_role_with_something_sensitive_gives_nothing_and_is_said_with_the_flag(what):
    role, word = SENSITIVE[what], what.partition(" ")[0]
    found = needs(role)
    assert not Rbac(grant_of(SHOP, found)).holds(USER, role["rules"], "")
    (problem,) = found.problems
    assert problem.message.startswith("ClusterRole.rbac.authorization.k8s.io strong grants “")
    assert problem.hint == f"--allow {word} grants that"
    assert (problem.path, problem.line) == ("0.yaml", 1)
    assert not any(Sensitive.of(right) for _, right in found.placed())


@pytest.mark.parametrize("what", SENSITIVE)
def test_what_is_sensitive_is_given_to_whoever_asks_for_it(what):
    role = SENSITIVE[what]
    found = needs(role, allowed=[what.partition(" ")[0]])
    assert Rbac(grant_of(SHOP, found)).holds(USER, role["rules"], "")
    assert found.problems == ()


def test_all_that_is_sensitive_in_a_role_is_said_with_all_flags_three_rights_at_most():
    rules = [
        {"apiGroups": [""], "resources": ["*"], "verbs": ["get", "list"]},
        *role_with("bind", "clusterroles")["rules"],
    ]
    (three,) = needs(an("ClusterRole", "strong", rules=rules)).problems
    assert three.message == (
        "ClusterRole.rbac.authorization.k8s.io strong grants “get *”, “list *”, “bind clusterroles”, so the account may not write it"
    )
    assert three.hint == "--allow bind --allow wildcards grants that"
    more = [*rules, {"apiGroups": [""], "resources": ["*"], "verbs": ["watch", "patch"]}]
    (five,) = needs(an("ClusterRole", "strong", rules=more)).problems
    assert " and 2 more like these, so the account" in five.message


def test_the_rest_of_a_role_that_can_not_be_written_is_not_given():
    role = an("Role", "half", "bar", rules=[READING, {"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}])
    assert not Rbac(grant_of(SHOP, needs(role))).may(USER, "get", "", "pods", "bar", "web")


def test_a_binding_of_more_than_may_be_given_takes_bind_on_that_role_alone():
    admin = an("ClusterRole", "cluster-admin", rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    binding = bound("RoleBinding", ("ClusterRole", "cluster-admin"), "bar")
    refused = needs(binding, roles=[admin])
    (message,) = said(refused)
    assert message.endswith(
        "binds ClusterRole.rbac.authorization.k8s.io cluster-admin, which gives “* *.*”, so the account may not write it"
    )
    assert refused.problems[0].hint == "--allow bind lets the account bind cluster-admin, no matter which rights it has"
    rbac = Rbac(grant_of(SHOP, needs(binding, roles=[admin], allowed=["bind"])))
    assert rbac.may(USER, "bind", RBAC, "clusterroles", "bar", "cluster-admin")
    assert not rbac.may(USER, "bind", RBAC, "clusterroles", "bar", "other")
    assert not rbac.may(USER, "bind", RBAC, "clusterroles", "shop", "cluster-admin")


def test_to_bind_one_role_is_given_rather_than_wildcards_where_both_are_allowed():
    admin = an("ClusterRole", "cluster-admin", rules=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
    binding = bound("RoleBinding", ("ClusterRole", "cluster-admin"), "bar")
    both = needs(binding, roles=[admin], allowed=["bind", "wildcards"])
    assert not any(right.is_wildcard for _, right in both.placed())
    assert Rbac(grant_of(SHOP, needs(binding, roles=[admin], allowed=["wildcards"]))).holds(USER, admin["rules"], "bar")


def test_urls_are_given_everywhere_since_no_role_of_a_namespace_may_give_them():
    role = an("ClusterRole", "scraper", rules=[{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, READING])
    found = needs(bound("RoleBinding", ("ClusterRole", "scraper"), "bar"), roles=[role])
    assert found.everywhere == {Right("", "", "get", url="/metrics")}
    assert Rbac(grant_of(SHOP, found)).holds(USER, role["rules"], "bar")


def test_a_cluster_role_that_gathers_others_is_said_and_takes_escalate_on_it_alone():
    role = an("ClusterRole", "all", aggregationRule={"clusterRoleSelectors": []})
    (message,) = said(needs(role))
    assert "aggregates the rules of other ClusterRoles (aggregationRule)" in message
    rbac = Rbac(grant_of(SHOP, needs(role, allowed=["escalate"])))
    assert rbac.may(USER, "escalate", RBAC, "clusterroles", "", "all")
    assert not rbac.may(USER, "escalate", RBAC, "clusterroles", "", "other")


def test_a_binding_to_a_live_role_that_gathers_others_gives_what_it_holds_now_and_says_so():
    view = an("ClusterRole", "view", rules=[READING], aggregationRule={"clusterRoleSelectors": []})
    found = needs(bound("RoleBinding", ("ClusterRole", "view"), "bar"), roles=[view])
    assert Rbac(grant_of(SHOP, found)).may(USER, "list", "", "pods", "bar", "")
    assert "grant again when its rules have changed" in found.problems[0].hint


def test_a_role_of_the_source_counts_and_not_the_live_one_of_its_name():
    own, live = (
        an("Role", "reader", "bar", rules=[READING]),
        an("Role", "reader", "bar", rules=[{**READING, "verbs": ["delete"]}]),
    )
    binding = bound("RoleBinding", ("Role", "reader"), "bar")
    assert roles_to_read(SHOP, located(own, binding)) == frozenset()
    rbac = Rbac(grant_of(SHOP, needs(own, binding, roles=[live])))
    assert rbac.may(USER, "get", "", "pods", "bar", "web")
    assert not rbac.may(USER, "delete", "", "pods", "bar", "web")


def test_roles_that_the_source_binds_and_doesnt_hold_are_to_be_read():
    bindings = [
        bound("RoleBinding", ("Role", "reader"), "bar"),
        bound("ClusterRoleBinding", ("ClusterRole", "view"), "", "all"),
    ]
    here = bound("RoleBinding", ("Role", "writer"), "", "here")
    assert roles_to_read(SHOP, located(*bindings, here, an("ConfigMap"), an("Role", "own", "bar"))) == {
        ObjectRef(RBAC, "Role", "bar", "reader"),
        ObjectRef(RBAC, "ClusterRole", "", "view"),
        ObjectRef(RBAC, "Role", "shop", "writer"),
    }
    assert roles_to_read(SHOP, located(an("Role", "own", "bar"))) == frozenset()


ODD = {
    "no roleRef": an("RoleBinding", "odd", "bar"),
    "a roleRef of a text": an("RoleBinding", "odd", "bar", roleRef="admin"),
    "a roleRef of another kind": bound("RoleBinding", ("Group", "admins"), "bar", "odd"),
    "a Role bound cluster-wide": bound("ClusterRoleBinding", ("Role", "reader"), "", "odd"),
}


@pytest.mark.parametrize("binding", ODD.values(), ids=ODD)
def test_a_binding_that_refers_to_no_role_is_said(binding):
    (message,) = said(needs(binding))
    assert message.endswith("refers to no Role or ClusterRole")


def test_a_role_that_stands_for_too_much_is_said():
    many = [f"n{number}" for number in range(50)]
    role = an("Role", "huge", "bar", rules=[{"apiGroups": many, "resources": many, "verbs": many}])
    assert said(needs(role)) == [
        "Role.rbac.authorization.k8s.io bar/huge amounts to more than 50000 single rights, which are too many to grant"
    ]


ROLE, BINDING = f"ClusterRole.{RBAC}", f"RoleBinding.{RBAC} bar/binds"
VIEW = an("ClusterRole", "view", rules=[READING], aggregationRule={"clusterRoleSelectors": []})
BINDS_VIEW = bound("RoleBinding", ("ClusterRole", "view"), "bar", "binds")
ANYWAY = "--allow bind lets the account bind view, no matter which rights it has"
SENTENCES = {
    "a kind that isn't served": (
        [{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}], (),
        "the cluster knows no kind Widget example.com/v1: no rights for it", "apply its CRD first",
    ),
    "a role that gathers others": (
        [VIEW], (),
        f"{ROLE} view aggregates the rules of other ClusterRoles (aggregationRule); only accounts with all rights may write it",
        "apply it by hand, or --allow escalate lets the account write it, no matter what it aggregates",
    ),
    "a binding to nothing": (
        [an("RoleBinding", "binds", "bar")], (), f"{BINDING} refers to no Role or ClusterRole", "correct its roleRef",
    ),
    "a binding to a role that can't be read": (
        [BINDS_VIEW], (),
        f"{BINDING} binds {ROLE} view, which can't be read, so it isn't known which rights it grants, so the account may not write it",
        ANYWAY,
    ),
    "a binding to a live role that gathers others": (
        [BINDS_VIEW], (VIEW,), f"{BINDING} binds {ROLE} view, which aggregates the rules of other ClusterRoles",
        "run grant again when its rules have changed; otherwise the account may not write the binding",
    ),
    "a role of too many rights": (
        [an("Role", "huge", "bar", rules=[{"apiGroups": list("abcdefghij"), "resources": [str(at) for at in range(101)], "verbs": [str(at) for at in range(50)]}])],
        (), f"Role.{RBAC} bar/huge amounts to more than 50000 single rights, which are too many to grant", "use fewer rules",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("manifests", "roles", "message", "hint"), SENTENCES.values(), ids=SENTENCES)
def test_what_is_not_given_is_said_in_whole(manifests, roles, message, hint):
    (found,) = needs(*manifests, roles=roles).problems
    assert (found.path, found.line, found.message, found.hint) == ("0.yaml", 1, message, hint)
    assert found.severity is Severity.WARNING


def test_a_binding_to_a_role_of_the_source_that_gathers_others_is_said():
    of_binding = needs(VIEW, BINDS_VIEW).problems[1]
    assert of_binding.message == (
        f"{BINDING} binds {ROLE} view, which aggregates the rules of other ClusterRoles, so the account may not write it"
    )
    assert (of_binding.path, of_binding.hint) == ("1.yaml", ANYWAY)


# --- the rest -----------------------------------------------------------------------------------


def test_a_kind_that_nobody_serves_is_said_and_hides_no_other():
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}}
    found = needs(widget, an("ConfigMap"))
    assert said(found) == ["the cluster knows no kind Widget example.com/v1: no rights for it"]
    assert Rbac(grant_of(SHOP, found)).may(USER, "create", "", "configmaps", "shop", "")


def test_kinds_that_the_source_brings_along_are_known():
    crd = an(
        "CustomResourceDefinition",
        "widgets.example.com",
        spec={
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {}}],
        },
    )
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one", "namespace": "bar"}}
    found = needs(widget, crd)
    assert found.problems == ()
    assert Rbac(grant_of(SHOP, found)).may(USER, "patch", "example.com", "widgets", "bar", "one")


def test_members_that_are_to_go_may_be_listed_and_deleted_where_they_are():
    config = KINDS[GroupVersionKind("", "v1", "ConfigMap")]
    found = needs(members=[(ObjectRef("", "ConfigMap", "old", "web"), config)])
    rbac = Rbac(grant_of(SHOP, found))
    assert rbac.may(USER, "delete", "", "configmaps", "old", "web")
    assert rbac.may(USER, "list", "", "configmaps", "old", "")


def test_an_empty_source_needs_its_secrets_alone_and_without_secrets_nothing():
    assert list(needs().placed()) == [("shop", Right("", "secrets", "get", name)) for name in ("git", "hook")]
    bare = Sync(name="shop", namespace="shop")
    assert [one["kind"] for one in grant_of(bare, needs_of(RightsInputs(bare, [], KINDS)))] == ["ServiceAccount"]


def test_what_holds_values_of_variables_is_read_and_watched_by_its_name():
    refs = [
        {"configMapKeyRef": {"name": "cluster"}},
        {"secretKeyRef": {"name": "shop"}},
        {"secretKeyRef": {"name": "shop", "key": "x"}},
    ]
    variables = [{"name": f"V{number}", "valueFrom": ref} for number, ref in enumerate(refs)]
    source = {"git": {"url": "https://g/x"}, "substitute": {"variables": [*variables, {"name": "OWN", "value": "1"}]}}
    sync = Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})
    verbs = ("get", "list", "watch")
    wanted = {Right("", "configmaps", verb, "cluster") for verb in verbs} | {
        Right("", "secrets", verb, "shop") for verb in verbs
    }
    assert {right for _, right in needs_of(RightsInputs(sync, [], KINDS)).placed()} == wanted


def test_what_holds_values_of_a_chart_is_read_and_watched_by_its_name():
    entries = [
        {"kind": "ConfigMap", "name": "cluster"},
        {"kind": "Secret", "name": "db", "valuesKey": "x", "targetPath": "x"},
    ]
    source = {"git": {"url": "https://g/x"}, "helm": {"valuesFrom": [*entries, entries[0]]}}
    sync = Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})
    verbs = ("get", "list", "watch")
    wanted = {Right("", "configmaps", verb, "cluster") for verb in verbs} | {
        Right("", "secrets", verb, "db") for verb in verbs
    }
    assert {right for _, right in needs_of(RightsInputs(sync, [], KINDS)).placed()} == wanted


def test_a_secret_of_the_sync_is_not_named_twice_where_all_secrets_may_be_read():
    rights = [right for place, right in needs(an("Secret")).placed() if right.verb == "get"]
    assert rights == [Right("", "secrets", "get")]


def test_only_some_needs_can_be_picked():
    found = needs(an("ConfigMap"), an("Namespace", "bar"))
    wanted = [("shop", Right("", "secrets", "get", "git")), ("", Right("", "namespaces", "create"))]
    picked = found.only(wanted)
    assert sorted(picked.placed()) == sorted(wanted)
    assert picked.made == found.made == {"bar"}


# --- what modules need --------------------------------------------------------------------------


def a_module(kind, **more):
    return module(api="example.com/v1", kind=kind, name=kind.lower(), **more)(lambda *_: Outcome())


def needs_with(modules, *crs):
    kinds = {
        each.gvk: Kind(each.gvk, f"{each.gvk.kind.lower()}s", namespaced=each.gvk.kind != "Zone", schema=UNKNOWN)
        for each in modules
    }
    manifests = [
        {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "one", **where}} for kind, where in crs
    ]
    return needs_of(RightsInputs(SHOP, located(*manifests), kinds, modules={each.gvk: each for each in modules}))


DB = a_module("Database", owns=["v1/Secret"])
CACHE = a_module("Cache", owns=[], reads=[Reads("v1", "Secret", of=lambda _: None)])
LEDGER = a_module("Ledger", owns=[], reads=[Reads("v1", "Secret", of=lambda _: None, on_request=True)])
PLAIN = a_module("Plain", owns=["v1/Service"])
STACK = a_module("Stack", owns=["example.com/v1/Database", "example.com/v1/Stack"])
ZONE = a_module("Zone", owns=["v1/Secret"])


def test_modules_are_given_the_secrets_of_the_namespaces_where_they_make_or_read_some():
    found = needs_with(
        [DB, CACHE, PLAIN, STACK, ZONE], ("Database", {"namespace": "a"}), ("Cache", {}), ("Plain", {}), ("Zone", {})
    )
    assert {key: sorted(right.verb for right in rights) for key, rights in found.of_modules.items()} == {
        ("a", "kubectl-reconcile-module-database"): ["create", "delete", "get", "list", "patch", "watch"],
        ("shop", "kubectl-reconcile-module-cache"): ["get", "list", "watch"],
    }
    assert not any(right.resource == "secrets" and not right.name for _, right in found.placed())


def test_a_module_that_reads_secrets_on_request_may_watch_none_of_them():
    found = needs_with([LEDGER], ("Ledger", {}))
    assert {key: sorted(right.verb for right in rights) for key, rights in found.of_modules.items()} == {
        ("shop", "kubectl-reconcile-module-ledger"): ["create", "get"],
    }


def test_a_module_that_rewrites_its_secrets_may_patch_them_too():
    vault = a_module("Vault", owns=[], reads=[Reads("v1", "Secret", of=lambda _: None, on_request=True, rewrites=True)])
    (rights,) = needs_with([vault], ("Vault", {})).of_modules.values()
    assert sorted(right.verb for right in rights) == ["create", "get", "patch"]


def test_a_module_that_reads_whole_namespaces_may_look_at_those_of_its_custom_resources():
    scan = a_module(
        "Scan",
        owns=[],
        reads=[Reads(api, kind, whole_namespace=True) for api, kind in (("v1", "Pod"), ("apps/v1", "Deployment"))],
    )
    found = needs_with([scan], ("Scan", {"namespace": "a"}))
    assert {key: sorted(map(str, rights)) for key, rights in found.of_modules.items()} == {
        ("a", "kubectl-reconcile-module-scan"): sorted(
            str(Right(group, resource, verb))
            for group, resource in (("", "pods"), ("apps", "deployments"))
            for verb in ("get", "list", "watch")
        )
    }


def test_the_rights_of_a_module_that_cant_be_loaded_arent_known_and_that_is_said():
    lost = UnloadedModule(
        "lost", GroupVersionKind("example.com", "v1", "Lost"), owns=(), reads=(), reconcile=lambda *_: Outcome(), docs="",
        why="its module can't be loaded", hint="install it",
    )  # fmt: skip
    found = needs_with([lost], ("Lost", {"namespace": "a"}))
    assert found.of_modules == {}
    assert [(each.message, each.hint) for each in found.problems] == [
        ("the rights of a module aren't known: its module can't be loaded", "install it")
    ]


def test_what_a_custom_resource_entrusts_a_module_with_takes_the_rights_to_do_it_by_hand():
    gvk = GroupVersionKind("checks.reconcile.dev", "v1alpha1", "Checkup")
    kinds = {gvk: Kind(gvk, "checkups", namespaced=True, schema=UNKNOWN)}
    job, key = EntrustedField(("spec", "job"), names_secret=False), EntrustedField(("spec", "key"), names_secret=True)
    fields, of_the_sync = {gvk.group_kind: (job, key)}, {Right("", "secrets", "get", name) for name in ("git", "hook")}

    def asked(spec):
        checkup = {"apiVersion": gvk.api_version, "kind": "Checkup", "metadata": {"name": "a"}, "spec": spec}
        found = needs_of(RightsInputs(SHOP, located(checkup), kinds, entrusted=fields))
        return {right for right in found.here["shop"] if right.resource in {"pods", "secrets"}} - of_the_sync

    assert asked({"job": {"template": {}}}) == {Right("", "pods", "create")}
    assert asked({"key": "tls"}) == {Right("", "secrets", "get", "tls")}
    assert not any(map(asked, [{"scan": {}}, {"load": {}}, "job", None]))


def test_modules_below_a_custom_resource_count_once():
    found = needs_with([DB, STACK], ("Stack", {}))
    assert list(found.of_modules) == [("shop", "kubectl-reconcile-module-database")]


def test_the_account_of_a_module_gets_it_from_a_grant_in_that_namespace_alone():
    objects = grant_of(SHOP, needs_with([DB], ("Database", {"namespace": "a"})), daemon=Account.parse("ops/gitops"))
    rbac, user = Rbac(objects), "system:serviceaccount:ops:kubectl-reconcile-module-database"
    assert rbac.may(user, "get", "", "secrets", "a", "password")
    assert not rbac.may(user, "get", "", "secrets", "shop", "password")
    assert not rbac.may(USER, "get", "", "secrets", "a", "password")
    granted = [one["metadata"] for one in objects if "labels" in one["metadata"]]
    assert all(is_granted_name(SHOP, one.get("namespace", ""), one["name"]) for one in granted)
    assert not is_granted_name(SHOP, "a", "kubectl-reconcile:shop:shops")


# --- the grant ----------------------------------------------------------------------------------


def test_a_grant_is_the_account_and_a_role_and_binding_in_each_place():
    found = grant_of(SHOP, needs(an("ConfigMap"), an("ConfigMap", namespace="bar"), an("Namespace", "bar")))
    assert [(one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in found] == [
        ("ServiceAccount", "shop", "kubectl-reconcile"),
        ("ClusterRole", "", "kubectl-reconcile:shop:shop"),
        ("ClusterRoleBinding", "", "kubectl-reconcile:shop:shop"),
        ("Role", "bar", "kubectl-reconcile:shop:shop"),
        ("RoleBinding", "bar", "kubectl-reconcile:shop:shop"),
        ("Role", "shop", "kubectl-reconcile-shop"),
        ("RoleBinding", "shop", "kubectl-reconcile-shop"),
    ]
    assert len({one["metadata"]["labels"]["reconcile.dev/granted-to"] for one in found[1:]}) == 1


def test_a_grant_of_one_right_is_these_objects():
    sync = Sync(name="shop", namespace="shop", service_account="deployer")
    given = Needs(
        {"bar": frozenset({Right("", "pods", "get")})},
        of_modules={("bar", "module"): frozenset({Right("", "secrets", "get")})},
    )
    labels = {"reconcile.dev/granted-to": applyset_id(sync.ref)}

    def pair(name, place, resource, verb, account, namespace, *, names=(), **more):
        metadata = {"name": name, "namespace": place, **more}
        rule = {
            "apiGroups": [""],
            "resources": [resource],
            "verbs": [verb],
            **({"resourceNames": [*names]} if names else {}),
        }
        role = {"apiGroup": RBAC, "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        return [
            {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            },
        ]

    assert grant_of(sync, given, daemon=Account("ops", "gitops")) == [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": "shop"}},
        *pair("kubectl-reconcile:shop:shop", "bar", "pods", "get", "deployer", "shop", labels=labels),
        *pair("kubectl-reconcile:shop:shop:module", "bar", "secrets", "get", "module", "ops", labels=labels),
        *pair(
            "kubectl-reconcile:impersonate:deployer", "shop", "serviceaccounts", "impersonate", "gitops", "ops", names=["deployer"],
        ),
    ]  # fmt: skip


def test_namespaces_that_are_to_be_made_come_first():
    assert grant_of(SHOP, Needs(), namespaces=["b", "a"])[:2] == [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}},
    ]


def test_syncs_of_two_namespaces_do_not_meet_in_the_roles_of_a_third():
    def roles(namespace):
        sync = Sync(name="shop", namespace=namespace)
        source = RightsInputs(sync, located(an("ConfigMap", namespace="both")), KINDS)
        return {one["metadata"]["name"] for one in grant_of(sync, needs_of(source)) if one["kind"] == "Role"}

    assert not roles("left") & roles("right")


def test_an_account_of_another_name_lets_the_daemon_act_as_it_and_as_nobody_else():
    sync = Sync(name="shop", namespace="shop", service_account="deployer")
    found = grant_of(sync, Needs(), daemon=Account.parse("ops/gitops"))
    rbac, daemon = Rbac(found), "system:serviceaccount:ops:gitops"
    assert rbac.may(daemon, "impersonate", "", "serviceaccounts", "shop", "deployer")
    assert not rbac.may(daemon, "impersonate", "", "serviceaccounts", "shop", "default")
    assert not rbac.may(daemon, "impersonate", "", "serviceaccounts", "bar", "deployer")
    assert not rbac.may("system:serviceaccount:shop:deployer", "impersonate", "", "serviceaccounts", "shop", "deployer")


@pytest.mark.parametrize("text", ["", "ops", "ops/", "/gitops", "a/b/c"])
def test_what_is_no_account_is_refused(text):
    with pytest.raises(ValueError, match="isn't a NAMESPACE/NAME of a ServiceAccount"):
        Account.parse(text)


def test_an_account_has_the_name_and_groups_by_which_the_server_knows_it():
    account = Account.of(SHOP)
    assert account.user == SHOP.account == USER
    assert account.groups == ("system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated")
    assert str(account) == "shop/kubectl-reconcile"


KEPT_IN = {"a Secret": ("secretRef", "secrets"), "a ConfigMap": ("configMapRef", "configmaps")}


CHART = {"repository": "oci://g/x", "name": "web", "version": "1.2.3"}
SIGNED = {
    "commits": {"git": {"url": "https://g/x"}},
    "an artifact": {"oci": {"url": "oci://g/x"}},
    "a chart": {"chart": CHART},
    "commits and a chart": {"git": {"url": "https://g/x"}, "chart": CHART},
}


@pytest.mark.parametrize("source", SIGNED.values(), ids=SIGNED)
@pytest.mark.parametrize(("field", "resource"), KEPT_IN.values(), ids=KEPT_IN)
def test_keys_whose_signatures_count_are_read_by_name(field, resource, source):
    verify = {"verify": {field: {"name": "keys"}}}
    metadata = {"name": "shop", "namespace": "shop"}
    source = {name: {**each, **verify} for name, each in source.items()}
    signed = Sync.of({"metadata": metadata, "spec": {"source": source}})
    found = needs_of(RightsInputs(signed, (), {}))
    assert list(found.placed()) == [("shop", Right("", resource, "get", "keys"))]


@pytest.mark.parametrize("source", [{"oci": {"url": "oci://g/x"}}, {"chart": CHART}], ids=["an artifact", "a chart"])
def test_the_root_that_certificates_are_trusted_by_is_read_by_name(source):
    verify = {"matchOIDCIdentity": [{"issuer": "x", "subject": "y"}], "trustedRootSecretRef": {"name": "root"}}
    source = {name: {**each, "verify": verify} for name, each in source.items()}
    signed = Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})
    found = needs_of(RightsInputs(signed, (), {}))
    assert list(found.placed()) == [("shop", Right("", "secrets", "get", "root"))]


def test_a_sync_of_another_namespace_that_is_waited_for_is_read_by_name_and_others_need_no_right():
    waits = Sync.of(
        {
            "metadata": {"name": "shop", "namespace": "shop"},
            "spec": {"dependsOn": [{"name": "base"}, {"name": "net", "namespace": "bar"}]},
        }
    )
    found = needs_of(RightsInputs(waits, (), KINDS))
    assert found.here == {"bar": frozenset({Right("reconcile.dev", "syncs", "get", "net")})}


def test_the_account_of_a_sync_that_makes_namespaces_may_make_those_of_its_objects():
    objects = [located(an("ConfigMap", "a", "bar"))[0], located(an("ConfigMap", "b", "shop"))[0]]
    for making, rights in (
        (True, {Right("", "namespaces", "create"), Right("", "namespaces", "get", "bar")}),
        (False, set()),
    ):
        found = needs_of(RightsInputs(replace(SHOP, create_namespace=making), objects, KINDS))
        assert {each for each in found.everywhere if each.resource == "namespaces"} == rights
        assert found.made == ({"bar"} if making else set())
