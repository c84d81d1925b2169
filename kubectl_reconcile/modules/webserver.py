"""WebServer: a CR ``WebServer`` becomes so many pods, each made by hand: there is no ReplicaSet in between.

Pods stand in *slots*: ``<name>-pod-0``, ``<name>-pod-1`` and so on. A pod that is missing is made in the lowest
slot that nothing stands in, so what a preview shows is what happens. While a pod is
terminating its slot is taken, and its replacement doesn't wait for it.

A pod *counts* if the CR controls it, it hasn't ended and isn't terminating; a pod that merely carries
the label doesn't. Of too many, those that aren't ready go first, then the youngest.

Conditions: ``Available`` (a pod is ready, or none is wanted), ``Progressing`` (pods are being made or deleted),
``Degraded`` (a pod can't run).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Annotated

from kubectl_reconcile.module_api import (
    Between,
    Condition,
    Context,
    Facts,
    HealthStatus,
    Manifest,
    Outcome,
    Owned,
    available,
    health,
    is_alive,
    is_ready,
    module,
    spec_of,
)

IMAGE = "nginxdemos/hello:0.4-plain-text"

_PORT = 80


@dataclass(frozen=True, slots=True)
class WebServerSpec:
    """The spec of a WebServer."""

    replicas: Annotated[int, Between(0, 500)]


@module(api="demo.k8s.io/v1alpha1", kind="WebServer", owns=["v1/Pod"])
def webserver(cr: Manifest, owned: Owned, _facts: Facts, ctx: Context) -> Outcome:
    """Run ``spec.replicas`` pods of a web server, each in a slot of its own, without a ReplicaSet.

    A pod that is deleted, fails or ends is replaced. The status counts the pods that run or are about to.
    """
    wanted = spec_of(cr, WebServerSpec).replicas
    pods = owned.of("Pod")
    alive = [pod for pod in pods if is_alive(pod)]
    kept = _by_worth(alive)[:wanted]
    names = [pod["metadata"]["name"] for pod in kept]
    taken = {pod["metadata"]["name"] for pod in pods}
    names += islice(_free(taken, ctx), wanted - len(kept))
    ready = sum(is_ready(pod) for pod in kept)
    return Outcome(
        children=tuple(_pod(name, ctx) for name in sorted(names)),
        status={"count": len(alive), "ready": sum(is_ready(pod) for pod in alive)},
        conditions=(available(ready, wanted, "pods"), _progressing(ready, len(pods), wanted), _degraded(alive)),
    )


def _by_worth(pods: Sequence[Manifest]) -> list[Manifest]:
    """Return the pods, those worth most first: the ready, then the older, then the lower slots."""

    def rank(pod: Manifest) -> tuple[bool, str, int, str]:
        name = pod["metadata"]["name"]
        return not is_ready(pod), pod["metadata"].get("creationTimestamp") or "9999", len(name), name

    return sorted(pods, key=rank)


def _free(taken: set[str], ctx: Context) -> Iterator[str]:
    """Yield the names of slots that nothing stands in, lowest first."""
    names = (ctx.name(f"pod-{slot}") for slot in count())
    return (name for name in names if name not in taken)


def _pod(name: str, ctx: Context) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": ctx.name(), **ctx.labels()}},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [
                {"name": "web", "image": IMAGE, "ports": [{"name": "http", "containerPort": _PORT, "protocol": "TCP"}]}
            ],
        },
    }


def _progressing(ready: int, there: int, wanted: int) -> Condition:
    text = f"{ready} of {wanted} pods are ready"
    if ready == wanted == there:
        return Condition("Progressing", "False", "AsWanted", text)
    return Condition("Progressing", "True", "PodsChanging", text)


def _degraded(alive: Sequence[Manifest]) -> Condition:
    for pod in alive:
        verdict = health(pod)
        if verdict.status is HealthStatus.FAILED:
            return Condition("Degraded", "True", "PodFailed", f"{pod['metadata']['name']}: {verdict.message}")
    return Condition("Degraded", "False", "AsExpected")
