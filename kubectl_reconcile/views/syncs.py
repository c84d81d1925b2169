"""A Sync as it is shown: in a word and a sentence, as a row of a table, and in full.

Pure: Syncs in, words and documents out. What a status says is anybody's: it is shown, never trusted to be well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, UnsetType
from msgspec.structs import asdict

from kubectl_reconcile.core.annotations import SYNC_REQUESTED_AT
from kubectl_reconcile.core.health.health import HealthStatus
from kubectl_reconcile.core.objects import Manifest, annotations_of, conditions_of, map_at, maps_in
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.core.resources.history import current_of
from kubectl_reconcile.core.resources.source import address_of, chart_settings, path_of
from kubectl_reconcile.core.revisions import short_of
from kubectl_reconcile.engine.commands import suspend_resume
from kubectl_reconcile.views.document import Count, Document, Grade, Link, Time, about, among, grade_of
from kubectl_reconcile.views.links import commit_link, file_link
from kubectl_reconcile.views.text import Tone

_MESSAGE = 300
_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?=: )")
_WORDS = {"True": "Ready", "False": "NotReady", "-": "By hand"}


# --- in words ---------------------------------------------------------------------------------------------------------


def readiness(sync: Manifest) -> tuple[str, Tone]:
    """Return how a Sync is, in a word, and the word's tone."""
    conditions = _conditions(sync)
    if map_at(sync, "spec").get("suspend"):
        return "Suspended", Tone.WARNING
    if not conditions and not map_at(sync, "spec").get("source"):
        return "-", Tone.PLAIN
    ready = conditions.get("Ready", {})
    if conditions.get("Reconciling", {}).get("status") == "True" and ready.get("reason") != "InProgress":
        return "Syncing", Tone.WARNING
    said = str(ready.get("status")), str(ready.get("reason"))
    if said in _AILING:
        return said[1], _AILING[said]
    word = str(ready.get("status") or "Unknown")
    if word == "True":
        return word, Tone.GOOD
    held = ready.get("reason") == "Held"
    return ("Held", Tone.WARNING) if held else (word, Tone.BAD if word == "False" else Tone.WARNING)


_AILING = {("False", "InProgress"): Tone.WARNING, ("False", "Failed"): Tone.BAD}
"""Reasons of being Synced and not Ready: how the members are."""


def health_of(sync: Manifest) -> str:
    """Return how many members there are of each verdict, as ``12 Current, 1 Failed``."""
    counts = map_at(sync, "status", "health", "counts")
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items(), key=str) if count) or "-"


def _conditions(sync: Manifest) -> Mapping[str, Mapping[str, Any]]:
    return {one["type"]: one for one in conditions_of(sync)}


def message_of(sync: Manifest) -> str:
    """Return what there is to say of a Sync in a sentence: what is under way, or how it ended."""
    conditions = _conditions(sync)
    busy = conditions.get("Reconciling", {})
    said = busy if busy.get("status") == "True" else conditions.get("Ready", {})
    if said:
        return str(said.get("message") or said.get("reason") or "")
    return (
        "no daemon has processed it yet"
        if map_at(sync, "spec").get("source")
        else "applied by hand, with sync -f or --repo"
    )


def chart_of(sync: Manifest) -> str:
    """Return name and version of the chart of a repository that a Sync asks for; empty where it asks for none."""
    pin = map_at(chart_settings(sync), "chart")
    return f"{pin.get('name')} {pin.get('version')}" if pin else ""


def applied_of(sync: Manifest) -> str:
    """Return the commit that was applied last, in short, and the chart where it is one of a repository."""
    found = map_at(sync, "status")
    row = current_of(maps_in(found.get("history"))) or {}
    applied = short(str(found.get("lastAppliedRevision") or ""))
    return f"{applied}, chart {row['chart']}" if applied and row.get("chart") else applied


def texts(value: Any) -> list[str]:
    """Return what a list of texts says, whatever is in it; nothing where it isn't a list."""
    return list(map(str, value)) if isinstance(value, list) else []


def short(revision: str) -> str:
    """Return a revision as people quote it."""
    return short_of(revision)


# --- as documents -----------------------------------------------------------------------------------------------------


def listed(found: Sequence[Manifest], *, one: bool) -> Manifest:
    """Return Syncs as kubectl's ``-o json`` has them: the one, or a list of all; without managedFields."""
    tidy = [_without_managed_fields(sync) for sync in found]
    return tidy[0] if one and tidy else {"apiVersion": "v1", "kind": "List", "items": tidy}


def _without_managed_fields(sync: Manifest) -> Manifest:
    return {**sync, "metadata": {key: value for key, value in sync["metadata"].items() if key != "managedFields"}}


class RowDocument(Document, frozen=True, kw_only=True):
    """One Sync in a table."""

    namespace: str
    name: str
    state: Annotated[str, about("Ready, NotReady, Suspended and so on.")]
    grade: Grade
    revision: Annotated[str, about("What was applied last, in short; empty for nothing.")]
    ref: Annotated[
        str,
        about("Which branch, tag, range of versions, commit or chart it follows; empty if files are applied by hand."),
    ]
    url: Annotated[
        str,
        about("The repository, Git's or that of the chart, without credentials; empty if files are applied by hand."),
    ]
    path: Annotated[str, about("The folder in the repository.")]
    objects: Annotated[int | None, about("How many objects it has; null if unknown.")]
    health: Annotated[dict[str, Count], about("How many objects by their health.")]
    changed_at: Time
    requested: Annotated[bool, about("Somebody has asked for a sync that hasn't ended yet.")] = False
    message: Annotated[str, about("Why it is in this state; up to 300 characters in lists.")]


