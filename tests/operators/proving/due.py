"""A plugin of pytest: of the operators' real tests run those that are due, and say in one line which and why (``-p tests.operators.proving.due``).

Due are all tests of an operator that isn't proven as it is now; of the others the smoke tests, and two scenarios that the commit's
hash draws. Tests that are no operator's are always due.
"""

from __future__ import annotations

import hashlib
import posixpath
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from tests.closure import TREE, Tree
from tests.operators.proving.parts import OPERATORS, operator_of, parts_of
from tests.operators.proving.record import Proof, in_short, read

DRAWN = 2
_STATE = pytest.StashKey[dict]()
_CHANGES = pytest.StashKey[dict]()


def drawn(scenarios: Iterable[str], commit: str, count: int = DRAWN) -> list[str]:
    """*count* of *scenarios*: the same for the same *commit*, whatever the order that they come in."""
    return sorted(set(scenarios), key=lambda name: hashlib.sha256(f"{commit} {name}".encode()).digest())[:count]


@dataclass(frozen=True)
class Test:
    """A test by its *name*, the *operator* that it is of, and the *scenario* that it is part of: what carries the mark, a module or a test."""

    __test__ = False  # it isn't one of pytest's

    name: str
    operator: str
    scenario: str
    is_smoke: bool = False


def chosen(tests: Iterable[Test], whole: Collection[str], commit: str) -> tuple[list[str], set[str]]:
    """The scenarios that *commit* draws, and the names of the tests that aren't due, where the operators of *whole* aren't proven."""
    proven = [one for one in tests if one.operator and one.scenario and one.operator not in whole]
    scenarios = drawn((one.scenario for one in proven), commit)
    return scenarios, {one.name for one in proven if one.scenario not in scenarios and not one.is_smoke}


def sentence(
    proofs: Mapping[str, Proof], changes: Mapping[str, Sequence[str]], chosen: Iterable[str], skipped: Mapping[str, int]
) -> str:
    """What runs and why: *changes* are the parts of each operator that changed since its proof, *chosen* the scenarios that were drawn."""
    said = []
    for name, parts in changes.items():
        proof = proofs.get(name)
        if proof is None:
            said.append(f"{name} was never proven, whole suite")
        elif parts:
            said.append(f"{name} changed since {proof.commit[:7]} ({in_short(parts)}), whole suite")
        else:
            said.append(f"{name} proven at {proof.commit[:7]} ({proof.when[:10]}), smoke")
    if names := [posixpath.basename(name).rpartition("::")[2].removesuffix(".py") for name in chosen]:
        said.append(f"drawn: {', '.join(names)}")
    said += [f"skipped {number}: {why}" for why, number in skipped.items()]
    return f"operators: {'; '.join(said)}"


def pytest_configure(config: pytest.Config) -> None:
    """Compare each operator with its proof, once for all workers."""
    if (given := getattr(config, "workerinput", None)) is not None:
        config.stash[_STATE] = given["operators"]
        return
    tree, proofs = Tree.at(), read()
    config.stash[_CHANGES] = {
        name: proofs[name].changed(parts_of(operator, tree)) if name in proofs else []
        for name, operator in OPERATORS.items()
    }
    config.stash[_STATE] = {
        "commit": subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=TREE, check=True, capture_output=True, text=True
        ).stdout.strip(),
        "whole": [name for name, parts in config.stash[_CHANGES].items() if parts or name not in proofs],
        "drawn": [],
    }
    config.pluginmanager.register(_Workers(config.stash[_STATE]))


class _Workers:
    """What is told to each worker, and what they answer."""

    def __init__(self, state: dict) -> None:
        self._state = state

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node) -> None:
        """Tell a worker what is to be run."""
        node.workerinput["operators"] = self._state

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        """Hear what a worker drew, which is what all drew."""
        self._state["drawn"] = getattr(node, "workeroutput", {}).get("drawn", self._state["drawn"])


@pytest.hookimpl(tryfirst=True)  # before xdist adds to their ids
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what isn't due."""
    state = config.stash[_STATE]
    tests = {item.nodeid: known(item) for item in items}
    state["drawn"], left = chosen(tests.values(), state["whole"], state["commit"])
    if left:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left])
        items[:] = [item for item in items if item.nodeid not in left]
    if hasattr(config, "workeroutput"):
        config.workeroutput["drawn"] = state["drawn"]


def known(item: pytest.Item) -> Test:
    """What is to be known of *item*."""
    operator = operator_of(item.path.relative_to(TREE).as_posix())
    scenario = next((node.nodeid for node, _ in item.iter_markers_with_node("scenario")), "")
    return Test(item.nodeid, operator, scenario, is_smoke=item.get_closest_marker("smoke") is not None)


def pytest_report_header(config: pytest.Config) -> str:
    """Say what will run, before it does."""
    return sentence(read(), config.stash[_CHANGES], (), {}) if _CHANGES in config.stash else ""


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Say what ran and why, as the last line but pytest's own."""
    skipped: Counter = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        if operator_of(report.nodeid.partition("::")[0]):
            skipped[
                str(report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix(
                    "Skipped: "
                )
            ] += 1
    terminalreporter.write_line(sentence(read(), config.stash[_CHANGES], config.stash[_STATE]["drawn"], skipped))
