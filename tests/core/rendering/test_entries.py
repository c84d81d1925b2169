"""Which line of which file a step of kustomize's is for."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.rendering.entries import BuildStep, entry_of, line_of, top_level

OWN = "prod/kustomization.yaml"
FILES = {
    OWN: b"""\
namePrefix: p-
namespace: shop
commonLabels: {a: b}
labels:
- pairs: {team: shop}
- pairs: {team: other}
patches:
- path: one.yaml
- path: one.yaml
  target: {kind: Deployment}
- patch: |-
    - {op: remove, path: /a}
  target:
    kind: Service
    name: ""
images:
- name: web
  newTag: "2"
- {name: web, newTag: "3"}
replicas:
- {name: web, count: 3}
configMapGenerator:
- {name: one}
- name: two
  files: [x]
replacements:
- {source: {kind: ConfigMap, name: a}, targets: [{select: {kind: A}}]}
- path: many.yaml
- source: {kind: ConfigMap, name: a}
  targets:
  - select: {kind: B}
  - select: {kind: C}
transformers:
- plugins.yaml
- |-
  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: here}}
""",
    "prod/many.yaml": b"- targets: [{}]\n- targets:\n  - {}\n  - {}\n",
    "prod/plugins.yaml": b"apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\n---\n"
    b"apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\n",
    "base/Kustomization": b"\nnameSuffix: -x\n",
}

STEPS = {
    "a field": (BuildStep("PrefixTransformer", "prod", {"prefix": "p-"}), OWN, 1),
    "a namespace": (BuildStep("NamespaceTransformer", "prod", {"metadata": {"namespace": "shop"}}), OWN, 2),
    "labels of the older form": (BuildStep("LabelTransformer", "prod", {"labels": {"a": "b"}}), OWN, 3),
    "labels": (BuildStep("LabelTransformer", "prod", {"labels": {"team": "other"}}), OWN, 6),
    "a patch": (BuildStep("PatchTransformer", "prod", {"path": "one.yaml"}), OWN, 8),
    "one with a target": (BuildStep("PatchTransformer", "prod", {"path": "one.yaml", "target": {"kind": "Deployment"}}), OWN, 9),
    "one in the kustomization": (
        BuildStep("PatchTransformer", "prod", {"patch": "- {op: remove, path: /a}\n", "target": {"kind": "Service"}}), OWN, 11
    ),
    "one that isn't found": (BuildStep("PatchTransformer", "prod", {"path": "none.yaml"}), OWN, 7),
    "an image": (BuildStep("ImageTagTransformer", "prod", {"imageTag": {"name": "web", "newTag": "3"}}), OWN, 19),
    "replicas": (BuildStep("ReplicaCountTransformer", "prod", {"replica": {"name": "web", "count": 3}}), OWN, 21),
    "a generator": (BuildStep("ConfigMapGenerator", "prod", {"name": "two", "files": ["x"]}), OWN, 24),
    "all replacements": (BuildStep("ReplacementTransformer", "prod", {}), OWN, 26),
    "one of them": (BuildStep("ReplacementTransformer", "prod", {}, 0), OWN, 27),
    "a target of it": (BuildStep("ReplacementTransformer", "prod", {}, 0, 0), OWN, 27),
    "a target of one of its own file": (BuildStep("ReplacementTransformer", "prod", {}, 2, 1), "prod/many.yaml", 4),
    "a target of the next": (BuildStep("ReplacementTransformer", "prod", {}, 3, 1), OWN, 32),
    "one too many": (BuildStep("ReplacementTransformer", "prod", {}, 9, 1), OWN, 26),
    "a plugin's file": (
        BuildStep("PatchTransformer", "prod", {"apiVersion": "builtin", "kind": "PatchTransformer", "metadata": {"name": "b"}}),
        "prod/plugins.yaml", 5,
    ),
    "a plugin in the kustomization": (
        BuildStep("PatchTransformer", "prod", {"apiVersion": "builtin", "kind": "PatchTransformer", "metadata": {"name": "here"}}),
        OWN, 33,
    ),
    "one of a file by another name": (BuildStep("SuffixTransformer", "base", {"suffix": "-x"}), "base/Kustomization", 2),
    "one of no file": (BuildStep("SuffixTransformer", "none", {"suffix": "-x"}), "none/kustomization.yaml", 0),
    "one that nobody knows": (BuildStep("NoneTransformer", "prod", {}), OWN, 0),
}  # fmt: skip


@pytest.mark.parametrize(("step", "file", "line"), STEPS.values(), ids=STEPS)
def test_a_step_is_for_an_entry(step, file, line):
    found = entry_of(step, FILES)
    assert (found.file, found.line) == (file, line)


def test_what_the_program_says_of_a_step_is_read_as_kustomize_writes_it():
    said = {"by": "ImageTagTransformer", "folder": "prod", "entry": "ImageTag: {name: web}\nFieldSpecs: []\n"}
    assert BuildStep.of(said) == BuildStep(
        "ImageTagTransformer", "prod", {"imageTag": {"name": "web"}, "fieldSpecs": []}
    )
    assert BuildStep.of({**said, "entry": "[", "at": 1, "target": 2}) == BuildStep(
        "ImageTagTransformer", "prod", {}, 1, 2
    )


def test_a_field_of_kustomizations_is_found_in_each_that_has_it():
    assert [(each.file, each.line) for each in top_level("namePrefix", FILES)] == [(OWN, 1)]
    assert [(each.file, each.line) for each in top_level("nameSuffix", FILES)] == [("base/Kustomization", 2)]
    assert list(top_level("targets", FILES)) == []


def test_a_place_that_is_not_there_has_the_line_of_what_is_above_it():
    assert line_of(b"a:\n  b: 1\n", (0, "a", "c", 3)) == 1
    assert line_of(b"a: 1\n", (0, "x")) == 0
