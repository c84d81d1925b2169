"""The spec of an EtcdCluster, and versions of etcd.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

from kubectl_reconcile.module_api import (
    IMAGE,
    Between,
    Context,
    CronSchedule,
    Manifest,
    SpecError,
    map_at,
    schedule_of,
    spec_of,
)
from kubectl_reconcile_operators.backups.s3 import S3Place, check_s3

REPOSITORY = "quay.io/coreos/etcd"

_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
_OLDEST_MINOR = (3, 5)
_DURATION = re.compile(r"(?=.)(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
HOUR_S = 3600
_LONGEST_S = 438_000 * HOUR_S


class EtcdVersion(NamedTuple):
    """A version of etcd."""

    major: int
    minor: int
    patch: int

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor: what members of one cluster may differ in by one."""
        return self.major, self.minor

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version_of(text: str) -> EtcdVersion | None:
    """Return the version that *text* says (a leading ``v`` doesn't matter), None where it says none."""
    found = _VERSION.fullmatch(text.removeprefix("v"))
    return EtcdVersion(*(int(part) for part in found.groups())) if found else None


@dataclass(frozen=True, slots=True)
class PodSpec:
    """How members' pods are; nothing here names them."""

    labels: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    node_selector: Mapping[str, Any] = field(default_factory=dict)
    affinity: Mapping[str, Any] | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    env: tuple[Mapping[str, Any], ...] = ()
    persistent_volume_claim_spec: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AutoCompaction:
    """Old revisions are dropped by themselves: those older than *retention* (periodic), or all but so many (revision)."""

    mode: Literal["periodic", "revision"] = "periodic"
    retention: str = "1h"


@dataclass(frozen=True, slots=True)
class Defragmentation:
    """When members are defragmented, by five fields of cron, and how much of a file must be free for that to be worth it."""

    schedule: str
    time_zone: str = "UTC"
    starting_deadline_seconds: Annotated[int, Between(60, 86_400)] = 3600
    min_free_percent: Annotated[int, Between(1, 90)] = 20


@dataclass(frozen=True, slots=True)
class Tuning:
    """What etcd is told besides; zero leaves it to etcd."""

    quota_backend_bytes: Annotated[int, Between(0, 1 << 40)] = 0
    snapshot_count: Annotated[int, Between(0, 100_000_000)] = 0
    auto_compaction: AutoCompaction | None = None
    defragmentation: Defragmentation | None = None

    @property
    def calendar(self) -> CronSchedule | None:
        """When members are defragmented; `cluster_spec` has checked it."""
        wanted = self.defragmentation
        return CronSchedule(wanted.schedule, wanted.time_zone) if wanted else None


@dataclass(frozen=True, slots=True)
class MemberSecrets:
    """Secrets with ``ca.crt``, ``tls.crt``, ``tls.key``: one for members among themselves, one shown to clients."""

    peer_secret: str
    server_secret: str


@dataclass(frozen=True, slots=True)
class StaticTls:
    """Certificates that somebody else makes. *operator_secret* is what the daemon shows to members."""

    member: MemberSecrets
    operator_secret: str


@dataclass(frozen=True, slots=True)
class AutoTls:
    """Certificates that the cluster issues itself, each good for *duration* and renewed *renew_before* its end; its authority is good for *authority_duration*."""

    duration: str = "2160h"
    renew_before: str = "720h"
    authority_duration: str = "87600h"

    @property
    def duration_s(self) -> int:
        """For how many seconds a certificate is good."""
        return seconds_of(self.duration)

    @property
    def renew_before_s(self) -> int:
        """How many seconds before its end a certificate is renewed."""
        return seconds_of(self.renew_before)

    @property
    def authority_duration_s(self) -> int:
        """For how many seconds an authority is good."""
        return seconds_of(self.authority_duration)


@dataclass(frozen=True, slots=True)
class TlsSpec:
    """TLS, by certificates that are named or that the cluster issues itself: one of both."""

    static: StaticTls | None = None
    auto: AutoTls | None = None


def seconds_of(text: str) -> int:
    """Return a duration as in ``2160h`` or ``1h30m`` in seconds, 0 where it is none."""
    found = _DURATION.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    return hours * HOUR_S + minutes * 60 + seconds


@dataclass(frozen=True, slots=True)
class PrecautionSpec:
    """Where snapshots go that are taken before an upgrade, or before the cluster's end, a claim or a bucket, and what takes them."""

    claim_name: str = ""
    s3: S3Place | None = None
    image: str = IMAGE
    timeout_in_second: Annotated[int, Between(10, 86_400)] = 600
    before_upgrade: bool = True
    before_deletion: bool = False


