"""What a database is made of in Kubernetes: pods, volume claims, Services, a disruption budget.

Names: pods are called by their slot (``db-0``), claims ``db-0-data``; the Service ``db`` leads to the primary, ``db-ro`` to replicas, ``db-r`` to
any instance.

A pod's first container makes the data directory ready and never starts on what isn't whole: what it writes has another name until it is done. Where it rewinds, a mark on
the volume says so for as long: a folder with that mark is never started, and `CANT_REWIND` is how the container ends then.
Pods are never restarted by their node (``restartPolicy: Never``): whether a dead primary may come back isn't the node's to decide. A node that has lost all it had still begins them again,
on volumes that may have gone with it: so the first one is told by an annotation that the database has begun, and makes no other one.

Pure: a spec and a context in, manifests out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from kubectl_reconcile.module_api import (
    Context,
    Manifest,
    labels_of,
    restricted_container,
    restricted_pod,
    spread_over_nodes,
)
from kubectl_reconcile_operators.postgres.access.hba import hba_text
from kubectl_reconcile_operators.postgres.situation import (
    FULL,
    KEPT,
    MAJOR,
    PREPARES,
    PRIMARY,
    REJOINS,
    REPLICA,
    ROLE,
    SERVES,
    SURPLUS,
    SYSTEM,
    TEMPLATE,
    Instance,
    InstanceVolume,
    claim_name,
    slot_id,
)
from kubectl_reconcile_operators.postgres.spec import (
    REPLICATOR,
    SUPERUSER,
    TLS_VOLUME,
    MyDatabaseSpec,
    secret_of,
)
from kubectl_reconcile_operators.volumes import VolumeWish, volume_claim

PORT = 5432
_DATA = "/var/lib/postgresql/data"
_PGDATA = f"{_DATA}/pgdata"
_SOCKETS = "/var/run/postgresql"
_PASSFILE = f"{_SOCKETS}/replication.pgpass"
_REPLICATION = "/replication"
TLS_FOLDER = "/tls"
_USER = 999
"""Who PostgreSQL runs as in the images that are based on Debian."""

_PREPARE = """set -eu
umask 077
if [ "$BEGIN" = initdb ] && [ -z "$SYSTEM" ] && [ ! -e "$PGDATA/PG_VERSION" ]; then
  rm -rf "$PGDATA.new"
  printf '%s\\n' "$PASSWORD" | initdb --pgdata="$PGDATA.new" --username=postgres --pwfile=/dev/stdin \\
    --auth=scram-sha-256 $INITDB
  mv "$PGDATA.new" "$PGDATA"
fi
if [ -e "$PGDATA.rewinding" ]; then
  echo "a rewind was interrupted: the folder isn't what it was, nor what it was to be"
  exit 5
fi
if [ "$BEGIN" = rewind ] && [ ! -e "$PGDATA/PG_VERSION" ]; then
  BEGIN=replica
fi
if [ "$BEGIN" = replica ] && [ ! -e "$PGDATA/PG_VERSION" ]; then
  rm -rf "$PGDATA.new"
  pg_basebackup --pgdata="$PGDATA.new" --dbname="$SOURCE application_name=copy options=-ctcp_user_timeout=60000" --slot="$SLOT" \\
    --wal-method=stream --checkpoint=fast --no-password
  mv "$PGDATA.new" "$PGDATA"
fi
found=$(cat "$PGDATA/PG_VERSION") || { echo "the volume holds no database"; exit 3; }
[ "$found" = "$MAJOR" ] || { echo "the volume holds data of PostgreSQL $found, not $MAJOR"; exit 4; }
rm -f "$PGDATA/standby.signal" "$PGDATA/recovery.signal"
if [ "$BEGIN" = rewind ]; then
  tries=30
  until psql --dbname="$SOURCE dbname=postgres" --no-psqlrc --no-password --quiet --command=";"; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "nobody answers whom it could be rewound to"; exit 6; }
    sleep 1
  done
  echo "wal_keep_size = '1TB'" >> "$PGDATA/postgresql.auto.conf"
  touch "$PGDATA.rewinding"
  sync
  pg_rewind --target-pgdata="$PGDATA" --source-server="$SOURCE dbname=postgres application_name=rewind" || exit 5
  BEGIN=replica
