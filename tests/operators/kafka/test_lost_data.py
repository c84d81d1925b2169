"""A Kafka begins a cluster once: where most controllers have lost what they knew, that is said, and none is begun in its place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_reconcile_operators.kafka.names import BEGIN
from tests.operators.kafka.world import World, condition

LOST = {"Ready": "False", "Available": "False", "Degraded": "True"}


def formed(**spec):
    world = World(**spec)
    world.settle()
    world.took()
    return world


def empty(world, *numbers):
    """Let volumes come back empty, and what runs on them start again in the same pods."""
    for number in numbers:
        world.disks.pop(number)
        world.restarts[number] = world.restarts.get(number, 0) + 1
    world.run()


def said(outcome):
    return {type_: condition(outcome, type_).status for type_ in LOST}


@pytest.mark.parametrize("controllers", [1, 3])
def test_nobody_begins_a_cluster_who_has_begun_one(controllers):
    world = formed(brokers=4, controllers=controllers)
    assert {pod["metadata"]["annotations"][BEGIN] for pod in world.pods.values()} == {"joins"}


@pytest.mark.parametrize("controllers", [1, 3])
def test_where_all_volumes_are_gone_that_is_said_and_nothing_is_made(controllers):
    world = formed(brokers=4, controllers=controllers)
    for number in range(4):
        world.lose_volume(number)
    outcome = world.settle()
    assert (world.took(), said(outcome)) == ([], LOST)
    assert condition(outcome, "Degraded").reason == "DataLost"
    assert "none is begun in its place" in condition(outcome, "Degraded").message
    assert world.cr["status"]["phase"] == "Failed"


@pytest.mark.parametrize("lost", [(0, 1), (0, 1, 2)])
def test_where_most_volumes_come_back_empty_that_is_said(lost):
    world = formed()
    empty(world, *lost)
    outcome = world.settle()
    assert (world.took(), said(outcome)) == ([], LOST)
    assert condition(outcome, "Degraded").reason == "DataLost"
    names = ", ".join(f"kf-{number}" for number in lost)
    assert condition(outcome, "Ready").message.startswith(f"the data of {names} is gone")


def test_a_single_broker_whose_volume_comes_back_empty_begins_no_cluster():
    world = formed(brokers=1, controllers=1)
    empty(world, 0)
    outcome = world.settle()
    assert (world.took(), said(outcome)) == ([], LOST)
    assert world.disks[0]["begins"] == "joins"


def test_one_controller_that_comes_back_empty_is_let_in_again():
    world = formed()
    empty(world, 1)
    outcome = world.settle()
    assert world.took() == ["remove-voter-kf-1", "add-voter-kf-1"]
    assert condition(outcome, "Ready").status == "True"


def test_what_was_lost_and_fetched_again_isn_t_lost_when_all_are_away():
    world = formed()
    for number in (0, 1):
        empty(world, number)
        world.settle()
    world.down = {0, 1, 2}
    assert condition(world.settle(), "Ready").reason == "BrokerAway"


def test_a_volume_that_was_emptied_under_a_broker_is_formatted_by_another_pod():
    world = formed()
    world.down = {2}
    world.run()
    broken = {
        "name": "kafka",
        "state": {"waiting": {}},
        "lastState": {"terminated": {"message": "RuntimeException: No readable meta.properties files found."}},
    }
    world.pods[2]["status"] |= {"containerStatuses": [broken]}
    run, world.run = world.run, lambda: None
    world.step()
    assert world.took() == ["delete kf-2"]
    world.run = run
    world.down, _ = set(), world.disks.pop(2)
    world.settle()
    assert world.took() == ["create kf-2", "remove-voter-kf-2", "add-voter-kf-2"]


@settings(max_examples=40)
@given(st.sampled_from([1, 3]), st.integers(0, 2), st.sets(st.integers(0, 4)), st.sets(st.integers(0, 4)))
def test_whatever_is_lost_nobody_begins_a_second_cluster(controllers, more, emptied, gone):
    brokers = controllers + more
    world = formed(brokers=brokers, controllers=controllers)
    for number in gone & set(range(brokers)):
        world.lose_volume(number)
    empty(world, *(emptied & set(world.pods)))
    outcome = world.settle(100)
    assert all(disk["begins"] == "joins" for number, disk in world.disks.items() if number in emptied | gone)
    lost = (emptied | gone) & set(range(controllers))
    is_lost = 2 * (controllers - len(lost)) <= controllers
    assert (condition(outcome, "Ready").reason == "DataLost") == is_lost
    assert is_lost or condition(outcome, "Ready").status == "True"
