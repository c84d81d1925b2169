"""Pods as processes, seen through the API server: what Kubernetes promises of a pod, with real programs in it."""

import contextlib
import json
import time

import pytest

from kubectl_reconcile.sandbox.errors import SandboxError
from tests.kubectl import KubectlError

SERVER = "import http.server as h; h.ThreadingHTTPServer(('', 80), h.SimpleHTTPRequestHandler).serve_forever()"
WEB = {"image": "python", "ports": [{"name": "http", "containerPort": 80}]}


def test_a_pod_serves_and_others_find_it_by_its_service(real):
    real.apply(
        {
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 8000, "targetPort": "http"}]},
        },
        {
            "kind": "Pod",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {
                "hostname": "web-0",
                "containers": [
                    {
                        "name": "main",
                        "command": ["python", "-c", SERVER],
                        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 1},
                        **WEB,
                    }
                ],
            },
        },
    )
    assert real.ready("web")["status"]["podIP"].startswith("10.200.")
    ask = f"""
import socket, ssl, urllib.request as u
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
print(u.urlopen("http://web:8000/", timeout=30).status)
print(u.urlopen("http://web.{real.namespace}.svc.cluster.local:8000/", timeout=30).status)
trust = ssl.create_default_context(cafile=account + "ca.crt")
ask = u.Request("https://kubernetes.default.svc/version")
print(u.urlopen(ask, context=trust, timeout=30).status)
token = open(account + "token").read()
who = u.Request(
    "https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews",
    data=b'{{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}}',
    headers={{"Authorization": "Bearer " + token, "Content-Type": "application/json"}},
)
print(u.urlopen(who, context=trust, timeout=30).read().decode().strip())
"""
    # Endpoints come a moment after the pod is ready: whoever asks too early is refused, as elsewhere.
    real.run("python", "-c", ask, name="ask", image="python", pod={"restartPolicy": "OnFailure"})
    real.phase("Succeeded", "ask")
    *statuses, who = real.logs("ask")[-4:]
    assert statuses == ["200"] * 3
    assert json.loads(who)["status"]["userInfo"]["username"] == f"system:serviceaccount:{real.namespace}:default"


