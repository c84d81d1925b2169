"""What can be said of an object's health, and how to read what objects say of themselves.

Whatever an object says may be anything: a schema may be loose, a controller careless, an author malicious. Reading never fails;
what has another shape than it should counts as not said, and a number in quotes as the number.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from kubectl_reconcile.core.objects import Manifest, mapping_of, number_of

AWAITING: Final = "AwaitingApproval"
"""The condition of a custom resource that says which action of its module waits for a person."""


class HealthStatus(StrEnum):
    """The possible verdicts on an object, in kstatus' words."""

    CURRENT = "Current"
    """The object is what its spec asks for."""
    IN_PROGRESS = "InProgress"
    """The object isn't as its spec asks yet, and may become so without help."""
    FAILED = "Failed"
    """The object can't become what its spec asks for, or has stopped trying."""
    TERMINATING = "Terminating"
    """The object is being deleted."""
    NOT_FOUND = "NotFound"
    """There is no object."""
    SUSPENDED = "Suspended"
    """Somebody paused the object; nothing waits for it."""
    UNKNOWN = "Unknown"
    """Its health can't be determined: the object says nothing, or contradicts what is known of its kind."""

    @property
    def holds_up(self) -> bool:
        """Tell whether something that needs the object to be healthy waits for it. Nothing waits for an object that is paused or reports nothing."""
        return self not in _HOLDS_NOBODY_UP


_HOLDS_NOBODY_UP = frozenset({HealthStatus.CURRENT, HealthStatus.SUSPENDED, HealthStatus.UNKNOWN})


class Health(Struct, frozen=True):
    """A verdict and its reason in words: which count is short, which pod, why. Prints as one line.

    *lasts_s* says for how many seconds the verdict holds if the object doesn't change, None if time plays no part.
    *is_silent* says that the object has reported nothing. *fault* says why a rule of the user couldn't be used; it is empty if there was no
    such problem.
    """

    status: HealthStatus
    message: str = ""
    lasts_s: float | None = None
    is_silent: bool = False
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else str(self.status)


def current(message: str = "") -> Health:
    """Return that an object is what its spec asks for."""
    return Health(HealthStatus.CURRENT, message)


def in_progress(message: str) -> Health:
    """Return that an object isn't there yet."""
    return Health(HealthStatus.IN_PROGRESS, message)


def failed(message: str) -> Health:
    """Return that an object won't get there."""
    return Health(HealthStatus.FAILED, message)


def suspended(message: str = "suspended") -> Health:
    """Return that an object is paused."""
    return Health(HealthStatus.SUSPENDED, message)


def unknown(message: str) -> Health:
    """Return that nobody can tell."""
    return Health(HealthStatus.UNKNOWN, message)


def unobserved() -> Health:
    """Return that an object's controller hasn't said anything of it."""
    return in_progress("its controller hasn't observed it yet")


# --- reading --------------------------------------------------------------------------------------------------------------


def spec_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the spec of an object; empty where it has none."""
    return mapping_of(manifest.get("spec"))


def status_of(manifest: Manifest) -> Mapping[str, Any]:
    """Return the status of an object; empty where it has none."""
    return mapping_of(manifest.get("status"))


def count_of(manifest: Manifest, name: str) -> int:
    """Return a count in the status; controllers leave out those that are zero."""
    return number_of(status_of(manifest).get(name)) or 0


def wanted_of(manifest: Manifest) -> int:
    """Return how many replicas the spec asks for."""
    replicas = number_of(spec_of(manifest).get("replicas"))
    return 1 if replicas is None else replicas


def is_observed(manifest: Manifest) -> bool:
    """Tell whether the object's controller says which generation it has seen."""
    return number_of(status_of(manifest).get("observedGeneration")) is not None


def has_status(condition: Manifest | None, status: str) -> bool:
    """Tell whether a condition is there and says *status*."""
    return condition is not None and condition.get("status") == status


def why(condition: Manifest | None) -> str:
    """Return the message of a condition, or its reason."""
    found = condition or {}
    return str(found.get("message") or found.get("reason") or "")


# --- wording --------------------------------------------------------------------------------------------------------------


def shortage(what: str, found: int, wanted: int, noun: str = "replicas") -> str:
    """Return how many of what is wanted are missing, in words; empty where none is."""
    return f"{found} of {wanted} {noun} are {what}" if found < wanted else ""


def surplus(found: int, wanted: int) -> str:
    """Return how many replicas are too many, in words; empty where none is."""
    return f"{found} replicas exist, {wanted} wanted" if found > wanted else ""


def joined(what: str, detail: object) -> str:
    """Return a sentence with its detail, where there is one."""
    return f"{what}: {detail}" if detail else what
