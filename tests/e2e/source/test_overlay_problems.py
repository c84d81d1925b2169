"""Where what is wrong with an overlay is said to be: at the entry of the kustomization that has it, in whatever base that is."""

from __future__ import annotations

import pytest

from tests.e2e.source.overlays import BASE, CONFIG, SECRET

FILES = {
    **BASE,
    "here/none.yaml": CONFIG % "none",
    "here/patcher.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\ntarget: {kind: None}\n"
    'patch: \'[{"op": "remove", "path": "/a"}]\'\n',
    "here/kinds.yaml": "nameReference:\n- kind: None\n  fieldSpecs: [{kind: Neither, path: a/b}]\n",
    "here/more.yaml": "- source: {kind: ConfigMap, name: shop, fieldPath: data.a}\n  targets:\n"
    "  - {select: {kind: Deployment}, fieldPaths: [metadata.labels.a], options: {create: true}}\n"
    "  - {select: {kind: Deployment}, reject: [{name: web}], fieldPaths: [metadata.labels.a]}\n",
}
REPLACES = "replacements:\n- source: {kind: ConfigMap, name: shop, fieldPath: data.a}\n  targets:\n"

SILENT = {
    "a patch by its target": (
        ("patches:\n- target: {kind: Deployment}\n  patch: '[{\"op\": \"remove\", \"path\": \"/spec/replicas\"}]'\n"
        "- target: {kind: Deployment, name: none}\n  path: none.yaml\n"),
        5, "no object is kind=Deployment name=none",
    ),
    "a patch by labels": (
        "patches: [{target: {labelSelector: a=b}, path: none.yaml}]\n", 2, "no object is labelSelector=a=b",
    ),
    "a JSON patch of the older form": (
        "patchesJson6902:\n- target: {version: v1, kind: Pod, name: a}\n  patch: '[{\"op\": \"remove\", \"path\": \"/a\"}]'\n",
        3, "no object is kind=Pod name=a version=v1",
    ),
    "an image": ("images:\n- {name: web, newTag: '2'}\n- {name: we, newTag: '3'}\n", 4, "no container has an image we"),
    "the target of a replacement": (
        REPLACES + "  - {select: {kind: Deployment}, fieldPaths: [metadata.labels.a], options: {create: true}}\n"
        "  - {select: {kind: Service}, fieldPaths: [a]}\n",
        6, "no object is kind=Service",
    ),
    "a target of which all is rejected": (
        REPLACES + "  - {select: {kind: Deployment}, reject: [{name: web}], fieldPaths: [a]}\n",
        5, "no object is kind=Deployment that isn't rejected",
    ),
    "configurations for kinds that aren't there": ("configurations:\n- kinds.yaml\n", 3, "kinds.yaml configures nothing"),
}  # fmt: skip


@pytest.mark.parametrize("at", ["prod", "here"])
@pytest.mark.parametrize(("text", "line", "said"), SILENT.values(), ids=SILENT)
def test_what_is_for_nothing_that_is_there_is_a_warning_at_its_entry(render, at, text, line, said):
    """kustomize says nothing; *at* is the overlay itself, or a base of it."""
    here = {name.replace("here/", f"{at}/"): content for name, content in FILES.items()}
    overlay = {"prod/kustomization.yaml": "namePrefix: p-\nresources: [../here]\n"}
    found = render({**overlay, **here, f"{at}/kustomization.yaml": f"resources: [../base]\n{text}"})
    [problem] = [each for each in found.problems if "deprecated" not in each.message]
    assert (problem.path, problem.line, problem.is_error) == (f"{at}/kustomization.yaml", line, False)
    assert said in problem.message
    assert len(found.manifests) == 2
    assert found.revision.unrendered == ()


