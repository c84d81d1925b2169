"""A backup on its way to a member's volume: chosen, checked, restored under another name, and renamed last.

Between ``chosen`` and `put_in_place`, etcd's own ``etcdutl snapshot restore`` makes the data directory of one member. It does so in a folder that begins
with ``restoring-``, which no member ever reads; only the rename makes it data. A *mark* beside the data tells which restore has written it, so that whoever is
killed in between finds what is done, and does over what isn't.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kubectl_reconcile_operators.backups.agent.choice import NotEmptyError
from kubectl_reconcile_operators.backups.agent.kinds import DamagedError, NoRoomError

PART = "restoring-"
_MARK = "restored.json"
_LOG_SIZE = 1 << 26
"""What etcd sets aside for its first log, in bytes."""


@dataclass(frozen=True, slots=True)
class ChosenSnapshot:
    """A backup that is whole. *sha256* is of the file as it is."""

    file: str
    revision: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SeedVolume:
    """The volume of a member. *data* is where it keeps its data; *restore* names who writes."""

    data: Path
    restore: str

    def done(self, snapshot: ChosenSnapshot) -> bool:
        """Tell whether this restore has written *snapshot* already; clear away all of its own that it hasn't finished.

        Raises:
            NotEmptyError: there is data of somebody else.
        """
        for each in self.data.parent.glob(f"{PART}*"):
            shutil.rmtree(each)
        if not self.data.exists():
            return False
        if (mark := self._mark()).get("restore") != self.restore:
            raise NotEmptyError(f"the volume has data that this restore didn't write, in {self.data.name}")
        if mark.get("sha256") == snapshot.sha256:
            return True
        going = self.data.with_name(
            f"{PART}another"
        )  # an earlier choice of this restore, which no member has started with
        self.data.rename(going)
        shutil.rmtree(going)
        return False

    def check_room(self, snapshot: ChosenSnapshot) -> None:
        """Refuse to begin where the data doesn't fit.

        Raises:
            NoRoomError: it doesn't.
        """
        at = os.statvfs(self.data.parent)
        free, needed = at.f_bavail * at.f_frsize, snapshot.size + _LOG_SIZE
        if free < needed:
            raise NoRoomError(f"the data and its log need {needed} bytes, and {free} are free")

    def put_in_place(self, part: Path, snapshot: ChosenSnapshot) -> None:
        """Make what etcdutl has written to *part* the member's data.

        Raises:
            DamagedError: it is no data of a member.
        """
        if not (part / "member/snap/db").is_file() or not list((part / "member/wal").glob("*.wal")):
            raise DamagedError("etcdutl wrote no data of a member")
        for folder, _, files in os.walk(part, topdown=False):
            for name in files:
                _sync(Path(folder) / name, os.O_RDONLY)
            _sync(Path(folder), os.O_RDONLY | os.O_DIRECTORY)
        mark = self.data.with_name(_MARK)
        mark.write_text(json.dumps({"restore": self.restore, **asdict(snapshot)}))
        _sync(mark, os.O_RDONLY)
        part.rename(self.data)
        _sync(self.data.parent, os.O_RDONLY | os.O_DIRECTORY)

    def _mark(self) -> Mapping[str, Any]:
        try:
            found = json.loads(self.data.with_name(_MARK).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, Mapping) else {}


def _sync(path: Path, how: int) -> None:
    at = os.open(path, how)
    try:
        os.fsync(at)
    finally:
        os.close(at)
