"""Whether quiet teams were held up: what they waited for in a quiet stretch, and beside somebody who abuses everything.

A *stretch* has, for each thing that was waited for, how long that took each time, in seconds. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Stretch: TypeAlias = Mapping[str, Sequence[float]]

MOST_TIMES: Final = 2.0
"""How many times as long as in the quiet stretch the median may be."""
LONGEST_S: Final = {"drift": 1.0, "push": 5.0, "push of an overlay": 5.0, "preview": 5.0}
"""How long the slowest of a hundred may take."""


def middle_s(took_s: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(took_s)


def slowest_s(took_s: Sequence[float]) -> float:
    """Return the 99th percentile; of few times the longest."""
    return sorted(took_s)[-max(len(took_s) // 100, 1)]


@dataclass
class Verdict:
    """What is wrong, and the table that shows it."""

    faults: list[str] = field(default_factory=list)
    rows: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def table(self) -> str:
        """The figures, in Markdown."""
        head = ("", "times", "quiet: median", "p99", "abused: median", "p99", "")
        lines = [head, tuple("---" for _ in head), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def judged(quiet: Stretch, abused: Stretch, *, restarts: int, lost: Sequence[str]) -> Verdict:
    """Return what is wrong with two stretches, the daemon's *restarts* in the second, and what was *lost*."""
    verdict = Verdict()
    for name, longest_s in LONGEST_S.items():
        before, beside = quiet.get(name, ()), abused.get(name, ())
        if not before or not beside:
            verdict.faults.append(f"{name}: nothing was measured")
            continue
        wrong = []
        if middle_s(beside) > MOST_TIMES * middle_s(before):
            wrong.append(f"the median is {middle_s(beside) / middle_s(before):.1f} times that of the quiet stretch")
        if slowest_s(beside) > longest_s:
            wrong.append(f"the 99th percentile is more than {longest_s:g} s")
        verdict.faults += [f"{name}: {each}" for each in wrong]
        figures = (middle_s(before), slowest_s(before), middle_s(beside), slowest_s(beside))
        cells = (f"{len(before)}, {len(beside)}", *(f"{each:.2f} s" for each in figures))
        verdict.rows.append((name, *cells, "too long" if wrong else ""))
    if restarts:
        verdict.faults.append(f"the daemon ended {restarts} times")
    verdict.faults += [f"lost: {each}" for each in lost]
    return verdict