fi
printf '%s\\n' "$PARAMETERS" "synchronous_standby_names = '$SYNCHRONOUS'" > "$PGDATA/postgresql.auto.conf"
if [ "$BEGIN" = replica ]; then
  printf '%s\\n' "primary_conninfo = '$SOURCE options=-ctcp_user_timeout=15000'" "primary_slot_name = '$SLOT'" >> "$PGDATA/postgresql.auto.conf"
  touch "$PGDATA/standby.signal"
  rm -rf "$PGDATA/pg_replslot/"*
fi
printf '%s\\n' "$HBA" > "$PGDATA/pg_hba.conf"
sync
rm -f "$PGDATA.rewinding"
"""
"""A server that has crashed is recovered by pg_rewind first, which must not throw away the log that is needed then.

A standby that hangs without ending its connection has the process that serves it wait forever, even if that is told to end, and with it the
checkpoint that would throw log away: the primary's disk would fill up. So the primary gives such a connection up. One who copies gets more time: its disk may be busy with what it writes.
"""
_SERVE = """known=
taken() {
  now=$(cat "$REPLICATION/password" 2>/dev/null) || return 0
  if [ "$now" != "$known" ]; then
    escaped=$(printf '%s' "$now" | sed 's/[\\\\:]/\\\\&/g')
    (umask 077; printf '*:*:*:*:%s\\n' "$escaped" > "$PGPASSFILE.new" && mv "$PGPASSFILE.new" "$PGPASSFILE") && known=$now
  fi
}
taken
postgres "$@" &
server=$!
while sleep 5; do taken; done &
keeper=$!
trap 'kill -INT "$server"' TERM INT
while kill -0 "$server" 2>/dev/null; do
  wait "$server" && code=0 || code=$?
done
kill "$keeper"
exit "$code"
"""
"""TERM would have the server wait for its clients; INT ends their sessions, and it stops in order.

Whom a standby logs in as has a password that may change while it runs. It reads that again each time it connects, from a file that is made of the Secret as its node has it now, whenever that has changed.
"""

_FIXED = {
    "listen_addresses": "*",
    "port": str(PORT),
    "unix_socket_directories": _SOCKETS,
    "wal_level": "replica",
    "wal_log_hints": "on",
    "hot_standby": "on",
    "max_wal_senders": "10",
    "max_replication_slots": "10",
    "max_slot_wal_keep_size": "512MB",
    "wal_sender_timeout": "5s",
    "wal_receiver_timeout": "5s",
    "wal_retrieve_retry_interval": "1s",
    "restart_after_crash": "off",  # one pod is one run of a server: what a shutdown checkpoint ends doesn't go on
    "password_encryption": "scram-sha-256",
    "logging_collector": "off",
}


_LOG_KEPT = "128MB"
"""How much of its log a server keeps at least: pg_rewind needs that of an old primary back to the last checkpoint that both have."""


_SYSTEM_NOTED = {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{SYSTEM}']"}


class Begin(StrEnum):
    """How an instance begins."""

    INITDB = "initdb"
    """As the first one: it makes the database, unless its volume holds it already, or the database has begun since."""
    PRIMARY = "primary"
    """On the data that its volume holds."""
    REPLICA = "replica"
    """As a standby, on a copy of the primary's data, which it makes where its volume is empty."""
    REWIND = "rewind"
    """As a standby, once ``pg_rewind`` has taken from its volume what the primary hasn't got."""


# --- pods -----------------------------------------------------------------------------------------


def new_pod(
    spec: MyDatabaseSpec, ctx: Context, slot: str, begin: Begin, synchronous: str, system: str = ""
) -> Manifest:
    """Return the pod of a slot, which begins in this way; *synchronous* is whom its server waits for once it takes writes, *system* the database that has begun, if one has."""
    begun = {"BEGIN": begin.value, "PARAMETERS": parameter_lines(spec.parameters), "SYNCHRONOUS": synchronous}
    begun |= {"INITDB": spec.initdb} if begin is Begin.INITDB else {}
    begun["HBA"] = hba_text(spec.hba, is_tls_required=spec.tls is not None and spec.tls.mode == "Require")
    return _pod(spec, ctx, slot, begun, "", system)


