"""Flux's objects as Syncs. The shapes are those of the published CRDs, and of public repositories that use them."""

import json

import pytest
import yaml

from kubectl_reconcile.core.importing.fields import Fate
from kubectl_reconcile.core.importing.flux import short_release, translate, without_values
from kubectl_reconcile.core.importing.units import Imported, Placed, credential_steps, grant_steps, told_apart
from kubectl_reconcile.core.resources.sync import Sync

SOURCE = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 5m
  url: https://git.example.com/team/fleet.git
  ref: {branch: main}
  secretRef: {name: fleet-git}
"""
KUSTOMIZATION = """
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: shop, namespace: apps}
spec:
  interval: 1h
  path: ./apps/shop
  prune: true
  wait: true
  timeout: 3m
  sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}
  targetNamespace: shop
  components: [../../components/backup]
  dependsOn: [{name: database}, {name: dns, namespace: network}]
  commonMetadata: {labels: {team: shop}}
  healthCheckExprs:
    - {apiVersion: example.com/v1, kind: Shop, current: "status.phase == 'ready' && has(spec.size)"}
  postBuild:
    substitute: {REGION: eu, REPLICAS: "3"}
    substituteFrom: [{kind: ConfigMap, name: cluster}, {kind: Secret, name: gone, optional: true}]
"""
CLUSTER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster, namespace: apps}
data: {DOMAIN: example.com, REGION: us}
"""
CHARTS = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: web, namespace: apps}
spec:
  url: oci://registry.example.com/charts/web
  ref: {tag: 1.2.3}
  layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}
status: {artifact: {revision: "1.2.3@sha256:%s"}}
""" % ("a" * 64)
RELEASE = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec:
  chartRef: {kind: OCIRepository, name: web}
  targetNamespace: shop
  install: {createNamespace: true, crds: Skip}
  upgrade: {crds: Skip, remediation: {retries: 3}}
  values: {replicas: 2, empty: {}, none: null}
  valuesFrom: [{kind: Secret, name: web-values, valuesKey: prod.yaml}]
  driftDetection: {mode: enabled, ignore: [{paths: [/spec/replicas], target: {kind: Deployment}}]}
"""


def read(*texts):
    """Return what the objects of some YAML become."""
    return translate([Placed(each) for text in texts for each in yaml.safe_load_all(text)])


def spec_of(imported):
    """Return the spec of the one Sync."""
    [sync] = imported.syncs
    Sync.of(sync)
    return sync["spec"]


def test_a_kustomization_becomes_a_sync_that_says_the_same():
    assert spec_of(read(SOURCE, KUSTOMIZATION, CLUSTER)) == {
        "source": {
            "git": {
                "url": "https://git.example.com/team/fleet.git",
                "branch": "main",
                "interval": "5m",
                "secretRef": {"name": "fleet-git"},
            },
            "path": "apps/shop",
            "kustomize": {"components": ["../../components/backup"], "commonMetadata": {"labels": {"team": "shop"}}},
            "substitute": {
                "variables": [
                    {"name": "DOMAIN", "valueFrom": {"configMapKeyRef": {"name": "cluster"}}},
                    {"name": "REGION", "value": "eu"},
                    {"name": "REPLICAS", "type": "Integer", "value": "3"},
                ],
                "expressions": "Defaults",
                "alsoIn": ["ConfigMap", "Secret", "CustomResourceDefinition"],
            },
        },
        "deletionPolicy": "Prune",
        "targetNamespace": "shop",
        "dependsOn": [{"name": "database"}, {"name": "dns", "namespace": "network"}],
        "timeout": "3m",
        "health": {
            "rules": [{"kind": "Shop.example.com", "current": "self.status.phase == 'ready' && has(self.spec.size)"}]
        },
    }


def test_a_release_becomes_a_sync_of_the_chart_that_runs():
    imported = read(CHARTS, RELEASE)
    assert spec_of(imported) == {
        "source": {
            "chart": {
                "repository": "oci://registry.example.com/charts",
                "name": "web",
                "version": "1.2.3",
                "digest": f"sha256:{'a' * 64}",
            },
            "helm": {
                "releaseName": "shop-web",
                "skipCRDs": True,
                "values": {"replicas": 2, "empty": {}, "none": None},
                "valuesFrom": [{"kind": "Secret", "name": "web-values", "valuesKey": "prod.yaml"}],
            },
        },
        "deletionPolicy": "Prune",
        "drift": "Correct",
        "targetNamespace": "shop",
        "createNamespace": True,
        "ignore": [{"path": "/spec/replicas", "from": "Drift", "target": {"kind": "Deployment"}}],
    }
    [unit] = imported.units
    assert [each.place for each in unit.findings_of(Fate.APPROXIMATED)] == ["spec.upgrade.remediation"]


