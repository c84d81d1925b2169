"""Which snapshot is restored: what the EtcdBackup says about it, or where it must be where the EtcdBackup is gone.

Pure: values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, SpecError, map_at, maps_in, text_at
from kubectl_reconcile_operators.backups.s3 import S3Place, s3_place
from kubectl_reconcile_operators.etcd_restore.spec import S3_FIELD, BackupRef


@dataclass(frozen=True, slots=True)
class ChosenBackup:
    """A file on a claim, or in *s3*, which *field* names, and what is known of it; without *file* it is the newest in *folder*."""

    claim: str
    folder: str
    file: str = ""
    sha256: str = ""
    size: int = 0
    revision: int = 0
    version: str = ""
    s3: S3Place | None = None
    field: str = ""

    def again(self, snapshot: str) -> ChosenBackup:
        """Return the same place, and what somebody asks for there."""
        return ChosenBackup(self.claim, self.folder, snapshot, s3=self.s3, field=self.field)


@dataclass(frozen=True, slots=True)
class RestoreObstacle:
    """What is in the way of a restore. What *passes* is waited for; anything else is for a person."""

    reason: str
    message: str
    passes: bool = False


def snapshot_of(wanted: BackupRef, backup: Manifest | None, namespace: str) -> ChosenBackup | RestoreObstacle:
    """Return the snapshot that is *wanted*, or why there is none."""
    if backup is None:
        if wanted.s3:
            return _in_bucket(wanted.s3, S3_FIELD, namespace, wanted.name).again(wanted.snapshot)
        if wanted.claim_name:
            return ChosenBackup(wanted.claim_name, wanted.name, wanted.snapshot)
        return RestoreObstacle(
            "BackupNotFound",
            f".spec.backup.name: there is no EtcdBackup {wanted.name} in this namespace (hint: correct the name; if it was deleted and its"
            " files were kept, name their place in .spec.backup.claimName or .spec.backup.s3)",
        )
    try:
        place = _place_of(wanted, backup, namespace)
    except SpecError as error:
        return RestoreObstacle("BackupUnclear", f".spec.backup.name: EtcdBackup {wanted.name}: {error}")
    known = list(_successes(backup))
    if wanted.snapshot:
        line: Mapping[str, Any] = next((each for each in known if _file_of(each) == wanted.snapshot), {})
    elif known:
        line = known[-1]
    else:
        return RestoreObstacle(
            "NoBackupYet",
            f".spec.backup.name: EtcdBackup {wanted.name} has no backup yet; the restore starts once it has one",
            passes=True,
        )
    return replace(
        place, file=wanted.snapshot or _file_of(line), sha256=str(line.get("sha256") or ""), size=_number(line, "sizeBytes"),
        revision=_number(line, "revision"), version=str(line.get("etcdVersion") or ""),
    )  # fmt: skip


def _place_of(wanted: BackupRef, backup: Manifest, namespace: str) -> ChosenBackup:
    """Return where the EtcdBackup's files are; what is *wanted* counts more than what it says.

    Raises:
        SpecError: it says nothing that makes sense.
    """
    name, storage = Context("", "etcdbackup", backup).name(), map_at(backup, "spec", "storage")
    if wanted.s3:
        return _in_bucket(wanted.s3, S3_FIELD, namespace, name)
    if "s3" in storage and not wanted.claim_name:
        s3 = s3_place(map_at(storage, "s3"), ".spec.storage.s3")
        return _in_bucket(s3, f"EtcdBackup {wanted.name}: .spec.storage.s3", namespace, name)
    return ChosenBackup(wanted.claim_name or _claim_of(backup), name)


def _in_bucket(s3: S3Place, field: str, namespace: str, name: str) -> ChosenBackup:
    return ChosenBackup("", s3.folder(namespace, name), s3=s3, field=field)


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
