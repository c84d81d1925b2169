"""``import`` from a cluster: all objects of a tool are read there, and the API server takes what they become."""

from __future__ import annotations

import json

import pytest
import yaml

KINDS = {
    "GitRepository": ("source.toolkit.fluxcd.io", "v1", "gitrepositories"),
    "OCIRepository": ("source.toolkit.fluxcd.io", "v1", "ocirepositories"),
    "Kustomization": ("kustomize.toolkit.fluxcd.io", "v1", "kustomizations"),
    "HelmRelease": ("helm.toolkit.fluxcd.io", "v2", "helmreleases"),
}
OBJECTS = """
kind: GitRepository
metadata: {name: fleet}
spec: {url: "https://git.example.com/fleet", ref: {semver: 1.x}, interval: 5m, secretRef: {name: fleet-git}, verify: {mode: TagAndHEAD, secretRef: {name: keys}}}
---
kind: Kustomization
metadata: {name: shop}
spec:
  path: ./apps
  prune: true
  interval: 1h
  timeout: 3m
  sourceRef: {kind: GitRepository, name: fleet}
  components: [../components/backup]
  patches: [{patch: "- {op: remove, path: /spec/replicas}", target: {kind: Deployment}}]
  images: [{name: web, newTag: "2"}]
  commonMetadata: {labels: {team: shop}}
  dependsOn: [{name: database}]
  healthCheckExprs: [{apiVersion: example.com/v1, kind: Shop, current: "status.phase == 'ready'"}]
  ignore: [{paths: [/spec/replicas], target: {kind: Deployment}}]
  postBuild: {substitute: {REGION: eu}, substituteFrom: [{kind: Secret, name: variables}]}
---
kind: OCIRepository
metadata: {name: web}
spec: {url: "oci://registry.example.com/charts/web", ref: {tag: 1.2.3}, verify: {provider: cosign, secretRef: {name: cosign}}}
status: {artifact: {revision: "1.2.3@sha256:%s"}}
---
kind: HelmRelease
metadata: {name: web}
spec:
  chartRef: {kind: OCIRepository, name: web}
  values: {replicas: 2}
  valuesFrom: [{kind: Secret, name: web-values, valuesKey: a, targetPath: db.password}, {kind: ConfigMap, name: web-values, optional: true}]
  driftDetection: {mode: enabled, ignore: [{paths: [/spec/replicas]}]}
""" % ("a" * 64)


def served(cluster, kinds):
    """Have the server know kinds, any field of which may be anything, until the test is over."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    found = []
    for kind, (group, version, plural) in kinds.items():
        versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
        names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
        spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
        metadata = {"name": f"{plural}.{group}"}
        found.append({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec})  # fmt: skip
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=found)
    names = [f"crd/{each['metadata']['name']}" for each in found]
    cluster.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
    yield
    cluster.kubectl("delete", *names, "--wait=false")


@pytest.fixture
def flux(cluster):
    """Flux's kinds as the server knows them."""
    yield from served(cluster, KINDS)


@pytest.mark.usefixtures("flux")
def test_what_flux_applies_is_read_from_the_cluster_and_becomes_syncs_that_the_server_takes(cluster, plugin):
    objects = [{"apiVersion": "/".join(KINDS[each["kind"]][:2]), **each} for each in yaml.safe_load_all(OBJECTS)]
    hidden = {"TOKEN": "a-hidden-word"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "variables"}, "stringData": hidden}
    cluster.kubectl("apply", "--server-side", "-n", cluster.namespace, "-f", "-", stdin=[*objects, secret])
    told = plugin("import", "flux", "-o", "json")
    assert told.status == 0, told
    syncs = {each["metadata"]["name"]: each for each in json.loads(told.out)["items"]}
    assert syncs.keys() == {"shop", "web"}
    variables = syncs["shop"]["spec"]["source"]["substitute"]["variables"]
    assert {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "variables"}}} in variables
    assert syncs["web"]["spec"]["source"]["chart"]["digest"] == f"sha256:{'a' * 64}"
    assert "a-hidden-word" not in told.out + told.err
    taken = cluster.kubectl(
        "create", "--dry-run=server", "-n", cluster.namespace, "-o", "name", "-f", "-", stdin=[*syncs.values()]
    )
    assert sorted(taken.split()) == ["sync.reconcile.dev/shop", "sync.reconcile.dev/web"]
    assert cluster.names("Sync") == set()


APPLICATION = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: shop}
spec:
  project: default
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  source: {repoURL: "https://git.example.com/shop", path: apps, kustomize: {replicas: [{name: web, count: 3}]}}
  ignoreDifferences: [{kind: Secret, managedFieldsManagers: [operator]}, {group: apps, kind: Deployment, jqPathExpressions: [".spec.template.spec.containers[0].image"]}]
"""


@pytest.fixture
def applications(cluster):
    """Argo CD's kind as the server knows it."""
    yield from served(cluster, {"Application": ("argoproj.io", "v1alpha1", "applications")})


@pytest.mark.usefixtures("applications")
def test_what_argo_cd_applies_is_read_with_its_credentials_and_who_may_not_is_told(cluster, plugin):
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    values = {"url": "https://git.example.com/shop", "username": "robot", "password": "a-hidden-word"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "repo", "labels": labels},
        "stringData": values,
    }
    objects = [yaml.safe_load(APPLICATION), secret]
    cluster.kubectl("apply", "--server-side", "-n", cluster.namespace, "-f", "-", stdin=objects)
    told = plugin("import", "argocd", "-o", "json")
    assert told.status == 0, told
    [sync] = json.loads(told.out)["items"]
    assert sync["spec"]["source"]["git"]["secretRef"] == {"name": "repo"}
    assert "kubectl annotate secret repo" in told.err
    assert "a-hidden-word" not in told.out + told.err
    cluster.kubectl("create", "--dry-run=server", "-n", cluster.namespace, "-f", "-", stdin=sync)
    told = plugin("import", "argocd", "--as", "somebody")
    assert (told.status, "applications.argoproj.io" in told.err, told.out) == (3, True, ""), told
