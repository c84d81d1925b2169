"""Shares of places: one tenant's slow work leaves the places to others, and bounds itself."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.fair.shares import Limits, Shares

LIMITS = Limits(late=2, late_in_all=5)
PLACES = 8


def filled(shares, tenant, places=PLACES):
    """Return how many places a tenant gets."""
    count = 0
    while shares.has_place(tenant, places):
        shares.take(tenant)
        count += 1
    return count


def test_no_tenant_has_all_places():
    shares = Shares(LIMITS)
    assert filled(shares, "a") == 6
    assert filled(shares, "b") == 2


def test_of_one_place_everybody_may_have_that():
    assert filled(Shares(LIMITS), "a", places=1) == 1


def test_who_outstays_leaves_the_place_to_others_and_gets_no_more_than_a_few_such():
    shares = Shares(LIMITS)
    filled(shares, "a")
    assert [shares.outstay("a") for _ in range(5)] == [True] * 5, "those that have begun go on"
    assert shares.held == 1
    assert not shares.has_place("a", PLACES)
    for _ in range(3):
        shares.give_back("a", was_late=True)
    assert not shares.has_place("a", PLACES)
    shares.give_back("a", was_late=True)
    assert shares.has_place("a", PLACES)


def test_who_has_no_name_shares_with_nobody():
    shares = Shares(LIMITS)
    assert filled(shares, "") == PLACES
    assert not shares.outstay("")


@given(st.lists(st.tuples(st.sampled_from(["take", "outstay", "done"]), st.sampled_from("abc"), st.booleans())))
def test_never_more_than_there_are(steps):
    shares, held, late = Shares(LIMITS), Counter(), Counter()
    for what, tenant, was_late in steps:
        if what == "take" and shares.has_place(tenant, PLACES):
            assert late[tenant] < LIMITS.late
            shares.take(tenant)
            held[tenant] += 1
        elif what == "outstay" and held[tenant] and shares.outstay(tenant):
            held[tenant] -= 1
            late[tenant] += 1
        elif what == "done" and (late if was_late else held)[tenant]:
            shares.give_back(tenant, was_late=was_late)
            (late if was_late else held)[tenant] -= 1
        assert shares.held == held.total() <= PLACES
        assert max(held.values(), default=0) <= LIMITS.part_of(PLACES)
        assert late.total() <= LIMITS.late_in_all
        assert all(shares.late(each) == late[each] for each in "abc")
