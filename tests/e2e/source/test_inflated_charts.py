"""Charts that an overlay inflates: rendered by us, and the same as kustomize has it that runs Helm."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest
import yaml

from kubectl_reconcile.core.objects import errors_among
from kubectl_reconcile.engine.commands.lock import lock
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.fetching import SyncFetching
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.policy import SourcePolicy
from tests.chart_server import index, serving
from tests.e2e.source.overlays import CONFIG, write
from tests.rendering_tools import packed

pytestmark = pytest.mark.usefixtures("renders")

WEB = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.2.3\n",
    "values.yaml": "size: 1\ncolor: red\nlist: [a, b]\nmore: {a: x, b: w}\n",
    "crds/crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\n"
    "spec: {group: example.com, scope: Namespaced, names: {kind: X, plural: xs}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n",
    "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-web, namespace: {{ .Release.Namespace }}}\n"
    "data: {size: '{{ .Values.size }}', color: '{{ .Values.color }}', list: '{{ .Values.list | toJson }}', more: '{{ .Values.more | toJson }}'}\n",
    "templates/b.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: web, annotations: {a: '0123'}}\nspec: {ports: [{port: 80}]}\n",
    "templates/hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n"
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n",
}


def chart(at, **more):
    return {f"{at}/{path}": text for path, text in {**WEB, **more}.items()}


def overlay(tmp_path, text, files):
    (tmp_path / "tree" / ".git").mkdir(parents=True, exist_ok=True)
    write(tmp_path / "tree", {"prod/kustomization.yaml": text, **files})
    return tmp_path / "tree" / "prod"


def fetching(tmp_path):
    return SyncFetching(tmp_path / "cache", SourcePolicy.of_person())


def read(folder, fetches=None):
    reader = ManifestReader(fetching=fetches)
    return reader, reader.read(WorktreeSource(folder))


def objects(desired):
    return sorted(
        (each.manifest for each in desired.manifests), key=lambda each: (each["kind"], each["metadata"]["name"])
    )


TEXTS = {
    "as it is": "helmCharts:\n- {name: web}\n",
    "a release in a namespace, with a prefix": "helmCharts:\n- {name: web, releaseName: shop, namespace: own}\nnamePrefix: p-\nnamespace: here\n",
    "in the overlay's namespace": "namespace: here\nhelmCharts:\n- {name: web, releaseName: shop}\nresources: [own.yaml]\n",
    "with its definitions": "helmCharts:\n- {name: web, includeCRDs: true}\n",
    "without its hooks": "helmCharts:\n- {name: web, skipHooks: true}\n",
    "with a file of values": "helmCharts:\n- {name: web, valuesFile: values.yaml}\n",
    "with several": "helmCharts:\n- {name: web, valuesFile: values.yaml, additionalValuesFiles: [more.yaml]}\n",
    "with inline values": "helmCharts:\n- name: web\n  valuesInline: {color: blue, more: {b: null, c: z}, list: [c]}\n",
    "with inline values over a file and below others": "helmCharts:\n- name: web\n  valuesFile: values.yaml\n  additionalValuesFiles: [more.yaml]\n  valuesInline: {color: blue, size: 9}\n",
    "with values that come first": "helmCharts:\n- name: web\n  valuesMerge: merge\n  valuesFile: values.yaml\n  valuesInline: {color: blue, more: {d: e}}\n",
    "with its own values over inline ones": "helmCharts:\n- name: web\n  valuesMerge: merge\n  valuesInline: {color: blue, more: {d: e}}\n",
    "with inline values instead of a file": "helmCharts:\n- name: web\n  valuesMerge: replace\n  valuesFile: values.yaml\n  valuesInline: {color: blue}\n",
    "twice, with a patch": "helmCharts:\n- {name: web, releaseName: a, skipHooks: true}\n- {name: other, releaseName: b}\n"
    "patches:\n- target: {kind: ConfigMap, name: a-web}\n  patch: |-\n    - {op: replace, path: /data/size, value: '7'}\n",
    "in another home": "helmGlobals: {chartHome: ours}\nhelmCharts:\n- {name: web}\n",
}  # fmt: skip
FILES = {
    **chart("prod/charts/web"), **chart("prod/ours/web"),
    "prod/charts/other/Chart.yaml": "apiVersion: v2\nname: other\nversion: 1.0.0\n", "prod/charts/other/values.yaml": "{}\n",
    "prod/charts/other/templates/a.yaml": CONFIG % "{{ .Release.Name }}-other",
    "prod/own.yaml": CONFIG % "own", "prod/values.yaml": "size: 2\nmore: {b: v}\n", "prod/more.yaml": "size: 3\n",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_chart_gives_what_kustomize_has_helm_make_of_it(tmp_path, binaries, helm, text):
    folder = overlay(tmp_path, text, FILES)
    command = [binaries.path("kubectl"), "kustomize", "--enable-helm", "--helm-command", str(helm), str(folder)]
    told = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "HOME": str(tmp_path)})
    assert told.returncode == 0, told.stderr.decode()
    _, desired = read(folder)
    assert errors_among(desired.problems) == ()
    theirs = [each for each in yaml.safe_load_all(told.stdout) if each]
    assert objects(desired) == sorted(theirs, key=lambda each: (each["kind"], each["metadata"]["name"]))


def test_a_chart_of_a_repository_is_fetched_by_the_lock_file(tmp_path):
    archive = packed(chart("web"))
    pages = {
        "/index.yaml": index(("1.2.3", hashlib.sha256(archive).hexdigest(), "web-1.2.3.tgz")),
        "/web-1.2.3.tgz": archive,
    }
    with serving(pages) as (url, asked):
        text = f"resources: [own.yaml]\nhelmCharts:\n- {{name: web, repo: '{url}', version: 1.2.3, releaseName: shop, skipHooks: true}}\nnamePrefix: p-\n"
        folder = overlay(tmp_path, text, {"prod/own.yaml": CONFIG % "own"})
        reader, desired = read(folder, fetching(tmp_path))
        [problem] = errors_among(desired.problems)
        assert (problem.path, problem.line, problem.hint) == (
            "prod/kustomization.yaml",
            3,
            "kubectl reconcile lock prod",
        )
        assert asked == []
        assert [pin.name for pin in lock(folder, fetching(tmp_path)).new] == ["web"]
        reader, desired = read(folder, fetching(tmp_path))
        assert desired.problems == ()
        assert [each["metadata"]["name"] for each in objects(desired)] == ["p-own", "p-shop-web", "p-web"]
        assert not any("fetched/" in path for path in reader.consulted())
        assert reader.read(WorktreeSource(folder)).is_same_as(desired)


def test_a_local_chart_needs_no_lock_file(tmp_path):
    folder = overlay(tmp_path, "helmCharts:\n- {name: web}\n", chart("prod/charts/web"))
    reader, desired = read(folder)
    assert (len(desired.manifests), desired.problems) == (3, ())
    assert "prod/charts/web/templates/a.yaml" in reader.consulted()
    done = lock(folder, fetching(tmp_path))
    assert (done.new, done.problems, (folder / "reconcile.lock.yaml").exists()) == ((), (), False)


WRONG = {
    "a chart that isn't there": ("helmCharts:\n- {name: none}\n", "prod/kustomization.yaml", 2, "has no Chart.yaml, and repo isn't given"),
    "random values": ("helmCharts:\n- {name: random}\n", "prod/kustomization.yaml", 2, "its objects are others at each rendering"),
    "a value that is required": ("helmCharts:\n- {name: needy}\n", "prod/charts/needy/templates/a.yaml", 3, "give a"),
    "a file of values that isn't there": ("helmCharts:\n- {name: web, valuesFile: none.yaml}\n", "prod/none.yaml", 0, "the values file isn't there"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "path", "line", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_inflated_is_a_problem_where_it_is(tmp_path, text, path, line, said):
    files = {
        **chart("prod/charts/web"),
        "prod/charts/random/Chart.yaml": "apiVersion: v2\nname: random\nversion: 1.0.0\n",
        "prod/charts/random/templates/a.yaml": CONFIG % "'{{ randAlphaNum 8 | lower }}'",
        "prod/charts/needy/Chart.yaml": "apiVersion: v2\nname: needy\nversion: 1.0.0\n",
        "prod/charts/needy/templates/a.yaml": CONFIG % '{{ required "give a" .Values.a }}',
    }
    _, desired = read(overlay(tmp_path, text, files))
    [problem] = errors_among(desired.problems)
    assert (problem.path, problem.line) == (path, line)
    assert said in problem.message
    assert desired.manifests == ()


def test_a_base_with_charts_in_two_namespaces_is_a_problem(tmp_path):
    files = {
        "base/kustomization.yaml": "helmCharts:\n- {name: web}\n", **chart("base/charts/web"),
        "a/kustomization.yaml": "namespace: a\nnamePrefix: a-\nresources: [../base]\n",
        "b/kustomization.yaml": "namespace: b\nnamePrefix: b-\nresources: [../base]\n",
    }  # fmt: skip
    _, desired = read(overlay(tmp_path, "resources: [../a, ../b]\n", files))
    assert [each.message for each in errors_among(desired.problems)] == [
        "its charts would be in two namespaces: give helmCharts a namespace"
    ]
    _, desired = read(overlay(tmp_path, "resources: [../a]\n", files))
    assert [each["metadata"]["namespace"] for each in objects(desired) if each["kind"] == "ConfigMap"] == ["a"]


def test_a_file_of_a_chart_that_changes_is_noticed(tmp_path):
    folder = overlay(tmp_path, "helmCharts:\n- {name: web}\n", chart("prod/charts/web"))
    reader, before = read(folder)
    write(tmp_path / "tree", {"prod/charts/web/values.yaml": "size: 2\ncolor: red\nlist: []\nmore: {}\n"})
    after = reader.read(WorktreeSource(folder))
    assert [each["data"]["size"] for each in objects(before) + objects(after) if each["kind"] == "ConfigMap"] == [
        "1",
        "2",
    ]
