"""Where backups go: a volume claim that is named, one that is made, or a bucket; and what the pods of their Jobs need to get there.

Pure: a spec and a context in, parts of manifests out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, Owned, SpecError, map_at
from kubectl_reconcile_operators.backups.s3 import S3Place, check_s3, s3_arguments, s3_mounts, s3_volumes

_PLACE, _WORK = "/backups", "/work"


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """A volume claim that somebody else has made."""

    claim_name: str


@dataclass(frozen=True, slots=True)
class BackupStorage:
    """Where backups are stored: an existing claim, a claim that is created from *volume_claim_spec*, or a bucket."""

    persistent_volume_claim: ClaimRef | None = None
    volume_claim_spec: Mapping[str, Any] | None = None
    s3: S3Place | None = None

    @property
    def makes_claim(self) -> bool:
        """Whether the claim is created here."""
        return self.volume_claim_spec is not None

    def check(self, where: str) -> None:
        """Refuse an invalid place; *where* is its field.

        Raises:
            SpecError: a field makes no sense.
        """
        places = (self.persistent_volume_claim, self.volume_claim_spec, self.s3)
        if sum(each is not None for each in places) != 1:
            raise SpecError(where, "must have one of persistentVolumeClaim, volumeClaimSpec and s3")
        if self.s3:
            check_s3(self.s3, f"{where}.s3")

    def claim_name(self, ctx: Context) -> str:
        """Return the name of the claim that backups are written to."""
        named = self.persistent_volume_claim
        return named.claim_name if named else ctx.name("backups")

    def volumes(self, ctx: Context) -> list[dict[str, Any]]:
        """Return the volumes for backups. A backup for a bucket is first written to a volume that lasts as long as the pod."""
        if self.s3 is None:
            return [{"name": "backups", "persistentVolumeClaim": {"claimName": self.claim_name(ctx)}}]
        return [{"name": "work", "emptyDir": {}}, *s3_volumes(self.s3)]

    def mounts(self) -> list[dict[str, Any]]:
        """Return the volume mounts of a container."""
        if self.s3 is None:
            return [{"name": "backups", "mountPath": _PLACE}]
        return [{"name": "work", "mountPath": _WORK}, *s3_mounts(self.s3)]

    def folder(self, ctx: Context) -> str:
        """Return the folder of this CR's backups, as a container sees it, or the prefix of their keys."""
        return self.s3.folder(ctx.namespace, ctx.name()) if self.s3 else f"{_PLACE}/{ctx.name()}"

    def arguments(self, ctx: Context, where: str) -> list[str]:
        """Return the arguments with the place for a Job's program; errors name *where*, its field."""
        found = [f"--folder={self.folder(ctx)}"]
        return [*found, f"--work={_WORK}", *s3_arguments(self.s3, f"{where}.s3")] if self.s3 else found

    def missing(self, owned: Owned, ctx: Context, where: str) -> str:
        """Return what is wrong with a claim that somebody else created; empty if nothing is wrong."""
        if self.makes_claim or self.s3:
            return ""
        name, field = self.claim_name(ctx), f"{where}.persistentVolumeClaim.claimName"
        found = owned.other("PersistentVolumeClaim", name)
        if found is None:
            return f"{field}: there is no PersistentVolumeClaim {name} in this namespace (hint: create it, or give volumeClaimSpec instead)"
        is_going = bool(found["metadata"].get("deletionTimestamp"))
        return f"{field}: PersistentVolumeClaim {name} is being deleted" if is_going else ""


def backup_claim(storage: Mapping[str, Any], ctx: Context) -> Manifest | None:
    """Return the claim to create if none is named. *storage* is read as it is in the CR, because the spec of a deleted CR may be invalid."""
    if "volumeClaimSpec" not in storage:
        return None
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": ctx.name("backups"), "labels": ctx.labels()},
        "spec": dict(map_at(storage, "volumeClaimSpec")),
    }
