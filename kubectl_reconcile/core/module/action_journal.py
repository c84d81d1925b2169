"""Actions on external systems: which may run, which did, and what must still hold.

A module *asks* for actions by returning them. Before one runs, it is written into the *journal*, an
annotation on the CR; afterwards the journal says how it ended. An action whose journal says *done*
never runs again, whatever the module asks, unless it says that it *repeats*. One that was *started* and didn't end, because
the daemon was killed or the system didn't answer, is looked at afresh: the system is observed, and
only if the module still asks for it and its precondition holds does it run again, under the same
idempotency key.

An action that needs approval is held until the CR carries its key: in `APPROVE_ACTIONS`, which stands in Git and may
name verbs too (except for what asks each time), or in `APPROVED_ACTIONS`, which ``kubectl reconcile approve`` writes and which names keys alone.

Pure: annotations in, annotations out; time is an argument.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kubectl_reconcile.core.annotations import ACTIONS, APPROVE_ACTIONS, APPROVED_ACTIONS
from kubectl_reconcile.core.module.inputs import Facts
from kubectl_reconcile.core.module.outcome import Action
from kubectl_reconcile.core.objects import API_GROUP, Manifest, ObjectRef, annotations_of

_KEPT = 40
_MESSAGE_MAX = 200


class ActionProgress(StrEnum):
    """How far an action is, by the journal."""

    STARTED = "started"
    """It was about to run; whether it did is for the next observation to say."""
    DONE = "done"
    """It ran, and never runs again."""
    FAILED = "failed"
    """The external system refused it or didn't answer; it may be tried again."""


class JournalEntry(Struct, frozen=True):
    """One line of the journal; *attempts* counts the starts."""

    key: str
    verb: str
    progress: ActionProgress
    at: str
    attempts: int = 1
    message: str = ""


class ActionJournal(Struct, frozen=True):
    """What the CR says of its actions, the oldest first."""

    entries: tuple[JournalEntry, ...] = ()

    @classmethod
    def of(cls, cr: Manifest) -> ActionJournal:
        """Return the journal on *cr*; one that can't be read counts as empty."""
        try:
            lines = json.loads(annotations_of(cr).get(ACTIONS) or "[]")
            return cls(tuple(_entry(line) for line in lines))
        except (ValueError, TypeError, KeyError, AttributeError):
            return cls()

    def entry(self, key: str) -> JournalEntry | None:
        """Return what is known of an action."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def is_done(self, key: str) -> bool:
        """Tell whether the action has run for good."""
        entry = self.entry(key)
        return entry is not None and entry.progress is ActionProgress.DONE

    def bars(self, action: Action) -> bool:
        """Tell whether *action* never runs (again), since it has."""
        return self.is_done(action.key) and not action.repeats

    def started(self, action: Action, now: str) -> ActionJournal:
        """Return the journal with *action* about to run."""
        before = self.entry(action.key)
        attempts = before.attempts + 1 if before else 1
        return self._with(JournalEntry(action.key, action.verb, ActionProgress.STARTED, now, attempts))

    def ended(self, action: Action, now: str, progress: ActionProgress, message: str = "") -> ActionJournal:
        """Return the journal with how *action* ended."""
        before = self.entry(action.key) or JournalEntry(action.key, action.verb, progress, now)
        return self._with(replace(before, progress=progress, at=now, message=message[:_MESSAGE_MAX]))

    def _with(self, entry: JournalEntry) -> ActionJournal:
        others = [each for each in self.entries if each.key != entry.key]
        return ActionJournal((*others, entry)[-_KEPT:])

    def text(self) -> str:
        """Return the annotation's value."""
        return json.dumps([_line(entry) for entry in self.entries], separators=(",", ":"))


def _entry(line: Mapping[str, Any]) -> JournalEntry:
    return JournalEntry(
        key=str(line["key"]),
        verb=str(line["verb"]),
        progress=ActionProgress(line["progress"]),
        at=str(line["at"]),
        attempts=int(line.get("attempts", 1)),
        message=str(line.get("message", "")),
    )


def _line(entry: JournalEntry) -> dict[str, Any]:
    full = {
        "key": entry.key,
        "verb": entry.verb,
        "progress": entry.progress.value,
        "at": entry.at,
        "attempts": entry.attempts,
        "message": entry.message,
    }
    return {name: value for name, value in full.items() if value != ""}


def actions_done(cr: Manifest) -> tuple[str, ...]:
    """Return the keys of the actions that have run, the oldest first, as far back as the journal on *cr* goes.

    Use it for decisions: an action that needs approval and changes nothing itself. The module then acts on the approval.
    """
    return tuple(entry.key for entry in ActionJournal.of(cr).entries if entry.progress is ActionProgress.DONE)


def actions_begun(cr: Manifest) -> frozenset[str]:
    """Return the keys of the actions that have run or may have: of whoever was killed meanwhile the journal on *cr* says only that it was about to."""
    return frozenset(entry.key for entry in ActionJournal.of(cr).entries if entry.progress is not ActionProgress.FAILED)


def actions_failed(cr: Manifest) -> dict[str, str]:
    """Return the actions whose last try failed, by key, each with its message, as far back as the journal on *cr* goes."""
    return {
        entry.key: entry.message for entry in ActionJournal.of(cr).entries if entry.progress is ActionProgress.FAILED
    }


def is_approved(action: Action, cr: Manifest) -> bool:
    """Tell whether *action* may run as far as people are concerned."""
    if not action.needs_approval:
        return True
    noted = annotations_of(cr)
    in_git, by_hand = (_listed(noted.get(name, "")) for name in (APPROVE_ACTIONS, APPROVED_ACTIONS))
    in_advance = set() if action.asks_each_time else {"*", action.verb}
    return bool(in_git & {*in_advance, action.key}) or action.key in by_hand


def approving(cr: Manifest, keys: tuple[str, ...]) -> str:
    """Return the value of `APPROVED_ACTIONS` that adds *keys* to what *cr* carries; keys of done actions are dropped."""
    journal = ActionJournal.of(cr)
    known = _listed(annotations_of(cr).get(APPROVED_ACTIONS, "")) | set(keys)
    return ",".join(sorted(key for key in known if not journal.is_done(key)))


def _listed(text: str) -> set[str]:
    return {part.strip() for part in text.split(",") if part.strip()}


def ref_of(action: Action, cr: ObjectRef) -> ObjectRef:
    """Return how a plan names *action*: ``Action.reconcile.dev shop/sweet/dispose-bar-3``."""
    return ObjectRef(API_GROUP, "Action", cr.namespace, f"{cr.name}/{action.key}")


def unmet(action: Action, facts: Facts) -> str:
    """Return why *action* must not run on *facts*, or nothing.

    A precondition's keys are paths into the facts, as in ``bar.id``; what isn't there is null.
    """
    for path, wanted in action.precondition.items():
        found: Any = facts
        for part in path.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found != wanted:
            return f"{path} is {json.dumps(found, default=str)}, not {json.dumps(wanted, default=str)}"
    return ""
