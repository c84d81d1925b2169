"""``make bench``: us against what you would use instead, on the same control plane, in one run.

    python -m benchmarks [--quick] [--workload mixed]… [--count 1000]… [--race NAME]… [--laps 3] [--contestants FILE]
                         [--part races]… [--syncs 1000] [--keep]

Each workload and size gets a fresh sandbox; all contestants run on it in turn. After the races come what a daemon
costs, of one large Sync and of many, how fast modules are, and each step by itself. Prints a table, and writes ``build/benchmarks/results.{json,md}``
and ``growth.svg``. A full run takes one to two hours; with ``--keep`` it can be done in parts. Seconds are the machine's;
ratios are what counts.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks import daemon, fleet, micro, modules, races, results
from benchmarks.arena import Arena, BenchmarkError
from benchmarks.process import end_when_told
from benchmarks.workloads import WORKLOADS

SEED = 20261121
FULL = [("mixed", 100), ("mixed", 1000), ("mixed", 10_000), ("built-in", 1000), ("large", 1000), ("many-kinds", 2000)]
LAPS = {("mixed", 100): 3, ("mixed", 1000): 3}
"""Counted laps besides the warm-up where one isn't enough: what takes longer varies less."""
PARTS = ("races", "daemon", "fleet", "modules", "steps")
QUICK = [("mixed", 50), ("mixed", 150)]
DAEMONS = [(1000, 0), (10_000, 0), (1000, 36_000)]
"""Members of a Sync, and the bytes by which each custom resource is larger than it need be."""
MODULES = 1000
SYNCS = 1000


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and one lap: under three minutes")
    parser.add_argument("--workload", action="append", choices=[*WORKLOADS], help="only this (again for more)")
    parser.add_argument("--count", action="append", type=int, help="only this many objects (again for more)")
    parser.add_argument("--race", action="append", choices=[race.name for race in races.RACES], help="only this race")
    parser.add_argument("--laps", type=int, help="counted laps (default: 3 where they are short, else 1)")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part (again for more)")
    parser.add_argument("--syncs", type=int, default=SYNCS, help="how many Syncs are many (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep what --out has of other parts, workloads and sizes")
    parser.add_argument("--contestants", action="append", type=Path, help="a file with more contestants")
    parser.add_argument("--only", action="append", help="only these contestants, besides ours")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=results.HERE.parent / "build" / "benchmarks")
    return parser.parse_args()


def _contestants(files: list[Path], only: list[str] | None, count: int) -> list[races.Contestant]:
    """Return who runs: those of *only* and ours, without those for whom so many objects are too many."""
    found = {}
    for file in files:
        found.update(yaml.safe_load(file.read_text()))
    most = {name: commands.pop("most", count) for name, commands in found.items()}
    return [
        races.Contestant(name, commands)
        for name, commands in found.items()
        if count <= most[name] and (only is None or name in {*only, results.REFERENCE})
    ]


def _sizes(options: argparse.Namespace) -> list[tuple[str, int]]:
    if options.workload or options.count:
        return [(workload, count) for workload in options.workload or ["mixed"] for count in options.count or [1000]]
    return QUICK if options.quick else FULL


async def _measured(options: argparse.Namespace, workload: str, count: int) -> list[results.Entry]:
    """Run all races of one workload and size on a sandbox of their own."""
    laps = options.laps or (1 if options.quick else LAPS.get((workload, count), 1))
    contestants = _contestants([results.HERE / "contestants.yaml", *(options.contestants or ())], options.only, count)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    entries: list[results.Entry] = []
    print(f"==> {workload}, {count} objects, {laps} laps: starting a control plane", flush=True)
    arena = await Arena.open(folder)
    try:
        places = await races.stands(arena, contestants, workload, count, options.seed)
        for race in races.RACES:
            if options.race and race.name not in options.race:
                continue
            found = await races.run(arena, race, places, workload, laps, lambda text: print(f"    {text}", flush=True))
            entries += [results.Entry(workload, count, race.name, who, runs) for who, runs in found.items()]
    finally:
        await arena.close()
        shutil.rmtree(folder)
    return entries


async def _main() -> int:
    options = _options()
    end_when_told()
    partial = options.quick or options.workload or options.count or options.race
    parts = options.part or (["races", "steps"] if partial else PARTS)
    found = results.Findings.read(options.out) if options.keep else results.Findings()
    try:
        for workload, count in _sizes(options) if "races" in parts else ():
            found.races(await _measured(options, workload, count))
            found.write(options.out)
        for count, size in DAEMONS if "daemon" in parts else ():
            title = f"a daemon of {count} members{f' of {size // 1000} KB' if size else ''}"
            found.more[title] = (await daemon.measured(count, size)).figures.values
            found.write(options.out)
        if "fleet" in parts:
            shape = fleet.Shape(options.syncs)
            found.more[f"many Syncs: {shape}"] = (await fleet.measured(shape)).values
            found.write(options.out)
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    if "modules" in parts:
        found.more[f"{MODULES} Memcacheds"] = await modules.measured(MODULES)
    if "steps" in parts:
        found.more["each step"] = micro.measure()
    found.write(options.out)
    print("", *found.lines(), f"\nwritten to {options.out}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
