"""A database begins once: where the data of its primary is gone that is said, or a replica takes over, and no empty one is begun in its place, in a model of Kubernetes and PostgreSQL."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operators.postgres.faults import disk
from tests.operators.postgres.world import World, condition

LOST = {"Ready": "False", "Available": "False", "Degraded": "True"}


def formed(**spec):
    world = World(**spec)
    world.settle()
    world.write("first")
    world.run()
    world.taken.clear()
    return world


def said(outcome):
    return {type_: condition(outcome, type_).status for type_ in LOST}


def test_a_single_instance_whose_volume_comes_back_empty_is_data_loss_and_said():
    world = formed()
    world.empty("db-0")
    outcome = world.settle()
    assert (world.taken, said(outcome), world.systems, world.running) == ([], LOST, {"7000"}, {})
    degraded = condition(outcome, "Degraded")
    assert degraded.reason == condition(outcome, "Ready").reason == "DataLost"
    assert degraded.message == (
        "the volume of db-0, the primary, holds no database any more, and what only it held is gone with it"
        " (hint: restore a backup into another MyDatabase; delete this one. Where its data is back: kubectl delete pod db-0)"
    )
    assert world.cr["status"]["phase"] == "Failed"


def test_where_the_data_is_back_it_goes_on_once_somebody_has_deleted_the_pod():
    world = formed()
    kept = disk(world, "db-0")
    world.empty("db-0")
    world.settle()
    world.disks[world.claim("db-0")["metadata"]["uid"]] = kept
    world.delete("Pod", "db-0")
    assert condition(world.settle(), "Ready").status == "True"
    assert world.primary["disk"] == world.claim("db-0")["metadata"]["uid"]


def test_a_replica_takes_over_from_a_primary_whose_volume_came_back_empty():
    world = formed(replicas=3, failover={"delaySeconds": 30})
    world.empty("db-0")
    outcome = world.settle()
    assert world.taken == []
    assert condition(outcome, "Available").reason == "DataLost"
    assert "db-1" in condition(outcome, "Available").message
    world.later(30)
    outcome = world.settle()
    assert condition(outcome, "Ready").status == "True"
    assert world.primary["name"] == "db-1"
    assert {tuple(each["rows"]) for each in world.disks.values()} == {("first",)}
    assert len(world.disks) == 3


def test_without_failovers_it_says_whom_to_promote():
    world = formed(replicas=2)
    world.empty("db-0")
    outcome = world.settle()
    assert (world.taken, said(outcome)) == ([], LOST)
    assert "promote one of db-1 by pg_promote()" in condition(outcome, "Degraded").message
    assert disk(world, "db-1")["rows"] == ["first"]


def test_a_replica_whose_volume_comes_back_empty_begins_with_a_copy():
    world = formed(replicas=2)
    world.empty("db-1")
    assert condition(world.settle(), "Ready").status == "True"
    assert disk(world, "db-1")["rows"] == ["first"]


@pytest.mark.parametrize("replicas", [1, 2])
def test_nobody_is_led_to_a_server_of_another_database(replicas):
    world = formed(replicas=replicas)
    disk(world, "db-0")["system"] = "8000"  # as after an initdb by hand
    specs = {name: pod["spec"] for name, pod in world.pods.items()}
    outcome = world.settle()
    assert said(outcome) == LOST
    assert condition(outcome, "Degraded").reason == "DifferentDatabases"
    assert world.role("db-0") is None
    assert {name: pod["spec"] for name, pod in world.pods.items()} == specs
    noted = world.claim("db-0")["metadata"]["annotations"]
    assert noted["example.com/system-identifier"] == world.cr["status"]["systemID"] == "7000"


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([None, "Automatic", "Approve"]),
    st.lists(st.tuples(st.sampled_from(["empty", "kill", "delete", "forget"]), st.integers(0, 2)), max_size=6),
)
def test_whatever_is_lost_no_second_database_is_begun(replicas, failover, events):
    wish = {"failover": {"delaySeconds": 30, "mode": failover}} if failover else {}
    world = formed(replicas=replicas, **wish)
    for event, number in events:
        slot = f"db-{number}"
        if slot in world.pods and event == "kill":
            world.kill(slot)
        elif slot in world.pods and event == "delete":
            world.delete("Pod", slot)
        elif (
            slot in world.pods
            and world.claim(slot)
            and world.claim(slot)["metadata"]["uid"] in world.disks
            and event == "empty"
        ):
            world.empty(slot)
        world.later(40)
        world.step(notes=event != "forget")
    for _ in range(3):
        world.later(60)
        outcome = world.settle(150)
    assert world.systems == {"7000"}
    assert all(each["rows"][:1] == ["first"] for each in world.disks.values())
    if not world.disks:
        assert condition(outcome, "Ready").reason == "DataLost"
