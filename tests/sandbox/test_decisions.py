"""What a nodelet decides, on plain values: what runs next, probes, statuses, names, and what a container runs."""

import base64
import importlib.util
from pathlib import Path

import pytest
from dnslib import QTYPE, DNSRecord

from kubectl_reconcile.sandbox.images.catalog import find, parsed
from kubectl_reconcile.sandbox.images.etcd_programs import ETCD_VERSIONS
from kubectl_reconcile.sandbox.images.image import ImageError
from kubectl_reconcile.sandbox.pods import volumes
from kubectl_reconcile.sandbox.pods.decisions import resolve, services
from kubectl_reconcile.sandbox.pods.decisions.lifecycle import RunFact, StepKind, decide, wait_s
from kubectl_reconcile.sandbox.pods.decisions.probes import ProbeKind, ProbeState
from kubectl_reconcile.sandbox.pods.decisions.reported import later_of, runs_of_status
from kubectl_reconcile.sandbox.pods.decisions.resolve import ConfigError, Facts
from kubectl_reconcile.sandbox.runtime.names import answer

NOW = 1000.0
RUNS = RunFact(0, running=True, started_s=NOW - 5)


def ended(code=0, *, attempt=0, ago=0.0, lasted=1.0) -> RunFact:
    return RunFact(attempt, running=False, exit_code=code, started_s=NOW - ago - lasted, finished_s=NOW - ago)


def pod(*mains, inits=(), policy="Always", **spec) -> dict:
    return {
        "metadata": {"name": "db-0", "namespace": "shop", "uid": "u-1", "labels": {"app": "db"}},
        "spec": {
            "containers": [{"name": name, "image": "system"} for name in mains or ("main",)],
            "initContainers": list(inits),
            "restartPolicy": policy,
            **spec,
        },
    }


INIT = {"name": "init", "image": "system"}
SIDECAR = {"name": "sidecar", "image": "system", "restartPolicy": "Always"}