def test_what_is_in_a_file_of_its_own_is_told_there(render):
    found = render({**FILES, "here/kustomization.yaml": "resources: [../base]\ntransformers: [patcher.yaml]\n"}, "here")
    assert [(each.path, each.line) for each in found.problems] == [("here/patcher.yaml", 1)]
    found = render({"here/kustomization.yaml": "resources: [../base]\nreplacements: [{path: more.yaml}]\n"}, "here")
    assert [(each.path, each.line) for each in found.problems] == [("here/more.yaml", 4)]


def test_what_matches_in_one_of_the_places_that_use_it_is_no_warning(render):
    patch = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nimages: [{name: web, newTag: '2'}]\n"
    files = {
        **FILES,
        "part/kustomization.yaml": patch,
        "a/kustomization.yaml": "resources: [../base]\ncomponents: [../part]\nnamePrefix: a-\n",
        "b/kustomization.yaml": "resources: [none.yaml]\ncomponents: [../part]\n",
        "b/none.yaml": CONFIG % "none",
        "prod/kustomization.yaml": "resources: [../a, ../b]\n",
    }
    assert render(files).problems == ()
    [problem] = render(files, "b").problems
    assert (problem.path, problem.line) == ("part/kustomization.yaml", 3)


def test_names_before_prefixes_and_images_of_custom_fields_are_found(render):
    files = {
        **BASE,
        "mid/kustomization.yaml": "namePrefix: mid-\nresources: [../base, own.yaml]\n",
        "mid/own.yaml": "apiVersion: example.com/v1\nkind: Own\nmetadata: {name: own}\nspec: {picture: 'own:1'}\n",
        "prod/kustomization.yaml": "resources: [../mid]\nconfigurations: [own.yaml]\nimages: [{name: own, newTag: '2'}]\n"
        'patches: [{target: {kind: Deployment, name: web}, patch: \'[{"op": "remove", "path": "/spec/replicas"}]\'}]\n',
        "prod/own.yaml": "images: [{path: spec/picture, kind: Own}]\n",
    }
    found = render(files)
    assert found.problems == ()
    assert "own:2" in str([each.manifest for each in found.manifests])


def test_a_deprecated_field_is_told_wherever_it_stands(render):
    found = render(
        {
            **BASE,
            "base/kustomization.yaml": "resources: [web.yaml]\n\ncommonLabels: {a: b}\n",
            "prod/kustomization.yaml": "commonLabels: {c: d}\nresources: [../base]\n",
        }
    )
    assert {(each.path, each.line) for each in found.problems} == {
        ("base/kustomization.yaml", 3),
        ("prod/kustomization.yaml", 1),
    }


BROKEN = {
    "a JSON patch that fails": (
        ("patches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: add, path: /data/x, value: '1'}\n"
        "- target: {kind: Deployment}\n  patch: |-\n    - {op: replace, path: /spec/none/x, value: 3}\n"),
        6, "doc is missing path",
    ),
    "a JSON patch that is none": (
        "patches:\n- target: {kind: Deployment}\n  patch: '[{op: replace, path: /spec/replicas, value: 3}]'\n",
        3, "unable to parse SM or JSON patch",
    ),
    "a patch's file": ("namePrefix: x-\npatches:\n- path: gone.yaml\n", 4, "file does not exist"),
    "a patch without an object": ("patches:\n- path: none.yaml\n", 3, "no resource matches"),
    "one of the older form": ("patchesStrategicMerge:\n- web.yaml\n- none.yaml\n", 4, "no matches for Id"),
    "replicas of nothing": ("replicas:\n- {name: web, count: 1}\n- {name: none, count: 5}\n", 4, "resource with name none"),
    "a replacement's source": (
        REPLACES + "  - {select: {kind: Deployment}, fieldPaths: [metadata.name]}\n"
        "- source: {kind: ConfigMap, name: none}\n  targets: [{select: {kind: Deployment}}]\n",
        6, "nothing selected by",
    ),
    "a replacement's file": ("replacements:\n- path: gone.yaml\n", 3, "file does not exist"),
    "a generator's file": ("configMapGenerator:\n- name: a\n  literals: [a=b]\n- name: c\n  files: [gone.txt]\n", 5, "gone.txt"),
    "a resource": ("components: [../none]\n", 2, "open none"),
    "a schema": ("openapi: {path: gone.json}\n", 2, "gone.json"),
    "definitions": ("crds:\n- gone.json\n", 3, "gone.json"),
    "configurations that are none": ("configurations:\n- none.yaml\n", 3, 'unknown field "apiVersion"'),
    "a plugin's file": ("transformers:\n- gone.yaml\n", 3, "gone.yaml"),
    "a field of another type": ("labels:\n- pairs: {a: 1}\n", 2, "cannot unmarshal number"),
    "a field that isn't known": ("nameprefixes: x\n", 2, 'unknown field "nameprefixes"'),
    "a cycle": ("components: [../prod]\n", 2, "cycle detected"),
}  # fmt: skip


