"""Backoff: how long to wait before something that failed is tried again, and the one table of who waits how long.

Each pause is twice as long as the one before, up to a cap; what resets it makes the next one the first again. Where many may fail at the
same moment, each draws a number and waits between half of the pause and all of it, so that they don't come back together.

How often something is tried, and whether another try is worth it, is for whoever tries to say. What a server asks for (``Retry-After``) comes first.

Pure: what is random is an argument.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Backoff(Struct, frozen=True):
    """Pauses from *first_s* to *cap_s* seconds. *who* waits and what *resets* it are said in the documentation."""

    who: str
    first_s: float
    cap_s: float
    resets: str

    def pause_s(self, failures: int, drawn: float = 1.0) -> float:
        """Seconds to wait after so many failures in a row; *drawn* is a random number from 0 to 1.

        Raises:
            ValueError: *failures* is less than 1.
        """
        if failures < 1:
            raise ValueError(f"a backoff needs at least one failure, not {failures}")
        # An exponent that is too large for a float is nobody's business: the cap is reached long before.
        return min(self.first_s * 2.0 ** min(failures - 1, 32), self.cap_s) * (0.5 + drawn / 2)

    def up_to(self, cap_s: float) -> Backoff:
        """The same pauses with another cap."""
        return replace(self, cap_s=cap_s)


PASS: Final = Backoff(
    "the pass of a Sync or of a custom resource that failed",
    1.0,
    60.0,
    "a pass that succeeds; a push or a request doesn't wait",
)
DELETION: Final = Backoff("the deletion of a Sync that waits for members to go", 1.0, 10.0, "the Sync is gone")
READ: Final = Backoff("a read that the API server didn't answer", 0.2, 10.0, "each read begins again at the first")
WRITE: Final = Backoff("a write that may succeed if it is sent again", 0.1, 3.0, "each write begins again at the first")
ACTION: Final = Backoff(
    "an action whose custom resource was changed by somebody else", 0.02, 1.0, "each action begins again at the first"
)
WATCH: Final = Backoff("a watch that the API server refuses", 0.1, 30.0, "a watch that lasts a second")
OUTAGE: Final = Backoff("a watch whose API server is away", 0.1, 3.0, "a watch that lasts a second")
KINDS: Final = Backoff("the list of kinds, while a new CRD isn't in it", 0.3, 10.0, "all kinds are listed")
SILENT_POD: Final = Backoff("calls to a pod that didn't answer in time", 1.0, 30.0, "an answer")
AILING_PODS: Final = Backoff(
    "a look at the pods of a workload that isn't healthy", 2.0, 30.0, "the workload is healthy"
)
CONTENTION: Final = Backoff(
    "a field that another manager overwrites again and again",
    300.0,
    3600.0,
    "another manager overwrites it, or ten minutes without",
)
LATE_RENDERING: Final = Backoff(
    "the next rendering of a namespace, after one that took too long", 30.0, 600.0, "a rendering that ends in time"
)

TABLE: Final = (
    PASS,
    DELETION,
    READ,
    WRITE,
    ACTION,
    WATCH,
    OUTAGE,
    KINDS,
    SILENT_POD,
    AILING_PODS,
    CONTENTION,
    LATE_RENDERING,
)
