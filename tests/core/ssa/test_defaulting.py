"""What the server does to an object before it stores it: Go's types, a custom resource's nulls and defaults, folded fields."""

import copy

import pytest
from hypothesis import given
from strategies import CRD, SCHEMA, objects

from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.defaulting import settled, softly_same, zero_value
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd, schemas_of_document

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
KINDS = {
    ("", "Secret"): {"data": {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}},
    ("apps", "Deployment"): {
        "spec": {
            "type": "object",
            "required": ["replicas"],
            "properties": {
                "replicas": NUMBER,
                "name": TEXT,
                "since": {"type": "string", "format": "date-time"},
                "selector": {"type": "object", "additionalProperties": TEXT},
                "limits": {"type": "object", "additionalProperties": {"$ref": f"#/components/schemas/{QUANTITY}"}},
                "names": {"type": "array", "items": TEXT},
                "times": {"type": "array", "items": {"type": "string", "format": "date-time"}},
                "template": {"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/PodSpec"}}},
                "strategy": {"type": "object", "default": {}, "properties": {"type": TEXT}},
                "free": {},
                "plain": {"type": "object"},
            },
        }
    },
    ("", "Pod"): {"spec": {"$ref": "#/components/schemas/PodSpec"}},
    ("", "PodTemplate"): {
        "template": {"type": "object", "properties": {"spec": {"$ref": "#/components/schemas/PodSpec"}}}
    },
    ("batch", "CronJob"): {"spec": {"type": "object", "additionalProperties": {}}},
    ("batch", "Job"): {"spec": {"type": "object", "additionalProperties": {}}},
    ("apps", "StatefulSet"): {"spec": {"type": "object", "additionalProperties": {}}},
    ("apps", "DaemonSet"): {"spec": {"type": "object", "additionalProperties": {}}},
    ("apps", "ReplicaSet"): {"spec": {"type": "object", "additionalProperties": {}}},
    ("", "ReplicationController"): {"spec": {"type": "object", "additionalProperties": {}}},
}
POD_SPEC = {
    "type": "object",
    "properties": {"serviceAccount": TEXT, "serviceAccountName": TEXT, "hostNetwork": {"type": "boolean"}},
}
DOCUMENT = {
    "paths": {},
    "components": {
        "schemas": {
            "PodSpec": POD_SPEC,
            QUANTITY: TEXT,
            **{
                f"io.k8s.api.{kind}": {
                    "type": "object",
                    "properties": {"stringData": {"type": "object", "additionalProperties": TEXT}, **properties},
                    "x-kubernetes-group-version-kind": [{"group": group, "version": "v1", "kind": kind}],
                }
                for (group, kind), properties in KINDS.items()
            },
        }
    },
}
SCHEMAS = schemas_of_document(DOCUMENT)


def schema(group, kind):
    return SCHEMAS[GroupVersionKind(group, "v1", kind)]


DEPLOYMENT = schema("apps", "Deployment")


def deployed(**spec):
    return settled({"spec": spec}, DEPLOYMENT)["spec"]


STORED = {
    "a quantity in its canonical spelling": ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}),
    "a number for a quantity as text": ({"limits": {"cpu": 1.5}}, {"limits": {"cpu": "1500m"}}),
    "a time in UTC": ({"since": "2026-01-01T02:00:00+02:00"}, {"since": "2026-01-01T00:00:00Z"}),
    "times within a list": ({"times": ["2026-01-01T02:00:00+02:00"]}, {"times": ["2026-01-01T00:00:00Z"]}),
    "a null in no optional field": ({"name": None, "replicas": 1}, {"replicas": 1}),
    "a null in a required field": ({"replicas": None}, {"replicas": None}),
    "an empty text as it is": ({"name": ""}, {"name": ""}),
    "a zero as it is": ({"replicas": 0}, {"replicas": 0}),
    "an empty list not at all": ({"names": []}, {}),
    "an empty map not at all": ({"selector": {}}, {}),
    "an empty struct as it is": ({"strategy": {}}, {"strategy": {}}),
    "a null in a map of texts as empty": ({"selector": {"app": None}}, {"selector": {"app": ""}}),
    "a float without a fraction as a whole number": ({"replicas": 3.0}, {"replicas": 3}),
    "a float with a fraction as it is": ({"replicas": 3.5}, {"replicas": 3.5}),
    "what is kept as raw JSON as it is": ({"free": {"a": [], "b": {}}}, {"free": {"a": [], "b": {}}}),
    "an empty value of raw JSON as it is": ({"free": {}}, {"free": {}}),
    "a null of raw JSON not at all": ({"free": None}, {}),
    "a field that nobody declares as it is": ({"nonsense": []}, {"nonsense": []}),
    "a list where a map belongs as it is": ({"selector": ["a"]}, {"selector": ["a"]}),
    "a map where a text belongs as it is": ({"name": {"a": None}}, {"name": {"a": None}}),
}


@pytest.mark.parametrize(("written", "held"), STORED.values(), ids=STORED)
def test_a_built_in_kind_holds(written, held):
    assert deployed(**written) == held