LIVES = {
    "a new pod starts its container": (pod(), {}, "Pending", ["start main 0"]),
    "one that runs is left alone": (pod(), {"main": RUNS}, "Running", []),
    "the first crash is followed by a restart at once": (pod(), {"main": ended(1)}, "Running", ["start main 1"]),
    "a later one waits": (pod(), {"main": ended(1, attempt=3, ago=1)}, "Running", []),
    "until it has waited enough": (pod(), {"main": ended(1, attempt=3, ago=4)}, "Running", ["start main 4"]),
    "Always restarts what has succeeded": (pod(), {"main": ended(0)}, "Running", ["start main 1"]),
    "OnFailure doesn't": (pod(policy="OnFailure"), {"main": ended(0)}, "Succeeded", []),
    "OnFailure restarts what has failed": (pod(policy="OnFailure"), {"main": ended(3)}, "Running", ["start main 1"]),
    "Never ends as Failed": (pod(policy="Never"), {"main": ended(3)}, "Failed", []),
    "one of two that failed is enough, once both are over": (
        pod("a", "b", policy="Never"), {"a": ended(3), "b": RUNS}, "Running", [],
    ),
    "both over": (pod("a", "b", policy="Never"), {"a": ended(3), "b": ended(0)}, "Failed", []),
    "init containers come first": (pod(inits=[INIT]), {}, "Pending", ["start init 0"]),
    "and are waited for": (pod(inits=[INIT]), {"init": RUNS}, "Pending", []),
    "then the others": (pod(inits=[INIT]), {"init": ended(0)}, "Pending", ["start main 0"]),
    "one that failed is tried again": (pod(inits=[INIT]), {"init": ended(1)}, "Pending", ["start init 1"]),
    "never where the pod never restarts": (pod(inits=[INIT], policy="Never"), {"init": ended(1)}, "Failed", []),
    "a sidecar runs beside": (pod(inits=[SIDECAR]), {"sidecar": RUNS}, "Pending", ["start main 0"]),
    "a sidecar that hasn't started is waited for": (
        pod(inits=[SIDECAR]), {"sidecar": RunFact(0, running=True, is_started=False)}, "Pending", [],
    ),
    "a sidecar is restarted even where the pod never restarts": (
        pod(inits=[SIDECAR], policy="Never"), {"sidecar": ended(0), "main": RUNS}, "Running", ["start sidecar 1"],
    ),
    "a sidecar ends with the others": (
        pod(inits=[SIDECAR], policy="Never"), {"sidecar": RUNS, "main": ended(0)}, "Running", ["kill sidecar 0"],
    ),
    "and isn't started again then": (
        pod(inits=[SIDECAR], policy="Never"), {"sidecar": ended(0), "main": ended(0)}, "Succeeded", [],
    ),
    "what fails its probe is killed": (
        pod(), {"main": RunFact(2, running=True, is_failing="no answer")}, "Running", ["kill main 2"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "runs", "phase", "steps"), LIVES.values(), ids=LIVES)
def test_what_is_done_next(what, runs, phase, steps):
    decision = decide(what, runs, NOW)
    assert decision.phase == phase
    assert [f"{step.kind} {step.container} {step.attempt}" for step in decision.steps] == steps
    assert not [step for step in decision.steps if step.kind is StepKind.START and runs.get(step.container) == RUNS]


def test_waits_double_and_end_after_a_good_run():
    assert [wait_s(ended(1, attempt=n)) for n in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert wait_s(ended(1, attempt=8, lasted=11)) == 0


def test_what_waits_says_when_to_look_again():
    decision = decide(pod(), {"main": ended(1, attempt=3, ago=1)}, NOW)
    assert decision.again_s == NOW + 3
    assert decision.waiting == {"main": "back-off 4s restarting failed container=main"}


def test_a_probe_counts_in_a_row():
    probe = {"successThreshold": 2, "failureThreshold": 2}
    state = ProbeState.begin(ProbeKind.READINESS)
    told = []
    for succeeded in (True, False, True, True, False, True, False, False):
        state = state.tried(probe, succeeded=succeeded)
        told.append(state.passing)
    assert told == [False, False, False, True, True, True, True, False]
    assert ProbeState.begin(ProbeKind.LIVENESS).passing
    assert not ProbeState.begin(ProbeKind.LIVENESS).failed


def test_a_run_that_the_status_tells_of_ended_when_the_machine_did():
    reported = {
        "containerStatuses": [
            {"name": "main", "restartCount": 2, "state": {"running": {"startedAt": "2026-11-22T10:00:00Z"}}},
            {"name": "new", "restartCount": 0, "state": {"waiting": {"reason": "ErrImagePull"}}},
        ]
    }
    runs = runs_of_status({**pod(), "status": reported})
    assert runs.keys() == {"main"}
    assert (runs["main"]["attempt"], runs["main"]["exitCode"]) == (2, 137)


# -- what a container runs ---------------------------------------------------------------------------------------------


def encoded(**values):
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


SOURCES = {
    ("ConfigMap", "settings"): {"data": {"LEVEL": "debug"}},
    ("Secret", "login"): {"data": encoded(password="s3cret")},
    ("ConfigMap", "gone"): None,
}


def run(container, what=None, **image):
    options = {"default": (), "environ": {}, "path": [], **image}
    return resolve.command(what or pod(), {"name": "main", **container}, SOURCES, Facts("10.200.1.5"), **options)


def test_variables_refer_to_each_other_and_to_objects():
    env = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "APP", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "URL", "value": "http://$(NAME):$(PASSWORD)@$(IP)/$$(IP)/$(WHAT)"},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "x", "optional": True}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"prefix": "LOG_", "configMapRef": {"name": "settings"}}],
        "args": ["--name=$(NAME)", "$(LOG_LEVEL)"],
        "resources": {"limits": {"cpu": "1500m"}},
    }
    found = run(container, default=["etcd"], path=["/programs"])
    assert found.argv == ("etcd", "--name=db-0", "debug")
    assert found.environ["URL"] == "http://db-0:s3cret@10.200.1.5/$(IP)/$(WHAT)"
    assert (found.environ["APP"], found.environ["CPU"]) == ("db", "1500")
    assert "MAYBE" not in found.environ
    assert found.environ["PATH"].startswith("/programs:/usr/local/sbin:")


