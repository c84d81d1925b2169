"""EtcdBackup on real members: what was backed up can be restored, whoever is down; what fails says so, and leaves nothing behind."""

import json

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile_operators.etcd_backup.children import AGENT
from tests.e2e.conftest import crds, new_daemon  # noqa: F401 - fixtures
from tests.operators.real.test_etcd import claim, etcdctl
from tests.operators.real.test_etcdcluster import Db

NEW = catalog.ETCD_VERSIONS[-1]
BACKUPS = {"name": "backups", "persistentVolumeClaim": {"claimName": "backups"}}
RESTORE = ["snapshot", "restore", "--data-dir=/restored/data", "--name=main"]
RESTORE += ["--initial-cluster=main=http://localhost:2380", "--initial-advertise-peer-urls=http://localhost:2380"]
NEVER = {"bucket": "backups", "endpoint": "http://s3:9000", "credentialsSecret": "never-made"}
SPOIL = "import sys; d = bytearray(open(sys.argv[1], 'rb').read()); d[9000] ^= 1; open(sys.argv[2], 'wb').write(d)"


@pytest.fixture(scope="session", autouse=True)
def _programs():
    catalog.build(print, only="etcd")


@pytest.fixture
def db(real, crds, new_daemon) -> Db:  # noqa: F811 - fixtures
    found = Db(real, new_daemon(real.kubectl.kubeconfig, real.namespace).start())
    yield found
    real.kubectl("delete", "etcdbackup", "--all", "-n", real.namespace, "--timeout=300s")
    found.end()


def backup(real, name, **spec):
    whole = {
        "clusterRef": {"name": "db"},
        "image": "python",
        "backupPolicy": {"retries": 0, "timeoutInSecond": 900},
        **spec,
    }
    if "etcdEndpoints" in spec:
        del whole["clusterRef"]
    whole.setdefault("storage", {"persistentVolumeClaim": {"claimName": "backups"}})
    api = "etcd.database.coreos.com/v1beta2"
    real.apply({"apiVersion": api, "kind": "EtcdBackup", "metadata": {"name": name}, "spec": whole})


def status(real, name):
    path = f"/apis/etcd.database.coreos.com/v1beta2/namespaces/{real.namespace}/etcdbackups/{name}"
    return real.get(path).get("status", {})


def condition(real, name, type_="Ready"):
    found = status(real, name).get("conditions", [])
    return next((each for each in found if each["type"] == type_), {"status": "", "reason": "", "message": ""})


def reason(real, name, wanted, timeout_s=240):
    def reached():
        found = condition(real, name)
        return found if found["reason"] == wanted else None

    return real.eventually(reached, f"{name} is {wanted}", timeout_s=timeout_s)["message"]


def agent(real, name, *arguments, volume=BACKUPS, phase="Succeeded"):
    mounts = [{"name": "backups", "mountPath": "/backups"}]
    pod = {"restartPolicy": "Never", "volumes": [volume]}
    real.run("python", "-m", AGENT, *arguments, name=name, image="python", volumeMounts=mounts, pod=pod)
    real.phase(phase, name)
    return json.loads(real.container(name)["state"]["terminated"]["message"])


def restored(real, file, name="again"):
    """A member that begins with what a file holds."""
    image = f"quay.io/coreos/etcd:v{NEW}"
    mounts = [{"name": "backups", "mountPath": "/backups"}, {"name": "restored", "mountPath": "/restored"}]
    first = {"name": "restore", "image": image, "volumeMounts": mounts}
    first |= {"command": ["etcdutl"], "args": [*RESTORE, f"/backups/{file}"]}
    pod = {
        "restartPolicy": "Never",
        "initContainers": [first],
        "volumes": [BACKUPS, {"name": "restored", "emptyDir": {}}],
    }
    ready = {"exec": {"command": ["etcdctl", "endpoint", "health"]}, "periodSeconds": 1, "timeoutSeconds": 5}
    real.run(
        "etcd", "--name=main", "--data-dir=/restored/data",
        name=name, image=image, volumeMounts=mounts, readinessProbe=ready, pod=pod,
    )  # fmt: skip


