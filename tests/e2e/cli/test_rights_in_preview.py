"""diff SYNC tells which right the Sync's account lacks, on a cluster with real RBAC; who may not ask is told so once."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus

RBAC = "rbac.authorization.k8s.io"


def an(kind, name, **content):
    api = f"{RBAC}/v1" if kind.startswith(("Role", "ClusterRole")) else "v1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **content}


@pytest.fixture(autouse=True)
def distrusted(cluster, may, namespace, eventually):
    """Take back what lets the accounts of other tests do everything; distrusted() does so again after cluster.trust()."""

    def distrust():
        cluster.distrust()
        account = f"system:serviceaccount:{namespace}:kubectl-reconcile"
        eventually(lambda: not may(account, "create", "configmaps", namespace), "the account may do nothing")

    distrust()
    return distrust


@pytest.fixture
def sync(follow, git_server):
    """sync(*manifests) -> a Sync that follows a repository with these."""

    def make(*manifests, **spec):
        git_server.push({f"{number}.json": json.dumps(one) for number, one in enumerate(manifests)})
        return follow(git_server.url, **spec)

    return make


@pytest.fixture
def allow(kubectl, namespace, eventually):
    """allow("get,patch", "configmaps", "web") gives the account rights; an effect is waited for by who looks."""

    def give(verbs, resource, *names, kind="role"):
        role = f"given-{namespace}-{abs(hash((verbs, resource, names)))}"
        where = ["-n", namespace] if kind == "role" else []
        name_flags = [f"--resource-name={name}" for name in names]
        kubectl("create", kind, role, f"--verb={verbs}", f"--resource={resource}", *name_flags, *where)
        account = f"--serviceaccount={namespace}:kubectl-reconcile"
        kubectl("create", f"{kind}binding", role, f"--{kind}={role}", account, *where)

    return give


def changes(done):
    return {one["object"]["name"]: one for one in json.loads(done.out)["changes"]}


def test_a_missing_right_is_told_with_the_grant_that_gives_it(sync, plugin, namespace, eventually):
    sync(an("ConfigMap", "web"), an("ConfigMap", "other"))
    done = plugin("diff", "shop")
    assert done.status == ExitStatus.FAILED
    why = f"ServiceAccount {namespace}/kubectl-reconcile may not get, create, patch configmaps in namespace {namespace}"
    assert done.err.count(why) == 1  # one cause, however many objects
    assert f"(hint: kubectl reconcile grant shop -n {namespace})" in done.err
    assert done.out.endswith("2 refused, 0 unchanged\n")
    assert f"refused ConfigMap {namespace}/web  would be refused: {why}" in plugin("diff", "shop", "-o", "tree").out

    assert plugin("grant", "shop", "--apply", "--yes").status == 0
    eventually(lambda: plugin("diff", "shop").status == ExitStatus.DIFFERENT, "nothing is missing any more")


def test_nothing_is_asked_where_nothing_is_to_be_done(sync, plugin, cluster):
    sync(an("ConfigMap", "web"))
    assert "accessreviews" in plugin("diff", "shop", "-v", "6").err
    cluster.trust()
    assert plugin("sync", "shop", "--yes").status == 0
    assert "accessreviews" not in plugin("diff", "shop", "-v", "6").err


def test_rights_on_single_names_count(sync, plugin, cluster, namespace, allow, eventually, distrusted):
    sync(an("ConfigMap", "web", data={"color": "red"}), an("ConfigMap", "other", data={"color": "red"}))
    cluster.trust()
    assert plugin("sync", "shop", "--yes").status == 0
    distrusted()
    for name in ("web", "other"):
        cluster.edit("ConfigMap", name, {"data": {"color": "blue"}})
    allow("get,patch", "configmaps", "web")

    def found():
        return {name: one.get("denied", "") for name, one in changes(plugin("diff", "shop", "-o", "json")).items()}

    eventually(lambda: found()["web"] == "", "the right on that name is known")
    assert f"may not get, patch configmaps in namespace {namespace}" in found()["other"]


def test_roles_that_give_more_than_the_account_holds_are_told(sync, plugin, namespace, kubectl, allow, eventually):
    reading = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    sync(an("Role", "reader", rules=[reading]), an("RoleBinding", "viewer", roleRef=ref, subjects=[]))
    allow("get,create,patch", f"roles.{RBAC},rolebindings.{RBAC}")

    def found():
        return {name: one.get("denied", "") for name, one in changes(plugin("diff", "shop", "-o", "json")).items()}

    why = f"ServiceAccount {namespace}/kubectl-reconcile may not grant rights that it doesn't have itself: get pods in namespace"
    eventually(lambda: found()["reader"].startswith(why), "the Role itself may be written")
    assert "may not grant rights that it doesn't have itself: " in found()["viewer"]
    allow("get", "pods")
    eventually(lambda: found()["reader"] == "", "what it gives is held")
    allow("bind", f"clusterroles.{RBAC}", "view")
    eventually(lambda: found()["viewer"] == "", "what it binds may be bound")


def test_who_may_not_ask_is_told_so_once_and_sees_the_same_plan(sync, plugin, kubectl, namespace, eventually):
    sync(an("ConfigMap", "web"), an("ConfigMap", "other"))
    kubectl("create", "rolebinding", "edit", "--clusterrole=edit", "--user=editor", "-n", namespace)
    kubectl("create", "role", "syncs", "--verb=get,list", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "syncs", "--role=syncs", "--user=editor", "-n", namespace)
    eventually(lambda: plugin("diff", "shop", "--as", "editor").status == ExitStatus.DIFFERENT, "the editor may look")
    told = plugin("diff", "shop", "--as", "editor").err
    assert told.count("unchecked: what ServiceAccount") == 1
    assert (
        f"Sync {namespace}/shop: unchecked: what ServiceAccount {namespace}/kubectl-reconcile may do in namespace"
        in told
    )
    editor, admin = (json.loads(plugin("diff", "shop", "-o", "json", *who).out) for who in (["--as", "editor"], []))
    assert editor["hash"] == admin["hash"]
    assert [one["fingerprint"] for one in editor["changes"]] == [one["fingerprint"] for one in admin["changes"]]
    assert all(one.get("denied") for one in admin["changes"])


def test_who_may_only_look_sees_the_plan_of_those_who_may_write(sync, plugin, kubectl, cluster, namespace, eventually):
    sync(an("ConfigMap", "web", data={"color": "red"}), an("Service", "new", spec={"ports": [{"port": 80}]}))
    cluster.apply({**an("ConfigMap", "web", data={"color": "blue"})})
    kubectl("create", "rolebinding", "view", "--clusterrole=view", "--user=viewer", "-n", namespace)
    kubectl("create", "role", "syncs", "--verb=get,list", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "syncs", "--role=syncs", "--user=viewer", "-n", namespace)
    eventually(lambda: plugin("diff", "shop", "--as", "viewer").status == ExitStatus.DIFFERENT, "the viewer may look")
    done = plugin("diff", "shop", "--as", "viewer", "-o", "json")
    assert "not checked in a dry run: changes that you may not make yourself are shown as planned" in done.err
    viewer, admin = json.loads(done.out), json.loads(plugin("diff", "shop", "-o", "json").out)
    assert (viewer["hash"], viewer["confirmed"], admin["confirmed"]) == (admin["hash"], False, True)
    assert not any("blocked" in one for one in viewer["changes"])


def test_files_are_refused_to_who_may_not_write_them(plugin, kubectl, namespace, tmp_path, eventually):
    (tmp_path / "web.json").write_text(json.dumps(an("ConfigMap", "web")))
    kubectl("create", "rolebinding", "view", "--clusterrole=view", "--user=viewer", "-n", namespace)
    flags = ["-f", str(tmp_path), "--as", "viewer"]
    eventually(lambda: 'User "viewer" cannot patch' in plugin("diff", *flags).err, "the viewer is refused")
    assert plugin("diff", *flags).status == ExitStatus.FAILED


def test_an_admin_of_the_namespace_may_ask(sync, plugin, kubectl, namespace, eventually):
    sync(an("ConfigMap", "web"))
    kubectl("create", "rolebinding", "admin", "--clusterrole=admin", "--user=boss", "-n", namespace)
    kubectl("create", "role", "syncs", "--verb=get,list", "--resource=syncs.reconcile.dev", "-n", namespace)
    kubectl("create", "rolebinding", "syncs", "--role=syncs", "--user=boss", "-n", namespace)
    eventually(lambda: "1 refused" in plugin("diff", "shop", "--as", "boss").out, "the admin is told what is missing")
    assert "unchecked" not in plugin("diff", "shop", "--as", "boss").err


def test_files_and_hand_kept_syncs_are_applied_as_the_caller_and_nothing_is_asked(plugin, tmp_path, sync):
    (tmp_path / "web.json").write_text(json.dumps(an("ConfigMap", "web")))
    for flags in ([], ["--name", "new"]):
        done = plugin("diff", "-f", str(tmp_path), *flags, "-v", "6")
        assert (done.status, "accessreviews" in done.err) == (ExitStatus.DIFFERENT, False)
    sync(an("ConfigMap", "web"))
    assert plugin("diff", "-f", str(tmp_path), "--name", "shop").status == ExitStatus.DIFFERENT
    assert plugin("diff", "shop", "--offline").status == ExitStatus.DIFFERENT
