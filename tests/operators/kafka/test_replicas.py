"""Topics get more or fewer replicas: as many as wished, on as many racks as possible, and never off who alone has all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile_operators.kafka.partitions.assignment import Broker, Key, Partition, assignment_of
from kubectl_reconcile_operators.kafka.partitions.replicas import with_fewer, with_more
from tests.operators.kafka.clusters import clusters
from tests.operators.kafka.world import World, condition

ORDERS = {"name": "orders", "partitions": 2}


def cluster(*partitions, racks=(None, None, None, None), usable=None):
    brokers = [Broker(number, rack, usable) for number, rack in enumerate(racks)]
    return assignment_of(brokers, partitions)


def partition(*replicas, number=0, in_sync=None, size=1):
    return Partition("t", number, replicas, replicas if in_sync is None else in_sync, replicas[0], size, 1)


@given(clusters(), st.integers(1, 4))
def test_each_partition_gets_as_many_as_there_are_places_and_keeps_what_it_has(seen, count):
    counts = dict.fromkeys({key.topic for key in seen.partitions}, count)
    free = [each for each in seen.brokers.values() if not each.fenced]
    for key, replicas in with_more(seen, counts, ()).wanted.items():
        before = seen.partitions[key].replicas
        assert replicas[: len(before)] == before
        assert len({*replicas}) == len(replicas) <= max(count, len(before))
        assert {*replicas} - {*before} <= {each.id for each in free}


@given(clusters(), st.integers(1, 4))
def test_what_stays_of_a_partition_is_in_sync_and_leads_as_before(seen, count):
    counts = dict.fromkeys({key.topic for key in seen.partitions}, count)
    for key, replicas in with_fewer(seen, counts, ()).wanted.items():
        before = seen.partitions[key]
        assert len(replicas) == count < len(before.replicas)
        assert {*replicas} <= {*before.replicas} & {*before.in_sync}
        assert replicas[0] == before.replicas[0]


def test_another_rack_comes_before_the_broker_that_has_the_least():
    seen = cluster(partition(0, 1), partition(3, number=1), racks=("a", "b", "a", "c"))
    assert with_more(seen, {"t": 3}, ()).wanted[Key("t", 0)] == (0, 1, 3)


def test_a_broker_without_room_gets_none_and_that_is_told():
    found = with_more(cluster(partition(0, size=8), usable=4), {"t": 2}, ())
    assert found.wanted == {}
    assert found.stuck == (
        "no broker has room for another replica of t-0 (hint: add brokers or disk space, or lower the replicas)",
    )


def test_what_stands_on_a_broker_that_leaves_goes_first():
    assert with_fewer(cluster(partition(0, 3, 1)), {"t": 2}, (3,)).wanted == {Key("t", 0): (0, 1)}


def test_nothing_goes_while_what_would_stay_is_behind():
    found = with_fewer(cluster(partition(0, 1, 2, in_sync=(1, 2))), {"t": 2}, ())
    assert (found.wanted, found.stuck) == ({}, ("replicas of t-0 aren't in sync yet, so none is taken away",))


@pytest.fixture
def world():
    found = World(topics=[ORDERS], brokers=4)
    found.settle()
    found.took()
    return found


def counts(world):
    return {len(each["replicas"]) for each in world.topics["orders"]["partitions"]}


@pytest.mark.parametrize("count", [2, 4])
def test_a_topic_gets_another_number_of_replicas_by_moves_with_a_throttle(world, count):
    world.change(topics=[{**ORDERS, "replicas": count}])
    outcome = world.settle()
    steps = world.took()
    assert counts(world) == {count}
    assert [each.partition("-")[0] for each in steps][:1] == ["move"]
    assert "take-throttle-off" in steps
    assert condition(outcome, "Ready").status == "True"


def test_fewer_replicas_come_before_brokers_leave_that_they_would_keep(world):
    world.change(topics=[{**ORDERS, "replicas": 4}])
    world.settle()
    world.took()
    world.change(topics=[ORDERS], brokers=3)
    world.settle()
    assert counts(world) == {3}
    assert "unregister-broker-kf-3" in world.took()


def test_where_moves_are_proposed_each_number_of_replicas_takes_an_approval_of_its_own(world):
    world.change(rebalance={"mode": "Propose"})
    for count in (4, 3, 4):
        world.change(topics=[{**ORDERS, "replicas": count}])
        outcome = world.settle()
        assert counts(world) == {7 - count}
        assert condition(outcome, "Ready").reason == "MovesAwaitApproval"
        (held,) = outcome.actions
        world.approve(held.key)
        world.settle()
        assert counts(world) == {count}
