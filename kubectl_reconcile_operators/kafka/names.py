"""Names and ids: how brokers are called, found and told from others. They stay the same forever.

A *slot* is a broker's name, that of its pod (``kf-0``); its number is the broker's id.

Pure.
"""

from __future__ import annotations

import base64
import hashlib

from kubectl_reconcile.module_api import Context

API = "kafka.example.com/v1alpha1"
INTERNAL_PORT, CONTROLLER_PORT = 9091, 9093
"""What brokers and the daemon connect to, and what controllers do."""
PREFIX = "kafka.example.com/"
TEMPLATE = f"{PREFIX}template"
"""On pods: the digest of what of the spec they were made by and can't take on while they run."""
CLUSTER = f"{PREFIX}cluster-id"
"""On volumes: the id of the cluster whose data they hold."""
TRUSTED = f"{PREFIX}trusted"
"""On pods: which authorities they trust, by fingerprint."""
BEGIN = f"{PREFIX}begin"
"""On pods: how a volume is formatted that is empty, as their first container takes it from here at each start. One of the first controllers begins a cluster once; from then on it only joins."""
JOINS = "joins"
"""How a volume is formatted of who begins no cluster."""
SERVED = f"{PREFIX}served"
"""On pods: when the volume had been looked at that their broker has taken part with since, so that what was found then is over."""
BOOTSTRAP = f"{PREFIX}bootstrap"
"""On volumes: the id of the cluster that the controller on it begins, as one of the first."""


def slot_of(ctx: Context, number: int) -> str:
    """Return the name of the broker with this id."""
    return ctx.name(str(number))


def claim_name(slot: str) -> str:
    """Return the name of a broker's volume claim."""
    return f"{slot}-data"


def headless(ctx: Context) -> str:
    """Return the name of the Service that gives each broker a name of its own."""
    return ctx.name("brokers")


def host(ctx: Context, number: int) -> str:
    """Return the name that a broker is reached by."""
    return f"{slot_of(ctx, number)}.{headless(ctx)}.{ctx.namespace}.svc"


def fact_key(topic: str) -> str:
    """Return how facts name a topic: dots separate the parts of a fact's path, and no topic's name has a slash."""
    return topic.replace(".", "/")


def topic_of(key: str) -> str:
    """Return the topic that facts name so."""
    return key.replace("/", ".")


def new_cluster_id(ctx: Context) -> str:
    """Return the id that the cluster of a custom resource is given when it begins."""
    return _id(f"cluster {ctx.cr['metadata'].get('uid') or ''}")


def directory_id(cluster: str, number: int) -> str:
    """Return the id of the directory that one of the first controllers begins with."""
    return _id(f"directory {cluster} {number}")


def _id(of: str) -> str:
    """Return 16 bytes as Kafka writes them, of a random UUID's form; none of Kafka's reserved ones is among them, which are near 0."""
    drawn = bytearray(hashlib.sha256(of.encode()).digest()[:16])
    drawn[6] = drawn[6] & 0x0F | 0x40
    drawn[8] = drawn[8] & 0x3F | 0x80
    drawn[0] &= 0x7F  # an id that began with a dash would be taken for an option
    return base64.urlsafe_b64encode(bytes(drawn)).decode().rstrip("=")
