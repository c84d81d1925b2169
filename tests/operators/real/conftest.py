"""Real servers of the operators. What begins one costs most: so the tests of a *scenario* look at one database in turn, on one worker.

A module whose tests share a database carries ``pytest.mark.scenario(minutes=n)``: about how long it takes beside others. Its tests run in the order in which they
stand, and each applies what it needs, so that it can run by itself too. Where one fails, those after it are skipped: what they would look at isn't what they expect.
"""

import functools
import os

import pytest

from tests.operators.real.worlds import World
from tests.real_pods import Real, labelled
from tests.runs import leave_home

LONGEST_S = 3000
"""What a test of real programs may take on a machine that is busy with others."""

WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
WORLDS = pytest.StashKey[list[World]]()
FAILED = pytest.StashKey[dict[str, str]]()
"""The test that failed, by scenario."""


def pytest_itemcollected(item) -> None:
    if not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(LONGEST_S))


def pytest_collection_modifyitems(items) -> None:
    """Let the longest scenarios begin first, so that none of them runs alone at the end. A worker takes the next one early: so the shortest stand second."""
    minutes = {}
    for item in items:
        if mark := item.get_closest_marker("scenario"):
            minutes[item.path] = mark.kwargs["minutes"]
    longest = sorted(minutes, key=minutes.get, reverse=True)
    first, others = longest[:WORKERS], longest[WORKERS:]
    order = {path: at for at, path in enumerate([*first, *others[::-1][:WORKERS][::-1], *others[: -WORKERS or None]])}
    items.sort(key=lambda item: order.get(item.path, len(order)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed and call.when != "teardown":
        for world in item.config.stash.get(WORLDS, []):
            report.sections.append((f"what there is in {world.real.namespace}", world.told()))
        if item.get_closest_marker("scenario"):
            item.config.stash.setdefault(FAILED, {}).setdefault(item.path, item.name)
    return report


def pytest_runtest_setup(item) -> None:
    if first := item.config.stash.get(FAILED, {}).get(item.path):
        pytest.skip(f"{first}, which comes before it in its scenario, has failed")


@pytest.fixture(scope="module", autouse=True)
def _nobodys_home_for_long(home, run_folder):
    """As for each test, from before what a module shares is begun."""
    with pytest.MonkeyPatch.context() as patch:
        leave_home(patch, home, run_folder)
        yield


@pytest.fixture(scope="module")
def world(
    _real_pods, kubectl, administrator, namespace_names, eventually, crds, pytestconfig, tmp_path_factory
) -> World:
    """A namespace whose pods run as processes, for all tests of a module, and the daemons that look after it."""
    wait = functools.partial(eventually, timeout_s=600, pause_s=0.1)
    name = administrator.new_namespace(next(namespace_names))
    found = World(labelled(Real(_real_pods, kubectl, name, wait)), tmp_path_factory.mktemp("daemons"))
    living = pytestconfig.stash.setdefault(WORLDS, [])
    living.append(found)
    yield found
    found.end()
    living.remove(found)
