"""A cluster, looked at from outside: what its API server holds, what people do to it, and what they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kubectl_reconcile.core.objects import ObjectRef
from kubectl_reconcile.core.resources.applyset import PART_OF, applyset_id
from tests.e2e.api import Api
from tests.waiting import patiently

PLACES = {
    "CronJob": ("/apis/batch/v1", "cronjobs"),
    "Namespace": ("/api/v1", "namespaces"),
    "Node": ("/api/v1", "nodes"),
    "ConfigMap": ("/api/v1", "configmaps"),
    "Secret": ("/api/v1", "secrets"),
    "Service": ("/api/v1", "services"),
    "Pod": ("/api/v1", "pods"),
    "Event": ("/apis/events.k8s.io/v1", "events"),
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases"),
    "Memcached": ("/apis/cache.example.com/v1alpha1", "memcacheds"),
    "WebServer": ("/apis/demo.k8s.io/v1alpha1", "webservers"),
    "ThreeTierApp": ("/apis/apps.example.com/v1alpha1", "threetierapps"),
    "Candy": ("/apis/awesome.corp.com/v1", "candies"),
    "Kafka": ("/apis/kafka.example.com/v1alpha1", "kafkas"),
    "KafkaRebalance": ("/apis/kafka.example.com/v1alpha1", "kafkarebalances"),
    "Checkup": ("/apis/checks.reconcile.dev/v1alpha1", "checkups"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "Sync": ("/apis/reconcile.dev/v1alpha1", "syncs"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
}
CLUSTER_SCOPED = {"Namespace", "Node", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}


@dataclass(frozen=True)
class Cluster:
    """What the API server holds, and what people do to it. *namespace* is where objects are looked for."""

    api: Api
    kubectl: Any
    namespace: str

    def at(self, namespace: str) -> Cluster:
        """The same, from another namespace."""
        return Cluster(self.api, self.kubectl, namespace)

    def trust(self) -> Cluster:
        """Let the accounts of this namespace do everything, as a cluster's administrators may; return this cluster once that is in force."""
        body = everything_for(self.namespace)
        path = f"{BINDINGS}/{body['metadata']['name']}?fieldManager=by-hand&force=true"
        self.api.ask(path, method="PATCH", body=body, type_="application/apply-patch+yaml")
        patiently(self._is_trusted, f"accounts of {self.namespace} may do everything", pause_s=0.02)
        return self

    def distrust(self) -> None:
        """Take back what ``trust`` gave, if it isn't taken back already, and wait until that is in force: an authorizer hears of it later."""
        self.api.ask(f"{BINDINGS}/{everything_for(self.namespace)['metadata']['name']}", method="DELETE")
        patiently(lambda: not self._is_trusted(), f"accounts of {self.namespace} may do nothing", pause_s=0.02)

    def _is_trusted(self) -> bool:
        asked = {"verb": "create", "group": "nobody.example.com", "resource": "anything", "namespace": self.namespace}
        return is_allowed(self.api, "anybody", [f"system:serviceaccounts:{self.namespace}"], asked)

    def path(self, kind: str, name: str = "") -> str:
        root, plural = PLACES[kind]
        place = "" if kind in CLUSTER_SCOPED else f"/namespaces/{self.namespace}"
        return f"{root}{place}/{plural}" + (f"/{name}" if name else "")

    def get(self, kind: str, name: str) -> Any:
        """The live object, or None."""
        return self.api.ask(self.path(kind, name))

    def list(self, kind: str, selector: str = "") -> list[dict[str, Any]]:
        query = f"?labelSelector={quote(selector)}" if selector else ""
        return (self.api.ask(self.path(kind) + query) or {"items": []})["items"]

    def names(self, kind: str, selector: str = "") -> set[str]:
        return {one["metadata"]["name"] for one in self.list(kind, selector)}

    def members(self, kind: str, sync: str) -> set[str]:
        """Names of the objects that carry the mark of a Sync of this namespace."""
        set_id = applyset_id(ObjectRef("reconcile.dev", "Sync", self.namespace, sync))
        return self.names(kind, f"{PART_OF}={set_id}")

    def version(self, kind: str, name: str) -> str:
        return self.get(kind, name)["metadata"]["resourceVersion"]

    def edit(self, kind: str, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Change an object by hand, by a merge patch; return it."""
        path = f"{self.path(kind, name)}?fieldManager=by-hand"
        changed = self.api.ask(path, method="PATCH", body=patch, type_="application/merge-patch+json")
        assert changed, f"there is no {kind} {name} to change"
        return changed

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object by hand, or change it, by a server-side apply; return it."""
        path = f"{self.path(manifest['kind'], manifest['metadata']['name'])}?fieldManager=by-hand&force=true"
        return self.api.ask(path, method="PATCH", body=manifest, type_="application/apply-patch+yaml")

    def delete(self, kind: str, name: str) -> None:
        assert self.remove(kind, name), f"there is no {kind} {name} to delete"

    def remove(self, kind: str, name: str) -> bool:
        """Delete an object that may not exist; return whether it did."""
        return bool(self.api.ask(f"{self.path(kind, name)}?propagationPolicy=Background", method="DELETE"))


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def is_allowed(api: Api, user: str, groups: Sequence[str], asked: Mapping[str, str]) -> bool:
    """Tell whether the server lets somebody do what was *asked*: attributes of a resource."""
    spec = {"user": user, "groups": groups, "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(api.ask(REVIEWS, method="POST", body=review)["status"]["allowed"])


def until_may(kubectl: Any, user: str, verb: str, resource: str, namespace: str) -> None:
    """Wait until a right that was just given is in force: the API server's authorizer hears of it later than who gave it."""
    words = ("auth", "can-i", verb, resource, "-n", namespace, "--as", user)
    patiently(lambda: "yes" in kubectl(*words), f"{user} may {verb} {resource}")


def everything_for(namespace: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"everything-for-{namespace}"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": group, "name": f"system:serviceaccounts:{namespace}"}],
    }
