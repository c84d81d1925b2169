"""The lists of what happens to fields, held against the published CRDs, and against what the translation does with each."""

from pathlib import Path

import pytest

from kubectl_reconcile.core.importing import argocd, argocd_fields, flux, flux_fields
from kubectl_reconcile.core.importing.fields import Fate, KindTable, approximated, not_possible, translated
from kubectl_reconcile.core.importing.tools import Gathered, Tool
from kubectl_reconcile.core.importing.tools import imported as imported_by
from kubectl_reconcile.core.importing.units import Placed

FOLDER = Path(__file__).parent / "fields"
TABLES = {f"{table.kind}.{table.group}": table for table in (*flux_fields.TABLES, *argocd_fields.TABLES)}


def published():
    """Return the fields of each kind, as its CRD has them."""
    found = {}
    for file in sorted(FOLDER.glob("*.txt")):
        for line in file.read_text().splitlines():
            if line.startswith("#"):
                kind = line.split()[1]
                found[kind] = []
            elif line:
                found[kind].append(line)
    return {kind: fields for kind, fields in found.items() if fields}


PUBLISHED = published()
FIELDS = [(kind, place) for kind, places in PUBLISHED.items() for place in places]


def test_each_kind_that_is_read_has_a_published_crd_and_the_other_way_round():
    assert TABLES.keys() == PUBLISHED.keys()


@pytest.mark.parametrize(("kind", "places"), PUBLISHED.items(), ids=PUBLISHED)
def test_each_field_of_a_crd_is_in_a_list(kind, places):
    assert [place for place in places if TABLES[kind].row(place) is None] == []


@pytest.mark.parametrize(("kind", "table"), TABLES.items(), ids=TABLES)
def test_each_row_is_about_fields_of_the_crd_and_is_there_once(kind, table):
    places = [row.place for row in table.rows]
    nowhere = [
        place
        for place in places
        if not any(each == place or each.startswith((f"{place}.", f"{place}[]")) for each in PUBLISHED[kind])
    ]
    assert nowhere == []
    assert len(set(places)) == len(places)
    assert all(row.here for row in table.rows)


# --- what an object says ------------------------------------------------------------------------------------------------

TABLE = KindTable(
    "example.com",
    "Thing",
    (
        translated("spec.a", "the same"),
        approximated("spec.b", "close", "usual"),
        not_possible("spec.list[].c", "no"),
        not_possible("spec.below", "no"),
    ),
)
SAID = {
    "what is translated needs no word": ({"a": 1}, []),
    "what is approximated is said": ({"b": "rare"}, [("spec.b", Fate.APPROXIMATED)]),
    "a value that is the default anyway isn't": ({"b": "usual"}, []),
    "nor is what is empty": ({"below": {}, "b": False}, []),
    "what isn't possible is said once for a list": ({"list": [{"c": 1}, {"c": 2}]}, [("spec.list[].c", Fate.NOT_POSSIBLE)]),
    "a row is about all below it": ({"below": {"x": {"y": 1}}}, [("spec.below", Fate.NOT_POSSIBLE)]),
    "what no row has is unknown": ({"new": {"x": 1}}, [("spec.new.x", Fate.UNKNOWN)]),
    "also in a list": ({"list": [{"d": "x"}]}, [("spec.list[].d", Fate.UNKNOWN)]),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "expected"), SAID.values(), ids=SAID)
def test_what_is_said_of_an_object(spec, expected):
    manifest = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "x"},
        "spec": spec,
        "status": {"z": 1},
    }
    assert [(each.place, each.fate) for each in TABLE.findings(manifest)] == expected


# --- each list is true --------------------------------------------------------------------------------------------------

_GIT = {"url": "https://git.example.com/shop.git"}
_CHARTS = {"url": "https://charts.example.com"}
_OCI = {"url": "oci://registry.example.com/charts/web", "ref": {"tag": "1.2.3"}}
_HERE = {"server": "https://kubernetes.default.svc", "namespace": "shop"}
_CHART = {"chart": "web", "version": "1.2.3", "sourceRef": {"kind": "HelmRepository", "name": "src"}}
_PATCH = {"patch": "- op: remove\n  path: /spec/replicas", "target": {"kind": "Deployment"}}


