"""Where the fields of a rendered object come from: the lines that a trace leads to."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.parse import parse
from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.rendering.entries import BuildStep
from kubectl_reconcile.core.rendering.origins import (
    OWN,
    ObjectTrace,
    OriginKind,
    Origins,
    TracedField,
    Traces,
    operation_at,
    stated_at,
)
from kubectl_reconcile.core.rendering.rendered import RenderedObject, Rendering

WEB = ObjectRef("apps", "Deployment", "", "web")
FILES = {
    "base/web.yaml": b"""\
kind: Service
metadata: {name: web}
---
apiVersion: v1
kind: List
items:
- kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 1
    containers:
    - name: web
      image: web:1
    - name: side
      image: side:1
""",
    "prod/kustomization.yaml": b"""\
namePrefix: p-
patches:
- path: merge.yaml
- target: {kind: Deployment}
  patch: |-
    - op: test
      path: /spec/paused
      value: true
    - op: add
      path: /spec/paused
      value: true
    - op: add
      path: /spec/strategy
      value:
        type: Recreate
- patch: "{kind: Deployment, metadata: {name: web}, spec: {minReadySeconds: 3}}"
- {path: gone.yaml}
images:
- {name: side, newTag: "2"}
labels:
- pairs:
    team: shop
    tier: web
commonAnnotations:
  note: x
replacements:
- source: {kind: ConfigMap, name: a}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [metadata.name]
  - select: {kind: Deployment}
    fieldPaths: ["spec.containers.[name=web].image"]
configMapGenerator:
- name: made
  literals:
  - a=1
  files:
  - app.conf
  - other=b.txt
  envs: [some.env]
patchesStrategicMerge:
- gone.yaml
- |-
  kind: Deployment
  metadata: {name: web}
  spec: {progressDeadlineSeconds: 5}
""",
    "prod/merge.yaml": b"""\
kind: Deployment
metadata: {name: other}
spec: {replicas: 1}
---
kind: Deployment
metadata:
  name: web
spec:
  replicas: 7
  containers:
  - name: side
    env: []
