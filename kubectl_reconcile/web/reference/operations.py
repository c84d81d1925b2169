"""What each route of the API is for, what it takes, and what it answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_reconcile.views.fleet import GROUPS, MOST_ROWS, SORTS
from kubectl_reconcile.web.doings import DOINGS
from kubectl_reconcile.web.reference.schemas import Schema, number, record, text, texts

_SYNC = "/api/v1/syncs/{namespace}/{name}"
_OBJECT = "/api/v1/objects/{kind}/{namespace}/{name}"
_ORDERS = [*SORTS, *(f"-{each}" for each in SORTS)]


@dataclass(frozen=True, slots=True)
class Operation:
    """A route: what it is for, the name of the shape that it *answers*, its *query*, and the *body* that it takes."""

    summary: str
    answers: str
    query: Mapping[str, Schema]
    body: Schema | None = None
    says: str = ""
    is_stream: bool = False


def _get(summary: str, answers: str, says: str = "", **query: Schema) -> Operation:
    return Operation(summary, answers, query, says=says)


OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/api/v1/about"): _get("Who you are, and which cluster it is", "About"),
    ("GET", "/api/v1/syncs"): _get(
        "The Syncs, by page",
        "Fleet",
        q=text("Words to find in the name, namespace, repository, revision or message."),
        state=text("States, separated by commas; empty for all."),
        namespace=text("Empty for all."),
        sort=text("Prefix it with - to reverse the order.", *_ORDERS),
        group=text("", *GROUPS),
        offset=number("The first entry."),
        limit=number(f"How many entries; {MOST_ROWS} at most."),
    ),
    ("GET", "/api/v1/stream"): Operation(
        "Changes, as server-sent events",
        "Pushed",
        {
            "at": text(
                "The version of an earlier answer: changes since then are sent first. Last-Event-ID does the same."
            )
        },
        says="Events are: hello (changes since then are sent), again (read everything again), and syncs, whose data is described here.",
        is_stream=True,
    ),
    ("GET", _SYNC): _get("One Sync", "Sync"),
    ("GET", f"{_SYNC}/tree"): _get("What belongs to a Sync, down to the pods", "Tree"),
    ("GET", f"{_SYNC}/events"): _get("What daemons reported about a Sync and its objects", "Events"),
    ("GET", f"{_SYNC}/history"): _get("What a Sync has applied", "History"),
    ("GET", f"{_SYNC}/plan"): _get(
        "What the next sync would do",
        "Plan",
        revision=text("A branch, tag, commit or refs/pull/12/head; empty for what the Sync follows."),
    ),
    ("POST", f"{_SYNC}/{{doing}}"): Operation(
        "Change a Sync",
        "Said",
        {},
        record(
            approval_=text("For approve: the approval of the plan that you were shown."),
            revision_=text("For rollback: a revision of the history."),
        ),
        says="This requires the right to patch the Sync.",
    ),
    ("GET", _OBJECT): _get("One object, and who set each of its fields", "Explanation"),
    ("GET", f"{_OBJECT}/events"): _get("Events about an object", "Events"),
    ("GET", f"{_OBJECT}/changes"): Operation(
        "A message whenever an object changes, as server-sent events",
        "Changed",
        {},
        says="This requires the right to watch the object. To get the object, request it again.",
        is_stream=True,
    ),
    ("GET", f"{_OBJECT}/logs"): _get(
        "What a container of a pod has printed",
        "Logs",
        container=text("Empty for the first one."),
        previous=text("Of the container before its last restart.", "true", "false"),
    ),
    ("POST", f"{_OBJECT}/approve"): Operation(
        "Approve held actions of a custom resource",
        "Said",
        {},
        record(keys=texts("The keys of all actions that are held, as the plan has them.")),
        says="This requires the right to patch the custom resource.",
    ),
}

PARTS: Mapping[str, Schema] = {
    "namespace": text("Of an object that has none: -."),
    "name": text(),
    "kind": text("KIND, or KIND.GROUP."),
    "doing": text("", *DOINGS),
}
"""What stands in paths."""
