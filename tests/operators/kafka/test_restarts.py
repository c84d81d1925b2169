"""Which broker may stop: never one that a partition needs, and no roll that stops forever."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile_operators.kafka.partitions.assignment import Broker, Key, Partition, assignment_of
from kubectl_reconcile_operators.kafka.partitions.restarts import next_stop, restart_order, stop_of
from tests.operators.kafka.clusters import clusters


def stopped(seen, broker):
    """The cluster once *broker* is away: out of sync everywhere."""
    partitions = (
        replace(each, in_sync=tuple(one for one in each.in_sync if one != broker)) for each in seen.partitions.values()
    )
    return assignment_of(seen.brokers.values(), partitions)


@st.composite
def ailing(draw):
    """A cluster some of whose replicas are behind, and some of whose brokers don't run."""
    seen = draw(clusters())
    away = draw(st.sets(st.sampled_from(sorted(seen.brokers)), max_size=1))
    partitions = []
    for each in seen.partitions.values():
        behind = draw(st.sets(st.sampled_from(each.replicas))) | away
        in_sync = tuple(one for one in each.replicas if one not in behind)
        partitions.append(replace(each, in_sync=in_sync, leader=in_sync[0] if in_sync else None))
    return assignment_of([replace(each, fenced=each.id in away) for each in seen.brokers.values()], partitions)


@given(ailing())
def test_no_partition_falls_below_what_it_needs_by_our_doing(seen):
    for broker in seen.brokers:
        if stop_of(broker, seen).is_allowed():
            after = stopped(seen, broker)
            for key, each in seen.partitions.items():
                if broker in each.in_sync:
                    assert len(after.partitions[key].in_sync) >= min(each.min_in_sync, len(each.replicas) - 1) >= 1


@given(clusters())
def test_a_whole_cluster_is_rolled_to_its_end_with_the_controller_last(seen):
    controller = max(seen.brokers)
    left, order = set(seen.brokers), []
    while stop := next_stop(seen, left, controller):
        assert stop.is_allowed(approved=True)
        order.append(stop.broker)
        left -= {stop.broker}
    assert order == sorted(seen.brokers)


def cluster(*partitions, fenced=()):
    return assignment_of([Broker(each, fenced=each in fenced) for each in (1, 2, 3)], partitions)


def partition(in_sync, replicas=(1, 2, 3), needs=2):
    return Partition("t", 0, replicas, in_sync, in_sync[0] if in_sync else None, 1, needs)


CASES = {
    "all in sync": (cluster(partition((1, 2, 3))), ()),
    "as many as needed": (
        cluster(partition((1, 2))),
        ("1 partitions need broker 1 to have enough replicas in sync: t-0",),
    ),
    "one is behind, and could be spared": (
        cluster(partition((1, 2), needs=1)),
        ("1 partitions have replicas that aren't in sync again yet: t-0",),
    ),
    "it is the one behind": (cluster(partition((2, 3))), ()),
    "another doesn't run": (cluster(partition((1, 2, 3)), fenced=(3,)), ("brokers that don't run: 3",)),
    "it doesn't run itself": (cluster(partition((1, 2)), fenced=(1,)), ()),
}


@pytest.mark.parametrize(("seen", "waits"), CASES.values(), ids=CASES)
def test_what_a_stop_waits_for(seen, waits):
    assert stop_of(1, seen).waits == waits


def test_nothing_stops_while_partitions_move():
    assert stop_of(1, cluster(), [Key("t", 0)]).waits == ("1 partitions are being moved: t-0",)


def test_a_single_replica_is_named_and_needs_approval():
    stop = stop_of(1, cluster(partition((1,), replicas=(1,))))
    assert (stop.single, stop.is_allowed(), stop.is_allowed(approved=True)) == ((Key("t", 0),), False, True)


def test_a_partition_without_a_replica_to_spare_is_named_and_blocks_nothing():
    stop = stop_of(1, cluster(partition((1, 2), replicas=(1, 2))))
    assert (stop.short, stop.is_allowed()) == ((Key("t", 0),), True)


def test_what_doesnt_run_restarts_first_then_what_is_behind_the_controller_last():
    seen = assignment_of(
        [Broker(each, fenced=each == 4) for each in (1, 2, 3, 4)], [partition((2, 1), replicas=(2, 1, 3))]
    )
    assert restart_order(seen, [1, 2, 3, 4], 1) == [4, 3, 2, 1]
