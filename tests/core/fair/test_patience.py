"""How long who took too long waits: as long at first, twice as long each time, and never for the sake of nobody."""

import pytest

from kubectl_reconcile.core.fair.patience import Impatience


@pytest.mark.parametrize(("times", "pause_s"), [(1, 30.0), (2, 60.0), (4, 240.0), (99, 600.0)])
def test_the_pause_doubles_with_each_in_a_row(times, pause_s):
    known = Impatience()
    for _ in range(times):
        known.was_late("a", 30.0, 1000.0)
    assert known.pause_s("a", 1000.0) == pause_s
    assert known.pause_s("a", 1000.0 + pause_s) == 0.0
    assert known.pause_s("b", 1000.0) == 0.0


def test_what_takes_no_longer_than_it_may_ends_it():
    known = Impatience()
    known.was_late("a", 30.0, 0.0)
    known.was_in_time("a")
    known.was_late("a", 30.0, 100.0)
    assert known.pause_s("a", 100.0) == 30.0


def test_who_has_no_name_waits_for_nobody():
    known = Impatience()
    known.was_late("", 30.0, 0.0)
    assert known.pause_s("", 0.0) == 0.0


def test_of_many_those_are_forgotten_whose_pause_is_over():
    known = Impatience()
    for number in range(5000):
        known.was_late(f"t{number}", 1.0, float(number))
    assert len(known._late) <= 1001
