"""A plan as a person reviews it on a page: what happens to each object in a word, why, and the lines before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning.plan import Change, Plan
from kubectl_reconcile.engine.commands import nested, preview
from kubectl_reconcile.engine.commands.nested import LookedAt
from kubectl_reconcile.engine.sync import targets
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.running.threads import in_thread
from kubectl_reconcile.views import review
from kubectl_reconcile.views.ages import current_time
from kubectl_reconcile.views.changes import PlanView, in_order, notes_on, verdict
from kubectl_reconcile.views.document import Count, Grade, Link, about, grade_of
from kubectl_reconcile.views.links import commit_link, file_link
from kubectl_reconcile.views.plan import (
    ChangedFieldDocument,
    ChangeDocument,
    NestedDocument,
    PlanDocument,
    changes_of,
    head_of,
    nested_head_of,
)
from kubectl_reconcile.views.syncs import row

_ROWS = (
    "The diff. Of each row: ' ', '-', '+', or '~' for lines left out; its number before and after; the text, or how "
    "many are left out."
)


class ReviewedFieldDocument(ChangedFieldDocument, frozen=True, kw_only=True):
    """A field that changes, and why, with a link to the commit; its values are in the rows."""

    link: Link | UnsetType = UNSET


class ReviewedChangeDocument(ChangeDocument, frozen=True, kw_only=True):
    """What happens to one object, as a person reviews it."""

    fields: Annotated[Sequence[ReviewedFieldDocument], about("The fields that change, and why.")]
    verdict: Annotated[str, about("What happens to it, in a word.")]
    grade: Grade
    depth: Annotated[Count, about("How deep it stands below its owner.")]
    notes: Annotated[list[str], about("More details.")]
    rows: Annotated[list[review.Row], about(_ROWS)]
    link: Link


class ReviewedPlanDocument(PlanDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a sync of a Sync would do, with a diff for each object."""

    changes: Annotated[
        Sequence[ReviewedChangeDocument],
        about("In the order in which they are carried out. Unchanged objects aren't listed."),
    ]
    link: Link


class ReviewedNestedDocument(NestedDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Sync that a plan creates, changes or removes, and its own plan under its new spec."""

    plan: ReviewedPlanDocument | UnsetType = UNSET


class ReviewDocument(ReviewedPlanDocument, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the next sync of a Sync would do."""

    nested: Annotated[
        list[ReviewedNestedDocument], about("The plans of Syncs that change, each followed by those nested in it.")
    ]


async def of_sync(session: Session, live: Manifest, revision: str) -> ReviewDocument:
    """Return what the next sync would do, of *revision* where one is given, with a diff for each object.

    Raises:
        SourceError: the source can't be read.
        ApiError: the server refuses, or doesn't answer.
    """
    name, namespace = live["metadata"]["name"], live["metadata"]["namespace"]
    if revision:
        target = await targets.revision_target(session, name, namespace, revision)
    else:
        target = await targets.sync_target(session, name, namespace)
    made = await preview.judged(session, target, by_account=target.sync.source is not None)
    explained = await preview.explained(target, made, reasons=True)
    explained = await nested.with_nested(session, explained, await LookedAt.of(target, made.revision))
    return await in_thread(document, explained, row(live).url)


def document(made: Plan, url: str) -> ReviewDocument:
    """Return a plan with a diff for each object, which takes a while for large ones; *url* is that of the repository."""
    view = PlanView(current_time())
    below = [
        ReviewedNestedDocument(
            plan=ReviewedPlanDocument(**_whole(each.plan, view, "")) if each.plan else UNSET, **nested_head_of(each)
        )
        for each in made.nested
    ]
    return ReviewDocument(nested=below, **_whole(made, view, url))


def _whole(made: Plan, view: PlanView, url: str) -> dict[str, Any]:
    """Return the fields of a plan's document with a diff for each object."""
    changes = zip(changes_of(made, view), in_order(made), strict=True)
    return {
        "changes": [_reviewed(plain, change, depth, made, view, url) for plain, (change, depth) in changes],
        "link": commit_link(url, made.revision),
        **head_of(made, view),
    }


def _reviewed(
    plain: ChangeDocument, change: Change, depth: int, made: Plan, view: PlanView, url: str
) -> ReviewedChangeDocument:
    """Return a change of a plan as a person reviews it: lines stand for the objects before and after."""
    word, file = verdict(change), change.provenance.file
    fields = plain.fields if plain.fields is not UNSET else ()
    shown: dict[str, Any] = {
        **asdict(plain), "fingerprint": UNSET, "before": UNSET, "after": UNSET, "delta": UNSET,
        "fields": [_linked(field, url) for field in fields],
    }  # fmt: skip
    return ReviewedChangeDocument(
        **shown,
        verdict=word.text,
        grade=grade_of(word.tone),
        depth=depth,
        notes=[text for text, _ in notes_on(view.of(change), made, view.now)],
        rows=review.rows_of(change, view),
        link=file_link(url, made.revision, file, change.provenance.line) if file else "",
    )


def _linked(field: ChangedFieldDocument, url: str) -> ReviewedFieldDocument:
    link = commit_link(url, field.commit) if field.commit else ""
    return ReviewedFieldDocument(**{**asdict(field), "before": UNSET, "after": UNSET}, link=link or UNSET)
