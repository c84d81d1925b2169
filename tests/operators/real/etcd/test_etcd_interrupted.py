"""A daemon that is killed at each step of its work on real members, once: whoever comes after it takes each step once, and loses nobody."""

import pytest

from tests.chaos.etcd.live import LiveCluster
from tests.operators.real.etcd.backups import backup, condition, restore, restored, status
from tests.operators.real.etcd.cluster import NEW, OLD, Db, claim
from tests.operators.real.etcd.keys import put, stored
from tests.operators.real.interrupter import Interrupter, in_spite

pytestmark = pytest.mark.scenario(minutes=2)


@pytest.fixture(scope="module")
def cluster(world, tmp_path_factory):
    """An EtcdCluster, and a daemon that is killed before each step that it takes for the first time, while it has to be."""
    way = Interrupter(world.real.sandbox, tmp_path_factory.mktemp("way"))
    way.victim = world.new_daemon(way.kubeconfig).start()
    yield Db(world.real, way.victim), way
    spared(way)
    Db(world.real, way.victim).end()
    way.victim.kill()
    way.close()


@pytest.fixture
def interrupted(cluster):
    """The same, while nobody is killed yet, and no step was taken."""
    spared(cluster[1])
    cluster[1].steps.clear()
    return cluster


def spared(way):
    """Kill nobody any more; the daemon runs, or runs again."""
    way.disarm()
    if not way.victim.alive:  # by a step that came after what was waited for
        way.victim.start()


def settled_in_spite(way, live):
    """Start the daemon again each time that it is killed, until all is as specified."""
    in_spite(way, lambda: not live.unrest(), "all is as specified")
    return live.settled()


def test_a_daemon_that_is_killed_at_every_step_of_a_scaling_takes_each_once(interrupted):
    db, way = interrupted
    db.apply(size=1)
    live = LiveCluster(db.real.sandbox, db.real.namespace)
    first = live.settled()

    way.is_armed = True
    db.apply(size=3)
    after = settled_in_spite(way, live)
    assert after.members["db-0"] == first.members["db-0"]
    assert sorted(after.members) == ["db-0", "db-1", "db-2"]
    for slot in ("db-1", "db-2"):
        member = after.members[slot]
        for step in (
            f"add-{slot} started", f"add-{slot} done", f"PATCH persistentvolumeclaims/{slot}-data", f"PATCH pods/{slot}",
            f"promote-{member} started", f"promote-{member} done",
        ):  # fmt: skip
            assert step in way.steps, way.steps


def test_a_daemon_that_is_killed_at_every_step_of_an_upgrade_takes_one_snapshot_first_and_loses_nobody(interrupted):
    db, way = interrupted
    to, name = {"claimName": "backups", "image": "python"}, f"db-before-{NEW.replace('.', '-')}"
    db.real.apply(claim("backups"))
    db.apply(version=OLD, backup=to)
    live = LiveCluster(db.real.sandbox, db.real.namespace)
    first = live.settled()
    put(live, "db-0", "first", "1")

    way.is_armed = True
    db.apply(version=NEW, backup=to)
    assert settled_in_spite(way, live) == first
    assert db.cr["status"]["currentVersion"] == NEW
    assert stored(live, "db-1", "first") == ["1"]
    taken = status(db.real, name)
    assert (taken["succeeded"], taken["etcdVersion"], len(taken["history"])) == (True, OLD, 1)
    made = [f"PATCH etcdbackups/{name}", f"PATCH jobs/{name}-once"]
    moved = [way.steps.index(f"DELETE pods/{slot}") for slot in first.members]
    assert max(way.steps.index(step) for step in made) < min(moved), way.steps


def test_a_daemon_that_is_killed_at_every_step_of_a_backup_and_of_a_restore_takes_each_once(interrupted):
    db, way = interrupted
    real = db.real
    real.apply(claim("backups"))
    db.apply(version=NEW)
    live = LiveCluster(real.sandbox, real.namespace)
    first = live.settled()
    put(live, "db-0", "second", "2")

    way.is_armed = True
    backup(real, "once")
    in_spite(way, lambda: condition(real, "once")["reason"] == "BackedUp", "it is backed up")
    assert "PATCH jobs/once-once" in way.steps
    taken = status(real, "once")
    assert (taken["succeeded"], len(taken["history"])) == (True, 1)

    spared(way)
    db.lose()
    way.steps.clear()
    way.is_armed = True
    restore(real, "again")
    db.apply(version=NEW, size=1, restoreFrom={"name": "again"})
    in_spite(way, lambda: restored(real, "again").get("phase") == "Succeeded", "it is restored")
    after = settled_in_spite(way, live)
    for step in ("PATCH persistentvolumeclaims/db-0-data", "PATCH jobs/again-restore", "PATCH pods/db-0"):
        assert step in way.steps, way.steps
    assert restored(real, "again")["seed"]["claimUID"] == after.volumes["db-0"] != first.volumes["db-0"]
    assert restored(real, "again")["sha256"] == taken["sha256"]
    assert stored(live, "db-0", "second") == ["2"]