def thing(kind, spec, name="src"):
    """Return an object of Flux or Argo CD."""
    group = kind.partition(".")[2]
    metadata = {"name": name, "namespace": "apps"}
    return {"apiVersion": f"{group}/v1", "kind": kind.partition(".")[0], "metadata": metadata, "spec": spec}


def put(tree, place, value):
    """Return a copy of a tree with a value at a place; lists get one entry."""
    head, _, below = place.partition(".")
    inner = value if not below else None
    if head.endswith("[]"):
        name = head[:-2]
        first = (tree.get(name) or [{}])[0]
        return {**tree, name: [inner if not below else put(first, below, value)]}
    return {**tree, head: inner if not below else put(tree.get(head) or {}, below, value)}


def unit_of(kind, manifest):
    """Return what a unit becomes that *manifest* is, or that follows it."""
    short, group = kind.partition(".")[::2]
    if group == "argoproj.io":
        beside = (
            []
            if short == "Application"
            else [
                thing(
                    "Application.argoproj.io",
                    {"project": "src", "source": {"repoURL": _GIT["url"]}, "destination": _HERE},
                    "app",
                )
            ]
        )
        imported = argocd.translate([Placed(each) for each in (manifest, *beside)])
    else:
        imported = flux.translate([Placed(each) for each in (manifest, *_beside(short))])
    return imported


def _beside(short):
    """Return the objects that are needed for one of a kind to count."""
    source, kustomize, helm = (f".{name}.toolkit.fluxcd.io" for name in ("source", "kustomize", "helm"))
    release = f"HelmRelease{helm}"
    registry = thing(f"HelmRepository{source}", {"url": "oci://registry.example.com/charts", "type": "oci"}, "registry")
    values = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "apps"},
        "data": {"KEY": "1"},
    }
    return {
        "GitRepository": [thing(f"Kustomization{kustomize}", {"sourceRef": {"kind": "GitRepository", "name": "src"}}, "unit")],
        "OCIRepository": [
            thing(f"Kustomization{kustomize}", {"sourceRef": {"kind": "OCIRepository", "name": "src"}}, "unit"),
            thing(release, {"chartRef": {"kind": "OCIRepository", "name": "src"}}, "web"),
        ],
        "HelmRepository": [thing(release, {"chart": {"spec": _CHART}}, "web")],
        "HelmChart": [thing(f"HelmRepository{source}", _CHARTS), registry, thing(release, {"chartRef": {"kind": "HelmChart", "name": "src"}}, "web")],
        "Kustomization": [thing(f"GitRepository{source}", _GIT), thing(f"GitRepository{source}", {"url": "https://git.example.com/other"}, "x"), values],
        "HelmRelease": [thing(f"HelmRepository{source}", _CHARTS), registry, thing(f"OCIRepository{source}", _OCI), thing(f"HelmChart{source}", _CHART)],
    }[short]  # fmt: skip


