"""Two teams, a namespace each, in one cluster of their own whose daemon has the rights of ``install`` and nothing more.

The daemon is its own user with its own token, so that even the right to impersonate is RBAC's to judge. Team A attacks: who commits
to its repository, and who may write its Syncs. Team B's bakery must neither lose anything nor wait.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kubectl_reconcile.sandbox.gitserver import ServedRepository
from tests.e2e.followed import Followed
from tests.security.tarpit import Tarpit
from tests.waiting import patiently

GROUP = "rbac.authorization.k8s.io"
DAEMON = "system:serviceaccount:reconcile-system:kubectl-reconcile"
ALL = ["get", "list", "watch", "create", "patch", "delete"]
VALUE = "the-oven-opens-with-4711"
USERS = {
    DAEMON: ("system:serviceaccounts", "system:serviceaccounts:reconcile-system", "system:authenticated"),
    "committer": ("system:authenticated",),
    "baker": ("system:authenticated",),
}


def role(cluster, name, *subjects, rules):
    """A Role of the cluster's namespace, bound to *subjects*."""
    metadata, ref = {"name": name, "namespace": cluster.namespace}, {"apiGroup": GROUP, "kind": "Role", "name": name}
    given = [{"apiGroups": [rule[0]], "resources": [rule[1]], "verbs": rule[2], **rule[3]} for rule in rules]
    cluster.kubectl.apply(
        [
            {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": given},
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": ref,
                "subjects": list(subjects),
            },
        ],
        "--server-side",
        "--force-conflicts",
    )


def rule(group, resource, verbs=ALL, **more):
    return group, resource, verbs, more


def account(namespace: str, name: str = "kubectl-reconcile") -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def user(name):
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def owner_of_all(name, who):
    return manifest(
        f"{GROUP}/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[user(who)],
    )


def manifest(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def config(name, namespace="", **data):
    return manifest("v1", "ConfigMap", name, namespace, data=data)


def annotated(one, **annotations):
    noted = {f"reconcile.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {**one, "metadata": {**one["metadata"], "annotations": noted}}


MODULE = "kubectl-reconcile-module-hooked"
LIMITS = ("--git-max-seconds=10", "--git-max-memory=256", "--git-max-said=1")
CR = {"apiVersion": "tenants.example.com/v1", "kind": "Hooked"}
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "hookeds.tenants.example.com"},
    "spec": {
        "group": "tenants.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Hooked", "plural": "hookeds", "singular": "hooked"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@dataclass(frozen=True)
class Evil:
    """Git servers that misbehave, all of which the daemon may follow, and the one that it may not."""

    redirecting: str
    dripping: ServedRepository
    flooding: ServedRepository
    listing: str
    endless: str
    forbidden: Tarpit

    @property
    def allowed(self) -> list[str]:
        return [self.redirecting, self.dripping.url, self.flooding.url, self.listing, self.endless]


def hook_as_a_module(cluster, url, folder):
    """Return the folder by which programs have the hook as a module, whose account ``install`` lets write ConfigMaps everywhere."""
    folder.mkdir()
    spec = {
        "parentResource": {"apiVersion": CR["apiVersion"], "resource": "hookeds"},
        "childResources": [
            {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}},
        ],
        "hooks": {"sync": {"webhook": {"url": url, "timeout": "5s"}}},
    }
    controller = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "hooked"},
        "spec": spec,
    }
    (folder / "hooked.json").write_text(json.dumps(controller))
    cluster.kubectl.apply(CRD)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=300s", f"crd/{CRD['metadata']['name']}")
    return folder


def following(cluster, name, url, *, path="", branch="", tag="", commit="", **spec):
    git = {"url": url, "interval": "1s", "branch": branch, "tag": tag, "commit": commit}
    source = {"git": {field: value for field, value in git.items() if value}} | ({"path": path} if path else {})
    cluster.apply(
        {
            "apiVersion": "reconcile.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {"name": name, "namespace": cluster.namespace},
            "spec": {"source": source, **spec},
        }
    )
    return Followed(cluster, name)


class Bakery:
    """Team B's Sync, and whether its work goes on."""

    def __init__(self, cluster, repository):
        self.cluster, self.repository, self.number = cluster, repository, 0
        vault = manifest("v1", "Secret", "vault", stringData={"code": VALUE})
        sha = repository.push({"vault.json": json.dumps(vault), "bread.json": json.dumps(config("bread", price="3"))})
        self.sync = following(cluster, "bakery", repository.url)
        self.sync.until_synced(sha)

    def goes_on(self):
        """Commits are applied, and drift is put back."""
        self.number += 1
        price = f"{self.number}.50"
        sha = self.repository.push({"bread.json": json.dumps(config("bread", price=price))})
        self.sync.until_synced(sha)
        self.cluster.edit("ConfigMap", "bread", {"data": {"price": "nothing"}})
        patiently(lambda: self.cluster.get("ConfigMap", "bread")["data"] == {"price": price}, "drift is put back")
        return True


def said_of(sync, daemon):
    """All that reaches people of team A: their Sync, their events, and the log besides."""
    events = sync.cluster.list("Event")
    return json.dumps([sync.live, events]) + daemon.log
