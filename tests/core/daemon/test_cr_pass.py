"""When a CR is looked at again."""

from __future__ import annotations

import pytest

from kubectl_reconcile.core.daemon.cr_pass import CrApplied, CrFailed, CrInterrupted, Pace, after_cr_pass
from kubectl_reconcile.core.daemon.pass_events import ForgetFailures, LookAgain, Retry, Scope
from kubectl_reconcile.core.daemon.priority import DEBOUNCE_S, RETRY_CAP_S, Priority

NOW_S = 1000.0
SOON = LookAgain(Priority.DRIFT, DEBOUNCE_S)
FOLLOWS = {
    "nothing to do": (CrApplied(), (ForgetFailures(),)),
    "what was written is looked at": (CrApplied(has_written=True), (Pace(), ForgetFailures(), SOON)),
    "what somebody waits for is paced as such": (
        CrApplied(has_written=True, is_urgent=True), (Pace(is_urgent=True), ForgetFailures(), SOON),
    ),
    "a time that the module names": (
        CrApplied(requeue_after_s=5.0), (ForgetFailures(), LookAgain(Priority.POLL, 5.0)),
    ),
    "a time of nought is a time": (CrApplied(requeue_after_s=0.0), (ForgetFailures(), LookAgain(Priority.POLL, 0.0))),
    "what was written goes before a time": (
        CrApplied(has_written=True, requeue_after_s=5.0), (Pace(), ForgetFailures(), SOON),
    ),
    "contention that lapses": (
        CrApplied(lapses_at_s=NOW_S + 7), (ForgetFailures(), LookAgain(Priority.POLL, 7.0)),
    ),
    "a fault": (CrApplied(faults=("no",), requeue_after_s=5.0), (Retry(Scope.OBJECTS, Priority.RESYNC, RETRY_CAP_S),)),
    "a fault after a write": (
        CrApplied(faults=("no",), has_written=True), (Pace(), Retry(Scope.OBJECTS, Priority.RESYNC, RETRY_CAP_S)),
    ),
    "it came to nothing": (CrFailed("no"), (Retry(Scope.BROKEN_OFF, Priority.RESYNC, RETRY_CAP_S, "no"),)),
    "it was interrupted": (CrInterrupted(), (LookAgain(Priority.RESYNC),)),
}  # fmt: skip


@pytest.mark.parametrize(("happened", "instructions"), FOLLOWS.values(), ids=FOLLOWS)
def test_what_follows_from_a_pass_over_a_cr(happened, instructions):
    assert after_cr_pass(happened, NOW_S) == instructions
