"""What an etcd cluster is made of in Kubernetes: pods, volume claims, Services, a disruption budget.

Names: pods are called by their slot (``db-0``), claims ``db-0-data``, the Service for clients ``db-client``, the headless one that
names members ``db``.

Pure: a spec and a context in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubectl_reconcile.module_api import Context, Manifest, annotations_of, map_at, spread_over_nodes
from kubectl_reconcile_operators.etcd.situation import (
    ALONE,
    ASIDE,
    CONTINUES,
    MEMBER,
    PEERS,
    SEED,
    STATE,
    SURPLUS,
    TEMPLATE,
    TRUSTED,
    VOTER,
    EtcdMember,
    Pod,
    Situation,
    Volume,
    begun_by_arguments,
    peer_url,
)
from kubectl_reconcile_operators.etcd.spec import ClusterSpec, EtcdVersion, tls_secrets
from kubectl_reconcile_operators.volumes import shrink_refused, would_shrink

CLIENT_PORT, PEER_PORT, METRICS_PORT = 2379, 2380, 2381
DATA_DIRECTORY = "data"
"""Where on its volume a member keeps its data."""
_DATA = "/var/etcd"
_BEGUN = {"INITIAL_CLUSTER": PEERS, "INITIAL_CLUSTER_STATE": STATE}
"""The variables that arguments name, and the annotations that they come from at each start. One that is empty is refused by etcd, so that it never falls back to beginning."""
_CERTIFICATES = {"peer": "/etc/etcd/peer", "server": "/etc/etcd/server"}


def scheme(spec: ClusterSpec) -> str:
    """Return how clients and members talk."""
    return "https" if spec.TLS else "http"


def claim_name(slot: str) -> str:
    """Return the name of a slot's volume claim."""
    return f"{slot}-data"


def image(spec: ClusterSpec, version: EtcdVersion) -> str:
    """Return the image of a version."""
    return f"{spec.repository}:v{version}"


def token(ctx: Context) -> str:
    """Return what tells the cluster from others whose members have the same addresses."""
    return f"{ctx.namespace}.{ctx.name()}"


def labels_of_all(ctx: Context) -> dict[str, str]:
    """Return the labels of everything that belongs to the cluster."""
    return {"app": "etcd", "etcd_cluster": ctx.name(), **ctx.labels()}


def selector_of(ctx: Context) -> dict[str, str]:
    """Return the labels by which members' pods are selected."""
    return {"app": "etcd", "etcd_cluster": ctx.name(), **ctx.selector()}


# --- pods -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beginning:
    """How an etcd begins where its volume is empty: what of it is *noted* in annotations, and what of its *arguments* is about it.

    Who is told of no others and to join them doesn't start on an empty volume: it never begins a cluster of its own, and never forgets what it has promised.
    """

    noted: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)


def new_pod(
    spec: ClusterSpec, ctx: Context, slot: str, version: EtcdVersion, members: Iterable[EtcdMember],
    *, seed: bool, trusted: str = "",
) -> Manifest:  # fmt: skip
    """Return the pod of a slot: of the *seed*, to begin a cluster; of one of *members* that has never run, to join them; of any other, to go on with its data. *trusted* are the authorities that it will trust, where they are the cluster's own."""
    known = tuple(members)
    joins = any(each.slot == slot and not each.is_started for each in known)
    begun = _beginning(spec, ctx, slot, known if joins else (), "new" if seed else CONTINUES)
    return _pod(spec, ctx, slot, version, begun, trusted)


def lone_pod(spec: ClusterSpec, ctx: Context, slot: str, version: EtcdVersion, *, trusted: str = "") -> Manifest:
    """Return the pod of a slot that goes on with its data as the only member; on an empty volume it wouldn't start."""
    begun = _beginning(spec, ctx, slot, (), CONTINUES)
    return _pod(spec, ctx, slot, version, replace(begun, arguments={**begun.arguments, ALONE: "true"}), trusted)


def _beginning(spec: ClusterSpec, ctx: Context, slot: str, members: Iterable[EtcdMember], state: str) -> Beginning:
    peers = {each.slot for each in members if each.slot} | {slot}
    known = ",".join(f"{each}={peer_url(ctx, each, tls=bool(spec.TLS))}" for each in sorted(peers))
    told = {f"--{name.lower().replace('_', '-')}": f"$({name})" for name in _BEGUN}
    return Beginning({PEERS: known, STATE: state}, told)


def _begun(spec: ClusterSpec, ctx: Context, pod: Pod, *, has_begun: bool) -> Beginning:
    """Return how the etcd of a pod begins from now on: once it *has begun*, never again."""
    lone = {ALONE: "true"} if pod.is_alone else {}
    if given := begun_by_arguments(pod.manifest):
        return Beginning({}, {**given, **lone})
    goes_on, noted = _beginning(spec, ctx, pod.slot, (), CONTINUES), annotations_of(pod.manifest)
    is_noted = not has_begun and bool(noted.get(PEERS)) and bool(noted.get(STATE))
    told = {name: noted[name] for name in (PEERS, STATE)} if is_noted else goes_on.noted
    return Beginning(told, {**goes_on.arguments, **lone})


