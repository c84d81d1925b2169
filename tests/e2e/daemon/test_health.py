"""Whether a Sync is healthy: judged by what its members say, told on the Sync, by an event and a metric, and cheap."""

from __future__ import annotations

import itertools
import json
import time

import pytest

from tests.waiting import patiently, steadily

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
    ready = until_ready(sync, "InProgress", within="didn't match Pod's node affinity/selector")
    assert ready["status"] == "False"
    assert "Deployment.apps" in ready["message"]
    assert "pod web-" in ready["message"]
    assert sync.condition("Healthy")["status"] == "False"
    assert sync.condition("Reconciling")["reason"] == "InProgress"
    assert sync.condition("Stalled")["status"] == "False"
    (named,) = sync.status["health"]["unhealthy"]
    assert (named["object"], named["health"]) == (f"Deployment.apps {cluster.namespace}/web", "InProgress")
    assert sync.status["health"]["counts"] == {"InProgress": 1}
    patiently(lambda: daemon.count("reconcile_members", health="InProgress") == 1, "it is counted")

    sync.until_synced(git_server.push({"web.yaml": deployment()}))
    until_ready(sync, "Synced")
    assert sync.status["health"] == {"counts": {"Current": 1}, "unhealthy": []}
    assert sync.condition("Reconciling")["status"] == "False"
    patiently(lambda: daemon.count("reconcile_members", health="Current") == 1, "it is counted")
    cluster.kubectl("wait", "--for=condition=Ready", "sync/shop", "-n", cluster.namespace, "--timeout=300s")
    # It may be well before the pass has said what it did.
    patiently(lambda: "Healthy" in events_of(cluster, "shop")[-2:], "an event tells it")
    assert events_of(cluster, "shop").count("Progressing") <= 2


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

    def said():
        found = {one["type"]: one for one in sync.status["conditions"]}  # at one look: pods of the Job still go
        return [[found[type_].get(key) for key in ("reason", "message")] for type_ in ("Ready", "Stalled")]

    patiently(lambda: said()[0] == said()[1], "the same is said of both")
    assert sync.condition("Stalled")["status"] == "True"
    patiently(lambda: "Unhealthy" in events_of(cluster, "shop"), "an event tells it")


def test_a_claim_that_stays_pending_is_named(follow, cluster, git_server):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    sync = follow(git_server.url)
    git_server.push({"claim.yaml": json.dumps(claim)})
    assert "PersistentVolumeClaim" in until_ready(sync, "InProgress")["message"]


WIDGETS = "/apis/silence.example.com/v1"
WIDGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.silence.example.com"},
    "spec": {
        "group": "silence.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}  # fmt: skip


def widget(name):
    return json.dumps({"apiVersion": "silence.example.com/v1", "kind": "Widget", "metadata": {"name": name}})


def test_time_and_siblings_tell_what_silence_means_without_any_event_or_request(follow, cluster, git_server, daemon):
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=[WIDGET_CRD])
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", "crd/widgets.silence.example.com")
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "alone"},
        "spec": {"containers": [CONTAINER], **NOWHERE},
    }
    sync = follow(git_server.url, interval="1h")
    files = {"a.json": widget("a"), "b.json": widget("b"), "pod.json": json.dumps(pod)}
    sync.until_synced(git_server.push(files))

    def counts():
        return sync.status["health"]["counts"]

    def say(name):
        path = f"{WIDGETS}/namespaces/{cluster.namespace}/widgets/{name}/status?fieldManager=by-hand"
        cluster.api.ask(path, method="PATCH", body={"status": {"phase": "Ready"}}, type_="application/merge-patch+json")

    patiently(lambda: counts().get("Current") == 2, "who says nothing holds nobody up")
    say("a")
    patiently(lambda: counts().get("Current") == 1, "once another of its kind has spoken, a word is awaited")
    named = {each["object"]: each["message"] for each in sync.status["health"]["unhealthy"]}
    assert "but has on others of its kind" in named[f"Widget.silence.example.com {cluster.namespace}/b"]
    say("b")
    patiently(lambda: counts().get("Current") == 2, "it has spoken")
    patiently(lambda: counts().get("Failed") == 1, "a pod that finds no node for a quarter of a minute has failed")
    assert until_ready(sync, "Failed", within="Pod ")["status"] == "False"


