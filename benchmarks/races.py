"""The tasks that contestants are measured at, one after the other on the same server: A B A B.

Vocabulary: a *race* is a task from a prepared state to an end; each contestant runs in a namespace of its own, so that
nobody finds another's objects. A *lap* is one run of each contestant; the first lap warms up and isn't counted.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from benchmarks import floor, workloads
from benchmarks.arena import Arena, Run


@dataclass(frozen=True, slots=True)
class Contestant:
    """Who takes part, with a command line for each task."""

    name: str
    commands: Mapping[str, str]


@dataclass(slots=True)
class Stand:
    """A contestant's place: its namespace, and folders with the workload as it is, changed and halved."""

    contestant: Contestant
    namespace: str
    folders: Mapping[str, Path]

    def command(self, task: str, folder: str) -> str:
        """Return the command line for *task* over one of the folders."""
        return self.contestant.commands[task].format(
            folder=self.folders[folder], namespace=self.namespace, name="bench", python=sys.executable
        )


@dataclass(frozen=True, slots=True)
class Race:
    """A task: how it is prepared before each lap, and which folder it is about."""

    name: str
    task: str
    prepare: Callable[[Arena, Stand, str, int], Awaitable[None]]
    folder: Callable[[int], str] = field(default=lambda _: "plain")


async def _emptied(arena: Arena, stand: Stand, workload: str, _: int) -> None:
    await arena.clear(workload, stand.namespace)


async def _there(arena: Arena, stand: Stand, _: str, lap: int) -> None:
    """Have everything there as the contestant left it, the first lap's work."""
    if lap == 0:
        setup = "sync" if "sync" in stand.contestant.commands else "setup"
        await arena.run(stand.command(setup, "plain"))


async def _whole(arena: Arena, stand: Stand, *_: object) -> None:
    """Have everything there, and half of it allowed to go."""
    setup = "setup" if "setup" in stand.contestant.commands else "sync"
    await arena.run(stand.command(setup, "plain"))
    await arena.let_go(stand.namespace)


async def _drifted(arena: Arena, stand: Stand, workload: str, lap: int) -> None:
    await _there(arena, stand, workload, lap)
    for path in sorted(stand.folders["changed"].iterdir()):
        manifest = orjson.loads(path.read_bytes())
        if "bench-changed" in (manifest["metadata"].get("labels") or {}):
            await arena.drift(floor.path_of(manifest))


RACES = (
    Race("first sync", "sync", _emptied),
    Race("sync, no change", "sync", _there),
    Race("diff, no change", "diff", _there),
    Race("sync, 1 % changed", "sync", _there, lambda lap: "changed" if lap % 2 == 0 else "plain"),
    Race("sync, 1 % drifted", "sync", _drifted, lambda _: "changed"),
    Race("prune half", "prune", _whole, lambda _: "half"),
)


async def stands(arena: Arena, contestants: list[Contestant], workload: str, count: int, seed: int) -> list[Stand]:
    """Return each contestant's place, with its files written and its namespace there."""
    found = []
    for contestant in contestants:
        namespace = f"bench-{contestant.name}"
        await arena.ready(workload, namespace)
        root = arena.folder / f"{workload}-{count}" / contestant.name
        folders = {
            "plain": workloads.write(root / "plain", workload, count, namespace, seed=seed),
            "changed": workloads.write(
                root / "changed", workload, count, namespace, seed=seed, changed=max(count // 100, 1)
            ),
            "half": workloads.write(root / "half", workload, count, namespace, seed=seed, kept=max(count // 2, 1)),
        }
        found.append(Stand(contestant, namespace, folders))
    return found


async def run(
    arena: Arena, race: Race, places: list[Stand], workload: str, laps: int, tell: Callable[[str], None]
) -> dict[str, list[Run]]:
    """Run one race and return each contestant's laps, the warm-up left out."""
    taking_part = [stand for stand in places if race.task in stand.contestant.commands]
    found: dict[str, list[Run]] = {stand.contestant.name: [] for stand in taking_part}
    for lap in range(laps + 1):
        for stand in taking_part:
            await race.prepare(arena, stand, workload, lap)
            done = await arena.run(stand.command(race.task, race.folder(lap)))
            tell(f"{race.name}: {stand.contestant.name} {done.seconds:.2f} s{' (warm-up)' if lap == 0 else ''}")
            if lap:
                found[stand.contestant.name].append(done)
    return found