def kept_pod(
    spec: ClusterSpec, ctx: Context, pod: Pod, *, is_voter: bool, has_begun: bool, trusted: str = ""
) -> Manifest | None:
    """Return a pod that is there as it is to be, None where it was made by another template: then all of it stays. It *has begun* once its etcd has run as a member."""
    if pod.version is None or pod.template != template_of(spec, ctx, trusted):
        return None
    made = _pod(spec, ctx, pod.slot, pod.version, _begun(spec, ctx, pod, has_begun=has_begun), trusted)
    if not is_voter or pod.is_alone:
        return made
    return {**made, "metadata": {**made["metadata"], "labels": {**made["metadata"]["labels"], VOTER: "true"}}}


def template_of(spec: ClusterSpec, ctx: Context, trusted: str = "") -> str:
    """Return the digest of what a pod can't take on while it runs: of the spec, and which authorities it trusts."""
    made = _pod_spec(spec, ctx, "", EtcdVersion(0, 0, 0), Beginning())
    if trusted:
        made["trusted"] = trusted
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]


def _pod(spec: ClusterSpec, ctx: Context, slot: str, version: EtcdVersion, begun: Beginning, trusted: str) -> Manifest:
    labels = {**spec.pod.labels, **labels_of_all(ctx), "etcd_node": slot}
    annotations = {**spec.pod.annotations, TEMPLATE: template_of(spec, ctx, trusted), **begun.noted}
    if trusted:
        annotations[TRUSTED] = trusted
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": slot, "labels": labels, "annotations": annotations},
        "spec": _pod_spec(spec, ctx, slot, version, begun),
    }


def _pod_spec(spec: ClusterSpec, ctx: Context, slot: str, version: EtcdVersion, begun: Beginning) -> dict[str, Any]:
    wanted = spec.pod
    data = {"emptyDir": {}} if spec.in_memory else {"persistentVolumeClaim": {"claimName": claim_name(slot)}}
    volumes: list[dict[str, Any]] = [{"name": "data", **data}]
    mounts: list[dict[str, Any]] = [{"name": "data", "mountPath": _DATA}]
    for name, secret in _secrets(spec, ctx):
        volumes.append({"name": name, "secret": {"secretName": secret}})
        mounts.append({"name": name, "mountPath": _CERTIFICATES[name], "readOnly": True})
    made: dict[str, Any] = {
        "hostname": slot,
        "subdomain": ctx.name(),
        "restartPolicy": "Always",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": wanted.affinity if wanted.affinity is not None else spread_over_nodes(selector_of(ctx)),
        "volumes": volumes,
        "containers": [
            {
                "name": "etcd",
                "image": image(spec, version),
                "command": ["/usr/local/bin/etcd"],
                "args": [*(f"{name}={value}" for name, value in _arguments(spec, ctx, slot, begun).items())],
                "env": [*_begins_by(begun), *(dict(each) for each in wanted.env if each.get("name") not in _BEGUN)],
                "ports": [
                    {"name": name, "containerPort": port, "protocol": "TCP"}
                    for name, port in (("client", CLIENT_PORT), ("peer", PEER_PORT), ("metrics", METRICS_PORT))
                ],
                "resources": dict(wanted.resources),
                "volumeMounts": mounts,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "readinessProbe": _probe("/health?exclude=NOSPACE", period=2, failures=3),
                "livenessProbe": _probe(
                    "/health?serializable=true&exclude=NOSPACE&exclude=CORRUPT", period=10, failures=8, delay=30
                ),
            }
        ],
    }
    if wanted.node_selector:
        made["nodeSelector"] = dict(wanted.node_selector)
    if wanted.tolerations:
        made["tolerations"] = [dict(each) for each in wanted.tolerations]
    return made


