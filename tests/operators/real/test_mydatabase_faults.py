"""Faults around a MyDatabase on a real PostgreSQL: disks that fill up, machines that go away, a daemon that is killed."""

import asyncio

import pytest

from kubectl_reconcile.sandbox.runtime.client import RuntimeClient
from tests.operators.real.interrupter import Interrupter, in_spite
from tests.operators.real.test_mydatabase import (  # noqa: F401 - fixtures
    Db,
    asked,
    crds,
    db,
    hand_over,
    new_daemon,
    primary_of,
    rows,
    version,
)

SIZE = "320Mi"
CLASS = "small"
GO = "/tmp/go"  # noqa: S108 - of a container
WRITES_LOG = rf"""select 1;
\! until [ -e {GO} ]; do sleep 0.2; done
do $$ begin
  for i in 1..100 loop
    perform pg_logical_emit_message(false, 'fill', 'x');
    perform pg_switch_wal();
  end loop;
end $$;"""
"""Opens a session, since a server without room may let nobody in; as soon as there is that file, it has the server go on from segment to segment of its log."""


# --- full disks -----------------------------------------------------------------------------------


class Disks:
    """Volumes that hold no more than `SIZE`, for the first instances of a database: folders in memory of a pod, which others mount too."""

    def __init__(self, real, *slots):
        self.real = real
        mounts = [{"name": each, "mountPath": f"/disks/{each}"} for each in slots]
        volumes = [{"name": each, "emptyDir": {"medium": "Memory", "sizeLimit": SIZE}} for each in slots]
        real.run("sleep", "3600", name="disks", volumeMounts=mounts, pod={"volumes": volumes})
        uid = real.ready("disks")["metadata"]["uid"]
        for each in slots:
            self._offer(each, real.sandbox.folder / "pods" / uid / "volumes" / each)

    def _offer(self, slot, folder):
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self.real.namespace}
        spec = {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": SIZE}, "storageClassName": CLASS,
            "claimRef": {**claim, "name": f"{slot}-data"}, "hostPath": {"path": str(folder)}, "persistentVolumeReclaimPolicy": "Retain",
        }  # fmt: skip
        name = f"{self.real.namespace}-{slot}"
        status, body = self.real.asked(
            "POST",
            "/api/v1/persistentvolumes",
            {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec},
        )
        assert status == 201, body

    def inside(self, *command):
        return self.real.kubectl("exec", "-n", self.real.namespace, "disks", "--", *command)

    def fill(self, slot):
        """Leave no room on a disk."""
        self.inside("sh", "-c", f"cat /dev/zero > /disks/{slot}/ballast || true")
        assert self.inside("sh", "-c", f"df /disks/{slot} | tail -n 1 | grep -o '[0-9]*%'").strip() == "100%"

    def empty(self, slot):
        self.inside("rm", f"/disks/{slot}/ballast")


def test_full_disks_are_told_nobody_takes_over_and_with_room_it_goes_on_with_all_rows(db):  # noqa: F811 - a fixture
    real = db.real
    disks = Disks(real, "db-0", "db-1")
    storage = {"size": SIZE, "storageClassName": CLASS}
    db.apply(replicas=2, storage=storage, failover={"delaySeconds": 1}, synchronous={"min": 1})
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    db.inside("db-0", "sh", "-c", f"psql -U postgres <<'EOF' > /dev/null 2>&1 &\n{WRITES_LOG}\nEOF")

    def degraded():
        found = db.condition("Degraded")
        return found["message"] if (found["status"], found["reason"]) == ("True", "DiskFull") else ""

    for slot in ("db-1", "db-0"):
        disks.fill(slot)
        real.eventually(lambda slot=slot: f"the volume of {slot}" in degraded(), f"{slot} is told")
    said = f"the volume of db-0, the primary, is full ({SIZE}); nothing can be written until there is room (hint: set .spec.storage.size to more than {SIZE})"
    assert said in degraded()

    seen = [db.uid()]
    db.inside("db-0", "touch", GO)

    def has_ended_twice():
        uid = db.uid()
        if uid not in {None, *seen}:
            seen.append(uid)
        return len(seen) > 2

    real.eventually(has_ended_twice, "the primary ends, and again", timeout_s=240)
    assert said in degraded()
    assert primary_of(db) == "db-0"
    assert "handover" not in db.cr["status"]

    for slot in ("db-0", "db-1"):
        disks.empty(slot)
    db.settled()
    assert asked(db, primary_of(db), "select count(*), sum(n) from rows", "orders") == "1000|500500"
    db.sql("insert into rows values (1001)")
    assert db.condition("Degraded")["status"] == "False"


