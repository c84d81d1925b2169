"""What a run of the benchmarks found: a table for people, JSON for programs, a plot of how cost grows with N.

Ratios are taken lap by lap, of two commands that ran within seconds of each other on the same server; the median
of those is what we state. Seconds are printed for orientation only: they are the machine's as much as ours.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson
import psutil

import kubectl_reconcile
from benchmarks.arena import Run
from benchmarks.workloads import WORKLOADS

REFERENCE = "ours"
_ORDER = (*WORKLOADS,)
HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Entry:
    """One contestant in one race."""

    workload: str
    count: int
    race: str
    contestant: str
    runs: Sequence[Run]

    @property
    def seconds(self) -> float:
        """The median."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def spread(self) -> float:
        """Half of the distance between the fastest and the slowest lap, as a share of the median."""
        seconds = [run.seconds for run in self.runs]
        return (max(seconds) - min(seconds)) / 2 / self.seconds

    def ratio_to(self, other: Entry) -> float:
        """Return the median of *other*'s seconds over ours, lap by lap."""
        return statistics.median(
            mine.seconds / theirs.seconds for mine, theirs in zip(self.runs, other.runs, strict=True)
        )


def environment() -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "version": kubectl_reconcile.__version__,
        "python": platform.python_version(),
        "machine": f"{psutil.cpu_count()} cores, {psutil.virtual_memory().total // 2**30} GiB, {platform.system()}",
        "load": round(psutil.getloadavg()[0], 2),
    }


def table(entries: Iterable[Entry]) -> list[str]:
    """Return the lines of a Markdown table, a race after the other."""
    entries = list(entries)
    lines = [
        "| workload | N | race | who | median s | spread | ours / theirs | CPU s | server CPU s | MiB | requests |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        ours = next((each for each in entries if _same_race(each, entry) and each.contestant == REFERENCE), None)
        ratio = f"{ours.ratio_to(entry):.2f}" if ours and ours is not entry else ""
        cpu, server, memory = (
            statistics.median(getattr(run, name) for run in entry.runs)
            for name in ("cpu_s", "server_cpu_s", "memory_mib")
        )
        requests = " ".join(f"{verb} {count}" for verb, count in entry.runs[-1].requests.items())
        lines.append(
            f"| {entry.workload} | {entry.count} | {entry.race} | {entry.contestant} | {entry.seconds:.2f} "
            f"| ± {entry.spread:.0%} | {ratio} | {cpu:.2f} | {server:.2f} | {memory:.0f} | {requests} |"
        )
    return lines


def lists(more: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the lines of a Markdown list of figures for each of *more*."""
    return [
        line
        for title, figures in more.items()
        for line in ("", f"**{title}**", "", *(f"- {name}: {value:.4g}" for name, value in figures.items()))
    ]


def _same_race(one: Entry, other: Entry) -> bool:
    return (one.workload, one.count, one.race) == (other.workload, other.count, other.race)


@dataclass(slots=True)
class Findings:
    """What a run, or several, have found: the races, and *more* figures by their titles."""

    entries: list[Entry] = field(default_factory=list)
    more: dict[str, dict[str, float]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return what *folder* holds of earlier runs; nothing where it holds none."""
        file = folder / "results.json"
        if not file.exists():
            return cls()
        document = orjson.loads(file.read_bytes())
        entries = [Entry(**{**each, "runs": [Run(**run) for run in each["runs"]]}) for each in document["entries"]]
        return cls(entries, document["more"])

    def races(self, entries: Sequence[Entry]) -> None:
        """Take up *entries*, in place of earlier ones of the same races."""
        self.entries = [each for each in self.entries if not any(_same_race(each, new) for new in entries)]
        self.entries = sorted([*self.entries, *entries], key=lambda each: (_ORDER.index(each.workload), each.count))

    def lines(self) -> list[str]:
        """Return all of it as Markdown."""
        return [*table(self.entries), *lists(self.more)]

    def write(self, folder: Path) -> None:
        """Write ``results.json``, ``results.md`` and, where matplotlib is there, ``growth.svg``."""
        folder.mkdir(parents=True, exist_ok=True)
        plain = [asdict(entry) for entry in self.entries]
        document = {"environment": environment(), "entries": plain, "more": self.more}
        (folder / "results.json").write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
        (folder / "results.md").write_text("\n".join(self.lines()) + "\n")
        _plot(folder / "growth.svg", self.entries)


def _plot(path: Path, entries: Sequence[Entry]) -> None:
    counts = sorted({entry.count for entry in entries if entry.workload == "mixed"})
    if len(counts) < 2:
        return
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - large, and of no use for a single N
    except ImportError:
        return
    races = list(dict.fromkeys(entry.race for entry in entries))
    columns = min(len(races), 3)
    rows = -(-len(races) // columns)
    figure = Figure(figsize=(4.2 * columns, 3.4 * rows), layout="constrained")
    for number, race in enumerate(races, 1):
        axes = figure.add_subplot(rows, columns, number)
        there = [entry for entry in entries if entry.race == race and entry.workload == "mixed"]
        for who in dict.fromkeys(entry.contestant for entry in there):
            points = sorted((entry.count, entry.seconds) for entry in there if entry.contestant == who)
            axes.plot(*zip(*points, strict=True), marker="o", label=who, linewidth=2.5 if who == REFERENCE else 1.2)
        axes.set(title=race, xlabel="objects", ylabel="seconds", xscale="log", yscale="log")
        axes.grid(visible=True, which="both", alpha=0.2)
        axes.legend(fontsize="small")
    figure.savefig(path)
