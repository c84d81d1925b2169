"""grant on a cluster with real RBAC: what it prints is enough for the account and nothing more, and later ones shrink it."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.cli.verbs.change import grant as declared
from kubectl_reconcile.core.planning.rights.grant import DAEMON
from kubectl_reconcile.core.planning.rights.needs import Sensitive
from tests import yaml_text
from tests.e2e.cli.terminal import on_terminal
from tests.e2e.cluster import CLUSTER_SCOPED, until_may

RBAC = "rbac.authorization.k8s.io"
READING = {"apiGroups": [""], "resources": ["pods", "configmaps"], "verbs": ["get", "list", "watch"]}


def an(kind, name, namespace="", api="v1", **content):
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **place}, **content}


def of_rbac(kind, name, namespace="", **content):
    return an(kind, name, namespace, f"{RBAC}/v1", **content)


def bound(kind, name, role, namespace=""):
    ref = {"apiGroup": RBAC, "kind": role[0], "name": role[1]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace or "default"}
    return of_rbac(kind, name, namespace, roleRef=ref, subjects=[subject])


def whole(namespace):
    """A source with all that RBAC makes difficult: two namespaces, one of which it brings, a CRD, Roles and bindings."""
    other = f"{namespace}-other"
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    group = f"{namespace}.example.com"
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return [
        an("Namespace", other),
        an("CustomResourceDefinition", f"gadgets.{group}", api="apiextensions.k8s.io/v1", spec=spec),
        an("ConfigMap", "web", data={"color": "red"}),
        an("ConfigMap", "far", other),
        an("ServiceAccount", "bot", other),
        of_rbac(
            "ClusterRole", f"{namespace}-reader", rules=[READING, {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
        ),
        bound("ClusterRoleBinding", f"{namespace}-reader", ("ClusterRole", f"{namespace}-reader")),
        of_rbac("Role", "deleter", other, rules=[{**READING, "verbs": ["delete"], "resourceNames": ["a", "b"]}]),
        bound("RoleBinding", "deleter", ("Role", "deleter"), other),
        bound("RoleBinding", "viewer", ("ClusterRole", "view"), other),
        an("Gadget", "one", other, api=f"{group}/v1"),
    ]


@pytest.fixture
def sync(follow, git_server, cluster, namespace):
    """sync(manifests, …) -> a Sync that follows a repository with these; what is cluster-scoped goes at the end."""
    made = []

    def make(manifests, **spec):
        made.extend(manifests)
        git_server.push({f"{number}.json": json.dumps(one) for number, one in enumerate(manifests)})
        return follow(git_server.url, **spec)

    yield make
    for one in made:
        if one["kind"] in CLUSTER_SCOPED:
            cluster.remove(one["kind"], one["metadata"]["name"])
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        cluster.remove(kind, f"kubectl-reconcile:{namespace}:shop")


@pytest.fixture(autouse=True)
def account(cluster, may, namespace, eventually):
    """The account, which may nothing: what lets those of other tests do everything is taken back."""
    cluster.distrust()
    name = f"system:serviceaccount:{namespace}:kubectl-reconcile"
    eventually(lambda: not may(name, "create", "configmaps", namespace), "the account may do nothing")
    return name


# --- what is printed ----------------------------------------------------------------------------


def test_what_is_printed_is_enough_to_write_and_delete_every_object(
    sync, plugin, kubectl, namespace, account, may, eventually
):
    source = whole(namespace)
    sync(source)
    done = plugin("grant", "shop")
    assert done.status == 0, done.err
    kubectl("apply", "-f", "-", stdin=done.out)
    eventually(lambda: may(account, "create", "configmaps", namespace), "the server knows the rights")
    for one in source:
        place = [] if one["metadata"].get("namespace") else ["-n", namespace]
        words = ("apply", "--server-side", "-f", "-", "--as", account, *place)
        eventually(lambda words=words, one=one: [kubectl(*words, stdin=one)], "the server knows this right, too")
        if one["kind"] == "CustomResourceDefinition":
            name = f"crd/{one['metadata']['name']}"
            kubectl("wait", "--for=condition=Established", "--timeout=300s", name)
    for one in reversed(source):
        place = one["metadata"].get("namespace") or namespace
        api = one["apiVersion"].rpartition("/")[0]
        kind, name = f"{one['kind']}.v1.{api}" if api else one["kind"], one["metadata"]["name"]
        if one["kind"] not in {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}:
            kubectl("get", kind, "-n", place, "--as", account)
        kubectl("delete", kind, name, "-n", place, "--as", account, "--wait=false")


def test_what_is_printed_gives_nothing_else(sync, plugin, kubectl, namespace, account, may, eventually):
    sync([an("ConfigMap", "web"), an("Namespace", f"{namespace}-other"), an("ConfigMap", "far", f"{namespace}-other")])
    kubectl("apply", "-f", "-", stdin=plugin("grant", "shop").out)
    eventually(lambda: may(account, "create", "configmaps", f"{namespace}-other"), "the server knows the rights")
    eventually(lambda: may(account, "delete", "namespaces", "", f"{namespace}-other"), "the server knows all of them")
    for verb, resource, place, name in (
        ("get", "secrets", namespace, ""),
        ("create", "configmaps", "default", ""),
        ("delete", "namespaces", "", "default"),
        ("deletecollection", "configmaps", namespace, ""),
        ("create", f"roles.{RBAC}", namespace, ""),
        ("create", "serviceaccounts/token", namespace, ""),
        ("impersonate", "serviceaccounts", namespace, ""),
    ):
        assert not may(account, verb, resource, place, name), (verb, resource)


def test_the_secrets_that_a_sync_names_are_read_by_name(sync, plugin, kubectl, namespace, account, may, eventually):
    sync([], git={"secretRef": {"name": "git"}, "webhookSecretRef": {"name": "hook"}})
    metadata = {"name": "git", "annotations": {"reconcile.dev/urls": "http://127.0.0.1"}}
    kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "namespace": namespace}})
    done = plugin("grant", "shop")
    assert done.status == ExitStatus.SOURCE  # the Secret isn't for this repository
    git = kubectl.json("get", "sync", "shop", "-n", namespace)["spec"]["source"]["git"]["url"]
    kubectl("annotate", "secret", "git", "-n", namespace, "--overwrite", f"reconcile.dev/urls={git}")
    kubectl("apply", "-f", "-", stdin=plugin("grant", "shop").out)
    eventually(lambda: may(account, "get", "secrets", namespace, "git"), "the server knows the rights")
    eventually(lambda: may(account, "get", "secrets", namespace, "hook"), "the server knows both")
    assert not may(account, "get", "secrets", namespace, "other")
    assert not may(account, "list", "secrets", namespace)
    assert not may(account, "patch", "secrets", namespace, "git")


def test_an_account_of_its_own_name_may_be_acted_as_by_the_daemon_alone(
    sync, plugin, kubectl, namespace, may, eventually
):
    sync([an("ConfigMap", "web")], serviceAccountName="deployer")
    done = plugin("grant", "shop", "--daemon", "ops/gitops")
    kubectl("apply", "-f", "-", stdin=done.out)
    daemon = "system:serviceaccount:ops:gitops"
    eventually(lambda: may(daemon, "impersonate", "serviceaccounts", namespace, "deployer"), "the daemon may act as it")
    assert not may(daemon, "impersonate", "serviceaccounts", namespace, "default")
    assert not may(daemon, "impersonate", "serviceaccounts", "default", "deployer")
    deployer = f"system:serviceaccount:{namespace}:deployer"
    eventually(lambda: may(deployer, "create", "configmaps", namespace), "the account may write")
    assert not may(f"system:serviceaccount:{namespace}:kubectl-reconcile", "create", "configmaps", namespace)


def test_what_is_printed_says_for_whom_and_of_what_revision(sync, plugin, namespace, git_server):
    sync([an("ConfigMap", "web")])
    sha = git_server.push({"0.json": json.dumps(an("ConfigMap", "web"))}, "again")
    text = plugin("grant", "shop").out
    said = f"# What Sync {namespace}/shop needs at {sha[:7]}, for ServiceAccount {namespace}/kubectl-reconcile.\n"
    assert text.startswith(f"{said}---\n")
    assert [one["kind"] for one in yaml_text.documents(text)] == ["ServiceAccount", "Role", "RoleBinding"]


def test_a_summary_says_where_which_verbs_and_on_what(sync, plugin, namespace):
    other = f"{namespace}-other"
    sync([an("ConfigMap", "web"), an("Service", "web"), an("Namespace", other)])
    done = plugin("grant", "shop", "-o", "summary")
    rows = [text.split("   ") for text in done.out.splitlines()]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["NAMESPACE", "VERBS", "ON"],
        ["(everywhere)", "list, watch, create", "namespaces"],
        ["(everywhere)", "get, update, patch, delete", f"namespaces {other}"],
        [namespace, "get, list, watch, create, update, patch, delete", "configmaps, services"],
    ]


def test_another_revision_and_a_folder_can_be_asked_for(sync, plugin, git_server, namespace, tmp_path):
    sync([an("ConfigMap", "web")])
    git_server.push({"more.json": json.dumps(an("Service", "web"))}, "more", branch="next")
    assert "services" not in plugin("grant", "shop", "-o", "summary").out
    assert "services" in plugin("grant", "shop", "-o", "summary", "--revision", "next").out
    (tmp_path / "web.json").write_text(json.dumps(an("Secret", "web")))
    flags = ["-f", str(tmp_path), "--name", "new", "--service-account", "bot"]
    found = yaml_text.documents(plugin("grant", *flags).out)
    assert (found[0]["metadata"]["name"], found[1]["rules"][0]["resources"]) == ("bot", ["secrets"])
    assert found[-1]["metadata"]["name"] == "kubectl-reconcile:impersonate:bot"


def test_what_is_sensitive_is_left_out_and_told_with_its_flag(sync, plugin, kubectl, namespace, may, eventually):
    role = of_rbac("Role", "all", rules=[{"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}])
    boss = bound("RoleBinding", "boss", ("ClusterRole", "cluster-admin"), namespace)
    sync([role, boss])
    done = plugin("grant", "shop")
    assert done.status == 0
    assert (
        f"Role.{RBAC} {namespace}/all grants “get *”, so the account may not write it (hint: --allow wildcards grants"
        in done.err
    )
    assert f"RoleBinding.{RBAC} {namespace}/boss binds ClusterRole.{RBAC} cluster-admin, which gives" in done.err
    assert "(hint: --allow bind lets the account bind cluster-admin, no matter which rights it has)" in done.err
    given = plugin("grant", "shop", "--allow", "wildcards", "--allow", "bind")
    assert (given.status, given.err) == (0, "")
    account, given_role, _ = yaml_text.documents(given.out)
    assert {"apiGroups": [""], "resources": ["*"], "verbs": ["get"]} in given_role["rules"]
    binding = {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["bind"]}
    assert {**binding, "resourceNames": ["cluster-admin"]} in given_role["rules"]
    kubectl("apply", "-f", "-", stdin=given.out)
    name = account["metadata"]["name"]
    user = f"system:serviceaccount:{namespace}:{name}"
    eventually(lambda: may(user, "get", "pods", namespace), "the server knows the rights")
    for one in (role, boss):
        kubectl("apply", "--server-side", "-f", "-", "--as", user, "-n", namespace, stdin=one)


def test_a_namespace_that_nobody_makes_is_told(sync, plugin, namespace):
    sync([an("ConfigMap", "web"), an("ConfigMap", "far", f"{namespace}-nowhere")])
    done = plugin("grant", "shop")
    assert (
        f"warning: namespace {namespace}-nowhere doesn't exist, and the source doesn't create it, so it gets no Role"
        in done.err
    )
    assert (
        f"(hint: set spec.createNamespace of the Sync, or kubectl create namespace {namespace}-nowhere; then grant again)"
        in done.err
    )
    assert f"{namespace}-nowhere" not in done.out


def test_a_file_that_can_not_be_read_is_an_error_and_the_others_count(follow, git_server, plugin, config_map):
    git_server.push({"web.yaml": config_map("web"), "broken.yaml": "kind: ["})
    follow(git_server.url)
    done = plugin("grant", "shop")
    assert (done.status, "broken.yaml:2: not valid YAML" in done.err) == (ExitStatus.SOURCE, True)
    assert "configmaps" in done.out


# --- what is given ------------------------------------------------------------------------------


def test_apply_gives_it_and_a_later_one_takes_back_what_is_not_needed_any_more(
    sync, plugin, git_server, kubectl, namespace, account, may, eventually
):
    source = whole(namespace)
    followed = sync(source)
    done = plugin("grant", "shop", "--apply", "--yes")
    assert done.status == 0, done.err
    assert f"created  Role.{RBAC} {namespace}/kubectl-reconcile-shop" in done.out
    assert f"asked for a sync of {namespace}/shop" in done.err
    assert "reconcile.dev/sync-requested-at" in followed.live["metadata"]["annotations"]
    eventually(lambda: may(account, "create", "configmaps", f"{namespace}-other"), "the server knows the rights")

    again = plugin("grant", "shop", "--apply", "--yes")
    assert (again.status, again.out) == (
        0, f"ServiceAccount {namespace}/kubectl-reconcile has been given all that the source needs\n",
    )  # fmt: skip

    git_server.push({f"{number}.json": None for number, one in enumerate(source) if one["metadata"]["name"] != "web"})
    spare = plugin("grant", "shop")
    assert f"not needed any more: ClusterRoleBinding.{RBAC} kubectl-reconcile:{namespace}:shop" in spare.err
    assert f"to remove: kubectl reconcile grant shop -n {namespace} --apply" in spare.err
    shrunk = plugin("grant", "shop", "--apply", "--yes")
    assert f"deleted  ClusterRole.{RBAC} kubectl-reconcile:{namespace}:shop" in shrunk.out
    assert f"deleted  Role.{RBAC} {namespace}-other/kubectl-reconcile:{namespace}:shop" in shrunk.out
    eventually(lambda: not may(account, "create", "configmaps", f"{namespace}-other"), "the rights are gone")
    assert may(account, "create", "configmaps", namespace)


def test_only_what_was_shown_is_given_whatever_was_pushed_since(sync, plugin, git_server, kubectl, namespace):
    sync([an("ConfigMap", "web")])
    shown = plugin("grant", "shop")
    words = ("grant", "shop", "--apply", "--plan-hash", shown.out.rpartition("--plan-hash ")[2].strip())
    git_server.push({"more.json": json.dumps(an("Secret", "more"))})
    refused = plugin(*words)
    assert (refused.status, refused.out) == (ExitStatus.HELD, "")
    assert "nothing was given: what would be given isn't what had that hash" in refused.err
    assert kubectl("get", "roles", "-n", namespace) == ""
    git_server.push({"more.json": None})
    given = plugin(*words)
    assert given.status == 0, given.err
    assert "secrets" not in kubectl("get", "role", "kubectl-reconcile-shop", "-n", namespace, "-o", "json")


def test_rights_to_prune_what_left_the_source_stay_until_it_is_gone(
    sync, plugin, git_server, kubectl, namespace, account, may, eventually
):
    sync([an("ConfigMap", "web"), an("Service", "web", spec={"ports": [{"port": 80}]})])
    assert plugin("grant", "shop", "--apply", "--yes").status == 0
    eventually(lambda: may(account, "create", "services", namespace), "the account may write")
    assert plugin("sync", "shop", "--yes").status == 0
    git_server.push({"1.json": None})
    plugin("grant", "shop", "--apply", "--yes")
    eventually(lambda: may(account, "delete", "services", namespace), "the account may prune")
    assert plugin("sync", "shop", "--yes").status == 0
    plugin("grant", "shop", "--apply", "--yes")
    eventually(lambda: not may(account, "delete", "services", namespace), "the right is gone with what it was for")


def test_missing_is_what_reviews_say_and_keeps_what_an_earlier_grant_gave(
    sync, plugin, git_server, kubectl, namespace, account, may, eventually
):
    sync([an("ConfigMap", "web")])
    kubectl("apply", "-f", "-", stdin=plugin("grant", "shop").out)
    verbs = "--verb=get,list,watch,create,update,patch,delete"
    kubectl("create", "role", "by-hand", verbs, "--resource=services", "-n", namespace)
    kubectl("create", "rolebinding", "by-hand", "--role=by-hand", f"--user={account}", "-n", namespace)
    eventually(lambda: may(account, "create", "services", namespace), "the server knows the rights")
    eventually(lambda: may(account, "create", "configmaps", namespace), "the server knows the rights")
    enough = plugin("grant", "shop", "--missing")
    said = f"ServiceAccount {namespace}/kubectl-reconcile may do all that the source needs\n"
    assert (enough.status, enough.out, enough.err) == (0, "", said)
    git_server.push(
        {
            "more.json": json.dumps([an("Service", "web"), an("Secret", "web")][1]),
            "s.json": json.dumps(an("Service", "web")),
        }
    )
    (role,) = yaml_text.documents(plugin("grant", "shop", "--missing").out)
    assert [rule["resources"] for rule in role["rules"]] == [["configmaps", "secrets"]]


def test_who_may_not_ask_what_the_account_may_do_is_told(sync, plugin, kubectl, namespace):
    sync([an("ConfigMap", "web")])
    kubectl("create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer", "-n", namespace)
    kubectl("create", "role", "syncs", "--verb=get,list", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "syncs", "--role=syncs", "--user=viewer", "-n", namespace)
    until_may(kubectl, "viewer", "get", "syncs.reconcile.dev", namespace)
    until_may(kubectl, "viewer", "get", "configmaps", namespace)
    refused = plugin("grant", "shop", "--missing", "--as", "viewer")
    assert refused.status == ExitStatus.FAILED
    assert f"what ServiceAccount {namespace}/kubectl-reconcile may do isn't known" in refused.err
    assert "leave out --missing to print all that the account needs" in refused.err
    assert plugin("grant", "shop", "--as", "viewer").status == 0


def test_an_admin_of_the_namespace_gives_what_they_hold_and_no_more(
    sync, plugin, kubectl, namespace, account, may, eventually
):
    sync([an("ConfigMap", "web"), an("Namespace", f"{namespace}-other")])
    admin = f"admin-{namespace}"
    kubectl("create", "rolebinding", "admin", "--clusterrole=admin", f"--user={admin}", "-n", namespace)
    kubectl("create", "role", "syncs", "--verb=*", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "syncs", "--role=syncs", f"--user={admin}", "-n", namespace)
    eventually(lambda: may(admin, "create", f"roles.{RBAC}", namespace), "the server knows the rights")
    eventually(lambda: may(admin, "get", "syncs.reconcile.dev", namespace), "the server knows the rights")
    done = plugin("grant", "shop", "--apply", "--yes", "--as", admin)
    assert done.status == ExitStatus.FAILED
    assert f"failed   ClusterRole.{RBAC} kubectl-reconcile:{namespace}:shop: " in done.err
    assert f"skipped  ClusterRoleBinding.{RBAC} kubectl-reconcile:{namespace}:shop: it needs ClusterRole" in done.err
    assert "hint: RBAC lets nobody give rights that they don't hold" in done.err
    eventually(lambda: may(account, "create", "configmaps", namespace), "what they hold is given")


def test_a_role_of_that_name_that_somebody_made_is_left_to_them(sync, plugin, kubectl, namespace):
    sync([an("ConfigMap", "web")])
    kubectl("create", "role", "kubectl-reconcile-shop", "--verb=get", "--resource=pods", "-n", namespace)
    done = plugin("grant", "shop", "--apply", "--yes")
    assert done.status == ExitStatus.FAILED
    assert f"failed   Role.{RBAC} {namespace}/kubectl-reconcile-shop: " in done.err
    role = kubectl.json("get", "role", "kubectl-reconcile-shop", "-n", namespace)
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]


def test_a_label_alone_makes_no_role_go(sync, plugin, kubectl, namespace):
    sync([an("ConfigMap", "web")])
    plugin("grant", "shop", "--apply", "--yes")
    labels = kubectl.json("get", "role", "kubectl-reconcile-shop", "-n", namespace)["metadata"]["labels"]
    kubectl.apply(
        {
            **of_rbac("Role", "others", namespace, rules=[]),
            "metadata": {"name": "others", "namespace": namespace, "labels": labels},
        }
    )
    assert plugin("grant", "shop", "--apply", "--yes").status == 0
    kubectl("get", "role", "others", "-n", namespace)


def test_without_a_terminal_nothing_is_given_unasked(sync, plugin, kubectl, namespace):
    sync([an("ConfigMap", "web")])
    refused = plugin("grant", "shop", "--apply")
    assert (refused.status, refused.out) == (ExitStatus.USAGE, "")
    assert "without a terminal, add --yes" in refused.err
    assert kubectl("get", "roles", "-n", namespace) == ""


@pytest.mark.parametrize(("answer", "status"), [("n", ExitStatus.HELD), ("y", ExitStatus.OK)])
def test_on_a_terminal_it_shows_what_is_new_and_asks(sync, kubectl, kubeconfig, namespace, answer, status):
    sync([an("ConfigMap", "web")])
    words = ["grant", "shop", "-n", namespace, "--apply"]
    ended, seen = on_terminal(*words, typed={"[y/N]": f"{answer}\n"}, KUBECONFIG=kubeconfig)
    assert ended == status
    assert "    + get, list, watch, create, update, patch, delete: configmaps" in seen
    assert f"Give ServiceAccount {namespace}/kubectl-reconcile these rights? [y/N]" in seen
    assert bool(kubectl("get", "roles", "-n", namespace)) is (answer == "y")


def test_what_is_pushed_while_it_asks_is_not_given(sync, git_server, kubectl, kubeconfig, namespace):
    sync([an("ConfigMap", "web")])

    def pushes_and_agrees():
        git_server.push({"more.json": json.dumps(an("Secret", "more"))})
        return "y\n"

    words = ["grant", "shop", "-n", namespace, "--apply"]
    ended, seen = on_terminal(*words, typed={"[y/N]": pushes_and_agrees}, KUBECONFIG=kubeconfig)
    assert (ended, "secrets" in seen) == (ExitStatus.OK, False)
    assert "secrets" not in kubectl("get", "role", "kubectl-reconcile-shop", "-n", namespace, "-o", "json")


def test_a_namespace_that_comes_with_the_source_is_made_and_told(sync, plugin, kubectl, namespace):
    other = f"{namespace}-other"
    sync([an("Namespace", other), an("ConfigMap", "far", other)])
    done = plugin("grant", "shop", "--apply", "--yes")
    assert f"namespace {other} doesn't exist yet: the grant creates it, since the source asks for it\n" in done.err
    assert f"created  Namespace {other}\n" in done.out
    kubectl("get", "role", f"kubectl-reconcile:{namespace}:shop", "-n", other)


def test_who_may_not_wake_the_sync_is_told_that_it_goes_on_by_itself(sync, plugin, kubectl, namespace, may, eventually):
    sync([an("ConfigMap", "web")])
    admin = f"admin-{namespace}"
    kubectl("create", "rolebinding", "admin", "--clusterrole=admin", f"--user={admin}", "-n", namespace)
    kubectl("create", "role", "syncs", "--verb=get,list", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "syncs", "--role=syncs", f"--user={admin}", "-n", namespace)
    eventually(lambda: may(admin, "create", f"roles.{RBAC}", namespace), "the server knows the rights")
    eventually(lambda: may(admin, "get", "syncs.reconcile.dev", namespace), "the server knows the rights")
    done = plugin("grant", "shop", "--apply", "--yes", "--as", admin)
    assert done.status == 0, done.err
    assert f"you may not ask for a sync of {namespace}/shop: it continues by itself\n" in done.err


def test_a_sync_that_is_kept_by_hand_is_told_to_need_no_account(plugin, tmp_path, namespace):
    (tmp_path / "web.json").write_text(json.dumps(an("ConfigMap", "web")))
    flags = ["-f", str(tmp_path), "--name", "hand"]
    assert plugin("sync", *flags).status == 0
    told = plugin("grant", *flags).err
    assert f"Sync {namespace}/hand is applied by hand: whoever applies it needs these rights, not its account\n" in told


# --- what can't be meant ------------------------------------------------------------------------

MISUSED = {
    "files without a name": (["-f", "."], "-f and --repo need --name"),
    "an account for a Sync that says its own": (["shop", "--service-account", "x"], "--service-account needs -f"),
    "yes to nothing": (["shop", "--yes"], "--yes needs --apply"),
    "a daemon without a namespace": (["shop", "--daemon", "gitops"], "--daemon: 'gitops' isn't a NAMESPACE/NAME"),
    "an object": (["deploy/web"], "'deploy/web' isn't a name of a Sync"),
    "a sort of right that there isn't": (["shop", "--allow", "everything"], "'everything' is not one of"),
}


@pytest.mark.parametrize(("words", "message"), MISUSED.values(), ids=MISUSED)
def test_what_can_not_be_meant_is_refused(plugin, words, message):
    refused = plugin("grant", *words)
    assert (refused.status, message in refused.err) == (ExitStatus.USAGE, True), refused.err


def test_an_account_of_a_sync_that_is_there_is_not_chosen_anew(sync, plugin, tmp_path, namespace):
    sync([an("ConfigMap", "web")])
    refused = plugin("grant", "-f", str(tmp_path), "--name", "shop", "--service-account", "bot")
    assert refused.status == ExitStatus.USAGE
    assert f"Sync {namespace}/shop already exists, and acts as kubectl-reconcile" in refused.err


def test_the_declared_words_are_those_of_the_core():
    assert set(declared.SENSITIVE) == set(Sensitive)
    assert str(DAEMON) == declared.DAEMON
