"""What tests of Checkups share: a namespace of plain values, looked at again and again."""

from __future__ import annotations

from kubectl_reconcile.cluster.store import StoredObject
from kubectl_reconcile.core.health.judge import health
from kubectl_reconcile.core.objects import GroupVersionKind, merge_conditions
from kubectl_reconcile.module_api import Context, Owned
from kubectl_reconcile.module_testing import outcome_of
from kubectl_reconcile.modules.checkup import checkup

SOUND = {
    "name": "web",
    "image": "nginx@sha256:" + "0" * 64,
    "ports": [{"name": "http", "containerPort": 80}],
    "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "1Gi"}},
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}


def meta(name, **more):
    return {"name": name, "namespace": "shop", **more}


def stored(manifests):
    """Live objects, as the daemon keeps them."""
    return [StoredObject.of(each, GroupVersionKind.of(each)) for each in manifests]


def deployment(name="web", labels=None, pod=None, **of_container):
    """A Deployment in which nothing is found, but for what is given."""
    template = {
        "metadata": {"labels": labels or {"app": name}},
        "spec": {"containers": [{**SOUND, **of_container}], **(pod or {})},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name), "spec": {"template": template}}


def pod_of(kind, name, pod="web-0", **spec):
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    metadata = meta(pod, labels={"app": "web"}, ownerReferences=[owner])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [SOUND], **spec}}


def service(name="web", ports=(), **spec):
    body = {"selector": {"app": "web"}, "ports": list(ports), "clusterIP": "10.96.0.7", **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta(name), "spec": body}


def role(*verbs, name="web"):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta(name), "rules": rules}


class World:
    """A Checkup in a namespace of *objects*; each look writes its status as the engine does."""

    def __init__(self, *objects, created="2026-11-20T12:00:00Z", **spec):
        self.objects, self.now, self.unread = list(objects), created, {}
        self.cr = {
            "apiVersion": "checks.reconcile.dev/v1alpha1",
            "kind": "Checkup",
            "metadata": meta("security", uid="u-1", generation=1, creationTimestamp=created),
            "spec": {"scan": {"profile": "restricted"}, **spec},
        }
        self.wait_s = None

    def look(self, now=""):
        self.now = now or self.now
        around = stored(self.objects)
        outcome = outcome_of(
            checkup, self.cr, Owned(around=around, unread=self.unread), {}, Context(self.now, "checkup", self.cr)
        )
        conditions = merge_conditions(
            (self.cr.get("status") or {}).get("conditions"), outcome.conditions, generation=1, now=self.now
        )
        self.cr = {**self.cr, "status": {**outcome.status, "observedGeneration": 1, "conditions": conditions}}
        self.wait_s = outcome.requeue_after_s
        return self.cr["status"]

    def change(self, *objects, **spec):
        self.objects = list(objects)
        self.cr = {**self.cr, "spec": {**self.cr["spec"], **spec}}

    def told(self, type_):
        found = next(each for each in self.cr["status"]["conditions"] if each["type"] == type_)
        return found["status"], found["reason"]

    def message(self, type_):
        return next(each for each in self.cr["status"]["conditions"] if each["type"] == type_)["message"]

    @property
    def checks(self):
        return [(each["object"], each["check"]) for each in self.cr["status"]["findings"]]

    @property
    def health(self):
        return str(health(self.cr, rule=checkup.health).status)
