"""MyDatabase on a real PostgreSQL: begun, filled, changed, hurt and found again, with one instance and with two, while its user comes in through its Service."""

import asyncio
import json

import pytest

from kubectl_reconcile.sandbox.runtime.client import RuntimeClient
from tests.kubectl import KubectlError
from tests.operators.real.commands import approved
from tests.operators.real.postgres.certificates import certificate, over_tls, put_certificate
from tests.operators.real.postgres.database import SOCKETS

pytestmark = pytest.mark.scenario(minutes=3)


def test_it_is_begun_filled_and_changed_and_its_rows_outlast_a_crash_and_a_deletion(db):
    real = db.real
    db.apply(parameters={"work_mem": "8MB"})
    db.settled().filled()
    assert db.sql("show work_mem") == ["8MB"]
    assert db.sql("show data_checksums") == ["on"]
    status = db.status
    assert (status["phase"], status["currentPrimary"], status["version"].split(".")[0]) == (
        "Running",
        "db-0",
        str(db.version),
    )

    uid = db.uid("db-0")
    db.apply(parameters={"work_mem": "16MB"})
    db.settled()
    assert (db.sql("show work_mem"), db.uid("db-0")) == (["16MB"], uid)
    db.asked("db-0", "alter system set work_mem to '12MB'")  # which nobody has the server read
    db.apply(parameters={"work_mem": "12MB"})
    real.eventually(lambda: db.sql("show work_mem") == ["12MB"], "it is read all the same")
    db.apply(parameters={"work_mem": "16MB", "max_connections": "50"})
    db.settled()
    assert db.sql("show max_connections") == ["50"]
    assert db.uid("db-0") != uid

    db.apply(parameters={"max_connections": "50", "work_mem": "much"})

    def why():
        found = db.condition("Degraded")
        return found["message"] if found["reason"] == "Refused" else ""

    assert ".spec.parameters[work_mem]: invalid value" in real.eventually(why, "the server refuses")
    assert db.sql("show work_mem") == ["16MB"]
    db.apply(parameters={"max_connections": "50"})
    db.settled()
    assert db.sql("show work_mem") == ["4MB"]

    uid = db.uid("db-0")
    db.kill("db-0")
    db.replaced("db-0", uid)
    db.settled()
    assert db.sql("select count(*), sum(n) from rows") == ["1000|500500"]

    system = db.status["systemID"]
    assert db.owners() == [None]
    db.bind()
    real.eventually(lambda: db.owners() == [None], "a claim of before is freed")
    db.end_while_nobody_looks()
    assert db.owners() == [None]
    db.apply()
    db.settled()
    assert db.status["systemID"] == system
    assert db.sql("select count(*) from rows") == ["1000"]


def test_passwords_are_those_of_secrets_and_nobody_comes_in_without(db):
    real = db.real
    db.apply()
    db.settled()
    first = db.password()
    assert db.sql("select current_user") == ["shop"]
    with pytest.raises(KubectlError, match="password authentication failed"):
        db.sql("select 1", password="guessed")
    real.kubectl("delete", "secret", "db-user-shop", "-n", real.namespace)
    real.eventually(lambda: "db-user-shop" in secrets(real), "the Secret is recreated")
    assert db.password() != first
    real.eventually(lambda: db.refuses(first), "the old password lets nobody in")
    assert db.sql("select current_user") == ["shop"]

    uid, rejects = db.uid("db-0"), "pg_hba.conf rejects connection"
    db.apply(hba=[{"users": ["shop"], "method": "reject"}])
    real.eventually(lambda: db.refuses(db.password(), rejects), "it lets shop not in")
    db.apply(hba=[{"databases": ["orders"], "users": ["shop"], "method": "scram-sha-256"}, {"method": "reject"}])
    real.eventually(lambda: not db.refuses(db.password(), rejects), "it lets shop in")
    db.settled()
    assert db.uid("db-0") == uid
    said = f"{db.daemon.log}{json.dumps(db.cr)}{real.logs('db-0')}"
    assert not any(each in said for each in (first, db.password(), db.password("superuser")))


def secrets(real):
    return {each["metadata"]["name"] for each in real.kubectl.json("get", "secrets", "-n", real.namespace)["items"]}


def test_clients_get_in_over_tls_alone_where_that_is_required_and_another_certificate_is_read(db, tmp_path):
    real, shown = db.real, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
    first, second = certificate(tmp_path / "first"), certificate(tmp_path / "second")
    put_certificate(real, first)
    db.apply(tls={"secretName": "mine", "mode": "Require"})
    real.eventually(lambda: over_tls(db, first, shown) == "t", "TLS is offered")
    with pytest.raises(KubectlError, match="no encryption"):
        db.outside("env", f"PGPASSWORD={db.password()}", "psql", "host=db user=shop dbname=orders sslmode=disable")
    db.settled()

    uid = db.uid("db-0")
    put_certificate(real, second)
    real.eventually(lambda: over_tls(db, second, shown) == "t", "the other one is shown")
    assert (db.uid("db-0"), db.condition("Degraded")["status"]) == (uid, "False")

    put_certificate(real, certificate(tmp_path / "weak", "rsa:512"))
    refused = "have db-0 reload its certificate: .spec.tls.secretName: the server doesn't accept the certificate, and goes on with the one before"
    real.eventually(lambda: refused in db.condition("Degraded")["message"], "its refusal is told")
    assert over_tls(db, second, shown) == "t"
    put_certificate(real, first)
    real.eventually(lambda: over_tls(db, first, shown) == "t", "the first one is shown again")
    db.settled()


