"""Which commit changed a field, on a real Git server: what diff says of it, and where it has nothing to say."""

from __future__ import annotations

import json
import subprocess

import pytest

from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.engine.commands import blame
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.git.source import GitSource, Ref, Repository

WEB = ObjectRef("", "ConfigMap", "shop", "web")
COLOUR, SIZE, OLD = (FieldPath.fields("data", name) for name in ("colour", "size", "old"))


@pytest.fixture
def source(git_server, tmp_path):
    return GitSource(Repository.of(git_server.url), Ref.of(branch="main"), cache_dir=tmp_path / "cache")


def life_of(source, *, since=""):
    return blame.lives_of(source, "web.yaml", source.fetch(), [WEB], "shop", reader=ManifestReader(), since=since)[WEB]


@pytest.fixture
def history(git_server, config_map):
    """The commits of one file by name, in their order; another file changes in between."""
    push = git_server.push
    return {
        "first": push({"web.yaml": config_map("web", colour="red", size="1", old="x")}, "First"),
        "sized": push({"web.yaml": config_map("web", colour="red", size="2", old="x")}, "Size"),
        "other": push({"other.yaml": config_map("other")}, "Other"),
        "green": push({"web.yaml": config_map("web", colour="green", size="2")}, "Green, without old"),
    }


BLAMED = {
    "changed last": (COLOUR, "", "green"),
    "changed in between": (SIZE, "", "sized"),
    "removed": (OLD, "", "green"),
    "there from the beginning": (FieldPath.fields("metadata", "name"), "", "first"),
    "changed since": (COLOUR, "other", "green"),
    "not changed since": (SIZE, "other", None),
    "never there": (FieldPath.fields("data", "nothing"), "", None),
}


@pytest.mark.parametrize(("path", "since", "expected"), BLAMED.values(), ids=BLAMED)
def test_the_commit_that_changed_a_field(source, history, path, since, expected):
    life = life_of(source, since=history.get(since, ""))
    commit = blame.who_changed(life, path, UNKNOWN)
    assert (commit and commit.sha) == (history[expected] if expected else None)


def test_a_change_that_was_taken_back_is_the_last_ones(git_server, source, config_map):
    for colour in ("red", "green", "red"):
        last = git_server.push({"web.yaml": config_map("web", colour=colour)}, colour)
    assert blame.who_changed(life_of(source), COLOUR, UNKNOWN).sha == last


def test_a_file_that_could_not_be_read_in_between_hides_nothing_else(git_server, source, config_map):
    git_server.push({"web.yaml": config_map("web", colour="red")}, "red")
    git_server.push({"web.yaml": "colour: [\n"}, "broken")
    mended = git_server.push({"web.yaml": config_map("web", colour="red")}, "mended")
    assert blame.who_changed(life_of(source), COLOUR, UNKNOWN).sha == mended


def test_an_object_that_came_into_a_file_was_asked_for_by_that_commit(git_server, source, config_map):
    git_server.push({"web.yaml": config_map("other")}, "another")
    came = git_server.push({"web.yaml": f"{config_map('other')}\n---\n{config_map('web', colour='red')}"}, "both")
    assert blame.who_changed(life_of(source), COLOUR, UNKNOWN).sha == came


def test_diff_names_commit_and_author_of_what_git_changed(plugin, follow, git_server, config_map, daemon, cluster):
    first = git_server.push({"web.yaml": config_map("web", colour="red", size="1")}, "First")
    sync = follow(git_server.url)
    sync.until_synced(first)
    plugin("suspend", "shop")
    sync.until("Suspended")
    green = git_server.push({"web.yaml": config_map("web", colour="green", size="1")}, "Green")
    both = git_server.push({"web.yaml": config_map("web", colour="green", size="2")}, "Size")
    cluster.edit("ConfigMap", "web", {"data": {"size": "9"}})
    author = subprocess.run(
        ["git", f"--git-dir={git_server.folder}", "log", "-1", "--format=%an", green],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    shown = plugin("diff", "shop")
    assert f".data.colour changed in Git ({green[:7]} by {author})" in shown.out
    assert f".data.size changed in Git ({both[:7]} by {author}), and drifted in the cluster (by-hand " in shown.out
    [change] = json.loads(plugin("diff", "shop", "-o", "json").out)["changes"]
    told = {field["path"]: (field.get("commit"), field.get("author")) for field in change["fields"]}
    assert told == {".data.colour": (green, author), ".data.size": (both, author)}


def test_drift_and_files_without_history_have_no_commit(
    plugin, follow, git_server, config_map, daemon, cluster, tmp_path
):
    first = git_server.push({"web.yaml": config_map("web", colour="red")}, "First")
    sync = follow(git_server.url)
    sync.until_synced(first)
    plugin("suspend", "shop")
    sync.until("Suspended")
    cluster.edit("ConfigMap", "web", {"data": {"colour": "blue"}})
    [change] = json.loads(plugin("diff", "shop", "-o", "json").out)["changes"]
    assert ([field["reason"] for field in change["fields"]], "commit" in change["fields"][0]) == (["drift"], False)
    (tmp_path / "web.yaml").write_text(config_map("web", colour="black"))
    assert plugin("diff", "-f", str(tmp_path), "--name", "shop").status == 1
