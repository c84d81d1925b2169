"""Schemas: what the server's documents and CRDs say about merging."""

import pytest
from strategies import CRD, SCHEMA

from kubectl_reconcile.core.objects import GroupVersionKind
from kubectl_reconcile.core.ssa.schema import UNKNOWN, schema_of_crd, schemas_of_document
from kubectl_reconcile.core.ssa.values import Form

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
DOCUMENT = {
    "paths": {
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status": {
            "get": {"x-kubernetes-group-version-kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}
        }
    },
    "components": {
        "schemas": {
            "io.k8s.api.apps.v1.Deployment": {
                "type": "object",
                "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}}},
                "x-kubernetes-group-version-kind": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
            },
            "Spec": {
                "type": "object",
                "properties": {
                    "selector": {"$ref": "#/components/schemas/Selector"},
                    "free": {"$ref": "#/components/schemas/Selector", "x-kubernetes-map-type": "granular"},
                    "ports": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Port"},
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                    },
                    "old": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Port"},
                        "x-kubernetes-patch-strategy": "merge",
                        "x-kubernetes-patch-merge-key": "containerPort",
                    },
                    "limits": {"type": "object", "additionalProperties": {"$ref": f"#/components/schemas/{QUANTITY}"}},
                    "lost": {"$ref": "#/components/schemas/Nowhere"},
                },
            },
            "Selector": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
            "Port": {
                "type": "object",
                "properties": {"containerPort": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
            },
            QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
        }
    },
}
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


@pytest.fixture
def spec():
    return schemas_of_document(DOCUMENT)[DEPLOYMENT].root.map.type_at("spec").map


def test_a_document_names_its_kinds_and_reads_each_when_asked():
    schemas = schemas_of_document(DOCUMENT)
    assert list(schemas) == [DEPLOYMENT]
    assert schemas[DEPLOYMENT] is schemas[DEPLOYMENT]
    with pytest.raises(KeyError):
        schemas[GroupVersionKind("apps", "v1", "Nothing")]


def test_status_is_a_subresource_where_the_paths_say_so():
    assert schemas_of_document(DOCUMENT)[DEPLOYMENT].has_status
    assert not schemas_of_document({**DOCUMENT, "paths": {}})[DEPLOYMENT].has_status


def test_a_list_map_has_keys_and_their_defaults(spec):
    ports = spec.type_at("ports").list
    assert (ports.keys, ports.atomic) == (("containerPort", "protocol"), False)
    assert (ports.key_default("protocol"), ports.key_default("containerPort")) == ("TCP", None)


def test_the_patch_merge_key_stands_in_for_a_list_type(spec):
    assert spec.type_at("old").list.keys == ("containerPort",)


def test_a_reference_may_change_how_its_map_merges(spec):
    assert spec.type_at("selector").map.atomic
    assert not spec.type_at("free").map.atomic


def test_quantities_are_known_by_their_definition(spec):
    assert spec.type_at("limits").map.other.form is Form.QUANTITY


FORMS = {
    "a text": ({"type": "string"}, None),
    "a time": ({"type": "string", "format": "date-time"}, Form.TIME),
    "bytes": ({"type": "string", "format": "byte"}, Form.BYTES),
    "a text of another format": ({"type": "string", "format": "int-or-string"}, None),
    "a number": ({"type": "integer", "format": "int32"}, None),
    "a number of bytes": ({"type": "integer", "format": "byte"}, None),
    "a number that says it is a time": ({"type": "integer", "format": "date-time"}, None),
}


@pytest.mark.parametrize(("field", "form"), FORMS.values(), ids=FORMS)
def test_a_built_in_field_has_the_form_that_the_server_writes_it_in(field, form):
    kinds = {"group": "apps", "version": "v1", "kind": "Deployment"}
    root = {"type": "object", "properties": {"field": field}, "x-kubernetes-group-version-kind": [kinds]}
    document = {"components": {"schemas": {"io.k8s.api.apps.v1.Deployment": root}}}
    assert schemas_of_document(document)[DEPLOYMENT].root.map.type_at("field").form is form


