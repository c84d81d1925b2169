"""What the page shows, as JSON: what the verbs print, and what only a page needs besides, such as links."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubectl_reconcile.cli.change import history as history_verb
from kubectl_reconcile.cli.inspect import events as events_verb
from kubectl_reconcile.cli.inspect import explain as explain_verb
from kubectl_reconcile.cli.inspect import status as status_verb
from kubectl_reconcile.cli.inspect import tree as tree_verb
from kubectl_reconcile.cli.inspect.diff import preview
from kubectl_reconcile.cli.options.origin import Origin
from kubectl_reconcile.cli.output import plan_document
from kubectl_reconcile.core.objects import Manifest, conditions_of, map_at, maps_in
from kubectl_reconcile.core.planning.plan import Change, Plan
from kubectl_reconcile.core.redaction import without_credentials
from kubectl_reconcile.engine.api import pod_logs
from kubectl_reconcile.engine.commands import explain, owner_tree, suspend_resume
from kubectl_reconcile.engine.commands import history as history_engine
from kubectl_reconcile.engine.commands.event_stream import Stream, StreamedEvent, events_of
from kubectl_reconcile.engine.sync.session import Session
from kubectl_reconcile.source.running.threads import in_thread
from kubectl_reconcile.views import changes, review
from kubectl_reconcile.views.ages import current_time
from kubectl_reconcile.views.links import commit_link, file_link
from kubectl_reconcile.views.masking import masked_live
from kubectl_reconcile.views.text import Tone
from kubectl_reconcile.views.yamltext import dump

_MESSAGE = 300
_EVENTS = 100
_MOST_LINES = 20_000
_UNSHOWN = "not shown: the object may contain values of Secrets, and the Sync's source can't be read to find them"
_GRADES = {Tone.GOOD: "good", Tone.WARNING: "warn", Tone.BAD: "bad"}
_WORDS = {"True": "Ready", "False": "NotReady", "-": "By hand"}
_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?=: )")
_ONLY_PROGRAMS = frozenset({"before", "after", "delta", "fingerprint"})


class PageDocuments(Struct, frozen=True):
    """The documents of the page. Values of Secrets are in none of them."""

    def row(self, sync: Manifest) -> dict[str, Any]:
        """Return what a table of Syncs shows of one."""
        metadata, found = sync["metadata"], map_at(sync, "status")
        word, tone = status_verb.readiness(sync)
        git = map_at(sync, "spec", "source", "git")
        newest: Mapping[str, Any] = next(iter(maps_in(found.get("history"))), {})
        return {
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "state": _WORDS.get(word, word),
            "grade": _GRADES.get(tone, "plain"),
            "revision": status_verb.short(str(found.get("lastAppliedRevision") or "")),
            "ref": suspend_resume.ref_text(suspend_resume.ref_of(sync)) if git else "",
            "url": without_credentials(str(git.get("url") or "")),
            "path": str(git.get("path") or "."),
            "objects": map_at(found, "summary").get("total"),
            "health": {word: count for word, count in map_at(found, "health", "counts").items() if count},
            "changedAt": str(newest.get("time") or metadata.get("creationTimestamp") or ""),
            "message": status_verb.message_of(sync)[:_MESSAGE],
        }

    def sync(self, live: Manifest) -> dict[str, Any]:
        """Return everything about one Sync: its row, conditions, problems with links, and what isn't well."""
        found, row = map_at(live, "status"), self.row(live)
        applied = str(found.get("lastAppliedRevision") or "")
        tried = str(found.get("lastAttemptedRevision") or "")
        return {
            **row,
            "message": status_verb.message_of(live),
            "resourceVersion": live["metadata"].get("resourceVersion", ""),
            "createdAt": live["metadata"].get("creationTimestamp", ""),
            "suspended": bool(map_at(live, "spec").get("suspend")),
            "pinned": suspend_resume.is_pinned(live),
            "followedBefore": suspend_resume.ref_text(suspend_resume.followed_before(live)),
            "keptByAnother": suspend_resume.is_kept_by_another(live),
            "applied": applied,
            "appliedLink": commit_link(row["url"], applied),
            "tried": tried,
            "conditions": [_condition(one) for one in conditions_of(live)],
            "problems": [_placed(text, row["url"], tried) for text in status_verb.texts(found.get("problems"))],
            "warnings": [_placed(text, row["url"], tried) for text in status_verb.texts(found.get("warnings"))],
            "unhealthy": [dict(each) for each in maps_in(map_at(found, "health").get("unhealthy"))],
        }

    async def tree(self, session: Session, live: Manifest) -> dict[str, Any]:
        """Return what belongs to a Sync, down to the pods, and what of it may not be seen."""
        found = await owner_tree.of_sync(session, live)
        return {"root": tree_verb.document(found.root), "unseen": [str(kind) for kind in found.unseen]}

    async def events(self, session: Session, live: Manifest) -> dict[str, Any]:
        """Return what daemons said of a Sync and what belongs to it, the newest first."""
        past, _ = await Stream(session, live["metadata"]["namespace"], live).past()
        return _told(past)

    async def events_of_object(self, session: Session, live: Manifest) -> dict[str, Any]:
        """Return what anybody said of an object, the newest first."""
        return _told(await events_of(session, live))

    async def logs(self, session: Session, live: Manifest, container: str, *, previous: bool) -> dict[str, Any]:
        """Return the end of what a container of a pod has printed."""
        found = await pod_logs.logs_of(session.client, live, container, previous=previous)
        return {"containers": found.containers, "container": found.container, "lines": found.lines}

    async def history(self, session: Session, live: Manifest) -> dict[str, Any]:
        """Return what a Sync has applied, with links to the commits."""
        entries, trouble = await history_engine.with_commits(session, live, history_engine.entries_of(live))
        document = history_verb.document(live, entries)
        url = self.row(live)["url"]
        linked = [{**each, "link": commit_link(url, str(each.get("revision")))} for each in document["entries"]]
        return {**document, "entries": linked, "trouble": trouble}

    async def plan(self, session: Session, live: Manifest, revision: str) -> dict[str, Any]:
        """Return what the next sync would do, of *revision* where one is given, with a diff for each object."""
        metadata = live["metadata"]
        origin = Origin(metadata["name"], namespace=metadata["namespace"], revision=revision)
        made = await preview(session, origin, reasons=True)
        return await in_thread(_plan_document, made, self.row(live)["url"])

    async def explanation(self, session: Session, live: Manifest) -> dict[str, Any]:
        """Return one object as it is, and who asked for each of its fields."""
        found = await explain.explain_live(session, live)
        shown = masked_live(live, found.facts.change, found.secrets)
        metadata = {key: value for key, value in shown["metadata"].items() if key != "managedFields"}
        lines = [] if found.may_hold_secrets else dump({**shown, "metadata": metadata})
        return {
            **explain_verb.document(found),
            "trouble": "; ".join(filter(None, [found.trouble, _UNSHOWN if found.may_hold_secrets else ""])),
            "live": lines[:_MOST_LINES],
            "leftOut": max(len(lines) - _MOST_LINES, 0),
        }


