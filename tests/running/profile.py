"""Plugin of pytest that writes down where a run's time went: ``pytest -p tests.running.profile --profile=test``.

The tables go to docs/testing.md, into the section of that target of make; how long tests take goes to ``durations.json``, by which
they are dealt out. Without the plugin nothing is measured.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.running import durations, measuring, tables
from tests.running.measuring import Meter, Spent
from tests.running.plugin import DESK, Pause, is_worker
from tests.runs import RUN

PAGE = "docs/testing.md"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--profile",
        metavar="TARGET",
        help="write where the time of this run goes into the section of this target of make",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.profile and not config.option.collectonly:
        worker = is_worker(config)
        if not worker:
            config.pluginmanager.register(Book(config), "profile-book")
        if worker or not config.option.numprocesses:
            config.pluginmanager.register(Stopwatch(config), "profile-stopwatch")


class Stopwatch:
    """In whoever runs tests: measures them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.meter, self.collecting = config, Meter(), Spent()
        measuring.measure_steps(self.meter)

    def pytest_collection_finish(self) -> None:
        begun = time.time() - psutil.Process().create_time()
        self.collecting = Spent(1, begun, measuring.processor_s())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        if isinstance(item, Pause):
            return (yield)
        with self.meter.test(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        """Measure the fixture, and its end: what is to be done last is asked for first."""
        name, ending = fixturedef.argname, []

        def begin_end() -> None:
            ending.append(self.meter.fixture(name, times=0))
            ending[0].__enter__()

        fixturedef.addfinalizer(lambda: ending and ending.pop().__exit__(None, None, None))
        with self.meter.fixture(name, times=1):
            result = yield
        fixturedef.addfinalizer(begin_end)
        return result

    def pytest_sessionfinish(self) -> None:
        if is_worker(self.config):
            self.config.workeroutput["profile"] = {  # type: ignore[attr-defined]
                "collecting": astuple(self.collecting),
                **{part: packed(getattr(self.meter, part)) for part in ("tests", "fixtures", "steps")},
            }
        else:
            book = self.config.pluginmanager.get_plugin("profile-book")
            book.add(self.collecting, self.meter.tests, self.meter.fixtures, self.meter.steps)


def packed(spent: dict[str, Spent]) -> dict[str, tuple[Any, ...]]:
    return {name: astuple(each) for name, each in spent.items()}


class Book:
    """In the process that started the run: adds up and writes."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.begun = config, time.monotonic()
        self.collecting, self.shared_s = Spent(), 0.0
        self.tests: dict[str, Spent] = {}
        self.fixtures: dict[str, Spent] = {}
        self.steps: dict[str, Spent] = {}

    def add(self, collecting: Spent, *parts: dict[str, Spent]) -> None:
        self.collecting = tables.total([self.collecting, collecting])
        for whole, part in zip((self.tests, self.fixtures, self.steps), parts, strict=True):
            for name, spent in part.items():
                whole[name] = tables.total([whole.get(name, Spent()), spent])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if told := getattr(node, "workeroutput", {}).get("profile"):
            parts = (
                {name: Spent(*each) for name, each in told[part].items()} for part in ("tests", "fixtures", "steps")
            )
            self.add(Spent(*told["collecting"]), *parts)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Look at what the workers share before it is ended."""
        self.shared_s = shared_processor_s(self.config.stash.get(RUN, None))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if not self.tests:
            return
        root, target = self.config.rootpath, self.config.option.profile
        page, text = root / PAGE, tables.section(self.run(terminalreporter.stats))
        page.write_text(tables.placed(page.read_text(), target, text))
        took_s = {name: spent.seconds for name, spent in self.tests.items()}
        exists = [path.relative_to(root).as_posix() for path in root.rglob("test_*.py")]
        durations.write(root, durations.renewed(durations.read(root), took_s, exists))
        terminalreporter.write_line(f"==> where the time went is in {PAGE}")

    def run(self, stats: dict[str, list[Any]]) -> tables.Run:
        outcomes = ("passed", "failed", "error", "skipped", "xfailed")
        desk = self.config.stash.get(DESK, None)
        return tables.Run(
            target=self.config.option.profile,
            date=dt.datetime.now(tz=dt.UTC).date().isoformat(),
            outcome=", ".join(f"{len(stats[each]):,} {each}" for each in outcomes if stats.get(each)),
            wall_s=time.monotonic() - self.begun,
            workers=self.config.option.numprocesses or 1,
            cores=os.cpu_count() or 1,
            tests=self.tests,
            fixtures=self.fixtures,
            steps=self.steps,
            collecting=self.collecting,
            builds={each.target: "kept" if each.kept else f"{each.seconds:.0f} s" for each in desk.builds.all}
            if desk
            else {},
            shared_s=self.shared_s,
        )


def shared_processor_s(folder: Path | None) -> float:
    """Processor seconds of the processes that have a file of the run on their command line: those of its control planes."""
    taken = 0.0
    for process in psutil.process_iter() if folder else ():
        try:
            if any(str(folder) in word for word in process.cmdline()):
                taken += sum(process.cpu_times()[:4])
        except psutil.Error:
            continue
    return taken
