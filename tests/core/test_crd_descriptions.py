"""Every field that a user may set or read is explained by its CRD, and so by ``kubectl explain``."""

from pathlib import Path

import pytest

from tests import yaml_text

FILES = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))
STANDARD = {".apiVersion", ".kind", ".metadata"}


def unexplained(schema, path=""):
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        if not field.get("description") and here not in STANDARD:
            yield here
        yield from unexplained(field, here)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from unexplained(inner, f"{path}[]")


@pytest.mark.parametrize("file", FILES, ids=lambda each: each.stem)
def test_every_field_is_explained(file):
    versions = yaml_text.document(file.read_text())["spec"]["versions"]
    assert [field for each in versions for field in unexplained(each["schema"]["openAPIV3Schema"])] == []


def test_a_field_without_a_description_is_found_wherever_it_is():
    inner = {"properties": {"name": {"type": "string"}}}
    schema = {
        "properties": {"spec": {"description": "x", "properties": {"list": {"description": "x", "items": inner}}}}
    }
    assert list(unexplained(schema)) == [".spec.list[].name"]
