"""What a proposal promises, for all clusters: laws, and a few examples to read."""

from itertools import combinations, product
from math import ceil, floor

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kubectl_reconcile_operators.kafka.partitions.assignment import Broker, Partition, assignment_of, with_replicas
from kubectl_reconcile_operators.kafka.partitions.drain import drain
from kubectl_reconcile_operators.kafka.partitions.proposal import estimate_s, loads_of, propose
from kubectl_reconcile_operators.kafka.partitions.wish import ALL_GOALS, BalanceGoal, MoveMode, Wish
from tests.operators.kafka.clusters import clusters, shuffled

RACK, DISK, REPLICAS, LEADERS = BalanceGoal.RACK, BalanceGoal.DISK, BalanceGoal.REPLICAS, BalanceGoal.LEADERS
ADD, REMOVE = MoveMode.ADD_BROKERS, MoveMode.REMOVE_BROKERS


@st.composite
def wishes(draw, seen):
    goals = tuple(draw(st.lists(st.sampled_from(ALL_GOALS), min_size=1, max_size=4, unique=True)))
    mode = draw(st.sampled_from(MoveMode))
    named = st.lists(st.sampled_from(sorted(seen.brokers)), min_size=1, unique=True)
    excluded = draw(st.sampled_from([(), ("logs",), ("ord*",)]))
    return Wish(goals, mode, () if mode is MoveMode.FULL else tuple(draw(named)), excluded)


def after(seen, proposal):
    return with_replicas(seen, proposal.wanted())


def cluster(*held, brokers=4, racks="", sizes=(), **more):
    """Partitions ``t-0``, ``t-1``, … that stand where *held* says."""
    ids = range(1, brokers + 1)
    return assignment_of(
        [Broker(each, racks[each - 1] if racks else None, **more) for each in ids],
        [
            Partition("t", number, each, each, each[0], sizes[number] if sizes else 10, 1)
            for number, each in enumerate(held)
        ],
    )


@given(st.data())
def test_the_same_cluster_listed_in_another_order_has_the_same_proposal(data):
    seen = data.draw(clusters())
    wish = data.draw(wishes(seen))
    assert propose(seen, wish) == propose(shuffled(data.draw, seen), wish)


@given(st.data())
def test_every_partition_keeps_as_many_replicas_each_on_a_broker_of_its_own(data):
    seen = data.draw(clusters())
    for move in propose(seen, data.draw(wishes(seen))).moves:
        assert len(move.new) == len(set(move.new)) == len(move.old)
        assert set(move.new) <= seen.brokers.keys()


@given(st.data())
def test_what_was_proposed_and_done_leaves_nothing_to_propose(data):
    seen = data.draw(clusters())
    wish = data.draw(wishes(seen))
    proposal = propose(seen, wish)
    if wish.mode is not REMOVE:
        assert propose(after(seen, proposal), wish).moves == ()


def test_moves_that_only_show_once_others_are_made_are_part_of_the_proposal():
    seen = cluster((1,), (1,), (1,), (1, 2, 3), (1, 3), (1, 3), racks="aabb", sizes=(0, 8, 14, 18, 5, 5))
    wish = Wish((RACK, DISK, REPLICAS))
    assert propose(after(seen, propose(seen, wish)), wish).moves == ()


@given(st.data())
def test_excluded_topics_stay_as_they_are(data):
    seen = data.draw(clusters())
    wish = data.draw(wishes(seen))
    assert not [move for move in propose(seen, wish).moves if wish.excludes(move.key.topic)]


@given(st.data())
def test_a_drain_leaves_nothing_on_the_brokers_that_go_and_moves_nothing_else(data):
    seen = data.draw(clusters(racks=False))
    going = data.draw(st.lists(st.sampled_from(sorted(seen.brokers)), min_size=1, unique=True))
    drained = drain(seen, going)
    standing = {key for keys in drained.standing.values() for key in keys}
    if drained.proposal.problems:
        assert drained.proposal.moves == ()
        most = max(len(each.replicas) for each in seen.partitions.values())
        assert most > len(seen.brokers) - len(going)
    else:
        assert drain(after(seen, drained.proposal), going).is_empty
        assert {move.key for move in drained.proposal.moves} == standing
        assert drained.proposal.moved_replicas == sum(len(keys) for keys in drained.standing.values())


