"""What a Sync itself changes of objects, over manifests, overlays and charts: by the real program, judged by kubectl's kustomize."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from kubectl_reconcile.core.rendering.origins import Origins
from kubectl_reconcile.core.resources.sync import Sync
from kubectl_reconcile.engine.sync.desired import ManifestReader
from kubectl_reconcile.source.folder.worktree import WorktreeSource
from kubectl_reconcile.source.render.renderer import Renderer
from tests.e2e.source.overlays import CONFIG, WEB, write
from tests.patch_pairs import difference, ours, pairs

REPLICAS = {"patch": "- {op: replace, path: /spec/replicas, value: 3}", "target": {"kind": "Deployment"}}
NOBODY = {"patch": "- {op: add, path: /a, value: 1}", "target": {"kind": "Nobody"}}
LAYOUTS = {
    "manifests": {"top/web.yaml": WEB},
    "an overlay": {"top/kustomization.yaml": "resources: [web.yaml]\n", "top/web.yaml": WEB},
    "a chart": {"top/Chart.yaml": "apiVersion: v2\nname: top\nversion: 1.0.0\n", "top/templates/web.yaml": WEB},
}
PART = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {part: %s}}]\n"


def sync_with(kustomize):
    source = {"git": {"url": "https://git.example.com/shop.git"}, "kustomize": kustomize}
    return Sync.of({"metadata": {"name": "shop", "namespace": "shop"}, "spec": {"source": source}})


@pytest.fixture(scope="module")
def long_lived(rendering):
    with_one = Renderer(_idle=rendering.pop() if rendering else None)
    yield with_one
    with_one.close()


@settings(max_examples=25)
@given(pair=pairs())
def test_it_is_what_kustomize_makes_of_the_same_objects(binaries, long_lived, pair):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".git").mkdir()
        assert difference(long_lived, binaries.path("kubectl"), Path(folder), pair) == ""


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_each_field_knows_which_patch_it_comes_from(renderer, folder, files):
    write(folder, files)
    source, reader = WorktreeSource(folder / "top"), ManifestReader(renderer=renderer)
    extra = {"patch": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  minReadySeconds: 3\n"}
    metadata = {"labels": {"team": "shop"}, "annotations": {"by": "us"}}
    said = {
        "patches": [REPLICAS, extra],
        "images": [{"name": "side", "newTag": "2"}],
        "commonMetadata": metadata,
        "namePrefix": "p-",
    }
    desired = reader.read(source, sync_with(said))
    [web] = desired.manifests
    assert (web.manifest["metadata"]["name"], web.manifest["spec"]["template"]["metadata"]) == (
        "p-web",
        {"labels": {"app": "web"}},
    )
    with source.tree(desired.revision.sha) as tree:
        origins = Origins(reader.traced(source, desired.revision.overlay or "", tree))
    found = {".".join(map(str, each.at)): origins.of(0, each.at) for each in origins.traces.objects[0].fields}
    field = "spec.source.kustomize."
    assert {path: str(origin.at) for path, origin in found.items() if str(origin.at).startswith(field)} == {
        "metadata.name": f"{field}namePrefix",
        "metadata.labels.team": f"{field}commonMetadata.labels",
        "metadata.annotations.by": f"{field}commonMetadata.annotations",
        "spec.replicas": f"{field}patches[0]",
        "spec.minReadySeconds": f"{field}patches[1]",
        "spec.template.spec.containers.1.image": f"{field}images[0]",
    }
    [file] = desired.revision.files
    line = 0 if "templates" in file else 5
    base = found["spec.replicas"].base
    assert (base.file, base.line) == (file, line)


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_what_matches_nothing_is_a_warning_that_names_it(renderer, folder, files):
    write(folder, files)
    found = ours(renderer, folder / "top", {"patches": [REPLICAS, NOBODY], "images": [{"name": "gone", "newTag": "1"}]})
    assert [each.manifest["spec"]["replicas"] for each in found.manifests] == [3]
    assert [(each.path, each.is_error) for each in found.problems] == [
        ("spec.source.kustomize.patches[1]", False),
        ("spec.source.kustomize.images[0]", False),
    ]
    assert found.problems[0].message == "the patch changes nothing: no object is kind=Nobody"


WRONG = {
    "no patch": ({"patches": [REPLICAS, {"patch": "nonsense"}]}, "patches[1]", "write a part of an object"),
    "a field that isn't there": (
        {"patches": [{**REPLICAS, "patch": "- {op: remove, path: /spec/gone}"}]}, "patches[0]", ""
    ),
    "an object that isn't there": (
        {"patches": [{"patch": "{apiVersion: v1, kind: Service, metadata: {name: gone}}"}]}, "patches[0]", "name an object that is there"
    ),
    "a component that isn't there": ({"components": ["../part", "../gone"]}, "components[1]", "a component is a folder of the repository"),
    "a component out of the repository": ({"components": ["../../../etc"]}, "components[0]", "a component is a folder of the repository"),
}  # fmt: skip


@pytest.mark.parametrize(("said", "field", "hint"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_wrong_is_a_problem_with_its_field_and_a_hint(renderer, folder, files, said, field, hint):
    write(folder, {**files, "part/kustomization.yaml": PART % "a"})
    found = ours(renderer, folder / "top", said)
    [problem] = found.problems
    assert (problem.path, problem.is_error, problem.hint[: len(hint)]) == (f"spec.source.kustomize.{field}", True, hint)
    assert "reconcile-source" not in problem.message
    assert (found.manifests, found.revision.unrendered) == ((), ("",))  # nothing counts as gone


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_a_value_of_a_secret_is_in_no_message(renderer, folder, files):
    write(folder, {**files, "top/more.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\n"})
    patch = "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\nstringData: {a: hunter2}\n"
    found = ours(renderer, folder / "top", {"patches": [{"patch": patch}]})
    assert [each.path for each in found.problems] == ["spec.source.kustomize.patches[0]"]
    assert "hunter2" not in str(found.problems)


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_syncs_share_what_is_rendered_if_they_change_the_same(renderer, folder, files):
    write(folder, files)
    one, same = (ours(renderer, folder / "top", {"patches": [REPLICAS]}) for _ in range(2))
    assert (renderer.rendered, one.manifests, one.revision.sha) == (1, same.manifests, same.revision.sha)
    other = ours(renderer, folder / "top", {"namePrefix": "p-"})
    bare = ours(renderer, folder / "top", {})
    names = [each.manifests[0].manifest["metadata"]["name"] for each in (one, other, bare)]
    assert names == ["web", "p-web", "web"]
    assert bare.manifests[0].manifest["spec"]["replicas"] == 1


def test_manifests_are_read_again_when_a_file_comes_changes_or_goes_or_a_component_changes(renderer, folder):
    write(folder, {"top/web.yaml": WEB, "part/kustomization.yaml": PART % "a"})
    source, reader, sync = (
        WorktreeSource(folder / "top"),
        ManifestReader(renderer=renderer),
        sync_with({"components": ["../part"]}),
    )

    def labels():
        found = reader.read(source, sync)
        assert found.problems == ()
        assert reader.read(source, sync) is found
        return {each.ref.name: each.manifest["metadata"]["labels"]["part"] for each in found.manifests}

    assert labels() == {"web": "a"}
    write(folder, {"part/kustomization.yaml": PART % "b"})
    assert labels() == {"web": "b"}
    write(folder, {"top/below/more.yaml": CONFIG % "more"})
    assert labels() == {"web": "b", "more": "b"}
    write(folder, {"top/.reconcileignore": "below/\n"})
    assert labels() == {"web": "b"}


def test_a_broken_file_is_told_by_its_line_and_the_others_are_changed_all_the_same(renderer, folder):
    write(
        folder,
        {"top/web.yaml": WEB, "top/broken.yaml": "apiVersion: v1\nkind: [\n", "top/over/kustomization.yaml": "{}\n"},
    )
    found = ours(renderer, folder / "top", {"namePrefix": "p-"})
    assert [each.ref.name for each in found.manifests] == ["p-web"]
    assert {each.path for each in found.problems} == {"broken.yaml", "over/kustomization.yaml"}
    assert set(found.revision.unrendered) == {"", "over"}


def test_what_a_chart_draws_is_kept_through_a_patch(renderer, folder):
    secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {a: "{{ randAlphaNum 9 }}"}\n'
    write(folder, {**LAYOUTS["a chart"], "top/templates/key.yaml": secret})
    found = ours(renderer, folder / "top", {"namePrefix": "p-", "patches": [REPLICAS]})
    assert {each.ref.name: bool(each.drawn) for each in found.manifests} == {"p-key": True, "p-web": False}
