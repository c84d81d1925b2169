"""What a Sync may ask for: drift left alone, other Syncs waited for, members that go with it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from kubectl_reconcile.core.resources.applyset import PART_OF

ROOT = Path(__file__).parents[3]


def colour(cluster, name="web"):
    return (cluster.get("ConfigMap", name) or {}).get("data", {}).get("color")


pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture
def followed(follow, git_server, config_map):
    """followed(drift="Report") -> a Sync that is in step with its repository."""

    def start(name="shop", **spec):
        sha = git_server.push({f"{name}/web.yaml": config_map(f"{name}-web", color="red")})
        sync = follow(git_server.url, name, path=name, **spec)
        sync.until_synced(sha)
        return sync

    return start


def test_drift_that_is_only_reported_stays_and_is_told(followed, cluster, eventually):
    sync = followed(drift="Report")
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "blue"}})
    eventually(lambda: sync.condition("Drifted").get("status") == "True", "the drift is told")
    assert "by-hand changed .data.color" in sync.condition("Drifted")["message"]
    assert sync.condition("Ready")["status"] == "True"
    assert colour(cluster, "shop-web") == "blue"


def test_reported_drift_that_somebody_takes_back_is_no_drift_any_more(followed, cluster, eventually):
    sync = followed(drift="Report")
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "blue"}})
    eventually(lambda: sync.condition("Drifted").get("status") == "True", "the drift is told")
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "red"}})
    eventually(lambda: sync.condition("Drifted").get("status") == "False", "it is no longer told")


def test_a_change_in_git_passes_by_reported_drift_of_other_objects(
    followed, cluster, git_server, config_map, eventually
):
    sync = followed(drift="Report")
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "blue"}})
    eventually(lambda: sync.condition("Drifted").get("status") == "True", "the drift is told")
    sync.until_synced(git_server.push({"shop/new.yaml": config_map("shop-new", color="green")}))
    assert colour(cluster, "shop-new") == "green"
    assert colour(cluster, "shop-web") == "blue"


def test_where_drift_of_a_field_is_ignored_somebodys_change_stays_and_that_of_git_is_written(
    followed, cluster, git_server, config_map, eventually, plugin
):
    target = {"kind": "ConfigMap", "name": "shop-web"}
    sync = followed(ignore=[{"path": "/data/color", "from": "Drift", "target": target}])
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "blue", "size": "1"}})
    sync.until_synced(git_server.push({"shop/new.yaml": config_map("shop-new", color="green")}))
    shown = plugin("diff", "shop")
    assert (shown.status, "1 field left to others (spec.ignore)" in shown.out) == (0, True), shown.out
    assert colour(cluster, "shop-web") == "blue"
    cluster.edit("ConfigMap", "shop-new", {"data": {"color": "blue"}})
    eventually(lambda: colour(cluster, "shop-new") == "green", "the rule isn't about this one")
    sync.until_synced(git_server.push({"shop/web.yaml": config_map("shop-web", color="white")}))
    assert colour(cluster, "shop-web") == "white"
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "black"}})
    sync.until_synced(git_server.push({"shop/more.yaml": config_map("shop-more", color="green")}))
    assert colour(cluster, "shop-web") == "black"


def test_where_new_revisions_wait_each_is_applied_once_it_is_approved(
    followed, cluster, git_server, config_map, eventually, plugin
):
    sync = followed(approval="Never")
    cluster.edit("Sync", "shop", {"spec": {"approval": "Always"}})
    sha = git_server.push({"shop/web.yaml": config_map("shop-web", color="blue")})
    eventually(lambda: sha[:7] in sync.condition("Synced").get("message", ""), "it says that it waits")
    assert "waits for approval" in sync.condition("Synced")["message"]
    assert colour(cluster, "shop-web") == "red"
    shown = plugin("diff", "shop")
    assert (shown.status, "held (NewRevision)" in shown.out + shown.err) == (1, True)
    assert plugin("approve", "sync/shop", "--yes").status == 0
    sync.until_synced(sha)
    assert colour(cluster, "shop-web") == "blue"
    cluster.edit("ConfigMap", "shop-web", {"data": {"color": "green"}})
    eventually(lambda: colour(cluster, "shop-web") == "blue", "drift of what was approved is put back")


def test_drift_that_must_be_asked_for_is_put_back_by_a_sync_of_a_person(followed, cluster):
    sync = followed(drift="Ask")
    cluster.delete("ConfigMap", "shop-web")
    ready = sync.until("Drifted")
    assert ready["status"] == "False"
    assert "somebody deleted it" in ready["message"]
    assert cluster.get("ConfigMap", "shop-web") is None
    sync.ask()
    assert colour(cluster, "shop-web") == "red"
    assert sync.condition("Ready")["status"] == "True"


def test_a_sync_waits_for_those_it_depends_on(follow, cluster, git_server, config_map):
    broken = git_server.push({"base/base.yaml": "kind: [", "top/top.yaml": config_map("top", color="red")})
    base = follow(git_server.url, "base", path="base")
    base.until("ProblemsInSource", broken)
    top = follow(git_server.url, "top", path="top", dependsOn=[{"name": "base"}])
    waits = top.until("DependencyNotReady")
    assert f"{cluster.namespace}/base" in waits["message"]
    assert cluster.get("ConfigMap", "top") is None
    git_server.push({"base/base.yaml": config_map("base", color="blue")})
    top.until_synced(broken)
    assert colour(cluster, "top") == "red"


def test_a_dependency_gates_news_and_neither_drift_nor_what_it_let_through(
    follow, cluster, git_server, config_map, daemon, eventually
):
    git_server.push(
        {"base/base.yaml": config_map("base", color="blue"), "top/top.yaml": config_map("top", color="red")}
    )
    base, top = (
        follow(git_server.url, "base", path="base"),
        follow(
            git_server.url,
            "top",
            path="top",
            dependsOn=[{"name": "base", "readyExpr": "self.status.summary.total == 1"}],
        ),
    )
    top.until("Synced")
    sha = git_server.push({"base/bad.yaml": "kind: ["})
    base.until("ProblemsInSource", sha)
    sha_of_top = git_server.push({"top/top.yaml": config_map("top", color="green")})
    assert "to be Ready" in top.until("DependencyNotReady")["message"]
    cluster.edit("ConfigMap", "top", {"data": {"color": "by-hand"}})
    eventually(lambda: colour(cluster, "top") == "red", "drift is put back while the news waits")
    daemon.stop()
    cluster.edit("ConfigMap", "top", {"data": {"color": "by-hand"}})
    daemon.start()
    eventually(lambda: colour(cluster, "top") == "red", "so it is by a daemon that begins meanwhile")
    cluster.edit("ConfigMap", "top", {"data": {"color": "by-hand"}})
    eventually(lambda: colour(cluster, "top") == "red", "and once more")
    assert "to be Ready" in top.until("DependencyNotReady")["message"]
    sha = git_server.push({"base/bad.yaml": config_map("second")})
    base.until("Synced", sha)
    eventually(lambda: "summary.total == 1" in top.condition("Synced")["message"], "the expression isn't true of it")
    git_server.push({"base/bad.yaml": None})
    top.until("Synced", sha_of_top)
    assert colour(cluster, "top") == "green"


def test_syncs_that_wait_for_one_another_are_stalled_and_named(follow, cluster, git_server, config_map):
    git_server.push({"a/a.yaml": config_map("a"), "b/b.yaml": config_map("b")})
    first = follow(git_server.url, "first", path="a", dependsOn=[{"name": "second"}])
    second = follow(git_server.url, "second", path="b", dependsOn=[{"name": "first"}])
    here = cluster.namespace
    told = first.until("DependencyCycle")["message"]
    assert told == (
        f"waits for itself: Sync {here}/first depends on Sync {here}/second, which depends on Sync {here}/first"
    )
    assert first.condition("Stalled")["status"] == "True"
    second.until("DependencyCycle")
    second.change(dependsOn=[])
    second.until("Synced")
    first.until("Synced")


def test_a_sync_of_another_namespace_is_waited_for_as_far_as_the_account_may_read_it(
    follow, cluster, namespace, git_server, config_map, eventually
):
    git_server.push({"a/a.yaml": config_map("a")})
    cluster.distrust()
    cluster.kubectl("create", "serviceaccount", "kubectl-reconcile", "-n", namespace)
    cluster.kubectl(
        "create", "rolebinding", "edits", "--clusterrole=admin", f"--serviceaccount={namespace}:kubectl-reconcile",
        "-n", namespace,
    )  # fmt: skip
    sync = follow(git_server.url, path="a", dependsOn=[{"name": "net", "namespace": "default"}])
    assert "which system:serviceaccount:" in sync.until("DependencyNotReady")["message"]
    cluster.trust()
    eventually(
        lambda: "default/net to be Ready: it doesn't exist" in sync.condition("Synced")["message"], "it is looked for"
    )


def test_what_is_no_member_any_more_is_looked_after_all_the_same(
    follow, cluster, git_server, config_map, memcached, eventually
):
    source = {"git": {"url": git_server.url, "interval": "1s"}, "path": "below"}
    child = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "below"},
        "spec": {"source": source},
    }
    above = {"above/below.json": json.dumps(child), "above/cache.json": memcached("cache", size=1)}
    sha = git_server.push({**above, "below/a.yaml": config_map("a", color="red")})
    sync = follow(git_server.url, "above", path="above")
    sync.until_synced(sha)
    eventually(lambda: colour(cluster, "a") == "red", "the Sync that is a member is followed")
    eventually(lambda: cluster.get("Deployment", "cache"), "the custom resource that is a member is looked after")
    sync.change(suspend=True)
    sync.until("Suspended")
    for kind, name in (("Sync", "below"), ("Memcached", "cache")):
        cluster.edit(kind, name, {"metadata": {"labels": {PART_OF: None}}})
    git_server.push({"below/a.yaml": config_map("a", color="blue")})
    eventually(lambda: colour(cluster, "a") == "blue", "it is followed still")
    gone = cluster.get("Deployment", "cache")["metadata"]["uid"]
    cluster.delete("Deployment", "cache")
    eventually(
        lambda: (cluster.get("Deployment", "cache") or {"metadata": {"uid": gone}})["metadata"]["uid"] != gone,
        "it is made again",
    )


def test_members_go_with_a_sync_that_says_so(followed, cluster, eventually):
    followed("gone", deletionPolicy="Prune")
    followed("kept", deletionPolicy="Orphan")
    for name in ("gone", "kept"):
        cluster.delete("Sync", name)
        eventually(lambda name=name: cluster.get("Sync", name) is None, f"{name} is gone")
    assert cluster.get("ConfigMap", "gone-web") is None
    assert colour(cluster, "kept-web") == "red"


def test_members_of_a_suspended_sync_stay_as_they_are_when_it_is_deleted(followed, cluster, eventually):
    followed("paused", deletionPolicy="Prune")
    cluster.edit("Sync", "paused", {"spec": {"suspend": True}})
    cluster.delete("Sync", "paused")
    eventually(lambda: cluster.get("Sync", "paused") is None, "the Sync is gone")
    assert colour(cluster, "paused-web") == "red"


def test_a_member_that_asks_to_be_kept_outlives_its_sync(follow, cluster, git_server, config_map, eventually):
    kept = json.loads(config_map("precious", color="gold"))
    kept["metadata"]["annotations"] = {"reconcile.dev/prune": "false"}
    sha = git_server.push({"a.yaml": json.dumps(kept), "b.yaml": config_map("plain", color="grey")})
    follow(git_server.url, deletionPolicy="Prune").until_synced(sha)
    cluster.delete("Sync", "shop")
    eventually(lambda: cluster.get("Sync", "shop") is None, "the Sync is gone")
    assert cluster.get("ConfigMap", "plain") is None
    assert colour(cluster, "precious") == "gold"


def test_a_field_manager_of_its_own_owns_what_a_sync_applies(
    plugin, daemon, follow, cluster, git_server, config_map, tmp_path, eventually
):
    def managers(name):
        entries = cluster.get("ConfigMap", name)["metadata"]["managedFields"]
        return {entry["manager"] for entry in entries if entry["operation"] == "Apply"}

    sync = follow(git_server.url, fieldManager="team")
    sync.until_synced(git_server.push({"a.yaml": config_map("a", color="red"), "b.yaml": config_map("b")}))
    assert managers("a") == {"team"}
    cluster.edit("ConfigMap", "a", {"data": {"color": "blue"}})
    eventually(lambda: cluster.get("ConfigMap", "a")["data"] == {"color": "red"}, "drift is put back")
    sync.until_synced(git_server.push({"b.yaml": None}))
    assert cluster.members("ConfigMap", "shop") == {"a"}
    with pytest.raises(Exception, match="make another Sync"):
        sync.change(fieldManager="other")

    (tmp_path / "c.yaml").write_text(config_map("c", color="red"))
    words = ("-f", str(tmp_path), "--name", "by-hand")
    assert plugin("sync", *words, "--field-manager", "ci").status == 0
    assert managers("c") == {"ci"}
    assert plugin("diff", *words).status == 0, "the Sync remembers as whom it applies"
    other = plugin("diff", *words, "--field-manager", "me")
    assert (other.status, "applies as ci" in other.err) == (2, True)
    assert plugin("diff", *words, "--field-manager", "kubectl-reconcile-candy").status == 2
    assert plugin("diff", "by-hand", "--field-manager", "ci").status == 2


# -- a Sync whose own namespace is its member --------------------------------------------------------------------------


@pytest.fixture
def at_home(cluster, namespace, new_daemon, git_server, follow, config_map, monkeypatch):
    """at_home(**spec) follows a Sync into a namespace of its own, which is a member of it; returns that namespace."""
    home = cluster.at(f"{namespace}-home")
    cluster.kubectl("create", "namespace", home.namespace)
    monkeypatch.setenv("KUBECTL_RECONCILE_NAMESPACE", namespace)
    new_daemon(cluster.kubectl.kubeconfig, home.namespace, ("--lease-namespace", namespace)).start()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home.namespace}}

    def make(**spec):
        sha = git_server.push({"home.yaml": json.dumps(space), "web.yaml": config_map("web")})
        follow(git_server.url, on=home, deletionPolicy="Prune", **spec).until_synced(sha)
        return home

    yield make
    with contextlib.suppress(Exception):
        cluster.kubectl("delete", "namespace", home.namespace, "--wait=false")


def gone_with(home, eventually):
    eventually(lambda: home.get("Namespace", home.namespace) is None, "the namespace is gone")
    assert home.get("Sync", "shop") is None


def test_a_sync_in_a_namespace_that_is_its_member_goes_with_it(at_home, eventually):
    home = at_home()
    home.delete("Sync", "shop")
    gone_with(home, eventually)


def test_a_sync_goes_though_its_namespace_was_deleted_first(at_home, eventually):
    home = at_home()
    home.delete("Namespace", home.namespace)
    gone_with(home, eventually)


def test_the_delete_verb_doesnt_wait_for_the_namespace_that_waits_for_the_sync(at_home, plugin, eventually):
    home = at_home()
    done = plugin.on(home)("delete", "shop", "--yes", "--timeout", "140s")
    assert done.status == 0, done.err
    assert f"Namespace {home.namespace}" in done.err
    gone_with(home, eventually)


def test_a_sync_goes_with_the_kind_sync_that_is_its_member(
    own_cluster, crds_of, new_daemon, git_server, follow, config_map, eventually
):
    own, sandbox = own_cluster(components=("etcd", "kube-apiserver"))
    crds_of(own)
    new_daemon(sandbox.kubeconfig).start()
    sha = git_server.push(
        {"crd.yaml": (ROOT / "crds" / "syncs.reconcile.dev.yaml").read_text(), "web.yaml": config_map("web")}
    )
    follow(git_server.url, on=own, deletionPolicy="Prune").until_synced(sha)
    own.delete("Sync", "shop")
    eventually(lambda: own.get("CustomResourceDefinition", "syncs.reconcile.dev") is None, "the kind is gone")
    assert own.get("ConfigMap", "web") is None
