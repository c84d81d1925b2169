"""How long tests take, kept from run to run in ``durations.json``: seconds of files, and of the tests in them that take long.

Figures are rough on purpose: they say which tests begin first, and a file that changed with each run would be noise.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

FILE = "tests/running/durations.json"
LONG_S = 5
"""From how many seconds on a test is named by itself."""
SHORT_S = 1
"""Files that take less aren't named."""
STEPS = (1, 2, 3, 5, 8, 13, 20, 30, 50, 80, 130, 200, 300, 500, 800, 1300, 2000, 3000, 5000)
UNKNOWN_S = {True: 2.0, False: 0.02}
"""What a test may take of which nothing is known, by whether it waits."""


def rough(seconds: float, before: int = 0) -> int:
    """The step that is nearest; *before*, if that is less than one step away."""
    if before in STEPS:
        place = STEPS.index(before)
        around = STEPS[max(place - 1, 0)], STEPS[min(place + 1, len(STEPS) - 1)]
        if around[0] < seconds < around[1]:
            return before
    return min(STEPS, key=lambda step: max(step / max(seconds, 0.01), seconds / step))


def renewed(before: Mapping[str, int], took_s: Mapping[str, float], exists: Iterable[str]) -> dict[str, int]:
    """Durations after a run in which tests took *took_s*; what was known of other files stays, of those that still *exist*."""
    files: Counter[str] = Counter()
    for test, seconds in took_s.items():
        files[file_of(test)] += seconds  # type: ignore[assignment] # a counter of floats
    still = set(exists)
    new = {name: value for name, value in before.items() if file_of(name) not in files and file_of(name) in still}
    new |= {file: rough(seconds, before.get(file, 0)) for file, seconds in files.items() if seconds >= SHORT_S}
    new |= {test: rough(seconds, before.get(test, 0)) for test, seconds in took_s.items() if seconds >= LONG_S}
    return dict(sorted(new.items()))


def estimates(tests: Sequence[str], known: Mapping[str, int], waits: Sequence[bool]) -> list[float]:
    """Seconds that each of *tests* will take about: its own, or its share of what its file takes without those that have their own."""
    rest = {name: float(value) for name, value in known.items() if "::" not in name}
    short: dict[str, int] = defaultdict(int)
    for test in tests:
        if test in known:
            rest[file_of(test)] = rest.get(file_of(test), 0) - known[test]
        else:
            short[file_of(test)] += 1

    def estimate(test: str, *, waiting: bool) -> float:
        if test in known:
            return known[test]
        file = file_of(test)
        least = UNKNOWN_S[False]
        return max(rest[file] / short[file], least) if file in rest else UNKNOWN_S[waiting]

    return [estimate(test, waiting=waiting) for test, waiting in zip(tests, waits, strict=True)]


def file_of(test: str) -> str:
    return test.partition("::")[0]


def read(root: Path) -> dict[str, int]:
    file = root / FILE
    return json.loads(file.read_text()) if file.exists() else {}


def write(root: Path, durations: Mapping[str, int]) -> None:
    (root / FILE).write_text(json.dumps(durations, indent=1) + "\n")
