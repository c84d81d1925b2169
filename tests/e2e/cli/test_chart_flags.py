"""A chart of a Helm repository, and values for one, on the command line before there is a Sync: previewed, applied, printed, and made one of."""

from __future__ import annotations

import hashlib

import yaml

from tests.chart_server import index, serving
from tests.rendering_tools import packed

CHART = {
    "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "web/values.yaml": "color: red\nsize: 1\nextra: {a: x, b: other}\n",
    "web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
    'data: {color: "{{ .Values.color }}", size: "{{ .Values.size }}", extra: "{{ .Values.extra | toJson | b64enc }}"}\n',
}


def test_a_chart_is_previewed_applied_and_printed_before_there_is_a_sync(plugin, cluster, tmp_path):
    archive = packed(CHART)
    digest = f"sha256:{hashlib.sha256(archive).hexdigest()}"
    pages = {"/index.yaml": index(("1.2.3", digest[7:], "web-1.2.3.tgz")), "/web-1.2.3.tgz": archive}
    values = tmp_path / "values.yaml"
    values.write_text("color: blue\nsize: 2\n")
    with serving(pages) as (url, _):
        chart = ("--repo", url, "--chart", "web", "--version", "1.2.3")
        given = ("--values", str(values), "--set", "size=3,extra.a=null")
        told = plugin("diff", *chart, *given)
        assert (told.status, f"write digest: {digest}" in " ".join(told.err.split())) == (4, True), told
        chart = (*chart, "--digest", digest)
        told = plugin("diff", *chart, *given, "-o", "summary")
        assert (told.status, f"ConfigMap {cluster.namespace}/web" in told.out) == (1, True), told
        printed = yaml.safe_load(plugin("render", *chart, *given, "--kubeconfig", str(tmp_path / "none")).out)
        assert printed["data"] == {"color": "blue", "size": "3", "extra": "eyJiIjoib3RoZXIifQ=="}
        done = plugin("sync", *chart, *given, "--name", "shop", "-y")
        assert done.status == 0, done
        live = cluster.get("ConfigMap", "shop")  # the release has the Sync's name
        assert live["data"] == printed["data"]
        assert live["metadata"]["annotations"]["reconcile.dev/source"] == "web-1.2.3.tgz/templates/a.yaml"
        assert plugin("diff", *chart, *given, "--name", "shop").status == 0
        told = plugin("diff", *chart, *given, "--set", "size=4", "--name", "shop")
        assert (told.status, '+  size: "4"' in told.out, "drift" in told.out) == (1, True, False), told
        made = plugin("create", "next", "--url", url, *chart[2:], *given, "--dry-run", "-o", "yaml")
        assert made.status == 0, made
        assert yaml.safe_load(made.out)["spec"]["source"]["helm"]["values"] == {
            "color": "blue", "size": 3, "extra": {"a": None},
        }  # fmt: skip


def test_a_chart_of_a_folder_takes_values_too(plugin, tmp_path):
    for path, text in CHART.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    folder = ("-f", str(tmp_path / "web"))
    assert yaml.safe_load(plugin("render", *folder, "--set", "color=green").out)["data"]["color"] == "green"
    told = plugin("diff", *folder, "--set", "color=green")
    assert (told.status, "+  color: green" in told.out) == (1, True), told
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    told = plugin("diff", "-f", str(manifests), "--set", "color=green")
    assert (told.status, "Chart.yaml" in told.err) == (4, True), told
