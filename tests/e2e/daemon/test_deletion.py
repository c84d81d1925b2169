"""The end of a Sync whose members go with it: what holds it up, what it says meanwhile, and what releases it."""

from __future__ import annotations

import contextlib
import json

import pytest

from kubectl_reconcile.core.annotations import PRUNE_FINALIZER

GROUP = "rbac.authorization.k8s.io"
ACCOUNT = {"kind": "ServiceAccount", "name": "kubectl-reconcile"}
ALL = ["get", "list", "watch", "create", "patch", "delete"]


def rights(cluster, name, *rules, account=None):
    """Let the account of Syncs do what *rules* say, (group, resource, verbs) each, in a cluster's namespace."""
    role = {"apiGroup": GROUP, "kind": "Role", "name": name}
    metadata = {"name": name, "namespace": cluster.namespace}
    subject = account or {**ACCOUNT, "namespace": cluster.namespace}
    given = [{"apiGroups": [group], "resources": [resource], "verbs": verbs} for group, resource, verbs in rules]
    cluster.kubectl.apply(
        [
            {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": given},
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": role,
                "subjects": [subject],
            },
        ],
        "--server-side",
        "--force-conflicts",
    )


def until_refused(cluster, may, eventually, account_of):
    """Wait until it is in force that the account of Syncs in *account_of* may delete no ConfigMap here: authorizers hear of it later."""
    account = f"system:serviceaccount:{account_of}:kubectl-reconcile"
    eventually(lambda: not may(account, "delete", "configmaps", cluster.namespace), "it may delete nothing")


def condition(live, type_):
    conditions = ((live or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


@pytest.fixture
def helpless(daemon, follow, cluster, git_server, config_map, may, eventually):
    """A Sync with one member whose account may do everything but delete it."""
    cluster.distrust()
    rights(cluster, "shop", ("", "configmaps", ALL))
    sync = follow(git_server.url, deletionPolicy="Prune")
    sync.until_synced(git_server.push({"web.yaml": config_map("web")}))
    rights(cluster, "shop", ("", "configmaps", ALL[:-1]))
    until_refused(cluster, may, eventually, cluster.namespace)
    return sync


def until_stalled(sync, eventually):
    def stalled():
        found = condition(sync.live, "Stalled")
        return found if found.get("reason") == "DeletionRefused" else None

    return eventually(stalled, "its deletion is Stalled")


def test_a_deletion_without_rights_is_stalled_with_the_grant_and_goes_on_once_there_are_some(
    helpless, cluster, eventually
):
    cluster.delete("Sync", "shop")
    stalled = until_stalled(helpless, eventually)
    here = cluster.namespace
    assert stalled["status"] == "True"
    assert (
        f"ServiceAccount {here}/kubectl-reconcile may not delete configmaps in namespace {here}" in stalled["message"]
    )
    assert f"kubectl reconcile grant shop -n {here}" in stalled["message"]
    assert f"kubectl reconcile delete shop -n {here} --orphan" in stalled["message"]
    assert condition(helpless.live, "Ready")["status"] == "False"
    assert cluster.get("ConfigMap", "web")

    rights(cluster, "shop", ("", "configmaps", ALL))  # nobody tells the daemon: it tries again by itself
    eventually(lambda: cluster.get("Sync", "shop") is None, "the Sync is gone")
    assert cluster.get("ConfigMap", "web") is None


def test_delete_orphan_releases_a_sync_whose_deletion_is_stalled_and_says_what_stays(
    helpless, cluster, plugin, eventually
):
    cluster.delete("Sync", "shop")
    until_stalled(helpless, eventually)
    done = plugin("delete", "shop", "--orphan", "--yes")
    assert (done.status, done.out) == (0, f"deleted  Sync {cluster.namespace}/shop\n"), done.err
    assert f"1 member of {cluster.namespace}/shop stays: --orphan\n  ConfigMap {cluster.namespace}/web\n" in done.err
    assert cluster.get("Sync", "shop") is None
    assert cluster.get("ConfigMap", "web")


def test_no_namespace_hangs_on_a_sync_whose_account_went_with_it(
    cluster, namespace, new_daemon, git_server, follow, config_map, eventually, may
):
    home, far = cluster.at(f"{namespace}-home"), cluster
    cluster.kubectl("create", "namespace", home.namespace)
    new_daemon(cluster.kubectl.kubeconfig, home.namespace, ("--lease-namespace", namespace)).start()
    account = {**ACCOUNT, "namespace": home.namespace}
    try:
        for place in (home, far):
            rights(place, "shop", ("", "configmaps", ALL), account=account)
        web = json.loads(config_map("far-web"))
        web["metadata"]["namespace"] = far.namespace
        sha = git_server.push({"far.json": json.dumps(web), "near.json": config_map("near")})
        follow(git_server.url, on=home, deletionPolicy="Prune", trusted=False).until_synced(sha)
        for place in (home, far):
            cluster.kubectl("delete", "rolebinding", "shop", "-n", place.namespace)
        until_refused(far, may, eventually, home.namespace)
        home.delete("Namespace", home.namespace)
        eventually(lambda: home.get("Namespace", home.namespace) is None, "the namespace is gone")
        assert far.get("ConfigMap", "far-web"), "no right to delete it, so it stays"
        said = f"Sync {home.namespace}/shop is gone; these objects stay: ConfigMap {far.namespace}/far-web"

        def told():
            return [each["note"] for each in cluster.at("default").list("Event") if each.get("reason") == "MembersLeft"]

        eventually(lambda: said in told(), "what stays is told")
    finally:
        with contextlib.suppress(Exception):
            home.edit("Sync", "shop", {"metadata": {"finalizers": []}})
        with contextlib.suppress(Exception):
            cluster.kubectl("delete", "namespace", home.namespace, "--wait=false")


def test_a_child_sync_is_gone_before_the_rights_by_which_it_deletes_its_members(
    daemon, follow, cluster, git_server, git_host, config_map, eventually
):
    here = cluster.namespace
    cluster.distrust()
    team = {**ACCOUNT, "name": "team", "namespace": here}
    below = git_host.create(f"below-{here}")
    web = json.loads(config_map("web"))
    web["metadata"]["finalizers"] = ["example.com/held"]
    below.push({"web.json": json.dumps(web)})
    spec = {
        "source": {"git": {"url": below.url, "interval": "1s"}},
        "serviceAccountName": "team",
        "deletionPolicy": "Prune",
    }
    role = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ALL}
    metadata = {"name": "team"}
    files = {
        "sync.json": {
            "apiVersion": "reconcile.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": "below"},
            "spec": spec,
        },
        "account.json": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        "role.json": {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": [role]},
        "binding.json": {
            "apiVersion": f"{GROUP}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "team"},
            "subjects": [team],
        },
    }
    rights(
        cluster,
        "shop",
        ("", "serviceaccounts", ALL),
        ("", "configmaps", ALL),
        (GROUP, "roles", ALL),
        (GROUP, "rolebindings", ALL),
        ("reconcile.dev", "syncs", ALL),
    )
    sync = follow(git_server.url, deletionPolicy="Prune")
    sync.until_synced(git_server.push({name: json.dumps(each) for name, each in files.items()}))
    eventually(lambda: PRUNE_FINALIZER in (cluster.get("Sync", "below")["metadata"].get("finalizers") or ()), "held")
    eventually(lambda: cluster.get("ConfigMap", "web"), "the child Sync has made its member")

    cluster.delete("Sync", "shop")
    eventually(lambda: cluster.get("ConfigMap", "web")["metadata"].get("deletionTimestamp"), "the member is going")

    def waits_for_it():
        found = condition(sync.live, "Ready")
        return found["reason"] == "Deleting" and f"Sync.reconcile.dev {here}/below" in found["message"]

    eventually(waits_for_it, "the parent says what it waits for")
    for kind in ("serviceaccount", "role", "rolebinding"):
        assert cluster.kubectl("get", kind, "team", "-n", here), "it is still needed"
    cluster.edit("ConfigMap", "web", {"metadata": {"finalizers": []}})
    eventually(lambda: cluster.get("Sync", "shop") is None, "the parent is gone")
    assert cluster.get("Sync", "below") is None
    assert cluster.get("ConfigMap", "web") is None
    assert cluster.kubectl("get", "serviceaccount,role,rolebinding", "-o", "name", "-n", here).split() == [
        "serviceaccount/default",
        "role.rbac.authorization.k8s.io/shop",
        "rolebinding.rbac.authorization.k8s.io/shop",
    ]


def secret(namespace):
    metadata = {"name": "far", "namespace": namespace}
    return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}})


