"""When a custom resource is looked at that reads all of its namespace."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from kubectl_reconcile.core.daemon.cr_pass import READ_AGAIN_S, ReadingTimes
from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S
from kubectl_reconcile.core.objects import ObjectRef

CHECKUP = ObjectRef("checks.reconcile.dev", "Checkup", "shop", "security")


def test_what_changes_is_seen_soon_and_then_some_seconds_apart():
    times = ReadingTimes()
    assert times.after_change(CHECKUP, 100.0) == 100.0 + DEBOUNCE_S
    assert times.after_change(CHECKUP, 101.0) == 100.0 + DEBOUNCE_S + READ_AGAIN_S
    assert times.after_change(CHECKUP, 200.0) == 200.0 + DEBOUNCE_S


def test_a_change_before_a_look_that_is_due_is_waited_for_by_one_also_if_there_was_another_meanwhile():
    times = ReadingTimes()
    times.after_change(CHECKUP, 100.0)
    due_s = times.after_change(CHECKUP, 101.0)
    assert times.after_change(CHECKUP, 102.0) == due_s


def test_one_that_is_gone_and_comes_back_is_looked_at_soon():
    times = ReadingTimes()
    times.after_change(CHECKUP, 100.0)
    times.after_change(CHECKUP, 101.0)
    times.forget(CHECKUP)
    assert times.after_change(CHECKUP, 101.5) == 101.5 + DEBOUNCE_S


@given(pauses=st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40))
def test_after_every_change_there_is_a_look_within_seconds_and_looks_are_never_close(pauses):
    times, now_s, due = ReadingTimes(), 1000.0, set()
    for pause_s in pauses:
        now_s += pause_s
        due_s = times.after_change(CHECKUP, now_s)
        assert now_s <= due_s <= now_s + READ_AGAIN_S
        due.add(due_s)
    ordered = sorted(due)
    assert all(later - sooner >= READ_AGAIN_S - 0.001 for sooner, later in itertools.pairwise(ordered))
