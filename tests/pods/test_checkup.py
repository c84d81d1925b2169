"""Checkups by Jobs that really run: load on a real server, and what a program of somebody's own leaves behind."""

from pathlib import Path

import pytest

from tests import yaml_text

ROOT = Path(__file__).parents[2]

HEARD_OF = """
import time, urllib.request
while True:
    try:
        urllib.request.urlopen("http://web:PORT/", timeout=60).read()
        break
    except OSError:
        time.sleep(0.1)  # until nodes have heard of the Service
"""

LEAVES = """
import json, os, ssl, time, urllib.request as u
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
left = {"data": {os.environ["CHECKUP_KEY"]: json.dumps({"open": 3, "pages": ["x" * 99] * 100})}}
ask = u.Request(
    f"https://kubernetes.default.svc/api/v1/namespaces/{os.environ['PLACE']}/configmaps/{os.environ['CHECKUP_CONFIGMAP']}",
    data=json.dumps(left).encode(),
    method="PATCH",
    headers={"Authorization": "Bearer " + open(account + "token").read(), "Content-Type": "application/merge-patch+json"},
)
while True:
    try:
        u.urlopen(ask, context=ssl.create_default_context(cafile=account + "ca.crt"), timeout=60).read()
        break
    except OSError:
        time.sleep(0.1)  # until the rights are known everywhere
"""
EXAMPLE = "examples/checkup.yaml"
API = "checks.reconcile.dev/v1alpha1"


def result_of(real, name, what="result"):
    """The status of a Checkup once a run has ended, which says *what*."""
    at = f"/apis/{API}/namespaces/{real.namespace}/checkups/{name}"

    def told():
        status = real.get(at).get("status", {})
        return status if "result" in status or "failure" in status else None

    status = real.eventually(told, f"a run of {name} has ended")
    assert what in status, status
    return status


def passed(status):
    return next(each for each in status["conditions"] if each["type"] == "Passed")


def serve(real, port):
    """Let a Service ``web`` answer at a port, and wait until nodes have heard of it."""
    ports = [{"port": port, "targetPort": 8080}]
    real.apply(
        {
            "kind": "Pod",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "python", "command": ["python", "-m", "http.server", "8080"]}]
            },
        },
        {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}},
    )
    heard_of = HEARD_OF.replace("PORT", str(port))
    real.run("python", "-c", heard_of, name="client", image="python", pod={"restartPolicy": "Never"})
    real.phase("Succeeded", "client")


@pytest.mark.usefixtures("crds")
def test_load_is_sent_to_a_service_and_told(real, new_daemon):
    new_daemon(real.kubectl.kubeconfig, real.namespace).start()
    serve(real, 8080)
    load = {"service": "web", "port": 8080, "path": "/?q=1", "ratePerSecond": 10, "durationSeconds": 2}
    spec = {"load": {**load, "timeoutSeconds": 120, "image": "python"}, "passes": "result.errors == 0"}
    real.apply({"apiVersion": API, "kind": "Checkup", "metadata": {"name": "speed"}, "spec": spec})

    status = result_of(real, "speed")
    result = status["result"]
    assert (result["requests"], result["statuses"]) == (20, {"200": 20})
    assert 0 < result["p50_ms"] <= result["p99_ms"] <= result["max_ms"]
    assert passed(status)["status"] == "True", status
    asked = [line for line in real.logs("web") if "/?q=1" in line]
    assert len(asked) == 20


@pytest.mark.usefixtures("crds")
def test_the_jobs_of_the_example_run_when_they_are_asked_to(real, new_daemon):
    """But for images that stand for programs here, and for the minute of load, all is as it stands in the example."""
    new_daemon(real.kubectl.kubeconfig, real.namespace).start()
    serve(real, 80)
    example = {each["metadata"]["name"]: each for each in yaml_text.documents((ROOT / EXAMPLE).read_text())}
    example["audit"]["spec"]["job"]["template"]["spec"]["containers"][0]["image"] = "system"
    example["speed"]["spec"]["load"] |= {"image": "python", "durationSeconds": 2, "timeoutSeconds": 120}
    example["speed"]["spec"]["passes"] = "result.errors == 0"  # how fast this machine is, nobody knows
    for name in ("audit", "speed"):
        example[name]["metadata"]["annotations"] = {"checks.reconcile.dev/requested-at": "now"}
        real.apply(example[name])
    audit, speed = result_of(real, "audit"), result_of(real, "speed")
    assert (audit["result"]["open"], passed(audit)["status"]) == (0, "True")
    assert (speed["result"]["requests"], speed["result"]["errors"], passed(speed)["status"]) == (60, 0, "True")


@pytest.mark.usefixtures("crds")
def test_a_program_leaves_its_result_as_its_last_words_or_in_a_config_map(real, new_daemon):
    group, place = "rbac.authorization.k8s.io", {"name": "leaver"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["much-result"], "verbs": ["patch"]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": real.namespace}
    binding = {"roleRef": {"apiGroup": group, "kind": "Role", "name": "leaver"}, "subjects": [subject]}
    real.apply(
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {**place}, "rules": [rule]},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {**place}, **binding},
    )
    new_daemon(real.kubectl.kubeconfig, real.namespace).start()
    words = """echo '{"open": 7}' > /dev/termination-log"""
    programs = {
        "few": {"image": "system", "command": ["sh", "-c", words]},
        "much": {"image": "python", "command": ["python", "-c", LEAVES], "env": [{"name": "PLACE", "value": real.namespace}]},
        "none": {"image": "system", "command": ["sh", "-c", "echo sorry > /dev/termination-log"]},
    }  # fmt: skip
    for name, program in programs.items():
        spec = {
            "job": {
                "template": {"spec": {"serviceAccountName": "default", "containers": [{"name": "main", **program}]}}
            },
            "passes": "result.open < 5",
        }
        real.apply({"apiVersion": API, "kind": "Checkup", "metadata": {"name": name}, "spec": spec})
    few, much, none = result_of(real, "few"), result_of(real, "much"), result_of(real, "none", "failure")
    assert (few["result"]["open"], passed(few)["reason"]) == (7, "NotPassed")
    assert (much["result"]["open"], len(much["result"]["pages"]), passed(much)["reason"]) == (3, 100, "Passed")
    assert (none["failure"]["reason"], passed(none)["status"]) == ("NotAResult", "False")
    at = f"/api/v1/namespaces/{real.namespace}/configmaps/much-result"
    real.eventually(lambda: not real.get(at), "the ConfigMap goes once its result is written down")