def test_a_copy_of_a_server_whose_machine_goes_away_ends_and_is_made_again(db):
    real = db.real
    db.apply(replicas=1)
    db.settled()
    checkpointer = db.asked("db-0", "select pid from pg_stat_activity where backend_type = 'checkpointer'")
    db.inside("db-0", "kill", "-STOP", checkpointer)  # a copy begins by waiting for it
    db.apply(replicas=2)
    copying = "select count(*) from pg_stat_replication where application_name = 'copy'"
    real.eventually(lambda: db.asked("db-0", copying) == "1", "db-1 copies db-0")
    uid = db.uid("db-1")
    cut_off(real, uid)
    db.replaced("db-1", uid)  # it was given up, and is begun again
    db.inside("db-0", "kill", "-CONT", checkpointer)
    db.settled()
    assert db.sql("select pg_is_in_recovery()", at="db-ro") == ["t"]


def cut_off(real, uid):
    """Lose all that a pod sends through the primary's Service: no answer comes, nor does the end of a connection."""
    service = real.get(f"/api/v1/namespaces/{real.namespace}/services/db")["spec"]["clusterIP"]
    runtime = RuntimeClient(real.sandbox.folder / "pods")
    asyncio.run(runtime.call("cut", uid=uid, peers=[service], heal=False))


def test_replicas_follow_answer_reads_come_back_and_leave_nothing_when_they_go(db):
    real = db.real
    db.apply(replicas=2)
    db.settled().filled()

    def instances():
        return [(each["pod"], each["role"], each["ready"]) for each in db.status["instances"]]

    both = [("db-0", "primary", True), ("db-1", "replica", True)]
    real.eventually(lambda: instances() == both, "both are told")

    def follows_to(number):
        return db.sql("select coalesce(max(n), 0), pg_is_in_recovery() from rows", at="db-ro") == [f"{number}|t"]

    real.eventually(lambda: follows_to(1000), "the copy has all rows")
    db.sql("insert into rows values (1001)")
    real.eventually(lambda: follows_to(1001), "the replica follows")
    with pytest.raises(KubectlError, match="read-only transaction"):
        db.sql("insert into rows values (1002)", at="db-ro")

    uid = db.uid("db-1")
    db.kill("db-1")
    db.replaced("db-1", uid)
    db.settled()
    db.sql("insert into rows values (1002)")
    real.eventually(lambda: follows_to(1002), "it follows again")

    rotated = {"stringData": {"password": "another one"}}
    real.kubectl("patch", "secret", "db-replication", "-n", real.namespace, f"-p={json.dumps(rotated)}")
    reads = ("grep", "-c", "another one", f"{SOCKETS}/replication.pgpass")
    real.eventually(lambda: db.inside("db-1", *reads, not_yet=("exited 1",)).strip() == "1", "its node brings it")
    db.settled()
    uid = db.uid("db-0")
    db.kill("db-0")  # so that db-1 has to log in anew
    db.replaced("db-0", uid)
    db.settled()
    db.sql("insert into rows values (1003)")
    real.eventually(lambda: follows_to(1003), "it follows with the other password")

    db.apply(replicas=1)
    real.gone("db-1")
    db.settled()
    real.eventually(lambda: not db.asked("db-0", "select slot_name from pg_replication_slots"), "its slot goes")
    real.eventually(lambda: db.kept_volumes() == ["db-1-data"], "its volume is kept")
    assert "db-1" in db.claims()
    for replicas, gone in ((2, "db-1"), (1, "db-2")):
        db.apply(replicas=replicas, deletionPolicy="Delete")
        real.eventually(lambda: db.condition("Ready")["reason"] == "AwaitsApproval", "somebody is asked")
        assert gone in db.claims()
        approved(real, "mydatabase/db")
        real.eventually(lambda gone=gone: gone not in db.claims(), "its volume goes")
        db.settled()
    assert db.sql("select count(*) from rows") == ["1003"]


def test_volumes_grow_while_servers_run_and_never_become_smaller(db):
    real = db.real
    db.apply(replicas=2)
    db.settled()
    slots = [each["pod"] for each in db.status["instances"]]
    uids = [db.uid(slot) for slot in slots]

    def sizes():
        claims = db.claims()
        return [claims[slot]["status"].get("capacity", {}).get("storage") for slot in slots]

    assert sizes() == ["1Gi", "1Gi"]
    db.apply(replicas=2, storage={"size": "2Gi"})
    real.eventually(lambda: sizes() == ["2Gi", "2Gi"], "both have grown")
    db.settled()
    assert [db.uid(slot) for slot in slots] == uids
    with pytest.raises(KubectlError, match="can't become smaller"):
        db.apply(replicas=2)
