"""Checkups on the real thing: a daemon that looks again when something changes, and only where it may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import yaml_text
from tests.e2e.cluster import until_may
from tests.e2e.domains import condition

ROOT = Path(__file__).parents[3]


def checkup(**spec):
    spec = {"scan": {"profile": "baseline"}, **spec}
    metadata = {"name": "security"}
    return {"apiVersion": "checks.reconcile.dev/v1alpha1", "kind": "Checkup", "metadata": metadata, "spec": spec}


def role(*verbs):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "web"}, "rules": rules}


def found(cluster):
    status = (cluster.get("Checkup", "security") or {}).get("status") or {}
    return {(each["object"], each["check"]) for each in status.get("findings") or ()}


@pytest.mark.usefixtures("daemon")
def test_the_checkups_of_the_example_reach_their_verdict_when_they_are_asked_to(cluster, eventually):
    """Pods are simulated, so the test says what that of the Job leaves; what asks the Service is among the tests of pods that run."""
    example = ROOT / "examples" / "checkup.yaml"
    names = {each["metadata"]["name"] for each in yaml_text.documents(example.read_text())}
    cluster.kubectl("apply", "-n", cluster.namespace, "-f", str(example))

    def passed(name):
        return condition(cluster.get("Checkup", name), "Passed")

    eventually(lambda: passed("security").get("status") == "True", "the scan passes")
    assert cluster.get("Checkup", "security")["status"]["result"]["total"] == 0, "the example itself is sound"
    words = ("annotate", "checkup", "--all", "checks.reconcile.dev/requested-at=now", "-n", cluster.namespace)
    cluster.kubectl(*words)
    pod = eventually(lambda: next(iter(cluster.list("Pod")), None), "the audit has a pod")
    eventually(lambda: cluster.get("Pod", pod["metadata"]["name"])["status"].get("phase") == "Succeeded", "it has run")
    leave(cluster, pod["metadata"]["name"], '{"open": 0}')
    eventually(lambda: passed("audit").get("message") == "open 0", "what the audit left passes")
    eventually(lambda: passed("monday").get("status") == "True", "the report is written")
    in_the_way = eventually(lambda: condition(cluster.get("Checkup", "speed"), "Stalled"), "there is no Service")
    assert "there is no Service web" in in_the_way["message"]
    told = cluster.kubectl("get", "checkups", "-n", cluster.namespace)
    assert {line.split()[0]: line.split()[1] for line in told.splitlines()[1:]} == {
        **dict.fromkeys(names, "True"),
        "speed": "Unknown",
    }
    assert "there is no result yet: .spec.load.service: there is no Service web" in told


def leave(cluster, pod, words):
    """Write the termination message of a pod, as a node would."""
    status = cluster.get("Pod", pod)["status"]
    (container,) = status["containerStatuses"]
    container["state"]["terminated"]["message"] = words
    patch = json.dumps({"status": {"containerStatuses": [container]}})
    where = ("patch", "pod", pod, "-n", cluster.namespace, "--subresource=status", "--type=merge", "-p", patch)
    cluster.kubectl(*where)


WILDCARD = ("Role.rbac.authorization.k8s.io/web", "rights-wildcard")


@pytest.mark.usefixtures("daemon")
def test_a_namespace_is_looked_at_again_when_something_in_it_changes(cluster, eventually):
    cluster.apply(role("*"))
    cluster.apply(checkup(passes="result.high == 0 && !('rights-wildcard' in result.checks)"))
    eventually(lambda: found(cluster) == {WILDCARD}, "what is there is found")
    assert condition(cluster.get("Checkup", "security"), "Passed")["status"] == "False"
    cluster.apply(role("get"))
    eventually(lambda: condition(cluster.get("Checkup", "security"), "Passed")["status"] == "True", "it passes")
    result = cluster.get("Checkup", "security")["status"]["result"]
    assert [result[name] for name in ("total", "new", "fixed")] == [0, 0, 1]


def test_who_may_not_read_all_of_a_namespace_says_nothing_of_it(cluster, plugin, tmp_path):
    user = f"reader-of-{cluster.namespace}"
    cluster.apply(checkup())
    cluster.apply(
        {
            **role("get", "list", "watch"),
            "rules": [
                {"apiGroups": ["checks.reconcile.dev"], "resources": ["checkups"], "verbs": ["get", "list"]},
                {"apiGroups": ["", "apps", "batch"], "resources": ["*"], "verbs": ["list"]},
            ],
        }
    )
    cluster.kubectl("create", "rolebinding", user, "--role=web", f"--user={user}", "-n", cluster.namespace)
    until_may(cluster.kubectl, user, "get", "checkups.checks.reconcile.dev", cluster.namespace)
    until_may(cluster.kubectl, user, "list", "deployments.apps", cluster.namespace)
    answer = plugin("record", "checkup/security", "--as", user, "-o", str(tmp_path / "case.json"))
    assert answer.status == 0, answer.err
    told = {each["type"]: each for each in json.loads((tmp_path / "case.json").read_text())["outcome"]["conditions"]}
    assert told["Passed"]["status"] == "Unknown"
    assert "Role.rbac.authorization.k8s.io, RoleBinding.rbac.authorization.k8s.io" in told["Stalled"]["message"]


@pytest.mark.usefixtures("daemon")
def test_a_report_is_in_its_config_map_and_goes_with_its_checkup(cluster, eventually):
    cluster.apply(role("get"))
    cluster.apply({**checkup(), "spec": {"report": {"of": "namespace"}}})
    text = eventually(
        lambda: ((cluster.get("ConfigMap", "security-report") or {}).get("data") or {}).get("report.md"),
        "the report is written",
    )
    assert text.startswith(f"# Report: namespace {cluster.namespace}\n")
    eventually(lambda: condition(cluster.get("Checkup", "security"), "Passed").get("status") == "True", "it passes")


@pytest.mark.usefixtures("daemon")
def test_a_report_tells_who_changed_what_and_what_was_put_back(cluster, eventually, follow, git_server, config_map):
    files = {"web.yaml": config_map("web", color="red")}
    sha = git_server.push(files, "Paint it red\n\nBlue was sad.", author="Ann Lee <ann@example.com>")
    follow(git_server.url, interval="1h").until_synced(sha)
    cluster.edit("ConfigMap", "web", {"data": {"color": "blue"}})
    noted = eventually(lambda: cluster.get("Sync", "shop")["status"].get("putBack"), "what was put back is noted")
    cluster.apply({**checkup(), "spec": {"report": {"of": "namespace", "format": "json"}}})
    data = eventually(lambda: (cluster.get("ConfigMap", "security-report") or {}).get("data"), "the report is written")
    told = json.loads(data["report.json"])
    assert told["putBack"] == [{"sync": "shop", **each} for each in noted]
    assert noted[0]["object"] == f"ConfigMap {cluster.namespace}/web"
    assert ".data.color" in noted[0]["message"]
    (change,) = told["changes"]
    assert (change["author"], change["subject"]) == ("Ann Lee", "Paint it red")


@pytest.mark.usefixtures("daemon")
def test_a_revision_that_a_sync_has_applied_is_reported_of(cluster, eventually):
    api = "reconcile.dev/v1alpha1"
    cluster.apply({"apiVersion": api, "kind": "Sync", "metadata": {"name": "web"}, "spec": {}})  # nobody follows it
    cluster.apply({**checkup(), "spec": {"report": {"of": "sync", "sync": "web", "format": "json"}, "onSync": True}})
    eventually(lambda: condition(cluster.get("Checkup", "security"), "Passed").get("reason") == "NoResult", "it waits")

    def applied(revision):
        patch = json.dumps({"status": {"lastAppliedRevision": revision}})
        words = ("patch", "sync", "web", "-n", cluster.namespace, "--subresource=status", "--type=merge", "-p", patch)
        cluster.kubectl(*words)

    def told():
        data = (cluster.get("ConfigMap", "security-report") or {}).get("data") or {}
        return data and json.loads(data["report.json"])["syncs"][0]["revision"]

    for revision in ("aaa", "bbb"):
        applied(revision)
        eventually(lambda revision=revision: told() == revision, f"{revision} is reported of")