@pytest.mark.parametrize("at", ["prod", "here"])
@pytest.mark.parametrize(("text", "line", "said"), BROKEN.values(), ids=BROKEN)
def test_what_keeps_an_overlay_from_being_built_is_told_at_its_entry(render, at, text, line, said):
    """*at* is the overlay itself, or a base of it."""
    here = {name.replace("here/", f"{at}/"): content for name, content in FILES.items()}
    here[f"{at}/web.yaml"] = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n"
    overlay = {"prod/kustomization.yaml": "resources: [../here]\n"}
    found = render({**overlay, **here, f"{at}/kustomization.yaml": f"resources: [../base]\n{text}"})
    [problem] = found.problems
    assert (problem.path, problem.line, problem.is_error) == (f"{at}/kustomization.yaml", line, True)
    assert said in problem.message
    assert "must resolve to a file" not in problem.message


SECRETS = {
    "a JSON patch that fails": "patches:\n- target: {{kind: Secret}}\n"
    '  patch: \'[{{"op": "test", "path": "/data/a", "value": "{secret}"}}]\'\n',
    "one that is none": "patches:\n- target: {{name: key}}\n  patch: '[{{op: add, path: /data/a, value: {secret}}}]'\n",
    "one in a file": "patches: [{{target: {{kind: Sec.*}}, path: patch.txt}}]\n",
    "one of the older form": "patchesJson6902:\n- target: {{version: v1, kind: Secret, name: key}}\n"
    '  patch: \'[{{"op": "test", "path": "/data/a", "value": "{secret}"}}, {{}}, 1]\'\n',
    "a replacement by a value": "replacements:\n- sourceValue: '{secret}'\n  targets:\n"
    "  - {{select: {{kind: Secret}}, fieldPaths: [none.a.b], options: {{delimiter: '-', index: 7}}}}\n",
    "a replacement of a part that isn't there": "replacements:\n- source: {{kind: Secret, name: key, fieldPath: data.a, "
    "options: {{delimiter: x, index: 9}}}}\n  targets: [{{select: {{kind: ConfigMap}}, fieldPaths: [data.a]}}]\n",
    "a replacement of a part of a generated one": "secretGenerator: [{{name: made, literals: ['a={secret}']}}]\n"
    "replacements:\n- source: {{kind: Secret, name: made, fieldPath: data.a, options: {{delimiter: x, index: 9}}}}\n"
    "  targets: [{{select: {{kind: ConfigMap}}, fieldPaths: [data.a]}}]\n",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
def test_values_of_secrets_are_in_no_message(render, text):
    encoded = "aHVudGVyMi1odW50ZXIy"
    found = render(
        {
            **BASE,
            "prod/kustomization.yaml": "resources: [../base, key.yaml]\n" + text.format(secret=SECRET),
            "prod/key.yaml": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\ndata: {{a: {encoded}}}\n",
            "prod/patch.txt": f"- {{op: test, path: /data/a, value: {SECRET}}}\n",
        }
    )
    assert [each.path for each in found.problems if each.is_error] == ["prod/kustomization.yaml"]
    assert SECRET not in str(found.problems)
    assert encoded not in str(found.problems)
    assert all(each.line for each in found.problems)
