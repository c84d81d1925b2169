"""Schemas of built-in kinds, as an API server describes them."""

from kubectl_reconcile.core.ssa.schema import schemas_of_document

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
METADATA = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
TOLERATION = {"type": "object", "properties": {"key": TEXT, "operator": TEXT}}
PORT = {
    "type": "object",
    "properties": {"name": TEXT, "port": NUMBER, "protocol": {"type": "string", "default": "TCP"}},
}
SPECS = {
    "Service": {
        "type": {"type": "string"},
        "ports": {
            "type": "array",
            "items": PORT,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "selector": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "strategy": {"type": "object", "default": {}, "properties": {"type": TEXT, "size": NUMBER}},
        "labels": {"type": "object", "additionalProperties": TEXT},
    },
    "Pod": {
        "tolerations": {"type": "array", "items": TOLERATION, "x-kubernetes-list-type": "atomic"},
        "others": {"type": "array", "items": TOLERATION, "x-kubernetes-list-type": "atomic"},
    },
}
META = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "namespace": TEXT,
        "resourceVersion": TEXT,
        "labels": {"type": "object", "additionalProperties": TEXT},
        "annotations": {"type": "object", "additionalProperties": TEXT},
    },
}


def described(kind, **properties):
    return {
        "type": "object",
        "properties": {"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA, **properties},
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": kind}],
    }


DOCUMENT = {
    "paths": {},
    "components": {
        "schemas": {
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": META,
            **{
                f"io.k8s.api.core.v1.{kind}": described(kind, spec={"type": "object", "properties": fields})
                for kind, fields in SPECS.items()
            },
            "io.k8s.api.core.v1.Namespace": described("Namespace"),
            "io.k8s.api.core.v1.Secret": described(
                "Secret",
                data={"type": "object", "additionalProperties": {"type": "string", "format": "byte"}},
                stringData={"type": "object", "additionalProperties": TEXT},
            ),
        }
    },
}
SCHEMAS = schemas_of_document(DOCUMENT)