def test_units_that_would_be_the_same_sync_are_named():
    both = [
        *read(SOURCE, KUSTOMIZATION, KUSTOMIZATION, CLUSTER).units,
        *read(SOURCE, KUSTOMIZATION.replace("name: shop", "name: other"), CLUSTER).units,
    ]
    found = told_apart(Imported(tuple(both)))
    said = [[each.text for each in unit.findings] for unit in found.units]
    assert said == [["2 units become Syncs of this name: import the files of one cluster alone"]] * 2 + [[]]


def test_whoever_may_sign_without_a_key_still_may():
    keyless = "verify: {provider: cosign, trustedRootSecretRef: {name: root}, matchOIDCIdentity: [{issuer: ^https://id.example.com$, subject: team/shop}]}\n  url: oci"
    assert spec_of(read(CHARTS.replace("url: oci", keyless), RELEASE))["source"]["chart"]["verify"] == {
        "matchOIDCIdentity": [{"issuer": "^https://id.example.com$", "subject": ".*(?:team/shop).*"}],
        "trustedRootSecretRef": {"name": "root"},
    }
    [unit] = read(
        CHARTS.replace("url: oci", keyless.replace("trustedRootSecretRef: {name: root}, ", "")), RELEASE
    ).units
    assert [each.place for each in unit.findings_of(Fate.NOT_POSSIBLE)] == ["spec.verify"]


def test_a_release_beside_a_kustomization_of_its_name_gets_another_name():
    names = [
        each["metadata"]["name"]
        for each in read(
            SOURCE, KUSTOMIZATION, CLUSTER, CHARTS, RELEASE.replace("name: web, names", "name: shop, names")
        ).syncs
    ]
    assert names == ["shop", "shop-release"]


def test_what_a_source_cant_do_stops_who_follows_it():
    [unit] = read(SOURCE.replace("interval: 5m", "recurseSubmodules: true"), KUSTOMIZATION, CLUSTER).units
    assert not unit.is_translated
    assert [each.place for each in unit.findings_of(Fate.NOT_POSSIBLE)] == ["GitRepository: spec.recurseSubmodules"]


def test_a_unit_for_another_cluster_is_told_apart():
    imported = read(SOURCE, KUSTOMIZATION.replace("prune: true", "kubeConfig: {secretRef: {name: there}}"), CLUSTER)
    assert [each.is_elsewhere for each in imported.units] == [True]
    assert imported.here == ()
    assert imported.syncs == ()


FOLDERS = {
    "the folder has a kustomization": ({"apps/shop", "apps/shop/web"}, False),
    "folders below it have one, and it hasn't": ({"apps/shop/web"}, True),
    "none has one": (set(), False),
    "only others have one": ({"apps/shopping"}, False),
}


@pytest.mark.parametrize(("overlays", "is_told"), FOLDERS.values(), ids=FOLDERS)
def test_a_kustomization_that_flux_would_have_made_up_is_asked_for(overlays, is_told):
    objects = [Placed(each) for text in (SOURCE, KUSTOMIZATION, CLUSTER) for each in yaml.safe_load_all(text)]
    [unit] = translate(objects, overlays=overlays).units
    assert ["spec.path"] * is_told == [each.place for each in unit.findings_of(Fate.APPROXIMATED)]


def test_what_drift_is_ignored_in_is_never_written_for_a_kustomization_and_may_be_upgraded_for_a_release():
    rules = "[{paths: [/spec/template/spec/containers/0/image], target: {kind: Deployment}}]"
    spec = spec_of(read(SOURCE, KUSTOMIZATION.replace("prune: true", f"ignore: {rules}"), CLUSTER))
    assert spec["ignore"] == [{"path": "/spec/template/spec/containers/*/image", "target": {"kind": "Deployment"}}]
    [unit] = read(
        SOURCE,
        KUSTOMIZATION.replace("prune: true", f"ignore: {rules.replace('kind: Deployment', 'name: web-.*')}"),
        CLUSTER,
    ).units
    assert [each.place for each in unit.findings_of(Fate.NOT_POSSIBLE)] == ["spec.ignore[].target.name"]


