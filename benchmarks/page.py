"""What the page costs, with 10,000 Syncs behind it: ``python -m benchmarks.page [10000]``.

Serves the page's own application from a process of its own, whose Syncs are made up and change when they are told to; the API server plays
no part. In headless Chromium: how long after the response the rows are painted, what the tab holds, what it asks and works while nothing
changes. Then a hundred open pages on that one process: its memory, and its work while nothing and while ten Syncs a second change.
Exits 1 where a goal isn't met: 200 ms to the paint, no request of an idle page. A minute, without a cluster.
"""

# ruff: noqa: T201 - a script that prints

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import aiohttp
import psutil
from aiohttp import web

from kubectl_reconcile.views.fleet import PushedDocument
from kubectl_reconcile.views.syncs import RowDocument
from kubectl_reconcile.web import assets
from kubectl_reconcile.web.app import application
from kubectl_reconcile.web.asking import Asker
from kubectl_reconcile.web.fleet_feed import FleetChange
from kubectl_reconcile.web.guard import PageRunner
from tests.web.browser import Tab, debugging_port, program, started, tab_of

SYNCS = 10_000
PAGES, PEOPLE = 100, 10
LAPS = 7
QUIET_S = 10.0
CHANGES_PER_S = 10
PAINT_GOAL_MS = 200

_WATCH = """
new MutationObserver((_, watch) => {
  if (!document.querySelector('[role=row] a')) return;
  watch.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.paintedMs = performance.now(); }));
}).observe(document, {childList: true, subtree: true});
"""
_FIRST = """(() => {
  const first = performance.getEntriesByName('first-contentful-paint')[0];
  const scripts = performance.getEntriesByType('resource').filter(each => new URL(each.name).pathname.endsWith('.js'));
  return first && scripts.length && first.startTime - Math.max(...scripts.map(each => each.responseEnd));
})()"""
_SINCE_RESPONSE = "window.paintedMs && paintedMs - performance.getEntriesByType('resource').find(each => each.name.includes('/syncs?')).responseEnd"


def row(at: int, version: int = 0) -> RowDocument:
    """Return one Sync as a table tells of it."""
    state, grade = ("Failed", "bad") if at % 50 == 0 else ("Ready", "good")
    return RowDocument(
        namespace=f"team-{at % 100:02}", name=f"sync-{at:05}", state=state, grade=grade, revision=f"{version:07x}", ref="main",
        url=f"https://git.example.com/team-{at % 100:02}/apps.git", path=f"apps/{at:05}", objects=12, health={"Current": 12},
        changed_at="2026-11-23T12:00:00Z", message="12 objects in sync",
    )  # fmt: skip


