"""How a sentence names many things."""

import pytest

from kubectl_reconcile.core.phrases import first_few


@pytest.mark.parametrize(
    ("things", "said"),
    [((), ""), ("a", "a"), ("abc", "a, b, c"), ("abcd", "a, b, c and 1 more"), (range(103), "0, 1, 2 and 100 more")],
)
def test_the_first_few_are_named_and_the_others_counted(things, said):
    assert first_few(things, 3) == said


def test_what_is_separated_by_semicolons_and_called_something():
    assert first_few(["db-0: silent", "db-1: silent"], 1, "; ", rest="more pods") == "db-0: silent and 1 more pods"
