"""A daemon that is killed at each step of its work on a real PostgreSQL, once: whoever comes after it begins, hands over and fails over all the same."""

import pytest

from tests.operators.real.interrupter import Interrupter, in_spite
from tests.operators.real.postgres.database import Db

pytestmark = pytest.mark.scenario(minutes=4)


@pytest.fixture
def interrupted(world, version, tmp_path):
    """A MyDatabase, and a daemon that is killed before each step that it takes for the first time."""
    way = Interrupter(world.real.sandbox, tmp_path)
    way.victim = daemon = world.new_daemon(way.kubeconfig).start()
    found = Db(world.real, daemon, version)
    yield found, way
    way.disarm()
    if not daemon.alive:
        daemon.start()
    found.end()
    daemon.kill()
    way.close()


def test_a_daemon_that_is_killed_at_every_step_begins_hands_over_and_fails_over_all_the_same(interrupted):
    db, way = interrupted
    real = db.real
    way.is_armed = True
    db.apply(replicas=2, failover={"delaySeconds": 1}, synchronous={"min": 1})
    in_spite(way, db.is_settled, "it begins")
    system = db.status["systemID"]
    way.disarm()
    if not way.victim.alive:
        way.victim.start()
    db.filled()
    assert {"set-user-shop done", "make-database-orders started", "make-slot-1 done", "PATCH pods/db-0"} <= {*way.steps}

    way.is_armed = True
    db.hand_over("db-1")
    in_spite(way, lambda: db.primary() == "db-1" and db.is_settled(), "db-1 takes over")
    assert {"DELETE pods/db-0", "promote-1 started", "promote-1 done"} <= {*way.steps}

    real.kubectl("delete", "pvc", "db-1-data", "-n", real.namespace, "--wait=false")
    real.delete("db-1", "--wait=false")
    in_spite(way, lambda: db.primary() == "db-0" and db.is_settled(), "db-0 takes over")
    assert {"promote-0 started", "promote-0 done"} <= {*way.steps}
    assert (db.status["systemID"], db.status["timeline"]) == (system, 3)
    assert db.rows("db-0") == db.rows("db-1") == [*range(1, 1001)]
