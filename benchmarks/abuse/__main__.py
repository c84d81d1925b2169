"""What one tenant who abuses everything at once costs three quiet ones: ``python -m benchmarks.abuse 10``.

Three teams push, preview and have drift put back, in a quiet stretch first, and then beside a fourth one whose webhooks hang and ask for ten
minutes, whose charts loop, whose repositories unpack to much memory, and so on (``abuser``). The daemon is a program with the rights of
``install``, in a cgroup of 1 GiB where one can be made. Prints a table, and exits 1 if somebody was held up, the daemon ended, or
anything was lost. A third of the minutes is quiet.
"""

# ruff: noqa: T201 - a program that prints

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.abuse.abuser import Enemy
from benchmarks.abuse.quiet import Quiet
from benchmarks.abuse.verdict import judged
from benchmarks.abuse.world import ABUSER, PEOPLE, QUIET, World, world
from benchmarks.process import end_when_told, until
from kubectl_reconcile.cluster.access import Access
from kubectl_reconcile.cluster.client import Client
from kubectl_reconcile.sandbox.gitserver import GitServer

_QUIET_PART = 1 / 3
_SETTLE_S = 10.0
"""How long the daemon is given to come to rest, and the abuser to take what it gets."""


@dataclass
class Lived:
    """What teams waited for in a stretch, and the most memory that there was."""

    took_s: dict[str, list[float]]
    most_rss: int
    cpu: str
    load: float


async def lived(here: World, teams: Sequence[Quiet], seconds: float) -> Lived:
    """Have all teams live on for so long."""
    here.container.forget()
    for team in teams:
        team.took_s.clear()
    over = asyncio.Event()
    living = [asyncio.create_task(team.live_on(over)) for team in teams]
    before_s, deadline_s = here.cpu_s(), asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < deadline_s:
        here.look_after()
        await asyncio.sleep(0.5)
    over.set()
    await asyncio.gather(*living)
    took_s: dict[str, list[float]] = defaultdict(list)
    for team in teams:
        for what, times in team.took_s.items():
            took_s[what] += times
    spent = {name: (each_s - before_s.get(name, 0.0)) / seconds for name, each_s in here.cpu_s().items()}
    return Lived(
        took_s,
        here.container.most_rss,
        ", ".join(f"{name} {part:.0%}" for name, part in spent.items()),
        os.getloadavg()[0],
    )


async def became_of(client: Client, namespace: str) -> str:
    """Return what became of the Syncs of a namespace: how many of each kind say what."""
    items, _ = await client.list(f"/apis/reconcile.dev/v1alpha1/namespaces/{namespace}/syncs")
    said: Counter[str] = Counter()
    for each in items:
        conditions = (each.get("status") or {}).get("conditions") or []
        reason = next((one["reason"] for one in conditions if one["type"] == "Synced"), "nothing yet")
        said[f"{each['metadata']['name'].partition('-')[0]}: {reason}"] += 1
    return "; ".join(f"{count} {what}" for what, count in sorted(said.items(), key=lambda each: each[0]))


@contextlib.asynccontextmanager
async def abused(here: World, log: Path) -> AsyncIterator[None]:
    """Have everything abused for the time of a block."""
    enemy = Enemy(
        str(here.sandbox.kubeconfig), str(here.cluster.kubectl.folder), here.page, ABUSER,
        [here.tokens[name] for name in PEOPLE[ABUSER]], list(QUIET),
    )  # fmt: skip
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.abuse.abuser",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=said,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(msgspec.json.encode(enemy) + b"\n")
            if await process.stdout.readline():
                yield
            else:
                print(_end_of(log))
                sys.exit("the abuser ended by itself")
        finally:
            process.stdin.close()
            await process.wait()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]


async def measured(minutes: float) -> int:
    """Measure and print; return 1 if anything is wrong."""
    with contextlib.ExitStack() as stack:
        here = stack.enter_context(world())
        git = stack.enter_context(GitServer(here.root / "git"))
        held = "a cgroup of 1 GiB" if here.container.folder else "no cgroup, since none can be made: memory is sampled"
        print(f"{minutes:g} minutes, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {held}", flush=True)
        here.start()
        try:
            await until(here.daemon.ready, "the daemon is ready", within_s=120, pause_s=0.1)
            async with await Client.connect(Access(kubeconfig=str(here.sandbox.kubeconfig))) as client:
                teams = [Quiet(here, client, name, git.create(f"{name}-a"), git.create(f"{name}-b")) for name in QUIET]
                await asyncio.gather(*(team.begin() for team in teams))
                await asyncio.sleep(_SETTLE_S)
                quiet = await lived(here, teams, minutes * 60 * _QUIET_PART)
                async with abused(here, here.root / "abuser.log"):
                    await asyncio.sleep(_SETTLE_S)
                    beside = await lived(here, teams, minutes * 60 * (1 - _QUIET_PART))
                    await asyncio.gather(*(team.all_is_there() for team in teams))
                    became = await became_of(client, ABUSER)
        except BaseException:
            print(_end_of(here.daemon.log))
            raise
        kills = here.container.kills
        verdict = judged(
            quiet.took_s, beside.took_s, restarts=here.ended, lost=[each for team in teams for each in team.lost]
        )
        print(f"\n{verdict.table}\n")
        print(
            f"memory of the daemon and its children at most: {quiet.most_rss >> 20} MiB quiet, {beside.most_rss >> 20} MiB abused"
        )
        if here.container.folder:
            print(f"memory of its cgroup at most, with cached files: {here.container.most_bytes >> 20} MiB")
        print(f"processors: {quiet.cpu} quiet; {beside.cpu} abused; load {quiet.load:.1f} and {beside.load:.1f}")
        print(f"Syncs of the abuser: {became}")
        print(f"the daemon ended {here.ended} times; {kills} processes were ended for want of memory")
        for fault in verdict.faults:
            print(f"WRONG {fault}")
        return int(bool(verdict.faults))


def main(minutes: float = 10) -> int:
    """Measure, and tell whether anybody was held up."""
    end_when_told()
    return asyncio.run(measured(minutes))


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
