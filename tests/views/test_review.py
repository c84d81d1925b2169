"""A change as rows of a review: the same whatever is compared exactly, in time for large objects."""

import difflib

from kubectl_reconcile.views import review


def rows(old, new):
    return list(review._rows(old, new))


def test_rows_have_their_numbers_and_context_however_long_the_rest():
    old = [f"line {number}" for number in range(1000)]
    new = [*old[:500], "another", *old[501:]]
    shown = rows(old, new)
    assert shown[0] == ["~", 1, 0, 496]
    assert [row for row in shown if row[0] in "+-"] == [["-", 501, 0, "line 500"], ["+", 0, 501, "another"]]
    assert [row[1] for row in shown if row[0] == " "] == [497, 498, 499, 500, 502, 503, 504, 505]
    assert shown[-1] == ["~", 506, 0, 495]


def test_lines_that_repeat_at_both_ends_are_counted_once():
    assert rows(["a", "a"], ["a", "a", "a"]) == [[" ", 1, 1, "a"], [" ", 2, 2, "a"], ["+", 0, 3, "a"]]
    assert rows(["a"], ["a"]) == []
    assert rows([], ["a"]) == [["+", 0, 1, "a"]]
    assert rows(["a"], []) == [["-", 1, 0, "a"]]


class Matcher(difflib.SequenceMatcher):
    """Remembers what is compared exactly."""

    exact = 0

    def __init__(self, isjunk, a, b, *, autojunk):
        Matcher.exact = max(Matcher.exact, 0 if autojunk else len(a) + len(b))
        super().__init__(isjunk, a, b, autojunk=autojunk)


def test_many_lines_that_come_often_are_not_compared_one_with_each_other(monkeypatch):
    monkeypatch.setattr(review.difflib, "SequenceMatcher", Matcher)
    old = [line for number in range(1200) for line in ("- name: x", f"  value: {number}")]
    new = [line for number in range(1200) for line in ("- name: x", f"  value: {number + number % 2}.")]
    assert len([row for row in rows(old, new) if row[0] == "+"]) >= 1200
    assert Matcher.exact == 0
    assert rows(["- name: x"] * 20 + ["a"], ["- name: x"] * 20 + ["b"])
    assert 0 < Matcher.exact <= 500
