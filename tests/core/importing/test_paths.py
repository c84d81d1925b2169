"""Words of other tools about fields, in ours."""

import pytest

from kubectl_reconcile.core.importing.paths import (
    cel_of_self,
    exact_version,
    image_of,
    is_range,
    path_of_jq,
    variable_type,
)
from kubectl_reconcile.core.ssa.ignore import IgnoreRule

JQ = {
    ".spec.replicas": ".spec.replicas",
    ".webhooks[]?.clientConfig.caBundle": ".webhooks[*].clientConfig.caBundle",
    ".spec.template.spec.containers[0].image": ".spec.template.spec.containers[*].image",
    '.metadata.annotations["example.com/x"]': '.metadata.annotations["example.com/x"]',
    '.data."tls.crt"': '.data["tls.crt"]',
    ".spec.ports[].nodePort": ".spec.ports[*].nodePort",
    '.a[] | select(.b == "c")': "",
    ".a[1:]": "",
    "": "",
}


@pytest.mark.parametrize(("text", "expected"), JQ.items(), ids=[each or "nothing" for each in JQ])
def test_plain_paths_of_jq(text, expected):
    assert path_of_jq(text) == expected
    if expected:
        IgnoreRule.parse(expected)


CEL = {
    "status.phase == 'ready'": "self.status.phase == 'ready'",
    "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')": "self.status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
    'has(spec.status) && data.kind == "status.x"': 'has(self.spec.status) && self.data.kind == "status.x"',
    "metadata.generation == status.observedGeneration": "self.metadata.generation == self.status.observedGeneration",
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CEL.items(), ids=CEL)
def test_expressions_over_fields_are_over_self(text, expected):
    assert cel_of_self(text) == expected


IMAGES = {
    "web:1.2": {"name": "web", "newTag": "1.2"},
    "web=registry.example.com:5000/web": {"name": "web", "newName": "registry.example.com:5000/web"},
    "web=registry.example.com/web:1.2@sha256:aa": {"name": "web", "newName": "registry.example.com/web", "newTag": "1.2", "digest": "sha256:aa"},
    "registry.example.com:5000/web@sha256:aa": {"name": "registry.example.com:5000/web", "digest": "sha256:aa"},
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), IMAGES.items(), ids=IMAGES)
def test_images_as_kustomize_writes_them(text, expected):
    assert image_of(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    {"3": "Integer", "1.5": "Number", "true": "Boolean", "007": None, "eu": None, "1e3": None}.items(),
)
def test_types_that_values_look_like(text, expected):
    assert variable_type(text) == expected


def test_versions_and_ranges():
    assert [exact_version(each) for each in ("1.2.3", "v1.2.3-rc.1", "1.2", "1.x", "*")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [is_range(each) for each in ("1.*", ">=1.0", "~1.2", "1.x", "v2.3.x", "main", "v1.2.3", "feature-x")] == [
        True
    ] * 5 + [False] * 3
