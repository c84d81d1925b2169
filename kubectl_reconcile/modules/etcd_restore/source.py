"""Which snapshot is restored: what the EtcdBackup tells of it, or where it must be where the EtcdBackup is gone.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, map_at, maps_in, text_at
from kubectl_reconcile.modules.etcd_restore.spec import BackupRef


@dataclass(frozen=True, slots=True)
class ChosenBackup:
    """A file on a claim, and what is known of it; without *file* it is the newest in *folder*."""

    claim: str
    folder: str
    file: str = ""
    sha256: str = ""
    size: int = 0
    revision: int = 0
    version: str = ""


@dataclass(frozen=True, slots=True)
class RestoreObstacle:
    """What is in the way of a restore. What *passes* is waited for; anything else is for a person."""

    reason: str
    message: str
    passes: bool = False


def snapshot_of(wanted: BackupRef, backup: Manifest | None) -> ChosenBackup | RestoreObstacle:
    """Return the snapshot that is *wanted*, or why there is none."""
    if backup is None:
        if wanted.claim_name:
            return ChosenBackup(wanted.claim_name, wanted.name, wanted.snapshot)
        return RestoreObstacle(
            "BackupNotFound",
            f".spec.backup.name: there is no EtcdBackup {wanted.name} in this namespace (hint: correct the name; where it was deleted and its"
            " files were kept, say by .spec.backup.claimName on which claim)",
        )
    claim, folder = wanted.claim_name or _claim_of(backup), Context("", "etcdbackup", backup).name()
    known = list(_successes(backup))
    if wanted.snapshot:
        line: Mapping[str, Any] = next((each for each in known if _file_of(each) == wanted.snapshot), {})
    elif known:
        line = known[-1]
    else:
        return RestoreObstacle(
            "NoBackupYet",
            f".spec.backup.name: EtcdBackup {wanted.name} has no backup yet; the restore begins once it has",
            passes=True,
        )
    return ChosenBackup(
        claim, folder, wanted.snapshot or _file_of(line), str(line.get("sha256") or ""), _number(line, "sizeBytes"),
        _number(line, "revision"), str(line.get("etcdVersion") or ""),
    )  # fmt: skip


def _claim_of(backup: Manifest) -> str:
    named = text_at(backup, "spec", "storage", "persistentVolumeClaim", "claimName")
    return named or Context("", "etcdbackup", backup).name("backups")


def _successes(backup: Manifest) -> Iterator[Mapping[str, Any]]:
    """Yield what the EtcdBackup's status has of backups that succeeded, the newest last."""
    for line in maps_in(map_at(backup, "status").get("history")):
        if line.get("phase") == "Succeeded" and _file_of(line):
            yield line


def _file_of(line: Mapping[str, Any]) -> str:
    return str(line.get("file") or "").rpartition("/")[2]


def _number(line: Mapping[str, Any], name: str) -> int:
    found = line.get(name)
    return found if isinstance(found, int) else 0
