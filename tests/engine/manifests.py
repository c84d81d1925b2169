"""Manifests for the shop's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def config_map(name: str, annotations: Mapping[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **({"annotations": dict(annotations)} if annotations else {})},
        "data": data,
    }


def job(name: str, image: str = "migrate:1", **annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": image}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"backoffLimit": 0, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
    }


def deployment(
    name: str, *, replicas: int = 1, annotations: Mapping[str, str] | None = None, **pod: Any
) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **({"annotations": dict(annotations)} if annotations else {})},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "web:1"}], **pod},
            },
        },
    }


MAKERS = {"config_map": config_map, "job": job, "deployment": deployment}
