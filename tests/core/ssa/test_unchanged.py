"""The hot path: a yes is final and must be true, a no costs no more than a closer look."""

import copy

import pytest
from hypothesis import given
from strategies import SCHEMA, entry, field_sets, living, objects

from kubectl_reconcile.core.objects import FIELD_MANAGER as US
from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.ignore import IgnoreRule
from kubectl_reconcile.core.ssa.managed_fields import STRIPPED
from kubectl_reconcile.core.ssa.merge import MergeError, Verdict, three_way
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schemas_of_document
from kubectl_reconcile.core.ssa.typed import fields_of
from kubectl_reconcile.core.ssa.unchanged import is_unchanged

TEXT = {"type": "string"}


def a_list_map(key, item):
    return {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key] if isinstance(key, str) else key,
    }


SPEC = {
    "text": TEXT,
    "flag": {"type": "boolean"},
    "size": {"type": "integer"},
    "inner": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
    "table": {"type": "object", "additionalProperties": TEXT},
    "tables": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": TEXT}},
    "atom": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
    "plain": {"type": "array", "items": TEXT},
    "names": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    "numbers": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
    "listed": {
        "type": "object",
        "additionalProperties": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    },
    "anything": {"type": "array", "items": {}, "x-kubernetes-list-type": "set"},
    "containers": a_list_map("name", {"type": "object", "properties": {"name": TEXT, "image": TEXT}}),
    "ports": a_list_map(
        ["port", "protocol"],
        {
            "type": "object",
            "properties": {
                "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"},
                "name": TEXT,
            },
        },
    ),
    "spread": a_list_map(
        ["key", "when"], {"type": "object", "properties": {"key": TEXT, "when": TEXT, "skew": {"type": "integer"}}}
    ),
    "mounts": a_list_map(
        "name", {"type": "object", "properties": {"name": TEXT, "path": TEXT}, "x-kubernetes-map-type": "atomic"}
    ),
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "limits": {
        "type": "object",
        "additionalProperties": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
    },
}
SCHEMAS = schemas_of_document(
    {
        "paths": {},
        "components": {
            "schemas": {
                "io.k8s.apimachinery.pkg.api.resource.Quantity": TEXT,
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
                    "type": "object",
                    "properties": {
                        **dict.fromkeys(["name", "namespace", "generateName", "resourceVersion"], TEXT),
                        "labels": {"type": "object", "additionalProperties": TEXT},
                    },
                },
                "io.k8s.api.core.v1.Pod": {
                    "type": "object",
                    "properties": {
                        "apiVersion": TEXT,
                        "kind": TEXT,
                        "metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                        "spec": {"type": "object", "properties": SPEC},
                    },
                    "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
                },
            }
        },
    }
)
(POD,) = SCHEMAS.values()


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec}


def stated(manifest, schema=POD):
    """What is ours once *manifest* was applied, as managedFields spell it."""
    return (fields_of(manifest, schema.root) - STRIPPED).to_wire()


def held(manifest):
    """*manifest* as the server holds it."""
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7", "managedFields": []}}


# --- a yes ---

