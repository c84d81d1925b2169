"""The daemon: what Git asks for becomes so, stays so, and goes; whatever happens to the daemon meanwhile."""

from __future__ import annotations

import itertools
import json
import time

import pytest

INTERVAL_S = 1.0


def replicas(cluster, name="cache"):
    return ((cluster.get("Deployment", name) or {}).get("spec") or {}).get("replicas")


def pods_of(cluster, name):
    pods = cluster.list("Pod", f"reconcile.dev/module=memcached,app.kubernetes.io/instance={name}")
    return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]


def nodes(cluster, name="cache"):
    return ((cluster.get("Memcached", name) or {}).get("status") or {}).get("nodes")


# --- from Git to the cluster ---


@pytest.mark.usefixtures("daemon")
def test_a_first_sync_brings_ready_pods_and_names_them(follow, cluster, git_server, memcached, eventually):
    sha = git_server.push({"cache.yaml": memcached("cache", size=2)})
    sync = follow(git_server.url)
    sync.until_synced(sha)
    eventually(
        lambda: (cluster.get("Memcached", "cache").get("status") or {}).get("readyReplicas") == 2, "two nodes are ready"
    )
    pods = [pod["metadata"]["name"] for pod in pods_of(cluster, "cache")]
    assert nodes(cluster) == sorted(pods)
    assert len(pods) == 2
    eventually(
        lambda: cluster.get("Deployment", "cache")["status"]["readyReplicas"] == 2, "its controller says so, too"
    )
    assert cluster.get("Service", "cache")["spec"]["ports"][0]["port"] == 11211
    conditions = {one["type"]: one["status"] for one in cluster.get("Memcached", "cache")["status"]["conditions"]}
    eventually(
        lambda: (
            {one["type"]: one["status"] for one in cluster.get("Memcached", "cache")["status"]["conditions"]}
            == {"Available": "True", "Progressing": "False", "Degraded": "False"}
        ),
        f"the cache is available and at rest, not {conditions}",
    )
    status = sync.status
    assert status["lastAppliedRevision"] == sha
    assert status["summary"]["total"] == 1
    assert status["history"][0]["result"] == "Synced"


@pytest.mark.usefixtures("daemon")
def test_what_is_there_already_is_taken_over_and_what_is_another_s_is_not(follow, cluster, git_server, config_map):
    others = config_map("others", color="red")
    mine = {"shop/mine.yaml": config_map("mine", color="red"), "shop/new.yaml": config_map("new", color="red")}
    first = git_server.push({"others/a.yaml": others, **mine})
    follow(git_server.url, "others", path="others").until_synced(first)
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}, "data": {"size": "1"}})
    sync = follow(git_server.url, "shop", path="shop")
    sync.until_synced(first)
    assert cluster.get("ConfigMap", "mine")["data"] == {"color": "red", "size": "1"}
    assert cluster.members("ConfigMap", "shop") == {"mine", "new"}
    counted = sync.status["summary"]
    assert (counted["total"], counted["created"], counted["updated"]) == (2, 1, 1)
    git_server.push({"shop/others.yaml": others, "shop/newer.yaml": config_map("newer")})
    sync.ask()
    assert "others" in sync.until("ApplyFailed")["message"]
    assert cluster.members("ConfigMap", "shop") == {"mine", "new", "newer"}
    assert cluster.members("ConfigMap", "others") == {"others"}


@pytest.mark.usefixtures("daemon")
def test_a_push_reaches_the_pods(follow, cluster, git_server, memcached, eventually, record_property):
    sync = follow(git_server.url, interval=f"{INTERVAL_S:g}s")
    sync.until_synced(git_server.push({"cache.yaml": memcached("cache", size=1)}))
    eventually(lambda: len(nodes(cluster) or ()) == 1, "the first pod runs")

    def seconds_to_pods(size):
        started = time.monotonic()
        git_server.push({"cache.yaml": memcached("cache", size=size)})
        eventually(lambda: len(pods_of(cluster, "cache")) != size - 1, "a pod came", pause_s=0.02)
        took_s = time.monotonic() - started
        eventually(lambda: len(nodes(cluster) or ()) == size, "the CR names the new pod")
        return took_s

    took_s = [seconds_to_pods(size) for size in (2, 3, 4)]
    record_property("push_to_first_pod_s", took_s)


