"""Why an item is looked at, and how long news from the cluster is waited for to be complete."""

from __future__ import annotations

from enum import IntEnum

from kubectl_reconcile.core.retry import PASS

DEBOUNCE_S = 0.02
"""How long news from the cluster is waited for to be complete."""

RETRY_CAP_S = PASS.cap_s
"""The longest pause after failures, unless whoever failed knows better."""


class Priority(IntEnum):
    """Why an item is looked at; the lower number goes first."""

    ASKED = 0
    """A person is waiting."""
    PUSH = 1
    """Git has something new."""
    DRIFT = 2
    """The cluster changed under us."""
    POLL = 3
    """Its time has come."""
    RESYNC = 4
    """Just to be sure."""

    @property
    def urgency(self) -> int:
        """How many others that came before something it may pass, if it is looked at for this reason."""
        return 10_000 * (Priority.RESYNC - self)
