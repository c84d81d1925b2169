"""The daemon installed in a cluster: what is there afterwards, and that its rights are enough and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import yaml_text
from tests.e2e.cluster import until_may

ROOT = Path(__file__).parents[3]
ACCOUNT = "system:serviceaccount:reconcile-system:kubectl-reconcile"
RBAC = "rbac.authorization.k8s.io"


def rights(name, namespace, *rules):
    """A Role of this *namespace*, bound to the account that Syncs have there."""
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
    metadata = {"name": name, "namespace": namespace}
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [{"apiGroups": [group], "resources": [resource], "verbs": verbs} for group, resource in rules],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "kubectl-reconcile", "namespace": namespace}],
        },
    ]


@pytest.fixture
def installed(module_cluster, module_sandbox, namespace_names, plugin, eventually):
    """A namespace of the test's own in a cluster with the daemon installed, the sandbox it is, and the plugin on it."""

    def is_going():  # a test before may have uninstalled it
        namespace = module_cluster.get("Namespace", "reconcile-system")
        return namespace and "deletionTimestamp" in namespace["metadata"]

    eventually(lambda: not is_going(), "what was installed before is gone")
    home = module_cluster.at(next(namespace_names))
    home.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home.namespace}})
    there = plugin.on(home.at("reconcile-system"))
    answer = there("install")
    assert answer.status == 0, answer.err
    yield home, module_sandbox, there
    for sync in home.names("Sync"):
        home.delete("Sync", sync)


def test_install_runs_the_daemon_with_just_the_rights_it_needs(
    installed, new_daemon, follow, git_server, config_map, memcached, eventually
):
    cluster, sandbox, there = installed
    deployment = cluster.at("reconcile-system")
    eventually(
        lambda: (deployment.get("Deployment", "kubectl-reconcile").get("status") or {}).get("readyReplicas"),
        "its pod is ready",
    )
    again = there("install")
    assert {line.split()[0] for line in again.out.splitlines()} == {"unchanged"}

    options = ("--lease-namespace=reconcile-system", "--module-accounts")
    new_daemon(sandbox.kubeconfig_for(ACCOUNT), options=options).start()
    sha = git_server.push({"a.yaml": config_map("web", color="red"), "b.yaml": memcached("cache", size=1)})
    cluster.kubectl.apply(rights("caches", cluster.namespace, ("cache.example.com", "memcacheds")))
    account = f"system:serviceaccount:{cluster.namespace}:kubectl-reconcile"
    until_may(cluster.kubectl, account, "patch", "memcacheds.cache.example.com", cluster.namespace)
    sync = follow(git_server.url, on=cluster, trusted=False)
    refused = sync.until("ApplyFailed", sha)
    assert (
        f"ServiceAccount {cluster.namespace}/kubectl-reconcile may not patch configmaps in namespace {cluster.namespace}"
        in refused["message"]
    )
    assert f"kubectl reconcile grant shop -n {cluster.namespace}" in refused["message"]
    eventually(lambda: cluster.get("Deployment", "cache"), "what its module may make is made")

    cluster.kubectl.apply(rights("configuration", cluster.namespace, ("", "configmaps")))
    sync.ask()
    eventually(lambda: cluster.get("ConfigMap", "web"), "what it may write by now is written")
    sync.until_synced(sha)


def test_uninstall_leaves_what_was_applied(installed, follow, git_server):
    cluster, _, there = installed
    follow(git_server.url, on=cluster)
    assert there("uninstall").status == 2
    assert there("uninstall", "--yes").status == 0
    assert cluster.get("Sync", "shop")
    assert "Deployment" not in there("uninstall", "--yes").out


def test_install_takes_back_what_let_the_daemon_of_an_earlier_version_write_everything(installed):
    cluster, _, there = installed
    cluster.kubectl(
        "create", "clusterrolebinding", "kubectl-reconcile-members", "--clusterrole=cluster-admin", "--user=x"
    )
    again = there("install")
    assert "deleted   ClusterRoleBinding.rbac.authorization.k8s.io kubectl-reconcile-members" in again.out
    assert "kubectl-reconcile-members" not in cluster.kubectl("get", "clusterrolebindings")


def test_before_an_earlier_version_is_replaced_the_syncs_that_lack_rights_are_named(
    installed, follow, git_server, config_map
):
    cluster, _, there = installed
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url, on=cluster, trusted=False)
    assert "lack rights" not in there("install").err  # nothing is replaced
    member = "kubectl-reconcile-members"
    cluster.kubectl("create", "clusterrolebinding", member, "--clusterrole=cluster-admin", "--user=x")
    told = there("install")
    assert told.status == 0
    assert "this version writes as the account of each Sync. These accounts lack rights:\n" in told.err
    home = cluster.namespace
    assert f"  Sync {home}/shop: there is no ServiceAccount {home}/kubectl-reconcile\n" in told.err
    assert f"    kubectl reconcile grant shop -n {home} --apply\n" in told.err


def test_before_more_is_asked_for_than_by_policies_of_an_earlier_version_the_syncs_that_would_be_refused_are_named(
    installed, new_daemon, follow, git_server, memcached, eventually
):
    cluster, sandbox, there = installed
    policy, home = "validatingadmissionpolicy/reconcile-memcached-rights", cluster.namespace
    of_before = '[{"op": "replace", "path": "/spec/validations", "value": [{"expression": "has(object.spec)"}]}]'
    cluster.kubectl("patch", policy, "--type=json", "-p", of_before)
    cluster.kubectl.apply(rights("caches", home, ("cache.example.com", "memcacheds")))
    cluster.kubectl("create", "serviceaccount", "kubectl-reconcile", "-n", home)
    new_daemon(
        sandbox.kubeconfig_for(ACCOUNT), options=("--lease-namespace=reconcile-system", "--module-accounts")
    ).start()
    sha = git_server.push({"a.yaml": memcached("cache", size=1, image="example.com/cache:1")})
    sync = follow(git_server.url, on=cluster, trusted=False)
    eventually(lambda: sync.ask() and cluster.get("Memcached", "cache"), "the policy of before lets it be written")
    sync.until_synced(sha)
    told = there("install")
    assert "this version has the API server ask who sets an image in a custom resource" in told.err
    refused = next(line for line in told.err.splitlines() if f"Sync {home}/shop: " in line)
    assert "create pods" in refused
    assert f"updated   ValidatingAdmissionPolicy.admissionregistration.k8s.io {policy.partition('/')[2]}" in told.out
    assert "lack rights" not in there("install").err  # by now it asks for no more


def test_the_manifests_to_deploy_are_those_that_install_applies(plugin):
    printed = type(plugin)(plugin.kubectl, "reconcile-system")("install", "--dry-run", "-o", "yaml")
    assert printed.status == 0, printed.err
    fresh = [each for each in yaml_text.documents(printed.out) if each]
    kept = [each for each in yaml_text.documents((ROOT / "deploy" / "install.yaml").read_text()) if each]
    assert [each["metadata"]["name"] for each in kept] == [each["metadata"]["name"] for each in fresh]
    assert kept == fresh, "run: kubectl reconcile install --dry-run -o yaml > deploy/install.yaml"
