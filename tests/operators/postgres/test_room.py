"""A volume that is full, in a model of Kubernetes and PostgreSQL: it is told, nobody takes over who would end in its turn, and all goes on once there is room."""

import pytest

from tests.operators.postgres.faults import asked, disk
from tests.operators.postgres.world import NO_ROOM, World, condition

TOLD = "the volume of db-0, the primary, is full (1Gi); nothing can be written until there is room (hint: set .spec.storage.size to more than 1Gi)"
AUTOMATIC = {"delaySeconds": 30}


def formed(replicas=3, **spec):
    world = World(replicas=replicas, **spec)
    world.settle()
    world.write("first")
    world.run()
    world.taken.clear()
    return world


def degraded(outcome):
    found = condition(outcome, "Degraded")
    return found.reason, found.message


def test_a_server_whose_volume_is_full_goes_on_and_says_which_how_large_and_what_to_do():
    world = formed(replicas=1)
    world.full.add("db-0")
    outcome = world.settle()
    assert degraded(outcome) == ("DiskFull", TOLD)
    assert [condition(outcome, each).status for each in ("Available", "Ready")] == ["True", "False"]
    assert condition(outcome, "Ready").reason == "DiskFull"

    world.claim("db-0")["status"] = {"capacity": {"storage": "1Gi"}}
    world.cr["spec"]["storage"] = {"size": "2Gi"}
    outcome = world.settle()
    assert world.claim("db-0")["spec"]["resources"]["requests"]["storage"] == "2Gi"
    assert degraded(outcome)[1].endswith("nothing can be written until there is room: it is to grow to 2Gi")

    world.full.clear()
    outcome = world.settle()
    assert [condition(outcome, each).status for each in ("Ready", "Degraded")] == ["True", "False"]
    assert world.taken == []


def test_one_that_ends_for_lack_of_room_says_so_all_the_time_and_comes_back_with_its_rows_once_there_is_some():
    world = formed(replicas=1)
    world.fill("db-0")
    for _ in range(20):
        assert degraded(world.step()) == ("DiskFull", TOLD)
        world.later(10)
    assert world.taken[:4] == ["delete db-0", "create db-0"] * 2
    world.full.clear()
    world.later(60)
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert (world.primary["name"], disk(world, "db-0")["rows"]) == ("db-0", ["first"])


@pytest.mark.parametrize("mode", ["Automatic", "Approve"])
@pytest.mark.parametrize("synchronous", [{}, {"synchronous": {"min": 1}}], ids=["asynchronous", "synchronous"])
def test_nobody_takes_over_whose_volume_is_full_too(mode, synchronous):
    world = formed(failover={**AUTOMATIC, "mode": mode}, **synchronous)
    world.fill("db-0", "db-1", "db-2")
    for _ in range(40):
        outcome = world.step()
        world.later(10)
        assert degraded(outcome)[0] == "DiskFull"
    assert {*world.taken} == {"delete db-0", "create db-0"}
    assert all(f"the volume of db-{at}" in degraded(outcome)[1] for at in range(3))
    assert outcome.actions == ()
    world.full.clear()
    world.later(60)
    world.settle()
    assert disk(world, world.primary["name"])["rows"] == ["first"]


def test_of_those_whose_log_goes_furthest_one_with_room_takes_over():
    world = formed(failover=AUTOMATIC)
    world.fill("db-0", "db-1")
    for _ in range(10):
        world.step()
        world.later(10)
    assert (world.primary["name"], disk(world, "db-2")["rows"]) == ("db-2", ["first"])


def test_nobody_takes_over_with_room_and_fewer_rows():
    world = formed(failover=AUTOMATIC)
    disk(world, "db-2")["rows"].clear()
    world.fill("db-0", "db-1")
    for _ in range(10):
        world.step()
        world.later(10)
    assert not any("promote" in each for each in world.taken)


