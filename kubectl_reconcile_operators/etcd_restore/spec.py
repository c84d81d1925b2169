"""The spec of an EtcdRestore: which backup, and which cluster begins with it.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kubectl_reconcile.module_api import IMAGE, Between, Manifest, SpecError, spec_of
from kubectl_reconcile_operators.backups.s3 import S3Place, check_s3

S3_FIELD = ".spec.backup.s3"
_SNAPSHOT = re.compile(r"\d{8}T\d{6}Z-r\d{1,19}(-[0-9a-z]{1,20})?\.db")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class RestoredCluster:
    """The EtcdCluster beside the EtcdRestore that begins with it."""

    name: str


@dataclass(frozen=True, slots=True)
class BackupRef:
    """The EtcdBackup beside it. Where that is gone, its name is still that of its folder, on the claim *claim_name* or in *s3*. *snapshot* is a file in there."""

    name: str
    claim_name: str = ""
    snapshot: str = ""
    s3: S3Place | None = None


@dataclass(frozen=True, slots=True)
class RestorePodSpec:
    """How the pods of restores are; where they may run, the EtcdCluster says."""

    labels: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    image_pull_secrets: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RestoreSpec:
    """The spec of an EtcdRestore."""

    cluster_ref: RestoredCluster
    backup: BackupRef
    timeout_in_second: Annotated[int, Between(10, 86_400)] = 3600
    retries: Annotated[int, Between(0, 10)] = 1
    image: str = IMAGE
    pod: RestorePodSpec = field(default_factory=RestorePodSpec)


def restore_spec(cr: Manifest) -> RestoreSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, RestoreSpec)
    if not _NAME.fullmatch(spec.cluster_ref.name):
        raise SpecError(".spec.clusterRef.name", "must be the name of an EtcdCluster")
    if not _NAME.fullmatch(spec.backup.name):
        raise SpecError(".spec.backup.name", "must be the name of an EtcdBackup")
    if spec.backup.s3 and spec.backup.claim_name:
        raise SpecError(".spec.backup.claimName", "can't be combined with s3; remove one of them")
    if spec.backup.s3:
        check_s3(spec.backup.s3, S3_FIELD)
    if spec.backup.snapshot and not _SNAPSHOT.fullmatch(spec.backup.snapshot):
        raise SpecError(
            ".spec.backup.snapshot",
            f"must be a file name such as 20261122T023001Z-r4711.db, not {spec.backup.snapshot}",
        )
    return spec
