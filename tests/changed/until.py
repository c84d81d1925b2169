"""A plugin of pytest: run files in a given order for some seconds, and note what wasn't reached (``-p tests.changed.until``).

The seconds begin when all tests are collected.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.closure import TREE

SECONDS = "changed/seconds"
"""Where pytest's cache keeps how long each file took."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", type=Path, help="a file of JSON: files in order, and for how many seconds")
    parser.addoption("--left", type=Path, help="where to write how many tests of which file weren't reached")


def pytest_configure(config: pytest.Config) -> None:
    order = json.loads(config.getoption("--order").read_text())
    config.pluginmanager.register(Until(config, order["files"], order["seconds"]), "until")


class Until:
    """What runs, and what ran."""

    def __init__(self, config: pytest.Config, files: Iterable[str], seconds: float) -> None:
        self._config, self._longest_s, self._began = config, seconds, time.monotonic()
        self._rank = {file: number for number, file in enumerate(files)}
        self._waiting: set[str] = set()
        self._seconds: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items) -> None:
        items.sort(key=lambda item: self._rank.get(item.path.relative_to(TREE).as_posix(), len(self._rank)))

    def pytest_collection_finish(self) -> None:
        self._began = time.monotonic()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids) -> None:
        if not self._waiting:
            self._waiting, self._began = set(ids), time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem) -> bool | None:
        """Pass over what begins too late: it isn't reported, neither as passed nor as skipped."""
        if time.monotonic() < self._began + self._longest_s:
            return None
        if nextitem is None:  # what the tests share ends with the last of them
            item.session._setupstate.teardown_exact(None)
        return True

    def pytest_runtest_logfinish(self, nodeid) -> None:
        self._waiting.discard(nodeid)

    def pytest_runtest_logreport(self, report) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workerinput"):
            return
        left = Counter(nodeid.partition("::")[0] for nodeid in self._waiting)
        took_s = time.monotonic() - self._began
        self._config.getoption("--left").write_text(json.dumps({"files": left, "took_s": took_s}))
        if self._config.cache is not None:
            known = self._config.cache.get(SECONDS, {})
            self._config.cache.set(SECONDS, known | {file: round(took, 2) for file, took in self._seconds.items()})
