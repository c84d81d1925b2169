"""Backups of an EtcdCluster on real members, and what begins with them: by hand, in place of its data, after it is gone, and from a bucket; what is damaged begins nothing."""

import json
import re

import pytest

from tests.operators.real.commands import approved, previewed
from tests.operators.real.etcd.backups import (
    BACKUPS,
    agent,
    backup,
    begun_by_hand,
    condition,
    forget,
    in_volume,
    reason,
    restore,
    restored,
    restoring,
    status,
    waits_for,
)
from tests.operators.real.etcd.cluster import NEW, OLD, claim
from tests.operators.real.s3 import S3, serve_s3
from tests.s3_server import KEYS

pytestmark = pytest.mark.scenario(minutes=6)
TO = {"claimName": "backups", "image": "python", "timeoutInSecond": 900, "beforeDeletion": True}
NEVER = {"bucket": "backups", "endpoint": "http://s3:9000", "credentialsSecret": "never-made"}
SPOIL = "import sys; d = bytearray(open(sys.argv[1], 'rb').read()); d[9000] ^= 1; open(sys.argv[2], 'wb').write(d)"


def test_backups_wait_for_what_they_need_and_an_upgrade_waits_for_its_own(db):
    real, name = db.real, f"db-before-{NEW.replace('.', '-')}"
    backup(real, "early")  # no cluster and no volume yet: it begins once there are
    assert "there is no EtcdCluster db" in reason(real, "early", "ClusterNotFound")
    db.apply(backup=TO)
    db.settled(3)
    before = db.members()
    assert "no PersistentVolumeClaim backups" in reason(real, "early", "ClaimNotFound")
    db.etcdctl("db-0", "put", "early", "1")

    db.apply(version=NEW, backup=TO)

    def is_told():
        found = db.condition("Degraded")
        return "no PersistentVolumeClaim backups" in found["message"] and found["reason"] == "BackupFailed"

    real.eventually(is_told, "there is nowhere to write to")
    assert images(real) == {OLD}
    real.apply(claim("backups"))
    db.settled(3)
    assert images(real) == {NEW}
    assert db.members() == before
    taken = status(real, name)
    assert (taken["succeeded"], taken["etcdVersion"]) == (True, OLD)
    reason(real, "early", "BackedUp")


def images(real):
    return {real.container(name)["image"].rpartition(":v")[2] for name in ("db-0", "db-1", "db-2")}


def test_what_was_backed_up_while_a_member_was_down_begins_another_and_what_fails_says_why(db):
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW)
    db.settled(3)
    backup(
        real,
        "nightly",
        schedule="30 3 * * *",
        timeZone="Europe/Berlin",
        storage={"volumeClaimSpec": claim("x")["spec"]},
    )
    db.etcdctl("db-0", "put", "first", "1")
    real.eventually(lambda: status(real, "nightly").get("nextScheduleTime"), "the next time is told")

    leader, term = db.leader(), db.term()
    down = next(name for name in db.members() if name != leader)
    real.sandbox.pods.pause(real.namespace, down)
    try:
        db.etcdctl(leader, "put", "second", "2")
        backup(real, "hurt")
        reason(real, "hurt", "BackedUp")
    finally:
        real.sandbox.pods.heal(real.namespace, down)
    (run,) = status(real, "hurt")["history"]
    assert down in run["note"]
    assert down not in run["member"], run
    db.settled(3)
    if db.term() == term:  # else they chose another leader of their own accord
        assert leader not in run["member"], run
    assert run["revision"] == status(real, "hurt")["etcdRevision"]

    db.etcdctl(leader, "del", "first")
    db.etcdctl(leader, "del", "second")
    begun_by_hand(real, run["file"], "by-hand")
    real.ready("by-hand")
    assert [db.value("by-hand", key) for key in ("first", "second")] == ["1", "2"]
    assert not db.value(leader, "first")
    in_volume(real, "spoil-one", "python", "-c", SPOIL, f"/backups/{run['file']}", "/backups/spoilt.db", image="python")
    begun_by_hand(real, "spoilt.db", "never")
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
    real.delete("by-hand", "--wait=false")


