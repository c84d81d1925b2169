"""The README, the quick start and the guides, walked: each command is typed in order, and prints what the page says.

A page is walked in *scenes*: what has to be there before a command is made by the scene that the command begins.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests import walks
from tests.e2e.docs import scenes


@pytest.fixture
def world(cluster, kubectl, git_server, new_daemon, follow, renders, tmp_path, monkeypatch):
    """Where a reader is: an empty folder, a namespace, a repository that can be pushed to."""
    own = kubectl.using(tmp_path / "kubeconfig")  # with the test's namespace, which others must not see
    Path(own.kubeconfig).write_bytes(Path(kubectl.kubeconfig).read_bytes())
    own("config", "set-context", "--current", f"--namespace={cluster.namespace}")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    path = os.pathsep.join([str(kubectl.folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    environ = {**os.environ, "KUBECONFIG": str(own.kubeconfig), "PATH": path}
    daemon = new_daemon(kubectl.kubeconfig, cluster.namespace)
    return scenes.World(folder, cluster, own, git_server, daemon, follow, environ)


PARTS = [(page, number) for page in walks.pages() for number in range(len(scenes.parts(page)))]


@pytest.mark.parametrize("page", walks.pages())
def test_what_is_not_run_is_on_the_page_and_has_a_reason(page):
    assert walks.without_a_reason(page) == []


def test_reasons_are_given_for_pages_that_are_walked_and_name_tests_that_are_there():
    assert walks.NOT_RUN.keys() | scenes.SCENES.keys() | scenes.BEFORE.keys() <= set(walks.pages())
    reasons = {why for reasons in walks.NOT_RUN.values() for why in reasons.values()}
    named = {path for why in reasons for path in re.findall(r"tests/[\w/.]+\w", why)}
    assert [path for path in named if not (walks.ROOT / path).exists()] == []


@pytest.mark.parametrize("page", walks.pages())
def test_the_scenes_of_a_page_leave_out_none_of_its_commands(page):
    walked = [command for _, part in scenes.parts(page) for command in part]
    assert walked == [command for command in walks.of(page) if not command.reason]
    unused = [begin for begin in scenes.BEFORE.get(page, {}) if not any(each.text.startswith(begin) for each in walked)]
    assert unused == []


@pytest.mark.parametrize(("page", "number"), PARTS, ids=[f"{page} {number + 1}" for page, number in PARTS])
def test_a_page_is_true(world, page, number):
    prepare, part = scenes.parts(page)[number]
    prepare(world)
    for command in part:
        for begin, act in scenes.BEFORE.get(page, {}).items():
            if command.text.startswith(begin):
                act(world)
        done = world.types(command.text)
        told, besides = world.read(done.stdout), world.read(done.stderr)
        where = f"{page}:{command.line}: {command.text}\n{told}{besides}({done.returncode})"
        assert done.returncode in scenes.statuses(command), where
        if command.printed is not None:
            assert walks.is_told(command.printed, told, besides), (
                f"{where}\n\n{walks.alike(told)}\n\n{walks.alike(command.printed)}"
            )
