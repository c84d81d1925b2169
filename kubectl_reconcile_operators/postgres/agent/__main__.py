"""The program of the Jobs of a MyDatabase: ``python -m kubectl_reconcile_operators.postgres.agent keep --copy=/backups/db/1.copy --folder=/backups/db``, and ``fetch``.

With ``--s3-bucket``, the folder is one of a bucket. Exit status: 0 it is done, 1 it isn't; the last line says why.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubectl_reconcile_operators.backups.agent.choice import NotEmptyError, NotFoundError, WantedBackup, chosen
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, NoRoomError
from kubectl_reconcile_operators.backups.agent.place import add_place_arguments, place_of
from kubectl_reconcile_operators.backups.agent.program import (
    FailureError,
    add_program_arguments,
    add_retention_arguments,
    retained,
    run,
)
from kubectl_reconcile_operators.postgres.agent.archive import COPIES, archived, content_of, unpacked

_FIELD = ".spec.bootstrap.fromBackup"
_MARK = "restored.json"
_FAULTS: dict[type[Exception], str] = {
    NotFoundError: "BackupNotFound",
    DamagedError: "BackupDamaged",
    NoRoomError: "NoRoom",
    NotEmptyError: "NotEmpty",
    OSError: "CannotWrite",
}


def main(arguments: Sequence[str]) -> int:
    """Keep a copy, or fetch one; return the exit status."""
    parser = argparse.ArgumentParser(prog="postgres-backup", description=__doc__)
    parts = parser.add_subparsers(required=True)
    keep = parts.add_parser("keep", help="make a backup of a copy, and take away old ones")
    keep.add_argument("--copy", type=Path, required=True, help="what pg_basebackup has written; it goes")
    add_retention_arguments(keep)
    keep.set_defaults(do=_kept)
    fetch = parts.add_parser("fetch", help="make a folder of a backup")
    fetch.add_argument("--file", default="", help="the backup to restore; the newest if left out")
    fetch.add_argument("--data", type=Path, required=True, help="the folder that a server will read")
    fetch.add_argument("--major", required=True, help="the major version that will")
    fetch.add_argument("--restore", default="", help="who restores: the same whenever it will be retried")
    fetch.set_defaults(do=_fetched)
    for each in (keep, fetch):
        add_place_arguments(each)
        add_program_arguments(each)
    given = parser.parse_args(arguments)
    os.umask(0o077)
    return run(given.do, given, _FAULTS)


def _kept(given: argparse.Namespace) -> dict[str, Any]:
    try:
        place = place_of(given, COPIES)
        place.sweep(given.stale_after)
        now = datetime.now(UTC)
        try:
            written = place.write(archived(given.copy), now)
        except NoRoomError as error:
            hint = "make it larger, or keep fewer by .spec.backup.retain"
            raise FailureError("NoRoom", f"{error} (hint: {hint})") from error
        _, note = retained(given, place, COPIES.names, written, now)
    finally:
        shutil.rmtree(given.copy, ignore_errors=True)
    found = {
        "file": f"{place.label}/{written.name}",
        "timeline": written.number,
        "sizeBytes": written.size,
        "sha256": written.sha256,
    }
    return {**found, "note": note} if note else found


def _fetched(given: argparse.Namespace) -> dict[str, Any]:
    part, mark = given.data.with_name(f"{given.data.name}.restoring"), given.data.with_name(_MARK)
    if given.data.exists():
        return _earlier(given, mark)
    shutil.rmtree(part, ignore_errors=True)
    found, file = chosen(place_of(given, COPIES), COPIES, WantedBackup(given.file, f"{_FIELD}.file"))
    major = content_of(file).major
    if major != given.major:
        text = f"{found.name} is of PostgreSQL {major}, which {given.major} doesn't read (hint: set .spec.version to {major} in a new MyDatabase)"
        raise FailureError("OtherVersion", text)
    unpacked(file, part)
    told = {"file": found.name, "timeline": found.number, "sizeBytes": found.size, "sha256": found.sha256}
    mark.write_text(json.dumps({**told, "restore": given.restore}))
    os.sync()
    return told


def _earlier(given: argparse.Namespace, mark: Path) -> dict[str, Any]:
    """Return what an earlier attempt has put in place, and couldn't tell.

    Raises:
        NotEmptyError: somebody else has.
    """
    try:
        found = json.loads(mark.read_text())
    except (OSError, ValueError):
        found = {}
    if not isinstance(found, dict) or found.pop("restore", None) != given.restore:
        raise NotEmptyError(
            f"the volume holds a database that this restore hasn't written, in {given.data.name} (hint: delete the volume claim, or restore into a MyDatabase of another name)"
        )
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
