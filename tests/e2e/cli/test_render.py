"""kubectl reconcile render: a chart with what its Sync says of it, from the cluster or from a file."""

from __future__ import annotations

import pytest
import yaml

CHART = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "templates/a.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {colour: {{ .Values.colour }}, token: "${TOKEN}"}
""",
}
SAYS = {
    "helm": {"values": {"colour": "red"}},
    "substitute": {
        "alsoIn": ["ConfigMap"],
        "variables": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "tokens"}}}],
    },
}


@pytest.fixture
def followed(cluster, follow, git_server):
    git_server.push(CHART)
    follow(git_server.url, suspend=True)
    cluster.edit("Sync", "shop", {"spec": {"source": SAYS}})
    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"}, "stringData": {"TOKEN": "t0p"}}
    )
    return git_server


def test_a_chart_is_rendered_with_what_its_sync_says_and_nothing_is_written(plugin, cluster, followed):
    told = plugin("render", "shop")
    assert (told.status, yaml.safe_load(told.out)["data"]) == (0, {"colour": "red", "token": "***"}), told.err
    shown = yaml.safe_load(plugin("render", "shop", "--show-secrets").out)
    assert (shown["data"]["token"], shown["metadata"]["namespace"]) == ("t0p", cluster.namespace)
    names = {each["metadata"]["name"] for each in cluster.list("ConfigMap")}
    assert "shop" not in names


def test_a_file_of_settings_needs_a_cluster_for_what_it_names_there_alone(plugin, followed, tmp_path):
    for path, text in CHART.items():
        (tmp_path / "web" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "web" / path).write_text(text)
    source = {"git": {"url": followed.url}, **SAYS}
    sync = {
        "apiVersion": "reconcile.dev/v1alpha1",
        "kind": "Sync",
        "metadata": {"name": "blue"},
        "spec": {"source": source},
    }
    settings = tmp_path / "sync.yaml"
    settings.write_text(yaml.safe_dump(sync))
    told = plugin("render", "-f", str(tmp_path / "web"), "--settings", str(settings), "--show-secrets")
    assert yaml.safe_load(told.out)["data"] == {"colour": "red", "token": "t0p"}, told.err
    source.pop("substitute")
    settings.write_text(yaml.safe_dump(sync))
    nowhere = ("--kubeconfig", str(tmp_path / "none"))
    told = plugin("render", "-f", str(tmp_path / "web"), "--settings", str(settings), *nowhere)
    found = yaml.safe_load(told.out)
    assert (found["metadata"]["name"], found["data"]["colour"]) == ("blue", "red"), told.err
