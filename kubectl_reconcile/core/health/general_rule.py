"""The health of objects of kinds that nobody has written a rule for, from the words that the field has settled on.

What is asked, in this order; the first that speaks decides:

1. the condition ``Ready``;
2. negative conditions, ``Degraded`` or ``Failed`` and the like: True is failed;
3. positive ones, ``Available``, ``Healthy``, ``Synced``, ``Programmed`` and the like: all must be True; ``Progressing`` mustn't;
4. ``phase``, ``state``, ``health`` and the like, where it is a common word;
5. else the object is current, because most kinds have nothing to wait for.

False is in progress, unless its reason names a failure: then the object has failed. A condition that speaks of an older
generation than the object's is in progress, whatever it says.

Pure: values in, values out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_reconcile.core.health.health import (
    Health,
    HealthStatus,
    current,
    failed,
    has_status,
    in_progress,
    spec_of,
    status_of,
    suspended,
    why,
)
from kubectl_reconcile.core.health.kind_table import staleness
from kubectl_reconcile.core.objects import Manifest, condition_of, conditions_of

NEGATIVE: Final = (
    "Degraded", "Failed", "Failure", "Error", "ErrorOccurred", "Invalid", "InvalidSpec", "Unhealthy", "NonRecoverable", "ReconcileError",
    "ReconcileFailed", "ReconcileFailure",
)  # fmt: skip
"""Conditions that are True where something is wrong."""

POSITIVE: Final = (
    "Available", "Healthy", "Succeeded", "Complete", "Completed", "Synced", "Programmed", "Accepted", "Established", "Deployed",
    "Installed", "Provisioned", "Initialized", "Valid", "Applied", "Reconciled", "ReconcileSuccess", "ReconcileSucceeded",
    "ResolvedRefs", "Running", "Active", "Admitted", "Bound", "Successful",
)  # fmt: skip
"""Conditions that are True where all is well."""

_WAITING: Final = ("NotReady", "Pending")
_PAUSED: Final = ("Suspended", "Paused")
_PAUSED_BY: Final = ("suspend", "suspended", "paused", "pause")
_FIELDS: Final = (
    "phase",
    "state",
    "health",
    "status",
    "healthStatus",
    "currentState",
    "lifecycleState",
    "currentStatus",
    "conditionStatus",
)

_FAILURE: Final = re.compile(
    r"Fail|Error|Invalid|Denied|Forbidden|Unauthori[sz]ed|Rejected|Exceeded|Unsupported|Misconfigur|Crash|BackOff|Conflict|"
    r"NotPermitted|NotAllowed|Refused|Illegal|Malformed|TimedOut|Timeout|Aborted|Unrecoverable|Unhealthy|Degraded"
)
"""Parts of a reason that name a failure. What is merely not there (``NotFound``, ``Missing``) may come later."""

WORDS: Final[Mapping[HealthStatus, tuple[str, ...]]] = {
    HealthStatus.CURRENT: (
        "active", "applied", "available", "bound", "complete", "completed", "connected", "created", "current", "deployed", "done",
        "enabled", "established", "finished", "green", "healthy", "inservice", "installed", "normal", "ok", "online", "operational",
        "provisioned", "ready", "running", "succeeded", "success", "successful", "synced", "up", "uptodate", "valid",
    ),
    HealthStatus.IN_PROGRESS: (
        "applying", "bootstrapping", "building", "configuring", "connecting", "creating", "deleting", "deploying", "expanding",
        "initializing", "initialising", "inprogress", "installing", "modifying", "new", "notready", "pending", "preparing", "processing",
        "progressing", "provisioning", "queued", "reconciling", "recovering", "restarting", "rolling", "scaling", "scheduled", "scheduling",
        "starting", "stopping", "submitted", "syncing", "terminating", "updating", "upgrading", "waiting", "yellow",
    ),
    HealthStatus.FAILED: (
        "aborted", "broken", "crashed", "crashloopbackoff", "degraded", "down", "error", "errored", "failed", "failing", "failure", "fatal",
        "faulted", "invalid", "lost", "offline", "red", "rejected", "timedout", "unavailable", "unhealthy", "unrecoverable",
    ),
    HealthStatus.SUSPENDED: ("hibernated", "hibernating", "paused", "suspended"),
    HealthStatus.UNKNOWN: ("unknown",),
}  # fmt: skip
"""What ``phase``, ``state`` and the like say, in the field's common words; case, blanks and dashes don't count."""

_VERDICTS: Final = {word: status for status, words in WORDS.items() for word in words}


def paused(manifest: Manifest) -> Health | None:
    """Return that an object is suspended, by its spec or by what its controller says; None where it isn't."""
    spec = spec_of(manifest)
    if any(spec.get(name) is True for name in _PAUSED_BY):
        return suspended()
    for condition in conditions_of(manifest):
        if condition["type"] in _PAUSED and condition.get("status") == "True":
            return suspended(why(condition) or "suspended")
    return None


