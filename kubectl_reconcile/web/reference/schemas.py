"""The shapes of what the API takes and answers, as JSON Schema.

A *record* has the fields that are named and no others; those after a question mark may be missing. Words come from where they are defined,
and a plan's shape from the schema of plan files.

Pure.
"""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_reconcile.core import planning
from kubectl_reconcile.core.health.verdict import HealthStatus
from kubectl_reconcile.views.fleet import MOST_ROWS

Schema = Mapping[str, Any]

_GRADES = ("good", "warn", "bad", "plain")
_ROWS = "The diff. Of each row: ' ', '-', '+', or '~' for lines left out; its number before and after; the text, or how many are left out."
_ONLY_FILES = ("before", "after", "delta", "fingerprint")


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


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _counts(description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": {"type": "integer", "minimum": 0}}


def _ref(description: str) -> Schema:
    return {"type": "object", "description": description, "additionalProperties": {"type": "string"}}


_GRADE = text("How to colour it: never the only sign.", *_GRADES)
_HEALTH = text("The verdict in kstatus' words.", *(each.value for each in HealthStatus))
_TIME = text("RFC 3339; empty if unknown.")
_LINK = text("The link at GitHub, GitLab, Gitea or Forgejo; empty if there is none.")
_OBJECT = record(group=text(), kind=text(), namespace=text("Empty where it has none."), name=text())
_SYNC_NAME = record(namespace=text(), name=text())
_COMMIT = record(sha=text(), author=text(), committedAt=_TIME, subject=text("The first line of its message."))

_ROW: Mapping[str, Schema] = {
    "namespace": text(),
    "name": text(),
    "state": text("Ready, NotReady, Suspended and so on."),
    "grade": _GRADE,
    "revision": text("What was applied last, in short; empty for nothing."),
    "ref": text("Which branch, tag or commit it follows; empty if files are applied by hand."),
    "url": text("The repository, without credentials; empty if files are applied by hand."),
    "path": text("The folder in the repository."),
    "objects": {"type": ["integer", "null"], "description": "How many objects it has; null if unknown."},
    "health": _counts("How many objects by their health."),
    "changedAt": _TIME,
    "message": text("Why it is in this state; up to 300 characters in lists."),
}

_PLACED = record(
    place_=text("File and line."), link_=_LINK, text=text("What is wrong.")
)  # a sentence that names no file has neither


_ACTION = record(
    key=text("What approves it."),
    verb=text(),
    summary=text("What it does, in words."),
    parameters={},
    precondition={},
    needsApproval=truth("It waits for a person."),
)


def _plan() -> dict[str, Schema]:
    """Return the shape of a plan, and of its parts: as in plan files, without what only programs need and with what people review."""
    kept = importlib.resources.files(planning).joinpath("plan.schema.json").read_text(encoding="utf-8")
    whole = json.loads(kept.replace("#/definitions/", "#/components/schemas/Plan."))
    parts = whole["definitions"]
    change = parts["change"]["properties"]
    field = change["fields"]["items"]["properties"]
    parts["change"] = _open_for(
        record(
            op=change["op"],
            object=change["object"],
            fields=listed(
                _open_for(
                    record(
                        path=text(),
                        op=field["op"],
                        reason=field["reason"],
                        link_=_LINK,
                        origin_=text("What rendered it."),
                    ),
                    field,
                )
            ),
            verdict=text("What happens to it, in a word."),
            grade=_GRADE,
            depth=number("How deep it stands below its owner."),
            notes=texts("More details."),
            rows=listed({"type": "array", "minItems": 4, "maxItems": 4}, _ROWS),
            link=_LINK,
            action_=_ACTION,
        ),
        {name: shape for name, shape in change.items() if name not in _ONLY_FILES},
    )
    names = ("type", "required", "properties")
    plan = {**{name: whole[name] for name in names}, "additionalProperties": False}
    plan["properties"]["link"] = _LINK
    plan["required"].append("link")
    return {"Plan": plan, **{f"Plan.{name}": part for name, part in parts.items()}}


def _open_for(known: Schema, fields: Schema) -> Schema:
    """Return the shape of a record that may have further *fields*."""
    return {**known, "properties": {**fields, **known["properties"]}}


def schemas() -> dict[str, Schema]:
    """Return all shapes by their names."""
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
            server=text("The address of the API server."),
            namespace=text("The namespace for names without one."),
            name=text("The name by which the cluster knows you; empty until it was requested."),
            guest=truth("Whether a daemon serves the page, rather than kubectl reconcile ui."),
        ),
        "Row": record("One Sync in a table.", **_ROW),
        "Fleet": record(
            "One page of the Syncs that match.",
            total=number("How many Syncs there are."),
            matching=number("How many of them match."),
            length=number("How many entries the list has: rows, and headings of groups."),
            offset=number("Which entry is the first here."),
            states=listed(
                record(state=text(), grade=_GRADE, count=number()),
                "How many there are of each state, of those that match otherwise.",
            ),
            namespaces=texts("Those that have Syncs."),
            rows=listed(
                {"anyOf": [named("Row"), record("Begins a group.", heading=text(), count=number())]},
                f"{MOST_ROWS} entries at most.",
            ),
            only=text("The only namespace that is shown; empty for all."),
            at=text("The version of this answer: the stream continues from there."),
        ),
        "Sync": record(
            "One Sync with all details.",
            **_ROW,
            resourceVersion=text(),
            createdAt=_TIME,
            suspended=truth("The cluster is left as it is."),
            pinned=truth("It was rolled back, and stays there until it is resumed."),
            followedBefore=text("What it followed before it was rolled back."),
            keptByAnother=truth("It is itself a member of a Sync."),
            applied=text("The revision that was applied last."),
            appliedLink=_LINK,
            tried=text("The revision that was tried last."),
            conditions=listed(
                record(type=text(), status=text(), reason=text(), message=text(), lastTransitionTime=_TIME)
            ),
            problems=listed(_PLACED),
            warnings=listed(_PLACED),
            unhealthy=listed(record(object=text("KIND/NAME."), health=_HEALTH, since_=_TIME, message_=text())),
            mayWrite=truth("You may patch it, so the buttons work."),
        ),
        "Node": record(
            "An object, and what it owns.",
            apiVersion=text(),
            kind=text(),
            namespace_=text(),
            name=text(),
            uid_=text(),
            createdAt_=_TIME,
            health=_HEALTH,
            message_=text(),
            source_=text("The file with the object."),
            children=listed(named("Node")),
        ),
        "Tree": record(root=named("Node"), unseen=texts("Kinds that you may not list.")),
        "Events": record(
            events=listed(
                record(
                    time=_TIME,
                    type=text("Normal or Warning."),
                    reason=text(),
                    object=_OBJECT,
                    message=text(),
                    daemon=text("Who said it."),
                ),
                "The newest first, a hundred at most.",
            )
        ),
        "History": record(
            sync=_SYNC_NAME,
            follows=_ref("What it follows; empty for the default branch."),
            rolledBackFrom=_or_null(_ref("What it followed before it was rolled back.")),
            entries=listed(
                {
                    "type": "object",
                    "description": "One state that it tried to apply. Besides these fields, how many objects that created, updated and so on.",
                    "required": ["current", "commit", "link"],
                    "properties": {
                        "revision": text(),
                        "time": _TIME,
                        "result": text(),
                        "message": text(),
                        "current": truth("It is the state that counts now."),
                        "commit": _or_null(record(author=text(), committedAt=_TIME, subject=text())),
                        "link": _LINK,
                    },
                },
                "The newest first.",
            ),
            trouble=text("Why the commits can't be read; empty if they can."),
        ),
        **_plan(),
        "Explanation": record(
            "One live object, and who set each of its fields. Values of Secrets are hidden.",
            object=_OBJECT,
            asker=text("Who wants it: a Sync, a module, or nobody."),
            unread_=text("Why the desired state isn't known."),
            file_=text(),
            line_=number(),
            commit_=_COMMIT,
            verification_={
                "type": "object",
                "description": "Who signed its revision, and the result of the verification.",
            },
            fields=listed(
                record(
                    path=text(),
                    state=text("same, git, drift and so on."),
                    live_={},
                    wanted_={},
                    applied_={},
                    owners=listed(record(manager=text(), operation=text(), subresource=text(), time=text())),
                    line_=number(),
                    file_=text(),
                    by_=text("What rendered it."),
                    entry_=text(),
                    base_=record(file=text(), line=number(), by=text()),
                    commit_=_COMMIT,
                    verdict=text("What the next sync does with it."),
                )
            ),
            trouble=text("What isn't known, and why; empty if everything is known."),
            live=texts(
                "The object in YAML, line by line; empty if it may contain values of Secrets that can't be found."
            ),
            leftOut=number("How many more lines it has."),
        ),
        "Logs": record(
            containers=texts("Of the pod."),
            container=text("The container of these lines."),
            lines=texts("The last 500."),
        ),
        "Said": record(said=text("What was done, in words.")),
        "Changed": record("Data of a message.", type=text("", "ADDED", "MODIFIED", "DELETED")),
        "Pushed": record("Data of an event syncs.", rows=listed(named("Row")), gone=listed(_SYNC_NAME)),
    }
