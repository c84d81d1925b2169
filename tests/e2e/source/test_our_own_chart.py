"""The chart that the daemon is installed by makes what ``kubectl reconcile install`` makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_reconcile.cli.deploy_files import files, stale, write
from kubectl_reconcile.cli.verbs.operate.install import manifests_of
from kubectl_reconcile.core.rendering.charts import Release
from kubectl_reconcile.core.resources.helm import HelmSpec
from kubectl_reconcile.source.render.renderer import Renderer
from tests import yaml_text
from tests.rendering_tools import our_documents

CHART = Path(__file__).parents[3] / "deploy" / "chart"
OURS = "reconcile-system"
CHOICES = {
    "as it comes": (OURS, {}, {}),
    "another namespace, named like a number": ("12", {}, {}),
    "another image and more replicas": (
        OURS, {"image": "registry.example.com/reconcile:1", "replicas": 3},
        {"image": "registry.example.com/reconcile:1", "replicas": 3},
    ),
    "the page, by port-forward": (OURS, {"ui": {"enabled": True}}, {"page_urls": []}),
    "the page, at two addresses": (
        "elsewhere", {"ui": {"enabled": True, "urls": ["https://a.example.com", "https://b.example.com"]}},
        {"page_urls": ["https://a.example.com", "https://b.example.com"]},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def rendered(renders):
    """rendered(namespace, values) -> what the chart makes, by kind and name, and the errors."""
    renderer = Renderer()

    def run(namespace, values):
        release = Release("reconcile", namespace, HelmSpec(values=json.dumps(values)))
        texts, errors = our_documents(CHART, release, renderer)
        return by_name(yaml_text.document(text) for text in texts), errors

    yield run
    renderer.close()


def by_name(manifests):
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests}


@pytest.mark.parametrize(("namespace", "values", "options"), CHOICES.values(), ids=CHOICES)
def test_it_makes_what_install_makes(rendered, namespace, values, options):
    image = options.get("image")
    wanted = manifests_of(namespace, image, **{name: each for name, each in options.items() if name != "image"})
    assert rendered(namespace, {"createNamespace": True, **values}) == (by_name(wanted), [])


def test_it_leaves_the_namespace_to_helm_unless_it_is_asked_to_create_it(rendered):
    made, _ = rendered(OURS, {})
    assert set(by_name(manifests_of(OURS, None))) - set(made) == {("Namespace", OURS)}


def test_more_flags_come_after_all_others(rendered):
    made, _ = rendered(OURS, {"flags": ["--require-verify", "--git-max-jobs=2"]})
    [container] = made["Deployment", "kubectl-reconcile"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-3:] == ["--module-accounts", "--require-verify", "--git-max-jobs=2"]


@pytest.mark.parametrize(
    "values", [{"replicas": 0}, {"ui": {"url": "https://a.example.com"}}, {"flags": "--x"}], ids=str
)
def test_values_that_mean_nothing_are_refused(rendered, values):
    made, errors = rendered(OURS, values)
    assert (made, len(errors)) == ({}, 1)
    assert "values" in errors[0]


def test_what_is_written_is_current_until_somebody_edits_it(tmp_path):
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "chart/values.yaml").write_text("replicas: 2\n")
    (tmp_path / "chart/templates/more.yaml").touch()
    (tmp_path / "install.yaml").unlink()
    assert stale(tmp_path) == ["install.yaml", "chart/values.yaml", "chart/templates/more.yaml"]
    write(tmp_path)
    assert stale(tmp_path) == []
    assert (tmp_path / "chart/Chart.yaml").read_text() == files()["chart/Chart.yaml"]