@dataclass(frozen=True, slots=True)
class RestoreRef:
    """The EtcdRestore beside the EtcdCluster that writes what it begins with."""

    name: str


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The spec of an EtcdCluster."""

    size: Annotated[int, Between(1, 7)]
    version: str
    repository: str = REPOSITORY
    paused: bool = False
    pod: PodSpec = field(default_factory=PodSpec)
    etcd: Tuning = field(default_factory=Tuning)
    TLS: TlsSpec | None = None
    restore_from: RestoreRef | None = None
    backup: PrecautionSpec | None = None
    deletion_policy: Literal["Retain", "Delete"] = "Retain"

    @property
    def target(self) -> EtcdVersion:
        """The version that members are to have; `cluster_spec` has checked it."""
        return version_of(self.version) or EtcdVersion(0, 0, 0)

    @property
    def in_memory(self) -> bool:
        """Whether what a member holds goes with its pod."""
        return self.pod.persistent_volume_claim_spec is None

    @property
    def storage(self) -> str:
        """How large the volume of a member is to be, empty where nobody says."""
        asked = map_at(self.pod.persistent_volume_claim_spec or {}, "resources", "requests")
        return str(asked.get("storage") or "")


def cluster_spec(cr: Manifest) -> ClusterSpec:
    """Return the spec of *cr*.

    Raises:
        SpecError: it makes no sense; the field is named.
    """
    spec = spec_of(cr, ClusterSpec)
    found = version_of(spec.version)
    if found is None:
        raise SpecError(".spec.version", f"must be a version as in 3.6.16, not {spec.version!r}")
    if found.line < _OLDEST_MINOR:
        raise SpecError(
            ".spec.version", f"must be 3.5.0 or newer, not {spec.version}: older ones lack what is asked of members"
        )
    if spec.restore_from and spec.in_memory:
        raise SpecError(
            ".spec.restoreFrom", "needs .spec.pod.persistentVolumeClaimSpec: what is restored is written to a volume"
        )
    if wanted := spec.etcd.defragmentation:
        schedule_of(wanted.schedule, wanted.time_zone, ".spec.etcd.defragmentation")
    if spec.backup:
        _check_place(spec.backup)
    _check_tls(spec.TLS)
    _check_env(spec.pod.env)
    for kind in ("labels", "annotations"):
        for key, value in getattr(spec.pod, kind).items():
            if not isinstance(value, str):
                raise SpecError(f".spec.pod.{kind}[{key}]", "must be text")
    return spec


_OWNED_ENV = re.compile(r"ETCD_(CONFIG_FILE|WAL_DIR|FORCE_NEW_CLUSTER|UNSAFE_NO_FSYNC|DISCOVERY(_.*)?)")
"""Variables by which etcd would begin a cluster, or keep its data, in another way than it is told."""


def _check_env(env: tuple[Mapping[str, Any], ...]) -> None:
    """Raise a SpecError where a variable tells etcd what the module does."""
    for at, each in enumerate(env):
        if _OWNED_ENV.fullmatch(str(each.get("name") or "")):
            raise SpecError(
                f".spec.pod.env[{at}].name",
                f"{each['name']} can't be set, since the module tells members where their data is and whom they join (hint: remove it)",
            )


def _check_place(backup: PrecautionSpec) -> None:
    """Raise a SpecError where nobody can tell where snapshots go."""
    if bool(backup.claim_name) == (backup.s3 is not None):
        raise SpecError(".spec.backup", "must have either claimName or s3")
    if backup.s3:
        check_s3(backup.s3, ".spec.backup.s3")


def tls_secrets(spec: ClusterSpec, ctx: Context) -> StaticTls | None:
    """Return the Secrets with certificates, whoever makes them; None where there is no TLS."""
    if spec.TLS is None or spec.TLS.auto is None:
        return spec.TLS.static if spec.TLS else None
    return StaticTls(MemberSecrets(ctx.name("peer"), ctx.name("server")), ctx.name("operator"))


def _check_tls(tls: TlsSpec | None) -> None:
    """Raise a SpecError where it isn't known whose certificates are meant, or how long they last makes no sense."""
    if tls is None:
        return
    if (tls.static is None) == (tls.auto is None):
        raise SpecError(
            ".spec.TLS",
            "must have either static or auto (hint: auto: {} has the cluster issue its certificates itself)",
        )
    if tls.auto is None:
        return
    auto, where = tls.auto, ".spec.TLS.auto"
    for name, text in (
        ("duration", auto.duration), ("renewBefore", auto.renew_before), ("authorityDuration", auto.authority_duration),
    ):  # fmt: skip
        if not seconds_of(text):
            raise SpecError(f"{where}.{name}", f"must be a duration as in 2160h or 1h30m, not {text!r}")
    if auto.duration_s < HOUR_S:
        raise SpecError(f"{where}.duration", f"must be an hour or more, not {auto.duration}")
    if not 300 <= auto.renew_before_s < auto.duration_s:
        raise SpecError(
            f"{where}.renewBefore",
            f"must be five minutes or more, and less than duration ({auto.duration}), not {auto.renew_before}",
        )
    if not 3 * auto.duration_s <= auto.authority_duration_s <= _LONGEST_S:
        raise SpecError(
            f"{where}.authorityDuration",
            f"must be three times duration ({auto.duration}) or more, and 438000h (50 years) at most, not {auto.authority_duration}",
        )
