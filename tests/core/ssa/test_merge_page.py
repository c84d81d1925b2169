"""The examples of docs/merge.md are what the merge does."""

import re
from pathlib import Path

import pytest
from strategies import entry, living

from kubectl_reconcile.core.objects import FIELD_MANAGER
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import ConflictPolicy, three_way
from kubectl_reconcile.core.ssa.schema import schema_of_crd
from kubectl_reconcile.core.ssa.typed import fields_of
from tests import yaml_text

PAGE = Path(__file__).parents[3] / "docs/merge.md"
TEXT = {"type": "string"}
CONTAINER = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "image": TEXT}}
SPEC = {
    "image": TEXT,
    "replicas": {"type": "integer"},
    "labels": {"type": "object", "additionalProperties": TEXT},
    "args": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "atomic"},
    "containers": {
        "type": "array",
        "items": CONTAINER,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
}
OPEN_API = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}
CRD = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Thing"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": OPEN_API}}],
    },
}
SCHEMA = schema_of_crd(CRD, "v1")


def examples():
    sections = PAGE.read_text().split("\n## ")[1:]
    found = {part.partition("\n")[0]: re.search(r"```yaml\n(applied:.*?)```", part, re.DOTALL) for part in sections}
    return {title: yaml_text.document(block[1]) for title, block in found.items() if block}


EXAMPLES = examples()


def thing(spec):
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": spec}


def fields(spec):
    return fields_of(thing(spec), SCHEMA.root) - STRIPPED


def live_after(applied, others):
    """Return the object after we applied one and another manager wrote the other."""
    created = three_way(desired=thing(applied), live=None, schema=SCHEMA)
    if not others:
        return living(created.merged, entry(FIELD_MANAGER, created.owned))
    before = living(created.merged, entry(FIELD_MANAGER, created.owned))
    written = three_way(desired=thing(others), live=before, schema=SCHEMA, manager="somebody")
    lost = FieldSet.of(conflict.path for conflict in written.conflicts)
    ours = entry(FIELD_MANAGER, created.owned - lost)
    return living(written.merged, ours, entry("somebody", fields(others), operation="Update"))


def test_the_page_has_examples():
    assert len(EXAMPLES) > 6


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_an_example_is_merged_as_the_page_says(example):
    base = thing(example["applied"])
    live = live_after(example["applied"], example.get("others"))
    policy = ConflictPolicy[example.get("policy", "Override").upper()]
    made = three_way(desired=thing(example["git"]), live=live, schema=SCHEMA, base=base, policy=policy)
    assert made.merged["spec"] == example["result"]
    if policy is ConflictPolicy.OVERRIDE:
        assert [str(conflict.path) for conflict in made.conflicts] == example.get("conflicts", [])
