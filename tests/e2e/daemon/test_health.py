"""Whether a Sync is healthy: judged by what its members say, told on the Sync, by an event and a metric, and cheap."""

from __future__ import annotations

import json
import time

import pytest

from tests.e2e.conftest import patiently

pytestmark = pytest.mark.usefixtures("daemon")

NOWHERE = {"nodeSelector": {"no-such": "node"}}
CONTAINER = {"name": "main", "image": "web:1"}


def deployment(name="web", replicas=1, **pod):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **pod}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def until_ready(sync, reason, *, within=""):
    """Wait until its condition Ready gives *reason* and names *within*; return the condition."""

    def reached():
        ready = sync.condition("Ready")
        return ready if ready.get("reason") == reason and within in ready.get("message", "") else {}

    try:
        return patiently(reached, f"{sync.name} is {reason}")
    except AssertionError as error:
        raise AssertionError(f"{error}; its status is {json.dumps(sync.status, indent=1)}") from None


def events_of(cluster, name):
    found = [each for each in cluster.list("Event") if each["regarding"]["name"] == name]
    return [each["reason"] for each in sorted(found, key=lambda each: each["eventTime"])]


def test_a_sync_is_ready_once_what_it_applied_is_healthy_and_not_before(follow, cluster, git_server, daemon):
    sha = git_server.push({"web.yaml": deployment(**NOWHERE)})
    sync = follow(git_server.url)
    sync.until_synced(sha)
    ready = until_ready(sync, "InProgress", within="pod web-")
    assert ready["status"] == "False"
    assert "Deployment.apps" in ready["message"]
    assert "didn't match Pod's node affinity/selector" in ready["message"]
    assert sync.condition("Healthy")["status"] == "False"
    assert sync.condition("Reconciling")["reason"] == "InProgress"
    assert sync.condition("Stalled")["status"] == "False"
    (named,) = sync.status["health"]["unhealthy"]
    assert (named["object"], named["health"]) == (f"Deployment.apps {cluster.namespace}/web", "InProgress")
    assert sync.status["health"]["counts"] == {"InProgress": 1}
    assert daemon.count("reconcile_members", health="InProgress") == 1

    sync.until_synced(git_server.push({"web.yaml": deployment()}))
    until_ready(sync, "Synced")
    assert sync.status["health"] == {"counts": {"Current": 1}, "unhealthy": []}
    assert sync.condition("Reconciling")["status"] == "False"
    assert daemon.count("reconcile_members", health="Current") == 1
    cluster.kubectl("wait", "--for=condition=Ready", "sync/shop", "-n", cluster.namespace, "--timeout=30s")
    told = events_of(cluster, "shop")
    assert told.count("Progressing") <= 2
    assert told[-1] == "Healthy"


def test_a_pod_that_crashes_is_named_with_its_reason(follow, cluster, git_server):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": deployment(**NOWHERE)}))
    (pod,) = patiently(lambda: cluster.list("Pod"), "the pod is made")
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 40s"}
    container = {"name": "main", "image": "web:1", "imageID": "", "ready": False, "restartCount": 4}
    status = {"status": {"containerStatuses": [{**container, "state": {"waiting": waiting}}]}}
    path = f"{cluster.path('Pod', pod['metadata']['name'])}/status"
    cluster.api.ask(path, method="PATCH", body=status, type_="application/strategic-merge-patch+json")
    named = f"pod {pod['metadata']['name']}: container main: CrashLoopBackOff: back-off 40s"
    assert named in until_ready(sync, "InProgress", within="CrashLoop")["message"]
    assert named in sync.status["health"]["unhealthy"][0]["message"]


def test_a_job_that_fails_stalls_its_sync_and_is_named_by_an_event(follow, cluster, git_server):
    spec = {"backoffLimit": 0, "template": {"spec": {"containers": [CONTAINER], "restartPolicy": "Never", **NOWHERE}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load"}, "spec": spec}
    job["spec"]["activeDeadlineSeconds"] = 2
    sync = follow(git_server.url)
    git_server.push({"job.yaml": json.dumps(job)})
    ready = until_ready(sync, "Failed")
    assert f"Job.batch {cluster.namespace}/load" in ready["message"]
    assert sync.condition("Stalled") | {"lastTransitionTime": ""} == ready | {
        "type": "Stalled",
        "status": "True",
        "lastTransitionTime": "",
    }
    patiently(lambda: "Unhealthy" in events_of(cluster, "shop"), "an event tells it")


def test_a_claim_that_stays_pending_is_named(follow, cluster, git_server):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    sync = follow(git_server.url)
    git_server.push({"claim.yaml": json.dumps(claim)})
    assert "PersistentVolumeClaim" in until_ready(sync, "InProgress")["message"]


def test_a_sync_that_does_not_wait_for_health_is_ready_when_it_is_synced(follow, git_server):
    sync = follow(git_server.url, health={"wait": False})
    sync.until_synced(git_server.push({"web.yaml": deployment(**NOWHERE)}))
    patiently(lambda: sync.condition("Healthy").get("reason") == "InProgress", "health is told")
    assert sync.condition("Ready")["status"] == "True"
    assert sync.condition("Reconciling")["status"] == "False"
    sync.change(health={"wait": True})
    until_ready(sync, "InProgress")


def test_health_is_judged_while_a_sync_is_suspended_also_by_a_daemon_that_begins_then(
    follow, cluster, git_server, daemon
):
    sync = follow(git_server.url, suspend=False)
    sync.until_synced(git_server.push({"web.yaml": deployment(replicas=2)}))
    until_ready(sync, "Synced")
    sync.change(suspend=True)
    until_ready(sync, "Suspended")
    assert sync.condition("Healthy")["status"] == "True"
    daemon.stop()
    daemon.start()
    pod = {"template": {"spec": NOWHERE}, "strategy": {"rollingUpdate": None, "type": "Recreate"}}
    cluster.edit("Deployment", "web", {"spec": pod})
    patiently(lambda: sync.condition("Healthy").get("reason") == "InProgress", "what happens to members is told")
    assert sync.condition("Ready")["reason"] == "Suspended"


def test_a_stranger_with_the_mark_of_a_set_says_nothing_of_its_health(follow, cluster, git_server, config_map):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": deployment()}))
    until_ready(sync, "Synced")
    marked = cluster.get("Deployment", "web")["metadata"]["labels"]
    stranger = json.loads(deployment("stranger", **NOWHERE))
    stranger["metadata"]["labels"] = marked
    cluster.apply(stranger)
    cluster.edit("Deployment", "web", {"metadata": {"annotations": {"seen": "yes"}}})
    time.sleep(2)
    assert sync.status["health"]["counts"] == {"Current": 1}


def test_a_set_of_sets_is_ready_when_the_members_of_its_members_are(follow, cluster, git_server):
    child = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "below"},
        "spec": {"source": {"git": {"url": git_server.url, "path": "below", "interval": "1s"}}},
    }
    git_server.push({"above/below.yaml": json.dumps(child), "below/web.yaml": deployment(**NOWHERE)})
    above = follow(git_server.url, "above", path="above")
    assert "Sync.reconcile.dev" in until_ready(above, "InProgress", within="0 of 1 replicas")["message"]
    git_server.push({"below/web.yaml": deployment()})
    until_ready(above, "Synced")


