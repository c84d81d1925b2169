"""Charts that an overlay inflates: which, with what, and what stands in the overlay instead."""

import json

import pytest

from kubectl_reconcile.core.manifests import yaml_reader
from kubectl_reconcile.core.objects import Problem
from kubectl_reconcile.core.rendering.pinned.inflations import (
    Inflation,
    Values,
    inflated,
    inflations_of,
    namespace_of,
    with_resources,
)
from kubectl_reconcile.core.resources.chart import ChartSpec
from kubectl_reconcile.core.resources.helm import HelmSpec, Unstable

REPOSITORY = "https://charts.example.com"
SPEC = HelmSpec(release_name="release-name", skip_crds=True, unstable=Unstable.FAIL)


def inflations(entry, *more, above=""):
    problems: list[Problem] = []
    data = "\n".join(["helmCharts:", f"- {{{entry}}}", *more, ""]).encode()
    return [*inflations_of("prod/kustomization.yaml", data, above, problems)], problems


def inflation(entry, *more, above=""):
    [found], problems = inflations(entry, *more, above=above)
    assert problems == []
    return found


def test_a_chart_of_a_repository_is_wanted_in_the_version_that_is_given():
    found = inflation(f"name: web, repo: '{REPOSITORY}', version: 1.2.3")
    assert found == Inflation(
        "prod", 0, 2, ChartSpec(REPOSITORY, "web", "1.2.3"), "charts/web-1.2.3/web", SPEC, Values(), inherits=True
    )
    assert found.name == "web.yaml"


def test_a_chart_of_the_same_repository_is_below_the_folder_of_charts():
    assert inflation("name: web").home == "charts/web"
    found = inflation("name: web", "helmGlobals: {chartHome: ours}")
    assert (found.home, found.wanted) == ("ours/web", None)


def test_a_chart_is_rendered_with_what_the_entry_says():
    found = inflation(
        "name: web, releaseName: shop, namespace: prod, includeCRDs: true, kubeVersion: '1.34', skipHooks: true, skipTests: true, debug: true"
    )
    assert found.spec == HelmSpec(release_name="shop", namespace="prod", kube_version="1.34", unstable=Unstable.FAIL)
    assert (found.skips_hooks, found.inherits) == (True, False)


NAMESPACES = {
    "its own": ("name: web, namespace: own", ["namespace: here"], "above", "own", False),
    "that of the kustomization": ("name: web", ["namespace: here"], "above", "here", False),
    "that of one above": ("name: web", [], "above", "above", True),
    "none": ("name: web", [], "", "", True),
}


@pytest.mark.parametrize(("entry", "more", "above", "namespace", "inherits"), NAMESPACES.values(), ids=NAMESPACES)
def test_the_namespace_is_the_nearest_one(entry, more, above, namespace, inherits):
    found = inflation(entry, *more, above=above)
    assert (found.spec.namespace, found.inherits) == (namespace, inherits)


def test_what_is_below_a_kustomization_has_its_namespace_or_the_one_above():
    assert namespace_of(b"namespace: here\n", "above") == "here"
    assert namespace_of(b"resources: []\n", "above") == "above"
    assert namespace_of(b"[", "above") == "above"


VALUES = {
    "none": ("", ()),
    "a file": ("valuesFile: a.yaml", ("a.yaml",)),
    "several files": ("valuesFile: a.yaml, additionalValuesFiles: [b/../b.yaml, ./c.yaml]", ("a.yaml", "b.yaml", "c.yaml")),
    "inline": ("valuesInline: {a: 1}", ("",)),
    "inline over a file, and other files over that": ("valuesInline: {a: 1}, valuesFile: a.yaml, additionalValuesFiles: [b.yaml]", ("a.yaml", "", "b.yaml")),
    "a file over inline": ("valuesInline: {a: 1}, valuesFile: a.yaml, valuesMerge: merge", ("", "a.yaml")),
    "its own over inline": ("valuesInline: {a: 1}, valuesMerge: merge", ("", None)),
    "inline instead of a file": ("valuesInline: {a: 1}, valuesFile: a.yaml, valuesMerge: replace", ("",)),
}  # fmt: skip


@pytest.mark.parametrize(("more", "files"), VALUES.values(), ids=VALUES)
def test_values_come_in_the_order_of_kustomize(more, files):
    found = inflation(f"name: web, {more}" if more else "name: web").values
    assert found.files == files
    assert json.loads(found.inline) == ({"a": 1} if "Inline" in more else {})