BASES = {
    "GitRepository.source.toolkit.fluxcd.io": _GIT,
    "OCIRepository.source.toolkit.fluxcd.io": _OCI,
    "HelmRepository.source.toolkit.fluxcd.io": _CHARTS,
    "HelmChart.source.toolkit.fluxcd.io": _CHART,
    "Kustomization.kustomize.toolkit.fluxcd.io": {"sourceRef": {"kind": "GitRepository", "name": "src"}},
    "HelmRelease.helm.toolkit.fluxcd.io": {"chart": {"spec": _CHART}},
    "Application.argoproj.io": {"source": {"repoURL": _GIT["url"], "path": "apps"}, "destination": _HERE},
    "AppProject.argoproj.io": {},
}
VALUES = {
    "version": "v2", "semver": "1.x", "digest": f"sha256:{'0' * 64}", "commit": "0" * 40, "ref.name": "refs/heads/x", "labels": {"a": "b"}, "annotations": {"a": "b"},
    "commonLabels": {"a": "b"}, "values": {"a": 1}, "helm.values": "a: 1", "valuesObject": {"a": 1}, "substitute": {"A": "b"}, "patch": "- op: remove\n  path: /spec/paused", "deletionPolicy": "Delete",
    "prune": True, "provider": "x", "mode": "Tag", "driftDetection.mode": "enabled", "paths": ["/spec/x"], "jsonPointers": ["/spec/x"], "jqPathExpressions": [".spec.x"], "managedFieldsManagers": ["x"],
    "components": ["../x"], "images": ["x:1"], "replicas[].count": 3, "apiVersions": ["apps/v1"], "kubeVersion": "1.30", "valueFiles": ["x.yaml"], "valuesFiles": ["x.yaml"], "syncOptions": ["CreateNamespace=true"],
    "interval": "9m", "timeout": "9m", "crds": "Create", "enabled": False, "current": "status.x == 9", "failed": "status.x == 2", "inProgress": "status.x == 3", "releaseName": "y",
    "options": {"allowNameChange": True}, "sources": [{"repoURL": "https://git.example.com/x"}], "ignore": "x", "value": "1", "chart.spec.version": "2.0.0", "chart": "y",
    "targetRevision": "x", "kustomize.namespace": "shop", "sourceRef.kind": "Bucket", "chartRef.kind": "HelmChart", "images[].name": "y", "sourceRef.name": "x", "suspend": True, "include": "*.yaml", "exclude": "x", "ref": "values", "parameters[].name": "a", "manager": "x",
    "automated.selfHeal": True, "automated.prune": True, "wait": True, "force": True, "optional": True, "disableWait": True, "createNamespace": True, "skipCRDs": True, "skipCrds": True, "ignoreMissingValuesFiles": True, "ignoreMissingValueFiles": True,
    "labelWithoutSelector": True, "apiVersion": "apps/v1", "literal": True, "replicas[].name": "web", "postBuild.substituteFrom[].kind": "Secret", "postBuild.substituteFrom[].name": "z", "valuesFrom[].kind": "Secret", "destination.server": "https://x.example.com", "chartRef.namespace": "other", "sourceRef.namespace": "other",
}  # fmt: skip
"""A value that asks for something, by the end of the place of a field."""
BESIDE = {
    "spec.dependsOn[]": {"name": "other"}, "spec.healthCheckExprs[]": {"apiVersion": "example.com/v1", "kind": "X", "current": "status.x == 1"},
    "spec.patches[]": _PATCH, "spec.images[]": {"name": "x", "newTag": "1"}, "spec.valuesFrom[]": {"kind": "ConfigMap", "name": "v"}, "spec.postBuild.substituteFrom[]": {"kind": "ConfigMap", "name": "x"},
    "spec.postRenderers[].kustomize.patches[]": _PATCH, "spec.postRenderers[].kustomize.images[]": {"name": "x", "newTag": "1"}, "spec.ignore[]": {"paths": ["/spec/y"]}, "spec.driftDetection.ignore[]": {"paths": ["/spec/y"]},
    "spec.verify": {"secretRef": {"name": "keys"}}, "spec.chart.spec.verify": {"provider": "cosign", "secretRef": {"name": "keys"}}, "spec.chartRef": {"kind": "OCIRepository", "name": "src"},
    "spec.source.kustomize.patches[]": _PATCH, "spec.source.kustomize.replicas[]": {"name": "x", "count": 2}, "spec.source.helm.parameters[]": {"name": "b", "value": "2"}, "spec.source.chart": "web", "spec.ignoreDifferences[]": {"kind": "Deployment", "jsonPointers": ["/spec/y"]},
    "spec.sourceHydrator": {"drySource": {"repoURL": "https://git.example.com/x"}, "syncSource": {"targetBranch": "env"}}, "spec.source.kustomize.commonLabels": {"c": "d"}, "spec.sources[]": {"repoURL": "https://git.example.com/y", "path": "y"},
    "spec.ref": {"tag": "1.2.3"}, "spec.layerSelector": {"mediaType": "application/x"}, "spec.syncPolicy.automated": {"allowEmpty": False},
}  # fmt: skip
"""What must be beside a field for it to mean anything."""


def value_for(place):
    """Return a value for a field that asks for something."""
    return next(
        (VALUES[each] for each in sorted(VALUES, key=len, reverse=True) if f".{place}".endswith(f".{each}")), "x"
    )