def test_what_a_module_makes_counts_for_its_custom_resource_down_to_the_pod(follow, cluster, git_server):
    cache = {
        "apiVersion": "cache.example.com/v1alpha1",
        "kind": "Memcached",
        "metadata": {"name": "sessions"},
        "spec": {"size": 1, "image": "registry.invalid/memcached:1"},
    }
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"cache.json": json.dumps(cache)}))
    ready = until_ready(sync, "Failed", within="0 of 1 replicas are available; pod sessions")
    assert f"Memcached.cache.example.com {cluster.namespace}/sessions: " in ready["message"]
    assert f"Deployment.apps {cluster.namespace}/sessions: 0 of 1" in ready["message"]
    assert sync.status["health"]["counts"] == {"Failed": 1}, "members are counted"
    cache["spec"]["image"] = "memcached:1"
    git_server.push({"cache.json": json.dumps(cache)})
    until_ready(sync, "Synced")
    assert sync.status["health"] == {"counts": {"Current": 1}, "unhealthy": []}


def test_what_somebody_deleted_and_is_left_so_is_not_found(follow, cluster, git_server, config_map, daemon):
    sync = follow(git_server.url, drift="Report")
    sync.until_synced(git_server.push({"a.yaml": config_map("a"), "b.yaml": config_map("b", color="red")}))
    cluster.delete("ConfigMap", "a")
    ready = until_ready(sync, "InProgress", within=f"ConfigMap {cluster.namespace}/a: somebody deleted it")
    assert ready["status"] == "False"
    assert sync.condition("Synced")["status"] == "True"
    daemon.stop()
    daemon.start()
    cluster.edit("ConfigMap", "b", {"data": {"color": "blue"}})
    patiently(lambda: "changed .data.color" in sync.condition("Drifted")["message"], "drift is told after a restart")
    patiently(lambda: sync.status["health"]["counts"] == {"Current": 1, "NotFound": 1}, "one isn't there")
    cluster.apply(json.loads(config_map("a")))  # without our labels, so that no watch shows it
    until_ready(sync, "Synced")
    patiently(lambda: "somebody deleted" not in sync.condition("Drifted")["message"], "it is there again")


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
    steadily(lambda: sum(sync.status["health"]["counts"].values()) == 1, "the stranger isn't counted", for_s=2)
    patiently(lambda: sync.status["health"]["counts"] == {"Current": 1}, "its controller has seen the annotation")


def test_a_set_of_sets_is_ready_when_the_members_of_its_members_are(follow, cluster, git_server):
    child = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "below"},
        "spec": {"source": {"git": {"url": git_server.url, "interval": "1s"}, "path": "below"}},
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
        return sum(daemon.count("reconcile_api_requests_total", verb=verb) for verb in ("patch", "put", "post"))

    def settled():
        before = writes()
        time.sleep(3)  # in which something would be written
        return writes() - before <= 2  # the Lease is renewed

    patiently(settled, "nothing is written any more")
    began_s, before = time.monotonic(), writes()
    versions = cluster.version("Sync", "shop")
    for number in itertools.count():  # their controller puts each right at once, so that not every one is seen
        if number >= 200 and cluster.version("Sync", "shop") != versions:
            break
        name = names[number % STORM]
        path = f"{cluster.path('Deployment', name)}/status?fieldManager=storm"
        status = {"status": {"replicas": number % 7 + 1, "unavailableReplicas": number % 7 + 1}}
        cluster.api.ask(path, method="PATCH", body=status, type_="application/merge-patch+json")
        assert time.monotonic() - began_s < 240, "the storm is told"
    lasted_s = time.monotonic() - began_s
    assert writes() - before <= 4 * (lasted_s + 2), "status, event and lease"


