"""Repositories that were written for other tools: what only they understand is said, never taken as it is, never pruned."""

from __future__ import annotations

import json

import pytest

PATCH = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {patched: 'yes'}\n"
OVERLAYS = {
    "kustomization.yaml": ("kustomization.yaml", "resources: [patch.yaml]\n"),
    "kustomization.yml": ("kustomization.yml", "patches: [{path: patch.yaml}]\n"),
    "Kustomization": ("Kustomization", "resources: [patch.yaml]\n"),
    "Chart.yaml": ("Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"),
}


def config_map_text(name: str, **annotations: str) -> str:
    metadata = {"name": name, "annotations": annotations}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})


@pytest.mark.parametrize(("name", "text"), OVERLAYS.values(), ids=OVERLAYS)
def test_a_folder_that_must_be_rendered_is_a_problem_that_names_the_file(plugin, cluster, tmp_path, name, text):
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / name).write_text(text)
    (overlay / "patch.yaml").write_text(PATCH)
    (tmp_path / "plain.json").write_text(config_map_text("plain"))
    for verb, *flags in (["diff"], ["sync", "--name", "shop", "--yes"]):
        answer = plugin(verb, "-f", str(tmp_path), *flags)
        assert answer.status == 4, answer.err
        assert f"overlay/{name}: " in answer.err
        assert "isn't rendered here" in answer.err
    assert cluster.names("ConfigMap") & {"plain", "web"} == {"plain"}
    (tmp_path / ".reconcileignore").write_text("overlay/\n")
    assert plugin("diff", "-f", str(tmp_path), "--name", "shop").status == 0


def test_what_came_from_a_folder_stays_when_it_gets_a_kustomization(daemon, follow, cluster, git_server):
    sha = git_server.push(
        {"over/web.json": config_map_text("web"), "old.json": config_map_text("old"), "a.json": config_map_text("a")}
    )
    sync = follow(git_server.url)
    sync.until_synced(sha)
    sha = git_server.push({"over/kustomization.yaml": "resources: [web.json]\n", "old.json": None})
    ready = sync.until("ProblemsInSource", sha)
    assert "over/kustomization.yaml: a kustomization, which isn't rendered here" in ready["message"]
    assert {"web", "old", "a"} <= cluster.names("ConfigMap")
    sha = git_server.push({".reconcileignore": "kustomization.yaml\n"})
    sync.until_synced(sha)
    assert cluster.names("ConfigMap") & {"web", "old", "a"} == {"web", "a"}


EMPTY = {
    "nothing that is a manifest": {"docs/README.md": "hello"},
    "a file without an object": {"docs/x.yaml": "# nothing yet\n"},
}


@pytest.mark.parametrize("files", EMPTY.values(), ids=EMPTY)
def test_a_path_without_any_object_is_never_no_changes(daemon, follow, plugin, git_server, files):
    sha = git_server.push(files)
    sync = follow(git_server.url, path="docs")
    ready = sync.until("ProblemsInSource", sha)
    assert ready["status"] == "False"
    assert ready["message"].startswith("docs: there are no ")
    shown = plugin("diff", "shop")
    assert (shown.status, "no changes" in shown.out) == (4, False)
    assert "docs: there are no " in shown.err
    assert plugin("sync", "shop").status == 4
    assert "docs: there are no " in plugin("status", "shop").out


def test_an_empty_folder_is_never_no_changes(plugin, tmp_path):
    answer = plugin("diff", "-f", str(tmp_path))
    assert (answer.status, "no changes" in answer.out) == (4, False)
    assert f"{tmp_path}: there are no manifest files at this path" in answer.err


def test_annotations_of_other_tools_count_and_what_means_nothing_here_is_said_once(
    daemon, follow, plugin, cluster, git_server
):
    files = {
        "a.json": config_map_text(
            "a", **{"argocd.argoproj.io/sync-wave": "1", "argocd.argoproj.io/sync-options": "Validate=false"}
        ),
        "b.json": config_map_text("b", **{"helm.sh/hook": "pre-install", "helm.sh/resource-policy": "keep"}),
        "c.json": config_map_text("c", **{"argocd.argoproj.io/sync-options": "Validate=false"}),
        "tests/d.json": config_map_text("d", **{"helm.sh/hook": "test"}),
        "tests/e.json": config_map_text("e", **{"helm.sh/hook": "test-success"}),
    }
    sync = follow(git_server.url)
    sync.until_synced(git_server.push(files))
    assert cluster.names("ConfigMap") & {"a", "b", "c", "d", "e"} == {"a", "b", "c"}
    options, tests = sync.status["warnings"]
    assert options.startswith("a.json:1: annotation argocd.argoproj.io/sync-options Validate=false is ignored")
    assert "(and 1 more)" in options
    assert tests.startswith("tests/d.json:1: annotation helm.sh/hook test: the object is left out")
    assert "(and 1 more)" in tests
    shown = plugin("diff", "shop")
    assert shown.status == 0
    assert shown.err.count("annotation helm.sh/hook test") == 1
    sync.until_synced(git_server.push({"a.json": None, "b.json": None}))  # a warning holds no deletion
    assert cluster.names("ConfigMap") & {"a", "b"} == {"b"}  # to keep it is to keep it


def test_an_export_from_a_cluster_is_applied_with_a_warning(plugin, cluster, tmp_path):
    metadata = {"name": "web", "namespace": cluster.namespace}
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    export = cluster.get("Service", "web")
    assert export["metadata"]["managedFields"]
    assert export["status"]
    export["metadata"]["labels"] = {"a": "b"}
    (tmp_path / "web.json").write_text(json.dumps(export))
    (tmp_path / "scope.yaml").write_text(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
        f"metadata: {{name: {cluster.namespace}, namespace: shop}}\nvalue: 7\n"
    )
    done = plugin("sync", "-f", str(tmp_path), "--name", "shop", "--yes")
    assert done.status == 0, done.err
    assert "managedFields and status are set by the server" in done.err
    assert "is cluster-scoped; its metadata.namespace is ignored" in done.err
    assert cluster.get("Service", "web")["metadata"]["labels"]["a"] == "b"
    assert plugin("diff", "-f", str(tmp_path), "--name", "shop").status == 0
    cluster.kubectl("delete", "priorityclass", cluster.namespace, "--wait=false")


def test_a_version_that_is_gone_is_told_with_the_one_that_is_served(plugin, tmp_path):
    (tmp_path / "x.yaml").write_text(
        "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n---\n"
        "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\n"
    )
    said = plugin("diff", "-f", str(tmp_path)).err
    assert "knows no kind PodDisruptionBudget policy/v1beta1 (hint: the cluster serves it as policy/v1" in said
    assert "the cluster serves Ingress as networking.k8s.io/v1" in said
