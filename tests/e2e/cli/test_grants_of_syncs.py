"""Grants around a Sync's life: given before it begins, with those of the Syncs in its source, shown before, and revoked with it."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus

RBAC = "rbac.authorization.k8s.io"


def sync(name, url, **git):
    return json.dumps(
        {
            "apiVersion": "reconcile.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": name},
            "spec": {
                "serviceAccountName": f"{name}-account",
                "source": {"git": {"url": url, "interval": "10m", **git}},
            },
        }
    )


@pytest.fixture
def account(cluster, namespace):
    """The account that a Sync has unless it names another, which may nothing."""
    cluster.distrust()
    return f"system:serviceaccount:{namespace}:kubectl-reconcile"


@pytest.fixture
def family(git_server, config_map, namespace):
    """A repository whose source holds a Sync of another folder, which writes something cluster-wide."""
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": f"{namespace}-r"}, "rules": []}
    git_server.push(
        {
            "top/web.json": config_map("web"),
            "top/child.json": sync("child", git_server.url, path="below"),
            "below/role.json": json.dumps(role),
        }
    )
    return git_server.url


def test_a_grant_comes_before_the_sync_covers_the_syncs_in_its_source_and_goes_with_it(
    plugin, cluster, kubectl, family, account, may, namespace, eventually
):
    done = plugin("create", "shop", "--url", family, "--path", "top", "--grant")
    assert done.status == 0
    told = done.err + done.out
    assert told.index(f"created  Role.{RBAC} {namespace}/kubectl-reconcile-shop") < told.index("shop created")
    assert f"for Sync {namespace}/child, ServiceAccount {namespace}/child-account:" in done.err
    child = f"system:serviceaccount:{namespace}:child-account"
    eventually(
        lambda: may(child, "create", f"clusterroles.{RBAC}", ""), "the child's account may write what it applies"
    )
    eventually(lambda: may(account, "create", "syncs.reconcile.dev", namespace), "the parent's may make the child")
    cluster.apply(json.loads(sync("child", family, path="below")))
    cluster_wide = f"ClusterRoleBinding.{RBAC} kubectl-reconcile:{namespace}:child"
    for name, given in (("child", cluster_wide), ("shop", f"RoleBinding.{RBAC} {namespace}/kubectl-reconcile-shop")):
        gone = plugin("delete", name, "--yes", "--orphan")
        assert (gone.status, f"deleted  {given}\n" in gone.out) == (0, True)
    left = kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert namespace not in left
    assert "kubectl-reconcile-shop" not in kubectl("get", "roles,rolebindings", "-n", namespace, "-o", "name")
    eventually(
        lambda: not may(child, "create", f"clusterroles.{RBAC}", ""), "whoever makes that account again has nothing"
    )


def test_a_sync_isnt_created_where_its_rights_cant_be_given(plugin, cluster, family, account, namespace, eventually):
    clerk = f"clerk-{namespace}"
    cluster.kubectl("create", "role", clerk, "--verb=*", "--resource=syncs.reconcile.dev,secrets", "-n", namespace)
    cluster.kubectl("create", "rolebinding", clerk, f"--role={clerk}", f"--user={clerk}", "-n", namespace)
    words = ("create", "shop", "--url", family, "--path", "below", "--grant", "--as", clerk)
    refused = eventually(
        lambda: "no Sync is created" in (said := plugin(*words)).err and said, "it may write Syncs alone"
    )
    assert refused.status == ExitStatus.FAILED
    assert cluster.get("Sync", "shop") is None


def test_all_grants_are_shown_before_any_is_made(plugin, cluster, follow, git_server, config_map, account, namespace):
    git_server.push({"a/web.json": config_map("a"), "b/web.json": config_map("b")})
    for name in ("a", "b"):
        follow(git_server.url, name, path=name, suspend=True, serviceAccountName=f"{name}-account")
    assert plugin("grant", "--all", "-o", "yaml").out.count("# What Sync ") == 2
    refused = plugin("grant", "--all", "--apply")
    assert (refused.status, refused.err.count("create   RoleBinding")) == (ExitStatus.USAGE, 4)
    assert cluster.kubectl("get", "roles", "-o", "name", "-n", namespace) == ""
    done = plugin("grant", "--all", "--apply", "--yes")
    assert done.status == 0
    assert done.out.count(f"created  Role.{RBAC}") == 4
    assert plugin("grant", "a", "--all").status == ExitStatus.USAGE
