"""Which backups stay: by count and by age.

A backup is called by when it was begun, a number of what it holds, and what it is of, as in ``20261122T030000Z-r4711-76b1d76d2f14e34b.db``. Time and number count as numbers: 1000 is newer than
999. Time comes first, since what was restored may count from an earlier number on.

What is lost and made again under its name begins a *history* of its own: it is something else by its name, or its numbers begin again. Counts and ages are of one history alone, so that what begins empty never
takes the place of what was lost. Backups of before they named what they are of are the history of whoever knows them for its own.

Pure: names in, names out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_TIME = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True, order=True)
class StoredBackup:
    """A backup that is there; *of* says what of, empty where it doesn't."""

    began: datetime
    number: int
    name: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How many backups of a history stay, and how old they get; zero is without limit. *ours* are the names of those of *of* that don't say so."""

    keep: int
    max_age_days: float
    of: str = ""
    ours: frozenset[str] = frozenset()

    def owner(self, each: StoredBackup) -> str:
        """Return what a backup is of, empty where nobody knows."""
        return each.of or (self.of if each.name in self.ours else "")


@dataclass(frozen=True, slots=True)
class BackupNames:
    """How backups of one kind are called: *letter* comes before the number, *suffix* is what the name ends with."""

    letter: str
    suffix: str

    def name_of(self, began: datetime, number: int, of: str = "") -> str:
        """Return what a backup is called that is *of* something."""
        return f"{began.astimezone(UTC).strftime(_TIME)}Z-{self.letter}{number}{f'-{of}' if of else ''}{self.suffix}"

    def stored(self, name: str) -> StoredBackup | None:
        """Return the backup of that name, None if the file isn't one of ours."""
        pattern = rf"(\d{{8}}T\d{{6}})Z-{self.letter}(\d{{1,19}})(?:-([0-9a-z]{{1,20}}))?{re.escape(self.suffix)}"
        found = re.fullmatch(pattern, name)
        if found is None:
            return None
        try:
            began = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
        except ValueError:  # month 13
            return None
        return StoredBackup(began, int(found[2]), name, found[3] or "")

    def in_order_of_time(self, names: Iterable[str]) -> list[str]:
        """Return those of *names* that are of backups, the oldest first."""
        return [each.name for each in self._known(names)]

    def surplus(self, names: Iterable[str], rule: RetentionRule, now: datetime) -> list[str]:
        """Return which of the files *names* go, the oldest first: of each history all but the last ones, and what is too old.

        The newest of each stays, however old it is. Files that are no backups stay.
        """
        oldest = now - timedelta(days=rule.max_age_days) if rule.max_age_days else datetime.min.replace(tzinfo=UTC)
        going: list[StoredBackup] = []
        for history in self._histories(names, rule):
            too_many = len(history) - rule.keep if rule.keep else 0
            going += (each for at, each in enumerate(history[:-1]) if at < too_many or each.began < oldest)
        return [each.name for each in sorted(going)]

    def strangers(self, names: Iterable[str], rule: RetentionRule) -> list[str]:
        """Return which of the files *names* are backups of another history than the newest is of."""
        known = self._known(names)
        return [each.name for history in self._histories(names, rule) for each in history if known[-1] not in history]

    def _histories(self, names: Iterable[str], rule: RetentionRule) -> list[list[StoredBackup]]:
        """Return backups by history, each the oldest first."""
        found: dict[str, list[list[StoredBackup]]] = {}
        for each in self._known(names):
            histories = found.setdefault(rule.owner(each), [[]])
            if histories[-1] and histories[-1][-1].number > each.number:
                histories.append([])
            histories[-1].append(each)
        return [history for histories in found.values() for history in histories]

    def _known(self, names: Iterable[str]) -> list[StoredBackup]:
        return sorted(each for each in map(self.stored, names) if each is not None)


SNAPSHOT_NAMES = BackupNames("r", ".db")
"""How snapshots of etcd are called: by their revision."""
COPY_NAMES = BackupNames("t", ".tar.gz")
"""How copies of a PostgreSQL are called: by their timeline."""