STORM = 40


def test_members_whose_statuses_move_all_the_time_cost_one_write_a_second_and_none_at_rest(
    follow, cluster, git_server, daemon
):
    names = [f"web-{number}" for number in range(STORM)]
    sync = follow(git_server.url, interval="1h")
    sync.until_synced(git_server.push({f"{name}.yaml": deployment(name, replicas=0) for name in names}))
    until_ready(sync, "Synced")

    def writes():
        return sum(daemon.count("reconcile_api_requests_total", verb=verb) for verb in ("PATCH", "PUT", "POST"))

    def settled():
        before = writes()
        time.sleep(3)
        return writes() - before <= 2  # the Lease is renewed

    patiently(settled, "nothing is written any more")
    began_s, before = time.monotonic(), writes()
    versions = cluster.version("Sync", "shop")
    for number in range(200):
        name = names[number % STORM]
        path = f"{cluster.path('Deployment', name)}/status?fieldManager=storm"
        status = {"status": {"replicas": number % 7 + 1, "unavailableReplicas": number % 7 + 1}}
        cluster.api.ask(path, method="PATCH", body=status, type_="application/merge-patch+json")
    patiently(lambda: cluster.version("Sync", "shop") != versions, "the storm is told")
    lasted_s = time.monotonic() - began_s
    assert writes() - before <= 4 * (lasted_s + 2), "status, event and lease"


MANY = 30
"""More than a daemon has workers."""


def later(config_map, name):
    """A ConfigMap of a later wave, which is written once the waves before it are healthy."""
    found = json.loads(config_map(name))
    found["metadata"]["annotations"] = {"reconcile.dev/wave": "1"}
    return json.dumps(found)


def test_syncs_that_never_become_healthy_hold_up_nobody(follow, cluster, git_server, config_map):
    files = {f"never-{number}/web.yaml": deployment(f"web-{number}", **NOWHERE) for number in range(MANY)}
    waves = {f"never-{number}/last.yaml": later(config_map, f"last-{number}") for number in range(MANY)}
    git_server.push({**files, **waves, "other/a.yaml": config_map("a", color="red")})
    never = [
        follow(git_server.url, f"never-{number}", path=f"never-{number}", interval="1h", timeout="10m")
        for number in range(MANY)
    ]
    for sync in never:
        patiently(lambda sync=sync: sync.condition("Reconciling").get("reason") == "Applying", "a wave is waited for")
    patiently(lambda: len(cluster.list("Deployment")) == MANY, "all wait")
    other = follow(git_server.url, "other", path="other", interval="1h")
    other.until("Synced")
    sha = git_server.push({"other/a.yaml": config_map("a", color="blue")})
    other.ask()
    other.until_synced(sha)
    assert cluster.get("ConfigMap", "a")["data"] == {"color": "blue"}
    assert not cluster.names("ConfigMap") & {f"last-{number}" for number in range(MANY)}


def test_waiting_for_a_wave_ends_for_a_commit_another_spec_and_a_suspension(follow, cluster, git_server, config_map):
    def waiting(name, **spec):
        git_server.push(
            {f"{name}/web.yaml": deployment(name, **NOWHERE), f"{name}/z.yaml": later(config_map, f"{name}-z")}
        )
        sync = follow(git_server.url, name, path=name, timeout="10m", **spec)
        patiently(lambda: cluster.get("Deployment", name), "the first wave is written")
        return sync

    pushed, changed, suspended = (
        waiting("pushed"),
        waiting("changed", interval="1h"),
        waiting("suspended", interval="1h"),
    )
    sha = git_server.push({"pushed/web.yaml": deployment("pushed")})
    pushed.until_synced(sha)
    assert cluster.get("ConfigMap", "pushed-z")
    suspended.change(suspend=True)
    suspended.until("Suspended")
    sha = git_server.push({"other/z.yaml": config_map("other")})
    changed.change(source={"git": {"url": git_server.url, "path": "other", "interval": "1h"}})
    changed.until("Synced", sha)
    assert cluster.get("ConfigMap", "other")