REPOSITORY = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: flux-system}
spec: {url: "https://charts.example.com/"}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: {name: apps-web, namespace: flux-system}
spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: charts}}
status: {artifact: {revision: 1.4.0, digest: "sha256:%s"}}
""" % ("b" * 64)
RANGED = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: apps}
spec: {chart: {spec: {chart: web, version: 1.x, sourceRef: {kind: HelmRepository, name: charts, namespace: flux-system}}}}
status: {helmChart: flux-system/apps-web, history: [{chartVersion: 1.4.0}]}
"""


def test_a_release_has_the_digest_of_the_chart_that_flux_has_made_for_it():
    chart = spec_of(read(REPOSITORY, RANGED))["source"]["chart"]
    assert chart == {
        "repository": "https://charts.example.com",
        "name": "web",
        "version": "1.4.0",
        "digest": f"sha256:{'b' * 64}",
    }
    older = read(REPOSITORY.replace("revision: 1.4.0", "revision: 1.5.0"), RANGED)
    assert spec_of(older)["source"]["chart"] == {name: text for name, text in chart.items() if name != "digest"}


def test_a_range_of_charts_is_the_version_that_runs():
    ranged = CHARTS.replace("tag: 1.2.3", "semver: 1.x")
    assert spec_of(read(ranged, RELEASE))["source"]["chart"]["version"] == "1.2.3"
    [unit] = read(ranged.partition("status:")[0], RELEASE).units
    assert not unit.is_translated


def test_a_patch_of_a_release_is_no_unit():
    imported = read(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: x, namespace: y}\nspec: {values: {a: 1}}"
    )
    assert imported.units == ()
    assert len(imported.others) == 1


def test_variables_of_a_secret_that_nobody_has_read_are_not_possible():
    [unit] = read(
        SOURCE,
        KUSTOMIZATION.replace("{kind: Secret, name: gone, optional: true}", "{kind: Secret, name: gone}"),
        CLUSTER,
    ).units
    assert [each.place for each in unit.findings_of(Fate.NOT_POSSIBLE)] == ["spec.postBuild.substituteFrom"]


def test_credentials_are_carried_by_a_command_and_never_seen():
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "fleet-git", "namespace": "flux-system", "annotations": {"last": "hunter2"}},
        "data": {"password": "aHVudGVyMg=="},
    }
    imported = translate(
        [
            Placed(without_values(secret)),
            *map(Placed, (yaml.safe_load(SOURCE), yaml.safe_load(KUSTOMIZATION), yaml.safe_load(CLUSTER))),
        ]
    )
    [step] = credential_steps(imported.units)
    assert step.command == (
        "kubectl get secret fleet-git -n flux-system -o json | jq '{apiVersion, kind, type, data, metadata: "
        '{"name": "fleet-git", "namespace": "apps", "annotations": {"reconcile.dev/urls": "https://git.example.com/team/fleet.git"}}}\' | kubectl apply -f -'
    )
    assert not any(each in json.dumps([imported.syncs, step]) for each in ("hunter2", "aHVudGVyMg=="))


def test_a_secret_beside_the_unit_only_says_what_it_is_for():
    beside = KUSTOMIZATION.replace("namespace: apps", "namespace: flux-system")
    imported = read(SOURCE, beside, CLUSTER.replace("apps", "flux-system"))
    [step] = credential_steps(imported.units)
    assert (
        step.command
        == "kubectl annotate secret fleet-git -n flux-system reconcile.dev/urls=https://git.example.com/team/fleet.git"
    )
    [right] = grant_steps(imported.units)
    assert right.command == "kubectl reconcile grant shop -n flux-system --apply"


def test_keys_for_encrypted_files_say_which_source_they_are_for():
    decrypts = KUSTOMIZATION.replace(
        "  wait: true", "  decryption: {provider: sops, secretRef: {name: sops-age}}\n  wait: true"
    )
    imported = read(SOURCE, decrypts, CLUSTER)
    assert spec_of(imported)["source"]["decryption"] == {"provider": "SOPS", "secretRef": {"name": "sops-age"}}
    assert "kubectl annotate secret sops-age -n apps reconcile.dev/urls=https://git.example.com/team/fleet.git" in [
        each.command for each in credential_steps(imported.units)
    ]


def test_long_names_of_releases_are_shortened_as_flux_does():
    assert short_release("a" * 53) == "a" * 53
    assert short_release("b" * 60) == f"{'b' * 40}-bbeb514bf12f"