def racks_of(seen, replicas):
    return len({seen.brokers[each].rack for each in replicas})


@given(clusters(), st.sampled_from([(RACK,), (RACK, REPLICAS), (RACK, DISK), ALL_GOALS]))
def test_each_partition_stands_on_as_many_racks_as_it_can(seen, goals):
    racks = len({each.rack for each in seen.brokers.values()})
    for each in after(seen, propose(seen, Wish(goals))).partitions.values():
        assert racks_of(seen, each.replicas) == min(racks, len(each.replicas))


@given(st.data())
def test_no_partition_stands_on_fewer_racks_than_before(data):
    seen = data.draw(clusters())
    wish = data.draw(wishes(seen))
    if RACK in wish.goals:
        for move in propose(seen, wish).moves:
            stay = {each.rack for each in seen.brokers.values() if not wish.leaves(each.id)}
            assert racks_of(seen, move.new) >= min(racks_of(seen, move.old), len(stay))


def unevenness(seen, goal):
    """How far the brokers are from even, in the goal's measure."""
    has = [each.replicas if goal is REPLICAS else each.leaders for each in loads_of(seen)]
    return max(has) - min(has)


@given(clusters(racks=False))
def test_replicas_end_even(seen):
    assert unevenness(after(seen, propose(seen, Wish((REPLICAS,)))), REPLICAS) <= 1


def fewest_moves(seen, is_good, most):
    """The fewest replicas to move until a cluster is good, by trying all; *most* where fewer than that won't do."""
    slots = [(key, source) for key, each in seen.partitions.items() for source in each.replicas]
    for count in range(most):
        for chosen in combinations(slots, count):
            for targets in product(seen.brokers, repeat=count):
                held = _moved(seen, zip(chosen, targets, strict=True))
                if held and is_good(held):
                    return count
    return most


def _moved(seen, moves):
    held = {key: set(each.replicas) for key, each in seen.partitions.items()}
    for (key, source), target in moves:
        if target in held[key] or target in seen.partitions[key].replicas:
            return None
        held[key] = held[key] - {source} | {target}
    return held


def shortfall(seen, held, goals):
    """How far from what the goals ask for: racks that are missing, replicas beyond the mean rounded, bytes beyond the mean and a tenth."""
    racks = len({each.rack for each in seen.brokers.values()})
    counts = [sum(broker in each for each in held.values()) for broker in seen.brokers]
    sizes = [sum(seen.partitions[key].size_bytes for key in held if broker in held[key]) for broker in seen.brokers]
    slack = 0.1 if DISK in goals else 0
    mean, size = sum(counts) / len(counts), sum(sizes) / len(sizes)
    missing = sum(min(racks, len(each)) - racks_of(seen, each) for each in held.values())
    return (
        missing if RACK in goals else 0,
        _beyond(counts, floor(mean * (1 - slack)), ceil(mean * (1 + slack))) if REPLICAS in goals else 0,
        _beyond(sizes, size * 0.9, size * 1.1) if DISK in goals else 0,
    )


def _beyond(values, low, high):
    return sum(max(0, each - high, low - each) for each in values)


@pytest.mark.parametrize(
    "goals", [(REPLICAS,), (RACK,), (RACK, REPLICAS), (DISK,), (DISK, REPLICAS), (RACK, DISK, REPLICAS)], ids=str
)
@settings(derandomize=True)
@given(seen=clusters(brokers=(2, 4), partitions=(1, 4), replicas=2))
def test_no_more_replicas_move_than_trying_all_finds_plus_a_tenth(goals, seen):
    proposal = propose(seen, Wish(goals))
    reached = shortfall(
        seen, {key: set(each.replicas) for key, each in after(seen, proposal).partitions.items()}, goals
    )

    def is_as_good(held):
        return all(each <= other + 1e-6 for each, other in zip(shortfall(seen, held, goals), reached, strict=True))

    assume(proposal.moved_replicas <= 4)
    assert proposal.moved_replicas <= 1.1 * fewest_moves(seen, is_as_good, proposal.moved_replicas)


