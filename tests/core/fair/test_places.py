"""Where members are looked for: what is asked for first, and no more than may be."""

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.fair.places import places_among

NAMES = st.frozensets(st.sampled_from([f"ns-{number}" for number in range(12)]))


def test_what_is_asked_for_comes_before_hints():
    found = places_among({"z"}, {"a", "b"}, lambda _: True, 2)
    assert (found.looked_at, found.beyond) == (("z", "a"), 1)


def test_what_is_not_there_takes_no_room():
    found = places_among({"shop"}, {f"no-such-{number}" for number in range(3000)}, lambda name: name == "shop", 200)
    assert (found.looked_at, len(found.missing), found.beyond) == (("shop",), 3000, 0)


@given(NAMES, NAMES, NAMES, st.integers(1, 12))
def test_each_is_looked_at_missing_or_beyond(asked, hints, there, most):
    found = places_among(asked, hints, there.__contains__, most)
    assert len(found.looked_at) <= most
    assert len(found.looked_at) + len(found.missing) + found.beyond == len(asked | hints)
    assert set(found.looked_at) <= there
    assert not found.missing & there
    if not asked >= set(found.looked_at):
        assert asked & there <= set(found.looked_at), "hints come last"