def test_a_kind_without_a_group_is_one_of_the_core():
    pod = {"type": "object", "x-kubernetes-group-version-kind": [{"version": "v1", "kind": "Pod"}]}
    schemas = schemas_of_document({"components": {"schemas": {"io.k8s.api.core.v1.Pod": pod, "Plain": {}}}})
    assert list(schemas) == [GroupVersionKind("", "v1", "Pod")]
    assert (len(schemas), len(schemas_of_document({}))) == (1, 0)
    assert schemas[GroupVersionKind("", "v1", "Pod")].same_versions == {"v1"}


def test_the_first_schema_of_a_kind_counts():
    kinds = [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    one, two = ({"type": "object", "properties": {name: {}}, "x-kubernetes-group-version-kind": kinds} for name in "ab")
    document = {"components": {"schemas": {"io.k8s.api.apps.v1.Deployment": one, "io.k8s.api.apps.v1.Z": two}}}
    root = schemas_of_document(document)[DEPLOYMENT].root.map
    assert root.type_at("a") is not None
    assert root.type_at("b") is None


def test_a_lost_reference_is_deduced(spec):
    lost = spec.type_at("lost")
    assert lost.map is not None
    assert lost.list is not None
    assert lost.list.atomic
    assert lost.scalar == "untyped"


def test_a_field_that_nobody_declares_is_not_allowed(spec):
    assert spec.type_at("nonsense") is None


def test_a_crd_is_a_custom_resource_with_metadata():
    assert SCHEMA.is_custom
    assert SCHEMA.has_status
    metadata = SCHEMA.root.map.type_at("metadata").map
    assert metadata.type_at("ownerReferences").list.keys == ("uid",)
    assert metadata.type_at("finalizers").list.keys == ()
    assert not metadata.type_at("finalizers").list.atomic


def test_a_version_that_a_crd_lacks_is_said():
    with pytest.raises(KeyError, match=r"things\.example\.com has no version v9"):
        schema_of_crd(CRD, "v9")


def _with_versions(*versions, **spec):
    first = CRD["spec"]["versions"][0]
    return {**CRD, "spec": {**CRD["spec"], "versions": [{**first, **version} for version in versions], **spec}}


def test_versions_of_one_schema_convert_by_name_alone():
    crd = _with_versions({"name": "v1"}, {"name": "v2"}, {"name": "v3", "schema": {}})
    assert schema_of_crd(crd, "v1").same_versions == {"example.com/v1", "example.com/v2"}


def test_a_conversion_webhook_makes_versions_differ():
    crd = _with_versions({"name": "v1"}, {"name": "v2"}, conversion={"strategy": "Webhook"})
    assert schema_of_crd(crd, "v1").same_versions == {"example.com/v1"}


def test_preserving_unknown_fields_holds_for_everything_below():
    openapi = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
    crd = _with_versions({"name": "v1", "schema": {"openAPIV3Schema": openapi}})
    root = schema_of_crd(crd, "v1").root.map
    assert root.other is not None
    assert root.type_at("spec").map.other is not None


def test_an_embedded_resource_has_metadata():
    openapi = {
        "type": "object",
        "properties": {"spec": {"type": "object", "x-kubernetes-embedded-resource": True}},
    }
    spec = schema_of_crd(_with_versions({"name": "v1", "schema": {"openAPIV3Schema": openapi}}), "v1").root.map.type_at(
        "spec"
    )
    assert spec.map.type_at("metadata").map.type_at("labels") is not None


def test_the_unknown_schema_knows_nothing():
    assert not UNKNOWN.known


def test_only_text_has_a_form():
    fields = {
        "type": "object",
        "properties": {"bits": {"type": "integer", "format": "byte"}, "bytes": {"type": "string", "format": "byte"}},
    }
    document = {
        "components": {
            "schemas": {
                "io.k8s.api.core.v1.Thing": {
                    **fields,
                    "x-kubernetes-group-version-kind": [{"version": "v1", "kind": "Thing"}],
                }
            }
        }
    }
    thing = schemas_of_document(document)[GroupVersionKind("", "v1", "Thing")]
    bits, text = (thing.root.map.type_at(name) for name in ("bits", "bytes"))
    assert (bits.form, text.form) == (None, Form.BYTES)