def test_an_object_whose_schema_nobody_knows_is_held_as_it_is():
    written = {"spec": {"size": None, "list": []}}
    assert settled(written, UNKNOWN) == written
    assert settled(written, UNKNOWN) is not written


# --- fields that are folded into others ---


SECRETS = {
    "text becomes bytes": ({"stringData": {"key": "value"}}, {"data": {"key": "dmFsdWU="}}),
    "text wins over bytes of the same name": (
        {"data": {"key": "b2xk", "more": "bW9yZQ=="}, "stringData": {"key": "new"}},
        {"data": {"key": "bmV3", "more": "bW9yZQ=="}},
    ),
    "text of another alphabet is UTF-8": ({"stringData": {"key": "ü"}}, {"data": {"key": "w7w="}}),
    "a null becomes empty bytes": ({"stringData": {"key": None}}, {"data": {"key": ""}}),
    "no text changes nothing": ({"data": {"key": "b2xk"}}, {"data": {"key": "b2xk"}}),
    "an empty text leaves the bytes": ({"data": {"key": "b2xk"}, "stringData": {}}, {"data": {"key": "b2xk"}}),
    "nothing at all stays nothing": ({"stringData": {}}, {}),
    "what is no map stays as it is": ({"stringData": "value"}, {"stringData": "value"}),
}


@pytest.mark.parametrize(("written", "held"), SECRETS.values(), ids=SECRETS)
def test_in_a_secret(written, held):
    assert settled(written, schema("", "Secret")) == held


def nested(path, inner):
    for name in reversed(path):
        inner = {name: inner}
    return inner


PODS = {
    ("", "Pod"): ["spec"],
    ("", "PodTemplate"): ["template", "spec"],
    ("", "ReplicationController"): ["spec", "template", "spec"],
    ("apps", "Deployment"): ["spec", "template", "spec"],
    ("apps", "ReplicaSet"): ["spec", "template", "spec"],
    ("apps", "StatefulSet"): ["spec", "template", "spec"],
    ("apps", "DaemonSet"): ["spec", "template", "spec"],
    ("batch", "Job"): ["spec", "template", "spec"],
    ("batch", "CronJob"): ["spec", "jobTemplate", "spec", "template", "spec"],
}
BOTH = {"serviceAccount": "web", "serviceAccountName": "web"}


@pytest.mark.parametrize("kind", PODS, ids=str)
@pytest.mark.parametrize("name", ["serviceAccount", "serviceAccountName"])
def test_both_names_of_a_pod_s_account_are_held(kind, name):
    assert settled(nested(PODS[kind], {name: "web"}), schema(*kind)) == nested(PODS[kind], BOTH)


def test_the_newer_name_of_an_account_wins():
    written = {"spec": {"serviceAccount": "old", "serviceAccountName": "web"}}
    assert settled(written, schema("", "Pod")) == {"spec": BOTH}


NO_ACCOUNTS = {
    "no account": {"spec": {"hostNetwork": True}},
    "an empty account": {"spec": {"serviceAccount": ""}},
    "no pod": {"spec": "nonsense"},
    "nothing": {},
}


@pytest.mark.parametrize("written", NO_ACCOUNTS.values(), ids=NO_ACCOUNTS)
def test_a_pod_is_held_as_it_is_with(written):
    assert settled(written, schema("", "Pod")) == written


# --- custom resources ---

HELD = {
    "a default where nothing is": ({}, {"size": 3}),
    "a default where a null is": ({"size": None}, {"size": 3}),
    "what is written where something is": ({"size": 0}, {"size": 0}),
    "no null that isn't allowed": ({"text": None}, {"size": 3}),
    "a null that is allowed": ({"flag": None}, {"flag": None, "size": 3}),
    "no null in a map that doesn't allow it": ({"table": {"a": None, "b": "x"}}, {"table": {"b": "x"}, "size": 3}),
    "nulls where anything may be": ({"free": {"a": None}}, {"free": {"a": None}, "size": 3}),
    "defaults within a list": ({"ports": [{"port": 1}]}, {"ports": [{"port": 1, "protocol": "TCP"}], "size": 3}),
    "no null within a list": (
        {"ports": [{"port": 1, "protocol": "UDP", "name": None}]},
        {"ports": [{"port": 1, "protocol": "UDP"}], "size": 3},
    ),
    "nulls that are items": ({"plain": [None, "a"]}, {"plain": [None, "a"], "size": 3}),
    "empty containers": ({"table": {}, "plain": []}, {"table": {}, "plain": [], "size": 3}),
    "a whole number for a float without a fraction": ({"size": 5.0}, {"size": 5}),
    "a float below anything": ({"free": {"a": [1.0, 1.5]}}, {"free": {"a": [1, 1.5]}, "size": 3}),
}


@pytest.mark.parametrize(("written", "held"), HELD.values(), ids=HELD)
def test_a_custom_resource_holds(written, held):
    assert settled({"spec": written}, SCHEMA)["spec"] == held


def test_the_metadata_of_a_custom_resource_is_that_of_any_object():
    written = {"metadata": {"name": "one", "labels": None, "annotations": {}, "finalizers": []}, "spec": {"size": 1}}
    assert settled(written, SCHEMA) == {"metadata": {"name": "one"}, "spec": {"size": 1}}


