"""``import`` on the command line, from files: what is written and printed, and what of it never is."""

import base64
import hashlib
import json

import pytest
import yaml

from kubectl_reconcile.cli.main import run
from kubectl_reconcile.cli.output.failures import ExitStatus
from kubectl_reconcile.core.resources.sync import Sync
from tests.chart_server import index, serving
from tests.rendering_tools import packed

FLEET = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: "https://git.example.com/fleet", secretRef: {name: fleet-git}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: flux-system}
spec: {path: ./apps, prune: true, sourceRef: {kind: GitRepository, name: fleet}, postBuild: {substituteFrom: [{kind: Secret, name: variables}]}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: secret, namespace: flux-system}
spec: {path: ./secret, prune: true, sourceRef: {kind: GitRepository, name: fleet}, decryption: {provider: sops}, new: {field: 1}}
"""
APPLICATION = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop, namespace: argocd}
spec:
  project: default
  destination: {name: in-cluster, namespace: shop}
  source: {repoURL: "https://git.example.com/shop", path: apps}
  syncPolicy: {automated: {prune: true, selfHeal: true}}
"""
SECRETS = {
    "fleet-git": {"username": "robot-of-git", "password": "first-hidden-word", "ca.crt": "third-hidden-word"},
    "variables": {"TOKEN": "second-hidden-word"},
}
REPOSITORY = {"type": "git", "url": "https://git.example.com/shop", "sshPrivateKey": "fourth-hidden-word", "password": "fifth-hidden-word", "username": "robot-of-argo"}  # fmt: skip


def secret(name, namespace, values, labels=None, *, encoded=True):
    """Return the text of a Secret."""
    text = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()} if encoded else values
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(values)}
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data" if encoded else "stringData": text}
    )


@pytest.fixture
def folder(tmp_path):
    """A checkout with objects of both tools, and Secrets with values."""
    place = tmp_path / "checkout"
    (place / "clusters").mkdir(parents=True)
    (place / "clusters" / "fleet.yaml").write_text(FLEET)
    (place / "apps.yaml").write_text(APPLICATION)
    for encoded in (True, False):
        texts = [secret(name, "flux-system", values, encoded=encoded) for name, values in SECRETS.items()]
        texts.append(
            secret("repo", "argocd", REPOSITORY, {"argocd.argoproj.io/secret-type": "repository"}, encoded=encoded)
        )
        (place / f"secrets-{encoded}.yaml").write_text("---\n".join(texts))
    return place


@pytest.mark.parametrize("tool", ["flux", "argocd"])
def test_no_value_of_a_secret_is_written_or_printed(folder, tmp_path, capsys, tool):
    shown = ""
    for more in ([], ["-o", "json"], ["-o", "name"], ["--write", str(tmp_path / "out")]):
        run(["import", tool, "-f", str(folder), *more])
        shown += "".join(capsys.readouterr())
    written = "".join(file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file())
    assert "kubectl" in written
    assert "fleet-git" in shown or "repo-git" in shown
    values = {value for each in (*SECRETS.values(), REPOSITORY) for value in each.values()} - {REPOSITORY["url"], "git"}
    for value in values:
        for text in (value, base64.b64encode(value.encode()).decode()):
            assert text not in shown
            assert text not in written


def test_syncs_are_written_where_the_objects_were_each_below_what_to_know_of_it(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["import", "flux", "-f", str(folder), "--write", str(out)]) == ExitStatus.HELD
    assert sorted(file.relative_to(out).as_posix() for file in out.rglob("*.*")) == [
        "clusters/fleet.yaml",
        "import-report.txt",
    ]
    [sync] = yaml.safe_load_all((out / "clusters" / "fleet.yaml").read_text())
    assert Sync.of(sync).source.substitute.variables[0].name == "TOKEN"
    report = (out / "import-report.txt").read_text()
    assert "1 of 2 units become 1 Sync" in report
    assert "spec.decryption.secretRef: without a Secret only key services of clouds have the keys" in report
    assert "spec.new.field: isn't among the fields" in report
    assert "kubectl annotate secret fleet-git -n flux-system reconcile.dev/urls=https://git.example.com/fleet" in report
    assert "kubectl reconcile grant shop -n flux-system --apply" in report
    capsys.readouterr()
    assert run(["import", "flux", "-f", str(folder), "--write", str(out)]) == ExitStatus.SOURCE
    assert "is there already" in capsys.readouterr().err


