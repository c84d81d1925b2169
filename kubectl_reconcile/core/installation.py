"""What runs the daemon in a cluster, as manifests: namespace, account, rights, Deployment.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubectl_reconcile.core.annotations import AGGREGATE_TO_WATCH, MAY_REACH_PAGE, MAY_SCRAPE, MAY_TELL_OF_PUSHES
from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.module.rbac import LEASES_SEEN, Rule, daemon_rules, rules_at_home, rules_of
from kubectl_reconcile.core.module.workloads import restricted_container, restricted_pod
from kubectl_reconcile.core.objects import Manifest
from kubectl_reconcile.core.planning.rights.policy import policies

NAMESPACE = "reconcile-system"
"""Where the daemon lives unless told otherwise."""

NAMESPACE_VARIABLE = "KUBECTL_RECONCILE_NAMESPACE"
"""The environment variable that says where the daemon lives, if that isn't reconcile-system."""

OBSOLETE: tuple[Mapping[str, Any], ...] = tuple(
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": "kubectl-reconcile-members"}}
    for kind in ("ClusterRole", "ClusterRoleBinding")
)
"""What earlier versions installed and nothing needs any more: by these the daemon itself wrote what comes from Git."""

_NAME = "kubectl-reconcile"
_PAGE_PORT = 8082
_RBAC = "rbac.authorization.k8s.io"

_ENVIRONMENT = {"XDG_CACHE_HOME": "/cache", "HOME": "/cache", "PYTHONSAFEPATH": "1"}
"""The last has Python never look for modules in the current folder."""


_VOLUMES = {"cache": "20Gi", "tmp": "2Gi"}
"""How large a volume may become before the pod is evicted, so that it never fills its node. One clone has 5 GiB at most (--git-max-clone)."""


_LABELS = {"app.kubernetes.io/name": "kubectl-reconcile", "app.kubernetes.io/component": "daemon"}


def objects(
    namespace: str,
    image: str,
    modules: Iterable[Module],
    crds: Iterable[Manifest] = (),
    *,
    replicas: int = 1,
    page_urls: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return what runs the daemon in a cluster, besides the *crds*: namespace, accounts, rights, policies, Deployment, Service.

    With *page_urls*, though it be empty, the daemon serves the page as well, as being there.
    """
    labels = dict(_LABELS)
    flags = () if page_urls is None else (f"--ui=:{_PAGE_PORT}", *(f"--ui-url={url}" for url in page_urls))
    modules = sorted(modules, key=lambda each: each.name)
    return [
        _namespace(namespace, labels),
        *_daemon_rights(namespace, modules, labels),
        *(each for module in modules for each in _module_rights(namespace, module, labels)),
        *policies(crds, modules, namespace, labels),
        _deployment(namespace, image, labels, replicas, flags),
        _service(namespace, labels),
        *_network_policies(namespace, labels),
        *(() if page_urls is None else page_objects(namespace)),
    ]


def page_objects(namespace: str) -> list[dict[str, Any]]:
    """Return by what people reach the page of the daemon. Each comes to the same replica again, which knows them."""
    name = f"{_NAME}-ui"
    metadata = {"name": name, "namespace": namespace, "labels": dict(_LABELS)}
    ports = [{"name": "ui", "port": 80, "targetPort": _PAGE_PORT}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    spec = {"selector": dict(_LABELS), "ports": ports, "sessionAffinity": "ClientIP"}
    return [{**service, "spec": spec}, _network_policy(namespace, _LABELS, "ui", _PAGE_PORT, MAY_REACH_PAGE)]


def _namespace(name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return the namespace; pods that could do harm are refused where it is ours alone, and told of elsewhere, where others' pods may live."""
    modes = ("enforce", "audit", "warn") if name == NAMESPACE else ("audit", "warn")
    security = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in modes}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**labels, **security}}}