def test_who_fills_up_in_the_midst_of_a_failover_takes_over_once_there_is_room():
    world = formed(replicas=2, failover=AUTOMATIC)
    world.broken.add("db-0")
    world.kill("db-0")
    world.settle()
    world.later(30)
    world.step()
    assert world.cr["status"]["targetPrimary"] == "db-1"
    world.full.add("db-1")
    outcome = world.settle()
    assert (
        condition(outcome, "Progressing").message
        == "db-1, whose log goes furthest, takes over once there is room on its volume"
    )
    assert not any("promote" in each for each in world.taken)
    world.full.clear()
    world.settle()
    assert world.primary["name"] == "db-1"


def test_a_switchover_to_one_whose_volume_is_full_waits_and_the_primary_serves():
    world = asked(formed())
    world.full.add("db-1")
    outcome = world.settle()
    assert condition(outcome, "Progressing").message == "db-1, which is to take over, has no room left on its volume"
    assert degraded(outcome)[0] == "DiskFull"
    assert (world.taken, world.primary["name"]) == ([], "db-0")
    world.cr["spec"] |= {"databases": [{"name": "orders"}], "replicas": 4}
    outcome = world.settle()  # all else goes on meanwhile
    assert world.taken == ["make-database orders", "make-slot db_3", "create db-3"]
    assert condition(outcome, "Progressing").message == "db-1, which is to take over, has no room left on its volume"
    world.full.clear()
    world.settle()
    assert world.primary["name"] == "db-1"


@pytest.mark.parametrize("tells_end", [True, False])
def test_where_the_one_asked_for_fills_up_meanwhile_another_one_with_all_of_the_log_takes_over(tells_end):
    world = formed()
    world.tells_end = tells_end
    asked(world)
    world.step()
    world.step()
    world.full.add("db-1")
    world.settle()
    assert world.primary["name"] != "db-1"
    assert disk(world, world.primary["name"])["rows"] == ["first"]


def test_a_primary_that_restarts_for_a_change_hands_over_to_one_with_room():
    world = formed(parameters={"max_connections": "300"})
    world.cr["spec"]["parameters"] = {"max_connections": "400"}
    while "create db-2" not in world.taken:
        world.step()
    world.full.add("db-1")
    world.settle()
    assert world.primary["name"] == "db-2"


def test_a_decision_for_somebody_is_told_with_the_volume_that_is_full():
    world = formed(replicas=2, failover={**AUTOMATIC, "mode": "Approve"})
    world.fill("db-0")
    told = []
    for _ in range(10):
        told.append(degraded(world.step()))
        world.later(10)
    offers = [message for reason, message in told if reason == "FailoverOffered"]
    assert len(offers) > 1  # also while it isn't tried again yet
    assert all(each.endswith(TOLD) for each in offers)
    assert {reason for reason, _ in told} == {"FailoverOffered", "DiskFull"}


def test_one_that_lets_nobody_in_for_lack_of_room_says_so_too():
    world = formed(replicas=1)
    world.locked.add("db-0")
    outcome = world.settle()
    assert degraded(outcome) == ("DiskFull", TOLD)
    assert [condition(outcome, each).status for each in ("Available", "Ready")] == ["False", "False"]
    assert (world.taken, world.role("db-0")) == ([], "primary")  # sessions that are open go on


SAID = {
    "log that can't be written": (f"PANIC:  {NO_ROOM}\nSTATEMENT:  insert into rows", True),
    "a start": (f"FATAL:  {NO_ROOM}", True),
    "a copy": ("pg_basebackup: error: could not write to file: No space left on device", True),
    "a statement of a server that ended by something else": ("2026 UTC [7] ERROR:  could not extend file: No space left on device\nLOG:  terminated by signal 9", False),
    "shared memory": ("FATAL:  could not resize shared memory segment: No space left on device", False),
    "something else": ("out of memory", False),
    "nothing": (None, False),
}  # fmt: skip


@pytest.mark.parametrize(("said", "is_full"), SAID.values(), ids=SAID)
def test_what_counts_as_lack_of_room(said, is_full):
    world = formed(replicas=1)
    world.kill("db-0")
    world.pods["db-0"]["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = said
    outcome = world.step()
    assert (degraded(outcome)[0] == "DiskFull") is is_full