def _probe(path: str, *, period: int, failures: int, delay: int = 0) -> dict[str, Any]:
    """Return a probe at the port for metrics, which needs no certificate."""
    get = {"path": path, "port": METRICS_PORT, "scheme": "HTTP"}
    return {
        "httpGet": get,
        **({"initialDelaySeconds": delay} if delay else {}),
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _begins_by(begun: Beginning) -> list[dict[str, Any]]:
    return [
        {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{noted}']"}}}
        for name, noted in _BEGUN.items()
        if noted in begun.noted
    ]


def _secrets(spec: ClusterSpec, ctx: Context) -> list[tuple[str, str]]:
    found = tls_secrets(spec, ctx)
    return [("peer", found.member.peer_secret), ("server", found.member.server_secret)] if found else []


def _arguments(spec: ClusterSpec, ctx: Context, slot: str, begun: Beginning) -> dict[str, str]:
    how = scheme(spec)
    host = f"{slot}.{ctx.name()}.{ctx.namespace}.svc"
    found = {
        "--name": slot,
        "--data-dir": f"{_DATA}/{DATA_DIRECTORY}",
        "--listen-client-urls": f"{how}://0.0.0.0:{CLIENT_PORT}",
        "--listen-peer-urls": f"{how}://0.0.0.0:{PEER_PORT}",
        "--listen-metrics-urls": f"http://0.0.0.0:{METRICS_PORT}",
        "--advertise-client-urls": f"{how}://{host}:{CLIENT_PORT}",
        "--initial-advertise-peer-urls": f"{how}://{host}:{PEER_PORT}",
        "--initial-cluster-token": token(ctx),
        **begun.arguments,
    }
    tuning = spec.etcd
    if tuning.quota_backend_bytes:
        found["--quota-backend-bytes"] = str(tuning.quota_backend_bytes)
    if tuning.snapshot_count:
        found["--snapshot-count"] = str(tuning.snapshot_count)
    if tuning.auto_compaction:
        found["--auto-compaction-mode"] = tuning.auto_compaction.mode
        found["--auto-compaction-retention"] = tuning.auto_compaction.retention
    if spec.TLS:
        found |= _certificates("", _CERTIFICATES["server"], "--client-cert-auth")
        found |= _certificates("peer-", _CERTIFICATES["peer"], "--peer-client-cert-auth")
    if spec.TLS and spec.TLS.auto:  # one authority signs for clients too, who are no peers
        found["--peer-cert-allowed-cn"] = ctx.name("peer")
    return found


def _certificates(prefix: str, folder: str, demand: str) -> dict[str, str]:
    return {
        f"--{prefix}cert-file": f"{folder}/tls.crt",
        f"--{prefix}key-file": f"{folder}/tls.key",
        f"--{prefix}trusted-ca-file": f"{folder}/ca.crt",
        demand: "true",
    }


# --- what surrounds them --------------------------------------------------------------------------


def claim(spec: ClusterSpec, ctx: Context, volume: Volume, member: str) -> Manifest:
    """Return the volume claim of a slot; *member* is who was seen on it, if anybody was."""
    known = {MEMBER: member or volume.member} if member or volume.member else {}
    if volume.seed_for:
        known[SEED] = volume.seed_for
    if volume.aside:
        known = {ASIDE: volume.aside}
    if volume.is_surplus:
        known[SURPLUS] = "true"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim_name(volume.slot), "labels": labels_of_all(ctx), "annotations": known},
        "spec": _claim_spec(spec, volume),
    }


def _claim_spec(spec: ClusterSpec, volume: Volume) -> dict[str, Any]:
    """Return what a claim asks for; one that is there may grow, and never shrinks."""
    asked = dict(spec.pod.persistent_volume_claim_spec or {})
    if not spec.storage or not would_shrink(volume.size, spec.storage):
        return asked
    resources = map_at(asked, "resources")
    return {**asked, "resources": {**resources, "requests": {**map_at(resources, "requests"), "storage": volume.size}}}


def shrunk(spec: ClusterSpec, s: Situation) -> str:
    """Return that volumes are larger than the spec has them, nothing where none is."""
    sizes = {slot: each.size for slot, each in s.volumes.items() if spec.storage and not each.aside}
    return shrink_refused(".spec.pod.persistentVolumeClaimSpec", spec.storage, sizes, "set its storage to {size}")


def services(ctx: Context) -> tuple[Manifest, Manifest]:
    """Return the headless Service that names members, ready or not, and the one for clients, in front of those that vote."""
    client = {"name": "client", "port": CLIENT_PORT, "targetPort": "client", "protocol": "TCP"}
    peer = {"name": "peer", "port": PEER_PORT, "targetPort": "peer", "protocol": "TCP"}
    return (
        _service(ctx, ctx.name(), {"clusterIP": "None", "publishNotReadyAddresses": True, "ports": [client, peer],
                                   "selector": selector_of(ctx)}),
        _service(ctx, client_service(ctx), {"ports": [client], "selector": {**selector_of(ctx), VOTER: "true"}}),
    )  # fmt: skip


def client_service(ctx: Context) -> str:
    """Return the name of the Service for clients."""
    return ctx.name("client")


def _service(ctx: Context, name: str, spec: dict[str, Any]) -> Manifest:
    metadata = {"name": name, "labels": labels_of_all(ctx)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"type": "ClusterIP", **spec}}


def disruption_budget(ctx: Context, quorum: int) -> Manifest:
    """Return the budget that keeps a majority. A number it is, since bare pods have no controller that a share could be of."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": ctx.name(), "labels": labels_of_all(ctx)},
        "spec": {"minAvailable": quorum, "selector": {"matchLabels": selector_of(ctx)}},
    }
