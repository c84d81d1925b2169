"""Where each field of a real overlay comes from: traced by the real program, read in the files that it was rendered from."""

from __future__ import annotations

import re

import pytest

from kubectl_reconcile.core.rendering.origins import Origins
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.limits import GitLimits
from tests.e2e.source.overlays import BASE, CONFIG, WEB, write

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports:
  - port: 80
    name: http
"""
FILES = {
    "base/kustomization.yaml": "resources:\n- web.yaml\nconfigMapGenerator:\n- name: conf\n  literals: [a=1, b=2]\n",
    "base/web.yaml": SERVICE + "---\n" + WEB,
    "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches:\n- path: part.yaml\n",
    "part/part.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  revisionHistoryLimit: 2\n",
    "prod/kustomization.yaml": """\
namePrefix: p-
namespace: shop
resources:
- ../base
components:
- ../part
configMapGenerator:
- name: conf
  behavior: merge
  literals:
  - b=3
  files:
  - app.conf
patches:
- path: replicas.yaml
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/minReadySeconds, value: 3}
    - {op: replace, path: /spec/template/spec/containers/1/image, value: "side:2"}
images:
- name: web
  newTag: "7"
labels:
- pairs: {team: shop}
  includeTemplates: true
""",
    "prod/replicas.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  # busy\n  replicas: 7\n  template:\n"
    "    spec:\n      containers:\n      - name: web\n        env:\n        - name: B\n          value: b\n        envFrom:\n"
    "        - configMapRef:\n            name: conf\n",
    "prod/app.conf": "listen 80\n",
}  # fmt: skip


@pytest.fixture
def traced(renderer, folder):
    """traced(files, path) -> the origins of what an overlay renders to."""

    def run(files, path="prod"):
        write(folder, files)
        with WorktreeSource(folder / path).tree("") as tree:
            rendering = renderer.render(path, tree, GitLimits())
            found = renderer.trace(path, tree, GitLimits())
        assert found.rendering == rendering  # tracing changes nothing of it
        return Origins(found)

    return run


def told(origins, kind):
    """Return the origins of all fields of the one object of a kind, by path."""
    number = next(at for at, each in enumerate(origins.traces.objects) if each.first.kind == kind)
    fields = origins.traces.objects[number].fields
    return {".".join(map(str, each.at)): str(origins.of(number, each.at)) for each in fields}


CONTAINER = "spec.template.spec.containers"
ORIGINS = {
    "apiVersion": "base/web.yaml:10",
    "metadata.name": "prod/kustomization.yaml:1 (namePrefix), base: base/web.yaml:12",
    "metadata.namespace": "prod/kustomization.yaml:2 (namespace)",
    "metadata.labels.team": "prod/kustomization.yaml:24 (labels)",
    "spec.replicas": "prod/replicas.yaml:7 (patch), base: base/web.yaml:14",
    "spec.revisionHistoryLimit": "part/part.yaml:5 (patch)",
    "spec.minReadySeconds": "prod/kustomization.yaml:18 (patch)",
    "spec.selector.matchLabels.app": "base/web.yaml:15",
    "spec.template.metadata.labels.team": "prod/kustomization.yaml:24 (labels)",
    f"{CONTAINER}.0.image": "prod/kustomization.yaml:22 (images), base: base/web.yaml:20",
    f"{CONTAINER}.0.env.0.value": "prod/replicas.yaml:14 (patch)",
    f"{CONTAINER}.0.env.1.value": "base/web.yaml:20",
    f"{CONTAINER}.0.envFrom.0.configMapRef.name": "prod/replicas.yaml:17 (patch)",
    f"{CONTAINER}.1.image": "prod/kustomization.yaml:19 (patch), base: base/web.yaml:21",
    f"{CONTAINER}.1.name": "base/web.yaml:21",
}


def test_each_field_of_an_overlay_knows_its_line(traced):
    origins = traced(FILES)
    found = told(origins, "Deployment")
    assert {path: found.get(path) for path in ORIGINS} == ORIGINS
    conf = told(origins, "ConfigMap")
    assert conf["data.a"] == "base/kustomization.yaml:5 (configMapGenerator)"
    assert (
        conf["data.b"]
        == "prod/kustomization.yaml:11 (configMapGenerator), base: base/kustomization.yaml:5 (configMapGenerator)"
    )
    assert conf["data.app.conf"] == "prod/app.conf:1 (configMapGenerator)"
    assert told(origins, "Service")["spec.ports.0.port"] == "base/web.yaml:7"
    objects = {
        re.sub(r"\W.*", "", str(each.first)): str(origins.of_object(at))
        for at, each in enumerate(origins.traces.objects)
    }
    assert objects == {
        "ConfigMap": "base/kustomization.yaml:4 (configMapGenerator)",
        "Deployment": "base/web.yaml:10",
        "Service": "base/web.yaml:1",
    }


def test_a_json_patch_loses_nothing_of_what_was_known_before(traced):
    files = {**BASE, "prod/kustomization.yaml": "resources: [../base]\npatches:\n- target: {kind: Deployment}\n"
             "  patch: '[{\"op\": \"remove\", \"path\": \"/spec/selector\"}]'\n"}  # fmt: skip
    found = told(traced(files), "Deployment")
    assert {place.partition(":")[0] for place in found.values()} == {"base/web.yaml"}
    assert found["spec.replicas"] == "base/web.yaml:5"


def test_an_object_that_a_patch_deletes_takes_no_others_origins_away(traced):
    patch = "patches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: shop}, $patch: delete}'\nnamePrefix: p-\n"
    origins = traced({**BASE, "prod/kustomization.yaml": f"resources: [../base]\n{patch}"})
    assert [each.first.kind for each in origins.traces.objects] == ["Deployment"]
    assert told(origins, "Deployment")["spec.replicas"] == "base/web.yaml:5"


def test_a_base_that_is_there_twice_has_lines_for_each(traced):
    twice = {f"{name}/kustomization.yaml": f"namePrefix: {name}-\nresources: [../base]\n" for name in "ab"}
    patch = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b-shop}\ndata: {a: other}\n"
    files = {
        **BASE,
        **twice,
        "prod/kustomization.yaml": "resources: [../a, ../b]\npatches: [{path: p.yaml}]\n",
        "prod/p.yaml": patch,
    }
    origins = traced(files)
    values = [
        str(origins.of(at, ("data", "a")))
        for at, each in enumerate(origins.traces.objects) if each.first.kind == "ConfigMap"
    ]  # fmt: skip
    assert values == ["base/config.yaml:4", "prod/p.yaml:4 (patch), base: base/config.yaml:4"]


def test_what_cannot_be_rendered_has_no_origins(renderer, folder):
    write(folder, {"prod/kustomization.yaml": "resources: [gone.yaml]\n", "own/kustomization.yaml": "resources: [a.yaml]\n",
                   "own/a.yaml": CONFIG % "a"})  # fmt: skip
    with WorktreeSource(folder / "prod").tree("") as tree:
        assert renderer.trace("prod", tree, GitLimits()).objects == ()
        assert [each.first.name for each in renderer.trace("own", tree, GitLimits()).objects] == ["a"]
    assert renderer.rendered == 0


def test_objects_of_components_and_of_generators_know_their_files(traced):
    files = {
        **BASE,
        "mid/kustomization.yaml": "resources: [../base]\nconfigMapGenerator: [{name: shop, behavior: merge, literals: [q=1]}]\n",
        "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [own.yaml]\n"
        "secretGenerator: [{name: key, literals: [a=1]}]\ngenerators: [plugin.yaml]\n",
        "part/own.yaml": CONFIG % "own",
        "part/plugin.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: plug}\nliterals: [x=y]\n",
        "prod/kustomization.yaml": "resources: [../mid]\ncomponents: [../part]\n",
    }
    origins = traced(files)
    places = {each.first.name: str(origins.of_object(at)) for at, each in enumerate(origins.traces.objects)}
    assert places == {
        "web": "base/web.yaml:1",
        "shop": "base/config.yaml:1",
        "own": "part/own.yaml:1",
        "key": "part/kustomization.yaml:4 (secretGenerator)",
        "plug": "part/plugin.yaml:1 (generator)",
    }
    number = next(at for at, each in enumerate(origins.traces.objects) if each.first.name == "shop")
    assert str(origins.of(number, ("data", "a"))) == "base/config.yaml:4"
    assert str(origins.of(number, ("data", "q"))) == "mid/kustomization.yaml:2 (configMapGenerator)"