EVERYTHING = pod(
    text="x",
    flag=True,
    size=2,
    inner={"a": "1"},
    table={"a": "1"},
    tables={"a": {"b": "1"}},
    atom={"a": "1"},
    plain=["b", "a"],
    names=["b", "a"],
    numbers=[2, 1],
    containers=[{"name": "web", "image": "nginx"}, {"name": "log"}],
    ports=[{"port": 80}, {"port": 80, "protocol": "UDP", "name": "dns"}],
    spread=[{"key": "zone", "when": "now", "skew": 1}, {"key": "zone", "when": "later"}],
    mounts=[{"name": "data", "path": "/data"}],
    free={"a": 1, "b": [1, {"c": 2}], "d": {"e": "f"}},
    limits={"cpu": "1"},
)
YES = {
    "what is live as it is stated": (EVERYTHING, EVERYTHING),
    "what has more live, which others own": (
        pod(inner={"a": "1"}, table={"a": "1"}, names=["a"], containers=[{"name": "web", "image": "nginx"}]),
        pod(
            text="x",
            inner={"a": "1", "b": "2"},
            table={"a": "1", "b": "2"},
            names=["b", "a"],
            containers=[{"name": "sidecar"}, {"name": "web", "image": "nginx"}],
        ),
    ),
    "a set of what nobody describes": (pod(anything=["a", 1, True]), pod(anything=["a", 1, True])),
    "an empty map": (pod(table={}), pod(table={})),
    "an empty map within a map": (pod(tables={"a": {}}), pod(tables={"a": {}})),
    "one that is live as 1.0": (pod(size=1), pod(size=1.0)),
    "a quantity that the server respelled": (pod(limits={"cpu": "1000m"}), pod(limits={"cpu": "1"})),
    "a default that the server filled into a key": (
        pod(ports=[{"port": 80, "name": "web"}]),
        pod(ports=[{"port": 80, "protocol": "TCP", "name": "web"}]),
    ),
    "items that follow one another as asked, others' between them": (
        pod(names=["a", "b"]),
        pod(names=["x", "a", "y", "b", "z"]),
    ),
    "a status, which is somebody else's": (pod(text="x"), {**pod(text="x"), "status": {"phase": "Running"}}),
    "no labels": ({**pod(text="x"), "metadata": {"name": "web"}}, pod(text="x")),
    "a namespace that only live says": (
        pod(text="x"),
        {**pod(text="x"), "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}}},
    ),
}


@pytest.mark.parametrize(("desired", "live"), YES.values(), ids=YES)
def test_a_yes_for(desired, live):
    before = copy.deepcopy((desired, live))
    assert is_unchanged(desired, held(live), stated(desired), POD)
    assert (desired, live) == before


def test_a_yes_for_an_object_of_which_we_state_nothing_but_its_name():
    desired = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    assert is_unchanged(desired, held(pod(text="x")), {}, POD)


def test_a_yes_for_names_and_a_namespace_which_nobody_owns():
    desired = {**pod(text="x"), "metadata": {"name": "web", "namespace": "shop"}}
    assert stated(desired) == {"f:spec": {"f:text": {}}}
    assert is_unchanged(desired, held(desired), stated(desired), POD)


# --- a no: live says otherwise ---

OTHERWISE = {
    "a text": (pod(text="x"), pod(text="y")),
    "a text that is gone": (pod(text="x"), pod(size=1)),
    "a null live": (pod(text="x"), pod(text=None)),
    "a number that is a text live": (pod(size=1), pod(size="1")),
    "true that is one live": (pod(flag=True), pod(flag=1)),
    "one that is true live": (pod(size=1), pod(size=True)),
    "a label": (pod(), {**pod(), "metadata": {"name": "web", "labels": {"app": "api"}}}),
    "a field of an object": (pod(inner={"a": "1"}), pod(inner={"a": "2"})),
    "an entry of a map": (pod(table={"a": "1", "b": "2"}), pod(table={"a": "1", "b": "3"})),
    "an entry of a map of maps": (pod(tables={"a": {"b": "1"}}), pod(tables={"a": {"b": "2"}})),
    "an object that is a text live": (pod(inner={"a": "1"}), pod(inner="a")),
    "an object that is a list live": (pod(free={"a": {"b": 1}}), pod(free={"a": [1]})),
    "a list that is an object live": (pod(free={"a": [1]}), pod(free={"a": {"b": 1}})),
    "an atomic map with an entry more": (pod(atom={"a": "1"}), pod(atom={"a": "1", "b": "2"})),
    "an empty atomic map that isn't empty live": (pod(atom={}), pod(atom={"a": "1"})),
    "an empty map that others filled": (pod(table={}), pod(table={"a": "1"})),
    "an empty map that is gone": (pod(table={}), pod()),
    "another order of an atomic list": (pod(plain=["a", "b"]), pod(plain=["b", "a"])),
    "an atomic list with an item more": (pod(plain=["a"]), pod(plain=["a", "b"])),
    "another order of a set": (pod(names=["a", "b"]), pod(names=["b", "a"])),
    "another order of a set, others' items between": (pod(names=["a", "b"]), pod(names=["x", "b", "a"])),
    "an item of a set that is gone": (pod(names=["a", "b"]), pod(names=["a", "c"])),
    "an item that is there twice live": (pod(names=["a"]), pod(names=["a", "a"])),
    "an item of a set that is a list live": (pod(names=["a"]), pod(names=["a", ["b"]])),
    "one in a set that is true live": (pod(numbers=[1]), pod(numbers=[True])),
    "an item of a list map that is gone": (
        pod(containers=[{"name": "web"}, {"name": "log"}]),
        pod(containers=[{"name": "web"}]),
    ),
    "an item with another key": (pod(containers=[{"name": "web"}]), pod(containers=[{"name": "log"}])),
    "an item with another value for one of its keys": (
        pod(ports=[{"port": 80, "protocol": "UDP"}]),
        pod(ports=[{"port": 80, "protocol": "TCP"}]),
    ),
    "a field of an item": (
        pod(containers=[{"name": "web", "image": "nginx:1"}]),
        pod(containers=[{"name": "web", "image": "nginx:2"}]),
    ),
    "an item that is a text live": (pod(containers=[{"name": "web"}]), pod(containers=[{"name": "web"}, "x"])),
    "an item with a list for its key live": (
        pod(ports=[{"port": 80}]),
        pod(ports=[{"port": 80, "protocol": ["TCP"]}]),
    ),
    "an atomic item": (
        pod(mounts=[{"name": "data", "path": "/data"}]),
        pod(mounts=[{"name": "data", "path": "/srv"}]),
    ),
    "another amount": (pod(limits={"cpu": "2000m"}), pod(limits={"cpu": "1"})),
    "an empty set": (pod(names=[]), pod(names=["a"])),
    "another kind": (pod(text="x"), {**pod(text="x"), "kind": "Job"}),
    "another version": (pod(text="x"), {**pod(text="x"), "apiVersion": "v2"}),
}


@pytest.mark.parametrize(("desired", "live"), OTHERWISE.values(), ids=OTHERWISE)
def test_a_no_where_live_has_another(desired, live):
    assert not is_unchanged(desired, held(live), stated(desired), POD)


# --- a no: we own something else ---

NOT_QUITE_OURS = {
    "nothing at all yet": (pod(text="x"), {}),
    "a field that we state no longer": (pod(text="x"), pod(text="x", size=1)),
    "a label that we state no longer": (
        pod(text="x"),
        {**pod(text="x"), "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}}},
    ),
    "all labels, of which we state none": ({**pod(text="x"), "metadata": {"name": "web"}}, pod(text="x")),
    "a field of an object that we state no longer": (pod(inner={"a": "1"}), pod(inner={"a": "1", "b": "2"})),
    "an entry that we state no longer": (pod(table={"a": "1"}), pod(table={"a": "1", "b": "2"})),
    "an entry of a map of maps that we state no longer": (
        pod(tables={"a": {"b": "1"}}),
        pod(tables={"a": {"b": "1", "c": "2"}}),
    ),
    "an item of a set that we state no longer": (pod(names=["a"]), pod(names=["a", "b"])),
    "an item of a list map that we state no longer": (
        pod(containers=[{"name": "web"}]),
        pod(containers=[{"name": "web"}, {"name": "log"}]),
    ),
    "a field of an item that we state no longer": (
        pod(containers=[{"name": "web"}]),
        pod(containers=[{"name": "web", "image": "nginx"}]),
    ),
    "one field less than we state": (pod(text="x", size=1), pod(text="x")),
    "one field instead of another": (pod(text="x"), pod(size=1)),
    "one label less than we state": (pod(text="x"), {**pod(text="x"), "metadata": {"name": "web"}}),
    "one item less than we state": (pod(names=["a", "b"]), pod(names=["a"])),
    "one item instead of another": (pod(names=["a"]), pod(names=["b"])),
    "an item without a field of it that we state": (
        pod(containers=[{"name": "web", "image": "nginx"}]),
        pod(containers=[{"name": "web"}]),
    ),
}


@pytest.mark.parametrize(("desired", "applied"), NOT_QUITE_OURS.values(), ids=NOT_QUITE_OURS)
def test_a_no_where_we_own(desired, applied):
    live = held(pod(text="x", size=1, inner={"a": "1", "b": "2"}, table={"a": "1", "b": "2"}, names=["a", "b"]))
    live["spec"] |= {"tables": {"a": {"b": "1", "c": "2"}}, "containers": [{"name": "web", "image": "nginx"}]}
    live["metadata"]["labels"] = {"app": "web", "tier": "front"}
    assert is_unchanged(desired, live, stated(desired), POD)  # all of it is live; only the owners tell the two apart
    assert not is_unchanged(desired, live, stated(applied) if applied else {}, POD)


def ours(*found):
    """We own these fields, and the label."""
    label = ("f:metadata", "f:labels", "f:app")
    return FieldSet.of([label, *(("f:spec", *path) for path in found)]).to_wire()


WEB = 'k:{"name":"web"}'
OWNED_IN_ANOTHER_SHAPE = {
    "something below a text": (pod(text="x"), ours(("f:text", "f:a"))),
    "something within an atomic map": (pod(atom={"a": "1"}), ours(("f:atom", "f:a"))),
    "something within an atomic list": (pod(plain=["a"]), ours(("f:plain", 'v:"a"'))),
    "something within an empty map": (pod(table={}), ours(("f:table", "f:a"))),
    "an object itself, beside what is in it": (pod(inner={"a": "1"}), ours(("f:inner",), ("f:inner", "f:a"))),
    "a map itself, beside what is in it": (pod(table={"a": "1"}), ours(("f:table",), ("f:table", "f:a"))),
    "a set itself, beside what is in it": (pod(names=["a"]), ours(("f:names",), ("f:names", 'v:"a"'))),
    "a set that a map holds, whose own name is owned": (pod(listed={"a": ["b"]}), ours(("f:listed", "f:a", 'v:"b"'))),
    "what is in an undeclared map, but not the map": (pod(tables={"a": {"b": "1"}}), ours(("f:tables", "f:a", "f:b"))),
    "what is in an item, but not the item": (
        pod(containers=[{"name": "web"}]),
        ours(("f:containers", WEB, "f:name")),
    ),
    "something below an item of a set": (pod(names=["a"]), ours(("f:names", 'v:"a"', "f:b"))),
    "something within an atomic item": (
        pod(mounts=[{"name": "web", "path": "/"}]),
        ours(("f:mounts", WEB), ("f:mounts", WEB, "f:name")),
    ),
}


@pytest.mark.parametrize(("desired", "owned"), OWNED_IN_ANOTHER_SHAPE.values(), ids=OWNED_IN_ANOTHER_SHAPE)
def test_a_no_where_an_older_schema_left_us(desired, owned):
    assert not is_unchanged(desired, held(desired), owned, POD)


# --- a no: it is unusual ---

UNUSUAL = {
    "a null": (pod(text=None), ours(("f:text",))),
    "a null in a map": (pod(table={"a": None}), ours(("f:table", "f:a"))),
    "an empty list": (pod(plain=[]), ours(("f:plain",))),
    "an empty set": (pod(names=[]), ours(("f:names",))),
    "an item twice": (pod(names=["a", "a"]), ours(("f:names", 'v:"a"'))),
    "an item that isn't an object": (pod(containers=["web"]), ours(("f:containers", WEB))),
    "a list in a set": (pod(names=[["a"]]), ours(("f:names", 'v:["a"]'))),
    "an item with an object for its key": (
        pod(containers=[{"name": {"a": "b"}}]),
        ours(("f:containers", 'k:{"name":{"a":"b"}}'), ("f:containers", 'k:{"name":{"a":"b"}}', "f:name")),
    ),
    "a field that the schema doesn't know": (pod(what="x"), ours(("f:what",))),
    "an object where the schema has a text": (pod(text={"a": "1"}), ours(("f:text", "f:a"))),
    "a list where the schema has a text": (pod(text=["a"]), ours(("f:text",))),
    "a text where the schema has an object": (pod(inner="a"), ours(("f:inner",))),
    "a text where the schema has a list": (pod(names="a"), ours(("f:names",))),
}


@pytest.mark.parametrize(("desired", "owned"), UNUSUAL.values(), ids=UNUSUAL)
def test_a_no_for(desired, owned):
    assert not is_unchanged(desired, held(desired), owned, POD)


BARE = {
    "whose metadata isn't an object": {"type": "object", "properties": {"metadata": TEXT}},
    "that isn't an object": {"type": "array", "items": TEXT},
}


@pytest.mark.parametrize("described", BARE.values(), ids=BARE)
def test_a_no_for_a_kind(described):
    gvk = {"group": "", "version": "v1", "kind": "Pod"}
    document = {"io.k8s.api.core.v1.Pod": {**described, "x-kubernetes-group-version-kind": [gvk]}}
    (schema,) = schemas_of_document({"paths": {}, "components": {"schemas": document}}).values()
    assert not is_unchanged(pod(), held(pod()), stated(pod()), schema)


def test_a_no_where_the_schema_is_unknown():
    assert not is_unchanged(pod(text="x"), held(pod(text="x")), stated(pod(text="x")), UNKNOWN)


def test_an_item_that_git_states_twice_is_refused_though_live_holds_it_twice_and_we_own_it():
    """The server refuses it too; somebody else's update may hold it, of whom it asks no set."""
    owned = FieldSet.of([("f:spec", "f:names", 'v:"a"'), ("f:spec", "f:names", 'v:"b"')])
    for twice in (["a", "a"], ["a", "b", "a"]):
        desired = {
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "one"},
            "spec": {"names": twice},
        }
        with pytest.raises(MergeError, match="two items with the same key"):
            three_way(desired=desired, live=living(desired, entry(US, owned)), schema=SCHEMA)


# --- laws ---

NO_RULE = [IgnoreRule.parse("/spec/nothing")]
"""A rule that ignores no field; a merge with rules always looks closely."""


@given(objects(), objects(), field_sets)
def test_a_yes_is_what_a_closer_look_says_too(desired, other, theirs):
    for live in (desired, other):
        created = three_way(desired=live, live=None, schema=SCHEMA)
        found = living(created.merged, entry(US, created.owned), entry("m1", theirs))
        if is_unchanged(desired, found, created.owned.to_wire(), SCHEMA):
            closer = three_way(desired=desired, live=found, schema=SCHEMA, ignores=NO_RULE)
            assert (closer.verdict, closer.changes) == (Verdict.SAME, ())


@given(objects())
def test_what_was_just_applied_needs_no_closer_look(manifest):
    """But for what is unusual: a null, an empty container, and what nobody describes."""
    spec = {name: value for name, value in manifest["spec"].items() if value not in (None, [], {}) and name != "free"}
    desired = {**manifest, "metadata": {"name": "one", "labels": {"a": "b"}}, "spec": {**spec, "text": "x"}}
    created = three_way(desired=desired, live=None, schema=SCHEMA)
    assert is_unchanged(desired, living(created.merged), created.owned.to_wire(), SCHEMA)
