"""Sets of fields: the algebra's laws, and the server's spelling."""

import pytest
from hypothesis import given
from strategies import any_sets

from kubectl_reconcile.core.objects import FieldPath
from kubectl_reconcile.core.ssa.fieldset import FieldSet, key_element, value_element

PODS = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
    "f:spec": {
        "f:containers": {
            'k:{"name":"web"}': {
                ".": {},
                "f:image": {},
                "f:ports": {".": {}, 'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            }
        },
        "f:finalizers": {'v:"a"': {}, "v:1": {}, "v:true": {}},
        "f:list": {"i:0": {}, "i:11": {}, "i:2": {}},
    },
}


@given(any_sets, any_sets)
def test_union_has_what_either_has(one, other):
    assert set(one | other) == set(one) | set(other)


@given(any_sets, any_sets)
def test_intersection_has_what_both_have(one, other):
    assert set(one & other) == set(one) & set(other)


@given(any_sets, any_sets)
def test_difference_has_what_the_other_lacks(one, other):
    assert set(one - other) == set(one) - set(other)


@given(any_sets, any_sets)
def test_recursive_difference_also_takes_what_is_below(one, other):
    left = one.recursive_difference(other)
    assert set(left) == {path for path in one if not any(path[: len(gone)] == gone for gone in other)}


@given(any_sets)
def test_leaves_have_nothing_below(one):
    paths = set(one)
    assert set(one.leaves()) == {
        path for path in paths if not any(len(p) > len(path) and p[: len(path)] == path for p in paths)
    }


@given(any_sets)
def test_the_wire_form_returns_the_same_set(one):
    assert FieldSet.of_wire(one.to_wire()) == one
    assert FieldSet.of(one) == one


@given(any_sets, any_sets)
def test_order_of_making_does_not_matter(one, other):
    assert one | other == other | one
    assert (one | other).to_wire() == (other | one).to_wire()


@given(any_sets)
def test_membership_is_what_iteration_says(one):
    assert all(path in one for path in one)
    assert len(one) == len(list(one))
    assert bool(one) == bool(len(one))


def test_it_reads_and_writes_the_servers_own_form():
    fields = FieldSet.of_wire(PODS)
    assert fields.to_wire() == PODS
    assert [list(fields.to_wire()["f:spec"][name]) for name in ("f:finalizers", "f:list")] == [
        ["v:1", 'v:"a"', "v:true"],
        ["i:0", "i:2", "i:11"],
    ]


def test_unknown_kinds_of_elements_are_dropped():
    assert FieldSet.of_wire({"f:a": {}, "x:later": {}}) == FieldSet.of_wire({"f:a": {}})


def test_elements_are_respelled_as_the_server_spells_them():
    assert FieldSet.of_wire({'k:{ "b":1.0, "a":"<" }': {}}) == FieldSet.of([('k:{"a":"\\u003c","b":1}',)])


SPELLINGS = {
    "text": ("web", 'v:"web"'),
    "quotes": ('a"b', 'v:"a\\"b"'),
    "markup, as Go escapes it": ("<&>", 'v:"\\u003c\\u0026\\u003e"'),
    "other alphabets as they are": ("ü", 'v:"ü"'),
    "line breaks": ("a\nb", 'v:"a\\nb"'),
    "whole numbers": (80, "v:80"),
    "floats without a fraction": (1.0, "v:1"),
    "floats": (1.5, "v:1.5"),
    "booleans": (True, "v:true"),
}


@pytest.mark.parametrize(("value", "element"), SPELLINGS.values(), ids=SPELLINGS)
def test_values_in_elements(value, element):
    assert value_element(value) == element


def test_keys_are_sorted_by_name():
    assert key_element([("protocol", "TCP"), ("containerPort", 80)]) == 'k:{"containerPort":80,"protocol":"TCP"}'


def test_prefix_queries():
    fields = FieldSet.of_wire(PODS)
    assert FieldSet.of([("f:app",)]) == fields.under(("f:metadata", "f:labels"))
    assert fields.covers(FieldPath.fields("metadata", "labels", "app"))
    assert not fields.covers(FieldPath.fields("spec", "replicas"))
