"""The shapes of what the API takes and answers, as JSON Schema.

A *record* has the fields that are named and no others. What is shown of plans, Syncs and objects has its shape from its document.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_reconcile.views.schemas import answers

Schema = Mapping[str, Any]


def text(description: str = "", *words: str) -> Schema:
    """Return the shape of a text, of those *words* where there are any."""
    return {"type": "string", **({"description": description} if description else {}), **_among(words)}


def number(description: str = "") -> Schema:
    """Return the shape of a count."""
    return {"type": "integer", "minimum": 0, **({"description": description} if description else {})}


def truth(description: str) -> Schema:
    """Return the shape of yes or no."""
    return {"type": "boolean", "description": description}


def texts(description: str) -> Schema:
    """Return the shape of a list of texts."""
    return {**listed(text()), "description": description}


def listed(of: Schema, description: str = "") -> Schema:
    """Return the shape of a list."""
    return {"type": "array", "items": of, **({"description": description} if description else {})}


def record(description: str = "", /, **fields: Schema) -> Schema:
    """Return the shape of a record; fields whose names end in ``_`` may be missing."""
    return {
        "type": "object",
        **({"description": description} if description else {}),
        "required": [name for name in fields if not name.endswith("_")],
        "properties": {name.removesuffix("_"): field for name, field in fields.items()},
        "additionalProperties": False,
    }


def named(name: str) -> Schema:
    """Return the shape of that *name*."""
    return {"$ref": f"#/components/schemas/{name}"}


def _among(words: Iterable[str]) -> Schema:
    chosen = list(words)
    return {"enum": chosen} if chosen else {}


def schemas() -> dict[str, Schema]:
    """Return all shapes by their names: what the page itself says, and the documents."""
    return {
        "Error": record(
            error=record(
                message=text("What is wrong, in a sentence."),
                hint_=text("What to do."),
                enter_=text("The page where people sign in."),
            )
        ),
        "About": record(
            version=text("Of kubectl-reconcile."),
            context=text("What your kubeconfig calls the cluster; empty if a daemon serves the web UI."),
            server=text("The address of the API server."),
            namespace=text("The namespace for names without one."),
            name=text("The name by which the cluster knows you; empty until it was requested."),
            guest=truth("Whether a daemon serves the page, rather than kubectl reconcile ui."),
        ),
        "Said": record(said=text("What was done, in words.")),
        "Changed": record("Data of a message.", type=text("", "ADDED", "MODIFIED", "DELETED")),
        **answers(),
    }