@pytest.mark.usefixtures("daemon")
def test_what_leaves_git_leaves_the_cluster_with_all_it_owns(
    follow, cluster, git_server, config_map, memcached, eventually
):
    sync = follow(git_server.url)
    first = git_server.push(
        {
            "cache.yaml": memcached("cache", size=1),
            "web.yaml": config_map("web", color="red"),
            "b.yaml": config_map("b"),
        }
    )
    sync.until_synced(first)
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bystander"}})
    eventually(lambda: len(nodes(cluster) or ()) == 1, "the pod runs")
    second = git_server.push({"cache.yaml": None, "b.yaml": None})
    sync.until_synced(second)
    for kind in ("Memcached", "Deployment", "Service", "Pod"):
        eventually(lambda kind=kind: not cluster.list(kind), f"no {kind} is left")
    assert cluster.members("ConfigMap", "shop") == {"web"}
    assert "bystander" in cluster.names("ConfigMap")
    assert sync.status["summary"]["total"] == 1


# --- drift ---

DRIFTS = {
    "a field of a member": ("ConfigMap", "web", {"data": {"color": "blue"}}),
    "a field that Git asks for is removed": ("ConfigMap", "web", {"data": {"color": None}}),
    "the mark of membership": ("ConfigMap", "web", {"metadata": {"labels": {"applyset.kubernetes.io/part-of": None}}}),
    "a field of a CR": ("Memcached", "cache", {"spec": {"size": 3}}),
    "a child's replicas": ("Deployment", "cache", {"spec": {"replicas": 0}}),
    "a child's port": (
        "Service",
        "cache",
        {"spec": {"ports": [{"port": 11211, "name": "memcached", "targetPort": 1}]}},
    ),
    "a child's selector": ("Service", "cache", {"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}),
    "a child's label": ("Service", "cache", {"metadata": {"labels": {"reconcile.dev/module": None}}}),
    "a member is deleted": ("ConfigMap", "web", None),
    "a CR is deleted": ("Memcached", "cache", None),
    "a child is deleted": ("Deployment", "cache", None),
    "another child is deleted": ("Service", "cache", None),
}


def essence(manifest):
    """What is ours in an object, without what the server notes beside it."""
    if manifest is None or manifest["metadata"].get("deletionTimestamp"):
        return None
    metadata, spec = manifest["metadata"], dict(manifest.get("spec") or {})
    ports = [{key: port[key] for key in ("name", "port", "targetPort")} for port in spec.pop("ports", ())]
    kept = {key: spec.get(key) for key in ("replicas", "size", "selector")}
    return metadata.get("labels"), manifest.get("data"), kept, ports


@pytest.mark.parametrize(("kind", "name", "patch"), DRIFTS.values(), ids=DRIFTS)
@pytest.mark.usefixtures("daemon")
def test_what_people_change_by_hand_is_put_back(
    follow, cluster, git_server, config_map, memcached, eventually, record_property, kind, name, patch
):
    sha = git_server.push({"cache.yaml": memcached("cache", size=1), "web.yaml": config_map("web", color="red")})
    sync = follow(git_server.url, interval="1h")
    sync.until_synced(sha)
    eventually(lambda: len(nodes(cluster) or ()) == 1, "the pod runs")
    before = cluster.get(kind, name)
    if patch is None:
        cluster.delete(kind, name)
    else:
        cluster.edit(kind, name, patch)
    started = time.monotonic()

    def put_back():
        live = cluster.get(kind, name)
        return (
            live
            and live["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
            and (essence(live) == essence(before))
        )

    eventually(put_back, f"{kind} {name} is as Git wants it", pause_s=0.02)
    took_s = time.monotonic() - started
    record_property("put_back_s", took_s)


@pytest.mark.usefixtures("daemon")
def test_fields_that_git_does_not_ask_for_are_left_alone(
    follow, cluster, git_server, config_map, memcached, eventually
):
    sync = follow(git_server.url)
    sync.until_synced(
        git_server.push({"web.yaml": config_map("web", color="red"), "cache.yaml": memcached("cache", size=1)})
    )
    eventually(lambda: cluster.get("Deployment", "cache"), "the Deployment is made")
    cluster.edit("ConfigMap", "web", {"data": {"note": "by hand"}, "metadata": {"annotations": {"team": "web"}}})
    cluster.edit("Deployment", "cache", {"metadata": {"annotations": {"team": "web"}}})
    sync.until_synced(
        git_server.push({"web.yaml": config_map("web", color="green"), "cache.yaml": memcached("cache", size=2)})
    )
    eventually(lambda: replicas(cluster) == 2, "the Deployment has two replicas")
    web = cluster.get("ConfigMap", "web")
    assert web["data"] == {"color": "green", "note": "by hand"}
    assert web["metadata"]["annotations"]["team"] == "web"
    assert cluster.get("Deployment", "cache")["metadata"]["annotations"]["team"] == "web"


def test_a_job_that_the_cluster_removes_runs_once_for_each_push(
    follow, cluster, daemon, git_server, config_map, plugin, eventually
):
    def runs():
        return daemon.log.count('object="Job.batch')

    jobs = f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs"
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "migrate:1"}]}}
    job = {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
        "spec": {"ttlSecondsAfterFinished": 0, "template": pod},
    }  # fmt: skip
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"job.yaml": json.dumps(job), "web.yaml": config_map("web", color="red")}))
    eventually(lambda: not cluster.api.ask(jobs)["items"], "the Job has run and is gone")
    cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    eventually(lambda: cluster.get("ConfigMap", "web")["data"] == {"color": "red"}, "drift is put back")
    assert plugin("diff", "shop").status == 0
    assert plugin("sync", "shop").status == 0
    assert runs() == 1
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="green")}))
    eventually(lambda: runs() == 2, "a new state runs it again")


