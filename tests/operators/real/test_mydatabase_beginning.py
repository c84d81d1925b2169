"""How a MyDatabase begins on a real PostgreSQL: with options of its own, or with a copy of a server that runs."""

from tests.operators.real.test_mydatabase import (  # noqa: F401 - fixtures
    asked,
    certificate,
    crds,
    db,
    hand_over,
    new_daemon,
    primary_of,
    put_certificate,
    stands_by,
    version,
)
from tests.operators.real.test_mydatabase_backup import API, Other, rows


def begin(db, name, **bootstrap):  # noqa: F811 - a fixture
    spec = {
        "version": db.version, "storage": {"size": "1Gi"}, "users": [{"name": "shop"}], "databases": [{"name": "orders", "owner": "shop"}],
        "bootstrap": bootstrap,
    }  # fmt: skip
    db.real.apply({**API, "metadata": {"name": name}, "spec": spec})
    return Other(db, name)


def test_options_of_initdb_hold_for_all_instances_and_those_that_cannot_be_are_told(db):  # noqa: F811 - a fixture
    real, options = db.real, {"walSegmentSize": "32MB", "dataChecksums": False, "icuLocale": "de-AT"}
    db.apply(bootstrap={"initdb": {**options, "locale": "xx_XX"}})

    def refused():
        found = db.condition("Degraded")["message"]
        return "invalid locale" in found and found.endswith("(hint: correct .spec.bootstrap.initdb)")

    real.eventually(refused, "the locale is refused")
    db.apply(replicas=2, bootstrap={"initdb": options})
    db.settled()
    for slot in ("db-0", "db-1"):
        assert asked(db, slot, "show wal_segment_size") == "32MB"
        assert asked(db, slot, "show data_checksums") == "off"
    assert asked(db, "db-0", "select daticulocale from pg_database where datname = 'orders'", "orders") == "de-AT"
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    hand_over(db, "db-1")
    real.eventually(lambda: primary_of(db) == "db-1", "db-1 has taken over")
    db.settled()
    assert stands_by(db, "db-0")
    assert db.sql("select count(*) from rows") == ["1000"]
    assert db.condition("Replicating")["status"] == "True"


def test_a_copy_of_a_server_that_runs_has_its_rows_and_goes_its_own_way(db, tmp_path):  # noqa: F811 - a fixture
    real = db.real
    put_certificate(real, certificate(tmp_path / "first"))
    db.apply(replicas=2, tls={"secretName": "mine", "mode": "Require"})
    db.settled()
    db.sql("create table rows (n int); insert into rows select generate_series(1, 1000)")
    ours = begin(db, "ours", fromCluster={"database": "db", "retries": 0})
    ours.settled()
    assert ours.cr["status"]["restoredFrom"].startswith("a copy of db, ")
    assert ours.cr["status"]["systemID"] == db.cr["status"]["systemID"]
    db.sql("insert into rows values (1001)")
    assert rows(db, "ours") == ["1000|500500"]

    # As if it were somewhere else: by its name and somebody's password, which is proven over TLS.
    theirs = begin(db, "theirs", fromCluster={"host": "db", "secretName": "db-replication", "retries": 0})
    theirs.settled()
    assert theirs.cr["status"]["restoredFrom"].startswith("a copy of the server at db, ")
    assert rows(db, "theirs") == ["1001|501501"]
    following = "select count(*) from pg_stat_replication where application_name not in ('db-0', 'db-1')"
    assert asked(db, primary_of(db), following) == "0"
    for each in (ours, theirs):
        each.end()


def test_a_server_that_offers_no_tls_is_not_copied_by_its_address(db):  # noqa: F811 - a fixture
    db.apply(replicas=2)
    db.settled()
    theirs = begin(db, "theirs", fromCluster={"host": "db", "secretName": "db-replication", "retries": 0})
    db.real.eventually(lambda: theirs.condition("Degraded")["reason"] == "CopyFailed", "it is told", timeout_s=240)
    assert "server does not support SSL" in theirs.condition("Degraded")["message"]
    assert not db.real.pod("theirs-0")
    theirs.end()
