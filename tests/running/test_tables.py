"""Tables of where a run's time went: plain values."""

import dataclasses
from pathlib import Path

import pytest

from tests.running import measuring, tables
from tests.running.measuring import STEPS, Meter, Spent

RUN = tables.Run(
    target="test",
    date="2026-11-28",
    outcome="3 passed",
    wall_s=90,
    workers=4,
    cores=2,
    tests={
        "tests/core/test_a.py::test_x": Spent(1, 2.0, 1.5),
        "tests/e2e/cli/test_b.py::test_y[a|b]": Spent(1, 60.0, 3.0),
        "tests/e2e/daemon/test_c.py::test_z": Spent(1, 30.0, 2.0),
    },
    fixtures={"namespace": Spent(2, 1.5), "tmp_path": Spent(3, 0.1)},
    steps={"a daemon begins": Spent(1, 4.0)},
    collecting=Spent(4, 40.0, 36.0),
    builds={"sandbox": "kept", "render": "130 s"},
    shared_s=20.0,
)


def test_a_row_per_folder_with_what_no_folder_has():
    assert tables.folder_rows(RUN) == [
        ("`tests/e2e/cli`", "1", "60", "3"),
        ("`tests/e2e/daemon`", "1", "30", "2"),
        ("`tests/core`", "1", "2", "2"),
        ("the control plane that they share", "", "", "20"),
        ("starting workers and collecting", "", "40", "36"),
    ]


def test_fixtures_and_steps_the_dearest_first_without_those_that_cost_nothing():
    assert tables.step_rows(RUN) == [("a daemon begins", "1", "4"), ("`namespace`", "2", "2")]


def test_the_dearest_tests_are_fifty_at_most():
    many = {f"tests/core/test_a.py::test_{number}": Spent(1, number, 0) for number in range(80)}
    rows = tables.dearest_rows(dataclasses.replace(RUN, tests=many))
    assert len(rows) == 50
    assert rows[0][0] == "`tests/core/test_a.py::test_79`"


def test_the_section_tells_how_much_of_the_workers_and_of_the_processors_was_used():
    text = tables.section(RUN)
    assert "3 passed in 1:30 minutes, by 4 workers on 2 cores" in text
    assert "Of the 6:00 minutes of all workers, 1:32 went into tests and 0:40 into starting" in text
    assert "of the 3:00 minutes of the processors, 1:02 were used" in text
    assert "| `make render` | 130 s |" in text
    assert r"test_y[a\|b]" in text


def test_a_section_is_replaced_by_the_next_run_and_the_rest_of_the_page_stays():
    page = "# Tests\n\n<!-- make test PROFILE=1 writes this -->\n\nold\n\n<!-- until here: test -->\n\nafter\n"
    once = tables.placed(page, "test", r"new \1")
    assert "old" not in once
    assert once.startswith("# Tests\n")
    assert once.endswith("\n\nafter\n")
    assert tables.placed(once, "test", r"new \1") == once


def test_a_target_that_the_page_has_no_place_for_is_named():
    with pytest.raises(ValueError, match="make test-operators"):
        tables.placed("# Tests\n", "test-operators", "new")


@pytest.mark.parametrize("target", ["test", "test-operators"])
def test_the_page_has_a_place_for_each_target_that_measures(target):
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    assert "new figures" in tables.placed(page, target, "new figures")


@pytest.mark.parametrize("place", STEPS)
def test_what_is_measured_is_there(place):
    owner, name = measuring.found(place)
    assert callable(getattr(owner, name))


def test_a_fixture_is_charged_without_those_that_it_asks_for():
    clock = iter([0.0, 1.0, 4.0, 6.0])  # outer begins, inner begins, inner is done, outer is done
    meter = Meter(now_s=lambda: next(clock))
    with meter.fixture("outer", times=1), meter.fixture("inner", times=1):
        pass
    assert (meter.fixtures["inner"].seconds, meter.fixtures["outer"].seconds) == (3.0, 3.0)
