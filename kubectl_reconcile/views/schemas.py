"""The JSON Schema of each document, generated from its Struct: of the plan file, and of what the web UI is answered.

Pure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from kubectl_reconcile.views import events, explanation, fleet, history, plan, plan_review, results, syncs, tree
from kubectl_reconcile.views.document import Document

Schema = dict[str, Any]

_PAGE = "#/components/schemas/{name}"
ANSWERS: Mapping[str, type[Document]] = {
    "Row": syncs.RowDocument,
    "Heading": fleet.HeadingDocument,
    "Fleet": fleet.FleetDocument,
    "Pushed": fleet.PushedDocument,
    "Sync": syncs.SyncDocument,
    "Tree": tree.TreeDocument,
    "Events": events.EventsDocument,
    "History": history.LinkedHistoryDocument,
    "Plan": plan_review.ReviewDocument,
    "Explanation": explanation.ExplainedObjectDocument,
    "Logs": events.LogsDocument,
}
"""What the web UI is answered, by the names that its API has for it."""
_IN_ROWS = {"ReviewedChange": ("fingerprint", "before", "after", "delta"), "ReviewedField": ("before", "after")}
"""What a review has rows of lines for, and doesn't repeat."""

PRINTED: Mapping[str, type[Document]] = {
    "Event": events.EventDocument,
    "Explanation": explanation.ExplanationDocument,
    "History": history.HistoryDocument,
    "Plan": plan.PlanFileDocument,
    "SyncResult": results.SyncResultDocument,
    "Node": tree.NodeDocument,
}
"""What ``-o json`` prints that isn't an object of the cluster: of events, explain, history, diff, sync and tree."""

_FILE = "#/definitions/{name}"
_PARTS = {
    "FindingDocument": "finding",
    "ObjectName": "object",
    "WholeChangeDocument": "change",
    "WholePlanDocument": "plan",
}
"""Parts of a plan file that have names; others stand where they are used."""


def answers() -> dict[str, Schema]:
    """Return the shapes of what the web UI is answered, and of their parts, by name; none has fields besides those that it names."""
    _, found = msgspec.json.schema_components(list(ANSWERS.values()), ref_template=_PAGE)
    shapes = _by_name(found, ANSWERS)
    for name, left_out in _IN_ROWS.items():
        for field in left_out:
            del shapes[name]["properties"][field]
    return {name: {**shape, "additionalProperties": False} for name, shape in shapes.items()}


def printed_text() -> str:
    """Return the schemas of what ``-o json`` prints, as they are kept in a file."""
    _, found = msgspec.json.schema_components(list(PRINTED.values()), ref_template=_FILE)
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://reconcile.dev/schemas/v1alpha1/printed.json",
        "title": "What -o json prints",
        "description": "Of diff: Plan; sync: SyncResult; tree: Node; history: History; explain: Explanation; events: an Event a line.",
        "definitions": _by_name(found, PRINTED),
    }
    return json.dumps(whole, indent=1) + "\n"


def _by_name(found: Mapping[str, Schema], chosen: Mapping[str, type[Document]]) -> dict[str, Schema]:
    """Return shapes by the names that they have where they are *chosen*, or else by those of their classes."""
    names = {each.__name__: name for name, each in chosen.items()}
    shapes = {
        names.get(old, old.removesuffix("Document")): {
            key: _renamed(value, names) for key, value in shape.items() if key != "title"
        }
        for old, shape in found.items()
    }
    return dict(sorted(shapes.items()))


def _renamed(tree: Any, names: Mapping[str, str]) -> Any:
    """Return a part of a shape that refers to others by their names here."""
    if isinstance(tree, list):
        return [_renamed(each, names) for each in tree]
    if not isinstance(tree, Mapping):
        return tree
    found = {key: _renamed(value, names) for key, value in tree.items()}
    if "$ref" in tree:
        head, slash, name = tree["$ref"].rpartition("/")
        found["$ref"] = f"{head}{slash}{names.get(name, name.removesuffix('Document'))}"
    return found


def plan_file() -> Schema:
    """Return the schema of plan files, draft 7."""
    (_, parts) = msgspec.json.schema_components([plan.PlanFileDocument], ref_template=_FILE)
    whole = _inlined(parts[plan.PlanFileDocument.__name__], parts)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://reconcile.dev/schemas/v1alpha1/plan.json",
        **whole,
        "title": "A plan of kubectl-reconcile",
        "definitions": {name: _inlined(parts[part], parts) for part, name in _PARTS.items()},
    }


def _inlined(tree: Any, parts: Mapping[str, Any]) -> Any:
    """Return a shape with those parts in it that have no names, and the names of others."""
    if isinstance(tree, list):
        return [_inlined(each, parts) for each in tree]
    if not isinstance(tree, Mapping):
        return tree
    found = {key: _inlined(value, parts) for key, value in tree.items() if key != "title" or not isinstance(value, str)}
    part = str(found.pop("$ref", "")).rpartition("/")[2]
    if not part:
        return found
    if part in _PARTS:
        return {**found, "$ref": _FILE.format(name=_PARTS[part])}
    return {**_inlined(parts[part], parts), **found}


def plan_file_text() -> str:
    """Return that schema as it is kept beside the code that reads plan files."""
    return json.dumps(plan_file(), indent=1) + "\n"


if __name__ == "__main__":
    sys.stdout.write(plan_file_text())