# --- an idle daemon ---


def test_an_unchanged_repository_costs_no_fetch_and_no_write(
    new_daemon, tmp_path, follow, cluster, git_server, config_map, memcached, eventually
):
    trace = tmp_path / "git"
    trace.mkdir()
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, GIT_TRACE2_EVENT=str(trace)).start()
    sync = follow(git_server.url)
    sync.until_synced(
        git_server.push({"web.yaml": config_map("web", color="red"), "cache.yaml": memcached("cache", size=1)})
    )
    eventually(lambda: (cluster.get("Memcached", "cache").get("status") or {}).get("readyReplicas") == 1, "it is up")
    eventually(lambda: sync.condition("Healthy")["status"] == "True", "its health was told")

    def polls():
        return daemon.count("reconcile_polls_total", answer="unchanged")

    def git_commands():
        # A line that is being written has no end yet.
        whole = [line for file in trace.iterdir() for line in file.read_text().rpartition("\n")[0].splitlines()]
        lines = map(json.loads, whole)
        return [line["argv"] for line in lines if line["event"] == "start" and "ls-remote" not in line["argv"]]

    def versions():
        things = ("Sync", "shop"), ("ConfigMap", "web"), ("Memcached", "cache"), ("Service", "cache")
        return [cluster.version(*thing) for thing in things]

    def seen():
        return versions(), fetches(git_commands()), daemon.count("reconcile_changes_total")

    def is_unchanged_after(number):
        polled, before = polls(), seen()
        eventually(lambda: polls() >= polled + number, f"polled {number} times more")
        return seen() == before

    eventually(lambda: is_unchanged_after(1), "everything is at rest")
    assert fetches(git_commands()), "the trace shows no fetch at all, so it would show none now"
    assert is_unchanged_after(3)


def fetches(commands):
    return [command for command in commands if "fetch" in command]


