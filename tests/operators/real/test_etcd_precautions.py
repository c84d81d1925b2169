"""Snapshots that an EtcdCluster has taken by itself on real members: before an upgrade, which waits for it, and before its end."""

from kubectl_reconcile.sandbox.images import catalog
from tests.operators.real.test_etcd import claim
from tests.operators.real.test_etcdbackup import BACKUPS, _programs, crds, db, new_daemon, status  # noqa: F401 - fixtures

OLD, NEW = catalog.ETCD_VERSIONS
TO = {"claimName": "backups", "image": "python", "timeoutInSecond": 900, "beforeDeletion": True}


def images(real):
    return {real.container(name)["image"].rpartition(":v")[2] for name in ("db-0", "db-1", "db-2")}


def test_an_upgrade_waits_for_its_snapshot_and_a_cluster_that_is_deleted_for_its_last_one(db):  # noqa: F811 - a fixture
    real, name = db.real, f"db-before-{NEW.replace('.', '-')}"
    db.apply(backup=TO)
    db.settled(3)
    before = db.members()
    db.etcdctl("db-0", "put", "first", "1")

    db.apply(version=NEW, backup=TO)

    def is_told():
        found = db.condition("Degraded")
        return "no PersistentVolumeClaim backups" in found["message"] and found["reason"] == "BackupFailed"

    real.eventually(is_told, "there is nowhere to write to")
    assert images(real) == {OLD}
    real.apply(claim("backups"))
    db.settled(3, timeout_s=240)
    assert images(real) == {NEW}
    assert db.members() == before
    taken = status(real, name)
    assert (taken["succeeded"], taken["etcdVersion"]) == (True, OLD)

    db.etcdctl("db-0", "put", "second", "2")
    real.kubectl("delete", "etcdcluster", "db", "-n", real.namespace, "--timeout=300s")
    mounts = [{"name": "backups", "mountPath": "/backups"}]
    pod = {"restartPolicy": "Never", "volumes": [BACKUPS]}
    real.run("ls", "/backups/db-last", name="look", volumeMounts=mounts, pod=pod)
    real.phase("Succeeded", "look")
    (last,) = real.logs("look")
    assert revision(last) > taken["etcdRevision"]


def revision(file):
    return int(file.rpartition("-r")[2].removesuffix(".db"))
