"""MyDatabase on a real PostgreSQL: begun, filled, changed, hurt and found again, while its user comes in through its Service."""

import base64
import json
import os
import subprocess

import pytest

from kubectl_reconcile.sandbox.images import catalog
from kubectl_reconcile.sandbox.images.image import ImageError
from tests.conftest import KubectlError
from tests.e2e.conftest import PROGRAM, crds, new_daemon  # noqa: F401 - fixtures

NOT_YET = (
    "could not translate host name", "Connection refused", "No route to host", "Connection timed out",
    "the database system is starting up", "the database system is shutting down", "not yet accepting connections",
    "container not found", "unable to upgrade connection",
)  # fmt: skip
"""What is said where a command has had no effect yet, and may have one a moment later."""


SOCKETS = "/var/run/postgresql"


@pytest.fixture
def version() -> int:
    """The major version of the PostgreSQL that is installed here."""
    try:
        return int(catalog.find("postgres").environ["PG_MAJOR"])
    except ImageError as error:
        pytest.skip(str(error))


@pytest.fixture
def db(real, crds, new_daemon, version) -> "Db":  # noqa: F811 - fixtures
    found = Db(real, new_daemon(real.kubectl.kubeconfig, real.namespace).start(), version)
    yield found
    found.end()


class Db:
    """One MyDatabase called db with a user and a database, and a daemon that looks after it."""

    def __init__(self, real, daemon, version):
        self.real, self.daemon, self.version = real, daemon, version

    def manifest(self, **spec):
        whole = {
            "version": self.version, "storage": {"size": "1Gi"}, "users": [{"name": "shop"}],
            "databases": [{"name": "orders", "owner": "shop"}], **spec,
        }  # fmt: skip
        kind = {"apiVersion": "example.com/v1alpha1", "kind": "MyDatabase"}
        return {**kind, "metadata": {"name": "db", "namespace": self.real.namespace}, "spec": whole}

    def apply(self, **spec):
        self.real.apply(self.manifest(**spec))

    @property
    def cr(self):
        return self.real.get(f"/apis/example.com/v1alpha1/namespaces/{self.real.namespace}/mydatabases/db")

    def condition(self, type_):
        found = self.cr.get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type_), {"status": "", "message": "", "reason": ""})

    def is_settled(self):
        cr = self.cr
        is_newest = cr.get("status", {}).get("observedGeneration") == cr.get("metadata", {}).get("generation")
        return is_newest and self.condition("Ready")["status"] == "True"

    def settled(self):
        self.real.eventually(self.is_settled, "all is as specified", timeout_s=240)
        return self

    def password(self, of="user-shop"):
        secret = ("get", "secret", f"db-{of}", "-n", self.real.namespace)
        found = self.real.eventually(lambda: self.real.kubectl.json(*secret), f"there is a password of {of}")
        return base64.b64decode(found["data"]["password"]).decode()

    def sql(self, text, *, password=None, at="db"):
        """What the user is answered through the Service."""
        login = f"PGPASSWORD={self.password() if password is None else password}"
        asked = ["psql", "-h", at, "-U", "shop", "-d", "orders", "-v", "ON_ERROR_STOP=1", "-Atqc", text]
        # A Service leads to who was the primary until others hear of who is.
        not_yet = (*NOT_YET, "read-only transaction") if at == "db" else NOT_YET
        return self.inside("db-0", "env", login, *asked, not_yet=not_yet).split()

    def inside(self, pod, *command, not_yet=NOT_YET):
        """What a command in a pod says. A Service may take a moment until it leads to a pod that is ready."""

        def said():
            try:
                return [self.real.kubectl("exec", "-n", self.real.namespace, pod, "-c", "postgres", "--", *command)]
            except KubectlError as error:
                return None if any(each in str(error) for each in not_yet) else error

        found = self.real.eventually(said, "the Service leads to somebody", timeout_s=240)
        if isinstance(found, KubectlError):
            raise found
        return found[0]

    def uid(self, pod="db-0"):
        return self.real.pod(pod).get("metadata", {}).get("uid")

    def end(self):
        self.real.kubectl(
            "delete", "mydatabase", "db", "-n", self.real.namespace, "--timeout=300s", "--ignore-not-found"
        )


