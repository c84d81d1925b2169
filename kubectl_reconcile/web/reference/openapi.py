"""The OpenAPI document of the page's API, from its routes and what is known of each.

A route without a description, or a description without a route, is a fault: nothing is served that the document doesn't have.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kubectl_reconcile.web.app import API
from kubectl_reconcile.web.reference.operations import OPERATIONS, PARTS, Operation
from kubectl_reconcile.web.reference.schemas import Schema, named, schemas

_VERSION = "1.0.0"
_ABOUT = """What the page of kubectl-reconcile reads and does, with the rights of the person who uses it. docs/ui.md says how to sign in.

The first number of the version is that of the path. Fields may be added under the same number; none is taken away or means something else.
Objects of the cluster, plans and events may hold what anybody wrote: treat it as text."""
_PART = re.compile(r"{(\w+)}")


def document() -> dict[str, Any]:
    """Return the OpenAPI document.

    Raises:
        LookupError: a route isn't described, or what is described is no route.
    """
    if odd := API.keys() ^ OPERATIONS.keys():
        raise LookupError(f"these are routes or descriptions alone: {sorted(odd)}")
    paths: dict[str, dict[str, Any]] = {}
    for (method, path), operation in OPERATIONS.items():
        paths.setdefault(path, {})[method.lower()] = _operation(path, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "The page of kubectl-reconcile", "version": _VERSION, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of the cluster."}
            },
        },
        "security": [{"token": []}],
    }


def text() -> str:
    """Return the document as it is kept in a file.

    Raises:
        LookupError: a route isn't described, or what is described is no route.
    """
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def _operation(path: str, operation: Operation) -> dict[str, Any]:
    query = [{"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()]
    parts = [{"name": name, "in": "path", "required": True, "schema": PARTS[name]} for name in _PART.findall(path)]
    kind = "text/event-stream" if operation.is_stream else "application/json"
    return {
        "summary": operation.summary,
        **({"description": operation.says} if operation.says else {}),
        **({"parameters": parts + query} if parts or query else {}),
        **({"requestBody": {"required": True, **_content(operation.body)}} if operation.body else {}),
        "responses": {
            "200": {"description": operation.summary, **_content(named(operation.answers), kind)},
            "default": {"description": "Why there is no other answer", **_content(named("Error"))},
        },
    }


def _content(schema: Schema, kind: str = "application/json") -> dict[str, Any]:
    return {"content": {kind: {"schema": schema}}}
