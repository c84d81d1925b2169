"""The RBAC objects that give the account of a Sync what it needs.

Vocabulary: a *grant* is all of them: the account, a Role and its binding in each namespace, a ClusterRole and its binding
where something is needed everywhere, and in the Sync's namespace what lets the daemon act as the account.

Where modules need Secrets of a namespace for the Sync's custom resources, their accounts are given these there.

Each object of a grant carries the label `GRANTED_TO` with the id of the Sync's set, so that a later one finds what isn't
needed any more. The account doesn't, nor what lets the daemon act as it: several Syncs may share them.

Names: in the Sync's own namespace ``kubectl-reconcile-<sync>``. Elsewhere, where Syncs of several namespaces meet, and
cluster-wide ``kubectl-reconcile:<namespace>:<sync>``, with ``:<account>`` after it for a module's.

Pure: needs in, manifests out.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Self

from msgspec import Struct

from kubectl_reconcile.core.annotations import GRANTED_TO
from kubectl_reconcile.core.objects import DEFAULT_ACCOUNT, Manifest, account_user
from kubectl_reconcile.core.planning.plan import set_id_of
from kubectl_reconcile.core.planning.rights.needs import RBAC, Needs
from kubectl_reconcile.core.planning.rights.rules import Right, rules_of
from kubectl_reconcile.core.planning.rights.subjects import groups_of
from kubectl_reconcile.core.resources.sync import Sync

_NAME = "kubectl-reconcile"
_PREFIX = f"{_NAME}:{{0.namespace}}:{{0.name}}"


class Account(Struct, frozen=True):
    """A ServiceAccount. Prints as ``namespace/name``."""

    namespace: str
    name: str

    @classmethod
    def of(cls, sync: Sync) -> Self:
        """Return the account of *sync*."""
        return cls(sync.namespace, sync.service_account)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the account that ``NAMESPACE/NAME`` names.

        Raises:
            ValueError: it names none.
        """
        namespace, slash, name = text.partition("/")
        if not (namespace and slash and name) or "/" in name:
            raise ValueError(f"{text!r} isn't a NAMESPACE/NAME of a ServiceAccount")
        return cls(namespace, name)

    @property
    def user(self) -> str:
        """What the API server calls it."""
        return account_user(self.namespace, self.name)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the API server counts it in."""
        return groups_of(self.user)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


DAEMON = Account("reconcile-system", "kubectl-reconcile")
"""As whom an installed daemon acts, where nothing else is said."""


def grant_of(sync: Sync, needs: Needs, *, namespaces: Collection[str] = (), daemon: Account = DAEMON) -> list[Manifest]:
    """Return the objects that give the account of *sync* what it *needs*, in an order in which they can be applied.

    *namespaces* are made first. *daemon* is let act as the account, unless the account has the name for which it may
    anyway.
    """
    account = Account.of(sync)
    objects: list[Manifest] = [_object("v1", "Namespace", {"name": name}) for name in sorted(namespaces)]
    objects.append(_object("v1", "ServiceAccount", {"name": account.name, "namespace": account.namespace}))
    if needs.everywhere:
        objects += _pair(sync, "", needs.everywhere)
    for place, rights in sorted(needs.here.items()):
        objects += _pair(sync, place, rights)
    for (place, name), rights in sorted(needs.of_modules.items()):
        metadata = {
            "name": f"{_PREFIX.format(sync)}:{name}",
            "namespace": place,
            "labels": {GRANTED_TO: set_id_of(sync)},
        }
        objects += _role_and_binding(metadata, rights, Account(daemon.namespace, name))
    return [*objects, *impersonation_of(account, daemon)]


def impersonation_of(account: Account, daemon: Account) -> list[Manifest]:
    """Return what lets *daemon* act as *account*, and as nobody else; nothing where it may anyway."""
    if account.name == DEFAULT_ACCOUNT:
        return []
    name = f"{_NAME}:impersonate:{account.name}"
    rights = {Right("", "serviceaccounts", "impersonate", account.name)}
    return _role_and_binding({"name": name, "namespace": account.namespace}, rights, daemon)


def granted_name(sync: Sync, namespace: str) -> str:
    """Return what the Role of a grant is called in *namespace*; empty is the ClusterRole."""
    if namespace == sync.namespace:
        return f"{_NAME}-{sync.name}"
    return _PREFIX.format(sync)


def is_granted_name(sync: Sync, namespace: str, name: str) -> bool:
    """Tell whether a Role or binding of a grant may be called so: that of the account, or one of a module."""
    return name == granted_name(sync, namespace) or name.startswith(f"{_PREFIX.format(sync)}:")


def _pair(sync: Sync, namespace: str, rights: Collection[Right]) -> list[Manifest]:
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": granted_name(sync, namespace), **place, "labels": {GRANTED_TO: set_id_of(sync)}}
    return _role_and_binding(metadata, rights, Account.of(sync))


def _role_and_binding(metadata: dict[str, Any], rights: Collection[Right], account: Account) -> list[Manifest]:
    prefix, api_version = "" if "namespace" in metadata else "Cluster", f"{RBAC}/v1"
    role = {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    return [
        _object(api_version, f"{prefix}Role", metadata, rules=rules_of(rights)),
        _object(api_version, f"{prefix}RoleBinding", metadata, roleRef=role, subjects=[subject]),
    ]


def _object(api_version: str, kind: str, metadata: dict[str, Any], **content: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}
