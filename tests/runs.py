"""The folder of a run, which its workers share: its sandboxes are in it, and who the run is.

One sandbox serves a whole run, however many workers it has: whoever needs it first starts it, and the process that
started the run ends it once all workers are done. It lives in a folder of the run, beside a file that says which
process owns the run; what a killed run has left behind is removed by the next one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from pathlib import Path

import pytest

from kubectl_reconcile.cache_folder import cache_dir
from kubectl_reconcile.sandbox.controlplane import list_sandboxes, state_dir
from kubectl_reconcile.sandbox.errors import SandboxError
from kubectl_reconcile.sandbox.processes import ProcessId
from tests.shared_cluster import CLUSTER

RUNS = cache_dir() / "test-runs"
RUN = pytest.StashKey[Path]()
RUNNER = pytest.StashKey[str]()  # the process that started the run, as OWNER holds it
OWNER = "owner.json"
OTHERS = "KUBE", "GIT_", "XDG_"  # variables with these prefixes never reach a test


def begin_run(config: pytest.Config) -> None:
    """Give a run its name and its owner; a worker has those of the run that it works for."""
    worker = getattr(config, "workerinput", None)
    if worker:
        config.stash[RUN] = Path(worker["sandbox_run"])
        config.stash[RUNNER] = worker["sandbox_runner"]
        return
    runner = ProcessId.of(os.getpid())
    config.stash[RUN] = RUNS / f"{runner.pid}-{secrets.token_hex(4)}"
    config.stash[RUNNER] = json.dumps([runner.pid, runner.born])


def hand_run_on(node) -> None:
    """Tell a worker which run it works for."""
    node.workerinput["sandbox_run"] = str(node.config.stash[RUN])
    node.workerinput["sandbox_runner"] = node.config.stash[RUNNER]


def folder_of_run(config: pytest.Config) -> Path:
    """The folder of this run, made by whoever needs it first, who removes what killed runs have left behind, too."""
    folder = config.stash[RUN]
    if not folder.exists():
        RUNS.mkdir(mode=0o700, parents=True, exist_ok=True)
        _end_killed_runs()
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / OWNER).write_text(config.stash[RUNNER])
    return folder


def _end_killed_runs() -> None:
    for folder in RUNS.iterdir():
        with contextlib.suppress(FileNotFoundError, SandboxError, json.JSONDecodeError):  # one may just begin
            if not ProcessId(*json.loads((folder / OWNER).read_text())).alive:
                end_run(folder)


def end_run(folder: Path) -> None:
    for root in (folder, state_dir({"XDG_STATE_HOME": str(folder)})):
        for sandbox in list_sandboxes(root):
            sandbox.down()
    shutil.rmtree(folder, ignore_errors=True)


def leave_home(monkeypatch: pytest.MonkeyPatch, home: Path, run_folder: Path) -> None:
    """Keep the user's settings away from what is started from now on, and that away from the user's files."""
    for name in os.environ:
        if name.startswith(OTHERS) and name not in (CLUSTER, "KUBEBUILDER_ASSETS"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(run_folder))  # the run ends what a test forgot
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Tester")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "tester@localhost")