def test_null_leaves_a_value_of_the_chart_as_it_is():
    """kustomize takes it out of a copy of the chart's own values, below which Helm has them still."""
    found = inflation("name: web, valuesInline: {a: null, b: {c: null, d: 1}}").values
    assert json.loads(found.inline) == {"b": {"d": 1}}
    found = inflation("name: web, valuesInline: {a: null}, valuesMerge: replace").values
    assert json.loads(found.inline) == {"a": None}


REFUSED = {
    "null over a file of values": ("name: web, valuesFile: a.yaml, valuesInline: {a: {b: null}}", "has null, which takes a value out of valuesFile"),
    "no name": ("repo: 'https://charts.example.com'", "helmCharts[0].name: is required"),
    "no version": (f"name: web, repo: '{REPOSITORY}'", "helmCharts[0].version: is required"),
    "a range of versions": (f"name: web, repo: '{REPOSITORY}', version: ^1.0.0", "isn't an exact version"),
    "a name that is a path": ("name: ../../web", "isn't in or below the folder of the kustomization"),
    "values of elsewhere": ("name: web, valuesFile: ../a.yaml", "isn't in or below"),
    "values of the web": ("name: web, valuesFile: 'https://files.example.com/a.yaml'", "isn't in or below"),
    "values of this machine": ("name: web, additionalValuesFiles: [/etc/passwd]", "isn't in or below"),
    "values that are no map": ("name: web, valuesInline: [1]", "isn't a map"),
    "another way to merge": ("name: web, valuesInline: {a: 1}, valuesMerge: deep", "isn't one of merge, override and replace"),
    "a template of names": ("name: web, nameTemplate: x", "isn't taken here: give releaseName"),
    "API versions": ("name: web, apiVersions: [a/v1]", "isn't taken here"),
    "a field that nobody knows": ("name: web, versions: 1", "did you mean version?"),
    "a release that is a flag": ("name: web, releaseName: --post-renderer", "helmCharts[0].releaseName"),
}  # fmt: skip


@pytest.mark.parametrize(("entry", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_inflated_is_a_problem_with_its_line(entry, said):
    found, [problem] = inflations(entry)
    assert (found, problem.path, problem.line) == ([], "prod/kustomization.yaml", 2)
    assert said in problem.message


@pytest.mark.parametrize("text", ["", "[", "helmCharts: x\n", "resources: []\n"])
def test_what_inflates_nothing_has_nothing(text):
    assert [*inflations_of("kustomization.yaml", text.encode(), "", [])] == []


# -- in its place ----------------------------------------------------------------------------------------------------------


def test_objects_are_marked_as_those_of_a_chart_and_hooks_left_out_where_that_is_asked_for():
    web = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: '0123', b: 'yes'}\n"
    hook = "kind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n"
    data = inflated([web, hook, "\n"], skips_hooks=True)
    [document], problems = yaml_reader.read(data, "x.yaml")
    assert problems == ()
    assert document.tree == {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "0123", "b": "yes"},
        "metadata": {"name": "web", "annotations": {"internal.config.kubernetes.io/helm-generated": "true"}},
    }  # fmt: skip
    assert inflated([web, hook], skips_hooks=False).count(b"---") == 2
    assert inflated([], skips_hooks=False) == b""


TEXT = b"""\
# what is applied
helmGlobals: {chartHome: ours}
helmCharts:
- name: web
  valuesInline: {a: 1}
namePrefix: prod-
resources:
- a.yaml  # ours
"""


def test_files_of_resources_stand_in_place_of_the_charts():
    found = with_resources("kustomization.yaml", TEXT, ["./fetched/web.yaml"])
    assert found == b"# what is applied\nnamePrefix: prod-\nresources:\n- a.yaml  # ours\n- ./fetched/web.yaml\n"


def test_resources_are_added_where_there_are_none():
    for text in (b"helmCharts: [{name: web}]\n", b"helmCharts: [{name: web}]\nresources: []\n"):
        [document], _ = yaml_reader.read(with_resources("kustomization.yaml", text, ["./a.yaml", "./b.yaml"]), "x.yaml")
        assert document.tree == {"resources": ["./a.yaml", "./b.yaml"]}
