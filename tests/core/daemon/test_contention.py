"""ContentionTracker: when a field counts as contended, how long it is left alone, and what ends that."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.daemon.contention import ROUNDS, WINDOW_S, ContentionTracker
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.planning.plan import Change, Op
from kubectl_reconcile.core.ssa.merge import FieldChange, Reason

SHOP = ObjectRef("reconcile.dev", "Sync", "shop", "shop")
WEB = ObjectRef("apps", "Deployment", "shop", "web")
REPLICAS = FieldPath.fields("spec", "replicas")
NOW = "2026-11-20T12:00:00Z"


def put_back(value=3, *paths, manager="hpa", op=Op.UPDATE):
    paths = paths or (REPLICAS,)
    fields = tuple(FieldChange(path, "replace", 9, value, Reason.DRIFT, manager) for path in paths)
    return Change(WEB, op, fields=fields)


def overwrite(tracker, *, times=ROUNDS, start_s=0.0, every_s=1.0, change=None):
    """Write a field so many times, unless it is left alone; return when the last time was."""
    change = change or put_back()
    for number in range(times):
        at_s = start_s + number * every_s
        assert not tracker.begin(SHOP, [change], now_s=at_s, now=NOW), f"contended after {number} rounds"
        tracker.wrote(change, at_s)
    return at_s


def begin(tracker, at_s, change=None):
    return tracker.begin(SHOP, [change or put_back()], now_s=at_s, now=NOW)


def test_a_field_overwritten_time_and_again_is_contended_and_named():
    tracker = ContentionTracker()
    (contention,) = begin(tracker, overwrite(tracker) + 1)
    assert (
        str(contention)
        == f"{WEB}: .spec.replicas: hpa overwrote it {ROUNDS} times until {NOW}, so it is left alone until 2026-11-20T12:05:00Z"
    )
    assert tracker.contentions() == {WEB: (contention,)}
    assert tracker.of(SHOP) == [contention]
    assert begin(tracker, 20) == []


def test_a_slow_back_and_forth_is_no_contention():
    tracker = ContentionTracker()
    assert begin(tracker, overwrite(tracker, times=3 * ROUNDS, every_s=WINDOW_S / (ROUNDS - 2))) == []


def test_values_that_git_changes_are_no_contention():
    tracker = ContentionTracker()
    for value in range(3 * ROUNDS):
        assert begin(tracker, value, put_back(value)) == []
        tracker.wrote(put_back(value), value)


def test_the_other_fields_of_the_object_are_not_contended():
    tracker = ContentionTracker()
    overwrite(tracker)
    image = FieldPath(("f:spec", "f:containers", 'k:{"name":"web"}', "f:image"))
    (contention,) = begin(tracker, 20, put_back(3, image, REPLICAS))
    assert contention.path == REPLICAS


NEVER_LEFT = {
    "the mark of membership": FieldPath.fields("metadata", "labels", "applyset.kubernetes.io/part-of"),
    "the mark of a module": FieldPath.fields("metadata", "labels", "reconcile.dev/module"),
    "all labels": FieldPath.fields("metadata", "labels"),
    "the owner": FieldPath.fields("metadata", "ownerReferences"),
}


@pytest.mark.parametrize("path", NEVER_LEFT.values(), ids=NEVER_LEFT)
def test_marks_are_never_left_to_others(path):
    tracker, change = ContentionTracker(), put_back("x", path)
    overwrite(tracker, times=3 * ROUNDS, change=change)


def test_a_back_off_lapses_is_tried_again_and_comes_back_for_twice_as_long_until_an_hour():
    tracker = ContentionTracker()
    now_s = overwrite(tracker) + 1
    lengths = []
    (contention,) = begin(tracker, now_s)
    for _ in range(6):
        due_s = tracker.due_s(SHOP)
        lengths.append(due_s - now_s)
        assert tracker.lapse(SHOP, due_s - 1) == []
        assert [each.path for each in tracker.lapse(SHOP, due_s)] == [contention.path]
        assert begin(tracker, due_s) == []  # the try
        tracker.wrote(put_back(), due_s)
        now_s = due_s + 5
        assert begin(tracker, now_s)
    assert lengths == [300.0, 600.0, 1200.0, 2400.0, 3600.0, 3600.0]


def test_whoever_else_goes_on_makes_no_back_off_longer():
    tracker = ContentionTracker()
    now_s = overwrite(tracker) + 1
    begin(tracker, now_s)
    for manager in ("vpa", "kubectl-edit", "hpa"):
        due_s = tracker.due_s(SHOP)
        assert due_s - now_s == 300.0
        tracker.lapse(SHOP, due_s)
        last_s = overwrite(tracker, start_s=due_s, change=put_back(manager=manager))
        now_s = last_s + 1
        assert begin(tracker, now_s, put_back(manager=manager))
    assert tracker.due_s(SHOP) - now_s == 300.0


def test_another_push_ends_it_and_the_same_revision_doesnt():
    tracker = ContentionTracker()
    assert tracker.pushed(SHOP, "a") == []
    contentions = begin(tracker, overwrite(tracker) + 1)
    assert tracker.pushed(SHOP, "a") == []
    assert tracker.contentions()
    assert tracker.pushed(SHOP, "b") == contentions
    assert not tracker.contentions()


def test_a_rival_that_has_stopped_ends_it():
    tracker = ContentionTracker()
    begin(tracker, overwrite(tracker) + 1)
    due_s = tracker.due_s(SHOP)
    tracker.lapse(SHOP, due_s)
    begin(tracker, due_s)
    tracker.wrote(put_back(), due_s)
    tracker.lapse(SHOP, due_s + WINDOW_S + 1)
    assert not tracker.contentions()
    overwrite(tracker, start_s=due_s + WINDOW_S + 2, times=ROUNDS)  # from the beginning


def test_a_person_ends_it_and_it_takes_as_many_rounds_again():
    tracker = ContentionTracker()
    contentions = begin(tracker, overwrite(tracker) + 1)
    assert tracker.resume(ObjectRef("reconcile.dev", "Sync", "shop", "other")) == []
    assert tracker.resume(SHOP) == contentions
    assert not tracker.contentions()
    assert begin(tracker, overwrite(tracker, start_s=20) + 1)


def test_a_field_that_is_as_it_should_be_ends_it():
    tracker = ContentionTracker()
    tracker.settle(begin(tracker, overwrite(tracker) + 1))
    assert not tracker.contentions()
