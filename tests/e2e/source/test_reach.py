"""How far an overlay of a local folder sees where there is no Git, and what is said of a kustomization that is named itself."""

from __future__ import annotations

import os

import pytest

from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.render.reach import reached_from
from tests.e2e.source.overlays import write

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
SHOP = {
    "shop/base/kustomization.yaml": "resources: [a.yaml]\n",
    "shop/base/a.yaml": CONFIG,
    "shop/overlays/prod/kustomization.yaml": "resources:\n- ../../base\n",
    "elsewhere/kustomization.yaml": "resources: [a.yaml]\n",
    "elsewhere/a.yaml": CONFIG.replace("a}", "b}"),
}


def read(folder, *, reaches=True):
    return ManifestReader().read(WorktreeSource(folder, reaches=reaches))


def test_an_overlay_given_by_its_path_sees_its_bases_beside_it(renders, tmp_path):
    write(tmp_path, SHOP)
    found = read(tmp_path / "shop/overlays/prod")
    assert (found.problems, [each.path for each in found.manifests]) == ((), ["base/a.yaml"])
    kept = read(tmp_path / "shop/overlays/prod", reaches=False)  # as for a Sync that follows a folder
    assert "kustomize can't build it" in kept.problems[0].message


REACHED = {
    "nothing": ("resources: [a.yaml]\n", "shop/overlays/prod"),
    "in braces": ("{resources: [../../base, x]}\n", "shop"),
    "a file in quotes": ("resources: ['../../base/a.yaml']\n", "shop"),
    "the folder above": ("resources:\n- ..\n", "shop/overlays"),
    "what names more": ("resources: [../../middle]\n", "."),
    "what isn't there": ("resources: [../../../nothing]\n", "shop/overlays/prod"),
    "a URL": ("resources: [https://example.com/a/../../../../b]\n", "shop/overlays/prod"),
    "a word within a word": ("namePrefix: a../../../b\n", "shop/overlays/prod"),
    "the top of the file system": (f"resources: [{'../' * 60}etc]\n", "shop/overlays/prod"),
}


@pytest.mark.parametrize(("text", "expected"), REACHED.values(), ids=REACHED)
def test_only_what_kustomizations_name_and_is_there_is_reached(tmp_path, text, expected):
    write(
        tmp_path,
        {
            **SHOP,
            "shop/middle/kustomization.yml": "resources: [../../elsewhere]\n",
            "shop/overlays/prod/kustomization.yaml": text,
        },
    )
    assert reached_from(tmp_path / "shop/overlays/prod") == (tmp_path / expected).resolve()


def test_a_kustomization_that_is_a_pipe_or_names_itself_ends(tmp_path):
    write(
        tmp_path, {"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a, ../b]\n"}
    )
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c/kustomization.yaml")
    write(tmp_path, {"a/Kustomization": "resources: [../c]\n"})
    assert reached_from(tmp_path / "a") == tmp_path
    assert reached_from(tmp_path / "c") == tmp_path / "c"


def test_within_git_nothing_beyond_the_working_tree_is_seen(renders, tmp_path):
    write(tmp_path, {**SHOP, "shop/overlays/prod/kustomization.yaml": "resources: [../../../elsewhere]\n"})
    (tmp_path / "shop/.git").mkdir()
    [wrong] = read(tmp_path / "shop/overlays/prod").problems
    assert "kustomize can't build it" in wrong.message


def test_a_kustomization_named_itself_is_a_problem_that_names_its_folder(tmp_path):
    write(tmp_path, SHOP)
    found = read(tmp_path / "shop/overlays/prod/kustomization.yaml")
    [wrong] = found.problems
    assert wrong.message.startswith("a kustomization, which isn't rendered here")
    assert wrong.hint == f"give its folder, {tmp_path / 'shop/overlays/prod'}"
    assert found.manifests == ()
