"""What the daemon may do in a cluster: the least that Syncs and modules need, as RBAC rules.

Rights on the objects that come from Git can't be known beforehand. They are granted by whoever
runs the cluster: by ClusterRoles that carry the label `AGGREGATE_TO_DAEMON`, or for everything by
``cluster-admin``.

Pure: names and verbs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import API_GROUP, GroupKind

Rule: TypeAlias = Mapping[str, Sequence[str]]
"""One entry of a Role's ``rules``: apiGroups, resources, verbs."""

LOOK = ("get", "list", "watch")
MANAGE = (*LOOK, "create", "patch", "delete")

_OWN: tuple[Rule, ...] = (
    {"apiGroups": [API_GROUP], "resources": ["syncs"], "verbs": [*LOOK, "patch"]},
    {"apiGroups": [API_GROUP], "resources": ["syncs/status"], "verbs": ["patch"]},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": [*LOOK]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": [*LOOK]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [*MANAGE, "update"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
)


def plural(kind: str) -> str:
    """Return the resource name of a kind, by the rule that Kubernetes' own kinds follow."""
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2] not in "aeiou" else f"{name}s"


def rules_of(module: Module) -> list[Rule]:
    """Return the rights that one module needs: on its CRs, which come from Git, on its children and what it reads."""
    verbs: dict[tuple[str, str], tuple[str, ...]] = {}
    for kind, needed in (
        *((gvk.group_kind, MANAGE) for gvk in module.owns),
        *((reads.gvk.group_kind, LOOK) for reads in module.reads),
        (module.gvk.group_kind, MANAGE),
    ):
        verbs.setdefault(_resource(kind), needed)
    group, resource = _resource(module.gvk.group_kind)
    verbs[group, f"{resource}/status"] = ("patch",)
    # A child with blockOwnerDeletion may only be made by who may hold up the owner's deletion.
    verbs[group, f"{resource}/finalizers"] = ("update",)
    return _joined(verbs)


def daemon_rules(modules: Iterable[Module]) -> list[Rule]:
    """Return the rights that the daemon needs for itself and for *modules*."""
    return [*_OWN, *(rule for module in sorted(modules, key=lambda each: each.name) for rule in rules_of(module))]


def _resource(kind: GroupKind) -> tuple[str, str]:
    return kind.group, plural(kind.kind)


def _joined(verbs: Mapping[tuple[str, str], Sequence[str]]) -> list[Rule]:
    """Return one rule for the resources of each group that need the same verbs."""
    joined: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource), needed in sorted(verbs.items()):
        joined[group, tuple(needed)].append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(needed)}
        for (group, needed), resources in joined.items()
    ]