def test_it_tells_how_it_is_over_http(daemon, follow, git_server, config_map, eventually):
    follow(git_server.url).until_synced(git_server.push({"web.yaml": config_map("web")}))
    assert daemon.answer("/healthz") == (200, "ok\n")
    assert daemon.answer("/readyz") == (200, "ok\n")
    assert daemon.count("reconcile_changes_total", op="create") == 1
    eventually(lambda: daemon.count("reconcile_passes_total", kind="sync", reason="Synced") >= 1, "the pass is counted")
    assert daemon.count("reconcile_polls_total", answer="news") == 1
    assert daemon.count("reconcile_cached_objects") >= 2
    assert daemon.answer("/nothing")[0] == 404


# --- what people ask of it ---


def test_it_says_as_much_and_keeps_its_lease_where_it_is_told(new_daemon, cluster, another):
    options = (f"--lease-namespace={another.namespace}", "--log-level=debug")
    daemon = new_daemon(cluster.kubectl.kubeconfig, cluster.namespace, options).start()
    assert " DEBUG " in daemon.log
    assert another.names("Lease", "reconcile.dev/component=daemon")
    assert not cluster.names("Lease", "reconcile.dev/component=daemon")


@pytest.mark.usefixtures("daemon")
def test_a_request_for_a_sync_is_answered_at_once(follow, cluster, git_server, config_map):
    sync = follow(git_server.url, interval="1h")
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red")}))
    sha = git_server.push({"web.yaml": config_map("web", color="green")})
    status = sync.ask()
    assert status["lastAppliedRevision"] == sha
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "green"}


@pytest.mark.usefixtures("daemon")
def test_a_suspended_sync_does_nothing_until_it_is_resumed(follow, cluster, git_server, config_map):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red")}))
    sync.change(suspend=True)
    sync.until("Suspended")
    sha = git_server.push({"web.yaml": config_map("web", color="green"), "new.yaml": config_map("new")})
    cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    sync.ask()  # looked at, and left alone
    assert sync.condition()["reason"] == "Suspended"
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "blue"}
    assert not cluster.get("ConfigMap", "new")
    sync.change(suspend=False)
    sync.until_synced(sha)
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "green"}
    assert cluster.get("ConfigMap", "new")


@pytest.mark.usefixtures("daemon")
def test_crs_made_by_hand_are_looked_after_as_well(cluster, memcached, eventually):
    cluster.apply(json.loads(memcached("mine", size=1)))
    eventually(lambda: len(nodes(cluster, "mine") or ()) == 1, "the pod runs")
    cluster.edit("Memcached", "mine", {"spec": {"size": 2}})
    eventually(lambda: len(nodes(cluster, "mine") or ()) == 2, "there are two pods")
    cluster.edit("Deployment", "mine", {"spec": {"replicas": 5}})
    eventually(lambda: replicas(cluster, "mine") == 2, "the Deployment is put back")
    cluster.delete("Memcached", "mine")
    for kind in ("Deployment", "Service", "Pod"):
        eventually(lambda kind=kind: not cluster.list(kind), f"no {kind} is left")


@pytest.mark.usefixtures("daemon")
def test_two_syncs_keep_to_their_own_objects(follow, cluster, git_server, config_map):
    sha = git_server.push(
        {"a/web.yaml": config_map("web", owner="a"), "a/old.yaml": config_map("old"), "b/db.yaml": config_map("db")}
    )
    a, b = follow(git_server.url, "a", path="a"), follow(git_server.url, "b", path="b")
    a.until_synced(sha)
    b.until_synced(sha)
    grabbed = git_server.push({"a/old.yaml": None, "b/web.yaml": config_map("web", owner="b")})
    a.until_synced(grabbed)
    refused = b.until("ApplyFailed", grabbed)
    assert f"ConfigMap {cluster.namespace}/web: it belongs to Sync {cluster.namespace}/a" in refused["message"]
    assert cluster.get("ConfigMap", "web")["data"] == {"owner": "a"}
    assert cluster.members("ConfigMap", "a") == {"web"}
    assert cluster.members("ConfigMap", "b") == {"db"}