@pytest.mark.minutes(4)
def test_it_is_begun_filled_and_changed_and_its_rows_outlast_a_crash_and_a_deletion(db):
    real = db.real
    db.apply(parameters={"work_mem": "8MB"})
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    assert db.sql("show work_mem") == ["8MB"]
    assert db.sql("show data_checksums") == ["on"]
    status = db.cr["status"]
    assert (status["phase"], status["currentPrimary"], status["version"].split(".")[0]) == (
        "Running",
        "db-0",
        str(db.version),
    )

    uid = db.uid()
    db.apply(parameters={"work_mem": "16MB"})
    db.settled()
    assert (db.sql("show work_mem"), db.uid()) == (["16MB"], uid)
    asked(db, "db-0", "alter system set work_mem to '12MB'")  # which nobody has the server read
    db.apply(parameters={"work_mem": "12MB"})
    real.eventually(lambda: db.sql("show work_mem") == ["12MB"], "it is read all the same", timeout_s=240)
    db.apply(parameters={"work_mem": "16MB", "max_connections": "50"})
    db.settled()
    assert db.sql("show max_connections") == ["50"]
    assert db.uid() != uid

    db.apply(parameters={"max_connections": "50", "work_mem": "much"})

    def why():
        found = db.condition("Degraded")
        return found["message"] if found["reason"] == "Refused" else ""

    assert ".spec.parameters[work_mem]: invalid value" in real.eventually(why, "the server refuses", timeout_s=240)
    assert db.sql("show work_mem") == ["16MB"]
    db.apply(parameters={"max_connections": "50"})
    db.settled()
    assert db.sql("show work_mem") == ["4MB"]

    uid = db.uid()
    real.sandbox.pods.signal(real.namespace, "db-0", "KILL")
    real.eventually(lambda: db.uid() not in {uid, None}, "the pod is replaced", timeout_s=240)
    db.settled()
    assert db.sql("select count(*), sum(n) from rows") == ["1000|500500"]

    system = db.cr["status"]["systemID"]
    db.end()
    real.gone("db-0")
    db.apply()
    db.settled()
    assert db.cr["status"]["systemID"] == system
    assert db.sql("select count(*) from rows") == ["1000"]


def test_volumes_grow_while_servers_run_and_never_become_smaller(db):
    real = db.real
    db.apply(replicas=2)
    db.settled()
    uids = [db.uid(slot) for slot in ("db-0", "db-1")]

    def sizes():
        found = real.kubectl.json("get", "pvc", "-n", real.namespace)["items"]
        return [each["status"].get("capacity", {}).get("storage") for each in found]

    assert sizes() == ["1Gi", "1Gi"]
    db.apply(replicas=2, storage={"size": "2Gi"})
    real.eventually(lambda: sizes() == ["2Gi", "2Gi"], "both have grown")
    db.settled()
    assert [db.uid(slot) for slot in ("db-0", "db-1")] == uids
    with pytest.raises(KubectlError, match="can't become smaller"):
        db.apply(replicas=2, storage={"size": "1Gi"})


def test_passwords_are_those_of_secrets_and_nobody_comes_in_without(db):
    real = db.real
    db.apply()
    db.settled()
    first = db.password()
    assert db.sql("select current_user") == ["shop"]
    with pytest.raises(KubectlError, match="password authentication failed"):
        db.sql("select 1", password="guessed")
    real.kubectl("delete", "secret", "db-user-shop", "-n", real.namespace)
    real.eventually(lambda: "db-user-shop" in secrets(real), "the Secret is recreated", timeout_s=240)
    assert db.password() != first
    real.eventually(lambda: refuses(db, first), "the old password lets nobody in", timeout_s=240)
    assert db.sql("select current_user") == ["shop"]

    uid = db.uid()
    db.apply(hba=[{"users": ["shop"], "method": "reject"}])
    real.eventually(
        lambda: refuses(db, db.password(), "pg_hba.conf rejects connection"), "it lets shop not in", timeout_s=240
    )
    db.apply(hba=[{"databases": ["orders"], "users": ["shop"], "method": "scram-sha-256"}, {"method": "reject"}])
    real.eventually(
        lambda: not refuses(db, db.password(), "pg_hba.conf rejects connection"), "it lets shop in", timeout_s=240
    )
    db.settled()
    assert db.uid() == uid
    said = f"{db.daemon.log}{json.dumps(db.cr)}{real.logs('db-0')}"
    assert not any(each in said for each in (first, db.password(), db.password("superuser")))


