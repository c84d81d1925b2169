"""What tests of overlays share: the program that renders them, and a working tree to write overlays into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.process import RenderProcess
from kubectl_reconcile.source.render.renderer import Renderer
from tests.e2e.source.overlays import write
from tests.registry_server import RunningRegistry, open_registry, password_registry, referrers_registry, token_registry
from tests.rendering_tools import built_helm


@pytest.fixture
def gits(tmp_path, monkeypatch):
    """How many commands of git were run since the last call."""
    trace = tmp_path / "trace"
    trace.touch()
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))

    def count() -> int:
        lines = trace.read_text().splitlines()
        trace.write_text("")
        return sum('"event":"start"' in line for line in lines)

    return count


@pytest.fixture(scope="session")
def rendering(renders):
    """Processes that render and have nothing to do: to start one takes longer than most tests have it render."""
    idle: list[RenderProcess] = []
    yield idle
    for process in idle:
        process.close()


@pytest.fixture
def renderer(rendering):
    """A renderer that knows nothing yet; its process is the one of a test before, if that has left one."""
    renderer = Renderer(_idle=rendering.pop() if rendering else None)
    yield renderer
    if renderer._idle is not None:
        rendering.append(renderer._idle)


@pytest.fixture(scope="session")
def helm(home):
    """Helm's own program, where somebody has built it: that takes minutes."""
    return built_helm() or pytest.skip("helm isn't built: python -m tests.rendering_tools builds it")


@pytest.fixture(scope="module")
def registry(registry_program, tmp_path_factory) -> Iterator[RunningRegistry]:
    """A registry over plain http that lets everybody in; tests have repositories of their own in it."""
    with open_registry(registry_program, tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture(scope="module")
def with_passwords(registry_program, tmp_path_factory) -> Iterator[RunningRegistry]:
    """A registry over https that wants a password."""
    with password_registry(registry_program, tmp_path_factory.mktemp("passwords")) as running:
        yield running


@pytest.fixture(scope="module")
def with_tokens(registry_program, tmp_path_factory) -> Iterator[RunningRegistry]:
    """A registry over https that wants tokens of another server."""
    with token_registry(registry_program, tmp_path_factory.mktemp("tokens")) as running:
        yield running


@pytest.fixture(scope="module")
def with_referrers(registry_program) -> Iterator[RunningRegistry]:
    """A registry over plain http with the referrers API."""
    with referrers_registry(registry_program) as running:
        yield running


@pytest.fixture
def folder(tmp_path) -> Path:
    """A working tree: the tests' overlays may look around in it, and no further."""
    folder = tmp_path / "tree"
    (folder / ".git").mkdir(parents=True)
    return folder


@pytest.fixture
def render(renderer, folder):
    """render(files, path) -> what the overlay at *path* renders to, with these files beside what already exists."""

    def run(files, path="prod", *, limits=GitLimits()):  # noqa: B008 - it is frozen
        write(folder, files)
        return ManifestReader(limits=limits, renderer=renderer).read(WorktreeSource(folder / path, limits=limits))

    return run
