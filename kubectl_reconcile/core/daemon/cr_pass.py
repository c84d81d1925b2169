"""What follows from a pass over a CR: when it is looked at again.

A pass over a CR keeps nothing for the next one, so there is no state: one event in, instructions out; but for those whose modules read all of their namespace it
is kept when they are looked at next (``ReadingTimes``). A CR whose pass wrote
is looked at once more, since its status should tell what is there now; one that always writes is paced, later where somebody waits.

Pure: time is an argument.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct, field

from kubectl_reconcile.core.daemon.pass_events import ForgetFailures, LookAgain, Retry, Scope
from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S, RETRY_CAP_S, Priority
from kubectl_reconcile.core.objects import ObjectRef


class CrApplied(Struct, frozen=True):
    """A pass over a CR is done; *faults* are sentences on what went wrong, *requeue_after_s* is when its module wants another, *is_urgent* whether somebody waits for that. *awaiting* is an action that waits for a person since now."""

    faults: tuple[str, ...] = ()
    has_written: bool = False
    requeue_after_s: float | None = None
    is_urgent: bool = False
    lapses_at_s: float | None = None
    duration_s: float = 0.0
    awaiting: str = ""


class CrFailed(Struct, frozen=True):
    """A pass over a CR came to nothing; *is_crash* where that is a fault of this program."""

    message: str
    is_crash: bool = False


class CrInterrupted(Struct, frozen=True):
    """The daemon was told to end, or the CR became another replica's, in the middle of a pass."""


class Pace(Struct, frozen=True):
    """Count that a pass wrote, so that one that always does is made to wait."""

    is_urgent: bool = False


CrEvent: TypeAlias = CrApplied | CrFailed | CrInterrupted
CrInstruction: TypeAlias = LookAgain | Retry | ForgetFailures | Pace


def after_cr_pass(happened: CrEvent, now_s: float) -> tuple[CrInstruction, ...]:
    """Return what follows from how a pass over a CR went."""
    if isinstance(happened, CrInterrupted):
        return (LookAgain(Priority.RESYNC),)
    if isinstance(happened, CrFailed):
        return (Retry(Scope.BROKEN_OFF, Priority.RESYNC, RETRY_CAP_S, happened.message),)
    pace = (Pace(happened.is_urgent),) * happened.has_written
    if happened.faults:
        return (*pace, Retry(Scope.OBJECTS, Priority.RESYNC, RETRY_CAP_S))
    again: list[CrInstruction] = []
    if happened.has_written:
        again.append(LookAgain(Priority.DRIFT, DEBOUNCE_S))
    elif happened.requeue_after_s is not None:
        again.append(LookAgain(Priority.POLL, happened.requeue_after_s))
    if happened.lapses_at_s is not None:
        again.append(LookAgain(Priority.POLL, happened.lapses_at_s - now_s))
    return (*pace, ForgetFailures(), *again)


READ_AGAIN_S: Final = 3.0
"""How many seconds apart."""


class ReadingTimes(Struct):
    """When custom resources are looked at whose modules read all of their namespace, where something changes all the time: soon, and then some seconds apart.

    Times are of the monotonic clock.
    """

    _due_s: dict[ObjectRef, float] = field(default_factory=dict)

    def after_change(self, cr: ObjectRef, now_s: float) -> float:
        """Return when to look because something has changed *now_s*.

        It is never before that: that a look was wanted for a time to come doesn't tell that there will be one, since the queue has one look answer for
        all that was asked until then.
        """
        last_s = self._due_s.get(cr, 0.0)
        if last_s <= now_s:
            self._due_s[cr] = max(now_s + DEBOUNCE_S, last_s + READ_AGAIN_S)
        return self._due_s[cr]

    def forget(self, cr: ObjectRef) -> None:
        """Drop a custom resource that is gone."""
        self._due_s.pop(cr, None)
