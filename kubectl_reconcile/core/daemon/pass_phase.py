"""What is under way for one Sync in its turn."""

from __future__ import annotations

from enum import StrEnum


class PassPhase(StrEnum):
    """What is under way."""

    IDLE = "idle"
    """Nothing."""
    CHECKING = "checking"
    """It is looked whether all members are in the caches."""
    ON_SET = "on-set"
    """All that Git asks for is planned and written."""
    ON_OBJECTS = "on-objects"
    """What changed in the cluster is planned and written."""