def test_metadata_that_is_null_is_empty():
    assert settled({"metadata": None, "spec": {"size": 1}}, SCHEMA)["metadata"] == {}


def crd_with(**properties):
    crd = copy.deepcopy(CRD)
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] = properties
    return schema_of_crd(crd, "v1")


def test_a_default_that_is_an_object_gets_the_defaults_within():
    inner = {"type": "object", "default": {}, "properties": {"size": {"type": "integer", "default": 3}}}
    assert settled({"spec": {}}, crd_with(inner=inner)) == {"spec": {"inner": {"size": 3}}}
    assert settled({"spec": {"inner": None}}, crd_with(inner=inner)) == {"spec": {"inner": {"size": 3}}}


def test_a_null_that_is_allowed_is_not_replaced_by_the_default():
    nullable = {"type": "integer", "default": 3, "nullable": True}
    assert settled({"spec": {"size": None}}, crd_with(size=nullable)) == {"spec": {"size": None}}
    assert settled({"spec": {}}, crd_with(size=nullable)) == {"spec": {"size": 3}}


def test_an_embedded_resource_has_the_metadata_of_any_object():
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    written = {"spec": {"inner": {"metadata": {"labels": {}, "name": "x"}, "more": {}}}}
    assert settled(written, crd_with(inner=embedded)) == {"spec": {"inner": {"metadata": {"name": "x"}, "more": {}}}}


@given(objects())
def test_what_the_server_holds_it_holds_again(manifest):
    kept = copy.deepcopy(manifest)
    once = settled(manifest, SCHEMA)
    assert settled(once, SCHEMA) == once
    assert manifest == kept


# --- what an empty struct looks like ---


def test_an_empty_struct_shows_what_go_never_omits():
    of = DEPLOYMENT.root.map.type_at("spec")
    assert zero_value(of, {}) == {"replicas": 0, "strategy": {}}
    assert zero_value(of, {"name": None, "selector": {"a": "b"}}) == {"replicas": 0, "strategy": {}, "name": ""}


SCALARS = {"numbers": ("size", 0), "texts": ("text", ""), "truths": ("flag", False)}


@pytest.mark.parametrize(("name", "zero"), SCALARS.values(), ids=SCALARS)
def test_the_zero_of(name, zero):
    assert zero_value(SCHEMA.root.map.type_at("spec").map.type_at(name), None) == zero
    assert zero_value(DEPLOYMENT.root.map.type_at("spec").map.type_at("names"), None) is None


# --- what defaults of the server's code may explain ---

SPEC = DEPLOYMENT.root.map.type_at("spec")
EXPLAINED = {
    "what is absent is filled in": ({"name": "x"}, {"name": "x", "replicas": 1}, True),
    "a zero is replaced": ({"replicas": 0}, {"replicas": 1}, True),
    "a zero that isn't there any more": ({"replicas": 0}, {"name": "x"}, True),
    "an empty object is filled in": ({"strategy": {}}, {"strategy": {"type": "Rolling"}}, True),
    "a value isn't replaced": ({"replicas": 2}, {"replicas": 1}, False),
    "a value doesn't vanish": ({"replicas": 2}, {"name": "x"}, False),
    "a value within isn't replaced": ({"strategy": {"type": "x"}}, {"strategy": {"type": "y"}}, False),
    "a map gets no entries": ({"selector": {"a": "b"}}, {"selector": {"a": "b", "c": "d"}}, False),
    "a map that is the same": ({"selector": {"a": "b"}}, {"selector": {"a": "b"}}, True),
    "an empty map may be filled": ({"selector": {}}, {"selector": {"a": "b"}}, True),
    "a list gets no items": ({"names": ["a"]}, {"names": ["a", "b"]}, False),
    "a list whose items are the same": ({"names": ["a", "b"]}, {"names": ["a", "b"]}, True),
    "an item isn't replaced": ({"names": ["a", "b"]}, {"names": ["a", "c"]}, False),
    "an empty item may be": ({"names": ["a", ""]}, {"names": ["a", "c"]}, True),
    "an empty list may be filled": ({"names": []}, {"names": ["a"]}, True),
    "numbers are no truths": ({"replicas": 1}, {"replicas": True}, False),
    "a field that nobody declares isn't replaced": ({"nonsense": {"a": 1}}, {"nonsense": {"a": 1, "b": 2}}, False),
    "a list that became a map": ({"names": ["a"]}, {"names": {"a": "b"}}, False),
}


@pytest.mark.parametrize(("wanted", "found", "explained"), EXPLAINED.values(), ids=EXPLAINED)
def test_defaults_explain(wanted, found, explained):
    assert softly_same(wanted, found, SPEC) is explained


def test_nothing_is_filled_in_where_the_type_is_unknown():
    assert softly_same({"a": 1}, {"a": 1}, None)
    assert not softly_same({"a": 1}, {"a": 1, "b": 2}, None)
    assert softly_same([1], [1], None)
    assert not softly_same([1], [2], None)
