"""What holds for a whole run: how hard laws are tried, where its sandbox is, and that the user's settings stay away.

Fixtures on the real thing (a control plane, a Git server, the whole program) are in tests/fixtures, for all folders.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import runs

pytest_plugins = (
    "tests.running.ending",
    "tests.fixtures.home",
    "tests.fixtures.cluster",
    "tests.fixtures.git",
    "tests.fixtures.program",
    "tests.real_pods",
)

# A machine that is busy is slow, which says nothing about a law.
settings.register_profile("busy", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
# What a change of the program does is judged on the same examples each time; which is the simplest that fails doesn't matter.
settings.register_profile(
    "mutants", settings.get_profile("busy"), derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)
# Whether a commit lands is judged on the same examples each time too; whoever runs the tests by hand looks for new ones.
settings.register_profile("ci", settings.get_profile("busy"), derandomize=True, database=None, print_blob=True)
# Ten thousand statuses of anything, and a thousand examples of each law besides.
settings.register_profile("long", settings.get_profile("busy"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "busy"))


def pytest_configure(config: pytest.Config) -> None:
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # our programs
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the programs under test are to hear Ctrl-C
    runs.begin_run(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    runs.hand_run_on(node)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        runs.end_run(session.config.stash[runs.RUN])


@pytest.fixture(autouse=True)
def _nobodys_home(request, monkeypatch) -> None:
    """Keep the user's settings away from the tests, and the tests away from the user's files."""
    if "core" in request.node.path.relative_to(Path(__file__).parent).parts[:1]:
        return  # pure: there is nothing to keep away
    runs.leave_home(monkeypatch, request.getfixturevalue("home"), request.getfixturevalue("run_folder"))
