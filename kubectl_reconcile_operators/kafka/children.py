"""What a Kafka is made of in Kubernetes: pods, volume claims, Services, a disruption budget, and a ConfigMap for clients.

Names: pods are called by their slot (``kf-0``), claims ``kf-0-data``; the Service ``kf`` leads to any broker, ``kf-brokers`` gives each its name.

A pod's first container formats the volume, once, and writes the configuration; a volume that was formatted stays as it is. A broker that crashes is restarted by its
node: that is safe, since what it has lost of its memory it fetches from others. Keys come from Secrets and stay in memory: Kafka reads a certificate and its key from one file, which is written beside it when a Secret changes.

The zone of a pod's node is known once the pod is bound to it, as a label that the API server puts on the pod (Kubernetes 1.35); where there is none, a broker has no rack.

Pure: a spec and a context in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Manifest,
    annotations_of,
    map_at,
    restricted_container,
    restricted_pod,
    spread_over_nodes,
)
from kubectl_reconcile_operators.kafka.access.listeners import client_data, listener_properties
from kubectl_reconcile_operators.kafka.names import (
    BEGIN,
    BOOTSTRAP,
    CLUSTER,
    CONTROLLER_PORT,
    INTERNAL_PORT,
    JOINS,
    SERVED,
    TEMPLATE,
    TRUSTED,
    claim_name,
    directory_id,
    headless,
    host,
    slot_of,
)
from kubectl_reconcile_operators.kafka.situation import BrokerVolume
from kubectl_reconcile_operators.kafka.spec import KafkaSpec
from kubectl_reconcile_operators.volumes import VolumeWish, volume_claim

_DATA = "/var/lib/kafka/data"
_LOGS = f"{_DATA}/kafka"
_MADE = "/var/lib/kafka/config"
_SECRETS, _KEYS = "/etc/kafka/secrets", "/var/lib/kafka/keys"
_INTERNAL = "internal"
"""How the files are called with what brokers show to one another; no listener of a spec is called so."""
_ZONE = "topology.kubernetes.io/zone"
_TMP = "/tmp"  # noqa: S108 - of the container, which has no other writable place
_USER = 1000
"""Who Kafka runs as in its image."""

_PREPARE = """set -eu
PATH="/opt/kafka/bin:$PATH"
export LOG_DIR=/tmp
printf '%s\\n' "$CONFIG" > "$FILE"
[ -z "$RACK" ] || printf 'broker.rack=%s\\n' "$RACK" >> "$FILE"
case "$BEGIN" in
  alone) set -- --standalone ;;
  first) set -- "--initial-controllers=$CONTROLLERS" ;;
  *) set -- --no-initial-controllers ;;