def test_clients_get_in_over_tls_alone_where_that_is_required_and_another_certificate_is_read(db, tmp_path):
    real, shown = db.real, "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
    db.apply()
    db.settled()
    db.sql("create table rows (n int)")
    first, second = certificate(tmp_path / "first"), certificate(tmp_path / "second")
    put_certificate(real, first)
    db.apply(tls={"secretName": "mine", "mode": "Require"})
    real.eventually(lambda: over_tls(db, first, shown) == "t", "TLS is offered", timeout_s=240)
    with pytest.raises(KubectlError, match="no encryption"):
        db.inside(
            "db-0", "env", f"PGPASSWORD={db.password()}", "psql", "host=db user=shop dbname=orders sslmode=disable"
        )
    db.settled()

    uid = db.uid()
    put_certificate(real, second)
    real.eventually(lambda: over_tls(db, second, shown) == "t", "the other one is shown", timeout_s=240)
    assert (db.uid(), db.condition("Degraded")["status"]) == (uid, "False")

    put_certificate(real, certificate(tmp_path / "weak", "rsa:512"))
    refused = "have db-0 reload its certificate: .spec.tls.secretName: the server doesn't accept the certificate, and goes on with the one before"
    real.eventually(lambda: refused in db.condition("Degraded")["message"], "its refusal is told", timeout_s=240)
    assert over_tls(db, second, shown) == "t"
    put_certificate(real, first)
    real.eventually(lambda: over_tls(db, first, shown) == "t", "the first one is shown again", timeout_s=240)
    db.settled()


