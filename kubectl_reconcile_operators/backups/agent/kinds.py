"""What backups are of: how they are called, how one is checked, and what may be wrong with them or their place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from kubectl_reconcile_operators.backups.retention import BackupNames


class DamagedError(Exception):
    """It is no backup, or not a whole one; the message says why."""


class NoRoomError(Exception):
    """The volume has no room left."""


class PlaceError(Exception):
    """The place can't be got at; *reason* is a word for it, the message names the field and says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Written:
    """A backup that was written and checked. *number* and *of* are those of its name; *sha256* is of the file as it is."""

    name: str
    number: int
    size: int
    sha256: str
    of: str = ""


class BackupKind(Protocol):
    """What backups are of."""

    @property
    def names(self) -> BackupNames:
        """Return how they are called."""

    def checked(self, file: Path, began: datetime, of: str = "") -> Written:
        """Return what a file holds, having checked all of it; it isn't renamed. *of* is what it is of, where it doesn't say so itself.

        Raises:
            DamagedError: it isn't a whole backup.
        """