# --- a machine that goes away ---------------------------------------------------------------------


def test_a_copy_of_a_server_whose_machine_goes_away_ends_and_is_made_again(db):  # noqa: F811 - a fixture
    real = db.real
    db.apply(replicas=1)
    db.settled()
    checkpointer = asked(db, "db-0", "select pid from pg_stat_activity where backend_type = 'checkpointer'")
    db.inside("db-0", "kill", "-STOP", checkpointer)  # a copy begins by waiting for it
    db.apply(replicas=2)
    copying = "select count(*) from pg_stat_replication where application_name = 'copy'"
    real.eventually(lambda: asked(db, "db-0", copying) == "1", "db-1 copies db-0", timeout_s=240)
    uid = db.uid("db-1")
    cut_off(real, uid)
    real.eventually(lambda: db.uid("db-1") not in {uid, None}, "the copy is given up, and begun again", timeout_s=240)
    db.inside("db-0", "kill", "-CONT", checkpointer)
    db.settled()
    assert db.sql("select pg_is_in_recovery()", at="db-ro") == ["t"]


def cut_off(real, uid):
    """Lose all that a pod sends through the primary's Service: no answer comes, nor does the end of a connection."""
    service = real.get(f"/api/v1/namespaces/{real.namespace}/services/db")["spec"]["clusterIP"]
    runtime = RuntimeClient(real.sandbox.folder / "pods")
    asyncio.run(runtime.call("cut", uid=uid, peers=[service], heal=False))


# --- a daemon that is killed ----------------------------------------------------------------------


@pytest.fixture
def interrupted(real, crds, new_daemon, version, tmp_path):  # noqa: F811 - fixtures
    """A MyDatabase, and a daemon that is killed before each step that it takes for the first time."""
    way = Interrupter(real.sandbox, tmp_path)
    way.victim = daemon = new_daemon(way.kubeconfig, real.namespace).start()
    found = Db(real, daemon, version)
    yield found, way
    way.disarm()
    if not daemon.alive:
        daemon.start()
    found.end()
    daemon.kill()
    way.close()


@pytest.mark.minutes(10)
def test_a_daemon_that_is_killed_at_every_step_begins_hands_over_and_fails_over_all_the_same(interrupted):
    db, way = interrupted  # noqa: F811 - of its own
    real = db.real
    way.is_armed = True
    db.apply(replicas=2, failover={"delaySeconds": 1}, synchronous={"min": 1})
    in_spite(way, db.is_settled, "it begins")
    system = db.cr["status"]["systemID"]
    way.disarm()
    if not way.victim.alive:
        way.victim.start()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    assert {"set-user-shop done", "make-database-orders started", "make-slot-1 done", "PATCH pods/db-0"} <= {*way.steps}

    way.is_armed = True
    hand_over(db, "db-1")
    in_spite(way, lambda: primary_of(db) == "db-1" and db.is_settled(), "db-1 takes over")
    assert {"DELETE pods/db-0", "promote-1 started", "promote-1 done"} <= {*way.steps}

    real.kubectl("delete", "pvc", "db-1-data", "-n", real.namespace, "--wait=false")
    real.delete("db-1", "--wait=false")
    in_spite(way, lambda: primary_of(db) == "db-0" and db.is_settled(), "db-0 takes over")
    assert {"promote-0 started", "promote-0 done"} <= {*way.steps}
    assert (db.cr["status"]["systemID"], db.cr["status"]["timeline"]) == (system, 3)
    assert rows(db, "db-0") == rows(db, "db-1") == [*range(1, 1001)]
