"""A change as a code review shows it: rows with the numbers of lines before and after, what stays the same folded away.

Pure: changes in, rows out.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from kubectl_reconcile.core.planning.plan import Change
from kubectl_reconcile.views.changes import PlanView, sides

_CONTEXT = 4
_EXACT_LINES = 500
"""Beyond these, lines that come often count for nothing: to compare them exactly takes the square of their number, and more."""
_MOST_ROWS = 4000
_LONGEST_LINE = 2000

Row = list[Any]
"""What it is (`` ``, ``-``, ``+``, or ``~`` for lines left out, with their count), its number before and after, and the text."""


def rows_of(change: Change, view: PlanView) -> list[Row]:
    """Return the rows that tell what happens to an object; values of Secrets are in none."""
    if change.gate.cascade:
        return []
    old, new = sides(view.of(change), view)
    rows = list(_rows(old, new))
    left_out = len(rows) - _MOST_ROWS
    return [*rows[:_MOST_ROWS], ["~", 0, 0, left_out]] if left_out > 0 else rows


def _rows(old: list[str], new: list[str]) -> Iterator[Row]:
    seen = 0
    for group in _groups(old, new):
        if group[0][1] > seen:
            yield ["~", seen + 1, 0, group[0][1] - seen]
        for tag, i, j, k, m in group:
            if tag == "equal":
                yield from ([" ", i + n + 1, k + n + 1, text[:_LONGEST_LINE]] for n, text in enumerate(old[i:j]))
            else:
                yield from (["-", i + n + 1, 0, text[:_LONGEST_LINE]] for n, text in enumerate(old[i:j]))
                yield from (["+", 0, k + n + 1, text[:_LONGEST_LINE]] for n, text in enumerate(new[k:m]))
            seen = j
    if seen and len(old) > seen:
        yield ["~", seen + 1, 0, len(old) - seen]


def _groups(old: list[str], new: list[str]) -> Iterator[list[tuple[str, int, int, int, int]]]:
    """Yield what differs, with its context; what is the same before and after all of it isn't compared again."""
    alike = _same(zip(old, new, strict=False))
    rest = min(len(old), len(new)) - alike
    ending = min(_same(zip(reversed(old), reversed(new), strict=False)), rest)
    head, tail = max(alike - _CONTEXT, 0), max(ending - _CONTEXT, 0)
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > _EXACT_LINES)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in group]


def _same(pairs: Iterable[tuple[str, str]]) -> int:
    """Return how many pairs are alike before the first that isn't."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
