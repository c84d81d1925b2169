"""What people wait for of a Sync, and what it lacks to be there.

A goal is reached when its conditions are True *and* speak of the generation that the Sync has now, as ``kubectl wait`` has it: what was
true of an older spec says nothing. Whatever somebody wrote into a status may be anything; what can't be read isn't there yet.

Pure: wire JSON in, sentences out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kubectl_reconcile.core.objects import Manifest, condition_of, mapping_of, metadata_of
from kubectl_reconcile.core.revisions import digest_in, is_digest_of, is_packed


class Goal(StrEnum):
    """A state of a Sync."""

    HEALTHY = "healthy"
    """The cluster is what the source asks for, and all of it is well."""
    SYNCED = "synced"
    """The cluster is what the source asks for."""
    READY = "ready"
    """What ``kubectl wait --for=condition=Ready`` asks: healthy, or only synced where spec.health.wait is false."""
    DELETED = "deleted"
    """There is no such Sync any more, or another one of its name."""


_CONDITIONS: Mapping[Goal, tuple[str, ...]] = {
    Goal.HEALTHY: ("Synced", "Healthy"),
    Goal.SYNCED: ("Synced",),
    Goal.READY: ("Ready",),
}


def is_reached(live: Manifest | None, goal: Goal) -> bool:
    """Tell whether a Sync is where *goal* wants it; None is one that doesn't exist."""
    if live is None or goal is Goal.DELETED:
        return live is None and goal is Goal.DELETED
    return all(_holds(live, each) for each in _CONDITIONS[goal])


def was_tried(live: Manifest | None, revision: str) -> bool:
    """Tell whether the commit whose hash begins with *revision* is what was looked at last, even where it asks for nothing else.

    What isn't made of commits is meant by its whole version or tag, by its digest, or by both.
    """
    status = mapping_of((live or {}).get("status"))
    looked_at = (status.get(name) for name in ("lastAttemptedRevision", "observedRevision"))
    by_name = is_packed(revision) and not digest_in(revision)
    whole = f"{revision}@" if by_name else revision
    return any(
        isinstance(each, str) and bool(each) and (each.startswith(whole) or is_digest_of(revision, each))
        for each in looked_at
    )


def lack_of(live: Manifest, goal: Goal) -> tuple[str, str]:
    """Return why a Sync isn't there yet: the reason in a word, as its conditions give it, and a sentence."""
    if goal is Goal.DELETED:
        going = metadata_of(live).get("deletionTimestamp")
        found = condition_of(live, "Ready") or {}
        return str(found.get("reason") or ""), str(found.get("message") or "") if going else "nobody has deleted it"
    missing = next((each for each in _CONDITIONS[goal] if not _holds(live, each)), "")
    found = condition_of(live, missing) or {}
    if not found:
        return "", "no daemon has reported on it yet"
    if not _is_current(live, found):
        return "", "no daemon has processed its newest spec yet"
    return str(found.get("reason") or ""), str(found.get("message") or found.get("reason") or "")


def message_of(live: Manifest | None, goal: Goal) -> str:
    """Return what a Sync says of a goal that it has reached; nothing of one that is gone."""
    decisive = _CONDITIONS.get(goal, ("",))[-1]
    return str((condition_of(live or {}, decisive) or {}).get("message") or "")


def _holds(live: Manifest, type_: str) -> bool:
    found = condition_of(live, type_) or {}
    return found.get("status") == "True" and _is_current(live, found)


def _is_current(live: Manifest, condition: Manifest) -> bool:
    return bool(condition.get("observedGeneration") == metadata_of(live).get("generation"))
