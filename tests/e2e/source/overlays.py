"""Overlays to begin with, for the tests that render them, and what a server says of their Deployments."""

from __future__ import annotations

from pathlib import Path

from kubectl_reconcile.core.ssa.schema import schema_of_crd

SECRET = "hunter2-hunter2"
WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "web:1", env: [{name: A, value: "yes"}]}
      - {name: side, image: "side:1"}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n"
BASE = {
    "base/kustomization.yaml": "resources: [web.yaml, config.yaml]\n",
    "base/web.yaml": WEB,
    "base/config.yaml": CONFIG % "shop",
}


def write(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)


CONTAINER = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "image": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
    },
    "x-kubernetes-preserve-unknown-fields": True,
}
CONTAINERS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": CONTAINER,
}


def nested(schema, *names):
    for name in reversed(names):
        schema = {"type": "object", "properties": {name: schema}, "x-kubernetes-preserve-unknown-fields": True}
    return schema


SCHEMA = schema_of_crd(
    {
        "spec": {
            "group": "apps",
            "names": {"kind": "Deployment"},
            "versions": [
                {
                    "name": "v1",
                    "schema": {"openAPIV3Schema": nested(CONTAINERS, "spec", "template", "spec", "containers")},
                }
            ],
        }
    },
    "v1",
)
