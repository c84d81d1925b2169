"""Who takes over from a primary on a real PostgreSQL, asked or because it was hurt, and what becomes of the old one and of rows, which clients write meanwhile."""

import time
from datetime import UTC, datetime

import pytest

from tests.operators.real.commands import approved
from tests.operators.real.postgres.database import Writer

pytestmark = pytest.mark.scenario(minutes=3)
GRACE_S = 120
"""How long a pod has to end that isn't left behind."""
WITHIN_S = 30
"""How much later than the delay somebody takes over at most from a primary whose network is dead."""
BOTH = {"replicas": 2, "failover": {"delaySeconds": 1}}


@pytest.mark.smoke
def test_no_acknowledged_row_is_lost_where_replicas_have_it_too_and_a_spoilt_volume_gives_way_to_a_copy(db):
    real = db.real
    db.apply()
    db.settled().filled()
    writer = Writer(db, "safe")
    db.apply(replicas=2, failover={"delaySeconds": 1, "maxLagBytes": 0}, synchronous={"min": 1})
    db.settled()
    names = "show synchronous_standby_names"
    real.eventually(lambda: db.asked("db-0", names) == 'ANY 1 ("db-1")', "db-1 is waited for")
    writer.goes_on()

    db.spoil("db-0")  # so that it doesn't come back before somebody takes over
    db.kill("db-0")
    db.is_led_by("db-1")
    writer.goes_on()
    db.settled()
    told = writer.end()  # before what is there: none of these may be missing
    assert not {*told} - {*db.rows("db-1", "safe")}
    real.eventually(lambda: db.asked("db-1", names) == 'ANY 1 ("db-2")', "db-2 is waited for")
    real.eventually(lambda: db.quorums() == [["db-1", "db-2"]], "that is told")

    real.eventually(lambda: [each["pod"] for each in db.status["instances"]] == ["db-1", "db-2"], "both are told")
    assert db.kept_volumes() == ["db-0-data"]
    assert "db-0" in db.claims()
    real.eventually(lambda: db.rows("db-2") == [*range(1, 1001)], "the copy has all rows")
    db.apply(replicas=2, failover={"keepOldVolumesHours": 0})
    real.eventually(lambda: "db-0" not in db.claims(), "its volume goes")
    db.settled()


def test_the_primary_hands_over_without_losing_a_row_when_asked_and_for_a_restart(db):
    real = db.real
    db.apply(replicas=2)
    db.settled()
    writer = Writer(db, "handed")
    old, new, timeline = db.primary(), db.replica(), db.status["timeline"]
    db.hand_over(new)
    real.eventually(lambda: db.status.get("switchoverAnswered") == new, f"{new} has taken over")
    db.settled()
    assert {db.status[name] for name in ("currentPrimary", "targetPrimary")} == {new}
    assert db.status["timeline"] == timeline + 1
    writer.goes_on()
    assert db.stands_by(old)

    # To one that isn't as specified any more by then, and back for that.
    db.apply(replicas=2, paused=True)
    db.hand_over(old)
    db.apply(replicas=2, parameters={"max_connections": "150"}, resources={"requests": {"cpu": "1m"}})
    real.eventually(lambda: db.status.get("switchoverAnswered") == old, f"{old} has taken over")
    db.settled()
    assert (db.primary(), db.sql("show max_connections")) == (new, ["150"])
    writer.goes_on()
    told = writer.end()  # before what is there: none of these may be missing
    assert not {*told} - {*db.rows(new, "handed")}


