"""What stands where: the value at a path, where two objects differ, and parts of an object."""

import copy

import pytest
from strategies import SCHEMA

from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.lookup import Difference, differences, extract, leaves_of, left_out, value_at
from kubectl_reconcile.core.ssa.typed import ABSENT

ROOT = SCHEMA.root
SPEC, ONE = "f:spec", 'k:{"port":1,"protocol":"TCP"}'
TWO = 'k:{"port":2,"protocol":"TCP"}'


def spec(**fields):
    return {"spec": fields}


# --- at a path ---

THINGS = spec(
    text="x",
    table={"a": "1"},
    atom={"a": "1"},
    plain=["a"],
    names=["a", "b"],
    ports=[{"port": 1, "name": "web"}, {"port": 2, "protocol": "TCP"}],
    free={"a": {"b": 1}, "c": [1]},
)
AT = {
    "the whole": ((), THINGS),
    "a field": ((SPEC, "f:text"), "x"),
    "an entry": ((SPEC, "f:table", "f:a"), "1"),
    "a part of an atomic map": ((SPEC, "f:atom", "f:a"), "1"),
    "an item of a set": ((SPEC, "f:names", 'v:"b"'), "b"),
    "an item, by its keys": ((SPEC, "f:ports", ONE), {"port": 1, "name": "web"}),
    "an item, by keys in another order": (
        (SPEC, "f:ports", 'k:{"protocol":"TCP","port":2}'),
        {"port": 2, "protocol": "TCP"},
    ),
    "a field of an item": ((SPEC, "f:ports", ONE, "f:name"), "web"),
    "what nobody describes": ((SPEC, "f:free", "f:a", "f:b"), 1),
}


@pytest.mark.parametrize(("path", "value"), AT.values(), ids=AT)
def test_there_stands(path, value):
    assert value_at(THINGS, path, ROOT) == value


NOWHERE = {
    "a field that isn't there": (SPEC, "f:size"),
    "an entry that isn't there": (SPEC, "f:table", "f:b"),
    "an item that isn't there": (SPEC, "f:ports", 'k:{"port":3,"protocol":"TCP"}'),
    "an item of a set that isn't there": (SPEC, "f:names", 'v:"c"'),
    "a field of a text": (SPEC, "f:text", "f:a"),
    "a field of a list": (SPEC, "f:ports", "f:port"),
    "an item of a map": (SPEC, "f:table", 'v:"1"'),
    "an item of an atomic list": (SPEC, "f:plain", 'v:"a"'),
    "an item by its place": (SPEC, "f:names", "i:0"),
    "an item of what nobody describes": (SPEC, "f:free", "f:c", "v:1"),
    "an item of a text": (SPEC, "f:text", 'v:"x"'),
}


@pytest.mark.parametrize("path", NOWHERE.values(), ids=NOWHERE)
def test_nothing_stands_at(path):
    assert value_at(THINGS, path, ROOT) is ABSENT


def test_what_a_field_that_nobody_knows_holds_is_found_but_nothing_in_it():
    assert value_at({"what": {"a": 1}}, ("f:what",), ROOT) == {"a": 1}


# --- differences ---

DIFFER = {
    "nothing": (spec(text="x", ports=[{"port": 1}]), spec(text="x", ports=[{"port": 1}]), []),
    "a value": (spec(text="x"), spec(text="y"), [((SPEC, "f:text"), "x", "y")]),
    "a field more": (spec(), spec(text="y"), [((SPEC, "f:text"), ABSENT, "y")]),
    "a field less": (spec(text="x"), spec(), [((SPEC, "f:text"), "x", ABSENT)]),
    "a whole part more, told once": (spec(), spec(table={"a": "1"}), [((SPEC, "f:table"), ABSENT, {"a": "1"})]),
    "an atomic map": (spec(atom={"a": "1"}), spec(atom={"b": "1"}), [((SPEC, "f:atom"), {"a": "1"}, {"b": "1"})]),
    "a plain list": (spec(plain=["a"]), spec(plain=["b"]), [((SPEC, "f:plain"), ["a"], ["b"])]),
    "an item more": (
        spec(ports=[{"port": 1}]),
        spec(ports=[{"port": 1}, {"port": 2}]),
        [((SPEC, "f:ports", TWO), ABSENT, {"port": 2})],
    ),
    "an item less": (
        spec(ports=[{"port": 1}, {"port": 2}]),
        spec(ports=[{"port": 2}]),
        [((SPEC, "f:ports", ONE), {"port": 1}, ABSENT)],
    ),
    "a field of an item": (
        spec(ports=[{"port": 1, "name": "a"}]),
        spec(ports=[{"port": 1, "name": "b"}]),
        [((SPEC, "f:ports", ONE, "f:name"), "a", "b")],
    ),
    "another order": (
        spec(names=["a", "b"]),
        spec(names=["b", "a"]),
        [((SPEC, "f:names"), ["a", "b"], ["b", "a"])],
    ),
    "items twice, as a whole": (
        spec(names=["a", "a"]),
        spec(names=["a"]),
        [((SPEC, "f:names"), ["a", "a"], ["a"])],
    ),
    "no items twice that are the same": (spec(names=["a", "a"]), spec(names=["a", "a"]), []),
    "a map that became a list": (
        spec(free={"a": {"b": 1}}),
        spec(free={"a": [1]}),
        [((SPEC, "f:free", "f:a"), {"b": 1}, [1])],
    ),
    "a field that nobody knows": ({"what": 1}, {"what": 2}, [(("f:what",), 1, 2)]),
    "a field that nobody knows and only one has": ({}, {"what": 2}, [(("f:what",), ABSENT, 2)]),
    "a field that nobody knows and both have alike": ({"what": [1]}, {"what": [1]}, []),
}


