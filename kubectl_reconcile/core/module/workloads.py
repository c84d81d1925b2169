"""Common children, for modules that want nothing unusual: workloads and the Services in front of them.

Each belongs to one *component* of a CR (empty: the CR as a whole), which names it and gives it its labels. What is
stated here is insisted on; what isn't, such as a node selector, is left to others.

Pure: a context and values in, a manifest out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubectl_reconcile.core.module.inputs import Context
from kubectl_reconcile.core.objects import Condition, Manifest, has_condition, mapping_of, maps_in


def container(
    name: str, image: str, *, port: int = 0, env: Mapping[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a container that listens on *port* (0: on none), with these environment variables."""
    found: dict[str, Any] = {"name": name, "image": image, **more}
    if port:
        found["ports"] = [{"name": "main", "containerPort": port, "protocol": "TCP"}]
    if env:
        found["env"] = [{"name": key, "value": value} for key, value in env.items()]
    return found


def deployment(
    ctx: Context, component: str, *, replicas: int, containers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a Deployment named after *component*."""
    return _workload(ctx, component, "Deployment", replicas=replicas, containers=containers)


def stateful_set(
    ctx: Context, component: str, *, replicas: int, containers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return a StatefulSet named after *component*, with the Service of the same name."""
    found = _workload(ctx, component, "StatefulSet", replicas=replicas, containers=containers)
    found["spec"]["serviceName"] = ctx.name(component)
    return found


def _workload(
    ctx: Context, component: str, kind: str, *, replicas: int, containers: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": ctx.name(component), "labels": ctx.labels(component)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": ctx.selector(component)},
            "template": {
                "metadata": {"labels": ctx.labels(component)},
                "spec": {"automountServiceAccountToken": False, "containers": list(containers)},
            },
        },
    }


def restricted_pod(user: int) -> dict[str, Any]:
    """Return the fields of a pod's spec with which all containers run as *user*, have no token of the cluster, and get no variables of other Services.

    With `restricted_container` it meets the Pod Security Standard "restricted" (kubernetes.io/docs/concepts/security/pod-security-standards).
    """
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "fsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def restricted_container() -> dict[str, Any]:
    """Return the security context of a container that gains no rights and writes to nothing but its volumes."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def spread_over_nodes(selector: Mapping[str, str]) -> dict[str, Any]:
    """Return the affinity of pods that prefer different nodes, but can run on one."""
    term = {"labelSelector": {"matchLabels": dict(selector)}, "topologyKey": "kubernetes.io/hostname"}
    wish = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def service(ctx: Context, component: str, *, port: int, headless: bool = False) -> dict[str, Any]:
    """Return a Service named after *component*, in front of its pods' port ``main``."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": ctx.name(component), "labels": ctx.labels(component)},
        "spec": {
            "type": "ClusterIP",
            **({"clusterIP": "None"} if headless else {}),
            "selector": ctx.selector(component),
            "ports": [{"name": "main", "port": port, "targetPort": "main", "protocol": "TCP"}],
        },
    }


def is_alive(pod: Manifest) -> bool:
    """Tell whether a pod runs or is starting: it hasn't ended, and isn't being deleted."""
    ended = str(mapping_of(pod.get("status")).get("phase")) in {"Succeeded", "Failed"}
    return not ended and not pod["metadata"].get("deletionTimestamp")


def first_variables(pod: Manifest, among: str = "containers") -> dict[str, str]:
    """Return the environment of a pod's first container *among* these, as far as it is given by value."""
    first = next(iter(maps_in(mapping_of(pod.get("spec")).get(among))), {})
    given = ((str(each.get("name")), each.get("value")) for each in maps_in(first.get("env")))
    return {name: str(value) for name, value in given if value is not None}


def awaits_node(pod: Manifest) -> bool:
    """Tell whether no node has taken a pod yet, so that it has never run. One whose volume claim doesn't exist stays so."""
    is_taken = mapping_of(pod.get("spec")).get("nodeName")
    return not is_taken and str(mapping_of(pod.get("status")).get("phase") or "Pending") == "Pending"


def is_ready(pod: Manifest) -> bool:
    """Tell whether a pod is ready."""
    return has_condition(pod, "Ready")


def available(ready: int, wanted: int, noun: str) -> Condition:
    """Return the condition ``Available``: at least one of the wanted ones is ready, or none is wanted."""
    if wanted == 0:
        return Condition("Available", "True", "ScaledToZero", f"no {noun} are wanted")
    text = f"{ready} of {wanted} {noun} are ready"
    return (
        Condition("Available", "True", "SomeReady", text)
        if ready
        else Condition("Available", "False", "NoneReady", text)
    )