def test_a_secret_of_another_namespace_goes_with_its_file_and_with_its_sync_by_what_a_grant_gives(
    daemon, cluster, namespace, follow, git_server, plugin, config_map, eventually
):
    cluster.distrust()
    far = cluster.at(f"{namespace}-far")
    cluster.kubectl("create", "namespace", far.namespace)
    try:
        git_server.push({"far.json": secret(far.namespace), "near.json": config_map("near")})
        sync = follow(git_server.url, deletionPolicy="Prune")
        assert plugin("grant", "shop", "--apply", "--yes").status == 0
        eventually(lambda: condition(sync.live, "Synced").get("status") == "True", "it is Synced")
        git_server.push({"far.json": None})
        assert plugin("sync", "shop", "--yes").status == 0
        assert far.get("Secret", "far") is None, "its own namespace has no Secrets that it must see for that"
        sync.until_synced(git_server.push({"far.json": secret(far.namespace)}))
        cluster.delete("Namespace", far.namespace)
        cluster.delete("Sync", "shop")
        eventually(lambda: cluster.get("Sync", "shop") is None, "nothing is looked for in a namespace that is gone")
        assert cluster.get("ConfigMap", "near") is None
    finally:
        cluster.kubectl("delete", "namespace", far.namespace, "--wait=false", "--ignore-not-found")


def test_where_secrets_were_applied_and_can_not_be_listed_the_sync_says_so_until_they_can(
    daemon, cluster, namespace, follow, git_server, plugin, config_map, eventually
):
    cluster.distrust()
    blind = ["get", "create", "patch", "delete"]
    rights(cluster, "shop", ("", "configmaps", ALL), ("", "secrets", blind))
    sync = follow(git_server.url)
    git_server.push({"far.json": secret(namespace), "near.json": config_map("near"), "old.json": config_map("old")})
    eventually(lambda: cluster.get("Secret", "far"), "it is applied")
    git_server.push({"far.json": None, "old.json": None})
    done = plugin("sync", "shop", "--yes")
    said = f"Secret in namespace {namespace} can't be listed, so what Git doesn't ask for any more may be left there"
    assert done.status != 0
    assert said in condition(sync.live, "Synced")["message"]
    assert condition(sync.live, "Ready")["status"] == "False"
    assert cluster.get("ConfigMap", "old") is None, "all else goes on"
    rights(cluster, "shop", ("", "configmaps", ALL), ("", "secrets", ALL))
    eventually(lambda: cluster.get("Secret", "far") is None, "it is found and deleted")
    eventually(lambda: condition(sync.live, "Synced").get("status") == "True", "it is Synced")
