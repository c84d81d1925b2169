"""Argo CD's objects as Syncs. The shapes are those of the published CRDs, and of public repositories that use them."""

import base64
import json

import pytest
import yaml

from kubectl_reconcile.core.importing.argocd import repository_of, translate
from kubectl_reconcile.core.importing.fields import Fate
from kubectl_reconcile.core.importing.units import Placed, credential_steps
from kubectl_reconcile.core.resources.sync import Sync

APPLICATION = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: shop
  namespace: argocd
  annotations: {argocd.argoproj.io/sync-wave: "2"}
  finalizers: [resources-finalizer.argocd.argoproj.io]
spec:
  project: team
  destination: {server: https://kubernetes.default.svc, namespace: shop}
  source: {repoURL: https://git.example.com/team/shop.git, path: overlays/prod, targetRevision: main, kustomize: {images: ["web=registry.example.com/web:1.2"]}}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    syncOptions: [CreateNamespace=true, RespectIgnoreDifferences=true]
  ignoreDifferences:
    - {group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}
    - {kind: Secret, name: ca, jqPathExpressions: [.data."tls.crt"]}
"""


def read(text=APPLICATION, repositories=(), into="", **changes):
    """Return what an Application becomes whose spec has *changes*."""
    found = list(yaml.safe_load_all(text))
    for each in found:
        if each["kind"] == "Application":
            each["spec"] |= changes
    return translate(map(Placed, found), repositories, into=into)


def spec_of(imported):
    """Return the spec of the one Sync."""
    [sync] = imported.syncs
    Sync.of(sync)
    return sync["spec"]


def test_an_application_becomes_a_sync_that_says_the_same():
    imported = read()
    assert imported.syncs[0]["metadata"] == {
        "name": "shop",
        "namespace": "argocd",
        "annotations": {"reconcile.dev/wave": "2"},
    }
    assert spec_of(imported) == {
        "source": {
            "git": {"url": "https://git.example.com/team/shop.git", "branch": "main"},
            "path": "overlays/prod",
            "kustomize": {"images": [{"name": "web", "newName": "registry.example.com/web", "newTag": "1.2"}]},
        },
        "deletionPolicy": "Prune",
        "targetNamespace": "shop",
        "createNamespace": True,
        "serviceAccountName": "team",
        "ignore": [
            {"path": "/spec/replicas", "from": "Always", "target": {"kind": "Deployment", "group": "apps"}},
            {"path": '.data["tls.crt"]', "from": "Always", "target": {"kind": "Secret", "name": "ca", "group": ""}},
        ],
    }


POLICIES = {
    "no automated sync waits for approval": ({}, {"approval": "Always"}),
    "one that is switched off, too": ({"automated": {"enabled": False, "prune": True}}, {"approval": "Always"}),
    "without prune nothing is deleted": ({"automated": {"selfHeal": True}}, {"prune": False}),
    "without self-heal drift is reported": ({"automated": {"prune": True}}, {"drift": "Report"}),
    "asking before each deletion": ({"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["Prune=confirm"]}, {"maxDeletes": 0}),
    "replacing by force": ({"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["Force=true", "Replace=true"]}, {"replace": True}),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "expected"), POLICIES.values(), ids=POLICIES)
def test_how_it_is_synced(policy, expected):
    spec = spec_of(read(syncPolicy=policy, ignoreDifferences=[]))
    assert {
        name: spec.get(name) for name in ("approval", "prune", "drift", "maxDeletes", "replace") if name in spec
    } == expected


REVISIONS = {
    "HEAD": {}, "": {}, "main": {"branch": "main"}, "release-1.20": {"branch": "release-1.20"}, "v1.2.3": {"tag": "v1.2.3"}, "1.*": {"semver": "1.*"}, ">=1.0.0 <2.0.0": {"semver": ">=1.0.0 <2.0.0"},
    "refs/heads/a/b": {"branch": "a/b"}, "refs/tags/x": {"tag": "x"}, "a" * 40: {"commit": "a" * 40},
}  # fmt: skip


@pytest.mark.parametrize(("revision", "expected"), REVISIONS.items(), ids=[each or "nothing" for each in REVISIONS])
def test_what_is_followed(revision, expected):
    source = {"repoURL": "https://git.example.com/x", "path": ".", "targetRevision": revision}
    git = spec_of(read(source=source))["source"]["git"]
    assert git == {"url": "https://git.example.com/x", **expected}


def test_parameters_count_more_than_values_and_these_more_than_files():
    helm = {
        "valueFiles": ["values-prod.yaml", "/shared/values.yaml"], "values": "a: 1\nb: {c: x}\n",
        "parameters": [{"name": "b.c", "value": "y,z"}, {"name": "n", "value": "2"}, {"name": "s", "value": "2", "forceString": True}, {"name": "l[0].x", "value": "true"}],
    }  # fmt: skip
    source = {"repoURL": "https://git.example.com/x", "path": "charts/web", "helm": helm}
    assert spec_of(read(source=source))["source"]["helm"] == {
        "releaseName": "shop",
        "valuesFiles": ["values-prod.yaml", "../../shared/values.yaml"],
        "values": {"a": 1, "b": {"c": "y,z"}, "n": 2, "s": "2", "l": [{"x": True}]},
    }


def test_a_chart_with_values_in_another_repository_is_one_sync():
    sources = [
        {"repoURL": "https://charts.example.com", "chart": "web", "targetRevision": "1.2.3", "helm": {"valueFiles": ["$values/web/values.yaml"]}},
        {"repoURL": "https://git.example.com/values", "targetRevision": "main", "ref": "values"},
    ]  # fmt: skip
    spec = spec_of(read(source=None, sources=sources))
    assert spec["source"] == {
        "chart": {"repository": "https://charts.example.com", "name": "web", "version": "1.2.3"},
        "git": {"url": "https://git.example.com/values", "branch": "main"},
        "helm": {"releaseName": "shop", "valuesFiles": ["web/values.yaml"]},
    }


def test_each_source_that_has_objects_becomes_a_sync():
    sources = [
        {"repoURL": "https://git.example.com/a", "path": "a"},
        {"repoURL": "https://git.example.com/b", "path": "b", "name": "extras"},
    ]
    imported = read(source=None, sources=sources)
    assert [each["metadata"]["name"] for each in imported.syncs] == ["shop", "shop-extras"]
    assert imported.syncs[1]["spec"]["source"]["helm"] == {"releaseName": "shop"}


STOPPED = {
    "another cluster": ({"destination": {"name": "prod-eu", "namespace": "x"}}, "spec.destination"),
    "a plugin": ({"source": {"repoURL": "https://git.example.com/x", "path": ".", "plugin": {"name": "x"}}}, "spec.source.plugin"),
    "Jsonnet": ({"source": {"repoURL": "https://git.example.com/x", "path": ".", "directory": {"jsonnet": {"libs": ["x"]}}}}, "spec.source.directory.jsonnet"),
    "labels of selectors": ({"source": {"repoURL": "https://git.example.com/x", "path": ".", "kustomize": {"commonLabels": {"a": "b"}}}}, "spec.source.kustomize.commonLabels"),
    "an expression of jq": ({"ignoreDifferences": [{"kind": "X", "jqPathExpressions": [".a[] | select(.b)"]}]}, "spec.ignoreDifferences[].jqPathExpressions"),
    "values that are no map": ({"source": {"repoURL": "https://git.example.com/x", "path": ".", "helm": {"values": "- a"}}}, "spec.source.helm.values"),
    "a range of charts": ({"source": {"repoURL": "https://charts.example.com", "chart": "x", "targetRevision": "1.*"}}, "spec.source.targetRevision"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "place"), STOPPED.values(), ids=STOPPED)
def test_what_no_sync_can_do_makes_none(changes, place):
    [unit] = read(**changes).units
    assert not unit.is_translated
    assert [each.place for each in unit.findings_of(Fate.NOT_POSSIBLE)] == [place]


def test_an_unknown_option_is_named():
    [unit] = read(syncPolicy={"syncOptions": ["Retry=true"]}).units
    assert [each.text for each in unit.findings_of(Fate.UNKNOWN)] == [
        "Retry=true isn't a known option: see what it does"
    ]


def test_sync_windows_of_a_project_stop_its_applications():
    project = "\n---\napiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team, namespace: argocd}\nspec: {syncWindows: [{kind: deny, schedule: '0 0 * * *', duration: 1h}]}"
    [unit] = read(APPLICATION + project).units
    assert [each.place for each in unit.findings_of(Fate.NOT_POSSIBLE)] == ["spec.project"]


def secret(kind="repository", **values):
    """Return a Secret of Argo CD, as its CLI makes one."""
    data = {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}
    labels = {"argocd.argoproj.io/secret-type": kind}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "repo-1", "namespace": "argocd", "labels": labels},
        "data": data,
    }


def test_credentials_of_a_repository_are_used_where_they_are():
    repository = repository_of(secret(url="https://git.example.com/team", username="robot", password="hunter2"))
    assert "hunter2" not in repr(repository)
    assert not read(repositories=[repository]).units[0].needs  # that of another repository, whose name begins alike
    above = repository_of(
        secret("repo-creds", url="https://git.example.com/team/", username="robot", password="hunter2")
    )
    imported = read(repositories=[above])
    assert spec_of(imported)["source"]["git"]["secretRef"] == {"name": "repo-1"}
    [step] = credential_steps(imported.units)
    assert (
        step.command
        == "kubectl annotate secret repo-1 -n argocd reconcile.dev/urls=https://git.example.com/team/shop.git"
    )


def test_a_key_of_ssh_is_carried_into_another_secret_by_a_command():
    repository = repository_of(secret(url="https://git.example.com/team/shop.git", sshPrivateKey="KEY"))
    imported = read(repositories=[repository], into="syncs")
    assert imported.syncs[0]["metadata"]["namespace"] == "syncs"
    [step] = credential_steps(imported.units)
    assert '"identity": .data["sshPrivateKey"]' in step.command
    assert "argocd-ssh-known-hosts-cm" in step.command
    assert '"namespace": "syncs"' in step.command
    assert "KEY" not in json.dumps([imported.syncs, step])


def test_an_application_of_an_application_set_is_made_by_nobody_here():
    imported = read(
        APPLICATION
        + "\n---\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all, namespace: argocd}\nspec: {}"
    )
    assert [(each.ref.kind, each.findings[0].fate) for each in imported.others] == [
        ("ApplicationSet", Fate.NOT_POSSIBLE)
    ]
