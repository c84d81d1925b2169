"""Strategies: small JSON objects under one schema that has every way to merge, and sets of their fields."""

from hypothesis import strategies as st

from kubectl_reconcile.core.ssa.fieldset import FieldSet
from kubectl_reconcile.core.ssa.schema import schema_of_crd, schemas_of_document
from kubectl_reconcile.core.ssa.typed import fields_of

TEXT = {"type": "string"}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "text": TEXT,
                                    "size": {"type": "integer", "default": 3},
                                    "flag": {"type": "boolean", "nullable": True},
                                    "table": {"type": "object", "additionalProperties": TEXT},
                                    "atom": {
                                        "type": "object",
                                        "additionalProperties": TEXT,
                                        "x-kubernetes-map-type": "atomic",
                                    },
                                    "plain": {"type": "array", "items": TEXT},
                                    "names": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                                    "ports": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                                        "items": {
                                            "type": "object",
                                            "required": ["port"],
                                            "properties": {
                                                "port": {"type": "integer"},
                                                "protocol": {"type": "string", "default": "TCP"},
                                                "name": TEXT,
                                            },
                                        },
                                    },
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                        },
                    }
                },
            }
        ],
    },
}
SCHEMA = schema_of_crd(CRD, "v1")


def _published(crd):
    """Return the OpenAPI v3 document that the server publishes for *crd*: metadata is a reference, and no more is said of it."""
    spec, version = crd["spec"], crd["spec"]["versions"][0]
    gvk = {"group": spec["group"], "version": version["name"], "kind": spec["names"]["kind"]}
    metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    openapi = version["schema"]["openAPIV3Schema"]
    properties = {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": {"allOf": [{"$ref": f"#/components/schemas/{metadata}"}]},
        **openapi["properties"],
    }
    definition = {**openapi, "properties": properties, "x-kubernetes-group-version-kind": [gvk]}
    path = f"/apis/{spec['group']}/{gvk['version']}/namespaces/{{namespace}}/{spec['names']['plural']}/{{name}}/status"
    return {
        "paths": {path: {"get": {"x-kubernetes-group-version-kind": gvk}}},
        "components": {"schemas": {"com.example.v1.Thing": definition, metadata: {"type": "object"}}},
    }


PUBLISHED = schemas_of_document(_published(CRD))[SCHEMA.gvk]

words = st.sampled_from(["a", "b", "c", ""])
tables = st.dictionaries(words, words, max_size=3)
free = st.recursive(
    st.one_of(words, st.integers(0, 2), st.booleans(), st.just(1.0)),
    lambda inner: st.one_of(st.dictionaries(words, inner, max_size=2), st.lists(inner, max_size=2)),
    max_leaves=4,
)
ports = st.lists(
    st.fixed_dictionaries(
        {"port": st.integers(1, 3)}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": words}
    ),
    max_size=3,
    unique_by=lambda item: (item["port"], item.get("protocol", "TCP")),
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "text": words,
        "size": st.integers(0, 3),
        "flag": st.one_of(st.booleans(), st.none()),
        "table": tables,
        "atom": tables,
        "plain": st.lists(words, max_size=3),
        "names": st.lists(words, max_size=3, unique=True),
        "ports": ports,
        "free": st.dictionaries(words, free, max_size=2),
    },
)


@st.composite
def objects(draw):
    """A manifest of a Thing."""
    metadata = {"name": "one", **draw(st.fixed_dictionaries({}, optional={"labels": tables, "annotations": tables}))}
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": draw(specs)}


field_sets = objects().map(lambda manifest: fields_of(manifest, SCHEMA.root))
elements = st.one_of(
    words.map(lambda name: f"f:{name}"),
    words.map(lambda name: f'k:{{"name":"{name}"}}'),
    st.integers(0, 2).map(lambda value: f"v:{value}"),
    st.integers(0, 2).map(lambda index: f"i:{index}"),
)
any_sets = st.lists(st.lists(elements, min_size=1, max_size=3), max_size=6).map(FieldSet.of)


def entry(manager, fields, *, operation="Apply", time="2026-01-01T00:00:00Z", api_version="example.com/v1", **more):
    """An entry of managedFields."""
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields.to_wire(),
        **more,
    }


def living(manifest, *entries):
    """*manifest* as a live object with these owners."""
    return {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "7", "managedFields": list(entries)}}
