"""Overlays as sources of Syncs: followed by the daemon, previewed and applied by the command line, on a real API server."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("renders")

SOURCE = "reconcile.dev/source"


def config_map(name, **data):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


FILES = {
    "base/kustomization.yaml": "resources: [web.json, old.json]\n",
    "base/web.json": config_map("web", a="base", b="base"),
    "base/old.json": config_map("old", a="b"),
    "base/unlisted.json": config_map("unlisted", a="b"),
    "prod/kustomization.yaml": "namePrefix: p-\nresources: [../base]\npatches: [{path: patch.yaml}]\n"
    "configMapGenerator: [{name: made, literals: [x=1], options: {disableNameSuffixHash: true}}]\n",
    "prod/patch.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: prod}\n",
}


def test_a_daemon_follows_an_overlay(daemon, follow, plugin, cluster, git_server):
    sync = follow(git_server.url, path="prod")
    sync.until_synced(git_server.push(FILES))
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-old", "p-made"}
    live = cluster.get("ConfigMap", "p-web")
    assert (live["data"], live["metadata"]["annotations"][SOURCE]) == ({"a": "prod", "b": "base"}, "base/web.json")
    assert cluster.get("ConfigMap", "p-made")["metadata"]["annotations"][SOURCE] == "prod/kustomization.yaml"
    assert plugin("diff", "shop").status == 0
    sync.until_synced(git_server.push({"prod/patch.yaml": FILES["prod/patch.yaml"].replace("prod", "next")}))
    assert cluster.get("ConfigMap", "p-web")["data"]["a"] == "next"  # though the file that it comes from hasn't changed
    sync.until_synced(git_server.push({"base/kustomization.yaml": "resources: [web.json]\n"}))
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-made"}


def test_an_overlay_that_breaks_is_told_by_its_line_and_takes_nothing_away(
    daemon, follow, plugin, cluster, git_server, eventually
):
    sync = follow(git_server.url, path="prod")
    sync.until_synced(git_server.push(FILES))
    remote = "namePrefix: p-\nresources:\n- ../base\n- github.com/org/repo?ref=v1\n"
    ready = sync.until("ProblemsInSource", git_server.push({"prod/kustomization.yaml": remote}))
    assert ready["message"].startswith("prod/kustomization.yaml:4: https://github.com/org/repo at v1 isn't fetched: ")
    another = git_server.push({"prod/kustomization.yaml": f"{remote}# another try, which fails in the same words\n"})
    assert sync.until("ProblemsInSource", another)["message"] == ready["message"]
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-old", "p-made"}
    assert sync.status["health"]["counts"] == {"Current": 3}  # though nothing can be read of what it asks for
    shown = plugin("diff", "shop")
    assert (shown.status, "kubectl reconcile lock prod" in " ".join(shown.err.split())) == (4, True)
    cluster.edit("ConfigMap", "p-web", {"data": {"a": "by hand"}})
    files = {
        "prod/kustomization.yaml": FILES["prod/kustomization.yaml"],
        "base/kustomization.yaml": "resources: [web.json]\n",
    }
    sync.until_synced(git_server.push(files))
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-made"}
    eventually(lambda: cluster.get("ConfigMap", "p-web")["data"]["a"] == "prod", "the drift is put back")


def test_a_sync_says_how_its_path_is_rendered(daemon, follow, cluster, git_server, eventually):
    sha = git_server.push(FILES)
    sync = follow(git_server.url, path="base")
    sync.until_synced(sha)
    assert cluster.members("ConfigMap", "shop") == {"web", "old"}
    cluster.edit("Sync", "shop", {"spec": {"source": {"render": "Raw"}}})
    eventually(lambda: cluster.members("ConfigMap", "shop") == {"web", "old", "unlisted"}, "all files are applied")
    with pytest.raises(Exception, match="Unsupported value"):
        cluster.edit("Sync", "shop", {"spec": {"source": {"render": "Jsonnet"}}})


def test_a_sync_of_an_overlay_is_created_by_its_path_alone(plugin, crds, git_server):
    sha = git_server.push(FILES)[:7]
    made = plugin("create", "shop", "--url", git_server.url, "--path", "prod", "--dry-run", "-o", "json")
    assert (made.status, made.err) == (0, f"{sha} renders to 3 objects\n")
    assert set(json.loads(made.out)["spec"]["source"]) == {"git", "path"}
    made = plugin(
        "create", "shop", "--url", git_server.url, "--path", "base", "--render", "Raw", "--dry-run", "-o", "json"
    )
    assert (made.status, made.err) == (0, f"{sha} has 3 objects in 3 files\n")
    assert json.loads(made.out)["spec"]["source"]["render"] == "Raw"
    refused = plugin("diff", "shop", "--render", "Raw")
    assert (refused.status, "a Sync says how its files are rendered" in refused.err) == (2, True)


def test_what_git_changed_is_told_from_drift_by_what_the_overlay_was(plugin, follow, daemon, cluster, git_server):
    sync = follow(git_server.url, path="prod")
    sync.until_synced(git_server.push(FILES))
    daemon.stop()
    git_server.push({"prod/patch.yaml": FILES["prod/patch.yaml"].replace("prod", "next")})
    cluster.edit("ConfigMap", "p-web", {"data": {"b": "by hand"}})
    answer = plugin("diff", "shop", "-o", "json")
    assert answer.status == 1, answer.err
    [change] = [each for each in json.loads(answer.out)["changes"] if each["op"] == "update"]
    assert {each["path"]: each["reason"] for each in change["fields"]} == {".data.a": "git", ".data.b": "drift"}


def test_every_command_that_reads_files_renders_them(plugin, follow, cluster, git_server, tmp_path):
    git_server.push(FILES)
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", git_server.url, folder], check=True, timeout=300)
    assert "p-web" in plugin("diff", "-f", str(folder / "prod")).out
    done = plugin("sync", "-f", str(folder / "prod"), "--name", "shop", "--yes")
    assert done.status == 0, done.err
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-old", "p-made"}
    assert plugin("diff", "-f", str(folder / "prod"), "--name", "shop").status == 0
    assert plugin("sync", "-f", str(folder / "prod"), "--name", "shop", "--yes").status == 0
    (folder / "prod" / "patch.yaml").write_text(FILES["prod/patch.yaml"].replace("prod", "tried"))
    changed = plugin("diff", "-f", str(folder / "prod"), "--name", "shop")
    assert (changed.status, "tried" in changed.out) == (1, True)
    assert plugin("diff", "--repo", git_server.url, "--path", "prod").out == "no changes, 3 unchanged\n"
    raw = plugin("diff", "-f", str(folder / "base"), "--render", "Raw", "-o", "name")
    assert raw.out.splitlines() == ["configmap/old", "configmap/unlisted", "configmap/web"]
    raw = plugin("diff", "--repo", git_server.url, "--path", "base", "--render", "Raw", "-o", "name")
    assert "configmap/unlisted" in raw.out
    assert "p-web" in plugin("explain", "configmap/p-web", "-f", str(folder / "prod")).out
    follow(git_server.url, path="prod", suspend=True)
    assert plugin("diff", "shop", "--local", str(folder)).status == 1
    branch = git_server.push({"prod/kustomization.yaml": "namePrefix: q-\nresources: [../base]\n"})
    shown = plugin("diff", "shop", "--revision", branch)
    assert "q-web" in shown.out, shown.err


def test_an_object_of_an_overlay_is_explained_without_a_line_that_isn_t_its_own(daemon, follow, plugin, git_server):
    sync = follow(git_server.url, path="prod")
    sync.until_synced(git_server.push(FILES))
    told = plugin("explain", "configmap/p-web")
    assert told.status == 0, told.err
    assert "base/web.json" in told.out
    assert "base/web.json:0" not in told.out


def test_drift_of_an_overlay_is_never_accepted_into_a_base(plugin, cluster, git_server, tmp_path):
    git_server.push(FILES)
    folder = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", git_server.url, folder], check=True, timeout=300)
    assert plugin("sync", "-f", str(folder / "prod"), "--name", "shop", "--yes").status == 0
    before = {path: path.read_bytes() for path in folder.rglob("*.json")}
    cluster.edit("ConfigMap", "p-web", {"data": {"a": "by hand"}})
    answer = plugin("accept", "-f", str(folder / "prod"), "--name", "shop")
    assert (answer.status, answer.err) == (0, "")
    assert (folder / "prod/patch.yaml").read_text() == FILES["prod/patch.yaml"].replace("a: prod", "a: by hand")
    assert {path: path.read_bytes() for path in folder.rglob("*.json")} == before


def test_diff_and_explain_name_the_line_and_the_commit_that_a_field_comes_from(
    daemon, follow, plugin, cluster, git_server
):
    files = {name: text for name, text in FILES.items() if name != "base/web.json"}
    files["base/kustomization.yaml"] = "resources: [web.yaml, old.json]\n"
    files["base/web.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  a: base\n  b: base\n"
    first = git_server.push(files, "First")
    sync = follow(git_server.url, path="prod")
    sync.until_synced(first)
    plugin("suspend", "shop")
    sync.until("Suspended")
    patch = "# ours\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: next}\n"
    second = git_server.push({"prod/patch.yaml": patch}, "Second")
    cluster.edit("ConfigMap", "p-web", {"data": {"b": "by hand"}})
    shown = plugin("diff", "shop", "--reasons")
    reasons = {
        words[0]: line for line in shown.out.splitlines() if (words := line.split()) and words[0].startswith(".")
    }
    assert re.search(
        rf"git {second[:7]} by .+, from prod/patch.yaml:5 \(patch\), base: base/web.yaml:5$", reasons[".data.a"]
    )
    assert re.search(r"drift by by-hand .*, from base/web.yaml:6$", reasons[".data.b"])
    assert f".data.a changed in Git ({second[:7]} by " in plugin("diff", "shop").out
    [change] = [
        each for each in json.loads(plugin("diff", "shop", "-o", "json").out)["changes"] if each["op"] == "update"
    ]
    origins = {each["path"]: (each.get("commit"), each["origin"]) for each in change["fields"]}
    assert origins == {
        ".data.a": (second, "prod/patch.yaml:5 (patch), base: base/web.yaml:5"),
        ".data.b": (None, "base/web.yaml:6"),
    }
    one = plugin("explain", "configmap/p-web.data.a").out
    assert "prod/patch.yaml:5 (patch), base: base/web.yaml:5" in one
    assert re.search(rf"commit +{second[:7]} by .*: Second", one)
    document = json.loads(plugin("explain", "configmap/p-web", "-o", "json").out)
    assert (document["file"], document["line"], document["commit"]["sha"]) == ("base/web.yaml", 1, second)
    fields = {each["path"]: each for each in document["fields"]}
    assert fields[".data.a"]["base"] == {"file": "base/web.yaml", "line": 5, "by": "file"}
    assert (fields[".data.a"]["file"], fields[".data.a"]["by"], fields[".data.a"]["line"]) == (
        "prod/patch.yaml",
        "patch",
        5,
    )
    assert (fields[".data.b"]["file"], fields[".data.b"]["line"], fields[".data.b"]["commit"]["sha"]) == (
        "base/web.yaml", 6, first,
    )  # fmt: skip
    wide = plugin("explain", "configmap/p-web", "-o", "wide").out
    assert re.search(rf"prod/patch.yaml:5 \(patch\), base: base/web.yaml:5 +{second[:7]} ", wide)


def test_drift_is_accepted_into_patches_of_the_overlay(daemon, follow, plugin, cluster, git_server, tmp_path):
    sync = follow(git_server.url, path="prod")
    sync.until_synced(git_server.push(FILES))
    plugin("suspend", "shop")
    sync.until("Suspended")
    cluster.edit("ConfigMap", "p-web", {"data": {"a": "by hand"}})
    cluster.edit("ConfigMap", "p-old", {"data": {"a": "by hand"}})
    cluster.edit("ConfigMap", "p-made", {"data": {"x": "by hand"}})
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True, timeout=300)
    done = plugin("accept", "shop", "--local", str(tree))
    assert (done.status, done.err) == (0, "")
    assert "prod/patch.yaml: " in done.out
    assert "prod/accepted-configmap-old.yaml: " in done.out
    assert (tree / "prod/patch.yaml").read_text() == FILES["prod/patch.yaml"].replace("a: prod", "a: by hand")
    assert "literals: [x=by hand]" in (tree / "prod/kustomization.yaml").read_text()
    assert subprocess.run(
        ["git", "status", "--porcelain"], cwd=tree, check=True, capture_output=True, text=True, timeout=60
    ).stdout == " M prod/kustomization.yaml\n M prod/patch.yaml\n?? prod/accepted-configmap-old.yaml\n"  # fmt: skip
    left = json.loads(plugin("diff", "shop", "--local", str(tree), "-o", "json").out)["changes"]
    assert [field for change in left for field in change.get("fields", ())] == []  # only their owners change
    done = plugin("accept", "shop", "cm/p-old", "--branch", "keep")
    assert (done.status, "to keep\n" in done.out) == (0, True)
    left = json.loads(plugin("diff", "shop", "cm/p-old", "--revision", "keep", "-o", "json").out)["changes"]
    assert [field for change in left for field in change.get("fields", ())] == []


PATCH = {"patch": '- {op: replace, path: /data/a, value: "%s"}', "target": {"kind": "ConfigMap", "name": "web"}}


def patched(value, **more):
    return {"kustomize": {"patches": [{**PATCH, "patch": PATCH["patch"] % value}], **more}}


def test_a_sync_changes_what_manifests_say_and_is_asked_where_a_field_comes_from(
    daemon, follow, plugin, cluster, git_server
):
    raw = {"web.json": config_map("web", a="file", b="file"), "old.json": config_map("old", a="b")}
    first = git_server.push(raw)
    sync = follow(git_server.url, path=".")
    sync.until_synced(first)
    cluster.edit("Sync", "shop", {"spec": {"source": patched("patch", namePrefix="p-")}})
    sync.until_synced(git_server.push({"more.json": config_map("more", a="b")}))
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-old", "p-more"}  # and what was called otherwise is gone
    live = cluster.get("ConfigMap", "p-web")
    assert (live["data"], live["metadata"]["annotations"][SOURCE]) == ({"a": "patch", "b": "file"}, "web.json")
    for field, place in (("a", "spec.source.kustomize.patches[0], base: web.json:1"), ("b", "web.json:1")):
        assert place in plugin("explain", "configmap/p-web", f".data.{field}").out
    cluster.edit("Sync", "shop", {"spec": {"source": patched("more", namePrefix="p-")}})
    sync.until_synced(git_server.push({"web.json": config_map("web", a="file", b="next")}))
    assert cluster.get("ConfigMap", "p-web")["data"] == {"a": "more", "b": "next"}
    cluster.edit("Sync", "shop", {"spec": {"source": {"kustomize": {"patches": [{"patch": "nonsense"}]}}}})
    ready = sync.until("ProblemsInSource")
    assert ready["message"].startswith("spec.source.kustomize.patches[0]: ")
    assert cluster.members("ConfigMap", "shop") == {"p-web", "p-old", "p-more"}


def test_a_folder_is_previewed_with_what_its_sync_changes(follow, plugin, crds, cluster, git_server, tmp_path):
    files = {"web.json": config_map("web", a="file")}
    git_server.push(files)
    follow(git_server.url, suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": patched("patch")}})
    (tmp_path / "web.json").write_text(files["web.json"])
    for asked in (["shop"], ["-f", str(tmp_path), "--name", "shop"], ["shop", "--local", str(tmp_path)]):
        shown = plugin("diff", *asked)
        assert (shown.status, "a: patch" in shown.out) == (1, True), shown.out + shown.err
