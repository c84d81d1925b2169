"""Values under a schema: what is refused, which fields are stated, what differs, what goes, and how two values merge."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import CRD, SCHEMA, objects

from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.lookup import value_at
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd
from kubectl_reconcile.core.ssa.typed import ABSENT, MergeError, compare, element_of, fields_of, remove, validate
from kubectl_reconcile.core.ssa.typed_merge import merge

ROOT = SCHEMA.root
PORT = '.spec.ports[port=%d,protocol="TCP"]'


def spec(**fields):
    return {"spec": fields}


def texts(fields):
    return [*map(str, fields)]


def paths(*found):
    return FieldSet.of(found)


# --- refused ---

REFUSED = {
    "a text for an object": ({"spec": "x"}, ".spec: expected an object, not a string"),
    "a list for an object": (spec(table=[]), ".spec.table: expected an object, not a list"),
    "a number for an object": (spec(table=3), ".spec.table: expected an object, not a number"),
    "a fraction for an object": (spec(table=0.5), ".spec.table: expected an object, not a number"),
    "a truth for an object": (spec(table=False), ".spec.table: expected an object, not true or false"),
    "a text for a list": (spec(plain="x"), ".spec.plain: expected a list, not a string"),
    "an object for a list": (spec(plain={}), ".spec.plain: expected a list, not an object"),
    "a list for a text": (spec(text=[]), ".spec.text: expected a string, not a list"),
    "an object for a text": (spec(text={}), ".spec.text: expected a string, not an object"),
    "a text for a number": (spec(size="3"), ".spec.size: expected a number, not a string"),
    "a text for a truth": (spec(flag="true"), ".spec.flag: expected true or false, not a string"),
    "a number for a truth": (spec(flag=1), ".spec.flag: expected true or false, not a number"),
    "a wrong value in a map": (spec(table={"a": 1}), ".spec.table.a: expected a string, not a number"),
    "a wrong item of a list": (spec(plain=["a", 1]), ".spec.plain[1]: expected a string, not a number"),
    "a wrong item of a set": (spec(names=["a", 1]), ".spec.names[=1]: expected a string, not a number"),
    "a wrong field of an item": (
        spec(ports=[{"port": 1, "name": 2}]),
        f"{PORT % 1}.name: expected a string, not a number",
    ),
    "an unknown field of an item": (spec(ports=[{"port": 1, "x": 2}]), f"{PORT % 1}.x: no such field in the schema"),
    "one text twice in a set": (spec(names=["a", "b", "a"]), '.spec.names[="a"]: two items with the same key'),
    "an object in a set": (spec(names=[{}]), ".spec.names[0]: a set holds only scalars"),
    "a list in a set": (spec(names=["a", []]), ".spec.names[1]: a set holds only scalars"),
    "an item that is a text": (spec(ports=["x"]), ".spec.ports[0]: an item must be an object with port, protocol"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_is(value, message):
    with pytest.raises(MergeError) as refused:
        validate(value, ROOT)
    assert str(refused.value) == message
    assert message == f"{refused.value.path}: {refused.value.message}"


ALLOWED = {
    "nulls anywhere": spec(text=None, size=None, table=None, plain=None, names=None, ports=None),
    "a null in a map": spec(table={"a": None}),
    "fractions": spec(size=0.5),
    "anything where nothing is described": spec(free={"a": [1, "x", {"b": None}], "c": True, "d": {}}),
    "the same text twice in a plain list": spec(plain=["a", "a"]),
    "two ports of different protocols": spec(ports=[{"port": 1}, {"port": 1, "protocol": "UDP"}]),
    "nothing": {},
}


@pytest.mark.parametrize("value", ALLOWED.values(), ids=ALLOWED)
def test_allowed_is(value):
    validate(value, ROOT)


def keyed(*keys, **defaults):
    """A list map with these keys."""
    fields = {name: {"type": "string", **({"default": defaults[name]} if name in defaults else {})} for name in keys}
    listed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [*keys],
        "items": {"type": "object", "properties": fields},
    }
    crd = copy.deepcopy(CRD)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"items": listed}
    return schema_of_crd(crd, "v1").root.map.type_at("spec").map.type_at("items").list


ELEMENTS = {
    "its key": (keyed("name"), {"name": "a"}, 'k:{"name":"a"}'),
    "all of its keys": (keyed("name", "zone"), {"zone": "z", "name": "a"}, 'k:{"name":"a","zone":"z"}'),
    "a default for an absent key": (keyed("name", zone="z"), {"name": "a"}, 'k:{"name":"a"}'),
    "the key that there is": (keyed("name", "zone"), {"name": "a"}, 'k:{"name":"a"}'),
    "a null key beside another": (keyed("name", "zone"), {"name": "a", "zone": None}, 'k:{"name":"a","zone":null}'),
    "a list as a key": (keyed("name"), {"name": ["a"]}, 'k:{"name":["a"]}'),
}


@pytest.mark.parametrize(("of", "item", "element"), ELEMENTS.values(), ids=ELEMENTS)
def test_an_item_is_addressed_by(of, item, element):
    assert element_of(item, of) == element


def test_an_item_without_any_of_its_keys_can_not_be_addressed():
    with pytest.raises(ValueError, match=r"^an item needs name or zone$"):
        element_of({"size": 1}, keyed("name", "zone"))


# --- stated fields ---

STATED = {
    "a field": (spec(text="x"), [".spec.text"]),
    "a null": (spec(text=None), [".spec.text"]),
    "an empty map is stated itself": (spec(table={}), [".spec.table"]),
    "entries of a map": (spec(table={"b": "1", "a": "2"}), [".spec.table.a", ".spec.table.b"]),
    "an atomic map as a whole": (spec(atom={"a": "1"}), [".spec.atom"]),
    "a plain list as a whole": (spec(plain=["a"]), [".spec.plain"]),
    "items of a set": (spec(names=["a"]), ['.spec.names[="a"]']),
    "an empty set not at all": (spec(names=[]), []),
    "items of a list, and what is in them": (spec(ports=[{"port": 1}]), [PORT % 1, f"{PORT % 1}.port"]),
    "what nobody describes, its containers too": (
        spec(free={"a": {"b": 1}}),
        [".spec.free.a", ".spec.free.a.b"],
    ),
    "an empty object": ({"spec": {}}, [".spec"]),
    "a null object": ({"spec": None}, [".spec"]),
    "nothing": ({}, []),
}


@pytest.mark.parametrize(("value", "fields"), STATED.values(), ids=STATED)
def test_stated_is(value, fields):
    assert texts(fields_of(value, ROOT)) == fields


def test_of_an_item_that_is_there_twice_only_the_item_is_owned():
    assert texts(fields_of(spec(ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]), ROOT)) == [PORT % 1]


# --- differences ---

NEVER = ([], [], [])
DIFFERENT = {
    "nothing": (spec(text="x"), spec(text="x"), *NEVER),
    "one and 1.0": (spec(size=1), spec(size=1.0), *NEVER),
    "a value": (spec(text="x"), spec(text="y"), [], [".spec.text"], []),
    "one and true": (spec(free={"a": 1}), spec(free={"a": True}), [], [".spec.free.a"], []),
    "a field more": (spec(), spec(text="x"), [], [], [".spec.text"]),
    "a field less": (spec(text="x"), spec(), [".spec.text"], [], []),
    "an entry more and one less": (
        spec(table={"a": "1"}),
        spec(table={"b": "1"}),
        [".spec.table.a"],
        [],
        [".spec.table.b"],
    ),
    "an atomic map": (spec(atom={"a": "1"}), spec(atom={"b": "1"}), [], [".spec.atom"], []),
    "an atomic map more": (spec(), spec(atom={"b": "1"}), [], [], [".spec.atom"]),
    "a plain list": (spec(plain=["a"]), spec(plain=["a", "b"]), [], [".spec.plain"], []),
    "a plain list less": (spec(plain=["a"]), spec(), [".spec.plain"], [], []),
    "an item of a set more": (spec(names=["a"]), spec(names=["a", "b"]), [], [], ['.spec.names[="b"]']),
    "another order of a set": (spec(names=["a", "b"]), spec(names=["b", "a"]), *NEVER),
    "an item more": (
        spec(ports=[]),
        spec(ports=[{"port": 1}]),
        [],
        [],
        [PORT % 1, f"{PORT % 1}.port"],
    ),
    "a field of an item": (
        spec(ports=[{"port": 1, "name": "a"}]),
        spec(ports=[{"port": 1, "name": "b"}]),
        [],
        [f"{PORT % 1}.name"],
        [],
    ),
    "an item less": (spec(ports=[{"port": 1}]), spec(ports=[]), [PORT % 1, f"{PORT % 1}.port"], [], []),
    "items twice that are the same": (spec(names=["a", "a"]), spec(names=["a", "a"]), *NEVER),
    "items twice that became others": (
        spec(ports=[{"port": 1, "name": "a"}, {"port": 1}]),
        spec(ports=[{"port": 1, "name": "b"}, {"port": 1}]),
        [],
        [PORT % 1],
        [],
    ),
    "an item twice that is there once by now": (
        spec(names=["a", "a"]),
        spec(names=["a"]),
        ['.spec.names[="a"]'],
        [],
        ['.spec.names[="a"]'],
    ),
    "an item twice that is gone": (spec(names=["a", "a"]), spec(), [".spec.names", '.spec.names[="a"]'], [], []),
    "an item once that is there twice by now": (
        spec(names=["a"]),
        spec(names=["a", "a"]),
        ['.spec.names[="a"]'],
        [],
        ['.spec.names[="a"]'],
    ),
    "an item that came twice": (spec(), spec(names=["a", "a"]), [], [], [".spec.names", '.spec.names[="a"]']),
    "a map that became a list": (
        spec(free={"a": {"b": 1}}),
        spec(free={"a": [1]}),
        [".spec.free.a.b"],
        [".spec.free.a"],
        [],
    ),
    "a list that became a map": (
        spec(free={"a": [1]}),
        spec(free={"a": {"b": 1}}),
        [],
        [".spec.free.a"],
        [".spec.free.a.b"],
    ),
    "a map that became a value": (
        spec(free={"a": {"b": 1}}),
        spec(free={"a": 1}),
        [".spec.free.a.b"],
        [".spec.free.a"],
        [],
    ),
    "a null that became a value": (spec(text=None), spec(text="x"), [], [".spec.text"], []),
    "an empty map that was filled": (spec(table={}), spec(table={"a": "1"}), [], [], [".spec.table.a"]),
    "a field that nobody knows": ({"what": 1}, {"what": 2}, *NEVER),
}


@pytest.mark.parametrize(("one", "other", "removed", "modified", "added"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is(one, other, removed, modified, added):
    found = compare(one, other, ROOT)
    assert texts(FieldSet(found.removed)) == removed
    assert texts(FieldSet(found.modified)) == modified
    assert texts(FieldSet(found.added)) == added
    assert found.changed == FieldSet(found.modified) | FieldSet(found.added)


@given(objects(), objects())
def test_looked_at_from_the_other_side_what_was_added_was_removed(one, other):
    forth, back = compare(one, other, ROOT), compare(other, one, ROOT)
    assert FieldSet(forth.modified) == FieldSet(back.modified)
    assert FieldSet(forth.added) == FieldSet(back.removed)


@given(objects())
def test_nothing_differs_from_itself(one):
    assert not compare(one, copy.deepcopy(one), ROOT).changed


# --- removing ---

SPEC = "f:spec"
REMOVED = {
    "a field": (spec(text="x", size=1), [(SPEC, "f:text")], spec(size=1)),
    "the last field of an object": (spec(text="x"), [(SPEC, "f:text")], {"spec": None}),
    "an entry of a map": (spec(table={"a": "1", "b": "2"}), [(SPEC, "f:table", "f:a")], spec(table={"b": "2"})),
    "an atomic map": (spec(atom={"a": "1"}, size=1), [(SPEC, "f:atom")], spec(size=1)),
    "a part of an atomic map": (spec(atom={"a": "1"}, size=1), [(SPEC, "f:atom", "f:a")], spec(atom=None, size=1)),
    "a part of a plain list": (spec(plain=["a"], size=1), [(SPEC, "f:plain", 'v:"a"')], spec(plain=None, size=1)),
    "an item of a set": (spec(names=["a", "b"]), [(SPEC, "f:names", 'v:"a"')], spec(names=["b"])),
    "the last item of a set": (spec(names=["a"]), [(SPEC, "f:names", 'v:"a"')], spec(names=None)),
    "an item": (
        spec(ports=[{"port": 1}, {"port": 2}]),
        [(SPEC, "f:ports", 'k:{"port":1,"protocol":"TCP"}')],
        spec(ports=[{"port": 2}]),
    ),
    "a field of an item": (
        spec(ports=[{"port": 1, "name": "a"}, {"port": 2}]),
        [(SPEC, "f:ports", 'k:{"port":1,"protocol":"TCP"}', "f:name")],
        spec(ports=[{"port": 1}, {"port": 2}]),
    ),
    "what isn't there": (spec(text="x"), [(SPEC, "f:size"), (SPEC, "f:table", "f:a")], spec(text="x")),
    "what is below a value": (spec(text="x"), [(SPEC, "f:text", "f:a")], spec(text="x")),
    "what is below a text that was to be an object": (
        spec(table="x", size=1),
        [(SPEC, "f:table", "f:a")],
        spec(table=None, size=1),
    ),
    "what is below a text that was to be a list": (
        spec(names="x", size=1),
        [(SPEC, "f:names", 'v:"a"')],
        spec(names=None, size=1),
    ),
    "what is below an empty map": (spec(table={}), [(SPEC, "f:table", "f:a")], spec(table=None)),
    "a field that nobody knows": ({"what": {"a": 1}}, [("f:what", "f:a")], {"what": {"a": 1}}),
    "everything": (spec(text="x"), [(SPEC,)], None),
}


@pytest.mark.parametrize(("value", "gone", "left"), REMOVED.values(), ids=REMOVED)
def test_what_is_left_without(value, gone, left):
    kept = copy.deepcopy(value)
    assert remove(value, paths(*gone), ROOT) == left
    assert value == kept


@given(objects())
def test_nothing_is_left_without_all_that_is_stated(value):
    left = remove(value, fields_of(value, ROOT), ROOT)
    assert left is None or _is_empty(left)


def _is_empty(left):
    return all(not value or _is_empty(value) for value in left.values()) if isinstance(left, dict) else not left


# --- merging ---

MERGED = {
    "a field": (spec(text="x"), spec(size=1), spec(text="x", size=1)),
    "a value that wins": (spec(text="x"), spec(text="y"), spec(text="y")),
    "a null that wins": (spec(text="x"), spec(text=None), spec(text=None)),
    "entries": (spec(table={"a": "1"}), spec(table={"b": "2"}), spec(table={"a": "1", "b": "2"})),
    "an empty map that takes nothing away": (spec(table={"a": "1"}), spec(table={}), spec(table={"a": "1"})),
    "an empty map over nothing": (spec(), spec(table={}), spec(table={})),
    "a null map over entries": (spec(table={"a": "1"}), spec(table=None), spec(table={"a": "1"})),
    "an atomic map that wins as a whole": (spec(atom={"a": "1"}), spec(atom={"b": "2"}), spec(atom={"b": "2"})),
    "an atomic map that stays": (spec(atom={"a": "1"}), spec(), spec(atom={"a": "1"})),
    "a plain list that wins as a whole": (spec(plain=["a"]), spec(plain=["b"]), spec(plain=["b"])),
    "an empty plain list that wins": (spec(plain=["a"]), spec(plain=[]), spec(plain=[])),
    "an empty set that takes nothing away": (spec(names=["a"]), spec(names=[]), spec(names=["a"])),
    "an empty set over nothing": (spec(), spec(names=[]), spec(names=[])),
    "an item more": (spec(names=["a"]), spec(names=["b"]), spec(names=["a", "b"])),
    "items in the order that is asked for": (spec(names=["a", "b"]), spec(names=["b", "a"]), spec(names=["b", "a"])),
    "an item of others before the next shared one": (
        spec(names=["x", "a", "y", "b"]),
        spec(names=["a", "b"]),
        spec(names=["x", "a", "y", "b"]),
    ),
    "an item of others at the end": (spec(names=["a", "x"]), spec(names=["a", "b"]), spec(names=["a", "x", "b"])),
    "an item of others among reordered ones": (
        spec(names=["a", "x", "b"]),
        spec(names=["b", "a"]),
        spec(names=["x", "b", "a"]),
    ),
    "a new item between shared ones": (
        spec(names=["a", "b"]),
        spec(names=["a", "n", "b"]),
        spec(names=["a", "n", "b"]),
    ),
    "a new item before shared ones": (spec(names=["a", "b"]), spec(names=["n", "a"]), spec(names=["n", "a", "b"])),
    "items that merge": (
        spec(ports=[{"port": 1, "name": "a"}, {"port": 2}]),
        spec(ports=[{"port": 2, "name": "b"}, {"port": 1}]),
        spec(ports=[{"port": 2, "name": "b"}, {"port": 1, "name": "a"}]),
    ),
    "a double that is replaced as a whole": (
        spec(ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]),
        spec(ports=[{"port": 1}]),
        spec(ports=[{"port": 1}]),
    ),
    "a double that stays": (spec(names=["a", "a"]), spec(names=["b"]), spec(names=["a", "a", "b"])),
    "a map over a list": (spec(free={"a": [1]}), spec(free={"a": {"b": 1}}), spec(free={"a": {"b": 1}})),
    "a list over a map": (spec(free={"a": {"b": 1}}), spec(free={"a": [1]}), spec(free={"a": [1]})),
    "a field that nobody knows": ({"what": 1}, {"what": 2}, {"what": 2}),
    "a field that nobody knows and only one has": (
        {"what": 1, **spec()},
        spec(text="x"),
        {"what": 1, **spec(text="x")},
    ),
}


@pytest.mark.parametrize(("held", "asked", "merged"), MERGED.values(), ids=MERGED)
def test_merging_in(held, asked, merged):
    kept = copy.deepcopy((held, asked))
    assert merge(held, asked, ROOT) == merged
    assert (held, asked) == kept


def test_merging_nothing_into_nothing_is_nothing():
    assert merge(ABSENT, ABSENT, ROOT) is ABSENT
    assert merge(spec(text="x"), ABSENT, ROOT) == spec(text="x")
    assert merge(ABSENT, spec(text="x"), ROOT) == spec(text="x")


@given(objects(), objects())
def test_a_merge_states_all_that_either_side_does(one, other):
    """But for objects stated empty: beside an empty set, which states nothing, they are not empty any more."""
    merged = fields_of(merge(one, other, ROOT), ROOT).leaves()
    stated = [path for path in fields_of(other, ROOT).leaves() if value_at(other, path, ROOT) != {}]
    assert all(merged.covers(path) or merged.under(path) for path in stated)
    assert not fields_of(merge(one, other, ROOT), ROOT).leaves() - (fields_of(one, ROOT) | fields_of(other, ROOT))


@given(objects(), objects())
def test_merging_the_same_in_again_changes_nothing(one, other):
    once = merge(one, other, ROOT)
    assert merge(once, other, ROOT) == once


@given(
    st.lists(st.sampled_from("abcdef"), unique=True, max_size=6),
    st.lists(st.sampled_from("abcdef"), unique=True, max_size=6),
)
def test_merged_items_stand_in_the_order_that_is_asked_for_and_none_is_lost(held, asked):
    merged = merge(spec(names=held), spec(names=asked), ROOT)["spec"]["names"]
    assert [item for item in merged if item in asked] == asked
    assert sorted(merged) == sorted({*held, *asked})
    alone = [item for item in held if item not in asked]
    assert [item for item in merged if item in alone] == alone


def test_where_the_schema_is_unknown_lists_are_replaced_and_maps_merge():
    held, asked = {"spec": {"a": [1], "b": 2}}, {"spec": {"a": [3]}}
    assert merge(held, asked, UNKNOWN.root) == {"spec": {"a": [3], "b": 2}}
