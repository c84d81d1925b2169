"""Memcached: a CR ``Memcached`` becomes a Deployment of memcached and a Service in front.

Both are named as the CR and carry its labels, so two CRs never share a selector. The module
insists on everything it states below, image and port included: whoever edits one of these
fields in the Deployment or the Service sees it corrected. What it doesn't state, such as
annotations or a node selector, is left to others.

The status names the *nodes*: the CR's pods that run or are about to, sorted. A node that is
terminating or has ended no longer counts.

Conditions:

- ``Available``: at least one node answers, or none is wanted.
- ``Progressing``: nodes are being added, removed or replaced.
- ``Degraded``: the rollout has failed, a node can't run, or the spec makes no sense.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from kubectl_reconcile.module_api import (
    Between,
    Condition,
    Context,
    Facts,
    Health,
    HealthStatus,
    Manifest,
    Outcome,
    Owned,
    Reads,
    SpecError,
    health,
    is_alive,
    is_ready,
    module,
    restricted_container,
    spec_of,
)

DEFAULT_IMAGE = "memcached:1.6.39-alpine"
DEFAULT_PORT = 11211

_USER_ID = 11211  # the user that the official images bring along
_PORT_NAME = "memcached"


@dataclass(frozen=True, slots=True)
class MemcachedSpec:
    """The spec of a Memcached; the CRD says the same and is asked first."""

    size: Annotated[int, Between(0, 1000)]
    container_port: Annotated[int, Between(1024, 65535)] = DEFAULT_PORT
    image: str = DEFAULT_IMAGE
    resources: Mapping[str, Any] = field(default_factory=dict)


@module(
    api="cache.example.com/v1alpha1",
    kind="Memcached",
    owns=["apps/v1/Deployment", "v1/Service"],
    reads=[Reads("v1", "Pod", selector="reconcile.dev/module=memcached")],
)
def memcached(cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
    """Run ``spec.size`` nodes of memcached behind a Service, all named as the CR.

    ``spec.containerPort``, ``spec.image`` and ``spec.resources`` go to every node. The status
    lists the nodes by name and counts those that are ready.
    """
    spec = spec_of(cr, MemcachedSpec)
    if not spec.image.strip():
        raise SpecError(".spec.image", "must not be empty")
    nodes = [pod for pod in owned.read("Pod") if is_alive(pod)]
    ready = sum(is_ready(node) for node in nodes)
    rollout = _rollout(spec, owned, ctx)
    return Outcome(
        children=(_deployment(spec, ctx), _service(spec, ctx)),
        status={"nodes": [node["metadata"]["name"] for node in nodes], "readyReplicas": ready},
        conditions=(_available(spec, ready), _progressing(spec, ready, rollout), _degraded(nodes, rollout)),
    )


# --- children ---------------------------------------------------------------------------------


def _deployment(spec: MemcachedSpec, ctx: Context) -> Manifest:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": ctx.name(), "labels": ctx.labels()},
        "spec": {
            "replicas": spec.size,
            "selector": {"matchLabels": ctx.selector()},
            "template": {
                "metadata": {"labels": ctx.labels()},
                "spec": {
                    "automountServiceAccountToken": False,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _USER_ID,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(spec)],
                },
            },
        },
    }


def _container(spec: MemcachedSpec) -> dict[str, Any]:
    answers = {"tcpSocket": {"port": _PORT_NAME}}
    # Resources that the CR doesn't ask for are left to whoever sets them, such as an autoscaler.
    resources = {"resources": spec.resources} if spec.resources else {}
    return {
        "name": "memcached",
        "image": spec.image,
        "command": _command(spec),
        "ports": [{"name": _PORT_NAME, "containerPort": spec.container_port, "protocol": "TCP"}],
        "readinessProbe": {**answers, "periodSeconds": 5},
        "livenessProbe": {**answers, "periodSeconds": 10, "initialDelaySeconds": 5},
        "securityContext": restricted_container(),
        **resources,
    }


def _command(spec: MemcachedSpec) -> list[str]:
    return ["memcached", "-m=64", "-o", "modern", "-v", "-p", str(spec.container_port)]


def _service(spec: MemcachedSpec, ctx: Context) -> Manifest:
    # The target is the port's name, so nodes of two ports are reachable while one replaces the other.
    port = {"name": _PORT_NAME, "port": spec.container_port, "targetPort": _PORT_NAME, "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": ctx.name(), "labels": ctx.labels()},
        "spec": {"type": "ClusterIP", "selector": ctx.selector(), "ports": [port]},
    }


# --- status -----------------------------------------------------------------------------------


def _rollout(spec: MemcachedSpec, owned: Owned, ctx: Context) -> Health:
    """Return how far the live Deployment is with this very spec, not with the one before it."""
    live = owned.get("Deployment", ctx.name())
    if live is None:
        return Health(HealthStatus.IN_PROGRESS, "the Deployment is being made")
    if not _states(live, spec):
        return Health(HealthStatus.IN_PROGRESS, "the Deployment is being changed")
    return health(live)


def _states(deployment: Manifest, spec: MemcachedSpec) -> bool:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return deployment["spec"].get("replicas") == spec.size and any(
        (container.get("image"), container.get("command")) == (spec.image, _command(spec)) for container in containers
    )


def _available(spec: MemcachedSpec, ready: int) -> Condition:
    if spec.size == 0:
        return Condition("Available", "True", "ScaledToZero", "no nodes are wanted")
    if ready:
        return Condition("Available", "True", "NodesReady", _count(spec, ready))
    return Condition("Available", "False", "NoNodeReady", _count(spec, ready))


def _progressing(spec: MemcachedSpec, ready: int, rollout: Health) -> Condition:
    if rollout.status is HealthStatus.FAILED:
        return Condition("Progressing", "False", "RolloutFailed", rollout.message)
    if rollout.status is HealthStatus.CURRENT:
        return Condition("Progressing", "False", "RolloutComplete", _count(spec, ready))
    return Condition("Progressing", "True", "RollingOut", f"{_count(spec, ready)}; {rollout.message}")


def _degraded(nodes: list[Manifest], rollout: Health) -> Condition:
    if rollout.status is HealthStatus.FAILED:
        return Condition("Degraded", "True", "RolloutFailed", rollout.message)
    for node in nodes:
        verdict = health(node)
        if verdict.status is HealthStatus.FAILED:
            return Condition("Degraded", "True", "NodeFailed", f"{node['metadata']['name']}: {verdict.message}")
    return Condition("Degraded", "False", "AsExpected")


def _count(spec: MemcachedSpec, ready: int) -> str:
    return f"{ready} of {spec.size} nodes are ready"
