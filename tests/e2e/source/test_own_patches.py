"""What a Sync itself says when drift is accepted into it: written by rendering until it is right, over manifests, overlays and charts."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.editing import Edit
from kubectl_reconcile.core.objects import FieldPath, ObjectRef, errors_among
from kubectl_reconcile.core.rendering.substitution import Value, Values
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.core.ssa.typed import ABSENT
from kubectl_reconcile.engine.commands.overlays import RenderedEditor
from kubectl_reconcile.engine.commands.own_patches import PatchEditor, spec_of, why_not_read
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.engine.sync.target import Target
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from tests.e2e.source.overlays import CONFIG, SCHEMA, WEB, write

LAYOUTS = {
    "manifests": {"top/web.yaml": WEB, "top/config.yaml": CONFIG % "shop"},
    "an overlay": {
        "top/kustomization.yaml": "resources: [web.yaml, config.yaml]\n",
        "top/web.yaml": WEB,
        "top/config.yaml": CONFIG % "shop",
    },
    "a chart": {
        "top/Chart.yaml": "apiVersion: v2\nname: top\nversion: 1.0.0\n",
        "top/templates/web.yaml": WEB,
        "top/templates/config.yaml": CONFIG % "shop",
    },
}
DEPLOYMENT = ObjectRef("apps", "Deployment", "x", "web")
REPLICAS = FieldPath(("f:spec", "f:replicas"))
OF_SIDE = ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"side"}')
IMAGE = FieldPath((*OF_SIDE, "f:image"))
HEAD = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n"
STATED = {"patch": HEAD + "spec:\n  replicas: 7\n"}
OPERATION = {"patch": "- op: replace\n  path: /spec/replicas\n  value: 7\n", "target": {"kind": "Deployment"}}
FOR_SECRETS = {
    "patch": HEAD
    + "spec:\n  replicas: 7\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {a: b}\n"
}


def sync_with(kustomize):
    source = {"git": {"url": "https://git.example.com/shop.git"}, "kustomize": kustomize}
    return Sync.of({"metadata": {"name": "shop", "namespace": "x"}, "spec": {"source": source}})


@pytest.fixture
def accept(renderer, folder):
    """accept(files, said, path, value, ref) -> the field that has the value, why none has, what the Sync says then, and why it wouldn't read that."""

    def run(files, said, path, value, ref=DEPLOYMENT, values=None):
        write(folder, files)
        source = WorktreeSource(folder / "top")
        target = Target(sync_with(said), source, reader=ManifestReader(renderer=renderer), values=values or Values())
        desired = target.read()
        assert errors_among(desired.problems) == ()
        located = next(each for each in desired.manifests if each.ref._replace(namespace="x") == ref)
        edit = Edit(ref, path, value, SCHEMA.root)
        with source.tree(desired.revision.sha) as tree:
            editor = PatchEditor.of(target, desired.revision, tree)
            field, why = editor.take(located, edit, SCHEMA)
        unread = why_not_read(target, desired, editor.spec, [edit]) if field else ""
        assert field or editor.spec == spec_of(target)
        return field, why, editor.spec.told(), unread

    return run


