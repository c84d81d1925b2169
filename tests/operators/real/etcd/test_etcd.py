"""A real etcd of three members from plain pods, a headless Service and claims: upgraded, killed, moved and cut off, and it goes on."""

import base64
import json
import re
import shlex

import pytest

from tests.operators.real.etcd.cluster import NEW, OLD, PATIENTLY, claim

pytestmark = pytest.mark.scenario(minutes=1)
NAMES = ("c-0", "c-1", "c-2")


def headless() -> dict:
    ports = [{"name": "client", "port": 2379}, {"name": "peer", "port": 2380}]
    return {
        "kind": "Service",
        "metadata": {"name": "c"},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "etcd"}, "ports": ports},
    }


def client() -> dict:
    ports = [{"name": "client", "port": 2379}]
    return {"kind": "Service", "metadata": {"name": "client"}, "spec": {"selector": {"app": "etcd"}, "ports": ports}}


def member(name, version) -> dict:
    cluster = ",".join(f"{one}=http://{one}.c:2380" for one in NAMES)
    return {
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "etcd"}},
        "spec": {
            "hostname": name,
            "subdomain": "c",
            "terminationGracePeriodSeconds": 5,
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
            "containers": [
                {
                    "name": "etcd",
                    "image": f"quay.io/coreos/etcd:v{version}",
                    "command": ["/usr/local/bin/etcd"],
                    "args": [
                        "--name=$(NAME)",
                        "--data-dir=/var/lib/etcd/data",
                        "--listen-client-urls=http://0.0.0.0:2379",
                        "--listen-peer-urls=http://0.0.0.0:2380",
                        "--advertise-client-urls=http://$(NAME).c:2379",
                        "--initial-advertise-peer-urls=http://$(NAME).c:2380",
                        f"--initial-cluster={cluster}",
                        "--unsafe-no-fsync",
                    ],
                    "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                    "volumeMounts": [{"name": "data", "mountPath": "/var/lib/etcd"}],
                    "readinessProbe": {"httpGet": {"path": "/health", "port": 2379}, "periodSeconds": 1},
                }
            ],
        },
    }


def etcdctl(real, name, command) -> str:
    """What etcdctl says in a pod; asked again where it has no answer, as while members choose a leader, or a Service leads nowhere yet."""
    asked = ("exec", "-n", real.namespace, name, "--", "etcdctl", *PATIENTLY, *shlex.split(command))
    return real.eventually(lambda: [real.kubectl(*asked)], f"etcdctl {command} at {name}")[0]


def statuses(real, name="c-0") -> dict:
    """What each member says of itself, by name."""
    found = json.loads(etcdctl(real, name, "--endpoints=c-0.c:2379,c-1.c:2379,c-2.c:2379 endpoint status -w json"))
    return {re.search(r"c-\d", one["Endpoint"])[0]: one["Status"] for one in found}


def led(real) -> tuple[dict, str]:
    """What each member says of itself, and who leads, once somebody does."""

    def found():
        said = statuses(real)
        leads = [name for name, one in said.items() if one.get("leader") == one["header"]["member_id"]]
        return (said, leads[0]) if len(leads) == 1 else None

    return real.eventually(found, "somebody leads")


@pytest.fixture(scope="module", autouse=True)
def _members(real):
    """Three members of the older minor."""
    real.apply(headless(), client(), *(claim(name) for name in NAMES), *(member(name, OLD) for name in NAMES))
    for name in NAMES:
        real.ready(name)


def moved(real, name, version):
    """Delete a pod, and make it again with the program of a version."""
    real.delete(name)
    real.apply(member(name, version))


def test_an_upgrade_is_another_image_and_the_way_back_is_refused(real):
    value = base64.b64encode(b"kept" * 100).decode()
    etcdctl(real, "c-0", f"put first {value}")
    for name in NAMES:
        moved(real, name, NEW)
        real.ready(name)
    real.eventually(
        lambda: {one["storageVersion"] for one in statuses(real).values()} == {"3.6.0"},
        "the storage is of the new minor",
    )
    assert etcdctl(real, "c-1", "get first --print-value-only") == f"{value}\n"
    moved(real, "c-2", OLD)
    real.eventually(lambda: real.container("c-2")["restartCount"] > 0, "the old one doesn't run on the new one's data")
    real.eventually(lambda: "invalid downgrade" in "\n".join(real.logs("c-2", "--previous")), "it says why")
    moved(real, "c-2", NEW)
    real.ready("c-2")


def test_three_members_survive_what_befalls_them(real):
    assert len(json.loads(etcdctl(real, "c-0", "member list -w json"))["members"]) == 3
    etcdctl(real, "c-1", "--endpoints=client:2379 put second 2")  # by the client Service

    before, leader = led(real)
    restarts = real.container(leader)["restartCount"]
    real.sandbox.pods.signal(real.namespace, leader, "KILL")
    real.eventually(lambda: real.container(leader)["restartCount"] > restarts, "the leader is restarted")
    assert real.container(leader)["lastState"]["terminated"]["exitCode"] == 137
    real.ready(leader)
    assert statuses(real)[leader]["header"]["member_id"] == before[leader]["header"]["member_id"]

    address = real.pod("c-2")["status"]["podIP"]
    moved(real, "c-2", NEW)
    real.ready("c-2")
    assert real.pod("c-2")["status"]["podIP"] != address
    assert statuses(real)["c-2"]["header"]["member_id"] == before["c-2"]["header"]["member_id"]
    assert etcdctl(real, "c-2", "get second --print-value-only") == "2\n"


def test_a_member_that_is_cut_off_is_replaced_as_leader_and_comes_back(real):
    before, leader = led(real)
    other = next(name for name in NAMES if name != leader)
    real.sandbox.pods.partition(real.namespace, leader)
    real.ready(leader, ready=False)
    cut_off = before[leader]["header"]["member_id"]
    real.eventually(lambda: leader_of(real, other) not in {0, cut_off}, "another leads")
    assert etcdctl(real, other, "put while cut") == "OK\n"
    real.sandbox.pods.heal(real.namespace, leader)
    real.ready(leader)
    assert etcdctl(real, leader, "get while --print-value-only") == "cut\n"

    real.sandbox.pods.pause(real.namespace, other)
    real.ready(other, ready=False)
    real.sandbox.pods.heal(real.namespace, other)
    real.ready(other)


def leader_of(real, name) -> int:
    """Who leads, as a member says; 0 while nobody does."""
    (one,) = json.loads(etcdctl(real, name, "endpoint status -w json"))
    return one["Status"].get("leader", 0)