def pods_of(real, job):
    selector = f"batch.kubernetes.io/job-name={job}"
    return real.kubectl(
        "get", "pods", "-n", real.namespace, "-l", selector, "-o", "jsonpath={.items[*].metadata.name}"
    ).split()


def test_a_cluster_with_data_goes_back_to_its_backup_once_somebody_approves(db):
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW)
    db.settled(3)
    before = sorted(db.members())
    db.etcdctl("db-0", "put", "third", "3")
    backup(real, "whole")
    reason(real, "whole", "BackedUp")
    file = status(real, "whole")["file"]
    for number in range(5):
        db.etcdctl("db-0", "put", "fourth", str(number))

    restore(real, "back", "whole")
    db.apply(version=NEW, restoreFrom={"name": "back"})
    assert f"{file} is whole" in waits_for(real, "back", "ApprovalNeeded")

    def lost():
        found = db.condition("Ready")
        told = re.search(r"(\d+) revisions by now", found["message"])
        return int(told[1]) if told and found["reason"] == "RestoreOffered" else 0

    real.eventually(lambda: lost() >= 5, "the cluster tells what is lost")
    assert db.value("db-1", "fourth") == "4"
    assert sorted(db.members("db-0")) == before

    assert "approved replace-" in approved(db.real, "etcdcluster/db")
    waits_for(real, "back", "Restored")
    db.settled(3)
    now = db.serving()
    assert not {*now} & {*before}
    assert db.value(now[2], "third") == "3"
    assert not db.value(now[0], "fourth")
    assert sorted(db.aside()) == before
    forget(real, "etcdrestore")
    db.settled(3)
    assert db.value(now[1], "third") == "3"


@pytest.mark.smoke
def test_a_cluster_that_is_gone_begins_again_with_its_backup_and_never_with_a_damaged_one(db, tmp_path):
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW, backup=TO)
    db.settled(3)
    member = db.serving()[0]
    db.etcdctl(member, "put", "fifth", "5")

    backup(real, "once")
    reason(real, "once", "BackedUp")
    taken = status(real, "once")
    restore(real, "early")  # nothing comes of it while there is a cluster that doesn't ask for it
    assert "doesn't start from this restore" in waits_for(real, "early", "ClusterExists")
    db.etcdctl(member, "put", "sixth", "6")  # after the backup: lost
    db.lose()  # and this waits for its last backup

    file, spoilt = taken["file"], "once/20200101T000000Z-r7.db"
    in_volume(real, "spoil", "python", "-c", SPOIL, f"/backups/{file}", f"/backups/{spoilt}", image="python")
    (last,) = in_volume(real, "look-last", "ls", "/backups/db-last")
    assert int(last.rpartition("-r")[2].partition("-")[0]) > taken["etcdRevision"]  # and after it the id of its cluster
    real.kubectl("delete", "etcdrestore", "early", "-n", real.namespace, "--timeout=300s")

    asks = {"version": NEW, "restoreFrom": {"name": "again"}}
    whole = tmp_path / "db.json"
    whole.write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [db.manifest(**asks), restoring("again")]})
    )
    shown = previewed(real, "-f", whole, "--until-stable")
    places = [shown.index(step) for step in ("db-0-data", "again-restore", "add db-1 as a learner", "promote db-2")]
    assert places == sorted(places), shown

    db.apply(**asks)
    real.eventually(lambda: db.condition("Ready")["reason"] == "RestoreNotFound", "it waits for its restore")
    restore(real, "again", snapshot="20200101T000000Z-r7.db")
    assert "r7.db is damaged" in waits_for(real, "again", "SnapshotDamaged")
    assert restored(real, "again")["phase"] == "Failed"
    real.eventually(lambda: db.condition("Degraded")["reason"] == "RestoreFailed", "the cluster says so too")
    assert not real.pod("db-0")

    restore(real, "again", snapshot=file.rpartition("/")[2])
    db.settled(3)
    assert db.value("db-2", "fifth") == "5"
    assert not db.value("db-0", "sixth")
    members = db.members()
    assert sorted(members) == ["db-0", "db-1", "db-2"]
    waits_for(real, "again", "Restored")
    done = restored(real, "again")
    assert (done["file"], done["revision"]) == (file, taken["etcdRevision"])
    assert done["seed"]["clusterID"] == db.cr["status"]["clusterID"]
    assert done["seed"]["memberID"] == format(members["db-0"], "x")
    assert done["sha256"] == taken["sha256"]

    restore(real, "late")  # into the same one, which has data, and doesn't ask for it
    assert "stays as it is" in waits_for(real, "late", "ClusterExists")
    forget(real, "etcdrestore")
    db.settled(3)
    assert db.value("db-1", "fifth") == "5"


