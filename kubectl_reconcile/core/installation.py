"""What runs the daemon in a cluster, as manifests: namespace, account, rights, Deployment.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubectl_reconcile.core.annotations import AGGREGATE_TO_DAEMON, MAY_SCRAPE, MAY_TELL_OF_PUSHES
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.rbac import daemon_rules

NAMESPACE = "reconcile-system"
"""Where the daemon lives unless told otherwise."""


_ENVIRONMENT = {"XDG_CACHE_HOME": "/cache", "HOME": "/cache", "PYTHONSAFEPATH": "1"}
"""The last has Python never look for modules in the current folder."""


def objects(
    namespace: str, image: str, modules: Iterable[Module], *, cluster_admin: bool = False, replicas: int = 1
) -> list[dict[str, Any]]:
    """Return what runs the daemon in a cluster, besides the CRDs: namespace, account, rights, Deployment, Service."""
    labels = {"app.kubernetes.io/name": "kubectl-reconcile", "app.kubernetes.io/component": "daemon"}
    account = {"kind": "ServiceAccount", "name": "kubectl-reconcile", "namespace": namespace}
    own, members = "kubectl-reconcile-daemon", "kubectl-reconcile-members"
    roles: list[dict[str, Any]] = [
        _cluster_role(own, labels, rules=daemon_rules(modules)),
        _binding(own, own, account, labels),
    ]
    if cluster_admin:
        roles.append(_binding(members, "cluster-admin", account, labels))
    else:
        selector = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE_TO_DAEMON: "true"}}]}
        roles += [_cluster_role(members, labels, aggregationRule=selector), _binding(members, members, account, labels)]
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "kubectl-reconcile", "namespace": namespace, "labels": labels},
        },
        *roles,
        _deployment(namespace, image, labels, replicas),
        _service(namespace, labels),
        *_network_policies(namespace, labels),
    ]


def _cluster_role(name: str, labels: Mapping[str, str], **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, **content}


def _binding(name: str, role: str, account: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": dict(labels)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [dict(account)],
    }


def _service(namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return where Git servers tell of pushes, and where Prometheus asks."""
    ports = [
        {"name": "hooks", "port": 80, "targetPort": "hooks"},
        {"name": "http", "port": 8080, "targetPort": "http"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubectl-reconcile", "namespace": namespace, "labels": dict(labels)},
        "spec": {"selector": dict(labels), "ports": ports},
    }


def _network_policies(namespace: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return who may reach the daemon: its hooks and its metrics, each from the namespaces that are labelled for it.

    The kubelet of the pod's own node, which asks /healthz and /readyz, is let through by every implementation.
    """
    allowed = {"hooks": MAY_TELL_OF_PUSHES, "http": MAY_SCRAPE}
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": f"kubectl-reconcile-{port}", "namespace": namespace, "labels": dict(labels)},
            "spec": {
                "podSelector": {"matchLabels": dict(labels)},
                "policyTypes": ["Ingress"],
                "ingress": [
                    {"from": [{"namespaceSelector": {"matchLabels": {label: "true"}}}], "ports": [{"port": port}]}
                ],
            },
        }
        for port, label in allowed.items()
    ]


def _deployment(namespace: str, image: str, labels: Mapping[str, str], replicas: int) -> dict[str, Any]:
    probe = {"periodSeconds": 10, "timeoutSeconds": 5}
    container = {
        "name": "daemon",
        "image": image,
        "args": [
            "daemon",
            "--listen=:8080",
            "--listen-hooks=:8081",
            "--log-format=json",
            f"--lease-namespace={namespace}",
        ],
        "env": [{"name": name, "value": value} for name, value in _ENVIRONMENT.items()],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "hooks", "containerPort": 8081}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "failureThreshold": 6, **probe},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, **probe},
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a mount of its own
    }
    pod = {
        "serviceAccountName": "kubectl-reconcile",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": [{"name": "cache", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kubectl-reconcile", "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }
