"""Which backups stay: by count and by age.

A backup is called by when it was begun and a number of what it holds, as in ``20261122T030000Z-r4711.db``. Time and number count as numbers: 1000 is newer than
999. Time comes first, since what was restored may count from an earlier number on.

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
    """A backup that is there."""

    began: datetime
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class BackupNames:
    """How backups of one kind are called: *letter* comes before the number, *suffix* is what the name ends with."""

    letter: str
    suffix: str

    def name_of(self, began: datetime, number: int) -> str:
        """Return what a backup is called."""
        return f"{began.astimezone(UTC).strftime(_TIME)}Z-{self.letter}{number}{self.suffix}"

    def stored(self, name: str) -> StoredBackup | None:
        """Return the backup of that name, None if the file isn't one of ours."""
        found = re.fullmatch(rf"(\d{{8}}T\d{{6}})Z-{self.letter}(\d{{1,19}}){re.escape(self.suffix)}", name)
        if found is None:
            return None
        try:
            began = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
        except ValueError:  # month 13
            return None
        return StoredBackup(began, int(found[2]), name)

    def in_order_of_time(self, names: Iterable[str]) -> list[str]:
        """Return those of *names* that are of backups, the oldest first."""
        return [each.name for each in self._known(names)]

    def surplus(self, names: Iterable[str], *, keep: int, max_age_days: float, now: datetime) -> list[str]:
        """Return which of the files *names* go, the oldest first: all but the last *keep*, and what is older than *max_age_days*; zero is without limit.

        The newest stays, however old it is. Files that are no backups stay.
        """
        known = self._known(names)
        oldest = now - timedelta(days=max_age_days) if max_age_days else datetime.min.replace(tzinfo=UTC)
        too_many = len(known) - keep if keep else 0
        return [each.name for at, each in enumerate(known[:-1]) if at < too_many or each.began < oldest]

    def _known(self, names: Iterable[str]) -> list[StoredBackup]:
        return sorted(each for each in map(self.stored, names) if each is not None)
