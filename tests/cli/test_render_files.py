"""kubectl reconcile render of files where no cluster is configured: their objects as they would be applied."""

from __future__ import annotations

import json

import pytest
import yaml

from kubectl_reconcile.cli.main import run

FILES = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: "${COUNT}"}
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: t0p}
---
apiVersion: v1
kind: Namespace
metadata: {name: prod}
"""
SETTINGS = """apiVersion: reconcile.dev/v1alpha1
kind: Sync
metadata: {name: shop, namespace: gitops}
spec:
  targetNamespace: prod
  source:
    git: {url: https://git.example.com/shop.git}
    substitute: {variables: [{name: COUNT, value: "3", type: Integer}]}
"""
FROM_A_SECRET = SETTINGS.replace('value: "3", type: Integer', "valueFrom: {secretKeyRef: {name: counts}}")

VALUES_FROM_A_CONFIG_MAP = SETTINGS + "    helm: {valuesFrom: [{kind: ConfigMap, name: web}]}\n"


@pytest.fixture
def render(tmp_path, monkeypatch, capsys):
    """render(files, flag…, settings=…) -> status, what it printed, and what it complained of."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def rendered(files, *flags, settings=""):
        (tmp_path / "files").mkdir(exist_ok=True)
        (tmp_path / "files/all.yaml").write_text(files)
        (tmp_path / "sync.yaml").write_text(settings)
        by = ["--settings", str(tmp_path / "sync.yaml")] if settings else []
        status = run(["render", "-f", str(tmp_path / "files"), *by, *flags])
        return status, *capsys.readouterr()

    return rendered


def test_objects_are_as_the_sync_of_the_settings_applies_them(render):
    status, out, _ = render(FILES, settings=SETTINGS)
    namespace, token, web = yaml.safe_load_all(out)  # in the order in which they are applied
    assert (status, namespace["kind"], namespace["metadata"].get("namespace")) == (0, "Namespace", None)
    assert (token["metadata"]["namespace"], web["metadata"]["namespace"], web["spec"]) == (
        "prod",
        "prod",
        {"replicas": 3},
    )
    assert web["metadata"]["labels"]["applyset.kubernetes.io/part-of"].startswith("applyset-")
    assert out.startswith("apiVersion: v1\nkind: Namespace\nmetadata:\n")


def test_values_of_secrets_are_hidden_unless_asked_for(render):
    _, out, err = render(FILES)
    assert ("t0p" in out, 'token: "***"' in out, "--show-secrets shows them" in err) == (False, True, True)
    _, out, err = render(FILES, "--show-secrets")
    assert ("token: t0p" in out, err.count("hidden")) == (True, 0)


def test_in_json_they_are_a_list_as_kubectl_has_it(render):
    _, out, _ = render(FILES, "-o", "json", settings=SETTINGS)
    found = json.loads(out)
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    assert [each["kind"] for each in found["items"]] == ["Namespace", "Secret", "Deployment"]
    assert render(FILES, "-o", "name", settings=SETTINGS)[1].split() == [
        "namespace/prod",
        "secret/token",
        "deployment.apps/web",
    ]


def test_what_is_wrong_is_told_and_the_rest_is_printed(render):
    status, out, err = render(FILES + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", "-o", "name")
    assert (status, len(out.split()), 'hint: quote it: "y"' in err) == (4, 3, True)


@pytest.mark.parametrize("settings", [FROM_A_SECRET, VALUES_FROM_A_CONFIG_MAP], ids=["a variable", "values of a chart"])
def test_what_the_cluster_holds_takes_a_cluster(render, settings):
    status, out, err = render(FILES, settings=settings)
    assert (status, out) == (2, "")
    assert "cluster" in err


UNUSABLE = {
    "two Syncs": (SETTINGS + "---\n" + SETTINGS.replace("shop,", "web,"), (), "has 2 Syncs, not one"),
    "none": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n", (), "has no Sync, not one"),
    "one of the cluster besides": (SETTINGS, ("--name", "shop"), "--settings is for -f without --name"),
}


@pytest.mark.parametrize(("settings", "flags", "said"), UNUSABLE.values(), ids=UNUSABLE)
def test_settings_are_one_sync(render, settings, flags, said):
    status, out, err = render(FILES, *flags, settings=settings)
    assert (status, out, said in err) == (2, "", True)


NO_CHART = {
    "a version alone": (("--version", "1.2.3"), "--version needs --chart"),
    "a chart of no repository": (("--chart", "web", "--version", "1.2.3"), "--chart needs --repo"),
    "a chart in no version": (
        ("--chart", "web", "--repo", "https://charts.example.com"),
        "--version, one exact version",
    ),
    "a branch of a chart": (
        ("--chart", "web", "--repo", "https://charts.example.com", "--version", "1.2.3", "--ref", "main"),
        "--ref and --chart exclude each other",
    ),
    "values for a Sync": (("shop", "--set", "a=1"), "a Sync says its values itself"),
    "values for manifests": (("-f", ".", "--render", "Raw", "--set", "a=1"), "are for charts, and --render is Raw"),
    "values that can't be meant so": (("-f", ".", "--set", "a"), "'a' isn't NAME=VALUE"),
}


@pytest.mark.parametrize(("words", "said"), NO_CHART.values(), ids=NO_CHART)
def test_flags_of_a_chart_go_together(capsys, words, said):
    assert (run(["render", *words]), said in capsys.readouterr().err) == (2, True)


def test_a_file_of_values_is_one_map(tmp_path, capsys):
    (tmp_path / "values.yaml").write_text("- a\n- b\n")
    assert run(["render", "-f", str(tmp_path), "--values", str(tmp_path / "values.yaml")]) == 4
    assert "values.yaml isn't a map of values" in capsys.readouterr().err