@pytest.fixture
def another(cluster, namespace_names):
    """The cluster as seen from a second namespace."""
    another = cluster.at(next(namespace_names))
    another.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": another.namespace}})
    yield another
    another.delete("Namespace", another.namespace)


@pytest.mark.usefixtures("daemon")
def test_a_daemon_of_one_namespace_leaves_the_others_alone(follow, cluster, another, git_server, memcached, eventually):
    sha = git_server.push({"cache.yaml": memcached("cache", size=1)})
    foreign = follow(git_server.url, on=another)
    follow(git_server.url).until_synced(sha)
    set_id = cluster.get("Memcached", "cache")["metadata"]["labels"]["applyset.kubernetes.io/part-of"]
    theirs = json.loads(memcached("theirs", size=1))
    theirs["metadata"]["labels"] = {"applyset.kubernetes.io/part-of": "applyset-of-another-daemon-v1"}
    another.apply(theirs)
    eventually(lambda: len(nodes(cluster) or ()) == 1, "the pod of our own CR runs")
    sync_again(cluster, eventually)
    assert set_id != "applyset-of-another-daemon-v1"
    assert not foreign.status
    assert not another.list("Memcached", f"applyset.kubernetes.io/part-of={set_id}")
    assert not another.list("Deployment")


def sync_again(cluster, eventually):
    """Bring the daemon to do something that comes after whatever it was about to do."""
    cluster.delete("Deployment", "cache")
    eventually(lambda: replicas(cluster), "the Deployment is made again")


@pytest.mark.usefixtures("daemon")
def test_a_sync_may_put_its_objects_into_another_namespace(
    follow, another, git_server, config_map, memcached, eventually
):
    sync = follow(git_server.url, targetNamespace=another.namespace)
    first = git_server.push({"cache.yaml": memcached("cache", size=1), "web.yaml": config_map("web", color="red")})
    sync.until_synced(first)
    eventually(lambda: len(nodes(another) or ()) == 1, "the pod of the CR runs")
    another.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    another.edit("Deployment", "cache", {"spec": {"replicas": 0}})
    eventually(lambda: another.get("ConfigMap", "web")["data"] == {"color": "red"}, "the ConfigMap is put back")
    eventually(lambda: replicas(another) == 1, "the Deployment is put back")


@pytest.mark.usefixtures("daemon")
def test_objects_outlive_their_sync(follow, cluster, git_server, config_map):
    sync = follow(git_server.url)
    sync.until_synced(git_server.push({"web.yaml": config_map("web", color="red")}))
    cluster.delete("Sync", "shop")
    other = follow(git_server.url, "other", path="other")
    other.until_synced(git_server.push({"other/b.yaml": config_map("b"), "web.yaml": config_map("web", color="blue")}))
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "red"}


# --- the end of a daemon, orderly or not ---

MANY = 400


def many(config_map, color, number=MANY):
    return {f"{index}.yaml": config_map(f"item-{index}", color=color) for index in range(number)}


def colors(cluster):
    return {one["data"]["color"] for one in cluster.list("ConfigMap") if one["metadata"]["name"].startswith("item-")}


def test_told_to_end_mid_sync_it_ends_within_seconds_and_the_next_goes_on(
    daemon, follow, cluster, git_server, config_map, eventually, record_property
):
    sha = git_server.push(many(config_map, "red"))
    sync = follow(git_server.url)

    def written(color):
        found = [one for one in cluster.list("ConfigMap") if one["metadata"]["name"].startswith("item-")]
        return sum(one["data"]["color"] == color for one in found)

    for color, then in itertools.pairwise(("red", "green", "blue", "yellow")):
        eventually(lambda color=color: written(color), "the first objects are there", pause_s=0.02)
        started = time.monotonic()
        assert daemon.stop() == 0
        record_property("ended_s", time.monotonic() - started)
        if written(color) < MANY:
            break
        daemon.start()  # it was over before it was told to end
        sha = git_server.push(many(config_map, then))
    assert written(color) < MANY
    assert "Traceback" not in daemon.log
    assert sync.status.get("lastAppliedRevision") != sha
    assert not cluster.list("Lease", "reconcile.dev/component=daemon")
    daemon.start()
    sync.until_synced(sha)
    assert written(color) == len(cluster.members("ConfigMap", "shop")) == MANY


