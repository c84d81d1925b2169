"""What an overlay's files become when drift is accepted: written by rendering again until it is right, without a cluster."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.editing import Edit
from kubectl_reconcile.core.objects import FieldPath, ObjectRef, errors_among
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.typed import ABSENT
from kubectl_reconcile.engine.commands.overlays import RenderedEditor
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.errors import SourceError
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from tests.e2e.source.overlays import BASE, SCHEMA, write

WEB, SHOP = ObjectRef("apps", "Deployment", "x", "web"), ObjectRef("", "ConfigMap", "x", "shop")
REPLICAS = FieldPath(("f:spec", "f:replicas"))
OF_SIDE = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"side"}')
IMAGE = FieldPath((*OF_SIDE, "f:image"))
PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web  # the shop's\nspec:\n  replicas: 7  # busy\n"
PREFIXED = WEB._replace(name="p-web")


@pytest.fixture
def accept(renderer, folder):
    """accept(files, ref, path, value) -> which files became what else, the file that has the value, and why none has."""

    def run(files, ref, path, value, overlay="prod"):
        write(folder, {**BASE, **files})
        source = WorktreeSource(folder / overlay)
        target = Target(
            Sync.of({"metadata": {"name": "s", "namespace": "x"}, "spec": {}}),
            source,
            reader=ManifestReader(renderer=renderer),
        )
        desired = target.reader.read(source)
        assert errors_among(desired.problems) == ()
        located = next(each for each in desired.manifests if each.ref._replace(namespace="x") == ref)
        with source.tree(desired.revision.sha) as tree:
            editor = RenderedEditor(target, desired.revision, tree)
            file, why = editor.take(located, Edit(ref, path, value, SCHEMA.root), SCHEMA)
        changed = {name: data.decode() for name, data in editor.files.items()}
        write(folder, changed)
        assert errors_among(target.reader.read(source).problems) == ()
        return changed, file, why

    return run


KUSTOMIZATION = "# ours\nresources:\n  - ../base  # shared\n"
LISTED = "prod/accepted-deployment-web.yaml"
HEAD = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n"
WRITTEN = {
    "into the patch that owns the field": (
        {"prod/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n", "prod/patch.yaml": PATCH},
        WEB, REPLICAS, 9,
        {"prod/patch.yaml": PATCH.replace("7  #", "9  #")},
    ),
    "into one of the oldest form": (
        {"prod/kustomization.yaml": "resources: [../base]\npatchesStrategicMerge: [patch.yaml]\n", "prod/patch.yaml": PATCH},
        WEB, REPLICAS, 9,
        {"prod/patch.yaml": PATCH.replace("7  #", "9  #")},
    ),
    "into one that is in the kustomization": (
        {"prod/kustomization.yaml": "resources: [../base]\npatches:\n# why\n- patch: |-\n"
         + "".join(f"    {line}\n" for line in PATCH.splitlines()) + "  target: {kind: Deployment}\n"},
        WEB, REPLICAS, 9,
        {"prod/kustomization.yaml": "resources: [../base]\npatches:\n# why\n- patch: |-\n"
         + "".join(f"    {line}\n" for line in PATCH.replace("7  #", "9  #").splitlines()) + "  target: {kind: Deployment}\n"},
    ),
    "into an operation": (
        {"prod/kustomization.yaml": "resources: [../base]\npatches:\n- {path: ops.yaml, target: {kind: Deployment}}\n",
         "prod/ops.yaml": "# busy\n- op: replace\n  path: /spec/replicas\n  value: 7\n"},
        WEB, REPLICAS, 9,
        {"prod/ops.yaml": "# busy\n- op: replace\n  path: /spec/replicas\n  value: 9\n"},
    ),
    "into images": (
        {"prod/kustomization.yaml": 'namePrefix: p-\nresources: [../base]\nimages:\n- name: side   # beside\n  newTag: "2"\n'},
        PREFIXED, IMAGE, "registry:5000/other:3",
        {"prod/kustomization.yaml": 'namePrefix: p-\nresources: [../base]\nimages:\n- name: side   # beside\n  newTag: "3"\n  newName: registry:5000/other\n'},
    ),
    "into replicas": (
        {"prod/kustomization.yaml": "resources: [../base]\nreplicas: [{name: web, count: 7}]\n"},
        WEB, REPLICAS, 9,
        {"prod/kustomization.yaml": "resources: [../base]\nreplicas: [{name: web, count: 9}]\n"},
    ),
    "into a literal of a generator": (
        {"prod/kustomization.yaml": "resources: [../base]\nconfigMapGenerator:\n- name: made\n  literals: [x=1, y=2]\n"
         "  options: {disableNameSuffixHash: true}\n"},
        SHOP._replace(name="made"), FieldPath(("f:data", "f:y")), "3",
        {"prod/kustomization.yaml": "resources: [../base]\nconfigMapGenerator:\n- name: made\n  literals: [x=1, y=3]\n"
         "  options: {disableNameSuffixHash: true}\n"},
    ),
    "into another patch of the object": (
        {"prod/kustomization.yaml": "namePrefix: p-\nresources: [../base]\npatches: [{path: patch.yaml}]\n", "prod/patch.yaml": PATCH},
        PREFIXED, IMAGE, "side:9",
        {"prod/patch.yaml": PATCH + "  template:\n    spec:\n      containers:\n      - name: web\n      - name: side\n        image: side:9\n"},
    ),
    "into a new patch": (
        {"prod/kustomization.yaml": KUSTOMIZATION},
        WEB, REPLICAS, 9,
        {LISTED: HEAD + "spec:\n  replicas: 9\n", "prod/kustomization.yaml": KUSTOMIZATION + "patches:\n  - path: accepted-deployment-web.yaml\n"},
    ),
    "into a new patch beside others, of a renamed object": (
        {"prod/kustomization.yaml": "resources: [../base]\nnamePrefix: p-\nnamespace: x\npatches: [{path: other.yaml}]\n",
         "prod/other.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {c: d}\n"},
        PREFIXED, REPLICAS, 9,
        {LISTED: HEAD + "spec:\n  replicas: 9\n",
         "prod/kustomization.yaml": "resources: [../base]\nnamePrefix: p-\nnamespace: x\npatches: [{path: other.yaml}, {path: accepted-deployment-web.yaml}]\n"},
    ),
    "what is gone": (
        {"prod/kustomization.yaml": KUSTOMIZATION},
        WEB, REPLICAS, ABSENT,
        {LISTED: HEAD + "spec:\n  replicas:\n", "prod/kustomization.yaml": KUSTOMIZATION + "patches:\n  - path: accepted-deployment-web.yaml\n"},
    ),
    "what is gone of a patch": (
        {"prod/kustomization.yaml": "resources: [../base]\npatches: [{path: patch.yaml}]\n",
         "prod/patch.yaml": PATCH.replace("  replicas: 7  # busy\n", "  paused: true\n  minReadySeconds: 3\n")},
        WEB, FieldPath(("f:spec", "f:paused")), ABSENT,
        {"prod/patch.yaml": PATCH.replace("  replicas: 7  # busy\n", "  minReadySeconds: 3\n")},
    ),
    "an item that is gone": (
        {"prod/kustomization.yaml": KUSTOMIZATION},
        WEB, FieldPath(OF_SIDE), ABSENT,
        {LISTED: HEAD + "spec:\n  template:\n    spec:\n      containers:\n      - name: side\n        $patch: delete\n",
         "prod/kustomization.yaml": KUSTOMIZATION + "patches:\n  - path: accepted-deployment-web.yaml\n"},
    ),
    "into a second field of what was accepted before": (
        {"prod/kustomization.yaml": "resources: [../base]\npatches:\n- path: accepted-deployment-web.yaml\n", LISTED: HEAD + "spec:\n  replicas: 9\n"},
        WEB, FieldPath(("f:spec", "f:paused")), True,
        {LISTED: HEAD + "spec:\n  replicas: 9\n  paused: true\n"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "ref", "path", "value", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_a_value_of_the_cluster_is_written(accept, files, ref, path, value, expected):
    changed, file, why = accept(files, ref, path, value)
    assert (changed, why) == (expected, "")
    assert file in changed


REFUSED = {
    "a label of all objects": (
        {"prod/kustomization.yaml": "resources: [../base]\nlabels: [{pairs: {team: shop}}]\n"},
        WEB, FieldPath(("f:metadata", "f:labels", "f:team")), "other", "prod/kustomization.yaml:2 (labels)",
    ),
    "an image that another object has, too": (
        {"prod/kustomization.yaml": "resources: [../base, other.yaml]\nimages: [{name: side, newTag: '2'}]\n",
         "prod/other.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec: {containers: [{name: a, image: 'side:1'}]}\n"},
        WEB, IMAGE, "side:3", "Pod other would change too; it comes from prod/kustomization.yaml:2 (images), base: base/web.yaml:12",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("files", "ref", "path", "value", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_had_without_changing_more_is_refused(accept, files, ref, path, value, said):
    changed, file, why = accept(files, ref, path, value)
    assert (changed, file) == ({}, "")
    assert why.startswith("nothing in prod can set that value: ")
    assert said in why


def test_a_base_that_others_share_is_never_touched(accept, folder):
    before = {name: (folder / name).read_bytes() for name in BASE if (folder / name).exists()}
    changed, file, _ = accept({"prod/kustomization.yaml": KUSTOMIZATION}, SHOP, FieldPath(("f:data", "f:a")), "yes")
    assert file == "prod/accepted-configmap-shop.yaml"
    assert changed[file] == 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shop\ndata:\n  a: "yes"\n'
    assert not any(name.startswith("base/") for name in changed)
    assert all((folder / name).read_bytes() == data for name, data in before.items())


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "chart/values.yaml": "# defaults\nreplicas: 1\nimage: {repository: web, tag: '1'}\nname: web\nlevel: low\n",
    "chart/templates/web.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, labels: {level: {{ .Values.level }}}}\n"
    "spec:\n  replicas: {{ .Values.replicas }}\n  template:\n    metadata: {labels: {level: {{ .Values.level }}}}\n    spec:\n"
    "      containers:\n      - name: {{ .Values.name }}\n        image: {{ .Values.image.repository }}:{{ .Values.image.tag }}\n",
}
OF_WEB = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"web"}')


def test_a_value_of_a_chart_is_written_where_it_sets_that_field_alone(accept):
    changed, file, why = accept(CHART, WEB, REPLICAS, 9, "chart")
    assert (file, why) == ("chart/values.yaml", "")
    assert changed == {file: CHART[file].replace("replicas: 1", "replicas: 9")}
    changed, file, _ = accept({}, WEB, FieldPath((*OF_WEB, "f:image")), "web:2", "chart")
    assert changed == {file: CHART[file].replace("replicas: 1", "replicas: 9").replace("'1'", "'2'")}
    changed, _, why = accept({}, WEB, FieldPath(("f:metadata", "f:labels", "f:level")), "high", "chart")
    assert changed == {}
    assert why.startswith("nothing in chart can set that value: ")
    changed, _, why = accept({}, WEB, FieldPath((*OF_WEB, "f:image")), "other:7", "chart")
    assert (changed, why) == (
        {},
        "none of its values has the field's current value, so accept can't find the value that sets it",
    )


def test_files_that_an_overlay_is_rendered_from_are_placed_from_the_top_of_the_tree(folder):
    write(folder, {**BASE, "prod/kustomization.yaml": KUSTOMIZATION})
    source = WorktreeSource(folder / "prod")
    assert source.place_of("prod/patch.yaml", rendered=True) == folder.resolve() / "prod/patch.yaml"
    assert source.place_of("patch.yaml") == folder.resolve() / "prod/patch.yaml"
    with pytest.raises(SourceError):
        source.place_of("../out.yaml", rendered=True)