def _daemon_rights(namespace: str, modules: Iterable[Module], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the daemon's account and its rights; what it may watch for all Syncs is added by roles that carry a label."""
    account, modules = _account(_NAME, namespace, labels), list(modules)
    own, watch, leases = f"{_NAME}-daemon", f"{_NAME}-watch", f"{_NAME}-leases"
    everybody = {"kind": "Group", "apiGroup": _RBAC, "name": "system:authenticated"}
    selector = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE_TO_WATCH: "true"}}]}
    return [
        account,
        _cluster_role(own, labels, rules=daemon_rules(modules)),
        _binding(own, _subject(account), labels),
        _cluster_role(watch, labels, aggregationRule=selector),
        _binding(watch, _subject(account), labels),
        _role(own, namespace, labels, rules_at_home(modules)),
        _binding(own, _subject(account), labels, namespace),
        _role(leases, namespace, labels, LEASES_SEEN),
        _binding(leases, everybody, labels, namespace),
    ]


def _module_rights(namespace: str, module: Module, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the account of one module, and what it may do in all namespaces."""
    account = _account(module.account, namespace, labels)
    return [
        account,
        _cluster_role(module.account, labels, rules=rules_of(module)),
        _binding(module.account, _subject(account), labels),
    ]


def _account(name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _subject(account: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "ServiceAccount", **{key: account["metadata"][key] for key in ("name", "namespace")}}


def _role(name: str, namespace: str, labels: Mapping[str, str], rules: Iterable[Rule]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)}


def _cluster_role(name: str, labels: Mapping[str, str], **content: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, **content}


def _binding(name: str, subject: Mapping[str, Any], labels: Mapping[str, str], namespace: str = "") -> dict[str, Any]:
    """Return what gives the role *name* to *subject*: the Role of *namespace*, or without one the ClusterRole."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(labels)},
        "roleRef": {"apiGroup": _RBAC, "kind": "Role" if namespace else "ClusterRole", "name": name},
        "subjects": [dict(subject)],
    }


def _service(namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Return where Git servers report pushes, and where Prometheus asks."""
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
    return [_network_policy(namespace, labels, port, port, label) for port, label in allowed.items()]


def _network_policy(
    namespace: str, labels: Mapping[str, str], name: str, port: str | int, label: str
) -> dict[str, Any]:
    """Return what lets pods of the namespaces that carry *label* reach *port*, and nobody else."""
    sources = [{"namespaceSelector": {"matchLabels": {label: "true"}}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": f"{_NAME}-{name}", "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "podSelector": {"matchLabels": dict(labels)},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": sources, "ports": [{"port": port}]}],
        },
    }


_GIT_MIB = 512
"""What one git process may take: it is ended before the whole container is, whose limit it shares with the daemon."""


def _deployment(
    namespace: str, image: str, labels: Mapping[str, str], replicas: int, flags: Iterable[str] = ()
) -> dict[str, Any]:
    probe = {"periodSeconds": 10, "timeoutSeconds": 5}
    environment = {**_ENVIRONMENT, NAMESPACE_VARIABLE: namespace}  # where the page looks for daemons
    container = {
        "name": "daemon",
        "image": image,
        "args": [
            "daemon",
            "--listen=:8080",
            "--listen-hooks=:8081",
            "--log-format=json",
            f"--lease-namespace={namespace}",
            f"--git-max-memory={_GIT_MIB}",
            "--module-accounts",
            *flags,
        ],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "hooks", "containerPort": 8081}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "failureThreshold": 6, **probe},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, **probe},
        # All processes that fetch and render may have 768 MiB together (running.memory), which leaves 256 for the daemon.
        "resources": {"requests": {"cpu": "50m", "memory": "192Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": restricted_container(),
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a mount of its own
    }
    pod = {
        "serviceAccountName": "kubectl-reconcile",
        "securityContext": restricted_pod(65532)["securityContext"],
        "terminationGracePeriodSeconds": 30,
        "containers": [container],
        "volumes": [{"name": name, "emptyDir": {"sizeLimit": size}} for name, size in _VOLUMES.items()],
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
