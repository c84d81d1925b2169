"""Backups of a MyDatabase on a real PostgreSQL, and others that begin with one, or with a copy of it while it runs."""

import pytest

from tests.operators.real.postgres.certificates import certificate, put_certificate
from tests.operators.real.s3 import S3, serve_s3
from tests.s3_server import KEYS

pytestmark = pytest.mark.scenario(minutes=2)
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
JOBS = {"image": "python", "retries": 0}
COUNT = "select count(*), sum(n) from rows"


@pytest.mark.smoke
def test_what_was_backed_up_to_a_volume_is_there_again_in_another_database(db):
    real = db.real
    db.apply()
    db.settled().filled()
    db.apply(backup={"immediate": True, "target": {"volumeClaimSpec": CLAIM}, **JOBS})
    real.eventually(lambda: db.condition("BackupHealthy")["status"] in {"True", "False"}, "a backup has ended")
    assert db.condition("BackupHealthy")["reason"] == "BackedUp", db.condition("BackupHealthy")
    db.sql("delete from rows")
    last = db.status["lastBackup"]
    assert last["file"].startswith("db/")
    assert last["sizeBytes"] > 0

    again = db.other("again", fromBackup={"database": "db", **JOBS})
    astray = db.other("astray", fromBackup={"database": "db", "file": "20010101T000000Z-t1.tar.gz", **JOBS})
    again.settled()
    assert again.status["restoredFrom"] == last["file"]
    assert again.sql(COUNT) == ["1000|500500"]
    assert db.sql("select count(*) from rows") == ["0"]
    real.eventually(lambda: astray.condition("Degraded")["status"] == "True", "it is told")
    assert (
        ".spec.bootstrap.fromBackup: BackupNotFound: there is no db/20010101T000000Z-t1.tar.gz"
        in astray.condition("Degraded")["message"]
    )
    assert not real.pod("astray-0")
    for each in (astray, again):
        each.end()


def test_what_was_backed_up_to_a_bucket_is_there_again_in_another_database(db):
    real = db.real
    serve_s3(real)
    real.apply({"kind": "Secret", "metadata": {"name": "s3-key"}, "stringData": KEYS})
    real.ready("s3")
    db.apply(backup={"schedule": "0 0 29 2 *", "target": {"s3": S3}, **JOBS})
    db.settled().filled()
    wish = "example.com/backup-now=to the bucket"
    real.kubectl("annotate", "mydatabase", "db", "-n", real.namespace, wish, "--overwrite")
    real.eventually(lambda: db.status.get("backupAnswered") == "to the bucket", "a backup has begun")
    real.eventually(lambda: db.status["lastBackup"]["file"].startswith("a/db/"), "it is in the bucket")
    db.sql("delete from rows")

    far = db.other("far", fromBackup={"database": "db", "s3": S3, **JOBS}).settled()
    assert far.sql(COUNT) == ["1000|500500"]
    far.end()


def test_a_server_that_offers_no_tls_is_not_copied_by_its_address(db):
    db.apply(replicas=2)
    db.settled()
    stranger = db.other("stranger", fromCluster={"host": "db", "secretName": "db-replication", "retries": 0})
    db.real.eventually(lambda: stranger.condition("Degraded")["reason"] == "CopyFailed", "it is told")
    assert "server does not support SSL" in stranger.condition("Degraded")["message"]
    assert not db.real.pod("stranger-0")
    stranger.end()


def test_a_copy_of_a_server_that_runs_has_its_rows_and_goes_its_own_way(db, tmp_path):
    put_certificate(db.real, certificate(tmp_path / "first"))
    db.apply(replicas=2, tls={"secretName": "mine", "mode": "Require"})
    db.settled().filled()
    ours = db.other("ours", fromCluster={"database": "db", "retries": 0}).settled()
    assert ours.status["restoredFrom"].startswith("a copy of db, ")
    assert ours.status["systemID"] == db.status["systemID"]
    db.sql("insert into rows values (1001)")
    assert ours.sql(COUNT) == ["1000|500500"]

    # As if it were somewhere else: by its name and somebody's password, which is proven over TLS.
    theirs = db.other("theirs", fromCluster={"host": "db", "secretName": "db-replication", "retries": 0}).settled()
    assert theirs.status["restoredFrom"].startswith("a copy of the server at db, ")
    assert theirs.sql(COUNT) == ["1001|501501"]
    following = "select count(*) from pg_stat_replication where application_name not in ('db-0', 'db-1')"
    assert db.asked(db.primary(), following) == "0"
    for each in (ours, theirs):
        each.end()
