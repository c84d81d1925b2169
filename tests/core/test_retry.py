"""How long somebody waits who tries again, and that the documentation has it from the code."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.retry import PASS, TABLE, Backoff

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
PAUSES = {
    "the first failure waits the first pause": (1, 1.0),
    "the third has doubled twice": (3, 4.0),
    "a long outage stops at the cap": (99, 60.0),
    "so does one of weeks": (10**6, 60.0),
}


@pytest.mark.parametrize(("failures", "pause_s"), PAUSES.values(), ids=PAUSES)
def test_pauses_double_up_to_the_cap(failures, pause_s):
    assert PASS.pause_s(failures) == pause_s


def test_without_a_failure_there_is_no_pause():
    with pytest.raises(ValueError, match="at least one"):
        PASS.pause_s(0)


@given(st.sampled_from(TABLE), st.integers(1, 10_000), st.floats(0, 1))
def test_whoever_draws_waits_between_half_of_the_pause_and_all_of_it(backoff: Backoff, failures, drawn):
    whole_s = backoff.pause_s(failures)
    assert backoff.first_s <= whole_s <= backoff.cap_s
    assert whole_s / 2 <= backoff.pause_s(failures, drawn) <= whole_s
    assert backoff.pause_s(failures + 1) >= whole_s


def test_the_documentation_has_the_table():
    rows = [f"| {each.who} | {each.first_s:g} s | {each.cap_s:g} s | {each.resets} |" for each in TABLE]
    assert "\n".join(rows) in ARCHITECTURE.read_text()
