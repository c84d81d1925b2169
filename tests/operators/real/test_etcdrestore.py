"""EtcdRestore on real members: a cluster that was deleted with its volumes begins again with what its backup holds; what is damaged begins nothing."""

import json
import re

from tests.operators.real.promises import previewed as diff_of
from tests.operators.real.test_etcd import claim
from tests.operators.real.test_etcdbackup import (  # noqa: F401 - fixtures
    BACKUPS,
    NEW,
    SPOIL,
    _programs,
    backup,
    crds,
    db,
    new_daemon,
    reason,
    status,
)
from tests.operators.real.test_etcdcluster import approved, aside

API = "etcd.database.coreos.com/v1beta2"


def manifest(name, **backup):
    spec = {"clusterRef": {"name": "db"}, "backup": {"name": "once", **backup}, "image": "python", "retries": 0}
    return {"apiVersion": API, "kind": "EtcdRestore", "metadata": {"name": name}, "spec": spec}


def restore(real, name, **backup):
    real.apply(manifest(name, **backup))


def previewed(real, folder, *manifests):
    """What diff says of all that follows."""
    file = folder / "db.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    return diff_of(real, "-f", file, "--until-stable")


def found(real, name):
    return real.get(f"/apis/{API}/namespaces/{real.namespace}/etcdrestores/{name}").get("status", {})


def ready(real, name):
    conditions = found(real, name).get("conditions", [])
    return next((each for each in conditions if each["type"] == "Ready"), {"status": "", "reason": "", "message": ""})


def waits_for(real, name, reason, timeout_s=240):
    def reached():
        found = ready(real, name)
        return found if found["reason"] == reason else None

    return real.eventually(reached, f"{name}: {reason}", timeout_s=timeout_s)["message"]


def test_a_cluster_that_is_gone_begins_again_with_its_backup_and_never_with_a_damaged_one(db, tmp_path):  # noqa: F811 - a fixture
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW)
    db.settled(3)
    db.etcdctl("db-0", "put", "first", "1")

    backup(real, "once")
    reason(real, "once", "BackedUp")
    restore(real, "early")  # nothing comes of it while there is a cluster that doesn't ask for it
    assert "doesn't start from this restore" in waits_for(real, "early", "ClusterExists")
    file = status(real, "once")["file"]
    db.etcdctl("db-0", "put", "second", "2")  # after the backup: lost
    db.end()
    real.gone("db-0", "db-1", "db-2")
    real.kubectl("delete", "pvc", "-n", real.namespace, "--timeout=300s", *(f"db-{at}-data" for at in range(3)))

    mounts = [{"name": "backups", "mountPath": "/backups"}]
    pod = {"restartPolicy": "Never", "volumes": [BACKUPS]}
    spoilt = "once/20200101T000000Z-r7.db"
    paths = (f"/backups/{file}", f"/backups/{spoilt}")
    real.run("python", "-c", SPOIL, *paths, name="spoil", image="python", volumeMounts=mounts, pod=pod)
    real.phase("Succeeded", "spoil")
    real.kubectl("delete", "etcdrestore", "early", "-n", real.namespace, "--timeout=300s")

    asks = {"version": NEW, "restoreFrom": {"name": "again"}}
    shown = previewed(real, tmp_path, db.manifest(**asks), manifest("again"))
    places = [shown.index(step) for step in ("db-0-data", "again-restore", "add db-1 as a learner", "promote db-2")]
    assert places == sorted(places), shown

    db.apply(**asks)
    real.eventually(lambda: db.condition("Ready")["reason"] == "RestoreNotFound", "it waits for its restore")
    restore(real, "again", snapshot="20200101T000000Z-r7.db")
    assert "r7.db is damaged" in waits_for(real, "again", "SnapshotDamaged")
    assert found(real, "again")["phase"] == "Failed"
    real.eventually(lambda: db.condition("Degraded")["reason"] == "RestoreFailed", "the cluster says so too")
    assert not real.pod("db-0")

    restore(real, "again", snapshot=file.rpartition("/")[2])
    db.settled(3)
    assert db.etcdctl("db-2", "get", "first", "--print-value-only") == "1\n"
    assert not db.etcdctl("db-0", "get", "second", "--print-value-only").strip()
    assert sorted(db.members()) == ["db-0", "db-1", "db-2"]
    waits_for(real, "again", "Restored")
    done = found(real, "again")
    assert (done["file"], done["revision"]) == (file, status(real, "once")["etcdRevision"])
    assert done["seed"]["clusterID"] == db.cr["status"]["clusterID"]
    assert done["seed"]["memberID"] == format(db.members()["db-0"], "x")
    assert done["sha256"] == status(real, "once")["sha256"]

    restore(real, "late")  # into the same one, which has data, and doesn't ask for it
    assert "stays as it is" in waits_for(real, "late", "ClusterExists")
    real.kubectl("delete", "etcdrestore", "--all", "-n", real.namespace, "--timeout=300s")
    db.settled(3)
    assert db.etcdctl("db-1", "get", "first", "--print-value-only") == "1\n"


def test_a_cluster_with_data_goes_back_to_its_backup_once_somebody_approves(db):  # noqa: F811 - a fixture
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW)
    db.settled(3)
    db.etcdctl("db-0", "put", "first", "1")
    backup(real, "once")
    reason(real, "once", "BackedUp")
    file = status(real, "once")["file"]
    for number in range(5):
        db.etcdctl("db-0", "put", "second", str(number))

    restore(real, "back")
    db.apply(version=NEW, restoreFrom={"name": "back"})
    assert f"{file} is whole" in waits_for(real, "back", "ApprovalNeeded")

    def lost():
        found = db.condition("Ready")
        told = re.search(r"(\d+) revisions by now", found["message"])
        return int(told[1]) if told and found["reason"] == "RestoreOffered" else 0

    real.eventually(lambda: lost() >= 5, "the cluster tells what is lost")
    assert db.etcdctl("db-1", "get", "second", "--print-value-only") == "4\n"
    assert sorted(db.members()) == ["db-0", "db-1", "db-2"]

    assert "approved replace-" in approved(real)
    waits_for(real, "back", "Restored", timeout_s=240)
    db.settled(3, timeout_s=240)
    assert db.etcdctl("db-5", "get", "first", "--print-value-only") == "1\n"
    assert not db.etcdctl("db-3", "get", "second", "--print-value-only").strip()
    assert sorted(aside(real)) == ["db-0", "db-1", "db-2"]
    real.kubectl("delete", "etcdrestore", "--all", "-n", real.namespace, "--timeout=300s")
    db.settled(3)
    assert db.etcdctl("db-4", "get", "first", "--print-value-only") == "1\n"
