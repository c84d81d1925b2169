"""What a Sync says of patches, as users write it."""

import pytest

from kubectl_reconcile.core.resources.fields import SyncSpecError
from kubectl_reconcile.core.resources.kustomize import NO_KUSTOMIZE, KustomizeSpec
from kubectl_reconcile.core.resources.source import SourceSpec, chart_settings

GIT = {"url": "https://git.example.com/shop.git"}
SAID = {
    "components": ["../part"],
    "patches": [{"patch": "- {op: remove, path: /spec}", "target": {"kind": "Job"}, "options": {"allowNameChange": True}}],
    "images": [{"name": "web", "newName": "other", "newTag": "2"}],
    "commonMetadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "namePrefix": "p-",
    "nameSuffix": "-s",
}  # fmt: skip


def source(kustomize):
    return SourceSpec.of({"git": GIT, "kustomize": kustomize})


def test_all_of_it_is_told_as_it_was_said():
    assert source(SAID).kustomize.told() == SAID
    sync = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"source": {"git": GIT, "kustomize": SAID}}}
    assert source(SAID).told() == chart_settings(sync) == {"kustomize": SAID}


@pytest.mark.parametrize("said", [None, {}, {"patches": [], "commonMetadata": {}, "namePrefix": ""}])
def test_what_says_nothing_is_nothing(said):
    assert source(said).kustomize == NO_KUSTOMIZE
    assert source(said).told() == {}


def test_the_order_of_fields_makes_no_other_spec():
    patch = {"target": {"name": "a", "kind": "b"}, "patch": "x"}
    assert KustomizeSpec.of({"patches": [patch]}) == KustomizeSpec.of({"patches": [dict(reversed(patch.items()))]})


REFUSED = {
    "a field of kustomize's that isn't here": ({"replicas": []}, "replicas", "isn't known"),
    "a patch in a file": ({"patches": [{"path": "a.yaml"}]}, "patches[0].path", "make a component of the file"),
    "a patch without text": ({"patches": [{"target": {"kind": "Job"}}]}, "patches[0].patch", "is required"),
    "a patch that is no map": ({"patches": ["x"]}, "patches[0]", "isn't a map"),
    "a long patch": ({"patches": [{"patch": "x" * 40_000}]}, "patches[0].patch", "longer than 32 KiB"),
    "a target that isn't known": ({"patches": [{"patch": "x", "target": {"kin": "Job"}}]}, "patches[0].target.kin", "isn't known"),
    "an image that changes nothing": ({"images": [{"name": "web"}]}, "images[0]", "changes nothing"),
    "an image without a name": ({"images": [{"newTag": "1"}]}, "images[0].name", "is required"),
    "a tag that is a number": ({"images": [{"name": "web", "newTag": 1}]}, "images[0].newTag", "isn't a line of text"),
    "a label that is a number": ({"commonMetadata": {"labels": {"a": 1}}}, "commonMetadata.labels.a", "isn't text"),
    "a component of another repository": ({"components": ["https://git.example.com/x"]}, "components[0]", "a folder of the repository"),
    "an absolute component": ({"components": ["/etc"]}, "components[0]", "a folder of the repository"),
    "a prefix of two lines": ({"namePrefix": "a\nb"}, "namePrefix", "isn't a line of text"),
    "too many": ({"components": ["a"] * 101}, "components", "more than 100"),
    "no list": ({"patches": {}, "images": "x"}, "images", "isn't a list"),
    "an option that is text": ({"patches": [{"patch": "x", "options": {"allowKindChange": "yes"}}]}, "patches[0].options.allowKindChange", "true or false"),
}  # fmt: skip


@pytest.mark.parametrize(("said", "field", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_by_its_field(said, field, message):
    with pytest.raises(SyncSpecError, match=message) as caught:
        source(said)
    assert caught.value.field == f"spec.source.kustomize.{field}"


def test_a_chart_without_git_has_patches_and_no_components():
    chart = {
        "repository": "https://charts.example.com",
        "name": "web",
        "version": "1.2.3",
        "digest": "sha256:" + "a" * 64,
    }
    assert SourceSpec.of({"chart": chart, "kustomize": {"namePrefix": "p-"}}).kustomize.name_prefix == "p-"
    with pytest.raises(SyncSpecError) as caught:
        SourceSpec.of({"chart": chart, "kustomize": {"components": ["part"]}})
    assert caught.value.field == "spec.source.kustomize.components"