@pytest.mark.parametrize("hurt", ["pause", "partition"])
def test_a_primary_that_hangs_or_is_cut_off_ends_soon_and_another_takes_over_without_losing_a_row(db, hurt):
    real = db.real
    db.apply(**BOTH, synchronous={"min": 1})
    db.settled()
    writer = Writer(db, f"hurtby{hurt}")
    old, new, timeline = db.primary(), db.replica(), db.status["timeline"]
    uid, since, at = db.uid(old), time.monotonic(), datetime.now(UTC)

    getattr(real.sandbox.pods, hurt)(real.namespace, old)
    ending = "nobody takes over before its node says that it has ended"
    real.eventually(lambda: ending in db.condition("Progressing")["message"] or db.primary() == new, "it is to end")
    db.is_led_by(new)
    assert time.monotonic() - since < GRACE_S
    real.eventually(lambda: db.condition("Available")["status"] == "True", f"it is told that {new} serves")
    told = datetime.fromisoformat(db.condition("Available")["lastTransitionTime"])
    assert told > at
    assert hurt == "pause" or (told - at).total_seconds() < BOTH["failover"]["delaySeconds"] + WITHIN_S
    real.eventually(lambda: db.uid(old) != uid, f"the pod {old} is replaced")
    writer.goes_on()
    db.settled()
    told = writer.end()  # before what is there: none of these may be missing
    assert not {*told} - {*db.rows(new, f"hurtby{hurt}")}
    other = db.replica()
    assert (db.stands_by(other), db.status["timeline"]) == (True, timeline + 1)
    assert other == old or f"{old}-data" in db.kept_volumes(), "it is rewound, or its volume is kept beside a copy"


def test_a_replica_takes_over_from_a_primary_whose_volume_is_lost(db):
    real = db.real
    db.apply(**BOTH)
    db.settled().filled()
    old, new = db.primary(), db.replica()
    follows(db, old, new)
    real.kubectl("delete", "pvc", f"{old}-data", "-n", real.namespace, "--wait=false")
    real.delete(old, "--wait=false")
    db.is_led_by(new)
    db.settled()
    assert db.sql("insert into rows values (1001); select count(*) from rows") == ["1001"]
    assert db.stands_by(db.replica())


def test_a_replica_takes_over_from_a_primary_that_lets_nobody_in_once_that_has_ended(db):
    real = db.real
    db.apply(**BOTH)
    db.settled().filled()
    old, new, timeline = db.primary(), db.replica(), db.status["timeline"]
    follows(db, old, new)
    db.hold_session("holds")
    db.let_nobody_in(old)
    db.is_led_by(new)
    real.delete("holds", "--wait=false")
    db.settled()
    assert db.stands_by(old)
    assert db.sql("insert into rows values (1001); select count(*) from rows") == ["1001"]
    assert db.status["timeline"] == timeline + 1


def follows(db, primary, replica):
    """Wait until a replica has all that the primary has."""
    sent = "select application_name from pg_stat_replication where replay_lsn = pg_current_wal_lsn()"
    db.real.eventually(lambda: db.asked(primary, sent) == replica, f"{replica} has all of {primary}")


def test_an_old_primary_with_rows_that_nobody_received_is_rewound_and_follows(db):
    real = db.real
    db.apply(replicas=2, failover={"delaySeconds": 1, "mode": "Approve"})
    db.settled()
    writer = Writer(db, "rewound")
    db.hold_session("holder")
    old, new = db.primary(), db.replica()
    volume = db.claims()[old]["metadata"]["uid"]

    db.asked(new, "alter system set primary_conninfo = ''")
    db.asked(new, "select pg_reload_conf()")
    following = "select count(*) from pg_stat_replication where state = 'streaming'"
    real.eventually(lambda: db.asked(old, following) == "0", f"{new} receives nothing more")
    db.sql("insert into rewound select -generate_series(1, 1000)")
    db.let_nobody_in(old)
    real.eventually(lambda: db.condition("Degraded")["reason"] == "FailoverOffered", "somebody decides")
    approved(real, "mydatabase/db")
    db.is_led_by(new)
    real.delete("holder", "--wait=false")

    before = writer.goes_on()
    db.settled()
    told = writer.end()[before:]
    real.eventually(lambda: db.begun(old) == "rewind", "it was rewound")
    assert db.claims()[old]["metadata"]["uid"] == volume
    assert db.stands_by(old)
    real.eventually(lambda: {*told} <= {*db.rows(old, "rewound")}, "it has all that the new primary acknowledged")
    assert {*told} <= {*db.rows(new, "rewound")}
    past = "select count(*) from rewound where n < 0"
    assert db.asked(old, past, "orders") == db.asked(new, past, "orders") == "0"
