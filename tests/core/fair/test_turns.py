"""Turns between tenants: nobody is served twice while somebody waits who wasn't served since."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.fair.turns import Turns

TENANTS = "abcd"


def taken(turns, count):
    return [turns.next() for _ in range(count)]


def test_of_one_tenant_the_most_urgent_goes_first_and_equals_in_their_order():
    turns = Turns()
    for what, urgency in {"poll": 0, "one": 100, "two": 100, "asked": 900}.items():
        turns.add(what, "a", urgency)
    assert taken(turns, 5) == ["asked", "one", "two", "poll", None]


def test_whoever_asks_for_much_and_urgently_has_one_turn_of_two_where_another_waits():
    turns = Turns()
    for number in range(100):
        turns.add(f"a{number}", "a", 40_000)
    for number in range(3):
        turns.add(f"b{number}", "b")
    assert [each[0] for each in taken(turns, 8)] == [*list("ababab"), "a", "a"]


def test_who_is_served_and_asks_again_at_once_comes_after_those_who_wait():
    turns = Turns()
    turns.add("poll", "b")
    for _ in range(5):
        turns.add("asked", "a", 40_000)
    assert turns.next() == "asked"
    assert turns.next() == "poll", "its tenant has had no turn since"
    turns.add("asked", "a", 40_000)
    turns.add("drift", "b", 20_000)
    assert taken(turns, 2) == ["asked", "drift"], "each has had one, and the first of them longer ago"


def test_somebody_who_was_not_served_lately_goes_first_for_what_is_urgent():
    turns = Turns()
    for tenant in "abc":
        turns.add(f"poll of {tenant}", tenant)
    turns.add("asked", "d", 40_000)
    assert turns.next() == "asked"


def test_who_may_have_no_turn_keeps_their_place():
    turns = Turns()
    turns.add("a", "a")
    turns.add("b", "b")
    assert turns.next(lambda tenant: tenant != "a") == "b"
    turns.add("b again", "b", 40_000)
    assert turns.next() == "a"


def test_what_is_withdrawn_has_no_turn():
    turns = Turns()
    places = [turns.add(number, "a") for number in range(3)]
    turns.withdraw(places[0])
    turns.withdraw(places[2])
    assert taken(turns, 2) == [1, None]
    assert not turns
    assert not turns.waits("a")


STEPS = st.lists(
    st.one_of(st.tuples(st.sampled_from(TENANTS), st.sampled_from([0, 10_000, 40_000])), st.just("next")), max_size=200
)


@given(STEPS)
def test_between_two_turns_of_one_tenant_all_others_who_waited_had_theirs(steps):
    turns, waits, history = Turns(), dict.fromkeys(TENANTS, 0), []
    since = {}  # who waits, with how many turns there had been when they came to
    for step in steps:
        if step == "next":
            found = turns.next()
            assert (found is None) == (not any(waits.values()))
            if found is None:
                continue
            history.append(found)
            waits[found] -= 1
            since.pop(found)
            if waits[found]:
                since[found] = len(history)
        else:
            tenant, urgency = step
            turns.add(tenant, tenant, urgency)
            waits[tenant] += 1
            since.setdefault(tenant, len(history))
        for tenant, came in since.items():
            others = [each for each in history[came:] if each != tenant]
            assert all(others.count(each) <= 1 for each in TENANTS), f"{tenant} waits, and somebody was served twice"


@given(STEPS)
def test_everything_is_taken_once(steps):
    turns, added, found = Turns(), 0, 0
    for step in steps:
        if step == "next":
            found += turns.next() is not None
        else:
            turns.add(step, step[0], step[1])
            added += 1
    while turns.next() is not None:
        found += 1
    assert found == added


@pytest.mark.parametrize("count", [1, 7])
def test_a_turn_of_each_of_many_tenants_comes_before_the_second_of_any(count):
    turns = Turns()
    for number in range(count):
        for _ in range(3):
            turns.add(number, str(number), number * 1000)
    assert sorted(taken(turns, count)) == list(range(count))
