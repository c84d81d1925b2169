"""What each route of the API is for, what it takes, and what it answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubectl_reconcile.web.doings import DOINGS
from kubectl_reconcile.web.fleet import GROUPS, MOST_ROWS, SORTS
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
        q=text("Words that are in name, namespace, repository, revision or message."),
        state=text("States, with commas between them; all where it is empty."),
        namespace=text("All where it is empty."),
        sort=text("With - before it, the other way round.", *_ORDERS),
        group=text("", *GROUPS),
        offset=number("The first entry."),
        limit=number(f"How many entries; {MOST_ROWS} at most."),
    ),
    ("GET", "/api/v1/stream"): Operation(
        "Changes, as server-sent events",
        "Pushed",
        {
            "at": text(
                "What another answer said of itself: what has changed since is sent first. Last-Event-ID does the same."
            )
        },
        says="Events are: hello (what changed since is sent), again (look at everything again), and syncs, whose data is described here.",
        is_stream=True,
    ),
    ("GET", _SYNC): _get("One Sync", "Sync"),
    ("GET", f"{_SYNC}/tree"): _get("What belongs to a Sync, down to the pods", "Tree"),
    ("GET", f"{_SYNC}/events"): _get("What daemons said of a Sync and what belongs to it", "Events"),
    ("GET", f"{_SYNC}/history"): _get("What a Sync has applied", "History"),
    ("GET", f"{_SYNC}/plan"): _get(
        "What the next sync would do",
        "Plan",
        revision=text("A branch, tag, commit or refs/pull/12/head; empty for what the Sync follows."),
    ),
    ("POST", f"{_SYNC}/{{doing}}"): Operation(
        "Have something done to a Sync",
        "Said",
        {},
        record(
            approval_=text("For approve: the approval of the plan that you were shown."),
            revision_=text("For rollback: a revision of the history."),
        ),
        says="It takes the right to patch the Sync.",
    ),
    ("GET", _OBJECT): _get("One object, and who asked for each of its fields", "Explanation"),
    ("GET", f"{_OBJECT}/events"): _get("What anybody said of an object", "Events"),
    ("GET", f"{_OBJECT}/changes"): Operation(
        "A message whenever an object changes, as server-sent events",
        "Changed",
        {},
        says="It takes the right to watch the object. What the object is then is asked for again.",
        is_stream=True,
    ),
    ("GET", f"{_OBJECT}/logs"): _get(
        "What a container of a pod has printed",
        "Logs",
        container=text("The first one where it is empty."),
        previous=text("Of the container before its last restart.", "true", "false"),
    ),
    ("POST", f"{_OBJECT}/approve"): Operation(
        "Approve held actions of a custom resource",
        "Said",
        {},
        record(keys=texts("The keys of all actions that are held, as the plan has them.")),
        says="It takes the right to patch the custom resource.",
    ),
}

PARTS: Mapping[str, Schema] = {
    "namespace": text("Of an object that has none: -."),
    "name": text(),
    "kind": text("KIND, or KIND.GROUP."),
    "doing": text("", *DOINGS),
}
"""What stands in paths."""
