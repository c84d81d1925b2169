"""The spec of an EtcdBackup: what is backed up, when, and where to.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from kubectl_reconcile.module_api import (
    IMAGE,
    Between,
    CronSchedule,
    Every,
    Manifest,
    SpecError,
    schedule_if_any,
    spec_of,
)
from kubectl_reconcile_operators.backups.slots import BackupPlan
from kubectl_reconcile_operators.backups.storage import BackupStorage

DAY_S = 86_400
STORAGE_FIELD = ".spec.storage"
S3_FIELD = f"{STORAGE_FIELD}.s3"


@dataclass(frozen=True, slots=True)
class ClusterRef:
    """The EtcdCluster beside the EtcdBackup that is backed up."""

    name: str


@dataclass(frozen=True, slots=True)
class Policy:
    """How often where no schedule says so, for how long at most, and what of earlier backups is kept; zero is without limit."""

    timeout_in_second: Annotated[int, Between(10, DAY_S)] = 600
    backup_interval_in_second: Annotated[int, Between(0, 366 * DAY_S)] = 0
    max_backups: Annotated[int, Between(0, 10_000)] = 7
    max_age_in_days: Annotated[int, Between(0, 36_600)] = 0
    retries: Annotated[int, Between(0, 10)] = 1


@dataclass(frozen=True, slots=True)
class BackupPodSpec:
    """How the pods of backups are; nothing here names them."""

    labels: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    affinity: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    image_pull_secrets: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class BackupSpec:
    """The spec of an EtcdBackup."""

    storage: BackupStorage
    cluster_ref: ClusterRef | None = None
    etcd_endpoints: tuple[str, ...] = ()
    client_secret: str = ""
    schedule: str = ""
    time_zone: str = "UTC"
    starting_deadline_seconds: Annotated[int, Between(30, DAY_S)] = 3600
    suspend: bool = False
    backup_policy: Policy = field(default_factory=Policy)
    history_limit: Annotated[int, Between(1, 50)] = 10
    image: str = IMAGE
    pod: BackupPodSpec = field(default_factory=BackupPodSpec)
    deletion_policy: Literal["Retain", "Delete"] = "Retain"

    @property
    def is_once(self) -> bool:
        """Whether one backup is all that is wanted."""
        return not self.schedule and not self.backup_policy.backup_interval_in_second

    def plan(self, created: str) -> BackupPlan:
        """Return when backups are made of what was *created* then; `backup_spec` has checked it."""
        interval_s = self.backup_policy.backup_interval_in_second
        slots: CronSchedule | Every | None = Every(interval_s, created) if interval_s else None
        if self.schedule:
            slots = CronSchedule(self.schedule, self.time_zone)
        return BackupPlan(slots, created, self.starting_deadline_seconds, self.is_once, self.suspend)


def backup_spec(cr: Manifest) -> BackupSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, BackupSpec)
    spec.storage.check(STORAGE_FIELD)
    if (spec.cluster_ref is None) == (not spec.etcd_endpoints):
        raise SpecError(".spec", "must have either clusterRef or etcdEndpoints")
    if spec.cluster_ref and spec.client_secret:
        raise SpecError(
            ".spec.clientSecret", "can be set only with etcdEndpoints; for an EtcdCluster, the Secret is known"
        )
    if spec.schedule and spec.backup_policy.backup_interval_in_second:
        raise SpecError(
            ".spec.backupPolicy.backupIntervalInSecond", "can't be combined with schedule; remove one of them"
        )
    if 0 < spec.backup_policy.backup_interval_in_second < 60:
        raise SpecError(".spec.backupPolicy.backupIntervalInSecond", "must be 60 seconds or more")
    for at, each in enumerate(spec.etcd_endpoints):
        if not each.startswith(("http://", "https://")) or "/" in each.partition("://")[2]:
            raise SpecError(
                f".spec.etcdEndpoints[{at}]", f"must be a URL such as https://db-0.db.shop.svc:2379, not {each}"
            )
    schedule_if_any(spec.schedule, spec.time_zone, ".spec")
    return spec