def by_conditions(manifest: Manifest) -> Health:
    """Return the health of an object of a kind that there is no rule for."""
    ready = condition_of(manifest, "Ready")
    if ready is not None:
        return _positive(manifest, ready) or current(why(ready))
    return next(_said(manifest), None) or by_words(manifest) or current(why(_first_positive(manifest)))


def _said(manifest: Manifest) -> Iterator[Health]:
    """Yield what conditions say other than that all is well."""
    found = {condition["type"]: condition for condition in conditions_of(manifest)}
    for name in NEGATIVE:
        if has_status(found.get(name), "True"):
            yield failed(why(found[name]) or name)
    for name in _WAITING:
        if has_status(found.get(name), "True"):
            yield _failed_or_in_progress(found[name])
    for name in POSITIVE:
        if name in found and (said := _positive(manifest, found[name])) is not None:
            yield said
    progressing = found.get("Progressing")
    # Kinds modelled after Deployment keep Progressing=True with this reason once they are done.
    if has_status(progressing, "True") and (progressing or {}).get("reason") != "NewReplicaSetAvailable":
        yield in_progress(why(progressing))
    if any(has_status(found.get(name), "True") for name in POSITIVE):
        yield current(why(_first_positive(manifest)))


def _positive(manifest: Manifest, condition: Manifest) -> Health | None:
    """Return what a condition says that should be True, None where it is."""
    if stale := staleness(manifest, condition):
        return in_progress(stale)
    if has_status(condition, "True"):
        return None
    return _failed_or_in_progress(condition) if has_status(condition, "False") else in_progress(why(condition))


def _failed_or_in_progress(condition: Manifest) -> Health:
    verdict = failed if names_failure(condition.get("reason")) else in_progress
    return verdict(why(condition) or f"{condition['type']} is {condition.get('status')}")


def names_failure(reason: Any) -> bool:
    """Tell whether the reason of a condition names a failure."""
    return isinstance(reason, str) and _FAILURE.search(reason[:200]) is not None


def _first_positive(manifest: Manifest) -> Manifest | None:
    found = {condition["type"]: condition for condition in conditions_of(manifest)}
    return next((found[name] for name in POSITIVE if name in found), None)


def by_words(manifest: Manifest) -> Health | None:
    """Return what ``status.phase`` and the like say; None where it is nothing, or no common word."""
    status = status_of(manifest)
    for name in _FIELDS:
        said = status.get(name)
        if isinstance(said, str) and (verdict := _VERDICTS.get(_plain(said[:100]))) is not None:
            message = status.get("message") or status.get("reason")
            return Health(verdict, str(message) if isinstance(message, str) and message else f"{name} is {said[:100]}")
    return None


def _plain(word: str) -> str:
    return re.sub(r"[\s_-]", "", word).lower()