esac
if [ -e "$DATA/meta.properties" ]; then found=kept; else found=empty; fi
if [ -w /dev/termination-log ]; then echo "$found" > /dev/termination-log; fi
kafka-storage.sh format "--cluster-id=$CLUSTER_ID" "--config=$FILE" --ignore-formatted "$@"
"""
_RUN = """PATH="/opt/kafka/bin:$PATH"
umask 077
join() {
  for secret in "$SECRETS"/*; do
    file="$KEYS/${secret##*/}.pem"
    (cd -P "$secret/..data" && cat tls.key && echo && cat tls.crt) > "$file.new" || continue
    cmp -s "$file.new" "$file" || mv "$file.new" "$file"
  done
}
join
while sleep 5; do join; done &
exec kafka-server-start.sh "$FILE"
"""
_FILE = f"{_MADE}/server.properties"
_RESOLVING = "-Dsun.net.inetaddr.ttl=5 -Dsun.net.inetaddr.negative.ttl=1"
"""A pod that is recreated has another address, which the others should learn of soon."""
SESSION_MS = 9_000
"""For how long a broker may be silent until its partitions are led by others."""
REGISTRATION_MS = 3_600_000
"""How long a broker that begins waits for the controllers. One that gives up takes the controller in its process with it, so that on a slow machine the others wait in vain, too."""


# --- configuration --------------------------------------------------------------------------------


def properties(spec: KafkaSpec, ctx: Context, number: int) -> str:
    """Return the configuration that a broker starts with."""
    usual = spec.usual_replicas
    is_controller = number < spec.controllers
    name = host(ctx, number)
    listeners = {
        "BROKER": INTERNAL_PORT,
        **({"CONTROLLER": CONTROLLER_PORT} if is_controller else {}),
        **{each.kafka_name: each.port for each in spec.listeners},
    }
    protocols = {"BROKER": "SSL", "CONTROLLER": "SSL", **{each.kafka_name: each.protocol for each in spec.listeners}}
    lines = {
        "default.replication.factor": usual,
        "initial.broker.registration.timeout.ms": REGISTRATION_MS,
        "min.insync.replicas": min(2, usual),
        "num.partitions": 1,
        "offsets.topic.replication.factor": usual,
        "share.coordinator.state.topic.min.isr": min(2, usual),
        "share.coordinator.state.topic.replication.factor": usual,
        "transaction.state.log.min.isr": min(2, usual),
        "transaction.state.log.replication.factor": usual,
        **spec.static,
        **_internal_properties(),
        **{
            key: value
            for each in spec.listeners
            for key, value in listener_properties(each, f"{_KEYS}/{each.name}.pem").items()
        },
        "advertised.listeners": ",".join(f"{listener}://{name}:{port}" for listener, port in listeners.items()),
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "broker.session.timeout.ms": SESSION_MS,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(
            f"{host(ctx, each)}:{CONTROLLER_PORT}" for each in range(spec.controllers)
        ),
        "inter.broker.listener.name": "BROKER",
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "listeners": ",".join(f"{listener}://0.0.0.0:{port}" for listener, port in listeners.items()),
        "log.dirs": _LOGS,
        "node.id": number,
        "process.roles": "broker,controller" if is_controller else "broker",
        "ssl.allow.dn.changes": "true",
        "ssl.allow.san.changes": "true",
        "unclean.leader.election.enable": "false",
    }
    return "\n".join(f"{key}={value}" for key, value in sorted(lines.items()))


def _internal_properties() -> dict[str, str]:
    """Return what says that brokers, controllers and the daemon let in nobody but those whose certificates the Kafka issued."""
    return {
        f"listener.name.{name}.ssl.{key}": value
        for name in ("broker", "controller")
        for key, value in (
            ("client.auth", "required"),
            ("keystore.type", "PEM"),
            ("keystore.location", f"{_KEYS}/{_INTERNAL}.pem"),
            ("truststore.type", "PEM"),
            ("truststore.location", f"{_SECRETS}/{_INTERNAL}/ca.crt"),
        )
    }


# --- pods -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Certified:
    """What a pod is made by besides the spec: which authorities a broker that starts now trusts, in one line, and which certificate it shows to others."""

    trusted: str = ""
    certificate: str = ""


def broker_pod(
    spec: KafkaSpec, ctx: Context, number: int, volume: BrokerVolume, cluster: str, certified: Certified
) -> Manifest:
    """Return the pod of a broker, which begins on *volume* in the *cluster* of this id."""
    begun = _begun(spec, ctx, volume, cluster)
    noted = {TEMPLATE: template_of(spec, ctx, number, certified), TRUSTED: certified.trusted, BEGIN: begun["BEGIN"]}
    return _pod(ctx, number, noted, _pod_spec(spec, ctx, number, begun))


def kept_pod(spec: KafkaSpec, ctx: Context, number: int, live: Manifest, served: str) -> Manifest:
    """Return a pod that is there as it is to be; what it was made by stays until it is made again. Where its broker takes part, with the volume that was looked at when *served* says, its controller begins no cluster any more."""
    kept = {name: live["spec"][name] for name in _pod_spec(spec, ctx, number, {}) if name in live["spec"]}
    said = annotations_of(live)
    noted = {name: said.get(name, "") for name in (TEMPLATE, TRUSTED)}
    noted |= {name: said[name] for name in (BEGIN, SERVED) if name in said}
    if served:
        noted |= {BEGIN: JOINS, SERVED: served}
    return _pod(ctx, number, noted, kept)


def template_of(spec: KafkaSpec, ctx: Context, number: int, certified: Certified) -> str:
    """Return the digest of what a broker can't take on while it runs: of the spec, and of what it trusts and shows to others."""
    made = json.dumps([_pod_spec(spec, ctx, number, {}), certified.trusted, certified.certificate], sort_keys=True)
    return hashlib.sha256(made.encode()).hexdigest()[:16]


def _pod(ctx: Context, number: int, noted: Mapping[str, str], spec: Mapping[str, Any]) -> Manifest:
    metadata = {"name": slot_of(ctx, number), "labels": ctx.labels(), "annotations": dict(noted)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(spec)}


def _begun(spec: KafkaSpec, ctx: Context, volume: BrokerVolume, cluster: str) -> dict[str, str]:
    is_first = bool(volume.begins) and not volume.cluster  # one that has lost what it held isn't who it was
    others = (
        f"{each}@{host(ctx, each)}:{CONTROLLER_PORT}:{directory_id(cluster, each)}" for each in range(spec.controllers)
    )
    how = JOINS if not is_first else "alone" if spec.controllers == 1 else "first"
    return {"BEGIN": how, "CLUSTER_ID": cluster, "CONTROLLERS": ",".join(others) if how == "first" else ""}


