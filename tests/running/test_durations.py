"""How long tests take, kept from run to run: plain values."""

import pytest

from tests.running.durations import estimates, renewed, rough

ROUGH = {
    "what is nearest": (11.0, 0, 13),
    "less than a second": (0.2, 0, 1),
    "nothing": (0.0, 0, 1),
    "what it was, if that is near": (10.0, 8, 8),
    "what it was, up to the next step": (12.9, 8, 8),
    "another, where it took much longer": (21.0, 8, 20),
    "another, where it took much less": (2.0, 8, 2),
    "hours": (90000.0, 0, 5000),
}


@pytest.mark.parametrize(("seconds", "before", "expected"), ROUGH.values(), ids=ROUGH)
def test_seconds_are_rough(seconds, before, expected):
    assert rough(seconds, before) == expected


def test_a_run_renews_the_files_that_it_ran_and_forgets_those_that_are_gone():
    before = {"a.py": 30, "a.py::old": 20, "b.py": 8, "gone.py": 50}
    took = {"a.py::new": 6.0, "a.py::short": 2.0, "c.py::fast": 0.3}
    assert renewed(before, took, ["a.py", "b.py", "c.py"]) == {"a.py": 8, "a.py::new": 5, "b.py": 8}


def test_the_same_run_changes_nothing():
    took = {"a.py::one": 6.0, "a.py::two": 2.0}
    once = renewed({}, took, ["a.py"])
    again = renewed(once, {name: seconds * 1.2 for name, seconds in took.items()}, ["a.py"])
    assert again == once


def test_an_estimate_is_the_tests_own_or_its_share_of_the_file():
    known = {"a.py": 20, "a.py::long": 13}
    assert estimates(["a.py::long", "a.py::x", "a.py::y"], known, [True, True, True]) == [13, 3.5, 3.5]


def test_of_what_nothing_is_known_what_waits_takes_longer():
    computes, waits = estimates(["new.py::a", "new.py::b"], {}, [False, True])
    assert 0 < computes < waits
