"""Two controllers on one field: the daemon leaves it to the other, keeps the rest, and says so."""

from __future__ import annotations

import contextlib
import json
import threading
import time

import pytest

from tests.kubectl import KubectlError


class Rival:
    """A controller that sets a field whenever it isn't as it wants it."""

    def __init__(self, cluster, new_api, kind, name, patch, is_right):
        self._cluster, self._api, self._place, self._is_right = cluster, new_api, cluster.path(kind, name), is_right
        self._patch = patch
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self):
        while not self._stopped.wait(0.02):
            with contextlib.suppress(KubectlError):  # a server that has no time is asked again
                self._look()

    def _look(self):
        live = self._api.ask(self._place)
        if live is not None and not self._is_right(live):
            self._api.ask(
                f"{self._place}?fieldManager=rival", method="PATCH", body=self._patch,
                type_="application/merge-patch+json",
            )  # fmt: skip

    def stop(self):
        self._stopped.set()
        self._thread.join(120)


@pytest.fixture
def rival(cluster):
    """rival("ConfigMap", "web", patch, is_right) -> a controller of its own will, running."""
    with contextlib.ExitStack() as stack:

        def start(kind, name, patch, is_right):
            api = stack.enter_context(contextlib.closing(type(cluster.api)(cluster.kubectl)))
            found = Rival(cluster, api, kind, name, patch, is_right)
            stack.callback(found.stop)
            return found

        yield start


def condition(live, type_="Contended"):
    return next((one for one in live.get("status", {}).get("conditions") or () if one["type"] == type_), {})


def test_a_field_that_a_rival_keeps_overwriting_is_left_to_it_until_somebody_resumes(
    daemon, follow, cluster, git_server, config_map, rival, eventually
):
    sync = follow(git_server.url)
    sha = git_server.push({"web.yaml": config_map("web", color="red", size="1")})
    sync.until_synced(sha)
    rival("ConfigMap", "web", {"data": {"color": "blue"}}, lambda live: live["data"]["color"] == "blue")
    contended = eventually(
        lambda: condition(sync.live).get("status") == "True" and condition(sync.live), "it is noticed"
    )
    assert f"ConfigMap {cluster.namespace}/web: .data.color: rival overwrote it 10 times" in contended["message"]
    assert cluster.get("ConfigMap", "web")["data"]["color"] == "blue"
    cluster.edit("ConfigMap", "web", {"data": {"size": "9"}})
    eventually(lambda: cluster.get("ConfigMap", "web")["data"]["size"] == "1", "the other field is put back")
    assert cluster.get("ConfigMap", "web")["data"]["color"] == "blue"
    eventually(lambda: daemon.count("reconcile_backed_off_fields") == 1, "it is counted")
    assert daemon.count("reconcile_backoffs_total", kind="ConfigMap", manager="rival") == 1
    eventually(
        lambda: any(one["reason"] == "Contended" and "rival" in one["note"] for one in cluster.list("Event")),
        "an event names the rival",
    )
    assert daemon.log.count(" contended ") == 1
    assert "blue" not in json.dumps(contended)


def test_a_back_off_ends_when_the_other_gives_in_when_a_person_says_so_and_at_a_push(
    daemon, follow, cluster, git_server, config_map, rival, eventually
):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red")}))

    def contention():
        found = rival("ConfigMap", "web", {"data": {"color": "blue"}}, lambda live: live["data"]["color"] == "blue")
        eventually(lambda: condition(sync.live).get("status") == "True", "it is noticed")
        found.stop()

    contention()
    cluster.edit("ConfigMap", "web", {"data": {"color": "red"}})
    eventually(lambda: condition(sync.live)["status"] == "False", "the other gave in")
    contention()
    assert cluster.get("ConfigMap", "web")["data"]["color"] == "blue"

    def passes():
        return daemon.count("reconcile_passes_total")

    def is_at_rest():
        before = passes()
        time.sleep(4)  # longer than an object that was put back often waits for its turn
        return passes() == before

    eventually(is_at_rest, "nothing is left that would have the field looked at anyway")
    cluster.edit(
        "Sync", "shop", {"metadata": {"annotations": {"reconcile.dev/resume-requested-at": "2026-11-20T12:00:00Z"}}}
    )
    eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "red", "it is put back as asked")
    eventually(lambda: condition(sync.live)["status"] == "False", "the contention is over")
    eventually(lambda: daemon.count("reconcile_backed_off_fields") == 0, "none is counted any more")
    contention()
    git_server.push({"web.yaml": config_map("web", color="red"), "other.yaml": config_map("other")})
    eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "red", "a push has it put back")


@pytest.mark.usefixtures("daemon")
def test_the_contended_field_of_a_child_is_told_on_its_cr_and_ended_by_the_sync(
    follow, cluster, git_server, memcached, rival, eventually
):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"cache.yaml": memcached("cache", size=1)}))
    eventually(lambda: cluster.get("Deployment", "cache"), "the child is there")
    found = rival("Deployment", "cache", {"spec": {"replicas": 0}}, lambda live: live["spec"]["replicas"] == 0)
    contended = eventually(
        lambda: (
            condition(cluster.get("Memcached", "cache")).get("status") == "True"
            and condition(cluster.get("Memcached", "cache"))
        ),
        "the CR says so",
    )
    assert ".spec.replicas: rival overwrote it" in contended["message"]
    found.stop()
    cluster.edit(
        "Sync", "shop", {"metadata": {"annotations": {"reconcile.dev/resume-requested-at": "2026-11-20T12:00:00Z"}}}
    )
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 1, "the child is as its CR asks")
    eventually(lambda: condition(cluster.get("Memcached", "cache"))["status"] == "False", "the contention is over")


def test_an_object_that_somebody_keeps_deleting_is_recreated_at_a_measured_pace(
    daemon, follow, cluster, git_server, config_map, eventually
):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": config_map("web")}))
    for _ in range(12):
        uid = eventually(lambda: cluster.get("ConfigMap", "web"), "it is recreated", pause_s=0.02)["metadata"]["uid"]
        cluster.delete("ConfigMap", "web")
        eventually(
            lambda uid=uid: (cluster.get("ConfigMap", "web") or {"metadata": {"uid": ""}})["metadata"]["uid"] != uid,
            "it is gone", pause_s=0.02,
        )  # fmt: skip
    eventually(lambda: cluster.get("ConfigMap", "web"), "it is recreated in the end")
    assert daemon.count("reconcile_passes_total") < 200
