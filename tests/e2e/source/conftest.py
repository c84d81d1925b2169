"""What tests of overlays share: the program that renders them, and a working tree to write overlays into."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import GitLimits
from kubectl_reconcile.source.render.process import RenderProcess
from kubectl_reconcile.source.render.renderer import Renderer
from tests.e2e.source.overlays import write


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
