"""Shapes of built-in kinds that belong to a cluster's set-up: storage, admission, priorities, endpoints."""

from __future__ import annotations

from oracle.builtins import PORT, PROTOCOLS, SELECTOR, Kind, labels, template, text
from oracle.shapes import Choice, Fixed, Items, Obj, Table, keyed

YES_OR_NO = Choice((True, False))
UNKNOWN_RESOURCES = {
    "apiGroups": (Fixed(["nothing.example.com"]), 1),
    "apiVersions": (Fixed(["*"]), 1),
    "operations": (Items(text("CREATE", "UPDATE", "*"), least=1, most=1), 1),
    "resources": (Fixed(["*"]), 1),
    "scope": (text("*", "Namespaced"), 0.3),
}
"""Resources that nobody serves, so that no webhook and no policy of a story ever judges another."""


def _webhooks(**more):
    hook = {
        "name": (text("a.example.com", "b.example.com"), 1),
        "admissionReviewVersions": (Fixed(["v1"]), 1),
        "sideEffects": (text("None", "NoneOnDryRun"), 1),
        "clientConfig": (
            Obj(
                {
                    "service": (
                        Obj(
                            {
                                "name": (Fixed("hook"), 1),
                                "namespace": (Fixed("default"), 1),
                                "port": (Choice((443, 8443)), 0.3),
                                "path": (text("/a", "/b"), 0.3),
                            }
                        ),
                        1,
                    )
                }
            ),
            1,
        ),
        "rules": (Items(Obj(UNKNOWN_RESOURCES), most=2), 0.9),
        "failurePolicy": (text("Fail", "Ignore"), 0.4),
        "matchPolicy": (text("Exact", "Equivalent"), 0.3),
        "timeoutSeconds": (Choice((5, 10)), 0.3),
        "objectSelector": (Obj({"matchLabels": (labels(), 0.7)}), 0.3),
        **more,
    }
    return Obj({"webhooks": (Items(Obj(hook), most=2, key=keyed("name")), 0.9)})


VALIDATION = Obj(
    {
        "spec": (
            Obj(
                {
                    "failurePolicy": (text("Fail", "Ignore"), 0.4),
                    "matchConstraints": (
                        Obj(
                            {
                                "resourceRules": (Items(Obj(UNKNOWN_RESOURCES), least=1, most=2), 1),
                                "matchPolicy": (text("Exact", "Equivalent"), 0.3),
                                "namespaceSelector": (Obj({"matchLabels": (labels(), 0.7)}), 0.3),
                            }
                        ),
                        1,
                    ),
                    "validations": (
                        Items(
                            Obj({"expression": (text("true", "1 == 1"), 1), "message": (text("a", "b"), 0.4)}), least=1
                        ),
                        1,
                    ),
                }
            ),
            1,
        )
    }
)
VOLUME = Obj(
    {
        "spec": (
            Obj(
                {
                    "capacity": (Fixed({"storage": "1024Mi"}), 1),
                    "accessModes": (Fixed(["ReadWriteOnce"]), 1),
                    "hostPath": (Obj({"path": (text("/a", "/b"), 1), "type": (text("", "Directory"), 0.3)}), 1),
                    "persistentVolumeReclaimPolicy": (text("Retain", "Delete"), 0.4),
                    "storageClassName": (text("a", "b"), 0.5),
                    "volumeMode": (text("Filesystem"), 0.3),
                }
            ),
            1,
        )
    }
)
DRIVER = Obj(
    {
        "spec": (
            Obj(
                {
                    "attachRequired": (YES_OR_NO, 0.4),
                    "podInfoOnMount": (YES_OR_NO, 0.4),
                    "storageCapacity": (YES_OR_NO, 0.3),
                    "requiresRepublish": (YES_OR_NO, 0.3),
                    "fsGroupPolicy": (text("File", "None"), 0.3),
                    "volumeLifecycleModes": (
                        Items(text("Persistent", "Ephemeral"), most=2, key=lambda item: item),
                        0.4,
                    ),
                }
            ),
            1,
        )
    }
)
CLASS = Obj(
    {
        "provisioner": (text("example.com/a"), 1),
        "parameters": (Table(("a", "b"), text("1", "2")), 0.4),
        "reclaimPolicy": (text("Delete", "Retain"), 0.3),
        "volumeBindingMode": (text("Immediate", "WaitForFirstConsumer"), 0.3),
        "allowVolumeExpansion": (YES_OR_NO, 0.4),
    }
)
SLICE = Obj(
    {
        "addressType": (Fixed("IPv4"), 1),
        "endpoints": (
            Items(Obj({"addresses": (Items(text("10.1.2.3", "10.1.2.4"), least=1, most=1), 1)}), most=2),
            0.9,
        ),
        "ports": (
            Items(
                Obj({"port": (PORT, 1), "name": (text("http", "dns"), 0.6), "protocol": (Choice(PROTOCOLS), 0.4)}),
                most=2,
                key=keyed("name"),
            ),
            0.8,
        ),
    }
)
REPLICAS = Obj(
    {
        "spec": (
            Obj(
                {
                    "replicas": (Choice((0, 1, 2)), 0.5),
                    "minReadySeconds": (Choice((0, 5)), 0.3),
                    "selector": (SELECTOR, 1),
                    "template": (template(), 1),
                }
            ),
            1,
        )
    }
)

INFRASTRUCTURE = (
    Kind("v1", "Namespace", "namespaces", Obj({}), namespaced=False, has_status=True, weight=1),
    Kind("v1", "PersistentVolume", "persistentvolumes", VOLUME, namespaced=False, has_status=True, weight=1),
    Kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", DRIVER, namespaced=False, weight=1),
    Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", CLASS, namespaced=False, weight=1),
    Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", SLICE, weight=1),
    Kind("apps/v1", "ReplicaSet", "replicasets", REPLICAS, has_status=True, scalable=True, weight=1),
    Kind(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
        Obj(
            {
                "value": (Choice((0, 10)), 1),
                "description": (text("a", "b"), 0.4),
                "globalDefault": (Fixed(False), 0.2),
                "preemptionPolicy": (text("PreemptLowerPriority", "Never"), 0.3),
            }
        ),
        namespaced=False,
        weight=1,
    ),
    Kind(
        "networking.k8s.io/v1",
        "IngressClass",
        "ingressclasses",
        Obj(
            {
                "spec": (
                    Obj(
                        {
                            "controller": (Fixed("example.com/a"), 1),
                            "parameters": (Obj({"kind": (text("A", "B"), 1), "name": (text("a", "b"), 1)}), 0.6),
                        }
                    ),
                    1,
                )
            }
        ),
        namespaced=False,
        weight=1,
    ),
    Kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        _webhooks(),
        namespaced=False,
        weight=1,
    ),
    Kind(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        _webhooks(reinvocationPolicy=(text("Never", "IfNeeded"), 0.3)),
        namespaced=False,
        weight=1,
    ),
    Kind(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        VALIDATION,
        namespaced=False,
        has_status=True,
        weight=1,
    ),
)