def kept_pod(spec: MyDatabaseSpec, ctx: Context, instance: Instance, role: str, system: str) -> Manifest | None:
    """Return a pod that is there as it is to be, None where all of it stays: one that was made by another template takes on labels alone. Clients are never led to one that isn't told that the database, *system*, has begun."""
    if instance.template == template_of(spec, ctx):
        return _pod(spec, ctx, instance.slot, instance.begun, role, system)
    live, labels = instance.manifest, _labels(ctx, role)
    if all(labels_of(live).get(name) == labels.get(name) for name in (ROLE, SERVES)):
        return None
    metadata = {"name": instance.slot, "labels": labels, "annotations": _noted(instance.template, system)}
    kept = {name: live["spec"][name] for name in _pod_spec(spec, ctx, "", {}) if name in live["spec"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": kept}


def template_of(spec: MyDatabaseSpec, ctx: Context) -> str:
    """Return the digest of what of the spec a pod can't take on while it runs."""
    made = _pod_spec(spec, ctx, "", {})
    return hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:16]


def parameter_lines(parameters: Mapping[str, Any]) -> str:
    """Return parameters as a server's file has them."""
    return "\n".join(f"{name} = {_quoted(str(value))}" for name, value in sorted(parameters.items()))


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _pod(spec: MyDatabaseSpec, ctx: Context, slot: str, begun: Mapping[str, str], role: str, system: str) -> Manifest:
    noted = _noted(template_of(spec, ctx), system)
    metadata = {"name": slot, "labels": _labels(ctx, role), "annotations": noted}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _pod_spec(spec, ctx, slot, begun)}


def _noted(template: str, system: str) -> dict[str, str]:
    return {TEMPLATE: template, **({SYSTEM: system} if system else {})}


def _labels(ctx: Context, role: str) -> dict[str, str]:
    return {**ctx.labels(), **({ROLE: role, SERVES: "true"} if role else {})}


def _pod_spec(spec: MyDatabaseSpec, ctx: Context, slot: str, begun: Mapping[str, str]) -> dict[str, Any]:
    mounts = [
        {"name": "data", "mountPath": _DATA},
        {"name": "sockets", "mountPath": _SOCKETS},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - of the container, which has no other writable place
    ]
    secret = {"secretName": spec.tls.secret_name, "optional": True, "defaultMode": 0o400} if spec.tls else {}
    own_mounts = [{"name": "replication", "mountPath": _REPLICATION, "readOnly": True}]
    own_mounts += [{"name": TLS_VOLUME, "mountPath": TLS_FOLDER, "readOnly": True}] if secret else []
    replication = {"secretName": secret_of(ctx, REPLICATOR), "optional": True, "defaultMode": 0o400}
    common = {
        "image": spec.server_image,
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": restricted_container(),
    }
    kept = {} if "wal_keep_size" in spec.parameters else {"wal_keep_size": _LOG_KEPT}
    arguments = {**_FIXED, **kept, "cluster_name": slot}
    return {
        "hostname": slot,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 120,
        **restricted_pod(_USER),
        "affinity": spread_over_nodes(ctx.selector()),
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": claim_name(slot)}},
            {"name": "sockets", "emptyDir": {}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "replication", "secret": {**replication, "items": [{"key": "password", "path": "password"}]}},
            *([{"name": TLS_VOLUME, "secret": secret}] if secret else []),
        ],
        "initContainers": [
            {**common, "name": PREPARES, "command": ["sh", "-c", _PREPARE], "env": _prepared_by(spec, ctx, slot, begun)}
        ],
        "containers": [
            {
                **common,
                "name": "postgres",
                "volumeMounts": [*mounts, *own_mounts],
                "command": ["sh", "-c", _SERVE, "postgres"],
                "args": ["-D", _PGDATA, *(part for name, value in sorted(arguments.items()) for part in ("-c", f"{name}={value}"))],
                "env": [
                    {"name": "PGDATA", "value": _PGDATA},
                    {"name": "PGPASSFILE", "value": _PASSFILE},
                    {"name": "REPLICATION", "value": _REPLICATION},
                ],
                "ports": [{"name": "postgres", "containerPort": PORT, "protocol": "TCP"}],
                "resources": dict(spec.resources),
                "readinessProbe": {
                    "exec": {"command": ["pg_isready", "-q", "-h", _SOCKETS]},
                    "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 3,
                },
            }
        ],
    }  # fmt: skip