""",
    "prod/some.env": b"# variables\nX=1\nC=2\n",
}
MERGE, JSON, INLINE, GONE, IMAGES, LABELS, NOTES, REPLACED, RENAMED, OLDEST, MADE = range(11)
STEPS = (
    BuildStep("PatchTransformer", "prod", {"path": "merge.yaml"}),
    BuildStep(
        "PatchTransformer", "prod",
        {"target": {"kind": "Deployment"}, "patch": FILES["prod/kustomization.yaml"].decode().split("|-\n")[1].split("\n- patch")[0].replace("\n    ", "\n")[4:]},
    ),
    BuildStep("PatchTransformer", "prod", {"patch": "{kind: Deployment, metadata: {name: web}, spec: {minReadySeconds: 3}}"}),
    BuildStep("PatchTransformer", "prod", {"path": "gone.yaml"}),
    BuildStep("ImageTagTransformer", "prod", {"imageTag": {"name": "side", "newTag": "2"}}),
    BuildStep("LabelTransformer", "prod", {"labels": {"team": "shop", "tier": "web"}}),
    BuildStep("AnnotationsTransformer", "prod", {"annotations": {"note": "x"}}),
    BuildStep("ReplacementTransformer", "prod", {}),
    BuildStep("NameReferenceTransformer", "prod", {}),
    BuildStep("PatchStrategicMergeTransformer", "prod", {"paths": []}),
    BuildStep("ConfigMapGenerator", "prod", {"name": "made"}),
)  # fmt: skip
KUSTOMIZATION = "prod/kustomization.yaml"
SIDE = {"name": "side"}


def origins(*fields, file="base/web.yaml"):
    """The origins of one object with these fields: where each stands, by what identifies items, and the steps that set it."""
    traced = tuple(TracedField(tuple(at), tuple(key), tuple(by)) for at, key, by in fields)
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    rendering = Rendering((RenderedObject(text, file),), (), {})
    return Origins(Traces(rendering, (ObjectTrace(WEB, WEB, traced),), STEPS, FILES))


SPEC = ["spec", "containers", 0, "image"]
TOLD = {
    "its own file": (["spec", "replicas"], None, [OWN], "base/web.yaml:10"),
    "an item by its name": (SPEC, ["spec", "containers", SIDE, "image"], [OWN], "base/web.yaml:15"),
    "what the file has no line for": (["spec", "none"], None, [OWN], "base/web.yaml:9"),
    "a patch": (["spec", "replicas"], None, [OWN, MERGE], "prod/merge.yaml:9 (patch), base: base/web.yaml:10"),
    "an item of a patch": (
        ["spec", "containers", 0, "env"], ["spec", "containers", SIDE, "env"], [MERGE], "prod/merge.yaml:12 (patch)",
    ),
    "a JSON patch in the kustomization": (["spec", "paused"], None, [JSON], f"{KUSTOMIZATION}:11 (patch)"),
    "below what it adds": (["spec", "strategy", "type"], None, [JSON], f"{KUSTOMIZATION}:15 (patch)"),
    "a JSON patch of something else": (["spec", "replicas"], None, [OWN, JSON], "base/web.yaml:10"),
    "a JSON patch that alone can have set it": (["spec", "other"], None, [JSON], f"{KUSTOMIZATION}:4 (patch)"),
    "a patch in quotes": (["spec", "minReadySeconds"], None, [INLINE], f"{KUSTOMIZATION}:16 (patch)"),
    "a patch whose file isn't known": (["spec", "x"], None, [GONE], f"{KUSTOMIZATION}:17 (patch)"),
    "a patch of the oldest form": (
        ["spec", "progressDeadlineSeconds"], None, [OLDEST], f"{KUSTOMIZATION}:46 (patch)",
    ),
    "an image": (
        SPEC, ["spec", "containers", SIDE, "image"], [OWN, IMAGES], f"{KUSTOMIZATION}:19 (images), base: base/web.yaml:15",
    ),
    "a label": (["metadata", "labels", "tier"], None, [LABELS], f"{KUSTOMIZATION}:23 (labels)"),
    "an annotation": (["metadata", "annotations", "note"], None, [NOTES], f"{KUSTOMIZATION}:25 (commonAnnotations)"),
    "a replacement": (
        SPEC, ["spec", "containers", {"name": "web"}, "image"], [OWN, REPLACED],
        f"{KUSTOMIZATION}:31 (replacements), base: base/web.yaml:13",
    ),
    "a name that was carried on": (["metadata", "name"], None, [OWN, RENAMED], "base/web.yaml:8"),
    "a patch in a base, and a transformer": (
        ["spec", "replicas"], None, [MERGE, IMAGES], f"{KUSTOMIZATION}:19 (images), base: prod/merge.yaml:9 (patch)",
    ),
    "a literal": (["data", "a"], None, [MADE], f"{KUSTOMIZATION}:36 (configMapGenerator)"),
    "a file": (["data", "app.conf"], None, [MADE], "prod/app.conf:1 (configMapGenerator)"),
    "a file by another name": (["data", "other"], None, [MADE], "prod/b.txt:1 (configMapGenerator)"),
    "a variable": (["data", "C"], None, [MADE], "prod/some.env:3 (configMapGenerator)"),
    "what a generator adds": (["metadata", "name"], None, [MADE], f"{KUSTOMIZATION}:34 (configMapGenerator)"),
}  # fmt: skip


@pytest.mark.parametrize(("at", "key", "by", "told"), TOLD.values(), ids=TOLD)
def test_a_field_comes_from_a_line(at, key, by, told):
    assert str(origins((at, key or at, by)).of(0, tuple(at))) == told


def test_of_a_map_the_first_field_tells_and_of_nothing_nobody():
    found = origins((["a", "b"], ["a", "b"], [MERGE]), (["c"], ["c"], [OWN]))
    assert found.of(0, ("a",)).at.by is OriginKind.PATCH
    assert found.of(0, ("c", "d")).at.file == "base/web.yaml"
    assert found.of(0, ("x",)) is None


def test_an_object_comes_from_its_file_or_its_generator():
    kind = ["kind"], ["kind"]
    assert str(origins((*kind, [OWN])).of_object(0)) == "base/web.yaml:7"
    assert str(origins((*kind, [MADE]), file=KUSTOMIZATION).of_object(0)) == f"{KUSTOMIZATION}:34 (configMapGenerator)"
    assert str(origins((*kind, [MADE])).of_object(0)) == "base/web.yaml:7"  # a generator only adds to it
    assert str(origins((*kind, [OWN]), file="gone.yaml").of_object(0)) == "gone.yaml"


OPERATIONS = [
    {"op": "add", "path": "/spec/a~1b/-", "value": {}},
    {"op": "replace", "path": "/spec/list/0/x", "value": 1},
    {"op": "remove", "path": "/spec/y"},
    {"op": "copy", "from": "/x", "path": "/spec/~0z"},
    "none",
]
SET = {
    "an item at the end": (("spec", "a/b", 3, "c"), (0, ("c",))),
    "an item by its index": (("spec", "list", 0, "x"), (1, ())),
    "another item": (("spec", "list", 1, "x"), None),
    "what is removed": (("spec", "y"), None),
    "what is copied": (("spec", "~z"), (3, ())),
    "what is above": (("spec",), None),
}


@pytest.mark.parametrize(("at", "expected"), SET.values(), ids=SET)
def test_an_operation_sets_a_field(at, expected):
    assert operation_at(OPERATIONS, at) == expected


def test_a_field_stands_where_it_is_stated_and_no_further():
    tree = {"a": [{"name": "x", "b": 1}, {"name": "y", "b": {"c": 2}}], "d": 1}
    assert stated_at(tree, ["a", {"name": "y"}, "b", "c"]) == ("a", 1, "b", "c")
    assert stated_at(tree, ["a", {"name": "z"}, "b"]) == ("a",)
    assert stated_at(tree, ["a", 5]) == ("a",)
    assert stated_at(tree, ["d", "e"]) == ("d",)


def test_what_the_program_says_is_read_only_if_every_object_is_traced():
    rendering = Rendering((RenderedObject("kind: A\n", "a.yaml"),), (), {})
    name = {"group": "", "kind": "A", "namespace": "", "name": "a"}
    trace = {"first": name, "entered": name, "fields": [{"at": ["kind"], "key": ["kind"], "by": [0]}]}
    done = {"objects": [{"trace": trace}], "steps": [{"by": "PrefixTransformer", "folder": "x", "entry": "prefix: a"}]}
    found = Traces.of(rendering, done, {})
    assert found.objects == (
        ObjectTrace(
            ObjectRef("", "A", "", "a"), ObjectRef("", "A", "", "a"), (TracedField(("kind",), ("kind",), (0,)),)
        ),
    )
    assert found.steps == (BuildStep("PrefixTransformer", "x", {"prefix": "a"}),)
    assert Traces.of(rendering, {"objects": [{}]}, {}).objects == ()
    assert Traces.of(rendering, {"error": "no"}, {}).objects == ()
    [located] = parse(b"apiVersion: v1\nkind: A\nmetadata: {name: a}\n", "a.yaml").manifests
    assert found.number_of(located) is None  # it stands in a file