WRITTEN = {
    "a new patch, where it says nothing": (
        {}, REPLICAS, 9, "patches[0]", {"patches": [{"patch": HEAD + "spec:\n  replicas: 9\n"}]},
    ),
    "the patch that owns the field": (
        {"patches": [STATED]}, REPLICAS, 9, "patches[0]", {"patches": [{"patch": HEAD + "spec:\n  replicas: 9\n"}]},
    ),
    "the operation that owns the field": (
        {"patches": [OPERATION]}, REPLICAS, 9, "patches[0]",
        {"patches": [{**OPERATION, "patch": OPERATION["patch"].replace("7", "9")}]},
    ),
    "another patch of the object": (
        {"patches": [STATED]}, FieldPath(("f:spec", "f:paused")), True, "patches[0]",
        {"patches": [{"patch": STATED["patch"] + "  paused: true\n"}]},
    ),
    "the image that owns the field": (
        {"images": [{"name": "side", "newTag": "2"}]}, IMAGE, "side:3", "images[0]",
        {"images": [{"name": "side", "newTag": "3"}]},
    ),
    "a new patch beside those of others": (
        {"patches": [{"patch": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {c: d}\n"}]}, REPLICAS, 9, "patches[1]",
        {"patches": [{"patch": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop}\ndata: {c: d}\n"},
                     {"patch": HEAD + "spec:\n  replicas: 9\n"}]},
    ),
    "a patch that says what is gone": (
        {}, REPLICAS, ABSENT, "patches[0]", {"patches": [{"patch": HEAD + "spec:\n  replicas:\n"}]},
    ),
    "a new patch, where the one that owns the field is for a Secret, too": (
        {"patches": [FOR_SECRETS]}, REPLICAS, 9, "patches[1]", {"patches": [FOR_SECRETS, {"patch": HEAD + "spec:\n  replicas: 9\n"}]},
    ),
}  # fmt: skip
LOGIN = "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\n"


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(("said", "path", "value", "field", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_a_value_of_the_cluster_goes_into(accept, files, said, path, value, field, expected):
    if FOR_SECRETS in said.get("patches", ()):
        config = next(name for name in files if name.endswith("config.yaml"))
        files = {**files, config: f"{files[config]}---\n{LOGIN}"}
    found, why, spec, unread = accept(files, said, path, value)
    assert (found, why, unread) == (f"spec.source.kustomize.{field}", "", "")
    assert spec == expected


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_an_object_that_the_sync_renames_is_called_as_before_in_its_patch(accept, files):
    renamed = DEPLOYMENT._replace(name="p-web")
    found, why, spec, unread = accept(files, {"namePrefix": "p-"}, REPLICAS, 9, renamed)
    assert (found, why, unread) == ("spec.source.kustomize.patches[0]", "", "")
    assert spec == {"namePrefix": "p-", "patches": [{"patch": HEAD + "spec:\n  replicas: 9\n"}]}


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_what_a_patch_can_not_set_is_left_with_where_it_comes_from(accept, files):
    said = {"commonMetadata": {"labels": {"team": "shop"}}}
    found, why, _, _ = accept(files, said, FieldPath(("f:metadata", "f:labels", "f:team")), "other")
    assert found == ""
    assert why == (
        "no patch of the Sync can set that value: .metadata.labels.team would not get that value; "
        "it comes from spec.source.kustomize.commonMetadata.labels"
    )


def test_of_a_patch_that_sets_the_field_of_several_objects_another_is_made(accept):
    files = {**LAYOUTS["manifests"], "top/more.yaml": WEB.replace("{name: web}", "{name: more}")}
    found, why, spec, unread = accept(files, {"patches": [OPERATION]}, REPLICAS, 9)
    assert (found, why, unread) == ("spec.source.kustomize.patches[1]", "", "")
    assert spec["patches"] == [OPERATION, {"patch": HEAD + "spec:\n  replicas: 9\n"}]


@pytest.mark.parametrize("value", ["side:${TAG}", "side:$${TAG}"], ids=["a variable", "what stands for one that isn't"])
def test_a_live_value_that_the_sync_would_take_for_a_variable_is_left(accept, value):
    note = FieldPath(("f:metadata", "f:annotations", "f:note"))
    found, why, _, _ = accept(LAYOUTS["manifests"], {}, note, value, values=Values({"TAG": Value("2")}))
    assert found == ""
    assert "the Sync would take something in it for a variable" in why


def test_what_a_patch_of_the_sync_sets_is_nothing_that_files_can_and_the_way_is_told(renderer, folder):
    write(folder, LAYOUTS["an overlay"])
    source = WorktreeSource(folder / "top")
    target = Target(sync_with({"patches": [STATED]}), source, reader=ManifestReader(renderer=renderer))
    desired = target.read()
    located = next(each for each in desired.manifests if each.ref.kind == "Deployment")
    with source.tree(desired.revision.sha) as tree:
        editor = RenderedEditor(target, desired.revision, tree)
        file, why = editor.take(located, Edit(DEPLOYMENT, REPLICAS, 9, SCHEMA.root), SCHEMA)
    assert (file, editor.files) == ("", {})
    assert "it comes from spec.source.kustomize.patches[0], base: top/web.yaml:5, which --patches writes to" in why


def test_what_the_sync_would_not_ask_for_is_told_in_the_end(renderer, folder):
    write(folder, LAYOUTS["manifests"])
    target = Target(sync_with({}), WorktreeSource(folder / "top"), reader=ManifestReader(renderer=renderer))
    said = sync_with({"patches": [STATED]}).source.kustomize
    wrong, right = (Edit(DEPLOYMENT, REPLICAS, value, SCHEMA.root) for value in (9, 7))
    assert why_not_read(target, target.read(), said, [right]) == ""
    assert why_not_read(target, target.read(), said, [wrong]) == "Deployment.apps web wouldn't be what is live"
    unreadable = sync_with({"patches": [{"patch": "nonsense"}]}).source.kustomize
    assert why_not_read(target, target.read(), unreadable, [right]) != ""


def test_more_patches_than_a_sync_may_have_are_none(accept):
    others = [
        {"patch": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shop}}\ndata: {{k{at}: v}}\n"}
        for at in range(100)
    ]
    found, why, _, _ = accept(LAYOUTS["manifests"], {"patches": others}, REPLICAS, 9)
    assert found == ""
    assert "spec.source.kustomize.patches: has more than 100 entries" in why
