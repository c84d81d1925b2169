"""Plugin of pytest that takes SIGTERM for Ctrl-C: fixtures end what they have begun, and the run its sandbox.

Whoever stops a run from outside (make, timeout, continuous integration) sends SIGTERM, to its first process or to all of them. The first
tells its workers, which else would be killed after a moment.
"""

from __future__ import annotations

import contextlib
import os
import signal

import psutil
import pytest

WORKER = "exec(eval(sys.stdin.readline()))"
"""What the command line of a worker of xdist ends with."""
ENDING_S = 120
"""How long workers may take to end what their tests have begun."""
TOLD = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever tells all processes of a group tells some of them twice
        config.stash[TOLD] = True
        raise KeyboardInterrupt("told to end (SIGTERM)")

    signal.signal(signal.SIGTERM, end)


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt() -> None:
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:
        return
    workers = [child for child in psutil.Process().children() if _works(child)]
    for worker in workers:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.terminate()
    psutil.wait_procs(workers, timeout=ENDING_S)


def _works(child: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return any(word.endswith(WORKER) for word in child.cmdline())
    return False


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(TOLD, False) and hasattr(config, "workerinput"):
        os._exit(1)  # it has ended what it began, and told so; else it would wait for orders