def certificate(folder, *kind):
    """The folder with a certificate that signs itself, and its key."""
    folder.mkdir()
    files = ["-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
    key = ["-newkey", *(kind or ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")), "-nodes"]
    command = ["openssl", "req", "-x509", *key, *files, "-subj", f"/CN={folder.name}", "-days", "2"]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


def put_certificate(real, folder):
    data = {name: (folder / name).read_text() for name in ("tls.crt", "tls.key")}
    secret = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "mine"}}
    real.apply({**secret, "stringData": data})


def over_tls(db, folder, sql):
    """What the user is answered by a server that shows this certificate; nothing where none does."""
    put = 'printf %s "$1" > /tmp/root.crt; shift; exec "$@"'
    to = "host=db user=shop dbname=orders sslmode=verify-ca sslrootcert=/tmp/root.crt"
    asked = ["env", f"PGPASSWORD={db.password()}", "psql", to, "-Atc", sql]
    try:
        return db.inside("db-0", "sh", "-c", put, "sh", (folder / "tls.crt").read_text(), *asked).strip()
    except KubectlError as error:
        return str(error)


def test_replicas_follow_answer_reads_come_back_and_leave_nothing_when_they_go(db):
    real = db.real
    db.apply()
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    db.apply(replicas=2)
    db.settled()

    def instances():
        return [(each["pod"], each["role"], each["ready"]) for each in db.cr["status"]["instances"]]

    both = [("db-0", "primary", True), ("db-1", "replica", True)]
    real.eventually(lambda: instances() == both, "both are told")

    def behind(number):
        return db.sql("select coalesce(max(n), 0), pg_is_in_recovery() from rows", at="db-ro") != [f"{number}|t"]

    real.eventually(lambda: not behind(1000), "the copy has all rows", timeout_s=240)
    db.sql("insert into rows values (1001)")
    real.eventually(lambda: not behind(1001), "the replica follows", timeout_s=240)
    with pytest.raises(KubectlError, match="read-only transaction"):
        db.sql("insert into rows values (1002)", at="db-ro")

    uid = db.uid("db-1")
    real.sandbox.pods.signal(real.namespace, "db-1", "KILL")
    real.eventually(lambda: db.uid("db-1") not in {uid, None}, "its pod is replaced", timeout_s=240)
    db.settled()
    db.sql("insert into rows values (1002)")
    real.eventually(lambda: not behind(1002), "it follows again", timeout_s=240)

    db.apply(replicas=1)
    real.gone("db-1")
    db.settled()
    real.eventually(lambda: not asked(db, "db-0", "select slot_name from pg_replication_slots"), "its slot goes")
    real.eventually(lambda: kept_volumes(db) == ["db-1-data"], "its volume is kept", timeout_s=240)
    assert "db-1-data" in claims(real)
    db.apply(replicas=2, deletionPolicy="Delete")
    db.settled()
    assert db.uid("db-2")
    db.apply(replicas=1, deletionPolicy="Delete")
    real.eventually(lambda: "db-2-data" not in claims(real), "its volume goes", timeout_s=240)
    db.settled()
    assert db.sql("select count(*) from rows") == ["1002"]


WRITES = """trap 'exit 0' TERM
n=0
while true; do
  n=$((n+1))
  if psql "host=db user=shop dbname=orders connect_timeout=2" -qc "insert into rows values ($n)" 2>/dev/null; then echo $n; fi
done
"""


def test_the_primary_hands_over_without_losing_a_row_when_asked_and_for_a_restart(db, version):
    real = db.real
    db.apply(replicas=2)
    db.settled()
    db.sql("create table rows (n int)")
    env = [{"name": "PGPASSWORD", "value": db.password()}]
    real.run("sh", "-c", WRITES, name="client", image=f"postgres:{version}", env=env)

    def acknowledged():
        return [int(each) for each in written(real)]

    def goes_on():
        before = len(acknowledged())
        real.eventually(lambda: len(acknowledged()) > before + 3, "rows are written", timeout_s=240)

    goes_on()
    hand_over(db, "db-1")
    real.eventually(lambda: db.cr["status"].get("switchoverAnswered") == "db-1", "db-1 has taken over", timeout_s=240)
    db.settled()
    assert {db.cr["status"][name] for name in ("currentPrimary", "targetPrimary")} == {"db-1"}
    assert db.cr["status"]["timeline"] == 2
    goes_on()
    assert stands_by(db, "db-0")

    # To one that isn't as specified any more by then, and back for that.
    db.apply(replicas=2, paused=True)
    hand_over(db, "db-0")
    db.apply(replicas=2, parameters={"max_connections": "150"}, resources={"requests": {"cpu": "1m"}})
    real.eventually(lambda: db.cr["status"].get("switchoverAnswered") == "db-0", "db-0 has taken over", timeout_s=240)
    db.settled()
    assert (db.cr["status"]["currentPrimary"], db.sql("show max_connections")) == ("db-1", ["150"])
    goes_on()
    told = acknowledged()  # before what is there: none of these may be missing
    assert not {*told} - {int(each) for each in db.sql("select n from rows")}


def test_a_replica_takes_over_from_a_primary_whose_volume_is_lost(db):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1})
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    real.kubectl("delete", "pvc", "db-0-data", "-n", real.namespace, "--wait=false")
    real.delete("db-0", "--wait=false")
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)
    db.settled()
    assert db.sql("insert into rows values (1001); select count(*) from rows") == ["1001"]
    assert stands_by(db, "db-0")


def test_a_replica_takes_over_from_a_primary_that_lets_nobody_in_once_that_has_ended(db, version):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1})
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    env = [{"name": "PGPASSWORD", "value": db.password()}]
    holds = ["psql", "host=db user=shop dbname=orders", "-c", "select pg_sleep(1000)"]
    real.run(*holds, name="client", image=f"postgres:{version}", env=env)
    sleeping = "select count(*) from pg_stat_activity where usename = 'shop' and state = 'active'"
    real.eventually(lambda: int(asked(db, "db-0", sleeping)) >= 1, "a session is open", timeout_s=240)
    # It waits for the session to end, for ever, and lets nobody else in.
    db.inside("db-0", "sh", "-c", 'kill -TERM "$(head -n 1 "$PGDATA/postmaster.pid")"')
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)
    db.settled()
    assert stands_by(db, "db-0")
    assert db.sql("insert into rows values (1001); select count(*) from rows") == ["1001"]
    assert db.cr["status"]["timeline"] == 2