class ConditionDocument(Document, frozen=True, kw_only=True):
    """One condition of a Sync."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: str


class PlacedDocument(Document, frozen=True, kw_only=True):
    """A sentence, with the file and line that it is about, if it names them."""

    place: Annotated[str | UnsetType, about("File and line.")] = UNSET
    link: Link | UnsetType = UNSET
    text: Annotated[str, about("What is wrong.")]


class UnhealthyDocument(Document, frozen=True, kw_only=True):
    """An object that isn't well."""

    object: Annotated[str, about("KIND/NAME.")]
    health: Annotated[str, among((each.value for each in HealthStatus), "The verdict in kstatus' words.")]
    since: Time | UnsetType = UNSET
    message: str | UnsetType = UNSET


class SyncDocument(RowDocument, frozen=True, kw_only=True):
    """One Sync with all details."""

    resource_version: str
    created_at: Time
    suspended: Annotated[bool, about("The cluster is left as it is.")]
    pinned: Annotated[bool, about("It was rolled back, and stays there until it is resumed.")]
    followed_before: Annotated[str, about("What it followed before it was rolled back.")]
    kept_by_another: Annotated[bool, about("It is itself a member of a Sync.")]
    applied: Annotated[str, about("The revision that was applied last.")]
    applied_link: Link
    tried: Annotated[str, about("The revision that was tried last.")]
    conditions: list[ConditionDocument]
    problems: list[PlacedDocument]
    warnings: list[PlacedDocument]
    unhealthy: list[UnhealthyDocument]
    may_write: Annotated[bool, about("You may patch it, so the buttons work.")]


def row(sync: Manifest) -> RowDocument:
    """Return what a table of Syncs shows of one."""
    metadata, found = sync["metadata"], map_at(sync, "status")
    word, tone = readiness(sync)
    url = address_of(sync)
    newest: Mapping[str, Any] = next(iter(maps_in(found.get("history"))), {})
    return RowDocument(
        namespace=metadata["namespace"],
        name=metadata["name"],
        state=_WORDS.get(word, word),
        grade=grade_of(tone),
        revision=short(str(found.get("lastAppliedRevision") or "")),
        ref=suspend_resume.follows_text(sync) if url else "",
        url=without_credentials(url),
        path=path_of(sync),
        objects=map_at(found, "summary").get("total"),
        health={word: count for word, count in map_at(found, "health", "counts").items() if count},
        changed_at=str(newest.get("time") or metadata.get("creationTimestamp") or ""),
        requested=annotations_of(sync).get(SYNC_REQUESTED_AT, "") not in {"", found.get("lastHandledSyncAt")},
        message=message_of(sync)[:_MESSAGE],
    )


def document(live: Manifest, *, may_write: bool) -> SyncDocument:
    """Return everything about one Sync: its row, conditions, problems with links, and what isn't well."""
    found, brief = map_at(live, "status"), row(live)
    applied = str(found.get("lastAppliedRevision") or "")
    tried = str(found.get("lastAttemptedRevision") or "")
    return SyncDocument(
        **{**asdict(brief), "message": message_of(live)},
        resource_version=live["metadata"].get("resourceVersion", ""),
        created_at=live["metadata"].get("creationTimestamp", ""),
        suspended=bool(map_at(live, "spec").get("suspend")),
        pinned=suspend_resume.is_pinned(live),
        followed_before=suspend_resume.ref_text(suspend_resume.followed_before(live)),
        kept_by_another=suspend_resume.is_kept_by_another(live),
        applied=applied,
        applied_link=commit_link(brief.url, applied),
        tried=tried,
        conditions=[_condition(one) for one in conditions_of(live)],
        problems=[_placed(text, brief.url, tried) for text in texts(found.get("problems"))],
        warnings=[_placed(text, brief.url, tried) for text in texts(found.get("warnings"))],
        unhealthy=[_unhealthy(each) for each in maps_in(map_at(found, "health").get("unhealthy"))],
        may_write=may_write,
    )


def _condition(one: Mapping[str, Any]) -> ConditionDocument:
    return ConditionDocument(
        type=str(one.get("type") or ""),
        status=str(one.get("status") or ""),
        reason=str(one.get("reason") or ""),
        message=str(one.get("message") or ""),
        last_transition_time=str(one.get("lastTransitionTime") or ""),
    )


def _placed(text: str, url: str, sha: str) -> PlacedDocument:
    """Return a sentence with where it leads: to the file and line that it begins with."""
    found = _PLACE.match(text)
    if found is None:
        return PlacedDocument(text=text)
    link = file_link(url, sha, found["file"], int(found["line"][:9]))
    return PlacedDocument(place=found[0], link=link, text=text[found.end() :].removeprefix(": "))


def _unhealthy(one: Mapping[str, Any]) -> UnhealthyDocument:
    return UnhealthyDocument(
        object=one.get("object", ""),
        health=one.get("health", ""),
        since=one.get("since", UNSET),
        message=one.get("message", UNSET),
    )
