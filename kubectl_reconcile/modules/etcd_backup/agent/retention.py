"""Which backups stay: by count and by age.

A backup is called by when it was begun and the revision that it holds, as in ``20261122T030000Z-r4711.db``. Time and revision count as numbers: revision 1000
is newer than 999. Time comes first, since a cluster that was restored counts revisions from an earlier one on.

Pure: names in, names out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_NAME = re.compile(r"(\d{8}T\d{6})Z-r(\d{1,19})\.db")
_TIME = "%Y%m%dT%H%M%S"


@dataclass(frozen=True, slots=True, order=True)
class StoredBackup:
    """A backup that is there."""

    began: datetime
    revision: int
    name: str


def name_of(began: datetime, revision: int) -> str:
    """Return what a backup is called."""
    return f"{began.astimezone(UTC).strftime(_TIME)}Z-r{revision}.db"


def stored(name: str) -> StoredBackup | None:
    """Return the backup of that name, None where the file is none of ours."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    try:
        began = datetime.strptime(found[1], _TIME).replace(tzinfo=UTC)
    except ValueError:  # month 13
        return None
    return StoredBackup(began, int(found[2]), name)


def in_order_of_time(names: Iterable[str]) -> list[str]:
    """Return those of *names* that are of backups, the oldest first."""
    return [each.name for each in sorted(each for each in map(stored, names) if each is not None)]


def surplus(names: Iterable[str], *, keep: int, max_age_days: int, now: datetime) -> list[str]:
    """Return which of the files *names* go, the oldest first: all but the last *keep*, and what is older than *max_age_days*; zero is without limit.

    The newest stays, however old it is. Files that are no backups stay.
    """
    known = sorted(each for each in map(stored, names) if each is not None)
    oldest = now - timedelta(days=max_age_days) if max_age_days else datetime.min.replace(tzinfo=UTC)
    too_many = len(known) - keep if keep else 0
    return [each.name for at, each in enumerate(known[:-1]) if at < too_many or each.began < oldest]
