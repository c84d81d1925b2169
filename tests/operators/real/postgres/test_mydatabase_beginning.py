"""How a MyDatabase begins on a real PostgreSQL: with options of its own, which hold for all that comes after."""

import pytest

pytestmark = pytest.mark.scenario(minutes=1)


def test_options_of_initdb_hold_for_all_instances_and_those_that_cannot_be_are_told(db):
    real, options = db.real, {"walSegmentSize": "32MB", "dataChecksums": False, "icuLocale": "de-AT"}
    db.apply(bootstrap={"initdb": {**options, "locale": "xx_XX"}})

    def refused():
        found = db.condition("Degraded")["message"]
        return "invalid locale" in found and found.endswith("(hint: correct .spec.bootstrap.initdb)")

    real.eventually(refused, "the locale is refused")
    db.apply(replicas=2, bootstrap={"initdb": options})
    db.settled()
    for slot in ("db-0", "db-1"):
        assert db.asked(slot, "show wal_segment_size") == "32MB"
        assert db.asked(slot, "show data_checksums") == "off"
    assert db.asked("db-0", "select daticulocale from pg_database where datname = 'orders'", "orders") == "de-AT"
    db.filled()
    db.hand_over("db-1")
    db.is_led_by("db-1")
    db.settled()
    assert db.stands_by("db-0")
    assert db.sql("select count(*) from rows") == ["1000"]
    assert db.condition("Replicating")["status"] == "True"
