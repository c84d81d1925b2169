"""The verdict on a run in which one tenant abuses everything: what counts as held up, and what as lost."""

import pytest

from benchmarks.abuse.verdict import LONGEST_S, judged

QUIET = {name: [0.1, 0.2, 0.3] for name in LONGEST_S}


def faults(*, restarts=0, lost=(), **took_s):
    return judged(QUIET, {**QUIET, **took_s}, restarts=restarts, lost=lost).faults


def test_who_waits_no_longer_than_before_was_not_held_up():
    assert faults() == []


@pytest.mark.parametrize(
    ("took_s", "said"),
    [
        ([0.42] * 3, "drift: the median is 2.1 times that of the quiet stretch"),
        ([0.2] * 97 + [1.1] * 3, "drift: the 99th percentile is more than 1 s"),
        ([], "drift: nothing was measured"),
    ],
    ids=["twice as long", "seldom very long", "never"],
)
def test_who_waits_too_long_is_told(took_s, said):
    assert faults(drift=took_s) == [said]


def test_one_of_many_may_take_long():
    assert faults(drift=[0.2] * 299 + [9.0] * 2) == []


def test_what_ended_or_was_lost_is_told():
    assert faults(restarts=2, lost=["a push"]) == ["the daemon ended 2 times", "lost: a push"]


def test_the_table_has_a_row_for_each_that_was_waited_for():
    lines = judged(QUIET, QUIET, restarts=0, lost=()).table.splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {name}" for name in LONGEST_S]
    assert lines[2] == "| drift | 3, 3 | 0.20 s | 0.30 s | 0.20 s | 0.30 s |  |"