WRONG = {
    "a ConfigMap that isn't there": ({"envFrom": [{"configMapRef": {"name": "gone"}}]}, "there is no ConfigMap gone"),
    "a key that isn't there": (
        {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}}]},
        "Secret login has no key user",
    ),
    "root where it must not be": ({"command": ["id"], "securityContext": {"runAsNonRoot": True}}, "would run as root"),
    "no command": ({}, "container main has no command, and neither does its image"),
}


@pytest.mark.parametrize(("container", "said"), WRONG.values(), ids=WRONG)
def test_what_can_t_be_started_says_why(container, said):
    with pytest.raises(ConfigError, match=said):
        run(container)


def test_files_of_a_projected_volume():
    volume = {
        "name": "all",
        "projected": {
            "defaultMode": 0o400,
            "sources": [
                {"serviceAccountToken": {"path": "token", "audience": "vault"}},
                {"configMap": {"name": "settings", "items": [{"key": "LEVEL", "path": "log/level", "mode": 0o444}]}},
                {"secret": {"name": "login"}},
                {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            ],
        },
    }
    what = pod(volumes=[volume])
    assert volumes.token_requests(what)["all", "token"]["audiences"] == ["vault"]
    found = volumes.files(what, volume, SOURCES, {("all", "token"): "t"}, Facts("10.200.1.5"))
    assert found == {
        "token": (b"t", 0o400),
        "log/level": (b"debug", 0o444),
        "password": (b"s3cret", 0o400),
        "labels": (b'app="db"', 0o400),
    }


def test_files_change_as_a_whole(tmp_path):
    folder = tmp_path / "volume"
    assert volumes.write(folder, {"a": (b"1", 0o644), "sub/b": (b"2", 0o600)})
    first = (folder / "..data").resolve()
    assert not volumes.write(folder, {"a": (b"1", 0o644), "sub/b": (b"2", 0o600)})
    assert volumes.write(folder, {"a": (b"3", 0o644)})
    assert (folder / "a").read_bytes() == b"3"
    assert sorted(path.name for path in folder.iterdir() if not path.name.startswith("..")) == ["a"]
    assert not first.exists()


# -- Services and names ------------------------------------------------------------------------------------------------


def a_service(name, ip, *ports, **spec):
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"clusterIP": ip, "ports": list(ports), **spec}}


