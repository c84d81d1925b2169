"""Charts as sources of Syncs: followed by the daemon, previewed and applied by the command line, on a real API server."""

from __future__ import annotations

import base64
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("renders")

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: %s}\n"
FILES = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.20.0-0'\n",
    "web/values.yaml": "color: red\nextra: true\n",
    "web/templates/color.yaml": CONFIG % ("{{ .Release.Name }}-color", "{{ .Values.color }}"),
    "web/templates/extra.yaml": "{{ if .Values.extra }}" + CONFIG % ("extra", "{{ .Release.Namespace }}") + "{{ end }}",
    "web/templates/able.yaml": CONFIG % ("able", "'{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}'"),
    "prod.yaml": "color: blue\n",
}
SOURCE = "reconcile.dev/source"


def test_a_daemon_follows_a_chart(daemon, follow, plugin, cluster, git_server, eventually):
    sync = follow(git_server.url, path="web")
    sync.until_synced(git_server.push(FILES))
    assert cluster.members("ConfigMap", "shop") == {"shop-color", "extra", "able"}
    live = cluster.get("ConfigMap", "shop-color")
    assert (live["data"], live["metadata"]["annotations"][SOURCE]) == ({"a": "red"}, "web/templates/color.yaml")
    assert cluster.get("ConfigMap", "extra")["data"]["a"] == cluster.namespace
    assert cluster.get("ConfigMap", "able")["data"]["a"] == "true"
    assert plugin("diff", "shop").status == 0
    helm = {"valuesFiles": ["../prod.yaml"], "values": {"extra": False}, "releaseName": "shop"}
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": helm}}})
    eventually(
        lambda: cluster.members("ConfigMap", "shop") == {"shop-color", "able"}, "what values switch off is pruned"
    )
    eventually(lambda: cluster.get("ConfigMap", "shop-color")["data"]["a"] == "blue", "values are applied")
    ready = sync.until("ProblemsInSource", git_server.push({"web/templates/bad.yaml": "\n{{ fail .Values.color }}"}))
    assert ready["message"].startswith("web/templates/bad.yaml:2: Helm can't render it: execution error at ")
    assert "blue" not in ready["message"]
    assert cluster.members("ConfigMap", "shop") == {"shop-color", "able"}
    sync.until_synced(git_server.push({"web/templates/bad.yaml": None, "prod.yaml": "color: green\n"}))
    assert cluster.get("ConfigMap", "shop-color")["data"]["a"] == "green"


def test_the_api_server_knows_the_fields_of_a_chart(follow, cluster, git_server):
    follow(git_server.url, path="web", suspend=True)
    for helm, said in (
        ({"releaseName": "Web"}, "must be lower-case letters"),
        ({"valuesFiles": ["a"] * 33}, "must have at most 32 items"),
        ({"values": [1]}, "must be of type object"),
    ):
        with pytest.raises(Exception, match=said):
            cluster.edit("Sync", "shop", {"spec": {"source": {"helm": helm}}})


def test_a_preview_shows_what_a_changed_value_changes(plugin, follow, cluster, git_server, tmp_path):
    sha = git_server.push(FILES)
    folder = tmp_path / "web"
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = plugin("sync", "-f", str(folder), "--name", "shop", "--yes")
    assert done.status == 0, done.err
    assert cluster.members("ConfigMap", "shop") == {"shop-color", "extra", "able"}
    assert plugin("diff", "-f", str(folder), "--name", "shop").status == 0
    (folder / "values.yaml").write_text("color: pink\nextra: true\n")
    changed = plugin("diff", "-f", str(folder), "--name", "shop")
    assert (changed.status, "pink" in changed.out) == (1, True)
    assert plugin("diff", "--repo", git_server.url, "--path", "web").status == 1
    assert plugin("diff", "shop", "--revision", sha).status != 0  # it follows nothing


DRAWN = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "web/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: {{ randAlphaNum 20 }}, user: me}\n",
    "web/templates/config.yaml": CONFIG % ("config", "{{ uuidv4 }}"),
}


def password(cluster):
    return base64.b64decode(cluster.get("Secret", "db")["data"]["password"]).decode()


def test_a_password_that_a_chart_draws_is_drawn_once_and_shown_nowhere(
    daemon, follow, plugin, cluster, git_server, eventually
):
    sync = follow(git_server.url, path="web", suspend=True)
    sha = git_server.push(DRAWN)
    preview = plugin("diff", "shop", "-o", "json")
    assert preview.status == 1, preview.err
    assert "<drawn when applied>" in preview.out
    assert "<drawn when applied>" in plugin("diff", "shop").out
    cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
    sync.until_synced(sha)
    first, config = password(cluster), cluster.get("ConfigMap", "config")
    assert len(first) == 20
    shown = plugin("diff", "shop")
    assert (shown.status, first in shown.out + shown.err + preview.out) == (0, False)
    sync.until_synced(
        git_server.push(
            {"web/templates/secret.yaml": DRAWN["web/templates/secret.yaml"].replace("user: me", "user: you")}
        )
    )
    assert base64.b64decode(cluster.get("Secret", "db")["data"]["user"]) == b"you"
    assert (password(cluster), cluster.get("ConfigMap", "config")["data"]) == (first, config["data"])
    done = plugin("sync", "shop", "--yes")
    assert done.status == 0, done.err
    assert password(cluster) == first
    cluster.delete("Secret", "db")
    eventually(lambda: "db" in cluster.names("Secret") and password(cluster) != first, "another one is drawn")
    assert cluster.get("ConfigMap", "config")["data"] == config["data"]
    assert plugin("diff", "shop").status == 0
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": {"unstable": "Fail"}}}})
    ready = sync.until("ProblemsInSource", git_server.sha())
    assert ".stringData.password is drawn anew at each rendering" in str(ready) or ".data.a is drawn" in str(ready)
    assert "db" in cluster.names("Secret")


def test_drift_is_accepted_into_the_values_file_of_the_sync(plugin, follow, cluster, git_server, tmp_path):
    git_server.push(FILES)
    follow(git_server.url, path="web", suspend=True)
    helm = {"valuesFiles": ["../prod.yaml"], "releaseName": "shop"}
    cluster.edit("Sync", "shop", {"spec": {"source": {"helm": helm}, "suspend": False}})
    assert plugin("sync", "shop").status == 0
    cluster.edit("ConfigMap", "shop-color", {"data": {"a": "pink"}})
    cluster.edit("ConfigMap", "able", {"data": {"a": "maybe"}})
    tree = tmp_path / "checkout"
    subprocess.run(["git", "clone", "--quiet", git_server.url, tree], check=True, timeout=60)
    done = plugin("accept", "shop", "--local", str(tree))
    assert done.status == 0
    assert (tree / "prod.yaml").read_text() == "color: pink\n"
    assert (tree / "web/values.yaml").read_text() == FILES["web/values.yaml"]
    assert "left: ConfigMap" in done.err
    assert "nothing in web can give it that value: " in done.err
    one = plugin("explain", "configmap/shop-color.data.a").out
    assert "web/templates/color.yaml" in one