@pytest.mark.parametrize("then", ["the same", "something new"])
def test_killed_while_it_creates_it_starts_again_and_gets_there(
    daemon, follow, cluster, git_server, config_map, memcached, eventually, then
):
    sha = git_server.push({**many(config_map, "red", 200), "cache.yaml": memcached("cache", size=2)})
    sync = follow(git_server.url)
    eventually(lambda: cluster.members("ConfigMap", "shop"), "the first objects are there", pause_s=0.02)
    daemon.kill()
    if then == "something new":
        sha = git_server.push({"7.yaml": None, "8.yaml": config_map("item-8", color="green")})
    daemon.start()
    sync.until_synced(sha)
    wanted = {f"item-{index}" for index in range(200) if index != 7 or then == "the same"}
    assert cluster.members("ConfigMap", "shop") == wanted
    eventually(lambda: len(nodes(cluster) or ()) == 2, "the cache runs")


def test_killed_while_it_updates_and_prunes_it_starts_again_and_gets_there(
    daemon, follow, cluster, git_server, config_map, eventually
):
    sync = follow(git_server.url, maxDeletes="100%")
    sync.until_synced(git_server.push(many(config_map, "red", 120)))
    sha = git_server.push({**many(config_map, "green", 60), **{f"{index}.yaml": None for index in range(60, 120)}})
    eventually(lambda: "green" in colors(cluster), "the first object is updated", pause_s=0.02)
    daemon.kill()
    daemon.start()
    sync.until_synced(sha)
    assert cluster.members("ConfigMap", "shop") == {f"item-{index}" for index in range(60)}
    assert colors(cluster) == {"green"}


def test_killed_as_soon_as_a_cr_is_there_its_children_come_nevertheless(
    daemon, follow, cluster, git_server, memcached, eventually
):
    sha = git_server.push({"cache.yaml": memcached("cache", size=2)})
    sync = follow(git_server.url)
    eventually(lambda: cluster.get("Memcached", "cache"), "the CR is there", pause_s=0.02)
    daemon.kill()
    daemon.start()
    sync.until_synced(sha)
    eventually(lambda: len(nodes(cluster) or ()) == 2, "the pods run")


def test_drift_while_no_daemon_ran_is_put_back_also_where_git_stood_still(
    daemon, follow, cluster, git_server, config_map, eventually
):
    follow(git_server.url).until_synced(git_server.push(many(config_map, "red", 3)))
    daemon.kill()
    cluster.edit("ConfigMap", "item-1", {"data": {"color": "blue"}})
    cluster.delete("ConfigMap", "item-2")
    daemon.start()
    eventually(
        lambda: cluster.names("ConfigMap") >= {"item-0", "item-1", "item-2"} and colors(cluster) == {"red"},
        "both are in sync",
    )


def test_what_happened_while_no_daemon_ran_is_caught_up_with(
    daemon, follow, cluster, git_server, config_map, memcached, eventually
):
    sync = follow(git_server.url)
    sync.until_synced(
        git_server.push(
            {
                "cache.yaml": memcached("cache", size=2),
                "web.yaml": config_map("web", color="red"),
                "b.yaml": config_map("b"),
            }
        )
    )
    eventually(lambda: len(nodes(cluster) or ()) == 2, "the pods run")
    daemon.kill()
    cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    cluster.delete("Service", "cache")
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 0}})
    sha = git_server.push({"b.yaml": None})
    daemon.start()
    sync.until_synced(sha)
    assert cluster.members("ConfigMap", "shop") == {"web"}
    assert cluster.get("ConfigMap", "web")["data"] == {"color": "red"}
    eventually(lambda: cluster.get("Service", "cache") and replicas(cluster) == 2, "the children are put back")
