"""Domain modules on the real thing: what ``diff`` shows of a change is what then happens, object by object."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from kubectl_reconcile.module_api import restricted_container, restricted_pod
from tests.e2e.domains import ROOT, as_promised, bar, children, condition, cr, preview, promised, ready, shown
from tests.kubectl import KubectlError

IMAGE, NEWER = "nginx:1.28", "nginx:1.29"
TIERS = {"frontend": {"image": IMAGE}, "backend": {"image": IMAGE, "replicas": 2}, "database": {"image": "postgres:17"}}
STORIES = {
    "Memcached": [
        ("create", {"size": 2}),
        ("scale", {"size": 3}),
        ("change", {"size": 3, "image": "memcached:1.6.38-alpine", "containerPort": 11212}),
        ("scale to nothing", {"size": 0}),
    ],
    "WebServer": [("create", {"replicas": 2}), ("scale out", {"replicas": 4}), ("scale in", {"replicas": 1})],
    "ThreeTierApp": [
        ("create", {**TIERS, "cache": {"size": 1}}),
        ("a tier's image", {**TIERS, "backend": {"image": NEWER, "replicas": 2}, "cache": {"size": 1}}),
        (
            "all tiers",
            {**TIERS, "database": {"image": "postgres:18"}, "frontend": {"image": NEWER}, "cache": {"size": 2}},
        ),
        ("no cache", TIERS),
    ],
}


def test_a_restricted_pod_is_let_into_a_namespace_that_demands_it_and_a_plain_one_is_not(cluster, eventually):
    cluster.kubectl("label", "namespace", cluster.namespace, "pod-security.kubernetes.io/enforce=restricted")

    def admit(pod, **of_container):
        web = {"name": "web", "image": IMAGE, **of_container}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web"},
            "spec": {**pod, "containers": [web]},
        }
        return cluster.kubectl("create", "--dry-run=server", "-n", cluster.namespace, "-f", "-", stdin=manifest)

    def is_refused(pod, of_container):  # who admits pods hears a moment later what a namespace demands
        try:
            admit(pod, **of_container)
        except KubectlError as error:
            return 'violates PodSecurity "restricted' in str(error)
        return False

    for pod, of_container in ((restricted_pod(1000), {}), ({}, {"securityContext": restricted_container()})):
        eventually(lambda pod=pod, of_container=of_container: is_refused(pod, of_container), "it is refused")
    assert "created" in admit(restricted_pod(1000), securityContext=restricted_container())


@pytest.mark.parametrize("kind", STORIES)
@pytest.mark.usefixtures("daemon")
def test_what_diff_shows_is_what_happens(kind, cluster, plugin, written, eventually):
    for step, spec in STORIES[kind]:
        folder, before = written(cr(kind, "it", **spec)), children(cluster)
        plan = preview(plugin, folder)
        assert any("owner" in change for change in plan["changes"]), f"{step}: the preview shows children"
        path = f"{cluster.path(kind, 'it')}?fieldManager=kubectl-reconcile&force=true"  # as a sync would
        cluster.api.ask(path, method="PATCH", body=cr(kind, "it", **spec), type_="application/apply-patch+yaml")
        promise = promised(plan, before)
        eventually(
            lambda promise=promise: as_promised(cluster, promise), f"{step}: the children are as the preview said"
        )
        for key, want in promise.items():
            if want is None and key in before:
                assert children(cluster)[key]["metadata"]["uid"] == before[key]["metadata"]["uid"], (
                    f"{step}: {key} was left alone"
                )

        def observed():
            live = cluster.get(kind, "it")
            return (live.get("status") or {}).get("observedGeneration") == live["metadata"]["generation"]

        eventually(observed, f"{step}: the status speaks of the newest spec")
        eventually(
            lambda: condition(cluster.get(kind, "it"), "Progressing").get("status") == "False", f"{step}: at rest"
        )
        again = [change for change in preview(plugin, folder)["changes"] if "owner" in change]
        assert again == [], f"{step}: nothing is left to do"
    cluster.delete(kind, "it")
    eventually(lambda: cluster.get(kind, "it") is None, "the CR is gone")
    eventually(lambda: not children(cluster), "all it owned is gone")


def test_tiers_are_deleted_from_the_front(daemon, cluster, eventually):
    cluster.apply(cr("ThreeTierApp", "it", **TIERS))
    eventually(
        lambda: condition(cluster.get("ThreeTierApp", "it"), "Ready").get("status") == "True",
        "all tiers are ready",
    )
    cluster.delete("ThreeTierApp", "it")
    eventually(lambda: cluster.get("ThreeTierApp", "it") is None, "the app is gone")
    deletions = [line for line in daemon.log.splitlines() if "op=delete" in line and "applied" in line]
    order = [name for line in deletions for name in ("frontend", "backend", "database") if f"it-{name}" in line]
    assert order == ["frontend", "frontend", "backend", "backend", "database", "database"]


# --- pods in slots ---


def slots(cluster):
    return {name for _, name in children(cluster)}


@pytest.mark.usefixtures("daemon")
def test_a_pod_that_fails_or_goes_is_replaced(cluster, eventually):
    cluster.apply(cr("WebServer", "web", replicas=3))
    eventually(lambda: condition(cluster.get("WebServer", "web"), "Progressing").get("status") == "False", "three pods")
    uid = children(cluster)["Pod", "web-pod-1"]["metadata"]["uid"]
    failed = {"status": {"phase": "Failed", "reason": "Evicted"}}
    path = f"{cluster.path('Pod', 'web-pod-1')}/status"
    cluster.api.ask(path, method="PATCH", body=failed, type_="application/merge-patch+json")
    eventually(lambda: len(slots(cluster)) == 3 and "web-pod-1" not in slots(cluster), "another slot takes over")
    assert uid not in {one["metadata"]["uid"] for one in children(cluster).values()}
    deleted = cluster.get("Pod", "web-pod-0")["metadata"]["uid"]
    cluster.delete("Pod", "web-pod-0")

    def replaced():
        live = [pod for pod in cluster.list("Pod") if not pod["metadata"].get("deletionTimestamp")]
        return len(slots(cluster)) == 3 and deleted not in {pod["metadata"]["uid"] for pod in live}

    # The new one takes another slot while the old one still goes, and the same slot once it is gone.
    eventually(replaced, "the deleted pod is replaced")
    eventually(
        lambda: (cluster.get("WebServer", "web").get("status") or {}).get("count") == 3, "the status counts three"
    )


@pytest.mark.usefixtures("daemon")
def test_a_pod_that_merely_carries_the_labels_does_not_count(cluster, eventually):
    stranger = {"metadata": {"name": "stranger", "labels": {"app": "web", "reconcile.dev/module": "webserver"}}}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Pod", **stranger, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    )
    cluster.apply(cr("WebServer", "web", replicas=1))
    eventually(lambda: slots(cluster) == {"web-pod-0"}, "its own pod runs")
    assert cluster.get("Pod", "stranger")["metadata"].get("ownerReferences") is None


@pytest.mark.usefixtures("daemon")
def test_an_object_in_the_way_is_left_alone_and_named(cluster, eventually):
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "cache"},
            "spec": {"ports": [{"name": "other", "port": 1}]},
        }
    )
    cluster.apply(cr("Memcached", "cache", size=1))
    eventually(
        lambda: "Service" in condition(cluster.get("Memcached", "cache"), "Stalled").get("message", ""),
        "it says so",
    )
    assert cluster.get("Service", "cache")["spec"]["ports"][0]["port"] == 1
    labels = eventually(lambda: cluster.get("Deployment", "cache"), "the Deployment is made")["metadata"]["labels"]
    cluster.edit("Service", "cache", {"metadata": {"labels": labels}})
    eventually(
        lambda: 11211 in {port["port"] for port in cluster.get("Service", "cache")["spec"]["ports"]},
        "with the labels it is adopted",
    )
    eventually(
        lambda: condition(cluster.get("Memcached", "cache"), "Stalled").get("status") == "False", "and it says so"
    )


@pytest.mark.usefixtures("daemon")
def test_a_paused_cr_is_left_alone(cluster, eventually):
    cluster.apply(cr("Memcached", "cache", size=1))
    eventually(lambda: cluster.get("Deployment", "cache"), "the Deployment is made")
    cluster.edit("Memcached", "cache", {"metadata": {"annotations": {"reconcile.dev/paused": "true"}}})
    eventually(lambda: condition(cluster.get("Memcached", "cache"), "Paused").get("status") == "True", "it says so")
    cluster.edit("Deployment", "cache", {"spec": {"replicas": 5}})
    cluster.edit("Memcached", "cache", {"spec": {"size": 2}})
    cluster.edit("Memcached", "cache", {"metadata": {"annotations": {"reconcile.dev/paused": None, "seen": "no"}}})
    eventually(lambda: cluster.get("Deployment", "cache")["spec"]["replicas"] == 2, "it goes on")
    eventually(lambda: condition(cluster.get("Memcached", "cache"), "Paused").get("status") == "False", "it says so")


# --- an external system ---


def awaited(cluster) -> list[str]:
    return [each["note"] for each in cluster.list("Event") if each["reason"] == "AwaitingApproval"]


def test_a_bar_is_disposed_of_only_if_somebody_approves(factory, daemon, cluster, plugin, written, eventually):
    machine = f"{cluster.namespace}.it"
    folder = written(cr("Candy", "it", flavor="white", sweetness=5))
    assert shown(preview(plugin, folder)) == {"keep-until-cleaned-up": "run", "sugar-0-5": "run", "make-1": "run"}
    cluster.apply(cr("Candy", "it", flavor="white", sweetness=5))
    eventually(lambda: ready(cluster), "the bar is right")
    assert factory.did(machine) == [("sugar", 5), ("make", "bar-1")]

    folder = written(cr("Candy", "it", flavor="white", sweetness=9))
    expected = {"dispose-bar-1": "held", "sugar-1-9": "waits", "make-2": "waits"}
    assert shown(preview(plugin, folder)) == expected
    cluster.apply(cr("Candy", "it", flavor="white", sweetness=9))
    eventually(lambda: condition(cluster.get("Candy", "it"), "Ready").get("reason") == "WrongBar", "the bar is wrong")
    assert shown(preview(plugin, folder)) == expected
    assert factory.did(machine)[2:] == []
    awaiting = condition(cluster.get("Candy", "it"), "AwaitingApproval")
    assert (awaiting["status"], awaiting["reason"]) == ("True", "ActionHeld")
    assert "dispose of bar-1" in awaiting["message"]
    eventually(lambda: awaited(cluster) == [awaiting["message"]], "an event says so, once")
    for verb in ("tree", "explain"):
        shown_there = plugin(verb, "candy/it")
        assert "waits for approval" in shown_there.out, (verb, shown_there)

    answer = plugin("approve", "candy/it", "--yes")
    assert answer.status == 0, answer.err
    eventually(lambda: ready(cluster), "the next bar is right")
    assert factory.did(machine)[2:] == [("dispose", "bar-1"), ("sugar", 9), ("make", "bar-2")]
    assert cluster.get("Candy", "it")["status"]["disposed"] == 1
    assert condition(cluster.get("Candy", "it"), "AwaitingApproval")["status"] == "False"
    assert awaited(cluster) == [awaiting["message"]]
    assert re.search(r'INFO applied object=.*/dispose-bar-1" op=act .* why="dispose of bar-1, .*undone"', daemon.log)

    cluster.delete("Candy", "it")
    eventually(lambda: cluster.get("Candy", "it") is None, "it is gone")
    assert factory.did(machine)[5:] == [("ship", "bar-2"), ("retire", "")]


def test_an_approval_in_git_lets_all_disposals_through(factory, cluster, eventually):
    approved = {"reconcile.dev/approve-actions": "dispose"}
    cluster.apply(cr("Candy", "it", approved, flavor="dark", sweetness=5))
    eventually(lambda: ready(cluster), "the second bar, made with more sugar, is right")
    did = factory.did(f"{cluster.namespace}.it")
    assert did == [("sugar", 5), ("make", "bar-1"), ("dispose", "bar-1"), ("sugar", 8), ("make", "bar-2")]


def test_a_machine_that_is_down_loses_nothing(factory, cluster, eventually):
    cluster.apply(cr("Candy", "it", flavor="white", sweetness=5))
    eventually(lambda: ready(cluster), "the bar is right")
    factory.stop()
    cluster.apply(cr("Candy", "it", {"reconcile.dev/approve-actions": "*"}, flavor="white", sweetness=6))
    eventually(lambda: condition(cluster.get("Candy", "it"), "MachineReachable").get("status") == "False", "it says so")
    assert bar(cluster) == 5
    factory.start()
    eventually(lambda: ready(cluster) and bar(cluster) == 6, "it goes on when the machine is back")
    made = [what for did, what in factory.did(f"{cluster.namespace}.it") if did == "dispose"]
    assert made == ["bar-1"]


def test_a_cr_whose_system_is_gone_for_good_can_be_let_go(factory, cluster, eventually):
    cluster.apply(cr("Candy", "it", flavor="white", sweetness=5))
    eventually(lambda: ready(cluster), "the bar is right")
    factory.stop()
    cluster.delete("Candy", "it")
    eventually(lambda: condition(cluster.get("Candy", "it"), "MachineReachable").get("status") == "False", "it says so")
    cluster.edit("Candy", "it", {"metadata": {"annotations": {"reconcile.dev/abandon": "true"}}})
    eventually(lambda: cluster.get("Candy", "it") is None, "it is gone")
    factory.start()


@pytest.mark.timeout(1500)
def test_no_bar_is_disposed_of_twice_or_without_approval_whatever_goes_wrong(cluster):
    """Machines that refuse, lie or fall silent, restarts of the factory, a daemon killed before and after it acted."""
    path = os.pathsep.join([str(cluster.kubectl.folder), os.environ["PATH"]])
    command = [sys.executable, "-m", "tests.chaos.factory", "20", f"--kubeconfig={cluster.kubectl.kubeconfig}"]
    done = subprocess.run(
        [*command, f"--namespace={cluster.namespace}"],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=1400, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 faults" in done.stdout
