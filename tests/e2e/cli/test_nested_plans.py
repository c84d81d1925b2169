"""diff shows what the Syncs would do that a plan changes: from the revision at hand, as the server judges it, and sync --plan holds to it."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.cli.plan_schema import SCHEMA

URL = "https://git.example.com/platform/clusters.git"


@pytest.fixture
def working_tree(tmp_path):
    """working_tree({path: manifest}) -> the folder of a Git working tree with these files besides those that it has."""
    top = tmp_path / "clusters"
    subprocess.run(["git", "init", "--quiet", str(top)], check=True)
    subprocess.run(["git", "-C", str(top), "remote", "add", "origin", URL], check=True)

    def write(files):
        for path, manifest in files.items():
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))
        return top

    return write


@pytest.fixture
def a_sync(namespace):
    """a_sync("web", path="apps/web") -> the manifest of a Sync of the working tree's repository."""

    def manifest(name, path, **spec):
        source = {"git": {"url": URL}, "path": path}
        metadata = {"name": name, "namespace": namespace}
        return {
            "apiVersion": "reconcile.dev/v1alpha1",
            "kind": "Sync",
            "metadata": metadata,
            "spec": {"source": source, **spec},
        }

    return manifest


def by_name(plan):
    return {each["sync"]["name"]: each for each in plan["nested"]}


def test_what_syncs_would_do_that_change_is_in_the_plan(plugin, cluster, namespace, working_tree, a_sync, config_map):
    new = f"{namespace}-new"
    cluster.kubectl("create", "configmap", "taken", "-n", namespace, "--from-literal=token=hunter2-of-others")
    top = working_tree(
        {
            "root/web.json": a_sync("web", "apps/web"),
            "root/namespace.json": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": new}},
            "root/fresh.json": a_sync("fresh", "apps/fresh", targetNamespace=new),
            "apps/web/a.json": config_map("web", color="red"),
            "apps/web/taken.json": config_map("taken", token="guess"),
            "apps/web/inner.json": a_sync("inner", "apps/inner"),
            "apps/inner/a.json": config_map("inner", color="blue"),
            "apps/fresh/a.json": config_map("fresh", color="green"),
        }
    )
    asked = ("diff", "-f", str(top / "root"), "--name", "root")
    answer = plugin(*asked, "-o", "json")
    assert answer.status == 1, answer.err
    plan = json.loads(answer.out)
    SCHEMA(plan)
    assert "hunter2" not in answer.out
    found = by_name(plan)
    assert [(each["sync"]["name"], [one["name"] for one in each["above"]]) for each in plan["nested"]] == [
        ("fresh", []), ("web", []), ("inner", ["web"]),
    ]  # fmt: skip
    assert [each["object"]["name"] for each in found["inner"]["plan"]["changes"]] == ["inner"]
    [fresh] = found["fresh"]["plan"]["changes"]
    assert fresh["object"]["namespace"] == new
    assert fresh["remarks"] == [f"not checked by the API server: namespace {new} isn't there yet"]
    changes = {each["object"]["name"]: each for each in found["web"]["plan"]["changes"]}
    assert changes["web"]["op"] == "create"
    assert changes["taken"]["remarks"][0] == "exists, and belongs to no Sync: its values aren't shown"
    shown = plugin(*asked)
    assert f"Sync {namespace}/web  new" in shown.out
    assert "through 3 Syncs: 4 to create, 1 to update" in shown.out
    assert "nested" not in json.loads(plugin(*asked, "--no-nested", "-o", "json").out)


def test_a_plan_file_holds_to_what_follows_from_it(
    plugin, cluster, namespace, working_tree, a_sync, config_map, tmp_path
):
    top = working_tree({"root/web.json": a_sync("web", "apps/web"), "apps/web/a.json": config_map("web", color="red")})
    asked, path = ("-f", str(top / "root"), "--name", "root"), tmp_path / "plan.json"
    path.write_text(plugin("diff", *asked, "-o", "json").out)
    working_tree({"apps/web/a.json": config_map("web", color="black")})
    refused = plugin("sync", *asked, "--plan", str(path), "-y")
    assert refused.status == 6, refused
    assert f"Sync {namespace}/web would be at worktree-" in refused.err
    assert "web" not in cluster.names("Sync")
    working_tree({"apps/web/a.json": config_map("web", color="red")})
    done = plugin("sync", *asked, "--plan", str(path), "-y", "--no-wait")  # nobody follows it here
    assert (done.status, "web" in cluster.names("Sync")) == (0, True), done


def test_a_pull_request_of_a_syncs_repository_is_planned_through_all_its_syncs(
    plugin, cluster, namespace, follow, git_server, config_map
):
    """Syncs of that repository read the commit of the request; what its author doesn't write to is neither read nor shown."""

    def a_sync(name, path):
        source = {"git": {"url": git_server.url}, "path": path}
        metadata = {"name": name, "namespace": namespace}
        return json.dumps(
            {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": {"source": source}}
        )

    files = {
        "root/web.json": a_sync("web", "apps/v1"),
        "apps/v1/a.json": config_map("web", color="red"),
        "apps/v1/old.json": config_map("old"),
    }
    git_server.push(files)
    follow(git_server.url, "root", path="root")
    assert plugin("sync", "root", "-y", "--no-wait").status == 0
    assert plugin("sync", "web", "-y").status == 0
    proposed = {"root/web.json": a_sync("web", "apps/v2"), "apps/v2/a.json": config_map("web", color="black")}
    sha = git_server.push({**files, **proposed}, branch="next")
    subprocess.run(["git", "-C", git_server.folder, "update-ref", "refs/pull/12/head", sha], check=True)
    answer = plugin("diff", "root", "--revision", "refs/pull/12/head", "-o", "json")
    assert answer.status == 1, answer.err
    [web] = json.loads(answer.out)["nested"]
    assert (web["op"], web["why"], web["plan"]["revision"]) == ("update", ["spec.source.path"], sha)
    assert {(each["op"], each["object"]["name"]) for each in web["plan"]["changes"]} == {
        ("update", "web"),
        ("delete", "old"),
    }
    assert web["plan"]["confirmed"]
    comment = plugin("diff", "root", "--revision", "refs/pull/12/head", "-o", "github").out
    assert (
        f"#### ↳ <code>{namespace}/web</code>: 1 to update, 1 to delete, 0 unchanged\n\nspec.source.path\n" in comment
    )
    assert "-  color: red\n+  color: black" in comment


def test_a_comment_shows_no_value_that_a_request_has_a_sync_read(plugin, cluster, namespace, working_tree):
    """Whoever has the kubeconfig may read it, and a comment is for everybody."""
    cluster.kubectl("create", "configmap", "settings", "-n", namespace, "--from-literal=token=hunter2-of-others")
    variable = {"name": "TOKEN", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "token"}}}
    source = {"git": {"url": URL}, "path": "apps/spy", "substitute": {"variables": [variable]}}
    spy = {"apiVersion": "reconcile.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "spy", "namespace": namespace}, "spec": {"source": source}}  # fmt: skip
    told = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spy", "annotations": {"told": "${TOKEN}"}}}
    top = working_tree({"root/spy.json": spy, "apps/spy/a.json": told})
    asked = ("diff", "-f", str(top / "root"), "--name", "root", "-o")
    shown = plugin(*asked, "diff")
    assert "hunter2-of-others" in shown.out, shown.out
    comment = plugin(*asked, "github").out
    assert "hunter2" not in comment
    assert f"it can't be shown before it is merged, since it reads ConfigMap {namespace}/settings" in comment
