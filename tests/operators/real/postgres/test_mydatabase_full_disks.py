"""Full disks around a MyDatabase on a real PostgreSQL: who is told what, who takes over, and what is there once there is room."""

import pytest

pytestmark = pytest.mark.scenario(minutes=2)
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


def test_full_disks_are_told_nobody_takes_over_and_with_room_it_goes_on_with_all_rows(db):
    real = db.real
    disks = Disks(real, "db-0", "db-1")
    storage = {"size": SIZE, "storageClassName": CLASS}
    db.apply(replicas=2, storage=storage, failover={"delaySeconds": 1}, synchronous={"min": 1})
    db.settled().filled()
    db.inside("db-0", "sh", "-c", f"psql -U postgres <<'EOF' > /dev/null 2>&1 &\n{WRITES_LOG}\nEOF")

    def degraded():
        found = db.condition("Degraded")
        return found["message"] if (found["status"], found["reason"]) == ("True", "DiskFull") else ""

    for slot in ("db-1", "db-0"):
        disks.fill(slot)
        real.eventually(lambda slot=slot: f"the volume of {slot}" in degraded(), f"{slot} is told")
    said = f"the volume of db-0, the primary, is full ({SIZE}); nothing can be written until there is room (hint: set .spec.storage.size to more than {SIZE})"
    assert said in degraded()

    seen = [db.uid("db-0")]
    db.inside("db-0", "touch", GO)

    def has_ended_twice():
        uid = db.uid("db-0")
        if uid not in {None, *seen}:
            seen.append(uid)
        return len(seen) > 2

    real.eventually(has_ended_twice, "the primary ends, and again")
    assert said in degraded()
    assert db.primary() == "db-0"
    assert "handover" not in db.status

    for slot in ("db-0", "db-1"):
        disks.empty(slot)
    db.settled()
    assert db.asked(db.primary(), "select count(*), sum(n) from rows", "orders") == "1000|500500"
    db.sql("insert into rows values (1001)")
    assert db.condition("Degraded")["status"] == "False"
