"""Shapes of built-in kinds: the fields that people write, PodSpec nearly in full."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from oracle.shapes import Choice, Either, Fixed, Items, Made, Obj, Shape, Table, keyed

WORDS = ("a", "b", "c")
QUANTITIES = ("1", "1000m", "0.5", "500m", "1Gi", "1024Mi", "1073741824", "2", 1, 2, "1e3", "100M", "0.1", "1.5Gi")
PORTS = (80, 8080, 443, 53)
PROTOCOLS = ("TCP", "UDP")


def text(*values: str) -> Shape:
    return Choice(values or ("x", "y", "z"))


def labels() -> Shape:
    return Table(("app", "tier", "example.com/x"), text("one", "two", ""), most=2)


OWNER = Obj(
    {
        "apiVersion": (Fixed("v1"), 1),
        "kind": (Fixed("ConfigMap"), 1),
        "name": (text("one", "two"), 1),
        "uid": (text("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"), 1),
        "blockOwnerDeletion": (Choice((True, False)), 0.3),
    }
)
METADATA = Obj(
    {
        "labels": (labels(), 0.6),
        "annotations": (Table(("note", "example.com/hint", "a.b/c"), text("1", "2", "", "<&>")), 0.4),
        "finalizers": (Items(text("example.com/one", "example.com/two"), most=2, key=lambda item: item), 0.1),
        "ownerReferences": (Items(OWNER, most=2, key=keyed("uid")), 0.1),
    }
)
TEMPLATE_METADATA = Obj(
    {
        "labels": (Fixed({"app": "w"}), 1),
        "annotations": (Table(WORDS, text("1", "2")), 0.3),
        "creationTimestamp": (Fixed(None), 0.1),
    }
)

INT_OR_STRING = Choice((80, "http", "25%", 1, 8080))
PORT = Choice(PORTS)
RESOURCES = Obj(
    {
        "limits": (Table(("cpu", "memory", "ephemeral-storage"), Choice(QUANTITIES)), 0.5),
        "requests": (Table(("cpu", "memory"), Choice(("0.1", "100m", "64Mi", "0.05", "1e-1"))), 0.5),
    }
)
KEY_REF = Obj({"name": (text("cm", "other"), 1), "key": (text("k", "l"), 1), "optional": (Choice((True, False)), 0.3)})
ENV = Either(
    (
        Obj({"name": (text("A", "B", "C", "D"), 1), "value": (text("1", "2", ""), 0.8)}),
        Obj(
            {
                "name": (text("A", "B", "C", "D"), 1),
                "valueFrom": (
                    Either(
                        (
                            Obj({"configMapKeyRef": (KEY_REF, 1)}),
                            Obj({"secretKeyRef": (KEY_REF, 1)}),
                            Obj(
                                {
                                    "fieldRef": (
                                        Obj({"fieldPath": (text("metadata.name"), 1), "apiVersion": (text("v1"), 0.3)}),
                                        1,
                                    )
                                }
                            ),
                            Obj(
                                {
                                    "resourceFieldRef": (
                                        Obj(
                                            {
                                                "resource": (text("limits.cpu"), 1),
                                                "divisor": (Choice(QUANTITIES[:4]), 0.5),
                                            }
                                        ),
                                        1,
                                    )
                                }
                            ),
                        )
                    ),
                    1,
                ),
            }
        ),
    )
)
HTTP_GET = Obj(
    {
        "port": (INT_OR_STRING, 1),
        "path": (text("/", "/healthz", ""), 0.7),
        "scheme": (text("HTTP", "HTTPS"), 0.3),
        "httpHeaders": (Items(Obj({"name": (text("X"), 1), "value": (text("1", "2"), 1)}), most=2), 0.2),
    }
)
PROBE = Obj(
    {
        "httpGet": (HTTP_GET, 1),
        "periodSeconds": (Choice((1, 10, 30)), 0.5),
        "timeoutSeconds": (Choice((1, 5)), 0.3),
        "initialDelaySeconds": (Choice((0, 5)), 0.3),
        "failureThreshold": (Choice((3, 5)), 0.3),
    }
)
CONTAINER_PORT = Obj(
    {
        "containerPort": (PORT, 1),
        "protocol": (Choice(PROTOCOLS), 0.5),
        "name": (text("http", "web", "dns"), 0.4),
        "hostIP": (text("127.0.0.1"), 0.05),
    }
)
MOUNT = Obj(
    {
        "name": (text("v1", "v2"), 1),
        "mountPath": (text("/a", "/b", "/c"), 1),
        "readOnly": (Choice((True, False)), 0.3),
        "subPath": (text("s", ""), 0.2),
    }
)


def container(names: tuple[str, ...], *, probes: bool = True) -> Shape:
    fields: dict[str, Any] = {
        "name": (text(*names), 1),
        "image": (text("nginx:1", "nginx:2", "redis"), 1),
        "command": (Items(text("sh", "-c"), most=2), 0.2),
        "args": (Items(text("a", "b"), most=2), 0.3),
        "env": (Items(ENV, most=4, key=keyed("name")), 0.5),
        "envFrom": (
            Items(Obj({"configMapRef": (Obj({"name": (text("cm"), 1)}), 1), "prefix": (text("P_"), 0.3)}), most=1),
            0.1,
        ),
        "ports": (Items(CONTAINER_PORT, key=keyed("containerPort", protocol="TCP")), 0.6),
        "resources": (RESOURCES, 0.5),
        "volumeMounts": (Items(MOUNT, key=keyed("mountPath")), 0.4),
        "imagePullPolicy": (text("Always", "IfNotPresent"), 0.3),
        "terminationMessagePath": (text("/dev/termination-log", "/x"), 0.1),
        "workingDir": (text("/w", ""), 0.1),
        "tty": (Choice((True, False)), 0.1),
        "securityContext": (
            Obj(
                {
                    "runAsNonRoot": (Choice((True, False)), 0.5),
                    "runAsUser": (Choice((0, 1000)), 0.5),
                    "capabilities": (
                        Obj(
                            {
                                "add": (Items(text("NET_ADMIN", "SYS_TIME"), most=2), 0.5),
                                "drop": (Items(text("ALL"), most=1), 0.5),
                            }
                        ),
                        0.4,
                    ),
                    "readOnlyRootFilesystem": (Choice((True, False)), 0.3),
                }
            ),
            0.3,
        ),
    }
    if probes:
        fields["readinessProbe"] = (PROBE, 0.3)
        fields["livenessProbe"] = (PROBE, 0.2)
        fields["lifecycle"] = (
            Obj({"preStop": (Obj({"exec": (Obj({"command": (Items(text("sleep", "5"), least=1), 1)}), 1)}), 1)}),
            0.1,
        )
    return Obj(fields)


def _volume(name: str) -> Shape:
    return Either(
        (
            Obj(
                {
                    "name": (Fixed(name), 1),
                    "emptyDir": (Obj({"medium": (text("Memory", ""), 0.3), "sizeLimit": (Choice(QUANTITIES), 0.3)}), 1),
                }
            ),
            Obj(
                {
                    "name": (Fixed(name), 1),
                    "configMap": (
                        Obj(
                            {
                                "name": (text("cm", "other"), 1),
                                "defaultMode": (Choice((420, 256)), 0.3),
                                "items": (
                                    Items(Obj({"key": (text("k", "l"), 1), "path": (text("p", "q"), 1)}), most=2),
                                    0.4,
                                ),
                            }
                        ),
                        1,
                    ),
                }
            ),
            Obj(
                {
                    "name": (Fixed(name), 1),
                    "secret": (Obj({"secretName": (text("s", "t"), 1), "optional": (Choice((True, False)), 0.3)}), 1),
                }
            ),
            Obj(
                {
                    "name": (Fixed(name), 1),
                    "projected": (
                        Obj(
                            {
                                "sources": (
                                    Items(Obj({"configMap": (Obj({"name": (text("cm"), 1)}), 1)}), least=1, most=2),
                                    1,
                                )
                            }
                        ),
                        1,
                    ),
                }
            ),
        )
    )


@dataclass(frozen=True)
class Volumes(Shape):
    """Two volumes, always there: a mount of one that is gone only tells that validation works."""

    def make(self, rng):
        return [_volume("v1").make(rng), _volume("v2").make(rng)]

    def vary(self, rng, value, rate):
        if not isinstance(value, list):
            return self.make(rng)
        out = [_volume(item["name"]).make(rng) if rng.random() < rate * 0.5 else item for item in value]
        if rng.random() < rate * 0.5:
            out.reverse()
        return out


TOLERATION = Obj(
    {
        "key": (text("k1", "k2"), 1),
        "operator": (text("Exists"), 1),
        "effect": (text("NoSchedule", "NoExecute"), 0.6),
    }
)
AFFINITY = Obj(
    {
        "nodeAffinity": (
            Obj(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": (
                        Obj(
                            {
                                "nodeSelectorTerms": (
                                    Items(
                                        Obj(
                                            {
                                                "matchExpressions": (
                                                    Items(
                                                        Obj(
                                                            {
                                                                "key": (text("zone"), 1),
                                                                "operator": (text("In"), 1),
                                                                "values": (Items(text("a", "b"), least=1, most=2), 1),
                                                            }
                                                        ),
                                                        least=1,
                                                        most=2,
                                                    ),
                                                    1,
                                                )
                                            }
                                        ),
                                        least=1,
                                        most=2,
                                    ),
                                    1,
                                )
                            }
                        ),
                        1,
                    )
                }
            ),
            1,
        )
    }
)
SPREAD = Obj(
    {
        "maxSkew": (Choice((1, 2)), 1),
        "topologyKey": (text("zone", "host"), 1),
        "whenUnsatisfiable": (text("DoNotSchedule", "ScheduleAnyway"), 1),
        "labelSelector": (Obj({"matchLabels": (labels(), 1)}), 0.5),
    }
)


def pod_spec(restart_policies: tuple[str, ...] = ("Always",), restart_likelihood: float = 0.3) -> Obj:
    return Obj(
        {
            "containers": (Items(container(("app", "side", "log")), least=1, key=keyed("name")), 1),
            "initContainers": (Items(container(("init1", "init2"), probes=False), most=2, key=keyed("name")), 0.2),
            "volumes": (Volumes(), 1),
            "restartPolicy": (text(*restart_policies), restart_likelihood),
            "serviceAccountName": (text("default", "robot"), 0.2),
            "automountServiceAccountToken": (Choice((True, False)), 0.2),
            "nodeSelector": (Table(("disk", "zone"), text("ssd", "a")), 0.3),
            "tolerations": (Items(TOLERATION), 0.3),
            "affinity": (AFFINITY, 0.15),
            "topologySpreadConstraints": (Items(SPREAD, most=2, key=keyed("topologyKey", "whenUnsatisfiable")), 0.2),
            "imagePullSecrets": (Items(Obj({"name": (text("r1", "r2"), 1)}), most=2, key=keyed("name")), 0.2),
            "hostAliases": (
                Items(
                    Obj({"ip": (text("1.2.3.4", "5.6.7.8"), 1), "hostnames": (Items(text("h1", "h2"), most=2), 0.8)}),
                    most=2,
                    key=keyed("ip"),
                ),
                0.15,
            ),
            "securityContext": (
                Obj(
                    {
                        "fsGroup": (Choice((1, 1000)), 0.4),
                        "runAsUser": (Choice((0, 1000)), 0.4),
                        "supplementalGroups": (Items(Choice((1, 2))), 0.2),
                        "sysctls": (
                            Items(Obj({"name": (text("net.core.somaxconn"), 1), "value": (text("1", "2"), 1)}), most=1),
                            0.1,
                        ),
                    }
                ),
                0.3,
            ),
            "terminationGracePeriodSeconds": (Choice((0, 30, 60)), 0.3),
            "dnsPolicy": (text("ClusterFirst", "Default"), 0.2),
            "dnsConfig": (
                Obj(
                    {
                        "nameservers": (Items(text("1.1.1.1", "8.8.8.8"), most=2), 0.7),
                        "options": (Items(Obj({"name": (text("ndots"), 1), "value": (text("2"), 1)}), most=1), 0.5),
                    }
                ),
                0.1,
            ),
            "enableServiceLinks": (Choice((True, False)), 0.15),
            "hostNetwork": (Fixed(False), 0.1),
        }
    )


def template(*restart_policies: str, likelihood: float = 0.3) -> Shape:
    spec = pod_spec(restart_policies or ("Always",), likelihood)
    return Obj({"metadata": (TEMPLATE_METADATA, 1), "spec": (spec, 1)})


SELECTOR = Fixed({"matchLabels": {"app": "w"}})
STRATEGY = Either(
    (
        Obj({"type": (text("Recreate"), 1)}),
        Obj(
            {
                "type": (text("RollingUpdate"), 0.8),
                "rollingUpdate": (
                    Obj({"maxSurge": (Choice((1, "25%", "50%")), 0.6), "maxUnavailable": (Choice((1, 0, "25%")), 0.6)}),
                    0.8,
                ),
            }
        ),
    )
)


@dataclass(frozen=True)
class Kind:
    """A built-in kind: where it is served, and the shape of its manifests without metadata."""

    api_version: str
    kind: str
    plural: str
    shape: Shape
    namespaced: bool = True
    has_status: bool = False
    scalable: bool = False
    weight: int = 3

    def collection(self, namespace: str) -> str:
        root = "/api" if self.api_version == "v1" else "/apis"
        place = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}/{self.api_version}{place}/{self.plural}"


SERVICE_PORT = Obj(
    {
        "port": (PORT, 1),
        "name": (text("http", "dns", "alt", "web"), 1),
        "protocol": (Choice(PROTOCOLS), 0.5),
        "targetPort": (INT_OR_STRING, 0.5),
        "appProtocol": (text("http"), 0.1),
    }
)
BACKEND = Obj(
    {
        "service": (
            Obj(
                {
                    "name": (text("s1", "s2"), 1),
                    "port": (Either((Obj({"number": (PORT, 1)}), Obj({"name": (text("http"), 1)}))), 1),
                }
            ),
            1,
        )
    }
)
METRIC = Obj(
    {
        "type": (Fixed("Resource"), 1),
        "resource": (
            Obj(
                {
                    "name": (text("cpu", "memory"), 1),
                    "target": (
                        Obj({"type": (Fixed("Utilization"), 1), "averageUtilization": (Choice((50, 80)), 1)}),
                        1,
                    ),
                }
            ),
            1,
        ),
    }
)
SCALING = Obj(
    {
        "stabilizationWindowSeconds": (Choice((0, 300)), 0.5),
        "selectPolicy": (text("Max", "Min"), 0.3),
        "policies": (
            Items(
                Obj(
                    {
                        "type": (text("Pods", "Percent"), 1),
                        "value": (Choice((4, 100)), 1),
                        "periodSeconds": (Choice((15, 60)), 1),
                    }
                ),
                least=1,
                most=2,
            ),
            0.3,
        ),
    }
)
PEER = Either(
    (
        Obj({"podSelector": (Obj({"matchLabels": (labels(), 0.7)}), 1)}),
        Obj({"ipBlock": (Obj({"cidr": (text("10.0.0.0/8", "192.168.0.0/16"), 1)}), 1)}),
    )
)
POLICY_PORT = Obj({"port": (Choice((80, "http", 443)), 0.8), "protocol": (Choice(PROTOCOLS), 0.5)})
RULE = Obj(
    {
        "verbs": (Items(text("get", "list", "watch", "*"), least=1), 1),
        "apiGroups": (Items(text("", "apps"), least=1, most=2), 1),
        "resources": (Items(text("pods", "deployments"), least=1, most=2), 1),
        "resourceNames": (Items(text("n1", "n2"), most=2), 0.3),
    }
)


def _crd_shape(rng: Random) -> Any:
    from oracle.crds import random_crd  # noqa: PLC0415 - the CRDs use these shapes' sisters

    crd, _ = random_crd(rng, "Nested")
    return crd["spec"]["versions"]


CRD = Obj(
    {
        "spec": (
            Obj(
                {
                    "group": (Fixed("nested.example.com"), 1),
                    "scope": (Fixed("Namespaced"), 1),
                    "names": (
                        Obj(
                            {
                                "kind": (Fixed("NAME"), 1),
                                "plural": (Fixed("PLURAL"), 1),
                                "singular": (Fixed("SINGULAR"), 0.5),
                                "shortNames": (Items(text("n1", "n2"), most=2), 0.4),
                                "categories": (Items(text("all", "nested"), most=2, key=lambda item: item), 0.4),
                            }
                        ),
                        1,
                    ),
                    "versions": (Made(_crd_shape), 1),
                }
            ),
            1,
        )
    }
)

JOB_SPEC = {
    "template": (template("Never", "OnFailure", likelihood=1), 1),
    "backoffLimit": (Choice((0, 6, 3)), 0.4),
    "completions": (Choice((1,)), 0.3),
    "parallelism": (Choice((1, 2)), 0.3),
    "activeDeadlineSeconds": (Choice((60, 600)), 0.3),
    "ttlSecondsAfterFinished": (Choice((0, 100)), 0.3),
}

KINDS = (
    Kind(
        "apps/v1",
        "Deployment",
        "deployments",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "selector": (SELECTOR, 1),
                            "template": (template(), 1),
                            "replicas": (Choice((0, 1, 2, 3)), 0.7),
                            "strategy": (STRATEGY, 0.5),
                            "minReadySeconds": (Choice((0, 5)), 0.3),
                            "revisionHistoryLimit": (Choice((10, 2)), 0.3),
                            "paused": (Choice((True, False)), 0.15),
                            "progressDeadlineSeconds": (Choice((600, 60)), 0.2),
                        }
                    ),
                    1,
                ),
                "status": (Fixed({}), 0.1),
            }
        ),
        has_status=True,
        scalable=True,
        weight=8,
    ),
    Kind(
        "apps/v1",
        "StatefulSet",
        "statefulsets",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "selector": (SELECTOR, 1),
                            "serviceName": (Fixed("s"), 0.8),
                            "template": (template(), 1),
                            "replicas": (Choice((0, 1, 2)), 0.6),
                            "podManagementPolicy": (Fixed("Parallel"), 0.5),
                            "updateStrategy": (
                                Either(
                                    (
                                        Obj({"type": (Fixed("OnDelete"), 1)}),
                                        Obj(
                                            {
                                                "type": (Fixed("RollingUpdate"), 0.7),
                                                "rollingUpdate": (Obj({"partition": (Choice((0, 1)), 1)}), 0.6),
                                            }
                                        ),
                                    )
                                ),
                                0.4,
                            ),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
        scalable=True,
        weight=4,
    ),
    Kind(
        "apps/v1",
        "DaemonSet",
        "daemonsets",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "selector": (SELECTOR, 1),
                            "template": (template(), 1),
                            "minReadySeconds": (Choice((0, 5)), 0.3),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
        weight=2,
    ),
    Kind(
        "v1",
        "Service",
        "services",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "ports": (Items(SERVICE_PORT, least=1, key=keyed("port", protocol="TCP")), 1),
                            "selector": (Table(("app", "tier"), text("a", "b")), 0.8),
                            "type": (text("ClusterIP", "NodePort", "LoadBalancer"), 0.4),
                            "sessionAffinity": (text("None", "ClientIP"), 0.3),
                            "externalIPs": (Items(text("1.2.3.4", "5.6.7.8"), most=2), 0.1),
                            "publishNotReadyAddresses": (Choice((True, False)), 0.2),
                            "internalTrafficPolicy": (text("Cluster", "Local"), 0.2),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
        weight=6,
    ),
    Kind(
        "networking.k8s.io/v1",
        "Ingress",
        "ingresses",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "ingressClassName": (text("nginx", "other"), 0.4),
                            "defaultBackend": (BACKEND, 0.9),
                            "tls": (
                                Items(
                                    Obj(
                                        {
                                            "hosts": (Items(text("a.io", "b.io"), most=2), 0.8),
                                            "secretName": (text("s1"), 0.6),
                                        }
                                    ),
                                    most=2,
                                ),
                                0.3,
                            ),
                            "rules": (
                                Items(
                                    Obj(
                                        {
                                            "host": (text("a.io", "b.io"), 0.8),
                                            "http": (
                                                Obj(
                                                    {
                                                        "paths": (
                                                            Items(
                                                                Obj(
                                                                    {
                                                                        "path": (text("/", "/x"), 1),
                                                                        "pathType": (text("Prefix", "Exact"), 1),
                                                                        "backend": (BACKEND, 1),
                                                                    }
                                                                ),
                                                                least=1,
                                                                most=2,
                                                            ),
                                                            1,
                                                        )
                                                    }
                                                ),
                                                0.9,
                                            ),
                                        }
                                    ),
                                    most=2,
                                ),
                                0.7,
                            ),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
    ),
    Kind(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "scaleTargetRef": (
                                Obj(
                                    {
                                        "apiVersion": (Fixed("apps/v1"), 0.8),
                                        "kind": (Fixed("Deployment"), 1),
                                        "name": (text("w", "u"), 1),
                                    }
                                ),
                                1,
                            ),
                            "maxReplicas": (Choice((5, 10)), 1),
                            "minReplicas": (Choice((1, 2)), 0.5),
                            "metrics": (Items(METRIC, most=2, key=lambda item: item["resource"]["name"]), 0.6),
                            "behavior": (Obj({"scaleDown": (SCALING, 0.6), "scaleUp": (SCALING, 0.6)}), 0.4),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
    ),
    Kind(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "networkpolicies",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "podSelector": (Obj({"matchLabels": (labels(), 0.6)}), 1),
                            "policyTypes": (Items(text("Ingress", "Egress"), most=2, key=lambda item: item), 0.5),
                            "ingress": (
                                Items(
                                    Obj(
                                        {"from": (Items(PEER, most=2), 0.7), "ports": (Items(POLICY_PORT, most=2), 0.7)}
                                    ),
                                    most=2,
                                ),
                                0.7,
                            ),
                            "egress": (Items(Obj({"to": (Items(PEER, most=2), 0.7)}), most=1), 0.4),
                        }
                    ),
                    1,
                )
            }
        ),
    ),
    Kind(
        "batch/v1",
        "CronJob",
        "cronjobs",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "schedule": (text("* * * * *", "0 1 * * *"), 1),
                            "jobTemplate": (
                                Obj({"spec": (Obj(JOB_SPEC), 1), "metadata": (Obj({"labels": (labels(), 0.5)}), 0.3)}),
                                1,
                            ),
                            "suspend": (Choice((True, False)), 0.4),
                            "concurrencyPolicy": (text("Allow", "Forbid"), 0.3),
                            "successfulJobsHistoryLimit": (Choice((0, 3)), 0.3),
                            "timeZone": (Fixed("Etc/UTC"), 0.2),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
    ),
    Kind(
        "rbac.authorization.k8s.io/v1",
        "Role",
        "roles",
        Obj({"rules": (Items(RULE), 0.9)}),
    ),
    Kind(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "clusterroles",
        Obj(
            {
                "rules": (Items(RULE), 0.8),
                "aggregationRule": (
                    Obj({"clusterRoleSelectors": (Items(Obj({"matchLabels": (labels(), 1)}), least=1, most=2), 1)}),
                    0.2,
                ),
            }
        ),
        namespaced=False,
        weight=2,
    ),
    Kind(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        "rolebindings",
        Obj(
            {
                "roleRef": (Fixed({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}), 1),
                "subjects": (
                    Items(
                        Either(
                            (
                                Obj(
                                    {
                                        "kind": (Fixed("ServiceAccount"), 1),
                                        "name": (text("a", "b"), 1),
                                        "namespace": (Fixed("default"), 1),
                                    }
                                ),
                                Obj(
                                    {
                                        "kind": (Fixed("User"), 1),
                                        "name": (text("u", "v"), 1),
                                        "apiGroup": (Fixed("rbac.authorization.k8s.io"), 0.7),
                                    }
                                ),
                            )
                        )
                    ),
                    0.8,
                ),
            }
        ),
        weight=2,
    ),
    Kind(
        "v1",
        "ConfigMap",
        "configmaps",
        Obj(
            {
                "data": (Table(("a", "b", "c.conf"), text("1", "2", "", "line\nline")), 0.8),
                "binaryData": (Table(("d", "e"), text("YQ==", "Yg==", "YWI=")), 0.3),
                "immutable": (Fixed(False), 0.1),
            }
        ),
        weight=4,
    ),
    Kind(
        "v1",
        "Secret",
        "secrets",
        Obj(
            {
                "data": (Table(("a", "b", "c"), text("YQ==", "Yg==", "", "YW\nI=")), 0.7),
                "stringData": (Table(("a", "b", "d"), text("a", "b", "", "ü")), 0.5),
                "type": (Fixed("Opaque"), 0.3),
            }
        ),
        weight=4,
    ),
    Kind(
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        Obj(
            {
                "imagePullSecrets": (Items(Obj({"name": (text("a", "b"), 1)}), most=2), 0.5),
                "secrets": (Items(Obj({"name": (text("a", "b"), 1)}), most=2, key=keyed("name")), 0.5),
                "automountServiceAccountToken": (Choice((True, False)), 0.4),
            }
        ),
        weight=2,
    ),
    Kind(
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "accessModes": (Fixed(["ReadWriteOnce"]), 1),
                            "resources": (Obj({"requests": (Fixed({"storage": "1024Mi"}), 1)}), 1),
                            "storageClassName": (Fixed("sc"), 1),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
        weight=1,
    ),
    Kind(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "selector": (Obj({"matchLabels": (labels(), 0.8)}), 0.9),
                            "minAvailable": (Choice((1, "50%", 0)), 0.9),
                        }
                    ),
                    1,
                )
            }
        ),
        has_status=True,
        weight=2,
    ),
    Kind(
        "v1",
        "Pod",
        "pods",
        Obj({"spec": (pod_spec(), 1)}),
        has_status=True,
        weight=1,
    ),
    Kind(
        "batch/v1",
        "Job",
        "jobs",
        Obj({"spec": (Obj({**JOB_SPEC, "suspend": (Choice((True, False)), 0.3)}), 1)}),
        has_status=True,
        weight=1,
    ),
    Kind(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        CRD,
        namespaced=False,
        has_status=True,
        weight=1,
    ),
)