def test_what_was_backed_up_comes_back_and_what_fails_says_why(db):
    real = db.real
    backup(real, "early")  # no cluster and no volume yet: it begins once there are
    assert "there is no EtcdCluster db" in reason(real, "early", "ClusterNotFound")
    backup(
        real,
        "nightly",
        schedule="30 3 * * *",
        timeZone="Europe/Berlin",
        storage={"volumeClaimSpec": claim("x")["spec"]},
    )
    db.apply(version=NEW)
    db.settled(3)
    assert "no PersistentVolumeClaim backups" in reason(real, "early", "ClaimNotFound")
    db.etcdctl("db-0", "put", "first", "1")
    real.apply(claim("backups"))
    reason(real, "early", "BackedUp")
    real.eventually(lambda: status(real, "nightly").get("nextScheduleTime"), "the next time is told")

    leader, term = db.leader(), db.term()
    down = next(name for name in db.members() if name != leader)
    real.sandbox.pods.pause(real.namespace, down)
    try:
        db.etcdctl(leader, "put", "second", "2")
        backup(real, "once")
        reason(real, "once", "BackedUp")
    finally:
        real.sandbox.pods.heal(real.namespace, down)
    (run,) = status(real, "once")["history"]
    assert down in run["note"]
    assert down not in run["member"], run
    if db.term() == term:  # else they chose another leader of their own accord
        assert leader not in run["member"], run
    assert run["revision"] == status(real, "once")["etcdRevision"] > status(real, "early")["etcdRevision"]

    db.etcdctl(leader, "del", "first")
    db.etcdctl(leader, "del", "second")
    restored(real, run["file"])
    real.ready("again")
    for key, value in (("first", "1"), ("second", "2")):
        assert db.etcdctl("again", "get", key, "--print-value-only") == f"{value}\n"
    assert not db.etcdctl(leader, "get", "first", "--print-value-only").strip()

    mounts = [{"name": "backups", "mountPath": "/backups"}]
    pod = {"restartPolicy": "Never", "volumes": [BACKUPS]}
    file = f"/backups/{run['file']}"
    real.run(
        "python", "-c", SPOIL, file, "/backups/spoilt.db", name="spoil", image="python", volumeMounts=mounts, pod=pod
    )
    real.phase("Succeeded", "spoil")
    restored(real, "spoilt.db", name="never")
    real.phase("Failed", "never")

    backup(real, "cut", storage={"s3": NEVER})  # it waits for its Secret until it is killed
    real.eventually(lambda: status(real, "cut").get("active") == "cut-once", "its Job is running")
    pods = real.eventually(lambda: pods_of(real, "cut-once"), "its pod is there")
    real.delete(pods[0], "--grace-period=0", "--force", "--wait=false")
    assert "cut-once failed" in reason(real, "cut", "BackupFailed")
    assert status(real, "cut")["succeeded"] is False

    real.kubectl("delete", "etcdbackup", "nightly", "-n", real.namespace, "--timeout=300s")
    left = json.loads(real.kubectl("get", "pvc", "nightly-backups", "-n", real.namespace, "-o", "json"))["metadata"]
    assert not left.get("ownerReferences")
    assert not left.get("deletionTimestamp")


def pods_of(real, job):
    selector = f"batch.kubernetes.io/job-name={job}"
    return real.kubectl(
        "get", "pods", "-n", real.namespace, "-l", selector, "-o", "jsonpath={.items[*].metadata.name}"
    ).split()


def test_a_full_volume_refuses_and_old_backups_go(real):
    real.apply(claim("backups"))
    health = {"exec": {"command": ["etcdctl", "endpoint", "health"]}, "periodSeconds": 1, "timeoutSeconds": 5}
    addresses = ["--listen-client-urls=http://0.0.0.0:2379", "--advertise-client-urls=http://localhost:2379"]
    real.run("etcd", *addresses, "--data-dir=/tmp/data", image=f"etcd:{NEW}", readinessProbe=health)
    real.ready()
    endpoint = f"--endpoint=http://{real.pod()['status']['podIP']}:2379"
    files = []
    for number in range(2, 5):
        put(real, number)
        files.append(agent(real, f"backup-{number}", endpoint, "--folder=/backups/main", "--keep=2"))
    assert [each["removed"] for each in files] == [0, 0, 1]
    assert len({each["revision"] for each in files}) == 3
    mounts = [{"name": "backups", "mountPath": "/backups"}]
    pod = {"restartPolicy": "Never", "volumes": [BACKUPS]}
    real.run("ls", "/backups/main", name="look", volumeMounts=mounts, pod=pod)
    real.phase("Succeeded", "look")
    assert sorted(real.logs("look")) == sorted(each["file"].removeprefix("main/") for each in files[1:])

    small = {"name": "backups", "emptyDir": {"medium": "Memory", "sizeLimit": "16Ki"}}
    said = agent(real, "small", endpoint, "--folder=/backups/main", volume=small, phase="Failed")
    assert (said["error"], "maxBackups" in said["message"]) == ("NoRoom", True)


def put(real, number):
    assert etcdctl(real, "main", f"put key {number}") == "OK\n"
