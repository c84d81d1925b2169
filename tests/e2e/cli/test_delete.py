"""``kubectl reconcile delete``: a Sync goes, and what becomes of its members is said and done."""

from __future__ import annotations

import json

import pytest

from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.annotations import PRUNE_FINALIZER
from tests.e2e.cluster import until_may
from tests.e2e.followed import Followed


@pytest.fixture
def kept_by_hand(plugin, cluster, tmp_path, config_map):
    """kept_by_hand(deletionPolicy="Prune") makes a Sync shop without a source, with one member."""

    def make(**spec):
        (tmp_path / "web.yaml").write_text(config_map("web"))
        assert plugin("sync", "-f", str(tmp_path / "web.yaml"), "--name", "shop").status == 0
        cluster.edit("Sync", "shop", {"spec": spec})

    return make


@pytest.fixture
def followed(follow, git_server, config_map):
    """followed(deletionPolicy="Prune") makes a Sync shop with one member that a daemon has synced."""

    def make(**spec):
        sha = git_server.push({"web.yaml": config_map("web")})
        follow(git_server.url, **spec).until_synced(sha)

    return make


STAYING = {
    "by default": ({}, [], "1 member of {} stays: deletionPolicy is Orphan\n"),
    "though the policy is Prune, with --orphan": ({"deletionPolicy": "Prune"}, ["--orphan"], "1 member of {} stays: --orphan\n"),
    "where the Sync is suspended": (
        {"deletionPolicy": "Prune", "suspend": True}, [], "1 member of {} stays: the Sync is suspended\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "flags", "said"), STAYING.values(), ids=STAYING)
def test_members_stay(spec, flags, said, kept_by_hand, plugin, cluster, namespace):
    kept_by_hand(**spec)
    done = plugin("delete", "shop", "--yes", *flags)
    assert (done.status, done.out) == (0, f"deleted  Sync {namespace}/shop\n")
    assert done.err == said.format(f"{namespace}/shop")
    assert cluster.get("Sync", "shop") is None
    assert cluster.get("ConfigMap", "web")


def test_members_of_a_sync_kept_by_hand_are_deleted_from_here(kept_by_hand, plugin, cluster, namespace):
    kept_by_hand(deletionPolicy="Prune")
    done = plugin("delete", "shop", "--yes")
    assert done.status == 0
    assert f"deleted from here: 1 member of {namespace}/shop, too" in done.err
    assert done.out == f"deleted  ConfigMap {namespace}/web\ndeleted  Sync {namespace}/shop\n"
    assert (cluster.get("Sync", "shop"), cluster.get("ConfigMap", "web")) == (None, None)


def test_a_member_that_cannot_be_deleted_keeps_its_sync(kept_by_hand, plugin, cluster, namespace):
    kept_by_hand(deletionPolicy="Prune")
    clerk = f"--user=clerk-{namespace}"
    cluster.kubectl("create", "clusterrolebinding", f"clerk-{namespace}", "--clusterrole=view", clerk)
    verbs = "--verb=get,list,patch,delete"
    cluster.kubectl("create", "role", "syncs", verbs, "--resource=syncs.reconcile.dev", "-n", namespace)
    cluster.kubectl("create", "rolebinding", "syncs", "--role=syncs", clerk, "-n", namespace)
    until_may(cluster.kubectl, f"clerk-{namespace}", "delete", "syncs.reconcile.dev", namespace)
    until_may(cluster.kubectl, f"clerk-{namespace}", "list", "configmaps", namespace)
    done = plugin("delete", "shop", "--yes", "--as", f"clerk-{namespace}")
    assert done.status == ExitStatus.FAILED
    assert f"1 member couldn't be deleted, so Sync {namespace}/shop stays" in done.err
    assert cluster.get("Sync", "shop")
    assert cluster.get("ConfigMap", "web")


def test_without_a_terminal_nothing_is_deleted_unasked(kept_by_hand, plugin, cluster):
    kept_by_hand(deletionPolicy="Prune")
    refused = plugin("delete", "shop")
    assert refused.status == ExitStatus.USAGE
    assert "without a terminal, add --yes" in refused.err
    assert cluster.get("Sync", "shop")
    assert cluster.get("ConfigMap", "web")


@pytest.mark.usefixtures("daemon")
def test_the_daemon_deletes_the_members_before_their_sync_goes(followed, plugin, cluster, namespace):
    followed(deletionPolicy="Prune")
    done = plugin("delete", "shop", "--yes")
    assert done.status == 0
    assert f"the daemon deletes 1 member of {namespace}/shop, too" in done.err
    assert (cluster.get("Sync", "shop"), cluster.get("ConfigMap", "web")) == (None, None)


@pytest.mark.usefixtures("daemon")
def test_members_of_a_followed_sync_stay_with_orphan(followed, plugin, cluster, namespace):
    followed(deletionPolicy="Prune")
    assert PRUNE_FINALIZER in cluster.get("Sync", "shop")["metadata"]["finalizers"]
    done = plugin("delete", "shop", "--yes", "--orphan")
    assert (done.status, done.out) == (0, f"deleted  Sync {namespace}/shop\n")
    assert cluster.get("Sync", "shop") is None
    assert cluster.get("ConfigMap", "web")


def test_a_sync_whose_members_nobody_would_delete_is_not_left_hanging(follow, git_server, plugin, cluster, config_map):
    git_server.push({"web.yaml": config_map("web")})
    follow(git_server.url, deletionPolicy="Prune")
    assert plugin("sync", "shop", "--yes").status == 0
    refused = plugin("delete", "shop", "--yes")
    assert refused.status == ExitStatus.FAILED
    assert "no daemon is running to delete the members" in refused.err
    assert cluster.get("ConfigMap", "web")
    assert plugin("delete", "shop", "--yes", "--orphan").status == 0
    assert cluster.get("Sync", "shop") is None
    assert cluster.get("ConfigMap", "web")


def test_the_namespace_of_a_sync_that_is_kept_by_hand_goes_last(
    cluster, namespace, plugin, tmp_path, config_map, eventually
):
    home = cluster.at(f"{namespace}-hand")
    cluster.kubectl("create", "namespace", home.namespace)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home.namespace}}
    (tmp_path / "home.json").write_text(json.dumps(space))
    (tmp_path / "web.json").write_text(config_map("web"))
    assert plugin.on(home)("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    home.edit("Sync", "shop", {"spec": {"deletionPolicy": "Prune"}})
    done = plugin.on(home)("delete", "shop", "--yes", "--timeout", "140s")
    assert done.status == 0, done.err
    told = ["ConfigMap {0}/web", "Namespace {0}", "Sync {0}/shop"]
    assert done.out.splitlines() == [f"deleted  {each.format(home.namespace)}" for each in told]
    eventually(lambda: home.get("Namespace", home.namespace) is None, "the namespace is gone")


def may(cluster, user, verbs, resources, namespace):
    name = f"{user}-{resources.partition(',')[0].partition('.')[0]}"
    cluster.kubectl("create", "role", name, f"--verb={verbs}", f"--resource={resources}", "-n", namespace)
    cluster.kubectl("create", "rolebinding", name, f"--role={name}", f"--user={user}", "-n", namespace)
    until_may(cluster.kubectl, user, verbs.rpartition(",")[2], resources.rpartition(",")[2], namespace)


def test_who_has_rights_in_one_namespace_deletes_its_sync(kept_by_hand, plugin, cluster, namespace):
    kept_by_hand(deletionPolicy="Prune")
    user = f"tenant-{namespace}"
    may(cluster, user, "get,list,patch,delete", "syncs.reconcile.dev,configmaps", namespace)
    done = plugin("delete", "shop", "--yes", "--as", user)
    assert done.status == 0, done.err
    assert f"deleted from here: 1 member of {namespace}/shop, too" in done.err
    assert (cluster.get("Sync", "shop"), cluster.get("ConfigMap", "web")) == (None, None)


def test_what_only_looks_like_a_member_stays_where_the_sync_has_never_been(kept_by_hand, plugin, cluster, namespace):
    kept_by_hand(deletionPolicy="Prune")
    elsewhere = cluster.at(f"{namespace}-else")
    cluster.kubectl("create", "namespace", elsewhere.namespace)
    Followed(cluster, "shop").forge_member("forged", elsewhere.namespace)
    shown = plugin("tree", "shop").out
    done = plugin("delete", "shop", "--yes")
    assert done.status == 0, done.err
    assert f"deleted from here: 1 member of {namespace}/shop, too" in done.err
    assert done.out == f"deleted  ConfigMap {namespace}/web\ndeleted  Sync {namespace}/shop\n"
    assert elsewhere.get("ConfigMap", "forged")
    assert "forged" not in shown
    cluster.kubectl("delete", "namespace", elsewhere.namespace, "--wait=false")


def test_members_that_may_not_be_listed_are_not_known(kept_by_hand, plugin, cluster, namespace):
    kept_by_hand(deletionPolicy="Prune")
    user = f"guest-{namespace}"
    may(cluster, user, "get,list,patch,delete", "syncs.reconcile.dev", namespace)
    refused = plugin("delete", "shop", "--yes", "--as", user)
    assert refused.status == ExitStatus.FAILED
    assert f"members of {namespace}/shop of these kinds aren't shown: ConfigMap" in refused.err
    assert f"so Sync {namespace}/shop stays" in refused.err
    done = plugin("delete", "shop", "--yes", "--orphan", "--as", user)
    assert (done.status, "aren't shown" in done.err) == (0, True)
    assert cluster.get("ConfigMap", "web")


def test_what_goes_along_with_members_is_told(plugin, cluster, namespace, tmp_path, config_map):
    child = {
        "apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "child"},
        "spec": {"deletionPolicy": "Prune"},
    }  # fmt: skip
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-other"}}
    (tmp_path / "child.json").write_text(json.dumps(child))
    (tmp_path / "other.json").write_text(json.dumps(other))
    assert plugin("sync", "-f", str(tmp_path), "--name", "shop").status == 0
    cluster.edit("Sync", "shop", {"spec": {"deletionPolicy": "Prune"}})
    below = tmp_path / "below"
    below.mkdir()
    (below / "web.json").write_text(config_map("web"))
    assert plugin("sync", "-f", str(below), "--name", "child").status == 0
    cluster.at(other["metadata"]["name"]).apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inside"}}
    )
    asked = plugin("delete", "shop")
    assert asked.status == ExitStatus.USAGE
    assert "2 other objects will be deleted, too:\n" in asked.err
    assert f"  ConfigMap {namespace}/web\n" in asked.err
    assert f"  ConfigMap {namespace}-other/inside\n" in asked.err
    cluster.kubectl("delete", "namespace", f"{namespace}-other", "--wait=false")
