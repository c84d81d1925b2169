"""Who gives up a place where all are taken: nobody is kept out by those who have many, and nobody is driven out by equals."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.fair.giving_way import gives_way

TENANTS = "abcd"
HELD = st.dictionaries(st.sampled_from(TENANTS), st.integers(1, 9))


@given(HELD, st.sampled_from(TENANTS))
def test_whoever_gives_way_has_as_many_as_the_newcomer_still(held, newcomer):
    most = gives_way(held, newcomer)
    if most is None:
        assert all(count <= held.get(newcomer, 0) + 1 for count in held.values())
    else:
        assert most != newcomer
        assert held[most] == max(held.values())
        assert held[most] - 1 >= held.get(newcomer, 0) + 1


@given(HELD, st.lists(st.sampled_from(TENANTS), min_size=200, max_size=200))
def test_all_who_go_on_asking_have_about_as_many_in_the_end(held, comers):
    counts = Counter(held)
    for newcomer in (*comers, *TENANTS * 40):
        if counts and (most := gives_way(counts, newcomer)) is not None:
            counts[most] -= 1
            counts[newcomer] += 1
    if counts.total():
        assert max(counts.values()) - min(counts[each] for each in TENANTS) <= 1
