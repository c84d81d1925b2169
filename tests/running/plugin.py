"""Plugin of pytest that runs the tests as make does: ``pytest -p tests.running.plugin --numprocesses=6 --builds="sandbox,render s3-server"``.

Workers tell, once they have collected the tests, what each of them waits for and needs; the process that started the run deals
them out by that (``dealing``), and builds what isn't built yet beside it (``builds``).
"""

from __future__ import annotations

import json
import os
import random
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.running import durations
from tests.running.builds import Build, Builds
from tests.running.dealing import Dealer, Dealt, units
from tests.running.scheduler import Dealing
from tests.running.stress import BUSY, WRITERS, Stress

NEEDS = {
    "binaries": "sandbox",
    "sandbox": "sandbox",
    "renders": "render",
    "decrypts": "sops",
    "registry_program": "registry",
    "s3_python": "s3-server",
}
"""Fixtures that stand for a program, and the target of make that builds it."""
PLACES = {"tests/operators/real": {"images", "s3-server"}}
"""Folders all of whose tests need programs that no fixture stands for."""
WAITS = {"binaries", "sandbox", "git_host", "ssh_host"}
"""Fixtures that stand for a server: whoever has one mostly waits for it."""
DRAWN = "drawn"
DESK = pytest.StashKey["Desk"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("running", "how the tests are run")
    group.addoption("--builds", default="", help='targets of make that are built meanwhile: "sandbox,render s3-server"')
    group.addoption("--stress", action="store_true", help="run beside busy processes and a slow disk")
    group.addoption("--shuffle", metavar="SEED", help=f"run the tests in an order drawn by this number, or {DRAWN}")


def pytest_configure(config: pytest.Config) -> None:
    if is_worker(config):
        config.option.shuffle = config.workerinput["running_seed"]  # type: ignore[attr-defined] # of its own it would draw another
        config.pluginmanager.register(Worker(config), "running-worker")
        return
    if config.option.shuffle == DRAWN:
        config.option.shuffle = str(secrets.randbelow(10**6))
    if config.option.collectonly:
        return
    config.stash[DESK] = Desk(config)
    config.pluginmanager.register(config.stash[DESK], "running-desk")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.shuffle:
        items[:] = shuffled(items, config.option.shuffle)


def shuffled(items: list[pytest.Item], seed: str) -> list[pytest.Item]:
    """The items in an order drawn by *seed*; only those of a scenario keep theirs, since they look at one thing in turn."""
    order = list(items)
    random.Random(seed).shuffle(order)  # noqa: S311 - it is to come again by its seed
    in_turn: dict[Path, Iterator[pytest.Item]] = {}
    for item in order:
        if item.get_closest_marker("scenario") and item.path not in in_turn:
            in_turn[item.path] = iter([each for each in items if each.path == item.path])
    return [next(in_turn[item.path]) if item.path in in_turn else item for item in order]


def pytest_report_header(config: pytest.Config) -> list[str]:
    header = []
    if config.option.shuffle:
        header.append(f"order: random (make test ORDER=random SEED={config.option.shuffle} runs it again)")
    if config.option.stress:
        header.append(f"stress: {BUSY} busy processes, and {WRITERS} that write to the disk")
    return header


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


class Pause(pytest.Item):
    """What a worker has before it while nobody has told it what to do next."""

    def runtest(self) -> None:
        raise AssertionError


class Worker:
    """In each worker: says what its tests are like, and has a pause behind them."""

    def __init__(self, config: pytest.Config) -> None:
        self.folder = Path(config.workerinput["running_folder"])  # type: ignore[attr-defined]
        self.name = config.workerinput["workerid"]  # type: ignore[attr-defined]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        traits = [traits_of(item) for item in session.items]
        (self.folder / f"{self.name}.json").write_text(json.dumps(traits))
        session.items.append(Pause.from_parent(session, name="pause"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        return True if isinstance(item, Pause) else None


def traits_of(item: Any) -> dict[str, Any]:
    """What matters for dealing out a test: the programs that it needs, whether it waits, and with which others it shares a fixture."""
    fixtures = set(getattr(item, "fixturenames", ()))
    needs = {program for fixture, program in NEEDS.items() if fixture in fixtures}
    needs |= {program for place, those in PLACES.items() if item.nodeid.startswith(f"{place}/") for program in those}
    return {
        "needs": sorted(needs),
        "waits": bool(WAITS & fixtures),
        "together": shared_by(item),
        "seconds": said_by(item),
    }


def said_by(item: Any) -> float:
    """About the seconds that the scenario of a test takes by its own account; 0 of a test that has none."""
    mark = item.get_closest_marker("scenario")
    return 60.0 * mark.kwargs["minutes"] if mark else 0.0


def shared_by(item: Any) -> str:
    """Text that tests have in common which look at one and the same thing; empty of a test that shares nothing.

    It is the module of a scenario, the name of a group of modules that share a dear thing, or what they ask for that is made once for their module or class. What each test of a module has without
    asking is made once more by each worker.
    """
    file = item.nodeid.partition("::")[0]
    if item.get_closest_marker("scenario"):
        return file
    if group := item.get_closest_marker("xdist_group"):
        return str(group.args[0])
    if not hasattr(item, "_fixtureinfo"):
        return ""
    unasked = set(item.session._fixturemanager._getautousenames(item))
    parameters = item.callspec.indices if hasattr(item, "callspec") else {}
    shared = [
        (name, definitions[-1].scope, parameters.get(name))
        for name, definitions in item._fixtureinfo.name2fixturedefs.items()
        if definitions[-1].scope in {"class", "module", "package"} and name not in unasked
    ]
    of_class = item.cls.__qualname__ if item.cls and all(scope == "class" for _, scope, _ in shared) else ""
    return f"{file}::{of_class} {sorted(shared, key=repr)}" if shared else ""


class Desk:
    """In the process that started the run: deals out, has things built, keeps company under stress."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.folder = Path(tempfile.mkdtemp(prefix="running-"))
        self.scheduler: Dealing | None = None
        self.stress: Stress | None = None
        logs = config.rootpath / "build" / "logs"
        self.builds = Builds(config.option.builds, config.rootpath, logs, self._look_again)
        self.told: set[tuple[str, int | None]] = set()

    # -- begin and end -----------------------------------------------------------------------------------------------

    def pytest_sessionstart(self) -> None:
        if self.config.option.stress:
            self.stress = Stress(self.folder)
        self.builds.begin()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        if not self._session_of_xdist:  # one process: it begins once all is there
            self.builds.wait()
            for build in self.builds.all:
                if build.status:
                    raise pytest.UsageError(f"make {build.target} failed:\n{build.said}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self.stress:
            self.stress.end()
        self.builds.end()

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- dealing -----------------------------------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["running_folder"] = str(self.folder)
        node.workerinput["running_seed"] = self.config.option.shuffle

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        ids.pop()  # the pause, which nobody is to count

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> Dealing:
        self.scheduler = Dealing(config, self._prepare, self._take_note)
        return self.scheduler

    def _prepare(self, worker: str, collection: Sequence[str]) -> Dealer:
        traits = json.loads((self.folder / f"{worker}.json").read_text())
        known = durations.read(self.config.rootpath)
        seconds = durations.estimates(collection, known, [each["waits"] for each in traits])
        files = Counter(map(durations.file_of, collection))
        tests = []
        for index, (name, estimate, each) in enumerate(zip(collection, seconds, traits, strict=True)):
            file = durations.file_of(name)
            took = each["seconds"] / files[file] if each["seconds"] and file not in known else estimate
            tests.append(Dealt(index, file, took, each["waits"], frozenset(each["needs"]), each["together"]))
        dealer = Dealer(units(tests, mixed=bool(self.config.option.shuffle)), os.cpu_count() or 1)
        dealer.missing = {build.target for build in self.builds.all}
        return dealer

    # -- builds ------------------------------------------------------------------------------------------------------

    @property
    def _session_of_xdist(self) -> Any:
        return self.config.pluginmanager.get_plugin("dsession")

    def _look_again(self) -> None:
        """Have the scheduler called: it works in another thread, and sleeps while no worker says anything."""
        if session := self._session_of_xdist:
            session.queue.put(("unscheduled", {"node": None, "indices": []}))

    def _take_note(self, dealer: Dealer) -> None:
        """Let begin what has waited for a build, fail where one failed, and tell how far the others are."""
        for build in self.builds.all:
            status, sentence = build.status, build.sentence
            if sentence and (sentence, status) not in self.told:
                self._tell(sentence)
            if build.target in dealer.missing and status is not None and (build.target, status) not in self.told:
                if status == 0:
                    dealer.built(build.target)
                else:
                    self._fail(build, len(dealer.dropped(build.target)))
                self.told.add((build.target, status))
            self.told.add((sentence, status))

    def _tell(self, sentence: str) -> None:
        if terminal := self.config.pluginmanager.get_plugin("terminalreporter"):
            terminal.ensure_newline()
            terminal.write_line(sentence)

    def _fail(self, build: Build, untried: int) -> None:
        name = f"make {build.target}"
        text = f"{build.said}\n\n{name} failed; so {untried} tests that need it were not run"
        report = pytest.TestReport(name, (name, None, name), {}, "failed", text, "setup")
        self.config.hook.pytest_runtest_logreport(report=report)