HOLDS = "psql 'host=db user=shop dbname=orders' -c 'select pg_sleep(1000)'"
CUT_OFF = "alter system set primary_conninfo = ''"
PAST = "select count(*) from rows where n < 0"


@pytest.mark.minutes(4)
def test_an_old_primary_with_rows_that_nobody_received_is_rewound_and_follows(db, version):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1, "mode": "Approve"})
    db.settled()
    db.sql("create table rows (n int)")
    env = [{"name": "PGPASSWORD", "value": db.password()}]
    real.run("sh", "-c", WRITES, name="client", image=f"postgres:{version}", env=env)
    real.run("sh", "-c", HOLDS, name="holder", image=f"postgres:{version}", env=env)
    sleeping = "select count(*) from pg_stat_activity where usename = 'shop' and query like '%pg_sleep%'"
    real.eventually(lambda: int(asked(db, "db-0", sleeping)) >= 1, "a session is open", timeout_s=240)
    volume = volume_of(real, "db-0")

    asked(db, "db-1", CUT_OFF)
    asked(db, "db-1", "select pg_reload_conf()")
    following = "select count(*) from pg_stat_replication where state = 'streaming'"
    real.eventually(lambda: asked(db, "db-0", following) == "0", "db-1 receives nothing more", timeout_s=240)
    db.sql("insert into rows select -generate_series(1, 1000)")
    # It waits for the session to end, for ever, and lets nobody else in.
    db.inside("db-0", "sh", "-c", 'kill -TERM "$(head -n 1 "$PGDATA/postmaster.pid")"')
    real.eventually(lambda: db.condition("Degraded")["reason"] == "FailoverOffered", "somebody decides", timeout_s=240)
    approve(real)
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)

    before = len(written(real))
    real.eventually(lambda: len(written(real)) > before + 3, "rows are written", timeout_s=240)
    db.settled()
    told = [int(each) for each in written(real)[before:]]
    real.eventually(lambda: begun(real, "db-0") == "rewind", "it was rewound")
    assert volume_of(real, "db-0") == volume
    assert stands_by(db, "db-0")
    real.eventually(
        lambda: {*told} <= {*rows(db, "db-0")}, "it has all that the new primary acknowledged", timeout_s=240
    )
    assert {*told} <= {*rows(db, "db-1")}
    assert asked(db, "db-0", PAST, "orders") == asked(db, "db-1", PAST, "orders") == "0"


def test_one_whose_rewind_was_interrupted_gives_way_to_a_new_copy_and_its_volume_goes_later(db):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1})
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    db.inside("db-0", "sh", "-c", 'touch "$PGDATA.rewinding"')  # as whoever rewinds leaves it, if killed
    real.sandbox.pods.signal(real.namespace, "db-0", "KILL")
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)
    db.settled()
    real.eventually(lambda: [each["pod"] for each in db.cr["status"]["instances"]] == ["db-1", "db-2"], "both are told")
    assert [each["claim"] for each in db.cr["status"]["keptVolumes"]] == ["db-0-data"]
    assert "db-0-data" in claims(real)
    real.eventually(lambda: rows(db, "db-2") == [*range(1, 1001)], "the copy has all rows", timeout_s=240)
    db.apply(replicas=2, failover={"keepOldVolumesHours": 0})
    real.eventually(lambda: "db-0-data" not in claims(real), "its volume goes", timeout_s=240)
    db.settled()


def test_no_acknowledged_row_is_lost_where_replicas_have_it_too(db, version):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1, "maxLagBytes": 0}, synchronous={"min": 1})
    db.settled()
    db.sql("create table rows (n int)")
    real.eventually(
        lambda: asked(db, "db-0", "show synchronous_standby_names") == 'ANY 1 ("db-1")', "db-1 is waited for"
    )
    env = [{"name": "PGPASSWORD", "value": db.password()}]
    real.run("sh", "-c", WRITES, name="client", image=f"postgres:{version}", env=env)
    real.eventually(lambda: len(written(real)) > 3, "rows are written", timeout_s=240)

    db.inside(
        "db-0", "sh", "-c", 'touch "$PGDATA.rewinding"'
    )  # so that it doesn't come back before somebody takes over
    real.sandbox.pods.signal(real.namespace, "db-0", "KILL")
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)
    before = len(written(real))
    real.eventually(lambda: len(written(real)) > before + 3, "rows are written", timeout_s=240)
    db.settled()
    told = [int(each) for each in written(real)]  # before what is there: none of these may be missing
    assert not {*told} - {*rows(db, "db-1")}
    real.eventually(
        lambda: asked(db, "db-1", "show synchronous_standby_names") == 'ANY 1 ("db-2")', "db-2 is waited for"
    )
    real.eventually(lambda: quorums(db) == [["db-1", "db-2"]], "that is told")