def _pod_spec(spec: KafkaSpec, ctx: Context, number: int, begun: Mapping[str, str]) -> dict[str, Any]:
    given_secrets = {_INTERNAL: ctx.name("broker"), **{each.name: each.secret for each in spec.listeners if each.tls}}
    mounts = [
        {"name": "data", "mountPath": _DATA},
        {"name": "config", "mountPath": _MADE},
        {"name": "tmp", "mountPath": _TMP},
        {"name": "keys", "mountPath": _KEYS},
        *({"name": f"tls-{name}", "mountPath": f"{_SECRETS}/{name}", "readOnly": True} for name in given_secrets),
    ]
    common = {
        "image": spec.broker_image,
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted_container(),
    }
    ports = {
        "broker": INTERNAL_PORT,
        **({"controller": CONTROLLER_PORT} if number < spec.controllers else {}),
        **{each.name: each.port for each in spec.listeners},
    }
    given = {
        "FILE": _FILE,
        "CONFIG": properties(spec, ctx, number),
        "DATA": _LOGS,
        **{name: begun.get(name, "") for name in ("CLUSTER_ID", "CONTROLLERS")},
    }
    heap = _heap(spec)
    running = {
        "FILE": _FILE,
        "SECRETS": _SECRETS,
        "KEYS": _KEYS,
        "LOG_DIR": _TMP,
        "KAFKA_OPTS": _RESOLVING,
        **({"KAFKA_HEAP_OPTS": heap} if heap else {}),
    }
    return {
        "hostname": slot_of(ctx, number),
        "subdomain": headless(ctx),
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 120,
        **restricted_pod(_USER),
        "affinity": spread_over_nodes(ctx.selector()),
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": ctx.selector()}}
        ],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": claim_name(slot_of(ctx, number))}},
            {"name": "config", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "keys", "emptyDir": {"medium": "Memory"}},
            *({"name": f"tls-{name}", "secret": {"secretName": each, "defaultMode": 0o440}} for name, each in given_secrets.items()),
        ],
        "initContainers": [
            {**common, "name": "prepare", "command": ["sh", "-c", _PREPARE], "env": [*_env(given), _RACK, _BEGIN]}
        ],
        "containers": [
            {
                **common,
                "name": "kafka",
                "command": ["sh", "-c", _RUN],
                "env": _env(running),
                "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
                "resources": dict(spec.resources),
                "readinessProbe": {"tcpSocket": {"port": INTERNAL_PORT}, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 3},
            }
        ],
    }  # fmt: skip


_RACK = {"name": "RACK", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{_ZONE}']"}}}


_BEGIN = {
    "name": "BEGIN",
    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{BEGIN}']"}},
}


def _env(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}


def _heap(spec: KafkaSpec) -> str:
    """Return the heap of a broker: half of the memory that it may have, and what the image says where no limit is given in powers of two."""
    limit = map_at(spec.resources, "limits").get("memory")
    found = re.fullmatch(r"([0-9]+)((?:[KMGT]i)?)", str(limit or ""))
    megabytes = (int(found[1]) << _UNITS[found[2]]) >> 21 if found else 0
    return f"-Xms{megabytes}m -Xmx{megabytes}m" if megabytes else ""


# --- what surrounds them --------------------------------------------------------------------------


def claim(storage: VolumeWish, ctx: Context, volume: BrokerVolume) -> Manifest:
    """Return the volume claim of a broker. What is noted on it stays, and it never shrinks."""
    noted = {CLUSTER: volume.cluster, BOOTSTRAP: volume.begins}
    return volume_claim(ctx, claim_name(volume.slot), storage, volume.size, noted)


def services(spec: KafkaSpec, ctx: Context) -> tuple[Manifest, ...]:
    """Return the Service for clients to begin with, and the one that gives each broker a name, ready or not."""
    clients = [_port(each.name, each.port) for each in spec.listeners]
    inner = [_port("broker", INTERNAL_PORT), _port("controller", CONTROLLER_PORT)]
    own = {"clusterIP": "None", "publishNotReadyAddresses": True}
    whole = _service(ctx, headless(ctx), [*clients, *inner], own)
    return (_service(ctx, ctx.name(), clients, {}), whole) if clients else (whole,)


def _port(name: str, port: int) -> dict[str, Any]:
    return {"name": name, "port": port, "targetPort": port, "protocol": "TCP"}


def _service(ctx: Context, name: str, ports: list[dict[str, Any]], more: Mapping[str, Any]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": ctx.labels()},
        "spec": {"type": "ClusterIP", **more, "ports": ports, "selector": ctx.selector()},
    }


def client_config(spec: KafkaSpec, ctx: Context) -> Manifest:
    """Return the ConfigMap by which clients find the brokers."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ctx.name(), "labels": ctx.labels()},
        "data": client_data(spec.listeners, f"{ctx.name()}.{ctx.namespace}.svc"),
    }


def disruption_budget(ctx: Context, brokers: int) -> Manifest:
    """Return the budget that lets one broker be evicted. A number it is, since bare pods have no controller that a share could be of."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": ctx.name(), "labels": ctx.labels()},
        "spec": {"minAvailable": brokers - 1, "selector": {"matchLabels": ctx.selector()}},
    }