def base_of(kind, place):
    """Return a spec in which a field would mean something, without it."""
    tree = {"spec": BASES[kind]}
    parts = place.split(".")
    for end in range(1, len(parts) + 1):
        above = ".".join(parts[:end])
        if above in BESIDE and above != place:
            tree = put(tree, above, BESIDE[above])
    if place == "spec.ref.branch":
        tree = {"spec": BASES[kind]}
    if kind.startswith("OCIRepository") and ("OIDC" in place or "trustedRoot" in place):
        identities = [{"issuer": "a", "subject": "b"}]
        tree = put(
            {"spec": BASES[kind]},
            "spec.verify",
            {"trustedRootSecretRef": {"name": "root"}, "matchOIDCIdentity": identities},
        )
    if place.endswith("substituteFrom[].optional"):
        tree = put(tree, "spec.postBuild.substituteFrom[].name", "gone")
    if place.endswith("sources[].ref"):
        tree = put(tree, "spec.sources", [{"repoURL": "https://git.example.com/y"}])
    if ".verify." in place and kind.startswith("Helm"):
        tree = put(tree, f"{place.partition('.verify')[0]}.sourceRef.name", "registry")
    if ".kustomize.labelWithoutSelector" in place:
        tree = put(tree, place.replace("labelWithoutSelector", "commonLabels"), {"c": "d"})
    if ".helm." in place and ".parameters" not in place and kind.startswith("Application"):
        tree = put(tree, f"{place.partition('.helm.')[0]}.helm.releaseName", "rel")
    return tree["spec"]


SILENT = ("nothing is needed", "part of the name", "see `commonLabels`")


@pytest.mark.parametrize(("kind", "place"), FIELDS, ids=[f"{kind.partition('.')[0]} {place}" for kind, place in FIELDS])
def test_a_field_changes_the_sync_or_is_spoken_of_as_its_list_says(kind, place):
    row = TABLES[kind].row(place)
    without = thing(kind, base_of(kind, place))
    full = {**without, **put({"spec": without["spec"]}, place, value_for(place))}
    before, after = (unit_of(kind, each) for each in (without, full))
    said = [finding for each in (*after.units, *after.others) for finding in each.findings]
    if row.fate is not Fate.TRANSLATED:
        assert any(each.fate is row.fate and each.text == row.here for each in said)
        assert (
            row.fate is Fate.APPROXIMATED
            or kind.startswith("AppProject")
            or not all(each.is_translated for each in after.units)
        )
    elif not row.here.startswith(SILENT):
        assert (before.syncs, before.units) != (after.syncs, after.units), f"{place} is {row.here}"
    assert not [each for each in said if each.fate is Fate.UNKNOWN]


# --- objects that nobody means ------------------------------------------------------------------------------------------

ODD = (
    None,
    True,
    3,
    2.5,
    "",
    "x",
    "a/b:c@d",
    "${X}",
    [],
    ["x"],
    [3],
    [{}],
    [[]],
    [None],
    {},
    {"x": None},
    {"name": []},
    {"x": ["y"]},
    {"name": {"x": 1}, "kind": 3},
)


def above(kind):
    """Return all fields of a kind, with those that have fields below them."""
    found = {}
    for place in PUBLISHED[kind]:
        parts = place.split(".")
        found |= dict.fromkeys(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        found |= dict.fromkeys(".".join(parts[:end]).removesuffix("[]") for end in range(1, len(parts) + 1))
    return list(found)


@pytest.mark.parametrize("kind", PUBLISHED)
def test_odd_values_anywhere_raise_nothing(kind):
    for place in above(kind):
        base = thing(kind, base_of(kind, place))
        for odd in ODD:
            try:
                full = {**base, **put({"spec": base["spec"]}, place, odd)}
            except (TypeError, AttributeError):
                continue  # what is beside it has no such place
            imported = unit_of(kind, full)
            assert all(each.findings or each.syncs for each in imported.units), (place, odd)


@pytest.mark.parametrize("odd", ODD, ids=map(repr, ODD))
@pytest.mark.parametrize("kind", PUBLISHED)
def test_odd_objects_are_taken_up_without_an_error(kind, odd):
    for field in ("spec", "metadata", "status", "kind", "apiVersion"):
        gathered = Gathered()
        gathered.add({**thing(kind, BASES[kind]), field: odd})
        gathered.add(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "x", "labels": odd},
                "data": odd,
                "stringData": odd,
            }
        )
        gathered.add({"apiVersion": "v1", "kind": "List", "items": odd})
        for tool in Tool:
            imported_by(tool, gathered)