def endpoint_slice(service, /, *endpoints, **port):
    return {
        "metadata": {"name": f"{service}-x", "namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": [port],
        "endpoints": list(endpoints),
    }


def endpoint(ip, *, ready=True, **more):
    return {"addresses": [ip], "conditions": {"ready": ready}, **more}


WEB = a_service("web", "10.0.9.9", {"name": "http", "port": 80, "targetPort": "web"})
WEB_SLICE = endpoint_slice("web", endpoint("10.200.1.1"), endpoint("10.200.1.2", ready=False), name="http", port=8080)
DB = a_service("db", "None", {"name": "peer", "port": 2380})
DB_SLICE = endpoint_slice(
    "db", endpoint("10.200.2.1", hostname="db-0"), endpoint("10.200.2.2", hostname="db-1"), name="peer", port=2380
)
KUBERNETES = {
    "metadata": {"name": "kubernetes", "namespace": "default"},
    "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 443}]},
}


def test_traffic_goes_to_what_is_ready():
    assert services.routes([WEB, DB, KUBERNETES], [WEB_SLICE, DB_SLICE], 6443) == [
        ("10.0.9.9", 80, [("10.200.1.1", 8080)]),
        ("10.0.0.1", 443, [("", 6443)]),
    ]


ZONE = services.zone([WEB, DB, KUBERNETES], [WEB_SLICE, DB_SLICE])

QUESTIONS = {
    "a Service": ("web.shop.svc.cluster.local", "A", ["10.0.9.9"]),
    "whatever the case": ("WEB.shop.svc.cluster.LOCAL", "A", ["10.0.9.9"]),
    "a headless one": ("db.shop.svc.cluster.local", "A", ["10.200.2.1", "10.200.2.2"]),
    "one of its pods": ("db-1.db.shop.svc.cluster.local", "A", ["10.200.2.2"]),
    "who listens at a named port": (
        "_peer._tcp.db.shop.svc.cluster.local", "SRV",
        ["0 100 2380 db-0.db.shop.svc.cluster.local.", "0 100 2380 db-1.db.shop.svc.cluster.local."],
    ),
    "the name of an address": ("1.2.200.10.in-addr.arpa", "PTR", ["db-0.db.shop.svc.cluster.local."]),
    "the API server": ("kubernetes.default.svc.cluster.local", "A", ["10.0.0.1"]),
    "another kind of record": ("web.shop.svc.cluster.local", "AAAA", []),
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "expected"), QUESTIONS.values(), ids=QUESTIONS)
def test_names(name, kind, expected):
    reply = DNSRecord.parse(answer(DNSRecord.question(name, kind).pack(), ZONE))
    assert reply.header.rcode == 0
    assert sorted(str(record.rdata) for record in reply.rr if QTYPE[record.rtype] == kind) == expected


def test_a_name_that_isn_t_there_and_what_is_no_question():
    reply = DNSRecord.parse(answer(DNSRecord.question("nobody.shop.svc.cluster.local").pack(), ZONE))
    assert reply.header.rcode == 3
    assert answer(b"nonsense", ZONE) == b""


# -- images ------------------------------------------------------------------------------------------------------------

REFERENCES = {
    "quay.io/coreos/etcd:v3.6.16": ("etcd", "3.6.16"),
    "registry.k8s.io/etcd:3.6.16-0": ("etcd", "3.6.16"),
    "localhost:5000/python:3.11": ("python", "3.11"),
    "system": ("system", ""),
    "app:latest": ("app", "latest"),
}


@pytest.mark.parametrize(("reference", "expected"), REFERENCES.items())
def test_what_an_image_name_means(reference, expected):
    assert parsed(reference) == expected


def test_an_image_that_isn_t_there_says_how_to_get_it(tmp_path):
    nothing = {"XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(ImageError, match=f"sandbox build --image etcd:{ETCD_VERSIONS[0]}"):
        find(f"quay.io/coreos/etcd:v{ETCD_VERSIONS[0]}", nothing)
    with pytest.raises(ImageError, match=r"no programs stand in for etcd:3\.4\.1; there are some for etcd:"):
        find("etcd:3.4.1", nothing)
    with pytest.raises(ImageError, match="not by digest"):
        find("etcd@sha256:0123", nothing)


@pytest.mark.parametrize("package", ["kubectl_reconcile", "kubectl_reconcile_operators"])
def test_pods_of_the_interpreter_find_all_packages_that_are_installed_beside_it(package):
    found = Path(importlib.util.find_spec(package).origin).resolve()
    assert any(found.is_relative_to(folder) for folder in find("python").folders)


def test_an_answer_that_comes_late_takes_back_nothing_that_the_watch_has_told():
    started, deleted = pod(), pod()
    started["metadata"]["resourceVersion"] = "998"
    deleted["metadata"] |= {"resourceVersion": "1002", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert later_of(deleted, started) is deleted
    assert later_of(started, deleted) is deleted
