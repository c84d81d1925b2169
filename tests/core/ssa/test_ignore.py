"""Which fields a rule means that leaves them to others."""

import pytest

from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.ignore import IgnoreRule

REPLICAS = FieldPath.fields("spec", "replicas")
EXACT = {
    "a field": (REPLICAS, FieldPath.fields("spec", "strategy")),
    "a field of a list item": (
        FieldPath(("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name")),
        FieldPath(("f:spec", 'k:{"containerPort":80,"protocol":"UDP"}', "f:name")),
    ),
    "the item of a set": (
        FieldPath(("f:metadata", "f:finalizers", 'v:"a"')),
        FieldPath(("f:metadata", "f:finalizers", 'v:"b"')),
    ),
    "a name with dots": (FieldPath.fields("data", "a.b/c"), FieldPath.fields("data", "a", "b/c")),
}


@pytest.mark.parametrize(("path", "other"), EXACT.values(), ids=EXACT)
def test_a_rule_made_from_a_path_means_just_that_and_what_is_below(path, other):
    rule = IgnoreRule.at(path)
    assert rule.matches(path)
    assert rule.matches(FieldPath((*path, "f:below")))
    assert not rule.matches(other)
    assert not rule.matches(FieldPath(path[:-1]))
