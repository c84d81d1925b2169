"""What anybody may write on a live object: it may mislead about that object, and stops nothing else."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("daemon")

PREFIX = "reconcile.dev/"
HOSTILE = {
    "a source outside the repository": {"source": "../../etc/x"},
    "a source that isn't a path": {"source": "\x1b[31m-rf :/*\n"},
    "values that can't be meant": {
        "wave": "9" * 5000, "depends-on": "a/b/c/d/e,,,", "hook": "never", "hook-run": "{", "replace": "?", "prune": "True",
        "conflicts": "?", "moved-from": "/", "moved-to": "///", "paused": "?", "abandon": "?", "approve-actions": ",,*,",
        "approved-actions": "\\", "actions": '[{"key": {}}, 7, null]', "pinned-from": "[[", "resumeRequestedAt": "\tx",
    },
}  # fmt: skip


@pytest.fixture
def followed(follow, git_server, config_map):
    """A Sync in step with a repository of two ConfigMaps, the source of whose base is read at each update."""
    sync = follow(git_server.url)
    sync.until_synced(
        git_server.push({"one.yaml": config_map("one", color="red"), "two.yaml": config_map("two", color="red")})
    )
    return sync


@pytest.mark.parametrize("annotations", HOSTILE.values(), ids=HOSTILE)
def test_annotations_of_a_live_object_stop_neither_drift_nor_commits(
    annotations, followed, cluster, git_server, config_map, eventually
):
    noted = {f"{PREFIX}{name}": value for name, value in annotations.items()}
    cluster.edit("ConfigMap", "one", {"metadata": {"annotations": noted}, "data": {"color": "blue"}})
    cluster.edit("ConfigMap", "two", {"data": {"color": "blue"}})
    eventually(lambda: cluster.get("ConfigMap", "two")["data"]["color"] == "red", "drift elsewhere is put back")
    eventually(lambda: cluster.get("ConfigMap", "one")["data"]["color"] == "red", "and on the object itself")
    followed.until_synced(git_server.push({"two.yaml": config_map("two", color="green")}))
    assert cluster.get("ConfigMap", "two")["data"]["color"] == "green"


def test_annotations_of_a_sync_and_a_cr_stop_neither(followed, cluster, git_server, memcached, eventually):
    followed.until_synced(git_server.push({"cache.yaml": memcached("cache", size=1)}))
    eventually(lambda: cluster.get("Deployment", "cache"), "the child is there")
    noted = {
        f"{PREFIX}{name}": value for name, value in HOSTILE["values that can't be meant"].items() if name != "paused"
    }
    for kind, name in (("Sync", "shop"), ("Memcached", "cache"), ("Deployment", "cache")):
        cluster.edit(kind, name, {"metadata": {"annotations": noted}})
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 0}})
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 1, "the child is put back")
    followed.until_synced(git_server.push({"cache.yaml": memcached("cache", size=2)}))
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 2, "the child follows")


def test_an_annotation_by_its_name_of_an_earlier_version_counts_and_says_its_new_one(followed, cluster, eventually):
    def warnings():
        events = cluster.list("Event")
        return [each["note"] for each in events if each["reason"] == "AnnotationRenamed"]

    cluster.edit("Sync", "shop", {"metadata": {"annotations": {f"{PREFIX}resumeRequestedAt": "2026-11-20T12:00:00Z"}}})
    followed.ask()
    [note] = eventually(warnings, "the new name is told")
    assert "reconcile.dev/resumeRequestedAt is called reconcile.dev/resume-requested-at now" in note