def test_a_primary_that_is_stopped_has_to_end_before_another_takes_over_and_nothing_is_lost_once_it_goes_on(
    db, version
):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1}, synchronous={"min": 1})
    db.settled()
    db.sql("create table rows (n int)")
    env = [{"name": "PGPASSWORD", "value": db.password()}]
    real.run("sh", "-c", WRITES, name="client", image=f"postgres:{version}", env=env)
    real.eventually(lambda: len(written(real)) > 3, "rows are written", timeout_s=240)

    real.sandbox.pods.pause(real.namespace, "db-0")
    ending = "nobody takes over before its node says that it has ended"
    real.eventually(lambda: ending in db.condition("Progressing")["message"], "its end is awaited", timeout_s=240)
    assert (primary_of(db), stands_by(db, "db-1")) == ("db-0", True)
    before = len(written(real))
    real.sandbox.pods.heal(real.namespace, "db-0")
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over", timeout_s=240)
    real.eventually(lambda: len(written(real)) > before + 3, "rows are written", timeout_s=240)
    db.settled()
    told = [int(each) for each in written(real)]  # before what is there: none of these may be missing
    assert not {*told} - {*rows(db, "db-1")}
    assert (stands_by(db, "db-0"), db.cr["status"]["timeline"]) == (True, 2)


def written(real):
    """What the client says that was acknowledged to it, once it runs."""
    return real.eventually(lambda: [real.logs("client")], "the client runs")[0]


def quorums(db):
    return [each["members"] for each in db.cr["status"].get("synchronous", {}).get("quorums", [])]


def hand_over(db, to):
    wish = f"example.com/switchover-to={to}"
    db.real.kubectl("annotate", "mydatabase", "db", "-n", db.real.namespace, wish, "--overwrite")


def primary_of(db):
    return db.cr.get("status", {}).get("currentPrimary")


def stands_by(db, pod):
    return asked(db, pod, "select pg_is_in_recovery()") == "t"


def asked(db, pod, sql, database="postgres"):
    return db.inside(pod, "psql", "-h", SOCKETS, "-U", "postgres", "-d", database, "-Atc", sql).strip()


def rows(db, pod):
    return sorted(int(each) for each in asked(db, pod, "select n from rows", "orders").split())


def approve(real, **more):
    """Approve what waits for somebody's approval, with *more* variables. Who approves asks the servers too: while they have no time, nothing waits."""
    environ = {**os.environ, "KUBECONFIG": real.kubectl.kubeconfig, **more}
    command = [PROGRAM, "approve", "mydatabase/db", "-n", real.namespace, "--yes"]

    def is_approved():
        answer = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=300, check=False)
        return "approved " in answer.stdout

    real.eventually(is_approved, "somebody approves", timeout_s=240)


def begun(real, pod):
    env = real.pod(pod)["spec"]["initContainers"][0]["env"]
    return next(each["value"] for each in env if each["name"] == "BEGIN")


def volume_of(real, pod):
    return real.kubectl.json("get", "pvc", f"{pod}-data", "-n", real.namespace)["metadata"]["uid"]


def kept_volumes(db):
    return [each["claim"] for each in db.cr["status"].get("keptVolumes", ())]


def claims(real):
    return {each["metadata"]["name"] for each in real.kubectl.json("get", "pvc", "-n", real.namespace)["items"]}


def secrets(real):
    return {each["metadata"]["name"] for each in real.kubectl.json("get", "secrets", "-n", real.namespace)["items"]}


def refuses(db, password, how="password authentication failed"):
    try:
        db.sql("select 1", password=password)
    except KubectlError as error:
        return how in str(error)
    return False