@pytest.mark.parametrize(("one", "other", "found"), DIFFER.values(), ids=DIFFER)
def test_they_differ_in(one, other, found):
    assert list(differences(one, other, ROOT)) == [Difference(*each) for each in found]


# --- leaves ---


def test_the_leaves_of_an_object_are_its_values_its_atoms_and_what_is_empty_in_it():
    value = spec(text="x", table={}, atom={"a": "1"}, names=["a"], ports=[{"port": 1}])
    assert list(leaves_of({**value, "what": {"a": 1}}, ROOT)) == [
        ((SPEC, "f:text"), "x"),
        ((SPEC, "f:table"), {}),
        ((SPEC, "f:atom"), {"a": "1"}),
        ((SPEC, "f:names", 'v:"a"'), "a"),
        ((SPEC, "f:ports", ONE, "f:port"), 1),
        (("f:what",), {"a": 1}),
    ]


# --- parts ---

PARTS = {
    "a field": ([(SPEC, "f:text")], spec(text="x")),
    "an entry": ([(SPEC, "f:table", "f:a")], spec(table={"a": "1"})),
    "an item of a set": ([(SPEC, "f:names", 'v:"b"')], spec(names=["b"])),
    "a field of an item, with the item's keys": (
        [(SPEC, "f:ports", ONE, "f:name")],
        spec(ports=[{"port": 1, "name": "web"}]),
    ),
    "an item, with no more than its keys": ([(SPEC, "f:ports", TWO)], spec(ports=[{"port": 2, "protocol": "TCP"}])),
    "an atomic map as a whole": ([(SPEC, "f:atom")], spec(atom={"a": "1"})),
    "what nobody describes": ([(SPEC, "f:free", "f:a", "f:b")], spec(free={"a": {"b": 1}})),
    "nothing": ([(SPEC, "f:size"), (SPEC, "f:ports", 'k:{"port":3,"protocol":"TCP"}')], ABSENT),
}


@pytest.mark.parametrize(("fields", "part"), PARTS.values(), ids=PARTS)
def test_taken_out_of_an_object_comes(fields, part):
    kept = copy.deepcopy(THINGS)
    assert extract(THINGS, FieldSet.of(fields), ROOT) == part
    assert kept == THINGS


LEFT = {
    "a field": (spec(text="x", size=1), [(SPEC, "f:text")], spec(size=1)),
    "the last field, with its object": (spec(text="x"), [(SPEC, "f:text")], ABSENT),
    "an entry": (spec(table={"a": "1", "b": "2"}), [(SPEC, "f:table", "f:a")], spec(table={"b": "2"})),
    "an item of a set": (spec(names=["a", "b"]), [(SPEC, "f:names", 'v:"a"')], spec(names=["b"])),
    "an item": (spec(ports=[{"port": 1}, {"port": 2}]), [(SPEC, "f:ports", ONE)], spec(ports=[{"port": 2}])),
    "a field of an item": (
        spec(ports=[{"port": 1, "name": "a"}]),
        [(SPEC, "f:ports", ONE, "f:name")],
        spec(ports=[{"port": 1}]),
    ),
    "a key of an item, which stays as long as it has anything": (
        spec(ports=[{"port": 1, "name": "a"}]),
        [(SPEC, "f:ports", ONE, "f:port")],
        spec(ports=[{"port": 1, "name": "a"}]),
    ),
    "nothing of what isn't there": (spec(text="x"), [(SPEC, "f:size")], spec(text="x")),
    "nothing of what nobody knows": ({"what": {"a": 1}}, [("f:what", "f:a")], {"what": {"a": 1}}),
}


@pytest.mark.parametrize(("value", "fields", "left"), LEFT.values(), ids=LEFT)
def test_left_out_is(value, fields, left):
    assert left_out(value, FieldSet.of(fields), ROOT) == left
