"""diff --base: what changes between two revisions of a working tree, through all Syncs, without a cluster or a kubeconfig."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_reconcile.core.planning.plan import Op
from kubectl_reconcile.core.resources.source import Render
from kubectl_reconcile.engine.commands.between_revisions import between
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.render.reach import places_read

URL = "https://git.example.com/platform/clusters.git"
GIT = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]


def config(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def a_sync(name, path, *, url=URL, **spec):
    source = {"git": {"url": url}, "path": path}
    metadata = {"name": name, "namespace": "shop"}
    return {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": metadata,
        "spec": {"source": source, **spec},
    }


class Tree:
    """A working tree of Git."""

    def __init__(self, top):
        self.top = top
        subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(top)], check=True)
        self.git("remote", "add", "origin", "git@git.example.com:platform/clusters")

    def git(self, *arguments):
        return subprocess.run(
            ["git", "-C", str(self.top), *GIT, *arguments], check=True, capture_output=True, text=True
        ).stdout

    def write(self, files):
        for path, content in files.items():
            place = self.top / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.unlink()
            else:
                place.write_text(content if isinstance(content, str) else json.dumps(content))
        return self

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "as it was")
        return self

    def made(self, path="root", base="HEAD", *, name="", with_nested=True):
        place = self.top / path
        return asyncio.run(between(place, base, name, "shop", render=Render.AUTO, with_nested=with_nested))


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nobody-reads-this"))
    return Tree(tmp_path / "clusters")


FLEET = {
    "root/web.json": a_sync("web", "apps/web"),
    "root/api.json": a_sync("api", "apps/api"),
    "root/other.json": a_sync("other", ".", url="https://git.example.com/platform/other"),
    "apps/web/a.json": config("web", color="red"),
    "apps/web/inner.json": a_sync("inner", "apps/inner"),
    "apps/inner/a.json": config("inner", color="blue"),
    "apps/api/a.json": config("api", color="red"),
    "apps/api2/a.json": config("api", color="green"),
}


def told(made):
    """Each nested Sync with what happens to it, and what its plan changes."""
    return {
        each.sync.name: (each.op.value, [(one.op.value, one.ref.name) for one in each.plan.acting()] if each.plan else each.not_planned)
        for each in made.nested
    }  # fmt: skip


CHANGES = {
    "nothing": ({}, {}),
    "a file of a Sync that stays as it is": (
        {"apps/api/a.json": config("api", color="black")},
        {"api": ("unchanged", [("update", "api")])},
    ),
    "a file of a Sync that is nested in one that stays as it is": (
        {"apps/inner/a.json": config("inner", color="black")},
        {"inner": ("unchanged", [("update", "inner")])},
    ),
    "a new file that isn't committed": (
        {"apps/api/b.json": config("b")},
        {"api": ("unchanged", [("create", "b")])},
    ),
    "another path": (
        {"root/api.json": a_sync("api", "apps/api2")},
        {"api": ("update", [("update", "api")])},
    ),
    "a new Sync": (
        {"root/new.json": a_sync("new", "apps/inner")},
        {"new": ("create", [("create", "inner")])},
    ),
    "a path that isn't there": (
        {"root/new.json": a_sync("new", "apps/nowhere")},
        {"new": ("create", [])},
    ),
    "a Sync that goes, and leaves its members": (
        {"root/api.json": None},
        {"api": ("delete", "its members stay, and belong to nobody then")},
    ),
    "another repository": (
        {"root/other.json": a_sync("other", "apps", url="https://git.example.com/platform/other")},
        {"other": ("update", "it follows another repository, or another branch or tag, which isn't read here")},
    ),
    "what only a cluster knows": (
        {"root/api.json": a_sync("api", "apps/api", source=None) | {"spec": {"source": {
            "git": {"url": URL}, "path": "apps/api",
            "substitute": {"variables": [{"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "colors", "key": "web"}}}]},
        }}}},
        {"api": ("update", "what it applies depends on the cluster")},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "expected"), CHANGES.values(), ids=CHANGES)
def test_what_changes_through_all_syncs(tree, files, expected):
    tree.write(FLEET).commit().write(files)
    assert told(tree.made()) == expected


def test_a_sync_that_prunes_shows_what_goes_with_it(tree):
    tree.write(FLEET | {"root/api.json": a_sync("api", "apps/api", deletionPolicy="Prune")}).commit()
    assert told(tree.write({"root/api.json": None}).made()) == {"api": ("delete", [("delete", "api")])}


def test_two_commits_are_compared_by_the_lines_that_the_files_say(tree):
    tree.write(FLEET).commit().write({"apps/api/a.json": config("api", color="black")}).commit()
    [found] = tree.made(base="HEAD~1").nested
    [change] = found.plan.acting()
    assert [(str(each.path), each.before, each.after) for each in change.fields] == [(".data.color", "red", "black")]
    assert found.plan.base == tree.git("rev-parse", "HEAD~1").strip()


def test_the_same_comes_out_again(tree):
    tree.write(FLEET).commit().write({"apps/api/a.json": config("api", color="black")})
    assert tree.made().hash == tree.made().hash


def test_without_nested_plans_only_the_folder_itself_is_compared(tree):
    made = tree.write(FLEET).commit().write({"root/api.json": None}).made(with_nested=False)
    assert ([each.op for each in made.acting()], made.nested) == ([Op.DELETE], ())


def test_a_folder_that_is_new_is_compared_with_nothing(tree):
    made = tree.write(FLEET).commit().write({"fresh/a.json": config("a")}).made("fresh")
    assert [(each.op, each.ref.name) for each in made.acting()] == [(Op.CREATE, "a")]


def test_a_revision_that_isnt_there_is_an_error(tree):
    with pytest.raises(SourceError, match="has no commit v9"):
        tree.write(FLEET).commit().made(base="v9")


def test_a_revision_that_looks_like_a_flag_is_none(tree):
    with pytest.raises(SourceError, match="has no commit --output"):
        tree.write(FLEET).commit().made(base="--output=/tmp/x")


def test_a_folder_in_no_working_tree_is_an_error(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(config("a")))
    with pytest.raises(SourceError, match="in no working tree"):
        asyncio.run(between(tmp_path, "HEAD", "", "shop", render=Render.AUTO, with_nested=True))


def test_only_what_may_differ_is_rendered(tree, monkeypatch):
    from kubectl_reconcile.engine.sync import nowhere  # noqa: PLC0415

    planned, plan_by = [], nowhere.plan_by

    async def noting(sync, *rest):
        planned.append(sync.name)
        return await plan_by(sync, *rest)

    monkeypatch.setattr(nowhere, "plan_by", noting)
    tree.write(FLEET).commit().write({"apps/api/a.json": config("api", color="black")}).made(name="root")
    assert sorted(planned) == ["api", "api", "root", "root", "web", "web"]  # web holds a Sync


REACHES = {
    "a base beside it": ("resources: [../base]", ["../base"]),
    "a file of a generator": ("configMapGenerator:\n- {name: a, files: [a.txt=../files/a.txt]}", ["../files/a.txt"]),
    "nothing beside it": ("resources: [a.yaml]", []),
}


@pytest.mark.parametrize(("text", "expected"), REACHES.values(), ids=REACHES)
def test_which_places_an_overlay_reads(tmp_path, text, expected):
    overlay = tmp_path / "prod"
    (overlay / "deep").mkdir(parents=True)
    (overlay / "kustomization.yaml").write_text(text)
    assert places_read(overlay) == {overlay, *(Path(os.path.normpath(overlay / each)) for each in expected)}


def test_a_base_of_a_base_is_read_too_and_a_link_makes_it_unknown(tmp_path):
    for name, text in {
        "prod": "resources: [deep]",
        "prod/deep": "resources: [../../base]",
        "base": "resources: [../common]",
    }.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "kustomization.yaml").write_text(text)
    assert places_read(tmp_path / "prod") == {tmp_path / "prod", tmp_path / "base", tmp_path / "common"}
    (tmp_path / "prod" / "link").symlink_to("../elsewhere")
    assert places_read(tmp_path / "prod") is None


def test_the_command_reads_no_kubeconfig(tree, tmp_path):
    tree.write(FLEET).commit().write({"apps/api/a.json": config("api", color="black")})
    (tmp_path / "nobody-reads-this").write_text("a broken kubeconfig: [")
    asked = [
        sys.executable,
        "-m",
        "kubectl_reconcile.cli.main",
        "diff",
        "-f",
        str(tree.top / "root"),
        "--base",
        "HEAD",
        "--no-pager",
    ]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1, done.stderr
    assert "Sync shop/api  its files change" in done.stdout
    short = tree.git("rev-parse", "HEAD")[:7]
    assert f"--- {short}/ConfigMap shop/api\n+++ file/ConfigMap shop/api" in done.stdout
    assert "through 1 Sync: 1 to update" in done.stdout
    assert done.stderr == ""
    no_change = subprocess.run([*asked[:-3], "--base", "HEAD", "-f", str(tree.top / "apps/web"), "--no-nested"], capture_output=True, text=True, check=False, timeout=300)  # fmt: skip
    assert (no_change.returncode, no_change.stdout) == (0, "no changes, 2 unchanged\n"), no_change


def test_without_a_cluster_a_folder_shows_what_its_syncs_would_create(tree, tmp_path, monkeypatch):
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    tree.write(FLEET)
    asked = [
        sys.executable,
        "-m",
        "kubectl_reconcile.cli.main",
        "diff",
        "-f",
        str(tree.top / "root"),
        "--offline",
        "--no-pager",
        "-o",
        "json",
    ]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1, done.stderr
    found = {each["sync"]["name"]: each for each in json.loads(done.stdout)["nested"]}
    assert [each["object"]["name"] for each in found["inner"]["plan"]["changes"]] == ["inner"]
    assert "another repository" in found["other"]["notPlanned"]
    alone = subprocess.run([*asked, "--no-nested"], capture_output=True, text=True, check=False, timeout=300)
    assert "nested" not in json.loads(alone.stdout)
