"""What is proposed so that an overlay asks for a value of the cluster, and what proves that it does."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.manifests.editing import Edit
from kubectl_reconcile.core.manifests.parse import Located
from kubectl_reconcile.core.objects import FieldPath, ObjectRef
from kubectl_reconcile.core.rendering.accepting import Accepting, why_not_proved
from kubectl_reconcile.core.rendering.entries import BuildStep
from kubectl_reconcile.core.rendering.origins import OWN, ObjectTrace, Origins, TracedField, Traces
from kubectl_reconcile.core.rendering.rendered import RenderedObject, Rendering
from kubectl_reconcile.core.ssa.schema import UNKNOWN
from kubectl_reconcile.core.ssa.typed import ABSENT

OWNED = "prod/kustomization.yaml"
WEB = ObjectRef("apps", "Deployment", "", "web")
LIVE = WEB._replace(namespace="shop")
MANIFEST = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"image": "web:1", "replicas": 1},
}
IMAGE, REPLICAS = FieldPath(("f:spec", "f:image")), FieldPath(("f:spec", "f:replicas"))
PATCH = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 7}\n"
STEPS = (
    BuildStep("ImageTagTransformer", "prod", {"imageTag": {"name": "web", "newTag": "1", "digest": "a"}}),
    BuildStep("ReplicaCountTransformer", "base", {"replica": {"name": "web", "count": 1}}),
    BuildStep("PatchTransformer", "prod", {"path": "patch.yaml"}),
)
KUSTOMIZATION = "resources: [../base]\nimages: [{name: web, newTag: '1', digest: a}]\npatches: [{path: patch.yaml}]\n"


def proposals(path, value, *by, kustomization=KUSTOMIZATION, patch=PATCH):
    files = {
        OWNED: kustomization.encode(),
        "prod/patch.yaml": patch.encode(),
        "base/kustomization.yaml": b"replicas: [{name: web, count: 1}]\n",
    }
    steps = tuple(element[2:] for element in path)
    trace = ObjectTrace(WEB, WEB, (TracedField(steps, steps, by),))
    rendering = Rendering((RenderedObject("", "base/web.yaml"),), (), {})
    origins = Origins(Traces(rendering, (trace,), STEPS, files))
    edit = Edit(LIVE, path, value, UNKNOWN.root)
    way = Accepting("prod", origins, 0, Located.of(MANIFEST, "base/web.yaml", -1), steps, edit)
    return [{name: data.decode() for name, data in each.files.items()} for each in way.proposals()]


IMAGES = {
    "another tag": ("web:2", "{name: web, newTag: '2'}"),
    "a digest": ("web@sha256:b", "{name: web, digest: sha256:b}"),
    "another name, with a port": ("r:5000/web", "{name: web, newName: r:5000/web}"),
    "all of it": ("r:5000/web:2@sha256:b", "{name: web, newTag: '2', digest: sha256:b, newName: r:5000/web}"),
}


@pytest.mark.parametrize(("image", "entry"), IMAGES.values(), ids=IMAGES)
def test_an_image_is_an_entry_of_images(image, entry):
    assert proposals(IMAGE, image, OWN, 0)[0][OWNED].splitlines()[1] == f"images: [{entry}]"


def test_the_line_that_owns_a_field_comes_first_then_a_patch_then_a_new_one_then_operations():
    found = proposals(REPLICAS, 9, OWN, 2)
    assert found[0] == found[1] == {"prod/patch.yaml": PATCH.replace("7", "9")}
    assert list(found[2]) == ["prod/accepted-deployment-web.yaml", OWNED]
    assert (
        found[3]["prod/accepted-deployment-web-operations.yaml"]
        == "- op: replace\n  path: /spec/replicas\n  value: 9\n"
    )
    assert (
        "{path: accepted-deployment-web-operations.yaml, target: {group: apps, kind: Deployment, name: web}}"
        in found[3][OWNED]
    )


def test_what_a_base_owns_stays_there():
    found = proposals(REPLICAS, 9, OWN, 1)
    assert all("base/kustomization.yaml" not in each for each in found)
    assert found[0] == {"prod/patch.yaml": PATCH.replace("7", "9")}


def test_a_kustomization_that_cannot_be_read_has_no_proposals():
    assert proposals(REPLICAS, 9, OWN, kustomization="[]\n", patch="- x\n") == []


def test_what_is_gone_is_taken_out_or_said_to_be_gone():
    first, second, new, operations = proposals(REPLICAS, ABSENT, OWN)
    assert first == {"prod/patch.yaml": PATCH.replace("replicas: 7", "")}
    assert second == {"prod/patch.yaml": PATCH.replace("replicas: 7", "replicas: null")}
    assert new["prod/accepted-deployment-web.yaml"].endswith("spec:\n  replicas:\n")
    assert operations["prod/accepted-deployment-web-operations.yaml"] == "- op: remove\n  path: /spec/replicas\n"


def rendering(*texts):
    return Rendering(tuple(RenderedObject(text, "a.yaml") for text in texts), (), {})


WEB_TEXT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {{image: 'web:1', replicas: {}}}\n"
OTHER_TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {}}}\n"
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
PROOFS = {
    "it is so": ((WEB_TEXT.format(9), OTHER_TEXT.format("b")), ""),
    "another order": ((OTHER_TEXT.format("b"), WEB_TEXT.format(9)), ""),
    "another value": ((WEB_TEXT.format(8), OTHER_TEXT.format("b")), ".spec.replicas would not get that value"),
    "another object changes": ((WEB_TEXT.format(9), OTHER_TEXT.format("c")), "ConfigMap a would change too"),
    "one more": ((WEB_TEXT.format(9), OTHER_TEXT.format("b"), OTHER_TEXT.format("b").replace("name: a", "name: b")), "it would render to more or fewer objects"),
    "one less": ((WEB_TEXT.format(9),), "it would render to more or fewer objects"),
    "one that is none": ((WEB_TEXT.format(9), "kind: A\n"), "no apiVersion"),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "why"), PROOFS.values(), ids=PROOFS)
def test_only_what_was_accepted_may_change(texts, why):
    edit = Edit(LIVE, REPLICAS, 9, UNKNOWN.root)
    assert why_not_proved([MANIFEST, OTHER], rendering(*texts), edit, "shop") == why
