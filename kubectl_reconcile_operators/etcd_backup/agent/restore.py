"""The program of a restore's Job, before and after etcdutl: ``python -m kubectl_reconcile_operators.etcd_backup.agent.restore prepare …``, then ``finish``.

``check`` chooses and checks a backup, and writes nothing, before anybody is asked to have it replace data.
``prepare`` chooses and checks a backup, and leaves a link to it in the folder for work, where ``etcdutl snapshot restore`` finds it; ``finish`` puts what etcdutl has made in
place. Exit status: 0 it is done, 1 it isn't; the last line says why.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kubectl_reconcile_operators.backups.agent.choice import NotEmptyError, NotFoundError, WantedBackup, chosen
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, NoRoomError
from kubectl_reconcile_operators.backups.agent.place import add_place_arguments, place_of
from kubectl_reconcile_operators.backups.agent.program import add_program_arguments, run
from kubectl_reconcile_operators.etcd_backup.agent.seed import PART, ChosenSnapshot, SeedVolume
from kubectl_reconcile_operators.etcd_backup.agent.snapshots import SNAPSHOTS

_LINK, _CHOICE = "snapshot.db", "snapshot.json"
_FAULTS: dict[type[Exception], str] = {
    NotFoundError: "SnapshotNotFound",
    DamagedError: "SnapshotDamaged",
    NoRoomError: "NoRoom",
    NotEmptyError: "NotEmpty",
    OSError: "CannotWrite",
}


def main(arguments: Sequence[str]) -> int:
    """Do one part of a restore; return the exit status."""
    parser = argparse.ArgumentParser(prog="etcd-restore", description=__doc__)
    parser.add_argument("part", choices=list(_PARTS))
    add_place_arguments(parser)
    parser.add_argument("--snapshot", default="", help="the file to restore; the newest if left out")
    parser.add_argument("--sha256", default="")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--data", type=Path, default=Path(), help="where the member keeps its data")
    parser.add_argument("--restore", default="", help="who restores: the same whenever it will be retried")
    parser.add_argument("--attempt", default="", help="what tells this attempt's folder from others")
    add_program_arguments(parser)
    given = parser.parse_args(arguments)
    return run(_PARTS[given.part], given, _FAULTS)


def _checked(given: argparse.Namespace) -> dict[str, Any]:
    return _told(_chosen(given)[0])


def _chosen(given: argparse.Namespace) -> tuple[ChosenSnapshot, Path]:
    wanted = WantedBackup(given.snapshot, ".spec.backup.snapshot", given.sha256, given.size)
    found, file = chosen(place_of(given, SNAPSHOTS), SNAPSHOTS, wanted)
    return ChosenSnapshot(found.name, found.number, found.size, found.sha256), file


def _prepared(given: argparse.Namespace) -> dict[str, Any]:
    snapshot, file = _chosen(given)
    volume = SeedVolume(given.data, given.restore)
    if not volume.done(snapshot):
        volume.check_room(snapshot)
    link: Path = given.work / _LINK
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    (given.work / _CHOICE).write_text(json.dumps(asdict(snapshot)))
    return {"checked": snapshot.file}


def _finished(given: argparse.Namespace) -> dict[str, Any]:
    snapshot = ChosenSnapshot(**json.loads((given.work / _CHOICE).read_text()))
    part = given.data.with_name(f"{PART}{given.attempt}")
    if given.data.exists():  # an earlier attempt was done, and couldn't tell
        shutil.rmtree(part, ignore_errors=True)
    else:
        SeedVolume(given.data, given.restore).put_in_place(part, snapshot)
    return _told(snapshot)


def _told(snapshot: ChosenSnapshot) -> dict[str, Any]:
    return {
        "file": snapshot.file,
        "revision": snapshot.revision,
        "sizeBytes": snapshot.size,
        "sha256": snapshot.sha256,
    }


_PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "check": _checked,
    "prepare": _prepared,
    "finish": _finished,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
