"""The parts of a MyDatabase's spec that are about backups.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kubectl_reconcile.module_api import IMAGE, Between, SpecError, schedule_if_any
from kubectl_reconcile_operators.backups.s3 import S3Place, check_s3
from kubectl_reconcile_operators.backups.slots import BackupPlan
from kubectl_reconcile_operators.backups.storage import BackupStorage

DAY_S = 86_400
BACKUP_FIELD, TARGET_FIELD = ".spec.backup", ".spec.backup.target"
FROM_FIELD = ".spec.bootstrap.fromBackup"
_AGE = re.compile(r"([1-9][0-9]{0,5})([hd])")
_FILE = re.compile(r"\d{8}T\d{6}Z-t\d{1,19}(-[0-9a-z]{1,20})?\.tar\.gz")
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class RetainWish:
    """Which backups stay: the last *count*, where it isn't 0, and none that is older than *age*, as in 30d or 12h."""

    count: Annotated[int, Between(0, 10_000)] = 7
    age: str = ""

    @property
    def days(self) -> float:
        """How old a backup gets, in days; 0 is without limit."""
        found = _AGE.fullmatch(self.age)
        return int(found[1]) / (24 if found[2] == "h" else 1) if found else 0


@dataclass(frozen=True, slots=True)
class BackupWish:
    """When a database is backed up, and where to."""

    target: BackupStorage
    schedule: str = ""
    time_zone: str = "UTC"
    immediate: bool = False
    suspend: bool = False
    verify: bool = True
    retain: RetainWish = field(default_factory=RetainWish)
    starting_deadline_seconds: Annotated[int, Between(30, DAY_S)] = 3600
    deadline_seconds: Annotated[int, Between(10, 7 * DAY_S)] = 3600
    retries: Annotated[int, Between(0, 10)] = 1
    history_limit: Annotated[int, Between(1, 50)] = 10
    image: str = IMAGE
    resources: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            SpecError: a field is named.
        """
        self.target.check(TARGET_FIELD)
        schedule_if_any(self.schedule, self.time_zone, BACKUP_FIELD)
        if not self.schedule and not self.immediate:
            raise SpecError(
                BACKUP_FIELD, "must have a schedule, immediate: true, or both: otherwise no backup is ever made"
            )
        if self.retain.age and not _AGE.fullmatch(self.retain.age):
            raise SpecError(
                f"{BACKUP_FIELD}.retain.age", f"must be days or hours as in 30d or 12h, not {self.retain.age!r}"
            )

    def plan(self, since: str) -> BackupPlan:
        """Return when backups are made of what has been there *since*; the schedule was checked."""
        slots = schedule_if_any(self.schedule, self.time_zone, BACKUP_FIELD)
        return BackupPlan(slots, since, self.starting_deadline_seconds, self.immediate, self.suspend)


@dataclass(frozen=True, slots=True)
class BackupClaim:
    """A volume claim that holds backups."""

    claim_name: str


@dataclass(frozen=True, slots=True)
class FromBackup:
    """The backup that a MyDatabase begins with: of MyDatabase *database*, on a claim or in a bucket; the newest where no *file* is named."""

    database: str
    persistent_volume_claim: BackupClaim | None = None
    s3: S3Place | None = None
    file: str = ""
    deadline_seconds: Annotated[int, Between(10, 7 * DAY_S)] = 3600
    retries: Annotated[int, Between(0, 10)] = 1
    image: str = IMAGE
    resources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def claim(self) -> str:
        """The claim that it is on; that of the database itself where none is named."""
        named = self.persistent_volume_claim
        return named.claim_name if named else f"{self.database}-backups"

    def check(self) -> None:
        """Refuse what names no backup.

        Raises:
            SpecError: a field is named.
        """
        if not _NAME.fullmatch(self.database) or len(self.database) > 50:
            raise SpecError(f"{FROM_FIELD}.database", "must be the name of the MyDatabase that was backed up")
        if self.persistent_volume_claim and self.s3:
            raise SpecError(FROM_FIELD, "can't have both persistentVolumeClaim and s3; remove one of them")
        if self.s3:
            check_s3(self.s3, f"{FROM_FIELD}.s3")
        if self.file and not _FILE.fullmatch(self.file):
            raise SpecError(
                f"{FROM_FIELD}.file", f"must be a file name such as 20261123T030000Z-t1.tar.gz, not {self.file!r}"
            )
