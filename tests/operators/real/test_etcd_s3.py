"""Backups to a bucket, and a cluster from one, on real members and a real S3 server in a pod of its own."""

from tests.operators.real.test_etcdbackup import (  # noqa: F401 - fixtures
    NEW,
    _programs,
    backup,
    condition,
    crds,
    db,
    new_daemon,
    reason,
    status,
)
from tests.operators.real.test_etcdrestore import restore, waits_for
from tests.s3_server import KEYS, PROGRAM, PYTHON

PLACE = {"bucket": "backups", "endpoint": "http://s3:9000", "prefix": "a", "credentialsSecret": "s3-key"}


def serve_s3(real):
    port = [{"port": 9000}]
    real.apply({"kind": "Service", "metadata": {"name": "s3"}, "spec": {"selector": {"app": "s3"}, "ports": port}})
    command = [str(PYTHON), "-c", PROGRAM.read_text(), "0.0.0.0", "9000", "backups"]  # noqa: S104 - of the pod
    spec = {
        "containers": [
            {
                "name": "main",
                "image": "python",
                "command": command,
                "readinessProbe": {"tcpSocket": {"port": 9000}, "periodSeconds": 1},
            }
        ]
    }
    real.apply({"kind": "Pod", "metadata": {"name": "s3", "labels": {"app": "s3"}}, "spec": spec})


def to(**other):
    return {"storage": {"s3": {**PLACE, **other}}}


def test_a_cluster_that_is_gone_begins_again_with_what_is_in_a_bucket(db):  # noqa: F811 - a fixture
    real = db.real
    serve_s3(real)
    db.apply(version=NEW, size=1)
    db.settled(1)
    db.etcdctl("db-0", "put", "first", "1")
    real.ready("s3")

    backup(real, "once", **to())  # before its Secret: it waits, and says for what
    real.eventually(
        lambda: ".spec.storage.s3.credentialsSecret must" in condition(real, "once", "Running")["message"],
        "its pod waits for the Secret",
    )
    real.apply({"kind": "Secret", "metadata": {"name": "s3-key"}, "stringData": KEYS})
    backup(real, "astray", **to(bucket="elsewhere"))
    backup(real, "nowhere", **to(endpoint="http://other:9000"))
    reason(real, "once", "BackedUp")
    assert ".spec.storage.s3.bucket: http://s3:9000 has no such bucket" in reason(real, "astray", "BackupFailed")
    assert ".spec.storage.s3.endpoint: http://other:9000 " in reason(real, "nowhere", "BackupFailed")
    db.settled(1)
    written = status(real, "once")
    assert written["file"].startswith("a/once/")
    pods = real.kubectl("get", "pods,jobs,etcdbackups,events", "-n", real.namespace, "-o", "yaml")
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in pods

    db.end()
    real.gone("db-0")
    real.kubectl("delete", "pvc", "-n", real.namespace, "--timeout=300s", "db-0-data")
    real.kubectl("delete", "etcdbackup", "--all", "-n", real.namespace, "--timeout=300s")  # the bucket is all there is
    restore(real, "again", s3=PLACE)
    db.apply(version=NEW, size=1, restoreFrom={"name": "again"})
    waits_for(real, "again", "Restored")
    db.settled(1)
    assert db.etcdctl("db-0", "get", "first", "--print-value-only") == "1\n"
    real.kubectl("delete", "etcdrestore", "--all", "-n", real.namespace, "--timeout=300s")