def to(**other):
    return {"storage": {"s3": {**S3, **other}}}


def test_a_cluster_that_is_gone_begins_again_with_what_is_in_a_bucket(db):
    real = db.real
    serve_s3(real)
    db.apply(version=NEW)
    db.settled(3)
    db.etcdctl("db-0", "put", "seventh", "7")
    real.ready("s3")

    backup(real, "far", **to())  # before its Secret: it waits, and says for what
    real.eventually(
        lambda: ".spec.storage.s3.credentialsSecret must" in condition(real, "far", "Running")["message"],
        "its pod waits for the Secret",
    )
    real.apply({"kind": "Secret", "metadata": {"name": "s3-key"}, "stringData": KEYS})
    backup(real, "astray", **to(bucket="elsewhere"))
    backup(real, "nowhere", **to(endpoint="http://other:9000"))
    reason(real, "far", "BackedUp")
    assert ".spec.storage.s3.bucket: http://s3:9000 has no such bucket" in reason(real, "astray", "BackupFailed")
    assert ".spec.storage.s3.endpoint: http://other:9000 " in reason(real, "nowhere", "BackupFailed")
    db.settled(3)
    assert status(real, "far")["file"].startswith("a/far/")
    told = real.kubectl("get", "pods,jobs,etcdbackups,events", "-n", real.namespace, "-o", "yaml")
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in told

    db.lose()
    forget(real, "etcdbackup")  # the bucket is all there is
    restore(real, "near", "far", s3=S3)
    db.apply(version=NEW, size=1, restoreFrom={"name": "near"})
    waits_for(real, "near", "Restored")
    db.settled(1)
    assert db.value("db-0", "seventh") == "7"
    forget(real, "etcdrestore")


def test_a_full_volume_refuses_and_old_backups_go(db):
    """The program of the Jobs by itself, which is what has to find out."""
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW, size=1)
    db.settled(1)
    endpoint = f"--endpoint=http://{real.pod('db-0')['status']['podIP']}:2379"
    files = []
    for number in range(2, 5):
        db.etcdctl("db-0", "put", "key", str(number))
        files.append(agent(real, f"backup-{number}", endpoint, "--folder=/backups/main", "--keep=2"))
    assert [each["removed"] for each in files] == [0, 0, 1]
    assert len({each["revision"] for each in files}) == 3
    found = in_volume(real, "look", "ls", "/backups/main")
    assert sorted(found) == sorted(each["file"].removeprefix("main/") for each in files[1:])

    small = {"name": BACKUPS["name"], "emptyDir": {"medium": "Memory", "sizeLimit": "16Ki"}}
    said = agent(real, "small", endpoint, "--folder=/backups/main", volume=small, phase="Failed")
    assert (said["error"], "maxBackups" in said["message"]) == ("NoRoom", True)