def _prepared_by(spec: MyDatabaseSpec, ctx: Context, slot: str, begun: Mapping[str, str]) -> list[dict[str, Any]]:
    password = {"secretKeyRef": {"name": secret_of(ctx, SUPERUSER), "key": "password"}}
    return [
        {"name": "BEGIN", "value": begun.get("BEGIN", "")},
        {"name": "SYSTEM", "valueFrom": {"fieldRef": _SYSTEM_NOTED}},
        {"name": "INITDB", "value": begun.get("INITDB", "")},
        {"name": "SOURCE", "value": source_at(f"{ctx.name()}.{ctx.namespace}.svc")},
        {"name": "SLOT", "value": slot_id(slot)},
        {"name": "PARAMETERS", "value": begun.get("PARAMETERS", "")},
        {"name": "SYNCHRONOUS", "value": begun.get("SYNCHRONOUS", "")},
        {"name": "HBA", "value": begun.get("HBA", "")},
        {"name": "MAJOR", "value": str(spec.version)},
        {"name": "PGDATA", "value": _PGDATA},
        {"name": "PASSWORD", "valueFrom": password},
        _replication_password(ctx),
    ]


def source_at(hosts: str, port: int = PORT, *, user: str = REPLICATOR) -> str:
    """Return how one connects who copies, follows or rewinds to a server: to the first of *hosts* that answers. Without a *user* the environment names one.

    Whoever copies mostly listens, which would last forever where the other machine has gone silently; so it is asked for a sign of life, and given up after 15 s without.
    """
    alive = "keepalives_idle=5 keepalives_interval=5 keepalives_count=2 tcp_user_timeout=15000"
    named = f" user={user}" if user else ""
    return f"host={hosts} port={port}{named} connect_timeout=5 {alive}"


def _replication_password(ctx: Context) -> dict[str, Any]:
    """Return the variable with which a standby logs in, once there is a Secret with it."""
    key = {"name": secret_of(ctx, REPLICATOR), "key": "password", "optional": True}
    return {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": key}}


# --- what surrounds them --------------------------------------------------------------------------


def claim(
    wanted: VolumeWish, ctx: Context, volume: InstanceVolume, told: Mapping[str, Any], *, is_primary: bool
) -> Manifest:
    """Return the volume claim of a slot; *told* is what its server answers. A volume grows, and is never made smaller."""
    system, major = str(told.get("system") or volume.system), str(told.get("major") or volume.major)
    role, rejoins = PRIMARY if is_primary else "", "true" if volume.rejoins else ""
    noted = {SYSTEM: system, MAJOR: major, ROLE: role, REJOINS: rejoins, KEPT: volume.kept_since}
    noted |= {FULL: "true" if volume.is_full else "", SURPLUS: "true" if volume.is_surplus else ""}
    return volume_claim(ctx, claim_name(volume.slot), wanted, volume.size, noted)


def services(ctx: Context) -> tuple[Manifest, ...]:
    """Return the Services for the primary, for replicas, and for any instance."""
    return (
        _service(ctx, ctx.name(), {ROLE: PRIMARY}),
        _service(ctx, ctx.name("ro"), {ROLE: REPLICA}),
        _service(ctx, ctx.name("r"), {SERVES: "true"}),
    )


def _service(ctx: Context, name: str, besides: Mapping[str, str]) -> Manifest:
    port = {"name": "postgres", "port": PORT, "targetPort": "postgres", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": ctx.labels()},
        "spec": {"type": "ClusterIP", "ports": [port], "selector": {**ctx.selector(), **besides}},
    }


def disruption_budget(ctx: Context) -> Manifest:
    """Return the budget that keeps the primary. A number it is, since bare pods have no controller that a share could be of."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": ctx.name(), "labels": ctx.labels()},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {**ctx.selector(), ROLE: PRIMARY}}},
    }
