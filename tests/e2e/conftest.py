"""Fixtures for tests of the whole program, besides those of tests/fixtures/program.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.domains import Factory
from tests.e2e.ssh_host import SshHost
from tests.waiting import patiently


@pytest.fixture(scope="session")
def eventually() -> Callable[..., Any]:
    """eventually(condition, "what is to come true") -> what the condition returned."""
    return patiently


@pytest.fixture
def written(tmp_path) -> Callable[[Mapping[str, Any]], Path]:
    """written(cr) -> the folder that holds just this manifest."""

    def write(manifest):
        folder = tmp_path / "source"
        folder.mkdir(exist_ok=True)
        (folder / "cr.json").write_text(json.dumps(manifest))
        return folder

    return write


@pytest.fixture
def idle_factory(tmp_path, monkeypatch) -> Iterator[Factory]:
    """A chocolate factory, known to all programs that the test starts."""
    started = Factory(tmp_path).start()
    monkeypatch.setenv("KUBECTL_RECONCILE_SYSTEM_CANDY_FACTORY", started.url)
    yield started
    started.stop()


@pytest.fixture
def factory(idle_factory, daemon) -> Factory:
    """A chocolate factory, and a daemon that knows it and follows the test's namespace."""
    return idle_factory


@pytest.fixture(scope="session")
def ssh_host() -> Iterator[SshHost]:
    """An SSH server of the repositories on this machine, for all of this worker's tests."""
    with SshHost() as host:
        yield host
