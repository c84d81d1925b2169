"""What an object's silence says: that it has no status, though its kind may have one.

Most objects have nothing to say, and some have nobody who would. So whoever says nothing holds nobody up: for a minute it counts
as current, as it does for kstatus, and from then on nobody can tell how it is. Only where a status is sure to come, since another
object of the kind has one, it is in progress until it has.

A kind of Kubernetes' own, or one without the subresource ``status``, has nothing to say. A kind that there is a rule for isn't judged here: its rule tells.

Pure: time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum
from math import inf
from typing import Final

from kubectl_reconcile.core.health.health import Health, HealthStatus
from kubectl_reconcile.core.objects import API_GROUP, GroupKind, Manifest, metadata_of

SILENCE_S: Final = 60.0
"""How long an object may say nothing before nobody can tell how it is."""
_FIRST_WORD_S: Final = 2.5
_SKEW_S: Final = 5.0

_OWN_GROUPS: Final = frozenset(
    {
        "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
        "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
        "extensions", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
        "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
    }
)  # fmt: skip
"""API groups of Kubernetes itself; https://kubernetes.io/docs/reference/kubernetes-api lists them."""


class Expected(Enum):
    """Whether a status is to be expected of an object that has none, besides what the rules of its kind know."""

    NOT_KNOWN = "not known"
    """Nobody has looked: as kstatus has it, an object without a status is current."""
    NEVER = "never"
    """The kind has no status: there is nothing to wait for."""
    POSSIBLE = "possible"
    """The kind has a status; whether something writes it isn't known."""
    SURE = "sure"
    """Another object of the kind has one, or a module of ours gives it one: its controller is there."""


def expected_of(kind: GroupKind, *, has_status: bool, spoken: Collection[GroupKind] = ()) -> Expected:
    """Return what is to be expected of objects of a kind; *spoken* are kinds of which an object has a status."""
    if not has_status or kind.group in _OWN_GROUPS or kind.group == API_GROUP:
        return Expected.NEVER
    return Expected.SURE if kind in spoken else Expected.POSSIBLE


def silent(manifest: Manifest, expected: Expected, now: str) -> Health:
    """Return the health of an object that says nothing; without *now* (RFC 3339) nobody can tell for how long."""
    if expected is Expected.SURE:
        return EXPECTED
    age_s = age_of(manifest, now)
    if age_s is not None and age_s < SILENCE_S:
        return Health(HealthStatus.CURRENT, "no controller has reported on it yet", SILENCE_S - age_s, is_silent=True)
    return Health(
        HealthStatus.UNKNOWN,
        "no controller has ever reported on it; is one for its kind running?",
        is_silent=True,
    )


EXPECTED: Final = Health(
    HealthStatus.IN_PROGRESS,
    "its controller hasn't reported on it yet, but has on others of its kind",
    is_silent=True,
)
"""The health of an object whose controller is there and hasn't said anything of it."""


def is_young(found: Health) -> bool:
    """Tell whether an object has been silent for so short that a controller may not have had the time to speak.

    A clock that is ahead of, or behind, the server's by more than a little tells nothing.
    """
    age_s = SILENCE_S - found.lasts_s if found.is_silent and found.lasts_s is not None else inf
    return -_SKEW_S < age_s < _FIRST_WORD_S


def age_of(manifest: Manifest, now: str) -> float | None:
    """Return the age of an object in seconds; without a birthday it is infinitely old. None where it isn't known."""
    born = metadata_of(manifest).get("creationTimestamp")
    if not born:
        return inf
    try:
        age: timedelta = datetime.fromisoformat(now) - datetime.fromisoformat(str(born))
    except (ValueError, TypeError):
        return None
    return age.total_seconds()