MANY = 100
"""More than a daemon has workers."""


def later(config_map, name):
    """A ConfigMap of a later wave, which is written once the waves before it are healthy."""
    found = json.loads(config_map(name))
    found["metadata"]["annotations"] = {"reconcile.dev/wave": "1"}
    return json.dumps(found)


def test_syncs_that_never_become_healthy_hold_up_nobody(follow, cluster, git_server, config_map):
    first = {f"never-{number}/first.yaml": config_map(f"first-{number}") for number in range(MANY)}
    last = {f"never-{number}/last.yaml": later(config_map, f"last-{number}") for number in range(MANY)}
    git_server.push({**first, **last, "other/a.yaml": config_map("a", color="red")})
    never = {"rules": [{"kind": "ConfigMap", "current": "self.data.done == 'yes'"}]}
    for number in range(MANY):
        follow(git_server.url, f"never-{number}", path=f"never-{number}", interval="1h", timeout="10m", health=never)

    def waiting():
        found = [each for sync in cluster.list("Sync") for each in sync.get("status", {}).get("conditions", ())]
        return sum(each["reason"] == "Applying" and each["status"] == "True" for each in found)

    patiently(lambda: waiting() == MANY, "all wait for their first wave", timeout_s=300)
    patiently(
        lambda: cluster.names("ConfigMap") >= {f"first-{number}" for number in range(MANY)}, "and have written it"
    )
    other = follow(git_server.url, "other", path="other", interval="1h")
    other.until("Synced")
    sha = git_server.push({"other/a.yaml": config_map("a", color="blue")})
    other.ask()
    other.until_synced(sha)
    assert cluster.get("ConfigMap", "a")["data"] == {"color": "blue"}
    assert waiting() == MANY
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
    wanted = f"waits for Deployment.apps {cluster.namespace}/suspended: "
    patiently(lambda: wanted in suspended.condition("Reconciling")["message"], "it says what it waits for")
    suspended.change(suspend=True)
    suspended.until("Suspended")
    sha = git_server.push({"other/z.yaml": config_map("other")})
    changed.change(source={"git": {"url": git_server.url, "interval": "1h"}, "path": "other"})
    changed.until("Synced", sha)
    assert cluster.get("ConfigMap", "other")


# What a wave waits for isn't told within the time of a test, so that the count of objects stands for as long.
SAYS_NOT_WHAT_FOR = "from kubectl_reconcile.engine.daemon.health import wave_wait\nwave_wait.TELL_S = 1000.0\n"


def test_waiting_for_a_wave_ends_for_an_approval(
    follow, cluster, git_server, config_map, plugin, daemon, starting_with
):
    assert daemon.stop() == 0
    daemon.environ = {**daemon.environ, **starting_with(SAYS_NOT_WHAT_FOR)}
    daemon.start()
    sync = follow(git_server.url, timeout="10m", maxDeletes=0)
    kept = {f"old-{number}.yaml": config_map(f"old-{number}") for number in range(3)}
    sync.until_synced(git_server.push({**kept, "keep.yaml": config_map("keep")}))
    git_server.push(dict.fromkeys(kept))
    sync.until("Held")
    git_server.push({"web.yaml": deployment(**NOWHERE), "z.yaml": later(config_map, "z")})

    def to_write():
        busy = sync.condition("Reconciling")
        return busy["message"].partition(" ")[0] if busy["reason"] == "Applying" else ""

    patiently(lambda: cluster.get("Deployment", "web") and to_write() == "2", "the first wave is waited for")
    assert plugin("approve", "shop", "--yes").status == 0
    patiently(
        lambda: to_write() == "4", "the plan that was approved is carried out: the later wave, and three deletions"
    )
    sync.until_synced(git_server.push({"web.yaml": deployment()}))
    assert cluster.names("ConfigMap") >= {"keep", "z"}
    assert not cluster.names("ConfigMap") & {"old-0", "old-1", "old-2"}
