"""What of a proposal is next: told from what Kafka says alone, a step at a time, to the end or back."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile_operators.kafka.partitions.assignment import Key, Partition, assignment_of
from kubectl_reconcile_operators.kafka.partitions.batches import InFlight, elections, next_batch, strays, undo
from kubectl_reconcile_operators.kafka.partitions.proposal import proposal_of, propose
from kubectl_reconcile_operators.kafka.partitions.wish import BalanceGoal, Wish
from tests.operators.kafka.clusters import Cluster, clusters

GOALS = (BalanceGoal.DISK, BalanceGoal.REPLICAS, BalanceGoal.LEADERS)
T0, T1 = Key("orders", 0), Key("orders", 1)


def after(kafka, moves, most):
    return next_batch(moves, kafka.seen, kafka.flights.values(), most)


@given(clusters(racks=False), st.integers(1, 3), st.data())
def test_a_proposal_is_carried_out_a_few_at_a_time_nothing_twice_and_ends_as_proposed(seen, most, data):
    moves = propose(seen, Wish(GOALS)).moves
    kafka = Cluster(seen)
    while not (batch := after(kafka, moves, most)).is_finished:
        kafka.submit(batch.submit)
        assert len(kafka.flights) <= most
        if kafka.flights:
            kafka.finish(data.draw(st.sampled_from(sorted(kafka.flights))))
    assert {key: kafka.seen.partitions[key].replicas for key in batch.done} == {each.key: each.new for each in moves}
    assert len(kafka.submitted) == len(set(kafka.submitted)) == len(moves)


@given(clusters(racks=False), st.data())
def test_a_change_of_mind_takes_back_what_is_in_flight_in_its_old_order_and_keeps_what_was_moved(seen, data):
    moves = propose(seen, Wish(GOALS)).moves
    kafka = Cluster(seen)
    kafka.submit(after(kafka, moves, 3).submit)
    for key in data.draw(st.sets(st.sampled_from(sorted(kafka.flights)))) if kafka.flights else ():
        kafka.finish(key)
    moved = {key for key in kafka.submitted if key not in kafka.flights}
    while not (batch := undo(moves, kafka.seen, kafka.flights.values())).is_finished:
        kafka.cancel(batch.cancel)
        kafka.submit(batch.submit)
    stands = {each.key: each.new if each.key in moved else each.old for each in moves}
    assert {key: kafka.seen.partitions[key].replicas for key in stands} == stands


@given(clusters(brokers=(4, 4), racks=False, empty=False), st.data())
def test_another_proposal_midway_takes_back_what_goes_elsewhere_and_ends_as_the_other_one(seen, data):
    moves = propose(seen, Wish(GOALS)).moves
    kafka = Cluster(seen)
    kafka.submit(after(kafka, moves, 3).submit)
    orders = st.permutations(sorted(seen.brokers))
    other = {key: tuple(data.draw(orders)[: len(each.replicas)]) for key, each in seen.partitions.items()}
    changed = proposal_of(kafka.seen, other).moves
    while not (batch := after(kafka, changed, 2)).is_finished:
        kafka.cancel(batch.cancel)
        kafka.submit({key: new for key, new in batch.submit.items() if key not in batch.cancel})
        for key in batch.waiting:
            kafka.finish(key)
    assert {key: each.replicas for key, each in kafka.seen.partitions.items()} == other


def two_topics():
    return assignment_of([], [_partition(T0), _partition(T1)])


def _partition(key):
    return Partition(*key, (1, 2), (1, 2), 1, 10, 1)


def test_there_and_not_in_sync_yet_is_waited_for_and_counts():
    seen = two_topics()
    moves = proposal_of(seen, {T0: (3, 2), T1: (3, 2)}).moves
    there = replace(seen.partitions[T0], replicas=(3, 2), in_sync=(2,))
    batch = next_batch(moves, assignment_of([], [there, seen.partitions[T1]]), [], 1)
    assert (batch.waiting, batch.left, batch.submit) == ((T0,), (T1,), {})


def test_a_topic_that_is_gone_holds_nothing_up():
    seen = two_topics()
    moves = proposal_of(seen, {T0: (3, 2)}).moves
    batch = next_batch(moves, assignment_of([], [seen.partitions[T1]]), [], 1)
    assert (batch.gone, batch.is_finished) == ((T0,), True)


def test_other_peoples_reassignments_count_and_are_left_alone():
    seen = two_topics()
    moves = proposal_of(seen, {T0: (3, 2)}).moves
    theirs = InFlight(T1, (1, 2, 3), (3,), (1,))
    batch = next_batch(moves, seen, [theirs], 1)
    assert (batch.cancel, batch.submit, batch.left) == ((), {}, (T0,))
    assert strays(moves, [theirs]) == (T1,)


def test_preferred_leaders_that_dont_lead_are_elected():
    seen = two_topics()
    assert elections([replace(seen.partitions[T0], leader=2), seen.partitions[T1]]) == (T0,)
