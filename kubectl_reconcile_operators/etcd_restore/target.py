"""Whose volume is written: what the EtcdCluster asks for in ``status.seed``, and who its first member is then.

Pure: values in, values out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_reconcile.module_api import Manifest, condition_of, map_at, text_at
from kubectl_reconcile_operators.etcd_restore.source import ChosenBackup, RestoreObstacle


@dataclass(frozen=True, slots=True)
class SeedTarget:
    """The first member of a cluster that is to be. *image* has the etcdutl of its version; *place* is where its pods may run."""

    member: str
    claim: str
    claim_uid: str
    data: str
    peer_url: str
    token: str
    image: str
    version: str
    place: Mapping[str, Any] = field(default_factory=dict)

    @property
    def member_id(self) -> str:
        """The id that the member has once it is restored, in hexadecimal: etcd counts it from address and token."""
        return _id(f"{self.peer_url}{self.token}".encode())

    @property
    def cluster_id(self) -> str:
        """The id of its cluster: etcd counts it from the ids of the first members."""
        return _id(int(self.member_id, 16).to_bytes(8, "big"))


@dataclass(frozen=True, slots=True)
class FormedCluster:
    """A cluster that has data and names the restore. It stays as it is until somebody approves, there, that a snapshot replaces them.

    *given_up_for* is the digest of the snapshot for which somebody has; *seed* is there once all members have ended, and *approved* says for which one.
    """

    name: str
    version: str
    given_up_for: str = ""
    approved: str = ""
    seed: SeedTarget | None = None


def _id(data: bytes) -> str:
    first = hashlib.sha1(data, usedforsecurity=False).digest()[:8]
    return format(int.from_bytes(first, "big"), "x")


def target_of(name: str, cluster: Manifest | None, restore: str) -> SeedTarget | FormedCluster | RestoreObstacle:
    """Return the member that EtcdCluster *name* wants EtcdRestore *restore* to make, the cluster itself where it has data, or why there is none."""
    field_ = ".spec.clusterRef.name"
    hint = f".spec.restoreFrom.name: {restore}"
    if cluster is None:
        return RestoreObstacle(
            "ClusterNotFound",
            f"{field_}: there is no EtcdCluster {name} in this namespace (hint: create it, with {hint})",
            passes=True,
        )
    spec, status = map_at(cluster, "spec"), map_at(cluster, "status")
    is_meant = text_at(spec, "restoreFrom", "name") == restore
    seed = map_at(status, "seed")
    made = _seed(spec, seed) if seed.get("claimUID") else None
    if is_meant and made and not (status.get("clusterID") or seed.get("approved")):
        return made
    if is_meant and _has_data(status):
        given_up = text_at(status, "replacing", "digest")
        return FormedCluster(name, str(spec.get("version") or ""), given_up, str(seed.get("approved") or ""), made)
    if not is_meant:
        return RestoreObstacle(
            "ClusterExists",
            f"{field_}: EtcdCluster {name} already exists, and doesn't start from this restore; it stays as it is (hint: restore into a cluster of another"
            f" name; or give it {hint}, and approve that its data is replaced)",
        )
    ready = condition_of(cluster, "Ready") or {}
    said = f": {ready['message']}" if ready.get("message") else ""
    text = f"EtcdCluster {name} hasn't created the volume of its first member yet{said}"
    return RestoreObstacle("ClusterNotAsking", text, passes=True)


def _seed(spec: Mapping[str, Any], seed: Mapping[str, Any]) -> SeedTarget:
    pod = map_at(spec, "pod")
    return SeedTarget(
        member=str(seed.get("member") or ""),
        claim=str(seed.get("claimName") or ""),
        claim_uid=str(seed["claimUID"]),
        data=str(seed.get("dataDirectory") or ""),
        peer_url=str(seed.get("peerURL") or ""),
        token=str(seed.get("token") or ""),
        image=str(seed.get("image") or ""),
        version=str(seed.get("version") or ""),
        place={name: pod[name] for name in ("nodeSelector", "affinity", "tolerations") if pod.get(name)},
    )


def _has_data(status: Mapping[str, Any]) -> bool:
    members = map_at(status, "members")
    return bool(status.get("clusterID") or members.get("ready") or members.get("unready"))


def too_old(name: str, target: SeedTarget | FormedCluster, snapshot: ChosenBackup) -> RestoreObstacle | None:
    """Return why a cluster's etcd can't read a snapshot, None where it can."""
    theirs, ours = _line(snapshot.version), _line(target.version)
    if not theirs or not ours or ours >= theirs:
        return None
    return RestoreObstacle(
        "ClusterTooOld",
        f".spec.clusterRef.name: EtcdCluster {name} runs etcd {target.version}, which can't read data of etcd {snapshot.version} (hint: set its"
        f" .spec.version to {snapshot.version} or newer)",
    )


def _line(version: str) -> tuple[int, ...]:
    """Return major and minor, nothing where *version* is none."""
    parts = version.split(".")[:2]
    return tuple(map(int, parts)) if len(parts) == 2 and all(each.isdecimal() for each in parts) else ()
