"""Backups of a MyDatabase on a real PostgreSQL, and a MyDatabase that begins with one."""

import pytest

from tests.operators.real.test_etcd_s3 import serve_s3
from tests.operators.real.test_mydatabase import Db, crds, db, new_daemon, version  # noqa: F401 - fixtures
from tests.s3_server import KEYS

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
API = {"apiVersion": "example.com/v1alpha1", "kind": "MyDatabase"}
S3 = {"bucket": "backups", "endpoint": "http://s3:9000", "prefix": "a", "credentialsSecret": "s3-key"}


def backed_up(db, target):  # noqa: F811 - a fixture
    db.apply()
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    db.apply(backup={"immediate": True, "image": "python", "target": target, "retries": 0})
    db.real.eventually(
        lambda: db.condition("BackupHealthy")["status"] in {"True", "False"}, "a backup has ended", timeout_s=240
    )
    assert db.condition("BackupHealthy")["reason"] == "BackedUp", db.condition("BackupHealthy")
    db.sql("delete from rows")


def begin(db, name, **source):  # noqa: F811 - a fixture
    spec = {
        "version": db.version, "storage": {"size": "1Gi"}, "users": [{"name": "shop"}], "databases": [{"name": "orders", "owner": "shop"}],
        "bootstrap": {"fromBackup": {"database": "db", "image": "python", "retries": 0, **source}},
    }  # fmt: skip
    db.real.apply({**API, "metadata": {"name": name}, "spec": spec})


class Other(Db):
    """One that was begun with a backup."""

    def __init__(self, db, name):  # noqa: F811 - a fixture
        super().__init__(db.real, db.daemon, db.version)
        self.name = name

    @property
    def cr(self):
        return self.real.get(f"/apis/example.com/v1alpha1/namespaces/{self.real.namespace}/mydatabases/{self.name}")

    def end(self):
        self.real.kubectl("delete", "mydatabase", self.name, "-n", self.real.namespace, "--timeout=300s")


def rows(db, name):  # noqa: F811 - a fixture
    """What the user is answered by the other one, with the password of its new Secret."""
    found = db.real.kubectl(
        "get",
        "secret",
        f"{name}-user-shop",
        "-n",
        db.real.namespace,
        "-o",
        "go-template={{.data.password | base64decode}}",
    )
    asked = ["psql", "-h", name, "-U", "shop", "-d", "orders", "-Atqc", "select count(*), sum(n) from rows"]
    return db.inside(f"{name}-0", "env", f"PGPASSWORD={found}", *asked).split()


def test_what_was_backed_up_to_a_volume_is_there_again_in_another_database(db):  # noqa: F811 - a fixture
    backed_up(db, {"volumeClaimSpec": CLAIM})
    last = db.cr["status"]["lastBackup"]
    assert last["file"].startswith("db/")
    assert last["sizeBytes"] > 0
    begin(db, "again")
    begin(db, "astray", file="20010101T000000Z-t1.tar.gz")
    again, astray = Other(db, "again"), Other(db, "astray")
    again.settled()
    assert again.cr["status"]["restoredFrom"] == last["file"]
    assert rows(db, "again") == ["1000|500500"]
    assert db.sql("select count(*) from rows") == ["0"]
    db.real.eventually(lambda: astray.condition("Degraded")["status"] == "True", "it is told", timeout_s=240)
    assert (
        ".spec.bootstrap.fromBackup: BackupNotFound: there is no db/20010101T000000Z-t1.tar.gz"
        in astray.condition("Degraded")["message"]
    )
    assert not db.real.pod("astray-0")
    for each in (astray, again):
        each.end()


@pytest.mark.minutes(4)
def test_what_was_backed_up_to_a_bucket_is_there_again_in_another_database(db):  # noqa: F811 - a fixture
    serve_s3(db.real)
    db.real.apply({"kind": "Secret", "metadata": {"name": "s3-key"}, "stringData": KEYS})
    db.real.ready("s3")
    backed_up(db, {"s3": S3})
    assert db.cr["status"]["lastBackup"]["file"].startswith("a/db/")
    begin(db, "again", s3=S3)
    again = Other(db, "again")
    again.settled()
    assert rows(db, "again") == ["1000|500500"]
    again.end()