def test_what_ends_is_restarted_as_the_pod_says(real):
    fail_once = "test -e /data/again && exit 0; touch /data/again; echo first; exit 3"
    data = {"volumes": [{"name": "data", "emptyDir": {}}]}
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    real.run("sh", "-c", fail_once, name="on-failure", pod={"restartPolicy": "OnFailure", **data}, **mount)
    real.run("sh", "-c", "echo last words > /dev/termination-log; exit 3", name="never", pod={"restartPolicy": "Never"})
    real.run("sh", "-c", "echo why; exit 1", name="always", terminationMessagePolicy="FallbackToLogsOnError")
    real.run("no-such-program", name="broken", pod={"restartPolicy": "Never"})
    real.run("sleep", "100", name="missing", image="etcd:2.0.0")
    real.run(
        "sleep",
        "100",
        name="late",
        pod={"restartPolicy": "Never", "activeDeadlineSeconds": 1, "terminationGracePeriodSeconds": 0},
    )

    real.phase("Succeeded", "on-failure")
    assert real.container("on-failure")["restartCount"] == 1
    assert real.container("on-failure")["lastState"]["terminated"]["exitCode"] == 3
    assert real.logs("on-failure", "--previous") == ["first"]

    real.phase("Failed", "never")
    ended = real.container("never")["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "last words\n")

    real.eventually(lambda: waits_for(real, "always") == "CrashLoopBackOff", "it crash-loops")
    assert real.container("always")["restartCount"] >= 1
    real.eventually(
        lambda: (real.container("always")["lastState"].get("terminated") or {}).get("message") == "why",
        "what it printed stands in for a message",
    )

    real.phase("Failed", "broken")
    ended = real.container("broken")["state"]["terminated"]
    assert (ended["reason"], ended["message"]) == (
        "StartError",
        "no-such-program: there is no such program in the image",
    )

    def why():
        waiting = real.container("missing")["state"].get("waiting", {})
        return waiting["message"] if waiting.get("reason") == "ErrImagePull" else ""

    assert "no programs stand in for etcd:2.0.0" in real.eventually(why, "the image isn't there")

    assert real.phase("Failed", "late")["status"]["reason"] == "DeadlineExceeded"


def waits_for(real, name):
    return real.container(name)["state"].get("waiting", {}).get("reason")


def test_init_containers_run_in_order_and_sidecars_beside(real):
    share = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    one = {"image": "system", **share}
    real.apply(
        {
            "kind": "Pod",
            "metadata": {"name": "main"},
            "spec": {
                "restartPolicy": "Never",
                "volumes": [{"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
                "initContainers": [
                    {"name": "first", "command": ["sh", "-c", "sleep 0.3; echo first >> /data/order"], **one},
                    {
                        "name": "beside",
                        "restartPolicy": "Always",
                        "command": ["sh", "-c", "trap 'exit 0' TERM; echo beside >> /data/order; while :; do sleep 0.1; done"],
                        "startupProbe": {"exec": {"command": ["grep", "beside", "/data/order"]}, "periodSeconds": 1},
                        **one,
                    },
                    {"name": "second", "command": ["sh", "-c", "echo second >> /data/order"], **one},
                ],
                "containers": [
                    {"name": "main", "command": ["sh", "-c", "cat /data/order; head -c 2M /dev/zero > /data/large"], **one}
                ],
            },
        }
    )  # fmt: skip
    real.phase("Failed")  # the volume is full, since it is as small as it says
    lines = real.logs("main", "-c", "main")
    assert lines[:3] == ["first", "beside", "second"]
    assert "No space left on device" in lines[-1]

    def codes():
        states = {one["name"]: one["state"] for one in real.pod()["status"]["initContainerStatuses"]}
        return {name: state.get("terminated", {}).get("exitCode") for name, state in states.items()}

    real.eventually(lambda: codes() == {"first": 0, "beside": 0, "second": 0}, "all have ended well")


def test_probes_and_hooks(real):
    patient = {"periodSeconds": 1, "timeoutSeconds": 60}
    up = "test -e /data/started && test -e /run/alive"
    real.run(
        "sh", "-c", "trap 'exit 5' TERM; touch /run/alive; while :; do sleep 0.05; done",
        pod={"volumes": [{"name": "data", "emptyDir": {}}], "terminationGracePeriodSeconds": 3600},  # nobody waits that long for the end of anything
        volumeMounts=[{"name": "data", "mountPath": "/data"}],
        startupProbe={"exec": {"command": ["sh", "-c", up]}, "failureThreshold": 600, **patient},
        livenessProbe={"exec": {"command": ["test", "-e", "/run/alive"]}, "failureThreshold": 1, **patient},
        readinessProbe={"exec": {"command": ["test", "-e", "/data/ready"]}, **patient},
        lifecycle={
            "postStart": {"exec": {"command": ["touch", "/data/started"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /data/stopped"]}},
        },
    )  # fmt: skip
    real.eventually(lambda: real.container().get("started"), "its startup probe succeeds")
    assert not real.container()["ready"]
    real.kubectl("exec", "-n", real.namespace, "main", "--", "touch", "/data/ready")
    real.ready()
    with contextlib.suppress(KubectlError):  # it may be ended with the container
        real.kubectl("exec", "-n", real.namespace, "main", "--", "rm", "/data/ready", "/run/alive")
    real.eventually(lambda: real.container()["restartCount"] == 1, "its liveness probe fails, and it is restarted")
    assert real.container()["lastState"]["terminated"]["exitCode"] == 5  # it was asked
    real.eventually(lambda: real.container()["state"].get("running"), "it runs again")
    assert real.kubectl("exec", "-n", real.namespace, "main", "--", "cat", "/data/stopped") == "stopping\n"
    real.delete()
    assert not real.pod()


def test_a_pod_ends_within_its_grace_and_nothing_is_left_of_it(real):
    asked = "trap 'echo no' TERM; touch /data/deaf; while :; do sleep 0.1; done"
    data = {"volumes": [{"name": "data", "emptyDir": {}}], "terminationGracePeriodSeconds": 2}
    real.run("sh", "-c", asked, pod=data, volumeMounts=[{"name": "data", "mountPath": "/data"}])
    real.ready()
    real.kubectl("exec", "-n", real.namespace, "main", "--", "sh", "-c", "until test -e /data/deaf; do sleep 0.1; done")
    uid = real.pod()["metadata"]["uid"]
    assert (real.sandbox.folder / "pods" / uid).is_dir()
    began = time.monotonic()
    real.delete()  # it doesn't end by itself
    assert time.monotonic() - began > 1.8
    assert not (real.sandbox.folder / "pods" / uid).exists()
    real.run("sleep", "100", name="forced")
    real.ready("forced")
    uid = real.pod("forced")["metadata"]["uid"]
    real.delete("forced", "--force", "--grace-period=0")
    real.eventually(
        lambda: not (real.sandbox.folder / "pods" / uid).exists(), "a forced deletion leaves nothing either"
    )


def test_a_pod_ends_while_one_of_its_probes_hangs(real):
    asks = {"exec": {"command": ["sh", "-c", "echo asked > /proc/1/fd/1; sleep 1000"]}, "timeoutSeconds": 1000}
    real.run("sh", "-c", "sleep 1000", readinessProbe=asks, pod={"terminationGracePeriodSeconds": 1})
    real.eventually(lambda: "asked" in real.logs(), "the probe is under way", timeout_s=240)
    real.delete("main", "--wait=false")
    real.gone("main")


def test_odd_objects_hold_up_no_other_pod_and_can_be_deleted(real, kubectl):
    """Neither an endpoint without a port, nor an alias without names, nor an image that nobody has by the time a hook runs."""
    labels = {"kubernetes.io/service-name": "odd"}
    endpoints = [{"addresses": ["10.200.250.250"]}]
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
    main = {"name": "main", "image": "system", "command": ["sleep", "1000"]}
    aliases = {"hostAliases": [{"ip": "1.2.3.4"}], "terminationGracePeriodSeconds": 1}
    real.apply(
        {"kind": "Service", "metadata": {"name": "odd"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}},
        {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "odd", "labels": labels},
            "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "x", "protocol": "TCP"}],
        },
        {"kind": "Pod", "metadata": {"name": "odd"}, "spec": {"containers": [{**main, **hook}], **aliases}},
    )  # fmt: skip
    real.phase("Running", "odd")
    real.run("sleep", "1000", name="well", pod={"terminationGracePeriodSeconds": 0})
    real.phase("Running", "well")
    kubectl("set", "image", "pod/odd", "main=no/such:1", "-n", real.namespace)
    real.eventually(lambda: real.pod("odd")["spec"]["containers"][0]["image"] == "no/such:1", "the image is another")
    real.delete("odd", "--wait=false")
    real.delete("well", "--wait=false")
    real.gone("odd", "well")


def test_pods_of_other_namespaces_are_simulated(kubectl, real, sandbox):
    with pytest.raises(SandboxError, match=f"there is no pod {real.namespace}/nope"):
        sandbox.pods.signal(real.namespace, "nope")
    kubectl("create", "namespace", f"{real.namespace}-other")
    try:
        kubectl("wait", "--for=create", "serviceaccount/default", "-n", f"{real.namespace}-other", "--timeout=300s")
        kubectl("run", "other", "--image=no/such:1", "-n", f"{real.namespace}-other")
        kubectl("wait", "--for=condition=Ready", "pod/other", "-n", f"{real.namespace}-other", "--timeout=300s")
        found = kubectl.json("get", "pod", "other", "-n", f"{real.namespace}-other")
        assert found["spec"]["nodeName"] == "sandbox"
    finally:
        kubectl("delete", "namespace", f"{real.namespace}-other", "--wait=false")


def test_volumes_users_and_claims(real):
    real.apply(
        {"kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"level": "debug"}},
        {"kind": "Secret", "metadata": {"name": "login"}, "stringData": {"password": "s3cret"}},
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    )
    script = "id -u; cat /etc/settings/level /run/login/password; echo; whoami; echo kept > /data/it; echo $LEVEL; exec sleep 100"
    spec = {
        "volumes": [
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "login", "secret": {"secretName": "login"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
        "securityContext": {"runAsUser": 70, "runAsNonRoot": True},
        "terminationGracePeriodSeconds": 0,
    }
    mounts = [("settings", "/etc/settings"), ("login", "/run/login"), ("data", "/data")]
    container = {
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts],
        "env": [{"name": "LEVEL", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level"}}}],
    }
    real.run("sh", "-c", script, pod=spec, **container)
    real.ready()
    real.eventually(lambda: len(real.logs()) == 4, "it has said all")
    assert real.logs() == ["70", "debugs3cret", "user70", "debug"]
    real.kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": real.namespace},
            "data": {"level": "info"},
        }
    )
    exec_ = ("exec", "-n", real.namespace, "main", "--")
    real.eventually(
        lambda: real.kubectl(*exec_, "cat", "/etc/settings/level") == "info", "the file follows its ConfigMap"
    )
    real.delete()
    real.run("cat", "/data/it", name="next", pod={**spec, "restartPolicy": "Never"}, **container)
    real.phase("Succeeded", "next")
    assert real.logs("next") == ["kept"]
    (volume,) = [
        one for one in real.kubectl.json("get", "pv")["items"] if one["spec"]["claimRef"]["namespace"] == real.namespace
    ]
    folder = real.sandbox.folder / "volumes" / volume["spec"]["claimRef"]["uid"]
    assert folder.is_dir()
    real.delete("next")
    real.kubectl("delete", "pvc", "data", "-n", real.namespace)
    real.eventually(lambda: not folder.exists(), "the folder goes with its claim")


def test_a_claim_that_asks_for_more_room_is_told_that_it_has_it(real):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    real.apply({"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec})

    def capacities():
        claim = real.get(f"/api/v1/namespaces/{real.namespace}/persistentvolumeclaims/data")
        volume = real.get(f"/api/v1/persistentvolumes/{claim['spec'].get('volumeName', 'none')}")
        return [each.get("capacity", {}).get("storage") for each in (claim["status"], volume.get("spec", {}))]

    real.eventually(lambda: capacities() == ["1Gi", "1Gi"], "it is bound")
    patch = json.dumps({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
    real.kubectl("patch", "pvc", "data", "-n", real.namespace, "-p", patch)
    real.eventually(lambda: capacities() == ["2Gi", "2Gi"], "it has grown")
