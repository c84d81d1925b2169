"""What the doctor makes of what it sees, by plain values: clocks, modules, and CRDs beside the server's."""

import datetime as dt

import pytest

from kubectl_reconcile.engine.commands.doctor import Finding, Grade, clock, covers, modules_found, release
from kubectl_reconcile.engine.modules.registry import KnownModules, ModuleFault
from kubectl_reconcile.modules.memcached import memcached

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
CLOCKS = {
    "the same": (0, Grade.OK, "agrees"),
    "a second of rounding": (1, Grade.OK, "agrees"),
    "a little ahead": (8, Grade.WARN, "is 8 s ahead of the server's"),
    "a little behind": (-8, Grade.WARN, "is 8 s behind the server's"),
    "far off": (-3600, Grade.FAIL, "is 3600 s behind the server's"),
}


@pytest.mark.parametrize(("ahead_s", "grade", "text"), CLOCKS.values(), ids=CLOCKS)
def test_clocks(ahead_s, grade, text):
    found = clock("Thu, 01 Jan 2026 12:00:00 GMT", NOON + dt.timedelta(seconds=ahead_s), 0.0)
    assert (found.grade, text in found.text) == (grade, True)
    assert bool(found.advice) == (grade is not Grade.OK)


def test_a_server_without_a_clock():
    assert clock("", NOON, 0.0).grade is Grade.WARN


CRDS = {
    "the same": ({"a": 1}, {"a": 1}, True),
    "a default of the server": ({"a": 1, "strategy": "None"}, {"a": 1}, True),
    "another value": ({"a": 2}, {"a": 1}, False),
    "something missing": ({}, {"a": 1}, False),
    "a list of another length": ({"a": [1, 2]}, {"a": [1]}, False),
    "a property that we dropped": ({"properties": {"a": {}, "b": {}}}, {"properties": {"a": {}}}, False),
    "another kind of value": ({"a": "x"}, {"a": {"b": 1}}, False),
}


@pytest.mark.parametrize(("live", "ours", "expected"), CRDS.values(), ids=CRDS)
def test_a_crd_is_current_if_it_says_what_ours_says(live, ours, expected):
    assert covers(live, ours) is expected


@pytest.mark.parametrize(
    ("minor", "grade"), [("29", Grade.WARN), ("30", Grade.OK), ("36+", Grade.OK), ("", Grade.WARN)]
)
def test_a_server_on_which_the_daemon_cant_be_installed(minor, grade):
    found = release("https://server", {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}"}, 0.004)
    assert found.grade is grade
    assert found.text == f"https://server: Kubernetes v1.{minor}, answers in 4 ms"
    assert found.advice == ("" if grade is Grade.OK else "`install` needs 1.30 or newer")


def test_modules_that_are_all_well_are_counted():
    assert modules_found(KnownModules({memcached.gvk: memcached})) == [Finding(Grade.OK, "modules", "1 is installed")]


def test_a_module_that_cant_be_loaded_fails_and_one_of_two_for_a_kind_is_a_warning():
    faults = [ModuleFault("not there", "install it"), ModuleFault("two", "remove one", is_missing=False)]
    assert modules_found(KnownModules({}, faults)) == [
        Finding(Grade.FAIL, "modules", "not there", "install it"),
        Finding(Grade.WARN, "modules", "two", "remove one"),
    ]
