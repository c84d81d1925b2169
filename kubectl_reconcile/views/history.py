"""What a Sync has applied, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.engine.commands import history, suspend_resume
from kubectl_reconcile.engine.commands.history import HistoryEntry
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.views.document import Document, SyncName, about
from kubectl_reconcile.views.links import commit_link
from kubectl_reconcile.views.syncs import row

_TEXT = {"type": "string"}
_STATE = {
    "description": "One state that it tried to apply. Besides these fields, how many objects that created, updated and so on.",
    "required": ["current", "commit"],
    "properties": {
        "revision": _TEXT,
        "time": {**_TEXT, "description": "RFC 3339; empty if unknown."},
        "result": _TEXT,
        "message": _TEXT,
        "tag": {**_TEXT, "description": "The tag that a range of versions led to; absent where none is followed."},
        "current": {"type": "boolean", "description": "It is the state that counts now."},
        "commit": {
            "description": "Null where git can't tell.",
            "anyOf": [
                {
                    "type": "object",
                    "required": ["author", "committedAt", "subject"],
                    "properties": {
                        "author": _TEXT,
                        "committedAt": {**_TEXT, "description": "RFC 3339; empty if unknown."},
                        "subject": {**_TEXT, "description": "The first line of its message."},
                    },
                    "additionalProperties": False,
                },
                {"type": "null"},
            ],
        },
        "link": {**_TEXT, "description": "The link at GitHub, GitLab, Gitea or Forgejo; empty if there is none."},
    },
}


class HistoryDocument(Document, frozen=True, kw_only=True):
    """What a Sync has applied."""

    sync: SyncName
    follows: Annotated[dict[str, str], about("What it follows; empty for the default branch.")]
    rolled_back_from: Annotated[dict[str, str] | None, about("What it followed before it was rolled back.")]
    entries: Annotated[
        list[Annotated[dict[str, Any], Meta(extra_json_schema=_STATE)]],
        about("The newest first: a row of the Sync's status each."),
    ]


class LinkedHistoryDocument(HistoryDocument, frozen=True, kw_only=True):
    """What a Sync has applied, with links to the commits."""

    trouble: Annotated[str, about("Why the commits can't be read; empty if they can.")]


def document(live: Manifest, entries: Sequence[HistoryEntry]) -> HistoryDocument:
    """Return what a Sync has applied."""
    metadata = live["metadata"]
    return HistoryDocument(
        sync=SyncName(namespace=metadata["namespace"], name=metadata["name"]),
        follows=suspend_resume.ref_of(live),
        rolled_back_from=suspend_resume.followed_before(live) if suspend_resume.is_pinned(live) else None,
        entries=[_entry(entry) for entry in entries],
    )


def _entry(entry: HistoryEntry) -> dict[str, Any]:
    commit = entry.commit
    made = {"author": commit.author, "committedAt": commit.committed_at, "subject": commit.subject} if commit else None
    return {**entry.counts, "current": entry.is_current, "commit": made}


async def of_sync(session: Session, live: Manifest) -> LinkedHistoryDocument:
    """Return what a Sync has applied, with links to the commits.

    Raises:
        ApiError: the server refuses, or doesn't answer.
    """
    entries, trouble = await history.with_commits(session, live, history.entries_of(live))
    found, url = document(live, entries), row(live).url
    return LinkedHistoryDocument(
        sync=found.sync,
        follows=found.follows,
        rolled_back_from=found.rolled_back_from,
        entries=[{**each, "link": commit_link(url, str(each.get("revision")))} for each in found.entries],
        trouble=trouble,
    )
