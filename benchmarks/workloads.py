"""Manifests to sync, made from a seed: the same seed, number and namespace give the same files.

Vocabulary: a *workload* is a function from a number of objects to manifests. Every tenth object of a workload is in
each of ten *tenths*, so that a share of them can be changed or left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

Manifest = dict[str, Any]
GROUP = "bench.example.com"
MANY_KINDS = 100


def crd(kind: str, group: str = GROUP) -> Manifest:
    """Return the CRD of a kind with the usual mixture of fields."""
    text, anything = {"type": "string"}, {"type": "object", "additionalProperties": {"type": "string"}}
    port = {"type": "object", "properties": {"name": text, "port": {"type": "integer"}}, "required": ["name"]}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "default": 3},
            "image": text,
            "args": {"type": "array", "items": text},
            "ports": {"type": "array", "items": port, **keyed},
            "limits": anything,
            "notes": anything,
        },
    }
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(rng: random.Random, name: str, kind: str = "Widget") -> Manifest:
    """Return a CR of some twenty leaves."""
    spec = {
        "size": rng.randrange(9),
        "image": f"registry.example.com/app:{rng.randrange(100)}",
        "args": [f"--{word}={rng.randrange(1000)}" for word in ("one", "two", "three")],
        "ports": [{"name": "http", "port": 8000 + rng.randrange(1000)}, {"name": "admin", "port": 9000}],
        "limits": {"cpu": str(rng.randrange(1, 9)), "memory": f"{rng.randrange(1, 9)}Gi"},
    }
    labels = {"team": f"t{rng.randrange(7)}", "tier": "web"}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec}


def config_map(rng: random.Random, name: str) -> Manifest:
    """Return a ConfigMap with three keys."""
    data = {"a": str(rng.randrange(10**6)), "b": "hello", "c": f"line one\nline two {rng.randrange(100)}\n"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(rng: random.Random, name: str) -> Manifest:
    """Return a Deployment of no pods, but with a pod template in full."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench"}
    resources = {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": f"{rng.randrange(1, 5)}Gi"}}
    probe = {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 2}
    container = {
        "name": "main",
        "image": f"registry.example.com/{name}:{rng.randrange(100)}",
        "env": [{"name": f"VARIABLE_{number}", "value": str(rng.randrange(100))} for number in range(8)],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "resources": resources,
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}, {"name": "scratch", "mountPath": "/var/app"}],
        "securityContext": {"runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    side = {"name": "side", "image": "registry.example.com/side:1", "ports": [{"name": "side", "containerPort": 9100}]}
    pod = {
        "serviceAccountName": "default",
        "containers": [container, side],
        "volumes": [{"name": "config", "configMap": {"name": name}}, {"name": "scratch", "emptyDir": {}}],
        "terminationGracePeriodSeconds": 30,
    }
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels}, "spec": spec}


def service(rng: random.Random, name: str) -> Manifest:
    """Return a headless Service."""
    ports = [{"name": "http", "port": 80, "targetPort": 8000 + rng.randrange(100)}, {"name": "admin", "port": 9000}]
    spec = {"clusterIP": "None", "selector": {"app": name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def role(rng: random.Random, name: str) -> Manifest:
    """Return a Role with some rules."""
    rules = [
        {"apiGroups": [""], "resources": ["configmaps", "pods"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["apps"],
            "resources": ["deployments"],
            "resourceNames": [f"d{rng.randrange(99)}"],
            "verbs": ["get"],
        },
    ]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": rules}


def _mixed(rng: random.Random, count: int) -> Iterator[Manifest]:
    for number in range(count):
        make = widget if number % 10 < 7 else config_map
        yield make(rng, f"o{number:05}")


def _built_in(rng: random.Random, count: int) -> Iterator[Manifest]:
    makers: tuple[Callable[[random.Random, str], Manifest], ...] = (deployment, service, role, config_map, deployment)
    for number in range(count):
        yield makers[number % len(makers)](rng, f"o{number:05}")


def _large(rng: random.Random, count: int) -> Iterator[Manifest]:
    for number in range(count):
        manifest = widget(rng, f"o{number:05}")
        manifest["spec"]["notes"] = {f"n{at:03}": f"{rng.getrandbits(4 * 320):0320x}" for at in range(108)}
        yield manifest


def _many_kinds(rng: random.Random, count: int) -> Iterator[Manifest]:
    for number in range(count):
        yield widget(rng, f"o{number:05}", f"Widget{number % MANY_KINDS:02}")


def _modules(rng: random.Random, count: int) -> Iterator[Manifest]:
    for number in range(count):
        metadata = {"name": f"o{number:05}"}
        spec = {"size": 0, "memory": f"{64 + rng.randrange(8)}Mi"}
        yield {"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": metadata, "spec": spec}


WORKLOADS: Mapping[str, Callable[[random.Random, int], Iterator[Manifest]]] = {
    "mixed": _mixed,
    "built-in": _built_in,
    "large": _large,
    "many-kinds": _many_kinds,
    "modules": _modules,
}
"""70 % CRs and 30 % ConfigMaps; Deployments, Services, RBAC; CRs of 36 KB; 100 CRDs; Memcacheds with their children."""


def crds(workload: str) -> list[Manifest]:
    """Return the CRDs that *workload* needs on the cluster."""
    if workload == "many-kinds":
        return [crd(f"Widget{number:02}") for number in range(MANY_KINDS)]
    return [crd("Widget")] if workload in {"mixed", "large"} else []


def write(
    folder: Path, workload: str, count: int, namespace: str, *, seed: int, changed: int = 0, kept: int = 0
) -> Path:
    """Write *workload* into *folder*, a file per object, and return the folder.

    *changed* objects, spread evenly, differ from those of the plain workload; only the first *kept* are written, 0: all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    step = max(count // changed, 1) if changed else count + 1
    for number, manifest in enumerate(WORKLOADS[workload](random.Random(seed), count)):  # noqa: S311 - no secret
        if kept and number >= kept:
            break
        manifest["metadata"]["namespace"] = namespace
        if changed and number % step == 0:
            manifest["metadata"].setdefault("labels", {})["bench-changed"] = "true"
        (folder / f"{manifest['metadata']['name']}.json").write_bytes(
            orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
        )
    return folder