def _told(events: Sequence[StreamedEvent]) -> dict[str, Any]:
    return {"events": [events_verb.document(each) for each in reversed(events[-_EVENTS:])]}


def _condition(one: Mapping[str, Any]) -> dict[str, str]:
    names = ("type", "status", "reason", "message", "lastTransitionTime")
    return {name: str(one.get(name) or "") for name in names}


def _placed(text: str, url: str, sha: str) -> dict[str, str]:
    """Return a sentence with where it leads: to the file and line that it begins with."""
    found = _PLACE.match(text)
    if found is None:
        return {"text": text}
    link = file_link(url, sha, found["file"], int(found["line"][:9]))
    return {"place": found[0], "link": link, "text": text[found.end() :].removeprefix(": ")}


def _plan_document(made: Plan, url: str) -> dict[str, Any]:
    """Return a plan with a diff for each object, which takes a while for large ones."""
    view = changes.PlanView(current_time())
    document = plan_document.document(made, view)
    rows = zip(document["changes"], changes.in_order(made), strict=True)
    return {
        **document,
        "link": commit_link(url, made.revision),
        "changes": [_reviewed(plain, change, depth, made, view, url) for plain, (change, depth) in rows],
    }


def _reviewed(
    plain: Mapping[str, Any], change: Change, depth: int, made: Plan, view: changes.PlanView, url: str
) -> dict[str, Any]:
    """Return a change of a plan's document as a person reviews it."""
    shown = {key: value for key, value in plain.items() if key not in _ONLY_PROGRAMS}
    word = changes.verdict(change)
    file = change.provenance.file
    fields = [
        {**{name: value for name, value in field.items() if name not in {"before", "after"}}, **_linked(field, url)}
        for field in plain.get("fields", ())
    ]
    return {
        **shown,
        "fields": fields,
        "verdict": word.text,
        "grade": _GRADES.get(word.tone, "plain"),
        "depth": depth,
        "notes": [text for text, _ in changes.notes_on(view.of(change), made, view.now)],
        "rows": review.rows_of(change, view),
        "link": file_link(url, made.revision, file, change.provenance.line) if file else "",
    }


def _linked(field: Mapping[str, Any], url: str) -> dict[str, str]:
    link = commit_link(url, str(field.get("commit") or ""))
    return {"link": link} if link else {}
