"""What a Sync may ask for: drift left alone, other Syncs waited for, members that go with it."""

from __future__ import annotations

import json

import pytest


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
    fixed = git_server.push({"base/base.yaml": config_map("base", color="blue")})
    top.until_synced(fixed)
    assert colour(cluster, "top") == "red"


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