def test_estimates_take_the_busiest_broker():
    seen = cluster((1,), (1,), brokers=2, sizes=(100, 100))
    proposal = propose(seen, Wish((REPLICAS,)))
    assert (proposal.moved_bytes, estimate_s(proposal, 10), estimate_s(proposal, None)) == (100, 10, None)


def test_topics_that_stay_by_how_they_begin_or_are_kafkas_own_neednt_be_there_yet():
    proposal = propose(cluster((1,), (1,), brokers=2), Wish((REPLICAS,), excluded=("t2*", "__consumer_offsets")))
    assert (len(proposal.moves), proposal.problems) == (1, ())
    assert proposal.notes == ("no topic is called as excludeTopics says: t2*, __consumer_offsets",)


PROBLEMS = {
    "brokers with mode full": (Wish(brokers=(1,)), "mode full moves replicas between all brokers"),
    "no brokers with mode add-brokers": (Wish(mode=ADD), "names no brokers"),
    "unknown brokers": (Wish(mode=REMOVE, brokers=(9,)), "brokers 9 aren't there (hint: there are 1, 2, 3)"),
    "no goals": (Wish(()), "no goal is named"),
    "nobody left": (Wish((REPLICAS,), REMOVE, (1, 2, 3)), "no broker would be left"),
    "too few left": (Wish((REPLICAS,), REMOVE, (1,)), "2 brokers can't hold the 3 replicas of t "),
    "no racks": (Wish((RACK,)), "brokers 1, 2, 3 name no rack"),
    "unknown topics": (Wish((REPLICAS,), excluded=("t", "u", "v*")), "topics u aren't there (hint: leave them out; there are t)"),
}  # fmt: skip


@pytest.mark.parametrize(("wish", "says"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_cant_be_is_said(wish, says):
    (problem,) = propose(cluster((1, 2, 3), brokers=3), wish).problems
    assert says in problem
    assert "(hint: " in problem


def test_a_rack_that_would_be_empty_contradicts_the_goal_rack():
    proposal = propose(cluster((1, 2), brokers=3, racks="aab"), Wish(ALL_GOALS, REMOVE, (3,)))
    assert proposal.problems == ()
    proposal = propose(cluster((1, 3), brokers=3, racks="aab"), Wish(ALL_GOALS, REMOVE, (3,)))
    assert "1 of 2 racks are left" in proposal.problems[0]


def test_what_leaves_a_broker_goes_to_a_rack_of_its_own_before_it_goes_to_the_emptiest():
    seen = cluster((1, 2), (3,), (3,), brokers=4, racks="abcb")
    (move,) = propose(seen, Wish((RACK, REPLICAS), REMOVE, (1,))).moves
    assert (move.old, move.new) == ((1, 2), (3, 2))


def test_disks_without_room_are_said():
    seen = cluster((1,), (1,), brokers=2, sizes=(100, 50), usable_bytes=120)
    (problem,) = propose(seen, Wish((REPLICAS,), REMOVE, (1,))).problems
    assert "1 partitions find no broker with room for them: t-1, up to 50 bytes" in problem


def test_a_broker_that_doesnt_run_gets_and_loses_nothing():
    seen = cluster((1, 2), (1, 2), (1, 2), (1, 2), brokers=3)
    fenced = {**seen.brokers, 3: Broker(3, fenced=True)}
    proposal = propose(assignment_of(fenced.values(), seen.partitions.values()), Wish((REPLICAS,)))
    assert (proposal.moves, proposal.notes) == ((), ("brokers that don't run get and lose nothing: 3",))