@dataclass
class MadeUp:
    """Syncs that somebody sees, some of which change when ``touch`` is called."""

    count: int
    era: str = "bench"
    number: int = 0
    place: str = ""
    changes: deque[FleetChange] = field(default_factory=lambda: deque(maxlen=2000))
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.known = [row(at) for at in range(self.count)]

    async def rows(self) -> Sequence[RowDocument]:
        """Return all of them."""
        return self.known

    def since(self, number: int) -> list[FleetChange] | None:
        """Return what changed after change *number*."""
        return [change for change in self.changes if change.number > number]

    async def wait(self, number: int, timeout_s: float) -> None:
        """Return once something has changed after change *number*, or after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.number <= number:
                    await self.news.wait()

    async def told(self, changes: Sequence[FleetChange]) -> PushedDocument:
        """Return changes as a browser is told of them."""
        return PushedDocument(rows=[change.row for change in changes if change.row is not None], gone=[])

    def touch(self, at: int) -> None:
        """Change one."""
        self.number += 1
        self.known[at] = row(at, self.number)
        self.changes.append(FleetChange(self.number, (self.known[at].namespace, self.known[at].name), self.known[at]))
        self.news.set()
        self.news = asyncio.Event()


@dataclass
class OpenDoor:
    """Lets anybody in, as whoever they say they are."""

    askers: dict[str, Asker]
    page_is_public: bool = True

    def unknown(self) -> web.Response:
        """Return what somebody is answered whom nobody knows."""
        return web.Response(status=401)

    def refusal(self, _request: web.Request) -> str:
        """Refuse nobody."""
        return ""

    async def asker(self, request: web.Request) -> Asker:
        """Return whoever somebody says they are."""
        return self.askers[request.headers.get("X-Person", "0")]

    async def enter(self, _request: web.Request) -> None:
        """Lead nobody on: they are in."""


async def serve(count: int) -> None:
    """Serve the page until standard input ends; each line there has so many Syncs a second change from then on."""
    syncs = MadeUp(count)
    session: Any = SimpleNamespace(client=SimpleNamespace(server="https://cluster.example.com", namespace="default"))
    events: Any = None
    door = OpenDoor({str(at): Asker(session, syncs, events, f"person-{at}") for at in range(PEOPLE)})
    runner = PageRunner(application(door))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    changing = asyncio.create_task(_change(syncs, 0))
    while told := await asyncio.to_thread(sys.stdin.readline):
        changing.cancel()
        changing = asyncio.create_task(_change(syncs, int(told)))
    await runner.cleanup()


async def _change(syncs: MadeUp, per_s: int) -> None:
    at = 0
    while per_s:
        await asyncio.sleep(1 / per_s)
        syncs.touch(at % syncs.count)
        at += 1


@contextlib.contextmanager
def served(count: int) -> Iterator[tuple[psutil.Process, str, Any]]:
    """Yield the process that serves, the page's address, and where to tell it how many Syncs change."""
    command = [sys.executable, "-m", "benchmarks.page", "serve", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        yield psutil.Process(process.pid), f"http://127.0.0.1:{port}", process.stdin
        process.stdin.close()


def megabytes(process: psutil.Process) -> float:
    """Return what a process has of its own."""
    return float(process.memory_full_info().uss) / 1e6


async def share(process: psutil.Process) -> float:
    """Return how much of a core a process uses, in percent."""
    before, began_s = process.cpu_times(), time.perf_counter()
    await asyncio.sleep(QUIET_S)
    after = process.cpu_times()
    used_s = after.user + after.system - before.user - before.system
    return 100 * used_s / (time.perf_counter() - began_s)


async def paints(tab: Tab, address: str) -> tuple[list[float], list[float]]:
    """Return in milliseconds, each time the page was opened, how long after its scripts anything was painted, and how long after the response the first rows were."""
    await tab.tell("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
    first, rows = list[float](), list[float]()
    for _ in range(LAPS):
        await tab.open(f"{address}/")
        rows.append(float(await tab.until(_SINCE_RESPONSE)))
        first.append(float(await tab.until(_FIRST)))
    return first, rows


async def held(tab: Tab) -> float:
    """Return what the tab's scripts hold, in megabytes."""
    await tab.tell("HeapProfiler.collectGarbage")
    return float((await metrics(tab))["JSHeapUsedSize"]) / 1e6


async def metrics(tab: Tab) -> dict[str, float]:
    """Return what the browser measures of the tab."""
    return {each["name"]: each["value"] for each in (await tab.tell("Performance.getMetrics"))["metrics"]}


async def seen_through(tab: Tab, count: int) -> None:
    """Scroll through all rows."""
    await tab.until("scrollBy(0, innerHeight * 4), scrollY + innerHeight >= document.body.scrollHeight - 2")
    await tab.until("document.querySelectorAll('[role=row] a').length > 0")
    assert await tab.value("document.querySelectorAll('[role=row]').length") < 200, count


async def measure(count: int) -> bool:
    """Measure and print everything; tell whether the goals are met."""
    sizes = [len(asset.body) for name, asset in assets.assets().items() if name.endswith(".js")]
    print(f"scripts in all: {sum(sizes):,} bytes")
    with served(count) as (process, address, tell):
        with tempfile.TemporaryDirectory() as folder, started(folder):
            async with tab_of(debugging_port(folder)) as tab:
                await tab.tell("Performance.enable", timeDomain="threadTicks")
                first, times = await paints(tab, address)
                print(
                    f"first painted after its scripts: median {statistics.median(first):.0f} ms, most {max(first):.0f} ms"
                )
                print(
                    f"first rows painted after the response: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms, of {LAPS}"
                )
                print(f"the tab's scripts hold {await held(tab):.1f} MB at first", end=", ")
                await seen_through(tab, count)
                print(f"{await held(tab):.1f} MB once all {count:,} Syncs were looked through")
                await tab.until("!!document.querySelector('.live.is')")
                await asyncio.sleep(QUIET_S)  # until what was looked through is done with
                asked, worked_s = len(tab.requests), (await metrics(tab))["TaskDuration"]
                await asyncio.sleep(QUIET_S)
                worked = 100 * ((await metrics(tab))["TaskDuration"] - worked_s) / QUIET_S
                idle = len(tab.requests) - asked
                print(f"an idle page: {idle} requests and {worked:.2f} % of a core in {QUIET_S:.0f} s")
        await hundred(process, address, tell)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return statistics.median(times) <= PAINT_GOAL_MS and idle == 0


async def hundred(process: psutil.Process, address: str, tell: Any) -> None:
    """Print what so many open pages cost the process."""
    before = megabytes(process)
    heard = 0

    async def listen(session: aiohttp.ClientSession, at: int) -> None:
        nonlocal heard
        async with session.get(f"{address}/api/v1/stream", headers={"X-Person": str(at % PEOPLE)}) as answer:
            async for line in answer.content:
                heard += line == b"event: syncs\n"

    unlimited = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=unlimited, timeout=aiohttp.ClientTimeout(total=None)) as session:
        pages = [asyncio.create_task(listen(session, at)) for at in range(PAGES)]
        await asyncio.sleep(1)
        quiet = await share(process)
        print(
            f"{PAGES} open pages: {before:.0f} MB without, {megabytes(process):.0f} MB with; {quiet:.2f} % of a core while nothing changes",
            end=", ",
        )
        tell.write(f"{CHANGES_PER_S}\n")
        tell.flush()
        busy = await share(process)
        print(
            f"{busy:.1f} % while {CHANGES_PER_S} Syncs a second change: {heard / QUIET_S:.0f} pushes a second, {megabytes(process):.0f} MB"
        )
        assert not any(page.done() for page in pages)
        for page in pages:
            page.cancel()


def main(arguments: Sequence[str]) -> int:
    """Measure; return the exit status."""
    if arguments[:1] == ["serve"]:
        asyncio.run(serve(int(arguments[1])))
        return 0
    if not program():
        print("no browser is installed (hint: apt-get install chromium)", file=sys.stderr)
        return 2
    return 0 if asyncio.run(measure(int(arguments[0]) if arguments else SYNCS)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
