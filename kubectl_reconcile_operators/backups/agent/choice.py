"""A backup that is looked for: the one that somebody names, or the newest, whole and the one that was written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kubectl_reconcile_operators.backups.agent.kinds import BackupKind, DamagedError, Written
from kubectl_reconcile_operators.backups.agent.place import BackupPlace


class NotFoundError(Exception):
    """There is no such backup; the message says which there are."""


class NotEmptyError(Exception):
    """The volume holds data that this restore hasn't written."""


@dataclass(frozen=True, slots=True)
class WantedBackup:
    """The backup *name*, the newest where none is named, with *sha256* and *size* where these are known; *field* is what the spec calls it."""

    name: str
    field: str
    sha256: str = ""
    size: int = 0


def chosen(place: BackupPlace, kind: BackupKind, wanted: WantedBackup) -> tuple[Written, Path]:
    """Return the backup that is *wanted* and its file, having checked it.

    Raises:
        NotFoundError: it isn't there.
        DamagedError: it isn't whole, or isn't the one that was written.
        NoRoomError: there is no room to fetch it.
        PlaceError: the bucket can't be read.
    """
    names = _names(place)
    if wanted.name and wanted.name not in names:
        raise NotFoundError(f"there is no {place.label}/{wanted.name}{_others(names)}")
    if not names:
        raise NotFoundError(f"there is no backup in folder {place.label}")
    file = place.fetched(wanted.name or names[-1])
    try:
        found = kind.checked(file, datetime.now(UTC))
    except DamagedError as error:
        raise _damaged(file.name, str(error), names, wanted) from None
    if wanted.size and found.size != wanted.size:
        raise _damaged(file.name, f"it has {found.size} bytes, and had {wanted.size}", names, wanted)
    if wanted.sha256 and found.sha256 != wanted.sha256:
        raise _damaged(file.name, f"its SHA-256 is {found.sha256}, and was {wanted.sha256}", names, wanted)
    return Written(f"{place.label}/{file.name}", found.number, found.size, found.sha256, found.of), file


def _names(place: BackupPlace) -> list[str]:
    try:
        return place.names()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError(f"there is no folder {place.label} on the volume") from error


def _others(names: list[str]) -> str:
    return f" (hint: the last ones there are: {', '.join(names[-3:])})" if names else ""


def _damaged(name: str, why: str, names: list[str], wanted: WantedBackup) -> DamagedError:
    others = [each for each in names if each != name]
    hint = f"name another one by {wanted.field}, such as {others[-1]}" if others else "there is no other one"
    return DamagedError(f"{name} is damaged: {why} (hint: {hint})")