def test_syncs_are_printed_and_what_to_know_of_them_beside(folder, capsys):
    assert run(["import", "argocd", "-f", str(folder), "--into", "syncs"]) == ExitStatus.OK
    told = capsys.readouterr()
    [sync] = yaml.safe_load_all(told.out)
    assert sync["metadata"] == {"name": "shop", "namespace": "syncs"}
    assert "1 of 1 units become 1 Sync" in told.err
    assert "kubectl get secret repo -n argocd -o json | jq" in told.err


URLS = {
    "of Argo CD": ("argocd", APPLICATION, "https://git.example.com/shop"),
    "of Flux": ("flux", FLEET, "https://git.example.com/fleet"),
}


@pytest.mark.parametrize(("tool", "text", "url"), URLS.values(), ids=URLS)
def test_credentials_in_a_url_are_shown_nowhere_and_make_no_sync(tmp_path, capsys, tool, text, url):
    file = tmp_path / "all.yaml"
    file.write_text(text.replace(url, url.replace("//", "//robot:a-hidden-word@")))
    assert run(["import", tool, "-f", str(file), "--write", str(tmp_path / "out")]) == ExitStatus.HELD
    assert run(["import", tool, "-f", str(file)]) == ExitStatus.HELD
    shown = "".join(capsys.readouterr()) + (tmp_path / "out" / "import-report.txt").read_text()
    assert "a-hidden-word" not in shown
    assert "has credentials in it" in shown


def test_a_hostile_name_is_no_path(tmp_path, capsys):
    file = tmp_path / "all.yaml"
    file.write_text(APPLICATION.replace("name: shop, namespace: argocd", "name: ../../x, namespace: ../y"))
    run(["import", "argocd", "-f", str(file), "--write", str(tmp_path / "a" / "b")])
    capsys.readouterr()
    assert {each.relative_to(tmp_path).parts[0] for each in tmp_path.rglob("*")} == {"all.yaml", "a"}


def test_the_items_of_a_list_count_and_templates_are_named(tmp_path, capsys):
    items = [yaml.safe_load(APPLICATION)]
    file = tmp_path / "list.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    (tmp_path / "template.yaml").write_text("apiVersion: argoproj.io/v1alpha1\n{{ if .x }}\n")
    assert run(["import", "argocd", "-f", str(tmp_path), "-o", "name"]) == ExitStatus.OK
    told = capsys.readouterr()
    assert told.out == "sync.reconcile.dev/shop\n"
    assert "warning: template.yaml:3" in told.err


def test_digests_of_charts_are_asked_for(tmp_path, capsys):
    chart = packed({"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n"})
    digest = hashlib.sha256(chart).hexdigest()
    with serving({"/index.yaml": index(("1.2.3", digest, "web-1.2.3.tgz"), name="web"), "/web-1.2.3.tgz": chart}) as (
        url,
        _,
    ):
        source = f'source: {{repoURL: "{url}", chart: web, targetRevision: %s}}'
        old = 'source: {repoURL: "https://git.example.com/shop", path: apps}'
        file = tmp_path / "apps.yaml"
        file.write_text(
            "---\n".join(
                APPLICATION.replace(old, source % version).replace("name: shop,", f"name: {name},")
                for name, version in (("a", "1.2.3"), ("b", "9.9.9"))
            )
        )
        assert (
            run(["import", "argocd", "-f", str(file), "--pin", "--cache-dir", str(tmp_path / "cache")]) == ExitStatus.OK
        )
    told = capsys.readouterr()
    first, second = yaml.safe_load_all(told.out)
    assert first["spec"]["source"]["chart"]["digest"] == f"sha256:{digest}"
    assert "digest" not in second["spec"]["source"]["chart"]
    assert "asked for it: chart web 9.9.9" in told.err


@pytest.mark.parametrize(("tool", "named"), {"argocd": "Argo CD", "flux": "Flux"}.items())
def test_a_folder_without_any_object_of_the_tool_is_an_error(tmp_path, capsys, tool, named):
    (tmp_path / "settings.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")
    assert run(["import", tool, "-f", str(tmp_path)]) == ExitStatus.SOURCE
    assert f"has no objects of {named}" in capsys.readouterr().err
