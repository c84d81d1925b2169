"""Tables of where a run's time went, and their place in a page.

Pure: what was measured goes in, text comes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.running.measuring import Spent

DEAREST = 50
LEAST_S = 1.0
"""Fixtures and steps that took less in all aren't listed."""
DEEP = ("e2e", "operators", "engine")
"""Folders of tests that are told folder by folder."""


@dataclass(frozen=True)
class Run:
    """A whole run, measured."""

    target: str
    date: str
    outcome: str
    """As in ``12,589 passed``."""
    wall_s: float
    workers: int
    cores: int
    tests: Mapping[str, Spent]
    fixtures: Mapping[str, Spent]
    steps: Mapping[str, Spent]
    collecting: Spent
    builds: Mapping[str, str]
    """Seconds of each build, or that it was kept."""
    shared_s: float
    """Processor seconds of what the workers share: the control plane."""


def section(run: Run) -> str:
    """The tables of *run*, in Markdown."""
    in_tests = total(run.tests.values())
    processor = in_tests.processor_s + run.collecting.processor_s + run.shared_s
    workers_s = run.wall_s * run.workers
    head = (
        f"`make {run.target} PROFILE=1` on {run.date}: {run.outcome} in {minutes(run.wall_s)} minutes, by {run.workers} workers"
        f" on {run.cores} cores. Of the {minutes(workers_s)} minutes of all workers, {minutes(in_tests.seconds)} went into tests"
        f" and {minutes(run.collecting.seconds)} into starting and collecting them; of the {minutes(run.wall_s * run.cores)} minutes"
        f" of the processors, {minutes(processor)} were used by what the tests started, besides builds."
    )
    return "\n\n".join(
        [
            head,
            table(("folder", "tests", "seconds", "processor seconds"), folder_rows(run)),
            table(("fixture or step", "times", "seconds"), step_rows(run)),
            table(("build", "took"), [(f"`make {name}`", took) for name, took in run.builds.items()]),
            f"The {min(DEAREST, len(run.tests))} dearest tests:",
            table(("test", "seconds", "processor seconds"), dearest_rows(run)),
        ]
    )


def folder_rows(run: Run) -> list[tuple[str, ...]]:
    folders: dict[str, list[Spent]] = {}
    for name, spent in run.tests.items():
        folders.setdefault(folder_of(name), []).append(spent)
    sums = {folder: total(spent) for folder, spent in folders.items()}
    rows = [
        (f"`{folder}`", f"{spent.times:,}", f"{spent.seconds:,.0f}", f"{spent.processor_s:,.0f}")
        for folder, spent in sorted(sums.items(), key=lambda each: -each[1].seconds)
    ]
    shared = ("the control plane that they share", "", "", f"{run.shared_s:,.0f}")
    collecting = (
        "starting workers and collecting",
        "",
        f"{run.collecting.seconds:,.0f}",
        f"{run.collecting.processor_s:,.0f}",
    )
    return [*rows, shared, collecting]


def step_rows(run: Run) -> list[tuple[str, ...]]:
    both = {f"`{name}`": spent for name, spent in run.fixtures.items()} | dict(run.steps)
    worth = sorted((each for each in both.items() if each[1].seconds >= LEAST_S), key=lambda each: -each[1].seconds)
    return [(name, f"{spent.times:,}", f"{spent.seconds:,.0f}") for name, spent in worth]


def dearest_rows(run: Run) -> list[tuple[str, ...]]:
    dearest = sorted(run.tests.items(), key=lambda each: -each[1].seconds)[:DEAREST]
    return [(f"`{name}`", f"{spent.seconds:.1f}", f"{spent.processor_s:.1f}") for name, spent in dearest]


def folder_of(test: str) -> str:
    """Folder of a test, as far as it is told: ``tests/core``, ``tests/e2e/cli``."""
    parts = test.partition("::")[0].split("/")[:-1]
    return "/".join(parts[: 3 if len(parts) > 1 and parts[1] in DEEP else 2]) or "."


def total(spent: Iterable[Spent]) -> Spent:
    result = Spent()
    for each in spent:
        result.times += each.times
        result.seconds += each.seconds
        result.processor_s += each.processor_s
    return result


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def minutes(of_s: float) -> str:
    whole, seconds = divmod(round(of_s), 60)
    return f"{whole}:{seconds:02}"


def placed(page: str, target: str, text: str) -> str:
    """The *page* with *text* between the marks of *target*.

    Raises:
        ValueError: it has no such marks.
    """
    begin, end = f"<!-- make {target} PROFILE=1 writes this -->", f"<!-- until here: {target} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"there is no place for the figures of make {target}: {begin} … {end}")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)
