"""What the daemon and its modules may do in a cluster: the least that they need, as RBAC rules.

What comes from Git is written as the account of its Sync, whose rights are given by whoever runs the cluster
(``kubectl reconcile grant``). The daemon itself may read Syncs, CRDs and namespaces, write what is said of Syncs, and act as the
accounts of Syncs and modules. It may read no Secrets.

Pure: names and verbs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from kubectl_reconcile.core.module.api import Module
from kubectl_reconcile.core.objects import API_GROUP, DEFAULT_ACCOUNT, GroupKind

Rule: TypeAlias = Mapping[str, Sequence[str]]
"""One entry of a Role's ``rules``: apiGroups, resources, verbs."""

LOOK = ("get", "list", "watch")
MANAGE = (*LOOK, "create", "patch", "delete")

SECRETS = ("", "secrets")
"""Group and resource of Secrets. Of these nobody is given all: ``kubectl reconcile grant`` gives those of a namespace."""

_OWN: tuple[Rule, ...] = (
    {"apiGroups": [API_GROUP], "resources": ["syncs"], "verbs": [*LOOK, "patch"]},
    {"apiGroups": [API_GROUP], "resources": ["syncs/status"], "verbs": ["patch"]},
    {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": [*LOOK]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": [*LOOK]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": [DEFAULT_ACCOUNT],
    },
)
"""In all namespaces. Of accounts it is those of one name, which exist for this: whoever makes one of that name means it."""


def plural(kind: str) -> str:
    """Return the resource name of a kind, by the rule that Kubernetes' own kinds follow.

    Hooks name resources instead of kinds: what begins with a lower-case letter is a resource's name.
    """
    if kind[:1].islower():
        return kind
    name = kind.lower()
    if name == "endpoints":
        return name
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") and name[-2] not in "aeiou" else f"{name}s"


def rules_of(module: Module) -> list[Rule]:
    """Return the rights that one module needs: on its CRs, on its children and what it reads, Secrets left out."""
    verbs: dict[tuple[str, str], tuple[str, ...]] = {}
    for kind, needed in (
        *((gvk.group_kind, MANAGE) for gvk in module.owns),
        *((reads.gvk.group_kind, LOOK) for reads in module.reads if not reads.whole_namespace),
        (module.gvk.group_kind, (*LOOK, "patch")),
    ):
        verbs.setdefault(_resource(kind), needed)
    verbs.pop(SECRETS, None)
    group, resource = _resource(module.gvk.group_kind)
    verbs[group, f"{resource}/status"] = ("patch",)
    # A child with blockOwnerDeletion may only be made by who may hold up the owner's deletion.
    verbs[group, f"{resource}/finalizers"] = ("update",)
    return _joined(verbs)


def rules_here(module: Module) -> list[Rule]:
    """Return the rights that one module needs in the namespaces of its CRs alone: to read all of some kinds there."""
    return _joined({_resource(each.gvk.group_kind): LOOK for each in module.reads if each.whole_namespace})


def daemon_rules(modules: Iterable[Module]) -> list[Rule]:
    """Return the rights that the daemon needs in all namespaces: its own, and to see the CRs of *modules*."""
    return [*_OWN, *_joined({_resource(module.gvk.group_kind): LOOK for module in modules})]


def rules_at_home(modules: Iterable[Module]) -> list[Rule]:
    """Return the rights that the daemon needs in its own namespace: its Leases, and to act as the accounts of *modules*."""
    accounts = sorted(module.account for module in modules)
    leases: Rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [*MANAGE, "update"]}
    acting: Rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": accounts,
    }
    return [leases, acting] if accounts else [leases]


LEASES_SEEN: tuple[Rule, ...] = ({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": [*LOOK]},)
"""What everybody who is known to the cluster may read in the daemon's namespace: whether a daemon lives."""


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
