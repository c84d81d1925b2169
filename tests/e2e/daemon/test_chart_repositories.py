"""A chart of a Helm repository as the source of a Sync: pinned, followed by the daemon, previewed when the pin moves."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from tests.chart_server import index, serving
from tests.e2e.followed import Followed
from tests.rendering_tools import packed

pytestmark = pytest.mark.usefixtures("renders")

PASSWORD = "of-the-charts"


def chart(version, color):
    return packed({
        "web/Chart.yaml": f"apiVersion: v2\nname: web\nversion: {version}\n",
        "web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"
        f"data: {{color: {color}, size: '{{{{ .Values.size }}}}', "
        'kept: \'{{ dig "data" "kept" "none" (lookup "v1" "ConfigMap" .Release.Namespace "web") }}\'}\n',
    })  # fmt: skip


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def read_as_before(cluster, sync, daemon, plugin, eventually):
    """See that fields in their former places are read, told, and moved without anything else changing."""
    moved = "spec.source: helm.chart is spec.source.chart now and git.path is spec.source.path now"
    member, history = cluster.get("ConfigMap", "web"), sync.status["history"]
    assert any(moved in each for each in sync.status["warnings"])
    for verb in ("diff", "status", "doctor"):
        told = plugin(verb, *([] if verb == "doctor" else ["shop"]))
        assert moved in " ".join((told.out + told.err).split()), verb
    daemon.stop()
    daemon.start()
    source = sync.live["spec"]["source"]
    chart, path = source["helm"]["chart"], source["git"]["path"]
    sync.change(source={"git": {"path": None}, "path": path, "chart": chart, "helm": {"chart": None}})
    eventually(lambda: not any(moved in each for each in sync.status.get("warnings", ())), "it is told no more")
    sync.ask()
    assert sync.condition()["status"] == "True"
    assert cluster.get("ConfigMap", "web")["metadata"]["resourceVersion"] == member["metadata"]["resourceVersion"]
    assert sync.status["history"] == history


def test_a_pinned_chart_is_followed_and_a_preview_says_that_the_pin_moves(
    daemon, follow, plugin, cluster, git_server, eventually
):
    old, new = chart("1.2.3", "red"), chart("1.3.0", "blue")
    pages = {
        "/index.yaml": index(("1.3.0", digest(new)[7:], "web-1.3.0.tgz"), ("1.2.3", digest(old)[7:], "web-1.2.3.tgz")),
        "/web-1.2.3.tgz": old, "/web-1.3.0.tgz": new,
    }  # fmt: skip
    with serving(pages, "Basic " + base64.b64encode(f"shop:{PASSWORD}".encode()).decode()) as (url, _):
        pin = {"repository": url, "name": "web", "version": "1.2.3", "secretRef": {"name": "charts"}}
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "charts"},
                "stringData": {"username": "shop", "password": PASSWORD},
            }
        )
        sha = git_server.push({"prod/values.yaml": "size: 7\n"})
        sync = follow(git_server.url, git={"path": "prod"})  # as earlier versions have it

        def sourced(**source):
            cluster.edit("Sync", "shop", {"spec": {"source": source}})

        def pinned(**changed):
            sourced(chart={**pin, **changed})

        def says(words):
            eventually(lambda: words in sync.condition("Synced").get("message", ""), words)

        sourced(helm={"chart": pin, "valuesFiles": ["values.yaml"], "lookup": "Cluster"})
        says(f"Secret {cluster.namespace}/charts isn't for {url}")
        cluster.edit("Secret", "charts", {"metadata": {"annotations": {"reconcile.dev/urls": url}}})
        says(f"write digest: {digest(old)}")
        sourced(helm={"chart": {"digest": digest(new)}})
        says(f"expected {digest(new)}, found {digest(old)}")
        sourced(helm={"chart": {"digest": digest(old)}})
        sync.until_synced(sha)
        read_as_before(cluster, sync, daemon, plugin, eventually)
        live = cluster.get("ConfigMap", "web")
        assert live["data"] == {"color": "red", "size": "7", "kept": "none"}
        assert live["metadata"]["annotations"]["reconcile.dev/source"] == "prod/web-1.2.3.tgz/templates/a.yaml"
        cluster.edit("ConfigMap", "web", {"data": {"kept": "mine", "color": "green"}})
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "red", "drift is put back")
        assert cluster.get("ConfigMap", "web")["data"]["kept"] == "mine"
        cluster.edit("Sync", "shop", {"spec": {"suspend": True}})
        pinned(version="1.3.0", digest=digest(new))
        shown = plugin("diff", "shop")
        assert (shown.status, "# chart web 1.2.3 → 1.3.0" in shown.out) == (1, True), shown.err
        reasons = [
            field["reason"]
            for each in json.loads(plugin("diff", "shop", "-o", "json").out)["changes"]
            for field in each["fields"]
        ]
        assert set(reasons) == {"git"}
        cluster.edit("Sync", "shop", {"spec": {"suspend": False}})
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "blue", "the new version is applied")
        eventually(lambda: "chart web 1.3.0" in plugin("status", "shop").out, "the status names the chart")
        assert "web 1.3.0" in plugin("get", "shop").out
        charts = [" ".join(row.replace("*", "").split()[1:3]) for row in plugin("history", "shop").out.splitlines()[2:]]
        assert list(dict.fromkeys(charts)) == ["web 1.3.0", "web 1.2.3"]
        back = plugin("rollback", "shop", "--yes")
        assert (back.status, "chart web 1.2.3" in back.out) == (0, True), back.err
        assert cluster.get("ConfigMap", "web")["data"]["color"] == "red"
        assert cluster.get("Sync", "shop")["spec"]["source"]["chart"]["version"] == "1.2.3"
        plugin("resume", "shop")
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "blue", "it goes on where it was")
        assert plugin("rollback", "shop", "--to", "1.2.3", "--dry-run").status == 0
        assert PASSWORD not in daemon.log
    for field, value in {
        "version": "^1.2",
        "digest": "sha256:abc",
        "repository": "ftp://charts.example.com/x",
    }.items():
        with pytest.raises(Exception, match=rf"chart\.{field}"):
            pinned(**{field: value})


def test_a_chart_needs_no_git_beside_it(daemon, plugin, cluster, eventually):
    """Made by hand with its digest, followed, corrected, held, moved, rolled back and resumed, and told of at each step."""
    old, new = chart("1.2.3", "red"), chart("1.3.0", "blue")
    pages = {
        "/index.yaml": index(("1.3.0", digest(new)[7:], "web-1.3.0.tgz"), ("1.2.3", digest(old)[7:], "web-1.2.3.tgz")),
        "/web-1.2.3.tgz": old, "/web-1.3.0.tgz": new,
    }  # fmt: skip
    with serving(pages) as (url, _):
        wanted = [
            "create",
            "web",
            "--url",
            url,
            "--chart",
            "web",
            "--version",
            "1.2.3",
            "--interval",
            "1s",
            "--no-grant",
        ]
        unpinned = plugin(*wanted)
        assert (unpinned.status, f"write digest: {digest(old)}" in " ".join(unpinned.err.split())) == (4, True), (
            unpinned
        )
        made = plugin(*wanted, "--digest", digest(old))
        assert (made.status, "1.2.3@sha256:" in made.err) == (0, True), made
        sync = Followed(cluster, "web")
        sync.until_synced(f"1.2.3@{digest(old)}")
        sync.change(source={"helm": {"values": {"size": 7}}})
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["size"] == "7", "values of the Sync count")
        live = cluster.get("ConfigMap", "web")
        assert live["metadata"]["annotations"]["reconcile.dev/source"] == "web-1.2.3.tgz/templates/a.yaml"
        cluster.edit("ConfigMap", "web", {"data": {"color": "green"}})
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "red", "drift is put back")
        short = f"1.2.3@{digest(old)[:14]}"
        for verb, words in {
            "status": (short, f"{url}, chart web 1.2.3"), "get": ("web 1.2.3", short), "history": ("follows chart web 1.2.3", short),
        }.items():  # fmt: skip
            shown = plugin(verb, "web", "-o", "wide").out
            assert all(each in shown for each in words), (verb, shown)
        assert "web-1.2.3.tgz/templates/a.yaml" in plugin("explain", "configmap/web").out
        assert f"chart web 1.2.3 of {url} is there; it is ready" in " ".join(plugin("doctor").out.split())
        assert plugin("diff", "web").status == 0

        sync.change(approval="Always", source={"chart": {"version": "1.3.0", "digest": digest(new)}})
        held = sync.until("Held", f"1.3.0@{digest(new)}")["message"]
        assert f"revision 1.3.0@{digest(new)[:14]}, which changes 1 object, waits for approval" in held
        shown = plugin("diff", "web")
        assert (shown.status, "# chart web 1.2.3 → 1.3.0" in shown.out, "+++ source/ConfigMap" in shown.out) == (
            1,
            True,
            True,
        ), shown
        assert plugin("approve", "web", "--yes").status == 0
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "blue", "what was approved is applied")
        sync.until_synced(f"1.3.0@{digest(new)}")

        sync.change(approval="Never")
        back = plugin("rollback", "web", "--yes")
        assert (back.status, f"is pinned to {short}; to follow chart web 1.3.0 again" in back.out) == (0, True), back
        assert cluster.get("ConfigMap", "web")["data"]["color"] == "red"
        assert "(rolled back)" in plugin("get", "web").out
        assert "was rolled back to chart web 1.2.3; before, it followed chart web 1.3.0" in plugin("history", "web").out
        assert "follows chart web 1.3.0 again" in plugin("resume", "web").out
        eventually(lambda: cluster.get("ConfigMap", "web")["data"]["color"] == "blue", "it goes on where it was")
        for arguments, words in {
            ("rollback", "web", "--to", "1.1.0", "--dry-run"): "the history of web has no 1.1.0",
            ("rollback", "web", "--to", "1.2.3", "--commit", "--yes"): "there is nothing to commit to",
            ("diff", "web", "--revision", "main"): "follows no Git repository",
        }.items():
            said = plugin(*arguments)
            assert (said.status > 1, words in " ".join(said.err.split())) == (True, True), said
